#!/usr/bin/env python3
"""What becomes of visitors when something breaks: Mayfly, and nginx beside it.

Each fault is staged on a server with the same configuration, under the same load, for a few
seconds; all of them take about three minutes for both. Some need root (a small disk, a control
group, another process's end), so all are run as root. With `--write`, the table goes into
docs/reliability.md.

    scripts/faults/run.py [--binary target/release/mayfly] [--only NAME,NAME] [--write]
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import cases  # noqa: E402

DOCUMENT = os.path.join(ROOT, "docs/reliability.md")
BEGIN, END = "<!-- begin: scripts/faults/run.py -->", "<!-- end -->"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "target/release/mayfly"))
    parser.add_argument("--only", default="", help="names of faults, with commas between")
    parser.add_argument("--write", action="store_true", help="write the table into docs/reliability.md")
    arguments = parser.parse_args()
    if os.getuid() != 0:
        raise SystemExit("scripts/faults/run.py mounts small disks and makes control groups: run it as root")
    subjects = [("mayfly", os.path.abspath(arguments.binary))]
    if nginx := shutil.which("nginx"):
        subjects.append(("nginx", nginx))
    wanted = [case for case in cases.ALL if not arguments.only or case.__name__ in arguments.only.split(",")]
    began = time.monotonic()
    rows = []
    for case in wanted:
        found = side_by_side(case, subjects)
        rows.append((case.__doc__, [found.get(kind, "") for kind, _ in subjects]))
        print(f"\n{case.__doc__}", flush=True)
        for kind, _ in subjects:
            print(f"  {kind:7} {found[kind]}", flush=True)
    seconds = time.monotonic() - began
    print(f"\n{len(rows)} faults in {seconds:.0f} s")
    if arguments.write:
        write(rows, [kind for kind, _ in subjects], seconds, subjects)


def side_by_side(case, subjects):
    """One after the other, so that neither takes the other's CPU; only a rest is shared."""
    found = {}

    def turn(kind, binary):
        try:
            found[kind] = cases.Bench(kind, binary).run(case)
        except Exception as error:  # One fault that cannot be staged is no reason to leave out the others.
            found[kind] = f"could not be tried: {type(error).__name__}: {error}"

    if case is not cases.rest:
        for subject in subjects:
            turn(*subject)
        return found
    threads = [threading.Thread(target=turn, args=subject) for subject in subjects]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def version(kind, binary):
    done = subprocess.run([binary, "-v"], capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip().splitlines()[0]


def write(rows, kinds, seconds, subjects):
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    lines = [BEGIN, ""]
    lines.append(f"Commit {commit.stdout.strip()}, {os.cpu_count()} cores, Linux {platform.release()}, {seconds:.0f} s in all.")
    lines += [f"{kind}: {version(kind, binary)}." for kind, binary in subjects]
    lines += ["", "| fault | " + " | ".join(kinds) + " |", "| --- |" + " --- |" * len(kinds)]
    lines += [f"| {what} | " + " | ".join(cells) + " |" for what, cells in rows]
    lines += ["", END]
    with open(DOCUMENT) as file:
        text = file.read()
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    with open(DOCUMENT, "w") as file:
        file.write(head + "\n".join(lines) + tail)


if __name__ == "__main__":
    main()
