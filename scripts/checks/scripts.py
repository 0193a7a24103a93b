"""The shell scripts: set-up and its messages."""

import os
import subprocess
import sys
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
        ("errors_that_scripts_plant_have_a_place_in_the_code", planted_errors_have_a_place),
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
        for path, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in names:
                check_script(os.path.join(path, name))


def check_script(path):
    with open(path, "rb") as file:
        is_script, shell = file.read(2) == b"#!", file.readline()
    if is_script:
        assert os.access(path, os.X_OK), f"{path} is not executable"
        if b"bash" in shell:
            subprocess.run(["bash", "-n", path], check=True)


def planted_errors_have_a_place():
    folder = os.path.join(ROOT, "scripts/mutations")
    for name, source in (("learned", "crates/learned/src"), ("guests", "crates")):
        code = f"import {name}; {name}.planted({os.path.join(ROOT, source)!r})"
        done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
