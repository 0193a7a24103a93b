#!/usr/bin/env python3
"""Several nodes (`cache_nodes`) under load: what visitors notice of an engine that is slow or away, and how often PHP
makes a page that many ask for at once.

    scripts/promise/nodes_load.py [--program target/release/mayfly] [--away 60] [--clients 1000] [--purges-only]

1. One page that no node has, asked for by 1,000 clients at three nodes: PHP makes it once where nodes share pages, at
   most three times where they do not.
2. The engine answers 200 ms later: how long a hit takes, beside one with a quick engine.
3. The engine is gone for a minute, under half of the load that PHP alone can carry: no visitor sees an error.
4. It comes back without its data while PHP fails: what is void stands in, where the configuration says so.
5. 1,000 purges a second at one node: how long they take, and what they cost the others, whose work is the bus alone.

Ends with 1 where one of these is not so.
"""

import argparse
import asyncio
import itertools
import os
import selectors
import signal
import socket
import sys
import tempfile
import threading
import time

from engines import Proxies, Proxy, Redis, wait_until  # It makes bench/lib importable.
from lib import process
from nodes import PAGES, Client, Node, Php

HITS = 2000
SLOWER_MILLISECONDS = 0.5
CAPACITY_SECONDS = 3
CAPACITY_CLIENTS = 16
PURGES_PER_SECOND = 1000
PURGE_CLIENTS = 10
PURGE_SECONDS = 10
PURGE_P99_MILLISECONDS = 5
PURGE_CORE_PERCENT = 8
STALE = "fastcgi_cache_use_stale error http_503; fastcgi_cache_lock_timeout 30s;"


class Cluster:
    def __init__(self, chosen, folder, php, proxies=None, http=""):
        os.makedirs(folder)
        self.php, self.engine = php, Redis(folder, "engine")
        self.proxies = [Proxy(proxies, self.engine.port) for _ in range(3)] if proxies else [self.engine] * 3
        key = os.path.join(folder, "key")
        with open(key, "wb") as file:
            file.write(os.urandom(32))
        self.nodes = [
            Node(chosen, folder, f"node{at}", f"redis://127.0.0.1:{proxy.port} key={key}", php, http=STALE + http)
            for at, proxy in enumerate(self.proxies)
        ]
        for node in self.nodes:
            wait_until(lambda: self.is_hit(node), f"a lease of {node.name}")

    def is_hit(self, node, page=0):
        return Client(node).ask("GET", f"/p/{page}")[1] == "HIT"

    def stop(self):
        for one in (*self.nodes, self.engine):
            one.stop()


def made(php):
    path = f"{php.folder}/made"
    return os.path.getsize(path) if os.path.exists(path) else 0


async def ask_at_once(cluster, page, count):
    """Statuses of so many requests for a page, sent together over connections that were opened before."""
    open_connections = []
    for at in range(count):
        open_connections.append(await asyncio.open_connection("127.0.0.1", cluster.nodes[at % 3].port))
    for _, writer in open_connections:
        writer.write(f"GET /p/{page} HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n".encode())
    answers = await asyncio.gather(*(reader.read() for reader, _ in open_connections))
    for _, writer in open_connections:
        writer.close()
    return [answer.split(b" ", 2)[1] for answer in answers]


def cold_page(cluster, clients, most):
    page = "cold"
    cluster.php.be_slow(page, 500)
    before = made(cluster.php)
    statuses = asyncio.run(ask_at_once(cluster, page, clients))
    runs = made(cluster.php) - before
    print(f"one cold page, {clients} clients at three nodes: PHP made it {runs} times (at most {most})")
    return runs <= most and set(statuses) == {b"200"}


