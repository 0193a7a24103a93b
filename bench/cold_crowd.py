#!/usr/bin/env python3
"""Many distinct cold pages at once: does the queue hold, and is PHP left in peace?

500 pages that nobody has asked for yet, each asked four times in shuffled order by
200 clients at once, and PHP may run four at a time. PHP-FPM is given eight workers
here, so that PHP's own account of its concurrency can tell who kept to four.
(nginx has no queue: it is given four workers, and the kernel's backlog.)
"""

import random
import time

from lib import load, php, report, subject

NAME = "cold_crowd"
TITLE = "500 cold pages, 200 clients, 4 workers"

PAGE_BYTES = 21 * 1024
PAGE_MILLISECONDS = 27
CLIENTS = 200
ASKED_TIMES = 4


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    pages = 100 if chosen.quick else 500
    targets = [f"/{page}?bytes={PAGE_BYTES}" for page in range(pages)] * ASKED_TIMES
    random.Random(7).shuffle(targets)
    workers = 8 if result.server == "mayfly" else 4
    rounds = php.calibrate(PAGE_MILLISECONDS)
    with subject.Folder() as folder, php.PhpFpm(folder, workers, chosen.server_core) as fpm, subject.Server(
        chosen.binary, "page.conf", folder, chosen.server_core,
        SOCKET=fpm.socket, EXECUTIONS=fpm.executions, WORK_ROUNDS=rounds, LIFETIME="1h", MEMORY="64m",
    ) as server:
        began = time.monotonic()
        answers = load.crowd(server.port, targets, CLIENTS, PAGE_BYTES)
        took = time.monotonic() - began
        executions, most_at_once = fpm.count(), fpm.most_at_once()
    result.figures = {
        "pages": pages, "executions": executions, "most_at_once": most_at_once,
        "seconds": round(took, 2), "client": answers.summary(),
    }
    result.check("PHP executions", executions, pages)
    result.check("PHP executions at one time", most_at_once, 4)
    result.check("answers other than 200", answers.other_than_200(), 0)
    return result


if __name__ == "__main__":
    report.main(NAME, TITLE, measure, __doc__)
