#!/usr/bin/env python3
"""A storm of bots beside visitors: what a page that is not stored takes then.

60 connections ask PHP for an address of their own each, without a pause, in several disguises. Visitors look at pages
and load their style sheet, and one who is logged in writes. PHP computes for 80 ms, waits for 80 ms (a database), or
both for times of its own for each page. Mayfly with turns and without them (`php_concurrency off`), and nginx with
`limit_req`. Then a thousand sessions behind one address beside a bot there, a database that becomes ten times slower,
and a crawl of WordPress (apps/run.py storm_wordpress). Takes some five minutes; --cases CASE... takes some of it.
"""

import os
import random
import subprocess
import sys
import threading
import time

from lib import php, report, subject
from lib.database import Database
from lib.storm import BROWSER, DISGUISES, Disguise, Storm, Times, ask, numbers, visit

NAME = "storm"
TITLE = "A storm of bots beside visitors"

WORKERS = 16
CORES = (0, 1)
MILLISECONDS = 80
SESSIONS = 1000
CASES = ("computes", "waits", "varies", "sessions", "database", "wordpress")
# All disguises where scripts compute, as there visitors suffer most; without turns they are the same to a server.
SOME = ("named", "like a browser", "from 600 addresses")
ROOT = os.path.dirname(report.FOLDER)


class Site:
    """`with Site(...) as site: ...`: PHP-FPM, a server, and a style sheet."""

    def __init__(self, binary, concurrency, database=""):
        self._folder = subject.Folder()
        self._arguments = binary, concurrency, database
        self._cores = ",".join(map(str, CORES))

    def __enter__(self):
        binary, concurrency, database = self._arguments
        folder = self._folder.__enter__()
        self._fpm = php.PhpFpm(folder, WORKERS, core=self._cores)
        self._server = subject.Server(
            binary, "storm.conf", folder, core=self._cores, SOCKET=self._fpm.socket, WORKERS=WORKERS, CONCURRENCY=concurrency,
            PAGE=os.path.join(php.PAGES, "storm.php"), DATABASE=database,
        )
        self.port = self._server.port
        with open(os.path.join(self._server.folder, "style.css"), "w") as file:
            file.write("body { }")
        return self

    def __exit__(self, *error):
        self._server.__exit__(*error)
        self._fpm.__exit__(*error)
        self._folder.__exit__(*error)

    def limit(self):
        """The limit in force; None without one."""
        lines = ask(self.port, "/metrics").body.decode().splitlines()
        found = [line.split()[-1] for line in lines if line.startswith("mayfly_upstream_limit{")]
        return float(found[0]) if found else None


def storm(site, disguise, bots_cost, cost, seconds):
    """Visitors alone, what bots get alone, and the same visitors beside them."""
    alone, alone_write = visit(site.port, cost, seconds / 2)
    with Storm(site.port, disguise, bots_cost) as bots:
        time.sleep(seconds / 2)
        rate = bots.rate(seconds)
        limit = site.limit()
        newcomer = Times()
        newcomer.take(site.port, f"/page/{next(numbers)}?{cost}", source="127.200.3.1")
        pages, writes = visit(site.port, cost, seconds)
    return {
        "alone": alone.summary(), "alone_write": alone_write.summary(), "newcomer_ms": newcomer.share(50),
        "page": pages.summary(), "write": writes.summary(), "bots_per_second": round(rate, 1), "limit": limit,
        "bots_refused": bots.refused, "bots_broken": bots.broken,
    }


def storms(chosen, result, kind, costs, seconds):
    """The storms of one kind of page. `costs` are the arguments of a bot's page and of a visitor's."""
    bots_cost, cost = costs
    names = DISGUISES if kind == "computes" else SOME[1:2] if kind == "varies" else SOME
    servers = [("in order of arrival", chosen.binary, "off", SOME[1:2]), ("turns", chosen.binary, "auto", names)]
    if kind == "computes" and chosen.nginx:
        servers.append(("nginx with limit_req", chosen.nginx, "off", SOME[1:]))
    for server, binary, concurrency, disguises in servers:
        for disguise in disguises:
            with Site(binary, concurrency) as site:
                result.figures[f"{kind}, {server}, bots {disguise}"] = storm(site, DISGUISES[disguise], bots_cost, cost, seconds)
    plain = result.figures[f"{kind}, in order of arrival, bots {SOME[1]}"]["bots_per_second"]
    for disguise in names:
        figures = result.figures[f"{kind}, turns, bots {disguise}"]
        of = f"{kind}, bots {disguise}"
        for what, before in (("page", "alone"), ("write", "alone_write")):
            alone = figures[before]["p50_ms"]
            result.check(f"{of}: a visitor's {what}, p50", figures[what]["p50_ms"], round(1.5 * alone, 1), "ms")
            result.check(f"{of}: a visitor's {what}, p99", figures[what]["p99_ms"], round(3 * alone, 1), "ms")
        result.check(f"{of}: visitors' errors", figures["page"]["failed"] + figures["write"]["failed"], 0)
        # Slow readers and asset loaders ask for less.
        if disguise in SOME:
            lost = round(plain - figures["bots_per_second"], 1)
            result.check(f"{of}: answers per second that bots lose of {plain}", lost, round(0.15 * plain, 1))


def varying(rounds):
    """Pages that compute and wait for times in a range of one to a hundred."""

    def cost(chance):
        factor = lambda: 10 ** chance.uniform(-1, 1)  # noqa: E731
        return f"work={round(rounds * factor() / 6)}&wait={round(MILLISECONDS * factor() / 6)}"

    return cost


