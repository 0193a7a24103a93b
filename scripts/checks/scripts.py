"""The shell scripts: set-up and its messages."""

import os
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SETUP = os.path.join(ROOT, "scripts/setup.sh")


def checks(_binary):
    return [
        ("setup_says_nothing_when_all_is_there", setup_says_nothing_when_all_is_there),
        ("setup_names_the_groups_when_it_does_not_know_one", setup_names_the_groups),
        ("setup_names_the_packages_where_there_is_no_apt", setup_without_apt),
        ("setup_names_linux_on_other_systems", setup_on_another_system),
        ("every_script_can_be_started", every_script_can_be_started),
    ]


def setup_says_nothing_when_all_is_there():
    done = subprocess.run([SETUP, "build", "run", "test"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout + done.stderr == "", f"it said: {done}"


def setup_names_the_groups():
    done = subprocess.run([SETUP, "nonsense"], capture_output=True, text=True)
    assert done.returncode != 0, "it went on"
    assert "nonsense" in done.stderr and "bench" in done.stderr, done.stderr


def setup_without_apt():
    """A PATH with the shell's everyday tools and Rust, but neither apt-get nor a compiler."""
    with tempfile.TemporaryDirectory() as path:
        for name in ("bash", "env", "id", "sort", "grep", "ls", "cat", "dirname", "uname"):
            found = next(f for f in (f"/bin/{name}", f"/usr/bin/{name}") if os.path.exists(f))
            os.symlink(found, os.path.join(path, name))
        os.symlink("/bin/true", os.path.join(path, "cargo"))
        done = subprocess.run([SETUP, "build"], capture_output=True, text=True, env={"PATH": path})
    assert done.returncode != 0, "it went on"
    assert "gcc" in done.stderr and "apt-get" in done.stderr, done.stderr


def setup_on_another_system():
    with tempfile.TemporaryDirectory() as path:
        uname = os.path.join(path, "uname")
        with open(uname, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho FreeBSD\n")
        os.chmod(uname, 0o755)
        done = subprocess.run([SETUP, "build"], capture_output=True, text=True, env={"PATH": f"{path}:{os.environ['PATH']}"})
    assert done.returncode == 1, "it went on"
    assert "this is FreeBSD" in done.stderr and "docs/questions.md" in done.stderr, done.stderr


def every_script_can_be_started():
    for folder in (".ci", "scripts", "bench"):
        for name in os.listdir(os.path.join(ROOT, folder)):
            path = os.path.join(ROOT, folder, name)
            if os.path.isfile(path) and open(path, "rb").read(2) == b"#!":
                assert os.access(path, os.X_OK), f"{path} is not executable"
                if name.endswith(".sh") or name == "run":
                    subprocess.run(["bash", "-n", path], check=True)
