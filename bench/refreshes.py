#!/usr/bin/env python3
"""A large stale store is read: how long does a visitor wait whose page is not stored?

Pages are stored, become stale, and four connections read all of them again and again. Each
reading of a stale page asks for a refresh, which PHP's four workers could do for minutes.
Meanwhile a visitor asks for pages that are not stored, one after the other. Mayfly and nginx
one after the other in the same run: Mayfly's visitor waits at most twice as long as nginx's,
however many pages are stored, and while no visitor waits Mayfly refreshes as many pages as
nginx does.
"""

import itertools
import statistics
import threading
import time

from lib import load, php, report, subject

NAME = "refreshes"
TITLE = "A visitor beside the refreshes of a stale store, 4 workers"

PAGE_BYTES = 21 * 1024
PAGE_MILLISECONDS = 10
STORED = [200, 2000]
READERS = 4
VISITS = 20
LIFETIME_SECONDS = 1
# Between two readings on a connection while refreshes are counted: more readings than PHP can
# renew pages, and as many for both servers. Without it Mayfly answers a hundred times as many,
# which takes the core that PHP runs on.
PAUSE_SECONDS = 0.01
# The most that nginx's figure may be above Mayfly's and still be called the same.
NOISE = 1.1


def targets(pages):
    return [f"/{page}?bytes={PAGE_BYTES}" for page in range(pages)]


def read(server, pages, seconds, answers, pause=0.0):
    """Four connections read all pages again and again."""
    load.crowd(server.port, itertools.cycle(targets(pages)), READERS, PAGE_BYTES,
               seconds=seconds, answers=answers, pause=pause)


def visits(server):
    """Milliseconds that each page took which nobody had asked for."""
    answers = load.Answers()
    new = [f"/new{number}?bytes={PAGE_BYTES}" for number in range(VISITS)]
    load.crowd(server.port, new, 1, PAGE_BYTES, answers=answers)
    if answers.other_than_200():
        raise RuntimeError(f"visits failed: {answers.summary()}")
    return answers.milliseconds


def measure_one(chosen, binary, pages, seconds):
    rounds = php.calibrate(PAGE_MILLISECONDS)
    with subject.Folder() as folder, php.PhpFpm(folder, 4, chosen.server_core) as fpm, subject.Server(
        binary, "page.conf", folder, chosen.server_core,
        SOCKET=fpm.socket, EXECUTIONS=fpm.executions, WORK_ROUNDS=rounds,
        LIFETIME=f"{LIFETIME_SECONDS}s", MEMORY="200m",
    ) as server:
        load.crowd(server.port, targets(pages), READERS, PAGE_BYTES)
        time.sleep(2 * LIFETIME_SECONDS)
        # Nobody waits: what is PHP used for?
        reading = load.Answers()
        before = fpm.count()
        read(server, pages, seconds, reading, PAUSE_SECONDS)
        refreshes = (fpm.count() - before) / seconds
        time.sleep(2 * LIFETIME_SECONDS)
        # A visitor comes, when the readers have read for a second.
        beside = load.Answers()
        reader = threading.Thread(target=read, args=(server, pages, seconds + 1, beside))
        reader.start()
        time.sleep(1)
        waits = sorted(visits(server))
        reader.join()
        return {
            "stored": pages,
            "visitor_median_ms": round(statistics.median(waits), 1),
            "visitor_max_ms": round(waits[-1], 1),
            "refreshes_per_second": round(refreshes, 1),
            "reads": reading.summary(),
            "reads_beside_a_visitor": beside.summary(),
            "failed": reading.other_than_200() + beside.other_than_200(),
        }


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    seconds = 3 if chosen.quick else 8
    for pages in STORED[:1] if chosen.quick else STORED:
        own = measure_one(chosen, chosen.binary, pages, seconds)
        theirs = measure_one(chosen, chosen.nginx, pages, seconds)
        result.figures[str(pages)] = {"own": own, "nginx": theirs}
        for name in ("visitor_median_ms", "visitor_max_ms"):
            result.check(f"{name} beside {pages} stale pages, nginx {theirs[name]}", own[name],
                         2 * theirs[name], "ms")
        result.check(f"nginx's refreshes a second by Mayfly's ({own['refreshes_per_second']}), {pages} pages",
                     round(theirs["refreshes_per_second"] / max(own["refreshes_per_second"], 0.1), 2), NOISE)
        result.check("answers other than 200", own["failed"], 0)
    return result


if __name__ == "__main__":
    report.main(NAME, TITLE, measure, __doc__)
