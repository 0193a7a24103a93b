#!/usr/bin/env python3
"""Hits from memory beside a disk that stalls: the 99th percentile of their latency, beside the same with a disk that works.

The disk keeps the zone's pages. Its writes are held up by a library that is loaded before the program
(scripts/faults/disk_faults.c). Meanwhile new pages come, which are to be written. In turns; the medians are compared.
"""

import os
import statistics
import struct
import subprocess
import threading
import urllib.request

from from_disk import DiskFolder
from hit_cost import CONNECTIONS
from lib import load, php, report, subject

NAME = "stalled_disk"
TITLE = "Hits from memory beside a stalled disk"

PAGE_BYTES, PAGES = 4000, 200
NEW_PAGE_SECONDS = 0.02
TIMES_WORKING = 1.2
WORKS, STALLED = 0, -1
LIBRARY = os.path.join(os.path.dirname(report.FOLDER), "scripts", "faults", "disk_faults.c")


class FaultyDisk:
    """Whether the disk works, which the library hears of by a file."""

    def __init__(self, folder):
        self._file, library = os.path.join(folder, "fault"), os.path.join(folder, "faults.so")
        self.set(WORKS)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, LIBRARY], check=True)
        self.environment = {"LD_PRELOAD": library, "DISK_FAULT_FILE": self._file}

    def set(self, fault):
        # It is mapped by the program: the same file.
        with open(self._file, "r+b" if os.path.exists(self._file) else "wb") as file:
            file.write(struct.pack("q", fault))


class NewPages(threading.Thread):
    """Asks for a page that was not asked for before, again and again."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.asked = server, 0
        self._is_over = threading.Event()

    def run(self):
        while not self._is_over.wait(NEW_PAGE_SECONDS):
            self.asked += 1
            with urllib.request.urlopen(self.server.url(f"/new{self.asked}?bytes={PAGE_BYTES}"), timeout=30) as answer:
                answer.read()

    def stop(self):
        self._is_over.set()
        self.join()


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    seconds, rounds = (2, 5) if chosen.quick else (3, 9)
    cores = f"{chosen.client_core},{chosen.server_core}"
    with DiskFolder() as folder, php.PhpFpm(folder, core=cores) as fpm:
        disk = FaultyDisk(folder)
        os.environ.update(disk.environment)
        try:
            kept = "memory=64m max_size=1g"
            server = subject.Server(
                chosen.binary, "from_disk.conf", folder, chosen.server_core, SOCKET=fpm.socket, KEPT=kept)
        finally:
            for name in disk.environment:
                del os.environ[name]
        with server:
            latencies = in_turns(server, disk, seconds, rounds, chosen.client_core)
    p99 = {name: statistics.median(each) for name, each in latencies.items()}
    result.figures = {"p99_ms": p99, "rounds": latencies}
    result.check("p99 beside a stalled disk, times that beside one that works",
                 round(p99["stalled"] / p99["works"], 2), TIMES_WORKING)  # fmt: skip
    return result


def in_turns(server, disk, seconds, rounds, core):
    latencies = {"works": [], "stalled": []}
    load.crowd(server.port, (f"/{page}?bytes={PAGE_BYTES}" for page in range(PAGES)), 16, PAGE_BYTES)
    new_pages = NewPages(server)
    new_pages.start()
    arguments = ["--", str(PAGES), str(PAGE_BYTES)]
    try:
        for number in range(2 * rounds):
            name, fault = [("works", WORKS), ("stalled", STALLED)][number % 2]
            disk.set(fault)
            figures = load.wrk(server.url(), CONNECTIONS, seconds, core, "pages.lua", arguments)
            if figures["errors"]:
                raise SystemExit(f"{figures}")
            latencies[name].append(figures["p99_ms"])
    finally:
        disk.set(WORKS)
        new_pages.stop()
    return latencies


if __name__ == "__main__":
    report.main(NAME, TITLE, measure, __doc__)