def sessions(chosen, result, cost, seconds):
    """A thousand visitors with sessions beside a bot, all behind one address and with one browser."""
    with Site(chosen.binary, "auto") as site:
        source = "127.0.0.9"
        cookies = []

        def log_in():
            while len(cookies) < SESSIONS:
                cookies.append(ask(site.port, f"/page/{next(numbers)}?session", source=source).cookie)

        in_parallel([log_in] * 8)
        ask(site.port, "/files/style.css", source=source)
        alone = read_with(site, cookies, cost, source, seconds)
        with Storm(site.port, Disguise(BROWSER, [source]), lambda _: cost):
            time.sleep(seconds / 2)
            beside = read_with(site, cookies, cost, source, seconds)
    result.figures["sessions"] = {"sessions": len(set(cookies)), "alone": alone.summary(), "beside": beside.summary()}
    of = f"{SESSIONS} sessions and a bot behind one address"
    result.check(f"{of}: a visitor's page, p50", beside.share(50), round(1.5 * alone.share(50), 1), "ms")
    result.check(f"{of}: visitors' errors", beside.failed, 0)


def read_with(site, cookies, cost, source, seconds):
    """Pages of one session after the other."""
    times = Times()
    ends_at = time.monotonic() + seconds

    def read(number):
        chance = random.Random(number)
        while time.monotonic() < ends_at:
            cookie = chance.choice(cookies)
            times.take(site.port, f"/page/{next(numbers)}?{cost}", source=source, cookie=cookie)
            time.sleep(0.3)

    in_parallel([lambda number=number: read(number) for number in range(3)])
    return times


def in_parallel(tasks):
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def slow_database(chosen, result, seconds):
    """A database that serves a tenth for a while, as 60 connections ask."""
    with subject.Folder() as folder, Database(folder, WORKERS, MILLISECONDS) as database, Site(chosen.binary, "auto", database.socket) as site:
        ask(site.port, "/stored/page")
        with Storm(site.port, DISGUISES["like a browser"], lambda _: "query"):
            time.sleep(seconds)
            usual, before = site.limit(), hits(site)
            database.set_slow(True)
            falls, lowest = until(lambda: site.limit() <= usual / 2, 15)
            during = hits(site)
            time.sleep(seconds)
            while_slow = site.limit()
            database.set_slow(False)
            rises, highest = until(lambda: site.limit() >= usual * 0.75, 20)
            statuses = ask(site.port, "/metrics").body.decode()
    bad = sum(float(line.split()[-1]) for line in statuses.splitlines() if line.startswith('mayfly_upstream_refused_total{') and 'none_live' in line)
    result.figures["database"] = {
        "usual_limit": usual, "while_slow": while_slow, "falls_in_seconds": round(falls, 1), "rises_in_seconds": round(rises, 1),
        "hits_before": before.summary(), "hits_while_slow": during.summary(),
    }
    result.check("a slow database: seconds until the limit has fallen by half", round(falls, 1), 5, "s")
    result.check("a slow database: seconds until the limit has risen again", round(rises, 1), 10, "s")
    result.check("a slow database: answers that failed", bad + before.failed + during.failed, 0)
    result.check("a slow database: a stored page, p50", during.share(50), max(2 * before.share(50), 2), "ms")


def until(is_reached, seconds):
    """Seconds until it is so, and whether it is."""
    began = time.monotonic()
    while not (reached := is_reached()) and time.monotonic() - began < seconds:
        time.sleep(0.2)
    return time.monotonic() - began, reached


def hits(site):
    times = Times()
    for _ in range(100):
        times.take(site.port, "/stored/page", source="127.200.2.1")
    return times


def wordpress(chosen, result):
    """The scenario with WordPress and MariaDB; its lines are printed as they come."""
    command = [sys.executable, os.path.join(ROOT, "apps", "run.py"), "storm_wordpress", "--no-setup", "--seconds", "20", "--binary", chosen.binary, "--workers", str(WORKERS)]
    done = subprocess.run(command, capture_output=True, text=True)
    print(done.stdout, done.stderr[-2000:], file=sys.stderr)
    lines = [line for line in done.stdout.splitlines() if line[:4] in ("ok  ", "FAIL")]
    result.figures["wordpress"] = {"status": done.returncode, "lines": done.stdout.splitlines()}
    for line in lines or ["FAIL the scenario did not run"]:
        result.check(f"WordPress: {line[6:]} (0 is yes)", int(line.startswith("FAIL")), 0)


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    os.sched_setaffinity(0, CORES)
    seconds = 3 if chosen.quick else 4
    cases = getattr(chosen, "cases", None) or (CASES[:2] if chosen.quick else CASES)
    rounds = php.calibrate(MILLISECONDS)
    computes, waits = f"work={rounds}", f"wait={MILLISECONDS}"
    kinds = {
        "computes": (lambda _: computes, computes),
        "waits": (lambda _: waits, waits),
        "varies": (varying(rounds), f"work={rounds // 2}&wait={MILLISECONDS // 2}"),
    }
    for kind, costs in kinds.items():
        if kind in cases:
            storms(chosen, result, kind, costs, seconds)
    if "sessions" in cases:
        sessions(chosen, result, computes, seconds)
    if "database" in cases:
        slow_database(chosen, result, 2 * seconds)
    if "wordpress" in cases:
        wordpress(chosen, result)
    return result


if __name__ == "__main__":
    parser = report.options(__doc__)
    parser.add_argument("--cases", choices=CASES, nargs="+", metavar="CASE", help=f"of {', '.join(CASES)}")
    report.run(parser, measure)
