#!/usr/bin/python3
"""Installs from the repositories that `make repository` has written, in fresh roots without a network: with apt from a root
of Debian, and with rpm, as far as that goes without Fedora's own packages.

    repository_trial.py [SUITE]      bookworm

What must hold: apt trusts the key and nothing else, installs both packages, and refuses a repository in which one byte is
changed. rpm checks the signatures, installs, and removes; its configuration is the one of the Debian package. Needs root.
"""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import roots  # noqa: E402

REPOSITORY = os.path.join(roots.WORK, "repository")
RPM_MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}


def main():
    if os.environ.get("MAYFLY_TRIAL_IS_INSIDE") == "1":
        return trial(roots.Root(sys.argv[1]))
    suite = (sys.argv[1:] or ["bookworm"])[0]
    root = roots.fresh(suite, os.path.join(roots.WORK, "roots", f"repository-{suite}"), ["rpm"])
    command = ["unshare", "--net", "--pid", "--mount", "--fork", "--kill-child", sys.executable, os.path.abspath(__file__), root]
    code = subprocess.run(command, env={**os.environ, "MAYFLY_TRIAL_IS_INSIDE": "1"}, check=False).returncode
    shutil.rmtree(root)
    return code


def trial(root):
    root.mount()
    shutil.copytree(REPOSITORY, root.path + "/srv/repository")
    for name in os.listdir(root.path + "/etc/apt/sources.list.d"):
        os.unlink(root.path + "/etc/apt/sources.list.d/" + name)
    root.write("/etc/apt/sources.list", "")
    passed = 0
    for name, check in (("apt installs what the key has signed", apt_installs), ("apt refuses a repository without the key", apt_wants_the_key),
                        ("apt refuses a list that was changed", apt_refuses_a_change), ("rpm checks, installs and removes", rpm_installs)):
        print(f"  ok    {name} ({check(root)})", flush=True)
        passed += 1
    print(f"{passed} passed, 0 failed")
    return 0


def sources(root):
    with open(REPOSITORY + "/mayfly.sources", encoding="utf-8") as file:
        lines = file.read().splitlines()
    root.write("/etc/apt/sources.list.d/mayfly.sources", "\n".join("URIs: file:/srv/repository/apt" if it.startswith("URIs:") else it for it in lines) + "\n")
    os.makedirs(root.path + "/etc/apt/keyrings", exist_ok=True)
    shutil.copy(REPOSITORY + "/mayfly.asc", root.path + "/etc/apt/keyrings/mayfly.asc")


def apt_installs(root):
    sources(root)
    said = root.run("apt-get", "update")
    assert "W:" not in said and "E:" not in said, said
    root.run("apt-get", "install", "--yes", "mayfly")
    version = root.run("mayfly", "--version").strip()
    code, said = root.run("mayfly", "bench", "--help", check=False)
    assert code == 0, said
    code, said = root.run("mayfly", "bench", "http://127.0.0.1:1/", check=False)
    assert code != 0 and "mayfly-tools" in said, said
    root.run("apt-get", "install", "--yes", "mayfly-tools")
    assert root.run("mayfly-tools", "--version").split()[1] == version.split()[1]
    root.run("apt-get", "purge", "--yes", "mayfly", "mayfly-tools")
    return version


def apt_wants_the_key(root):
    root.run("rm", "/etc/apt/keyrings/mayfly.asc")
    code, said = root.run("apt-get", "update", "-o", "APT::Update::Error-Mode=any", check=False)
    assert code != 0 and ("NO_PUBKEY" in said or "not signed" in said), said
    return "no public key"


def apt_refuses_a_change(root):
    sources(root)
    for folder, _, names in os.walk(root.path + "/srv/repository/apt/dists"):
        for name in names:
            if name.startswith("Packages"):
                change(os.path.join(folder, name))
    root.run("sh", "-c", "rm -rf /var/lib/apt/lists/*")
    code, said = root.run("apt-get", "update", "-o", "APT::Update::Error-Mode=any", check=False)
    assert code != 0 and ("Hash Sum mismatch" in said or "unexpected size" in said), said
    return "hash sum mismatch"


def change(path):
    with open(path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"X")


def rpm_installs(root):
    machine = RPM_MACHINE[roots.own_architecture()]
    folder = "/srv/repository/rpm"
    names = sorted(it for it in os.listdir(root.path + folder) if it.endswith(f".{machine}.rpm"))
    files = [f"{folder}/{name}" for name in names]
    assert len(files) == 2, names
    root.run("rpm", "--import", "/srv/repository/mayfly.asc")
    said = root.run("rpm", "--checksig", "--verbose", *files)
    assert said.count("Signature, ") == 2 and "NOKEY" not in said and "BAD" not in said, said
    needed = root.run("rpm", "--query", "--requires", "--package", files[0])
    assert "shadow-utils" in needed, needed
    # The packages that Fedora has are not in this root's list of RPM packages.
    root.run("rpm", "--install", "--nodeps", *files)
    root.run("mayfly", "-t")
    root.run("rpm", "--verify", "--nodeps", "mayfly", "mayfly-tools")
    owner = root.run("id", "-u", "mayfly").strip()
    assert owner != "0", owner
    root.run("rpm", "--erase", "--nodeps", "mayfly-tools", "mayfly")
    left = [it for it in root.run("find", "/etc", "/usr", "-xdev", "-name", "*mayfly*").split() if "/etc/apt/" not in it]
    assert not left, left
    return ", ".join(names)


if __name__ == "__main__":
    sys.exit(main())
