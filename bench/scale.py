#!/usr/bin/env python3
"""How the cost of a hit grows: with stored responses, with connections, with workers.

CPU time per request of pages of 1 KB, medians of several rounds.

- Stored responses: one worker, 50 connections; 100 to 1,000,000 pages are stored, and
  asked by Zipf (as visitors do) and each as likely (the worst there is for the
  processor's caches).
- Connections: one worker, one page, 1 to 10,000 connections that all ask as fast as
  answers come.
- Beside both the floor, an epoll loop that sends the same bytes: what a connection costs
  the kernel is not the server's, nor is what comes of a client that draws its next page
  more slowly and lets the server fall asleep.
- Workers: one and two, in turns, on both cores together with the client, at the same
  fixed rate. Two cores that also hold the client cannot show twice the requests per
  second; that a request costs no more with two workers is what they would need for it.
"""

import contextlib
import statistics

import compare
from lib import load, peers, process, report, subject

NAME = "scale"
TITLE = "How cost grows"

BODY_BYTES = 1024
BUSY = 50
FILLERS = 32
# Enough connections that the server does not sleep between two requests, as with one.
MANY = 100
# Requests per second at which workers are compared: half of what one of them can do.
WORKERS_RATE = 20_000


def start(chosen, folder, core, workers=1):
    return subject.Server(chosen.binary, "scale.conf", folder, core, WORKERS=workers, BODY="x" * BODY_BYTES)


def ask(chosen, server, core, seconds, *options):
    """CPU microseconds per request while it is asked so."""
    options = ["--seconds", str(seconds), "--bytes", str(BODY_BYTES), *options]
    figures, spent, _ = load.bench_load(chosen.load, server, "/{}", core, options, seconds + 120)
    wrong = figures["wrong_status"] + figures["wrong_length"] + figures["broken"]
    if wrong or not figures["requests"]:
        raise SystemExit(f"{wrong} wrong answers of {figures['requests']}")
    return sum(spent) * 1e6 / figures["requests"]


def median(ask_once, rounds):
    return round(statistics.median(ask_once() for _ in range(rounds)), 2)


@contextlib.contextmanager
def beside_floor(chosen, folder):
    """One worker with one page stored, and the floor that gives the same answer."""
    with start(chosen, folder, chosen.server_core) as server:
        request = load.request_bytes("GET", "/0", ())
        load.ask_once(server.port, request)
        site = peers.Site(server.folder, chosen.server_core)
        with peers.Floor(site, folder, load.ask_once(server.port, request)) as floor:
            yield server, floor


def by_stored_responses(chosen, folder, sizes, seconds, rounds):
    costs, stored = {}, 0
    with beside_floor(chosen, folder) as (server, floor):
        for size in sizes:
            fill = ["--keys", f"sequence:{stored}", "--count", str(size - stored), "--connections", str(FILLERS)]
            ask(chosen, server, chosen.client_core, 600, *fill)
            stored = size
            costs[size] = {
                f"{order}, {name}": median(lambda: ask(
                    chosen, asked, chosen.client_core, seconds, "--keys", f"{order}:{size}",
                    "--connections", str(BUSY)), rounds)
                for order in ("zipf", "uniform") for name, asked in (("mayfly", server), ("floor", floor))
            }
            costs[size]["memory_mb"] = round(process.memory_bytes(server.pid) / (1 << 20))
    return costs


def by_connections(chosen, folder, counts, seconds, rounds):
    costs = {}
    with beside_floor(chosen, folder) as (server, floor):
        for count in counts:
            costs[count] = {
                name: median(lambda: ask(chosen, asked, chosen.client_core, seconds, "--connections", str(count)), rounds)
                for name, asked in (("mayfly", server), ("floor", floor))
            }
    return costs


def by_workers(chosen, folder, seconds, rounds):
    costs = {1: [], 2: []}
    cores = f"{chosen.client_core},{chosen.server_core}"
    with contextlib.ExitStack() as running:
        servers = {workers: running.enter_context(start(chosen, folder, cores, workers)) for workers in costs}
        for server in servers.values():
            load.ask_once(server.port, load.request_bytes("GET", "/0", ()))
        for turn in range(rounds):
            for workers, server in list(servers.items())[:: -1 if turn % 2 else 1]:
                options = ["--connections", str(BUSY), "--rate", str(WORKERS_RATE)]
                costs[workers].append(ask(chosen, server, cores, seconds, *options))
    ratio = statistics.median(two / one for one, two in zip(costs[1], costs[2]))
    return {"cpu_us": {workers: round(statistics.median(each), 2) for workers, each in costs.items()},
            "ratio": round(ratio, 3), "times_one": round(2 / ratio, 2)}


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    peers.Floor.tool = chosen.floor
    seconds, rounds = (0.3, 3) if chosen.quick else (1, 5)
    most_stored, most_connections = (100_000, 1000) if chosen.quick else (1_000_000, 10_000)
    with subject.Folder() as folder:
        sizes = [size for size in (100, 1000, 10_000, 100_000, 1_000_000) if size <= most_stored]
        stored = by_stored_responses(chosen, folder, sizes, seconds, rounds)
        counts = [count for count in (1, 10, 100, 1000, 10_000) if count <= most_connections]
        connections = by_connections(chosen, folder, counts, seconds, rounds)
        workers = by_workers(chosen, folder, seconds, rounds)
    result.figures = {"stored_responses": stored, "connections": connections, "workers": workers}
    above = {size: cost["zipf, mayfly"] / cost["zipf, floor"] for size, cost in stored.items()}
    grows = above[most_stored] / above[100]
    result.check(f"{most_stored:,} stored responses by Zipf: CPU per hit beside the floor's, times that of 100",
                 round(grows, 2), 1.25)
    beside = {count: cost["mayfly"] / cost["floor"] for count, cost in connections.items()}
    grows = beside[most_connections] / beside[MANY]
    result.check(f"{most_connections:,} connections: CPU per hit beside the floor's, times that of {MANY}",
                 round(grows, 2), 1.25)
    result.check("two workers: CPU per hit, times that of one", workers["ratio"], round(2 / 1.9, 2))
    return result


if __name__ == "__main__":
    parser = report.options(__doc__)
    compare.tools(parser)
    report.run(parser, measure)
