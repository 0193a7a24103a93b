"""Fresh roots of Debian releases, made from the distribution's packages by mmdebstrap, and commands in them. The mirror is
the one that apt of this machine is configured with. Roots of another architecture run by qemu."""

import glob
import os
import shutil
import subprocess
import time
import zlib

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
WORK = os.path.join(os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target"), "package")
# Beside what is essential: what a server with PHP sites has, and what the trials ask with.
PACKAGES = ["php-fpm", "curl", "logrotate", "ca-certificates", "procps", "nginx-light"]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SECONDS = 300
# How the kernel knows programs of an architecture, as Debian's qemu-user-static says it: the first bytes, and which of their
# bits count.
ELF = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00"
ELF_MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
MACHINES = {"amd64": ("x86_64", r"\x3e\x00"), "arm64": ("aarch64", r"\xb7\x00")}


class Root:
    """A folder with a system, whose commands run in it alone."""

    def __init__(self, path):
        self.path = path

    def line(self, *command):
        """A command line that runs a command inside."""
        return ["chroot", self.path, "env", "-i", f"PATH={PATH}", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "HOME=/root", *command]

    def run(self, *command, check=True):
        """What a command says; unchecked, with its exit code before."""
        done = subprocess.run(self.line(*command), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False)
        said = done.stdout + done.stderr
        assert not check or done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{said}{self.journal()}"
        return said if check else (done.returncode, said)

    def journal(self):
        """What else explains a failure."""
        return ""

    def write(self, path, text):
        os.makedirs(os.path.dirname(self.path + path), exist_ok=True)
        with open(self.path + path, "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, path):
        with open(self.path + path, encoding="utf-8") as file:
            return file.read()

    def mount(self):
        """Gives it what programs need of a kernel, in a namespace of mounts that the caller has entered."""
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["mount", "-t", "proc", "proc", self.path + "/proc"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "dev", self.path + "/dev"], check=True)
        for name, minor in (("null", 3), ("zero", 5), ("full", 7), ("random", 8), ("urandom", 9)):
            subprocess.run(["mknod", "-m", "666", f"{self.path}/dev/{name}", "c", "1", str(minor)], check=True)
        os.mkdir(self.path + "/dev/shm", 0o1777)
        os.chmod(self.path + "/dev/shm", 0o1777)


def fresh(suite, folder, more=(), architecture=None, packages=PACKAGES):
    """A root of its own in `folder`, with `more` packages; what was there is removed."""
    packages = [*packages, *more]
    architecture = architecture or own_architecture()
    if architecture != own_architecture():
        emulate(architecture)
    archive = os.path.join(os.path.dirname(folder), f"{suite}-{architecture}-{zlib.crc32(repr(packages).encode()):08x}.tar")
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    if not os.path.exists(archive):
        print(f"  making a root of {suite} for {architecture} from its packages", flush=True)
        # A mirror may be some days behind this machine's clock. A program of the other architecture is known to run.
        command = ["mmdebstrap", "--variant=apt", "--format=tar", f"--architectures={architecture}", f"--include={','.join(packages)}",
                   "--aptopt=Acquire::Check-Valid-Until \"false\"", "--skip=check/qemu",
                   suite, archive + ".new", mirror()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            os.unlink(archive + ".new")
            raise AssertionError(f"{' '.join(command)}:\n{done.stderr[-2000:]}")
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


def own_architecture():
    return subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout.strip()


def emulate(architecture):
    """Has the kernel start programs of this architecture by qemu, until the next boot of this machine."""
    machine, number = MACHINES[architecture]
    place, name = "/proc/sys/fs/binfmt_misc", f"qemu-{machine}"
    if not os.path.exists(f"{place}/register"):
        subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", place], check=True)
    if not os.path.exists(f"{place}/{name}"):
        program = shutil.which(f"{name}-static")
        assert program, f"{name}-static is missing: apt install qemu-user-static"
        with open(f"{place}/register", "w", encoding="ascii") as file:
            file.write(f":{name}:M:0:{ELF}{number}:{ELF_MASK}:{program}:FPC")


def package_in(folder, architecture=None, name="mayfly"):
    """The file of the package for an architecture."""
    found = glob.glob(os.path.join(folder, f"{name}_*_{architecture or own_architecture()}.deb"))
    assert len(found) == 1, f"one package in {folder}: {found}"
    return found[0]


def wait_until(holds, problem, seconds=120):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, problem
        time.sleep(0.1)
