"""Pages that are kept by what they were made of: no answer is older than the database.

scripts/promise/learned.py does it, and has to find old answers where the program compares a page with writes too late."""

import os
import shutil
import subprocess
import sys

from lib import subject

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "promise/learned.py")
# On a machine that does much else.
SECONDS = 600


def checks(binary):
    # It starts a database and PHP as accounts of their own.
    can_start = os.getuid() == 0 and shutil.which("mariadbd", path="/usr/sbin:/usr/bin")
    if subject.kind_of(binary) != "mayfly" or not can_start:
        return []
    promises = [("no_answer_is_older_than_a_select_before_it", lambda: run(binary, "--seconds", "20"))]
    # Only a build with debug assertions can be told to be late.
    if os.path.basename(os.path.dirname(binary)) == "debug":
        promises.append(("a_server_without_the_rule_for_fetches_under_way_is_caught", lambda: run(binary, "--late")))
    return promises


def run(binary, *arguments):
    command = [sys.executable, SCRIPT, "--program", binary, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
