#!/usr/bin/env python3
"""What a hit costs: CPU time per request, beside nginx on the same page.

One worker, 50 kept connections, wrk on the other core. CPU time is user and
system time of the whole process tree as the operating system accounts it. Both
servers run at once and are asked in turns, so that a noisy machine is noisy for
both; the figure is the median of the rounds' ratios. Pages of 40 bytes and 21 KB, without
an access log, with a plain and with a buffered one. nginx's cache is on tmpfs.
"""

import contextlib
import statistics

from lib import load, php, process, report, subject

NAME = "hit_cost"
TITLE = "CPU time per hit"

CONNECTIONS = 50
SIZES = [("40 B", 40), ("21 KB", 21 * 1024)]
LOGS = ["none", "plain", "buffered"]
RATIO = 0.6


def cost(server, target, seconds, core):
    """(CPU microseconds per request, requests per second) of one round."""
    clock = process.CpuTime(server.pid)
    figures = load.wrk(server.url(target), CONNECTIONS, seconds, core)
    spent = sum(clock.spent())
    if figures["errors"]:
        raise SystemExit(f"{server.kind}: {figures['errors']} errors on {target}: {figures}")
    return spent * 1e6 / figures["requests"], figures["per_second"]


def compare(servers, target, page_bytes, seconds, rounds, core):
    """What a page costs each server: see `in_turns`."""
    for server in servers.values():
        load.crowd(server.port, [target] * 10, 1, page_bytes)
    return in_turns(servers, lambda server: cost(server, target, seconds, core), rounds)


def in_turns(servers, cost, rounds):
    """Medians of the rounds: CPU per request and speed of each server, and the ratio."""
    costs = {name: [] for name in servers}
    speeds = {name: [] for name in servers}
    for turn in range(rounds):
        # Whoever went first goes second in the next round.
        for name, server in list(servers.items())[:: -1 if turn % 2 else 1]:
            microseconds, per_second = cost(server)
            costs[name].append(microseconds)
            speeds[name].append(per_second)
    pairs = zip(costs["subject"], costs["reference"])
    return {
        "cpu_microseconds": {name: round(statistics.median(values), 2) for name, values in costs.items()},
        "lowest": {name: round(min(values), 2) for name, values in costs.items()},
        "per_second": {name: round(statistics.median(values)) for name, values in speeds.items()},
        "ratio": round(statistics.median(own / reference for own, reference in pairs), 3),
    }


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    seconds, rounds = (1, 3) if chosen.quick else (3, 7)
    with contextlib.ExitStack() as running:
        folder = running.enter_context(subject.Folder())
        fpm = running.enter_context(php.PhpFpm(folder, core=chosen.server_core))
        servers = {
            name: running.enter_context(subject.Server(
                binary, "hits.conf", folder, chosen.server_core, SOCKET=fpm.socket, EXECUTIONS=fpm.executions,
            ))
            for name, binary in [("subject", chosen.binary), ("reference", chosen.nginx)]
        }
        for size, page_bytes in SIZES:
            for log in LOGS:
                target = f"/{log}?bytes={page_bytes}"
                figures = compare(servers, target, page_bytes, seconds, rounds, chosen.client_core)
                result.figures[f"{size}, log {log}"] = figures
                promise = f"{size}, access log {log}: CPU, times nginx's"
                result.check(promise, round(figures["ratio"], 2), RATIO)
    return result


if __name__ == "__main__":
    report.main(NAME, TITLE, measure, __doc__)
