#!/usr/bin/env python3
"""Memory: at rest, per stored page, and under a budget that is too small.

Resident memory of the server's processes (PHP not counted). For nginx, whose pages
are files, the bytes on tmpfs are counted as well.
"""

import os
import time

from lib import load, php, process, report, subject

NAME = "memory"
TITLE = "Memory"

PAGE_BYTES = 21 * 1024
CLIENTS = 16
MB = 1 << 20


def stored_files_bytes(server):
    """What the cache's files occupy, which is nothing where the cache is memory."""
    total = 0
    for folder, _, names in os.walk(os.path.join(server.folder, "cache")):
        for name in names:
            try:
                total += os.stat(os.path.join(folder, name)).st_blocks * 512
            except OSError:
                continue
    return total


def occupied(server):
    return process.memory_bytes(server.pid) + stored_files_bytes(server)


def start(chosen, folder, fpm, budget):
    return subject.Server(
        chosen.binary, "page.conf", folder, f"{chosen.client_core},{chosen.server_core}",
        SOCKET=fpm.socket, EXECUTIONS="/dev/null", WORK_ROUNDS=0, LIFETIME="1h", MEMORY=budget,
    )


def targets(count):
    return (f"/{page}?bytes={PAGE_BYTES}" for page in range(count))


def stored_pages(chosen, folder, fpm, pages):
    """Memory at rest, and what so many stored pages add to it."""
    with start(chosen, folder, fpm, "2g") as server:
        time.sleep(1)
        rest = occupied(server)
        asked = load.crowd(server.port, targets(pages), CLIENTS, PAGE_BYTES)
        time.sleep(1)
        full = occupied(server)
        again = load.crowd(server.port, targets(pages), CLIENTS, PAGE_BYTES)
    return {
        "rest_mb": round(rest / MB, 2),
        "full_mb": round(full / MB, 2),
        "times_their_bytes": round((full - rest) / (pages * PAGE_BYTES), 3),
        "not_200": asked.other_than_200() + again.other_than_200(),
        "still_stored": again.cache["HIT"],
    }


def small_budget(chosen, folder, fpm, pages):
    """The highest resident memory while far more is asked than the budget holds."""
    with start(chosen, folder, fpm, "64m") as server:
        with process.PeakMemory(server.pid) as peak:
            asked = load.crowd(server.port, targets(pages), CLIENTS, PAGE_BYTES)
        highest = max(peak.bytes, process.memory_bytes(server.pid, field="VmHWM"))
        files = stored_files_bytes(server)
    return {
        "peak_mb": round((highest + files) / MB, 2),
        "files_mb": round(files / MB, 2),
        "not_200": asked.other_than_200(),
    }


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    few, many = (4000, 12000) if chosen.quick else (20000, 100000)
    cores = f"{chosen.client_core},{chosen.server_core}"
    with subject.Folder() as folder, php.PhpFpm(folder, core=cores) as fpm:
        stored = stored_pages(chosen, folder, fpm, few)
        budget = small_budget(chosen, folder, fpm, many)
    result.figures = {"pages": few, **stored, "budget_64m": {"pages": many, **budget}}
    result.check("at rest", stored["rest_mb"], 10, "MB")
    result.check(f"{few:,} stored pages, times their bytes", stored["times_their_bytes"], 1.15)
    result.check(f"{few:,} stored pages: no longer there", few - stored["still_stored"], 0)
    result.check(f"budget 64 MB, {many:,} pages: peak", budget["peak_mb"], 64 + 16, "MB")
    result.check("answers other than 200", stored["not_200"] + budget["not_200"], 0)
    return result


if __name__ == "__main__":
    report.main(NAME, TITLE, measure, __doc__)
