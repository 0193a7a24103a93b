#!/usr/bin/env python3
"""What a hit costs: CPU time per request, beside nginx on the same page.

One worker, 50 kept connections, wrk on the other core. CPU time is user and
system time of the whole process tree as the operating system accounts it. Both
servers run at once, and are asked in turns, so that a noisy machine is noisy for
both; the figure is the median of the rounds. Pages of 40 bytes and 21 KB, without
an access log, with a plain and with a buffered one. nginx's cache is on tmpfs.
"""

import statistics

from harness import load, php, process, report, subject

NAME = "hit_cost"
TITLE = "CPU time per hit"

CONNECTIONS = 50
SIZES = [("40 B", 40), ("21 KB", 21 * 1024)]
LOGS = ["none", "plain", "buffered"]
RATIO = 0.6


def cost(server, target, seconds, core):
    """(CPU microseconds per request, requests per second) of one round."""
    before = process.cpu_seconds(server.pid)
    figures = load.wrk(server.url(target), CONNECTIONS, seconds, core)
    spent = process.cpu_seconds(server.pid) - before
    if figures["errors"]:
        raise SystemExit(f"{server.kind}: {figures['errors']} errors on {target}: {figures}")
    return spent * 1e6 / figures["requests"], figures["per_second"]


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    seconds, rounds = (1, 3) if chosen.quick else (3, 7)
    with subject.Folder() as folder:
        fpm = php.PhpFpm(folder, core=chosen.server_core)
        servers = {}
        try:
            for name, binary in [(result.server, chosen.binary), ("reference", chosen.nginx)]:
                servers[name] = subject.Server(
                    binary, "hits.conf", folder, chosen.server_core,
                    SOCKET=fpm.socket, EXECUTIONS=fpm.executions,
                )
            for size, page_bytes in SIZES:
                for log in LOGS:
                    target = f"/{log}?bytes={page_bytes}"
                    costs = {name: [] for name in servers}
                    speeds = {name: [] for name in servers}
                    for server in servers.values():
                        load.crowd(server.port, [target] * 10, 1, page_bytes)
                    for _ in range(rounds):
                        for name, server in servers.items():
                            microseconds, per_second = cost(server, target, seconds, chosen.client_core)
                            costs[name].append(microseconds)
                            speeds[name].append(per_second)
                    medians = {name: statistics.median(values) for name, values in costs.items()}
                    ratio = medians[result.server] / medians["reference"]
                    result.figures[f"{size}, log {log}"] = {
                        "cpu_microseconds": {name: round(value, 2) for name, value in medians.items()},
                        "lowest": {name: round(min(values), 2) for name, values in costs.items()},
                        "per_second": {name: statistics.median(values) for name, values in speeds.items()},
                        "ratio": round(ratio, 3),
                    }
                    result.check(f"{size}, access log {log}: CPU, times nginx's", round(ratio, 2), RATIO)
        finally:
            for server in servers.values():
                server.stop()
            fpm.stop()
    return result


if __name__ == "__main__":
    report.main(NAME, TITLE, measure, __doc__)