def hits(cluster):
    """How long hits at the first node take, in milliseconds: median and p99."""
    client, took = Client(cluster.nodes[0]), []
    while len(took) < HITS:
        began = time.monotonic()
        cache = client.ask("GET", "/p/0")[1]
        if cache == "HIT":
            took.append((time.monotonic() - began) * 1e3)
    took.sort()
    return took[HITS // 2], took[HITS * 99 // 100]


def slow_engine(cluster):
    quick = hits(cluster)
    for proxy in cluster.proxies:
        proxy.be("slow")
    slow = hits(cluster)
    for proxy in cluster.proxies:
        proxy.be("whole")
    print(f"a hit, median and p99: {quick[0]:.3f} and {quick[1]:.3f} ms; engine slower by 200 ms: {slow[0]:.3f} and {slow[1]:.3f} ms")
    return slow[0] < quick[0] + SLOWER_MILLISECONDS


class Load:
    """Requests at a steady rate, or as many as there can be."""

    def __init__(self, cluster, clients, rate=None, prefix="/p/"):
        self.cluster, self.rate, self.prefix = cluster, rate and rate / clients, prefix
        self.answers, self.errors, self.longest = 0, [], 0
        self._is_over, self._lock = threading.Event(), threading.Lock()
        self._threads = [threading.Thread(target=self._ask, args=(at,)) for at in range(clients)]

    def _ask(self, number):
        client, due, page = Client(self.cluster.nodes[number % 3]), time.monotonic(), number
        while not self._is_over.is_set():
            if self.rate:
                due += 1 / self.rate
                self._is_over.wait(max(0, due - time.monotonic()))
            page += 1
            began, error = time.monotonic(), None
            try:
                status, _, _ = client.ask("GET", f"{self.prefix}{page % PAGES}")
                error = None if status == 200 else f"status {status}"
            except OSError as failure:
                error = str(failure)
            with self._lock:
                self.answers += 1
                self.longest = max(self.longest, time.monotonic() - began)
                if error:
                    self.errors.append(error)

    def run(self, seconds):
        for thread in self._threads:
            thread.start()
        time.sleep(seconds)
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        return self


def engine_away(cluster, seconds):
    capacity = Load(cluster, CAPACITY_CLIENTS, prefix="/php/").run(CAPACITY_SECONDS).answers / CAPACITY_SECONDS
    load = Load(cluster, CAPACITY_CLIENTS, rate=capacity / 2)
    cluster.engine.signal(signal.SIGSTOP)
    load.run(seconds)
    cluster.engine.signal(signal.SIGCONT)
    print(f"engine gone for {seconds} s, {capacity / 2:.0f} requests a second of {capacity:.0f} that PHP can: {load.answers} answers, "
          f"{len(load.errors)} errors {load.errors[:3]}, the longest took {load.longest:.2f} s")  # fmt: skip
    return not load.errors


def new_epoch(cluster):
    wait_until(lambda: cluster.is_hit(cluster.nodes[0]), "a lease")
    shown = Client(cluster.nodes[0]).ask("GET", "/p/0")[2]
    cluster.engine.kill()
    time.sleep(2.5)
    with open(f"{cluster.php.folder}/broken", "w"):
        pass
    cluster.engine.forget()
    cluster.engine.start()
    ends = time.monotonic() + 20
    while True:
        status, cache, text = Client(cluster.nodes[0]).ask("GET", "/p/0")
        if status == 200 or time.monotonic() > ends:
            break
        time.sleep(0.05)
    os.remove(f"{cluster.php.folder}/broken")
    print(f"a new epoch while PHP fails: status {status}, {cache}")
    return (status, cache, text) == (200, "STALE", shown)


class Purger:
    """Purges tags that no page has, at a steady rate from several connections. One thread has all of them, so that it
    measures the servers and not the threads of a client."""

    def __init__(self, node):
        self.took, self.refused = [], 0
        self._connections = [socket.create_connection(("127.0.0.1", node.port)) for _ in range(PURGE_CLIENTS)]
        self._number = itertools.count()

    def _send(self, connection):
        body = b'{"tags":["none-%d"]}' % next(self._number)
        head = b"POST /purge HTTP/1.1\r\nHost: site.test\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        connection.sendall(head % len(body) + body)

    def run(self, seconds):
        began = time.monotonic()
        due = {one: began + at / PURGES_PER_SECOND for at, one in enumerate(self._connections)}
        sent, answers = {}, selectors.DefaultSelector()
        for one in self._connections:
            answers.register(one, selectors.EVENT_READ)
        while sent or time.monotonic() < began + seconds:
            next_due = min((at for one, at in due.items() if one not in sent), default=began + 2 * seconds)
            for key, _ in answers.select(max(0, next_due - time.monotonic())):
                # The answers are short, and come as a whole.
                answer, took = key.fileobj.recv(65536), time.monotonic() - sent.pop(key.fileobj)
                self.took.append(took * 1e3)
                self.refused += not answer.startswith(b"HTTP/1.1 200 ")
            now = time.monotonic()
            for one in self._connections if now < began + seconds else ():
                if one not in sent and due[one] <= now:
                    sent[one] = time.monotonic()
                    self._send(one)
                    due[one] += PURGE_CLIENTS / PURGES_PER_SECOND
        for one in self._connections:
            one.close()
        self.took.sort()


def many_purges(cluster):
    wait_until(lambda: cluster.is_hit(cluster.nodes[0]), "a lease")
    purger, began = Purger(cluster.nodes[0]), time.monotonic()
    cores = [process.CpuTime(one.process.pid) for one in (*cluster.nodes[1:], cluster.nodes[0], cluster.engine)]
    purger.run(PURGE_SECONDS)
    seconds = time.monotonic() - began
    *others, own, engine = [100 * sum(one.spent()) / seconds for one in cores]
    p50, p99 = (purger.took[len(purger.took) * part // 100] for part in (50, 99))
    print(f"{len(purger.took) / seconds:.0f} purges a second: median {p50:.2f}, p99 {p99:.2f} ms (at most {PURGE_P99_MILLISECONDS}), "
          f"{purger.refused} refused; percent of a core: the other nodes {others[0]:.1f} and {others[1]:.1f} (at most {PURGE_CORE_PERCENT}), "
          f"the node that purges {own:.1f}, Redis {engine:.1f}")  # fmt: skip
    return not purger.refused and p99 <= PURGE_P99_MILLISECONDS and max(others) <= PURGE_CORE_PERCENT


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", default="target/release/mayfly")
    parser.add_argument("--away", type=int, default=60, help="how many seconds the engine is gone")
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--purges-only", action="store_true", help="the fifth alone")
    chosen = parser.parse_args()
    chosen.program, chosen.unchecked = os.path.abspath(chosen.program), False
    results = []
    with tempfile.TemporaryDirectory(prefix="mayfly-nodes-") as folder:
        php, proxies = Php(folder), Proxies()
        try:
            # Without proxies, which would take longer than the engine.
            cluster = Cluster(chosen, os.path.join(folder, "direct"), php)
            try:
                results.append(many_purges(cluster))
            finally:
                cluster.stop()
            others = () if chosen.purges_only else (("apart", "", 3), ("sharing", "cache_nodes_pages on;", 1))
            for name, http, most in others:
                cluster = Cluster(chosen, os.path.join(folder, name), php, proxies, http)
                try:
                    results.append(cold_page(cluster, chosen.clients, most))
                    if not http:
                        results += [slow_engine(cluster), engine_away(cluster, chosen.away), new_epoch(cluster)]
                finally:
                    cluster.stop()
        finally:
            php.stop()
            proxies.stop()
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
