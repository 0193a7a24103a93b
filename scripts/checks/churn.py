"""A minute of everything that happens to a server in a year, at once: visitors, changes, reloads, kills, upgrades."""

import os
import subprocess
import sys

from lib import subject

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "endurance/run.py")
# On a machine that does much else.
SECONDS = 600


def checks(binary):
    if subject.kind_of(binary) != "mayfly":
        return []
    return [("no_answer_is_wrong_or_old_and_nothing_is_left_over", lambda: endure(binary))]


def endure(binary):
    command = [sys.executable, SCRIPT, "--binary", binary, "--seconds", "60"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
