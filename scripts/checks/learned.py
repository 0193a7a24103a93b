"""Pages that are kept by what they were made of: no answer is older than the database.

scripts/promise/learned.py and sqlite.py do it, and have to find old answers where the program compares a page with writes too late."""

import os
import shutil
import subprocess
import sys

from lib import subject

SCRIPTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "promise")
# On a machine that does much else.
SECONDS = 600


def checks(binary):
    # It starts a database and PHP as accounts of their own.
    can_start = os.getuid() == 0 and shutil.which("mariadbd", path="/usr/sbin:/usr/bin")
    if subject.kind_of(binary) != "mayfly" or not can_start:
        return []
    promises = [
        ("no_answer_is_older_than_a_select_before_it", lambda: run("learned.py", binary, "--seconds", "20")),
        ("no_answer_is_older_than_an_sqlite_database", lambda: run("sqlite.py", binary, "--seconds", "20", "--kills", "5")),
    ]
    if shutil.which("redis-server"):
        promises.append(("no_machine_shows_less_than_another_has_written", lambda: run("learned.py", binary, "--seconds", "20", "--nodes")))
    # Only a build with debug assertions can be told to be late.
    if os.path.basename(os.path.dirname(binary)) == "debug":
        promises.append(("a_server_without_the_rule_for_fetches_under_way_is_caught", lambda: run("learned.py", binary, "--late")))
        promises.append(("a_server_that_looks_at_sqlite_too_late_is_caught", lambda: run("sqlite.py", binary, "--late")))
        if shutil.which("redis-server"):
            promises.append(("machines_that_do_not_tell_each_other_are_caught", lambda: run("learned.py", binary, "--alone")))
    return promises


def run(script, binary, *arguments):
    command = [sys.executable, os.path.join(SCRIPTS, script), "--program", binary, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
