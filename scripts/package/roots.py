"""Fresh roots of Debian releases, made from the distribution's packages by mmdebstrap. The mirror is the one that apt of
this machine is configured with."""

import os
import shutil
import subprocess
import zlib

# Beside what is essential: what a server with PHP sites has, and what the trials ask with.
PACKAGES = ["php-fpm", "curl", "logrotate", "ca-certificates", "procps", "nginx-light"]


def fresh(suite, folder, more=()):
    """A root of its own in `folder`, with `more` packages; what was there is removed."""
    packages = [*PACKAGES, *more]
    archive = os.path.join(os.path.dirname(folder), f"{suite}-{zlib.crc32(repr(packages).encode()):08x}.tar")
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    if not os.path.exists(archive):
        print(f"  making a root of {suite} from its packages", flush=True)
        command = ["mmdebstrap", "--variant=apt", "--format=tar", f"--include={','.join(packages)}", suite, archive + ".new", mirror()]
        subprocess.run(command, check=True, capture_output=True)
        os.rename(archive + ".new", archive)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    subprocess.run(["tar", "--extract", "--numeric-owner", "--file", archive, "--directory", folder, "--exclude=./dev/*"], check=True)
    return folder


def mirror():
    """Where apt gets Debian's packages from."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(RELEASE)", "Created-By: Packages", "Component: main"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    found = [line.split() for line in lines]
    places = [it[0] for it in found if len(it) == 3 and it[1] == "Debian" and "-" not in it[2]]
    assert places, "apt is not configured for Debian's packages"
    return places[0]
