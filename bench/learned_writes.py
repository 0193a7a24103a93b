#!/usr/bin/env python3
"""What writes to the table that all pages read cost those who read pages that are kept (`cache_learn on`).

Pages show one row each. They are read at full load, while PHP writes 1,000 times a second to other rows of the same
table: each write is told to Mayfly twice and compared with what all pages were made of. CPU time per hit, with that work
and without that of PHP, beside the same without writes. All these pages become suspect once a second, since Mayfly polls when
the table was written; their statements are run again then (`cache_learn_replay`), and of no page anything has changed.

How long hits wait at most beside a page of 400 statements that is learned 50 times a second, and the same beside that page where it
is not learned; other rows are written meanwhile, so that hits ask what is known of their pages. Needs root.
"""

import http.client
import itertools
import os
import statistics
import sys
import threading
import time

import compare
from lib import load, report, subject

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "apps"))

from harness import mariadb, workdir  # noqa: E402

NAME = "learned_writes"
TITLE = "Pages that are kept by what they were made of, beside writes"

PAGES, OTHER_ROWS = 100, 1000
BODY_BYTES = 1024
BUSY = 50
RATE = 1000
MAX_PER_HIT = 1.3
# A page of so many statements, made so many times a second by so many clients.
STATEMENTS = 400
LONG_PAGES, LONG_CLIENTS = 50, 2
LONG_WRITES = 100
MAX_WAIT = 1.2
# Of the long pages, since PHP may not make them all beside the hits.
MIN_LONG_PAGES = 0.5
# The writes of a second that takes longer count in the next.
MIN_RATE = 0.9
LEARN_SECONDS = 60
# What PHP reads in /dev/shm and /tmp is no site.
PLACE = "/var/lib"

