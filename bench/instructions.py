#!/usr/bin/env python3
"""What a hit costs in instructions, which no other load on the machine changes.

The program itself runs under callgrind and is asked over one kept connection, N
times in one run and 2N times in another. The difference, divided by N, is what one
request costs in user space from `epoll_wait` back to `epoll_wait`; start and stop
fall out. What the kernel does is not in it: bench/compare.py measures that.

The figures agreed on are in bench/instructions.json. A rise above 3 % ends with
status 1: argue for it in the commit and write the new figures with --record, or take
it back. A fall wants recording as well, so that it is not lost again unnoticed.
"""

import argparse
import contextlib
import glob
import json
import os
import shutil
import socket
import sys

import scenarios
from lib import load, peers, report, subject

RECORD = os.path.join(report.FOLDER, "instructions.json")
COUNTED = ["page_40", "page_21k", "page_21k_browser", "log_buffered", "not_modified", "head", "file_1k"]
# Enough that what happens by the clock (dates, sweeps, flushed logs) does not weigh.
REQUESTS = 1000
# The first requests fill buffers and tables that later ones find.
WARM_UP = 200
MOST_RISE = 0.03
# Counts of a scenario before a rise is believed, beyond the first.
AGAIN = 2


class Mayfly(peers.Mayfly):
    """Mayfly under callgrind."""

    def launch(self):
        command = subject.command_of(self.program(), self.folder, self.config)
        self.start([
            "valgrind", "--tool=callgrind", "--trace-children=yes", "--quiet",
            f"--callgrind-out-file={self.folder}/callgrind.%p", *command,
        ])

    def instructions(self):
        """Everything executed from start to end; after `stop` only."""
        total = 0
        for path in glob.glob(os.path.join(self.folder, "callgrind.*")):
            with open(path, errors="replace") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("totals:"))
        if not total:
            raise RuntimeError("callgrind wrote nothing")
        return total


def ask(port, request, count):
    """Asks so many times, each after the answer to the one before."""
    is_head_only = request.startswith(b"HEAD")
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        for _ in range(count):
            connection.sendall(request)
            load.receive(connection, is_head_only)


def run(scenario, count):
    """Instructions of a whole run with so many requests."""
    with subject.Folder() as folder:
        with Mayfly(peers.Site(folder, None), folder, scenario.log, scenario.gzip) as server:
            server.wait()
            # What is stored is stored by a plain GET.
            ask(server.port, load.request_bytes("GET", scenario.target, ()), 1)
            ask(server.port, load.request_bytes(scenario.method, scenario.target, scenario.fields), WARM_UP + count)
            server.stop()
            return server.instructions()


def count(scenario):
    return round((run(scenario, 2 * REQUESTS) - run(scenario, REQUESTS)) / REQUESTS)


def recorded():
    with contextlib.suppress(FileNotFoundError), open(RECORD) as file:
        return json.load(file)
    return {}


def least(scenario, agreed):
    """The count; again where it seems to have risen, since what is done once in a while (is the
    file still the same?) is done more often while the machine is slow."""
    now = count(scenario)
    for _ in range(AGAIN):
        if not agreed or now <= agreed * (1 + MOST_RISE):
            break
        now = min(now, count(scenario))
    return now


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.environ.get("BINARY", "target/release/mayfly"))
    parser.add_argument("--record", action="store_true", help="write the figures to bench/instructions.json")
    parser.add_argument("--only", choices=COUNTED, nargs="+", default=COUNTED, metavar="SCENARIO")
    chosen = parser.parse_args()
    if not shutil.which("valgrind"):
        raise SystemExit("valgrind is missing; scripts/setup.sh instructions installs it")
    peers.Mayfly.binary = chosen.binary
    agreed, risen, lines = recorded(), 0, [("scenario", "instructions", "agreed", "change", "")]
    figures = dict(agreed)
    for scenario in scenarios.SCENARIOS:
        if scenario.name not in chosen.only:
            continue
        before = agreed.get(scenario.name)
        figures[scenario.name] = now = least(scenario, before)
        change = now / before - 1 if before else 0
        too_many = change > MOST_RISE
        risen += too_many
        verdict = "ROSE" if too_many else "" if before else "new"
        lines.append((scenario.title, f"{now:,}", f"{before:,}" if before else "", f"{change:+.1%}" if before else "", verdict))
    print(report.columns(lines, right=(1, 2, 3), has_heading=True))
    if chosen.record:
        with open(RECORD, "w") as file:
            json.dump(figures, file, indent=2)
            file.write("\n")
    print(f"{len(lines) - 1 - risen} passed, {risen} failed")
    sys.exit(1 if risen and not chosen.record else 0)


if __name__ == "__main__":
    main()
