#!/usr/bin/env python3
"""A visitor beside pages of fragments: how long a stored page takes while others ask for the worst page there is.

That page includes itself 200 times, and so does each of its fragments. Four connections ask for it all the time, and
the server has one worker. The visitor asks for another stored page over a connection of its own, from a process of its
own: threads of one Python process would wait for each other.
"""

import concurrent.futures
import itertools
import os
import time

from lib import load, report, subject

NAME = "fragments"
TITLE = "A visitor beside pages of fragments"

OTHERS = 4
INCLUDES = 200
PAGE_BYTES = 8 * 1024


def visit(server, seconds):
    """What a visitor waits for the stored page, in milliseconds."""
    targets = itertools.repeat("/page")
    return load.crowd(server.port, targets, 1, PAGE_BYTES, pause=0.001, seconds=seconds)


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    seconds = 2 if chosen.quick else 10
    with subject.Folder() as folder:
        with open(os.path.join(folder, "self"), "w") as page:
            page.write("<p>" + '<esi:include src="/self"/>' * INCLUDES)
        with open(os.path.join(folder, "page"), "w") as page:
            page.write("x" * PAGE_BYTES)
        with subject.Server(chosen.binary, "fragments.conf", folder, chosen.server_core, PAGES=folder) as server:
            visit(server, 0.5)
            alone = visit(server, seconds)
            with concurrent.futures.ThreadPoolExecutor() as pool:
                url = f"http://127.0.0.1:{server.port}/self"
                others = pool.submit(load.wrk, url, OTHERS, seconds + 1, chosen.client_core)
                time.sleep(0.5)
                beside = visit(server, seconds)
    result.figures = {
        "alone": alone.summary(), "beside": beside.summary(), "pages_of_fragments": others.result()["requests"],
    }
    # One turn of each of the others, and what the machine itself does; a whole page takes some milliseconds.
    limit = round(2 * alone.summary()["p99_ms"] + 5, 2)
    result.check(f"{OTHERS} others ask for a page of {INCLUDES} fragments in fragments: 99th percentile of a visitor",
                 beside.summary()["p99_ms"], limit, "ms")
    result.check("errors", alone.other_than_200() + beside.other_than_200(), 0)
    return result


if __name__ == "__main__":
    report.main(NAME, TITLE, measure, __doc__)