CONFIGURATION = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
user root;
php_pool site {{ workers 4; user www-data; }}
events {{ worker_connections 1024; }}
http {{
    access_log off;
    keepalive_requests 100000000;
    fastcgi_cache_path {folder}/cache keys_zone=pages:10m;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            fastcgi_pass php:site;
            cache_learn on;
            cache_learn_database unix:{database.socket} {database.user} {database.password};
        }}
        location /plain/ {{ fastcgi_pass php:site; }}
        fastcgi_cache pages; fastcgi_cache_key $uri; fastcgi_cache_valid 200 1s; fastcgi_cache_lock on;
        fastcgi_read_timeout 600s;
        fastcgi_param SCRIPT_FILENAME {folder}/learned.php;
        fastcgi_param REQUEST_METHOD $request_method;
        fastcgi_param QUERY_STRING $query_string;
        fastcgi_param PAGE $uri;
        fastcgi_param DB_USER {database.user};
        fastcgi_param DB_PASSWORD {database.password};
        fastcgi_param DB_SOCKET {database.socket};
    }}
}}
"""


class Site:
    """Mayfly with its PHP, and a database with the pages."""

    name = "mayfly"

    def __init__(self, chosen, folder):
        self._database = mariadb.start(folder)
        self.port = folder.free_port("127.0.0.1")
        self._fill(folder)
        with open(os.path.join(HERE, "php", "learned_writes.php")) as page:
            folder.write("learned.php", page.read())
        text = CONFIGURATION.format(folder=folder.path, port=self.port, database=self._database)
        command = ["taskset", "-c", str(chosen.server_core), os.path.abspath(chosen.binary),
                   "-p", folder.path, "-c", folder.write("conf", text)]  # fmt: skip
        server = folder.spawn("mayfly", command)
        self.pids = [server.pid]
        workdir.wait_for("mayfly", workdir.listens("127.0.0.1", self.port), 30, server)

    def _fill(self, folder):
        text = "x" * BODY_BYTES
        rows = ", ".join(f"({number}, '{text}', 0)" for number in range(PAGES + OTHER_ROWS))
        sql = folder.write("fill.sql", "CREATE TABLE page (id INT PRIMARY KEY, text TEXT NOT NULL, written INT NOT NULL);\n"
                                       f"INSERT INTO page VALUES {rows};\n")  # fmt: skip
        database = self._database
        client = ["mariadb", "--no-defaults", f"--socket={database.socket}", f"--user={database.user}",
                  f"--password={database.password}", "-e", f"source {sql}", database.name]  # fmt: skip
        workdir.subprocess.run(client, check=True, timeout=60)

    def ask(self, method, target):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, target)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{method} {target}: {answer.status} {body[:200]}")
        return int(answer.getheader("Age") or 0), body

    def learn(self):
        """Until all pages are kept beyond their ordinary lifetime, a second."""
        until = time.monotonic() + LEARN_SECONDS
        while min(self.ages()) < 2:
            if time.monotonic() > until:
                raise SystemExit(f"pages are not kept: they have the ages {sorted(self.ages())}")
            time.sleep(0.5)

    def ages(self):
        return [self.ask("GET", f"/{number}")[0] for number in range(PAGES)]


class Writer(threading.Thread):
    """Has PHP write for so many seconds."""

    def __init__(self, site, seconds, writes=RATE):
        super().__init__()
        self._site, self._seconds, self._writes, self.rate = site, seconds, writes, 0

    def run(self):
        query = f"first={PAGES}&rows={OTHER_ROWS}&rate={self._writes}&seconds={self._seconds}"
        self.rate = int(self._site.ask("POST", f"/write?{query}")[1]) / self._seconds


class LongPages:
    """Has pages of many statements made, so many a second, each at an address of its own."""

    _numbers = itertools.count()

    def __init__(self, site, folder):
        self._site, self._folder, self.made = site, folder, 0
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(LONG_CLIENTS)]

    def __enter__(self):
        [thread.start() for thread in self._threads]
        return self

    def __exit__(self, *error):
        self._over.set()
        [thread.join() for thread in self._threads]

    def _ask(self):
        due = time.monotonic()
        while not self._over.wait(max(0, due - time.monotonic())):
            due += LONG_CLIENTS / LONG_PAGES
            self._site.ask("GET", f"{self._folder}/{next(self._numbers)}?statements={STATEMENTS}")
            self.made += 1


def wait_beside(chosen, site, folder, seconds):
    """The p99.9 of hits in milliseconds, beside long pages, and how many of these were made in a second."""
    writer = Writer(site, seconds, LONG_WRITES)
    writer.start()
    with LongPages(site, folder) as pages:
        url = f"http://127.0.0.1:{site.port}"
        figures = load.wrk(url, BUSY, seconds, chosen.client_core, "pages.lua", [str(PAGES), str(BODY_BYTES)])
    writer.join()
    if figures["errors"]:
        raise SystemExit(f"{figures['errors']} errors")
    return figures["p99_9_ms"], pages.made / seconds


def per_hit(chosen, site, seconds):
    """CPU seconds."""
    options = ["--seconds", str(seconds), "--bytes", str(BODY_BYTES), "--keys", f"uniform:{PAGES}", "--connections", str(BUSY)]
    figures, spent, _ = load.bench_load(chosen.load, site, "/{}", chosen.client_core, options, seconds + 60)
    wrong = figures["wrong_status"] + figures["wrong_length"] + figures["broken"]
    if wrong or not figures["requests"]:
        raise SystemExit(f"{wrong} wrong answers of {figures['requests']}")
    return sum(spent) / figures["requests"]


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    if os.getuid():
        raise SystemExit("it needs root, for the accounts of PHP and of the database")
    seconds, rounds = (1, 1) if chosen.quick else (3, 5)
    ratios, rates, made_anew = [], [], 0
    waits, long_rates = [], []
    with workdir.Workdir("bench-learned", parent=PLACE) as folder:
        site = Site(chosen, folder)
        site.learn()
        for _ in range(rounds):
            before = min(site.ages())
            alone = per_hit(chosen, site, seconds)
            # It writes for longer than is measured.
            writer = Writer(site, seconds + 1)
            writer.start()
            time.sleep(0.5)
            ratios.append(per_hit(chosen, site, seconds) / alone)
            writer.join()
            rates.append(writer.rate)
            made_anew += sum(age < before for age in site.ages())
            wait, made = wait_beside(chosen, site, "/long", seconds)
            plain, _ = wait_beside(chosen, site, "/plain", seconds)
            waits.append(wait / plain)
            long_rates.append(made)
    result.figures = {"cpu_per_hit": round(statistics.median(ratios), 3), "writes_per_second": round(statistics.median(rates)),
                      "made_anew": made_anew,
                      "wait_beside_learning": round(statistics.median(waits), 3), "waits": [round(wait, 2) for wait in waits],
                      "long_pages_per_second": round(statistics.median(long_rates))}  # fmt: skip
    result.check(f"{RATE:,} writes a second to the table of all pages: CPU per hit, times that without",
                 result.figures["cpu_per_hit"], MAX_PER_HIT)  # fmt: skip
    result.check("of these writes, times as many as were made", round(RATE / statistics.median(rates), 3), round(1 / MIN_RATE, 3))
    result.check(f"p99.9 of hits beside a page of {STATEMENTS} statements that is learned, times that where it is not",
                 result.figures["wait_beside_learning"], MAX_WAIT)  # fmt: skip
    result.check("of these pages, times as many as were made", round(LONG_PAGES / statistics.median(long_rates), 3),
                 round(1 / MIN_LONG_PAGES, 3))  # fmt: skip
    return result


if __name__ == "__main__":
    parser = report.options(__doc__)
    compare.tools(parser)
    report.run(parser, measure)
