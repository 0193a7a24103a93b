#!/usr/bin/env python3
"""What a hit from disk costs: CPU time per request, beside nginx from its cache files and beside a hit from memory.

Pages are asked for at random, far more than Mayfly's memory holds, and all lie in the page cache: no disk is waited
for. Each costs Mayfly what it costs a site whose memory is too small, storing it in memory again included. One worker,
50 kept connections, wrk on the other core, in turns.
"""

import contextlib
import os
import tempfile

from hit_cost import CONNECTIONS, in_turns
from lib import load, php, process, report, subject

NAME = "from_disk"
TITLE = "CPU time per hit from disk"

# Bytes of a page, how many there are, and what is promised beside nginx.
SIZES = [("4 KB", 4000, 20_000, 0.6), ("60 KB", 60_000, 2_000, 0.8)]
TIMES_MEMORY = 1.25
# Not on tmpfs.
FOLDER = "/var/tmp"
CLIENTS = 16


class DiskFolder(subject.Folder):
    """A folder on a disk, removed at the end."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="mayfly-bench-", dir=FOLDER)
        os.chmod(self.path, 0o711)
        return self.path


def cost(server, pages, page_bytes, seconds, core):
    """(CPU microseconds per request, requests per second) of one round."""
    clock = process.CpuTime(server.pid)
    arguments = ["--", str(pages), str(page_bytes)]
    figures = load.wrk(server.url(), CONNECTIONS, seconds, core, "pages.lua", arguments)
    spent = sum(clock.spent())
    if figures["errors"]:
        raise SystemExit(f"{server.kind}: {figures['errors']} errors: {figures}")
    return spent * 1e6 / figures["requests"], figures["per_second"]


def measure_size(chosen, size, page_bytes, pages):
    seconds, rounds = (1, 3) if chosen.quick else (3, 7)
    with contextlib.ExitStack() as running:
        folder = running.enter_context(DiskFolder())
        fpm = running.enter_context(php.PhpFpm(folder, core=f"{chosen.client_core},{chosen.server_core}"))
        kinds = [
            ("subject", chosen.binary, "memory=2m max_size=4g"),
            ("reference", chosen.nginx, ""),
            ("memory", chosen.binary, "memory=2g disk=off"),
        ]
        servers = {
            name: running.enter_context(subject.Server(
                binary, "from_disk.conf", folder, chosen.server_core, SOCKET=fpm.socket, KEPT=kept,
            ))
            for name, binary, kept in kinds
        }
        for server in servers.values():
            targets = [f"/{page}?bytes={page_bytes}" for page in range(pages)]
            # Twice: what was made while the writer was busy is made again.
            for _ in range(2):
                load.crowd(server.port, targets, CLIENTS, page_bytes)
            asked = load.crowd(server.port, targets[:: max(1, pages // 1000)], CLIENTS, page_bytes)
            if asked.cache["HIT"] < asked.count * 0.98:
                raise SystemExit(f"{server.kind}: {dict(asked.cache)} of {size}")
        return in_turns(servers, lambda it: cost(it, pages, page_bytes, seconds, chosen.client_core), rounds)


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    for size, page_bytes, pages, ratio in SIZES:
        figures = measure_size(chosen, size, page_bytes, pages)
        spent = figures["cpu_microseconds"]
        figures["times_memory"] = round(spent["subject"] / spent["memory"], 3)
        result.figures[size] = figures
        result.check(f"{size}: CPU, times nginx's", round(figures["ratio"], 2), ratio)
        result.check(f"{size}: CPU, times a hit from memory", round(figures["times_memory"], 2), TIMES_MEMORY)
    return result


if __name__ == "__main__":
    report.main(NAME, TITLE, measure, __doc__)
