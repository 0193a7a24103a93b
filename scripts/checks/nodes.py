"""Several nodes and one Redis: no answer is older than a purge that has returned, through faults.

scripts/promise/nodes.py does it, and has to find old answers where the program does not check its leases."""

import os
import subprocess
import sys

from lib import subject

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "promise/nodes.py")
# On a machine that does much else.
SECONDS = 600


def checks(binary):
    if subject.kind_of(binary) != "mayfly":
        return []
    promises = [("no_answer_is_older_than_a_purge_that_has_returned", lambda: run(binary, "--rounds", "2000"))]
    # Only a build with debug assertions can be told not to check its leases.
    if os.path.basename(os.path.dirname(binary)) == "debug":
        promises.append(("a_node_that_does_not_check_its_lease_is_caught", lambda: run(binary, "--unchecked")))
    return promises


def run(binary, *arguments):
    command = [sys.executable, SCRIPT, "--program", binary, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
