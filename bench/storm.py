#!/usr/bin/env python3
"""A storm of bots beside visitors: what a page that is not stored takes then.

A page costs PHP 80 ms, of computing or of waiting as for a database; PHP has 16 workers on all
cores. 60 connections of bots ask for an address of their own each, in six disguises.
Beside them a visitor asks for a page now and then, and one with a session writes. Mayfly with
turns and without them (`php_concurrency off`), and nginx with `limit_req`.
"""

import http.client
import itertools
import os
import random
import threading
import time

from lib import load, php, report, subject

NAME = "storm"
TITLE = "A storm of bots beside visitors"

WORKERS = 16
MILLISECONDS = 80
BOTS = 60
BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
NAMED = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"
numbers = itertools.count()


class Disguise:
    """What bots say they are, where they come from, and what else they do."""

    def __init__(self, agent, addresses, assets=False, slow=False):
        self.agent, self.addresses, self.assets, self.slow = agent, addresses, assets, slow


DISGUISES = {
    "named": Disguise(NAMED, ["127.0.0.2"]),
    "like a browser": Disguise(BROWSER, ["127.0.0.2"]),
    "from 60 addresses": Disguise(BROWSER, [f"127.1.0.{n + 1}" for n in range(60)]),
    "from 600 addresses": Disguise(BROWSER, [f"127.{n % 20 + 2}.{n // 20}.1" for n in range(600)]),
    "with assets": Disguise(BROWSER, ["127.0.0.2"], assets=True),
    "slow readers": Disguise(BROWSER, ["127.0.0.2"], slow=True),
}


# Those that the other servers are measured with as well: without turns, all disguises are the same to them.
COMPARED = ("named", "like a browser", "from 600 addresses")


def ask(port, target, agent, source, cookie=None, body=None, slow=False):
    """One request over a connection of its own; status, and the cookie that was set."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=(source, 0))
    try:
        fields = {"User-Agent": agent, **({"Cookie": cookie} if cookie else {})}
        connection.request("POST" if body else "GET", target, body=body, headers=fields)
        answer = connection.getresponse()
        if slow:
            while answer.read(65536):
                time.sleep(0.02)
        else:
            answer.read()
        return answer.status, answer.getheader("Set-Cookie", "").split(";")[0]
    finally:
        connection.close()


class Storm:
    """`with Storm(...) as storm: ...`; 60 connections until the end."""

    def __init__(self, port, disguise, cost):
        self.port, self.disguise, self.cost = port, disguise, cost
        self.served = self.refused = self.broken = 0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(n,), daemon=True) for n in range(BOTS)]

    def _ask(self, number):
        disguise = self.disguise
        chance = random.Random(number)
        while not self._stop.is_set():
            source = chance.choice(disguise.addresses)
            size = "&bytes=1000000" if disguise.slow else ""
            try:
                if disguise.assets:
                    ask(self.port, "/files/style.css", disguise.agent, source)
                status, _ = ask(self.port, f"/calendar/{next(numbers)}?{self.cost}{size}", disguise.agent, source, slow=disguise.slow)
                self.served += status == 200
                self.refused += status in (429, 503)
                self.broken += status not in (200, 429, 503)
                if status != 200:
                    time.sleep(0.1)
            except OSError:
                self.broken += not self._stop.is_set()

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()


def visit(port, cost, seconds):
    """Milliseconds of a visitor's pages and of another's writes, and how many failed."""
    pages, writes, failed = [], [], [0]

    def timed(times, *arguments, **others):
        began = time.monotonic()
        try:
            status, cookie = ask(port, *arguments, **others)
        except OSError:
            status, cookie = 0, ""
        times.append(1000 * (time.monotonic() - began))
        failed[0] += status != 200
        return cookie

    def write(ends_at):
        cookie = timed([], f"/?{cost}&session", BROWSER, "127.200.0.2")
        while time.monotonic() < ends_at:
            timed(writes, f"/comment?{cost}", BROWSER, "127.200.0.2", cookie=cookie, body=b"text=a")
            time.sleep(0.4)

    ends_at = time.monotonic() + seconds
    writer = threading.Thread(target=write, args=(ends_at,))
    writer.start()
    while time.monotonic() < ends_at:
        timed(pages, f"/page/{next(numbers)}?{cost}", BROWSER, "127.200.0.1")
        ask(port, "/files/style.css", BROWSER, "127.200.0.1")
        time.sleep(0.4)
    writer.join()
    return summary(pages), summary(writes), failed[0]


def summary(times):
    times = sorted(times)
    return {f"p{share}_ms": round(load.percentile(times, share) or 0, 1) for share in (50, 99)}


def storm(binary, concurrency, cost, seconds, names):
    """A visitor alone, and in each storm."""
    figures = {}
    page = os.path.join(php.PAGES, "storm.php")
    for name in names:
        disguise = DISGUISES[name]
        with subject.Folder() as folder, php.PhpFpm(folder, WORKERS) as fpm, subject.Server(
            binary, "storm.conf", folder,
            SOCKET=fpm.socket, WORKERS=WORKERS, CONCURRENCY=concurrency, PAGE=page,
        ) as server:
            with open(os.path.join(server.folder, "style.css"), "w") as file:
                file.write("body { }")
            alone, alone_write, _ = visit(server.port, cost, seconds / 2)
            with Storm(server.port, disguise, cost) as bots:
                time.sleep(seconds / 2)
                before, began = bots.served, time.monotonic()
                time.sleep(seconds / 2)
                rate = (bots.served - before) / (time.monotonic() - began)
                page_times, write_times, failed = visit(server.port, cost, seconds)
        figures[name] = {
            "alone": alone, "alone_write": alone_write, "page": page_times, "write": write_times, "failed": failed,
            "bots_per_second": round(rate, 1), "bots_refused": bots.refused, "bots_broken": bots.broken,
        }
    return figures


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    seconds = 3 if chosen.quick else 8
    costs = {"computes": f"work={php.calibrate(MILLISECONDS)}", "waits": f"wait={MILLISECONDS}"}
    servers = [("turns", chosen.binary, "auto"), ("in order of arrival", chosen.binary, "off"), ("nginx with limit_req", chosen.nginx, "off")]
    for kind, cost in costs.items():
        for name, binary, concurrency in servers:
            if binary:
                names = COMPARED if chosen.quick or name != "turns" else DISGUISES
                result.figures[f"{kind}, {name}"] = storm(binary, concurrency, cost, seconds, names)
        fair, plain = result.figures[f"{kind}, turns"], result.figures[f"{kind}, in order of arrival"]
        for disguise, figures in fair.items():
            alone = figures["alone"]["p50_ms"]
            of = f"{kind}, bots {disguise}"
            result.check(f"{of}: a visitor's page, p50", figures["page"]["p50_ms"], round(1.5 * alone, 1), "ms")
            result.check(f"{of}: a visitor's page, p99", figures["page"]["p99_ms"], round(3 * alone, 1), "ms")
            result.check(f"{of}: a visitor's write, p50", figures["write"]["p50_ms"], round(1.5 * alone, 1), "ms")
            result.check(f"{of}: visitors' errors", figures["failed"], 0)
            if disguise not in plain:
                continue
            lost = plain[disguise]["bots_per_second"] - figures["bots_per_second"]
            most = round(0.15 * plain[disguise]["bots_per_second"], 1)
            result.check(f"{of}: answers per second that bots lose", round(lost, 1), most)
    return result


if __name__ == "__main__":
    report.main(NAME, TITLE, measure, __doc__)
