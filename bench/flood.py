#!/usr/bin/env python3
"""A flood on one page: how often PHP runs, and whether anybody waits for it.

A page that costs PHP 27 ms of CPU and is 21 KB, 4 workers, 1,000 kept
connections for 20 s, lifetime 1 s, then 200 ms, then 1 s with PHP-FPM killed for
5 s in the middle. PHP counts its executions itself. wrk measures the latency,
and beside it a few careful visitors check every byte of what they get.
"""

import contextlib
import threading

from lib import load, php, report, subject

NAME = "flood"
TITLE = "Flood on one page"

PAGE_BYTES = 21 * 1024
PAGE_MILLISECONDS = 27
CONNECTIONS = 1000
TARGET = f"/?bytes={PAGE_BYTES}"


@contextlib.contextmanager
def site(chosen, folder, rounds, lifetime):
    """PHP-FPM and the server under test, both new."""
    with php.PhpFpm(folder, workers=4, core=chosen.server_core) as fpm, subject.Server(
        chosen.binary, "page.conf", folder, chosen.server_core,
        SOCKET=fpm.socket, EXECUTIONS=fpm.executions, WORK_ROUNDS=rounds, LIFETIME=lifetime, MEMORY="64m",
    ) as server:
        yield fpm, server


def flood(chosen, folder, rounds, lifetime, seconds, outage=None):
    """One flood; `outage` is (seconds until PHP is killed, seconds it stays away)."""
    with site(chosen, folder, rounds, lifetime) as (fpm, server):
        # The first copy: the promise about latency begins when it exists.
        first = load.crowd(server.port, [TARGET], 1, PAGE_BYTES)
        timers = []
        if outage:
            timers = [threading.Timer(outage[0], fpm.kill), threading.Timer(sum(outage), fpm.start)]
        for timer in timers:
            timer.start()
        with load.Witness(server.port, TARGET, PAGE_BYTES) as witness:
            figures = load.wrk(server.url(TARGET), CONNECTIONS, seconds, chosen.client_core)
        executions = fpm.count()
        for timer in timers:
            timer.join()
    figures["executions"] = executions
    figures["witness"] = witness.answers.summary()
    figures["not_200"] = figures["errors"] + first.other_than_200() + witness.answers.other_than_200()
    return figures


def crowd_at_a_cold_page(chosen, folder, rounds):
    """As many at once, and no copy yet: one execution, the others wait for it."""
    with site(chosen, folder, rounds, "60s") as (fpm, server):
        answers = load.crowd(server.port, [TARGET] * CONNECTIONS, CONNECTIONS, PAGE_BYTES)
        executions = fpm.count()
    return {"executions": executions, "not_200": answers.other_than_200(), "client": answers.summary()}


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    seconds = 5 if chosen.quick else 20
    rounds = php.calibrate(PAGE_MILLISECONDS)
    result.figures["work_rounds"] = rounds
    # nginx counts lifetimes in seconds: no 200 ms there.
    lifetimes = [("1s", 1000), ("200ms", 200)] if result.server == "mayfly" else [("1s", 1000)]
    with subject.Folder() as folder:
        cold = crowd_at_a_cold_page(chosen, folder, rounds)
        result.figures["cold"] = cold
        result.check("cold page: PHP executions", cold["executions"], 1)
        result.check("cold page: answers other than 200", cold["not_200"], 0)
        for name, milliseconds in lifetimes:
            figures = flood(chosen, folder, rounds, name, seconds)
            result.figures[f"lifetime_{name}"] = figures
            most = seconds * 1000 // milliseconds + 1
            result.check(f"lifetime {name}: PHP executions", figures["executions"], most)
            result.check(f"lifetime {name}: answers other than 200", figures["not_200"], 0)
            limit = round(3 * figures["p50_ms"] + 20, 2)
            result.check(f"lifetime {name}: latency, 99.9th percentile", figures["p99_9_ms"], limit, "ms")
        outage = (1, 2) if chosen.quick else (7, 5)
        figures = flood(chosen, folder, rounds, "1s", seconds, outage)
        result.figures["php_killed"] = figures
        result.check(f"PHP killed for {outage[1]} s: answers other than 200", figures["not_200"], 0)
    return result


if __name__ == "__main__":
    report.main(NAME, TITLE, measure, __doc__)
