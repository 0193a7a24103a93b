#!/usr/bin/env python3
"""Pages that are kept by what they were made of (`cache_learn on`): is any answer older than the database?

    scripts/promise/learned.py [--program target/debug/mayfly] [--seconds 60] [--late]
    scripts/promise/learned.py --readers 200 --writes 1000 --foreign 10000 --kills 1000
    scripts/promise/learned.py --replay
    scripts/promise/learned.py --binary-log --foreign 2000
    scripts/promise/learned.py --nodes [--alone]
    scripts/promise/learned.py --redis --foreign 10000 --kills 1000
    scripts/promise/learned.py --postgres [--lasting] [--counts] --foreign 10000 --kills 1000

A MariaDB (or MySQL, MAYFLY_APPS_MYSQLD), a server on loopback with a PHP pool of its own, and pages that show which version of a
row they were made from. What is not learned has its ordinary lifetime, a millisecond: it is no part of the promise. Writers change rows through PHP, with and without a transaction. Readers ask the database
themselves, with a plain SELECT, then ask for the page: an answer is old if it shows an earlier version than the one
that was selected before it was asked for, or that PHP had told a writer. Another program changes rows of another table: these pages
may be old for two seconds, and after each such write its page is asked for when they are over. Now and then all writing stops, so
that pages are kept. With --kills, so many workers of PHP are killed once others see what they have written, and before they have read the answer of
the database, which Mayfly is therefore not told; and as many at any moment. The run goes on until there are so many writes, foreign writes and kills as
are asked for.

With --replay, statements of suspect pages are run again (cache_learn_replay), and some writes of PHP say nothing of the rows
that they change, so that pages are suspect of which nothing has changed.

With --binary-log, the log of the database is followed (cache_learn_binary_log). The page of each write of the other program is asked
for at once, again and again, until it is new: the time from its COMMIT to the first request that shows it has to be within
50 ms for 99 of 100 writes to pages that were kept.

With --nodes, there are two servers, each with a PHP of its own, which share purges by a Redis (cache_nodes). Writers ask one of
them in turn, and readers both. An answer is old if it shows an earlier version than PHP had told a writer: what others can see
before that counts at the writer's node alone. With --alone the servers do not tell each other, which a build with debug assertions
can be told: it ends with 0 if old answers are found.

With --redis, the versions are in a Redis in place of the tables: PHP reads and writes its keys (INCR, within MULTI or without), and another
program does.

With --postgres, the database is a PostgreSQL. The other program connects anew for each write, so that its counts name the table;
with --lasting it stays, and all tables count as written. With --counts the server believes the counts that such a program holds
back, which a build with debug assertions can be told: it ends with 0 if old answers are found.

Ends with 1 where an answer was old, or where too few were kept: then nothing was tried. With --late the server
compares a page with the writes since its fetch ended, not since it began, which a build with debug assertions can
be told: it ends with 0 if old answers are found.
"""

import argparse
import bisect
import contextlib
import http.client
import os
import queue
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import page_trial  # It makes harness importable.
from engines import Redis
from harness import mariadb, postgres, workdir

# The last own page is written by workers that are killed for it.
PAGES = 7
WRITERS = 3
# One in so many readers reads what the other program writes.
READS_OTHERS = 4
# A client of the database is shared by so many readers.
SHARE_SQL = 10
# Who looks at the page of each foreign write.
WATCHERS = 4
# What another program has committed is shown no later.
SEEN_SECONDS = 2.0
# With the log, so many of a hundred writes to kept pages are shown within this time.
LOG_SHARE, LOG_SECONDS, MIN_LOGGED = 0.99, 0.05, 100
MIN_FRESHENED = 20
BETWEEN_KILLS_SECONDS = 0.1

CONFIGURATION = """
daemon off; worker_processes 2; pid {folder}/pid-{port}; error_log {folder}/error-{port}.log info;
user root; env MAYFLY_FAILPOINT_LEARN;
php_pool site {{ workers 6; user www-data; }}
events {{ worker_connections 1024; }}
http {{
    access_log off;
    {nodes}
    fastcgi_cache_path {folder}/cache-{port} keys_zone=pages:10m;
    server {{
        listen 127.0.0.1:{port};
        server_name site.test;
        keepalive_requests 100000000;
        location / {{
            fastcgi_pass php:site;
            fastcgi_cache pages; fastcgi_cache_key $uri; fastcgi_cache_valid 200 1ms; fastcgi_cache_lock on;
            cache_learn on; cache_learn_replay {replay}; cache_learn_binary_log {log};
            cache_learn_database {database.address} {database.user} {database.password};
            fastcgi_param SCRIPT_FILENAME {folder}/learned.php;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param PAGE $uri;
            fastcgi_param DB_USER {database.user};
            fastcgi_param DB_PASSWORD {database.password};
            fastcgi_param DB_SOCKET {database.socket};
            fastcgi_param DB_FUNCTIONS {functions};
            fastcgi_param KEYS_PORT {keys};
            add_header X-Cache $upstream_cache_status;
        }}
    }}
    server {{ listen 127.0.0.1:{metrics}; location = /metrics {{ metrics; }} }}
}}
"""


class Sql:
    """A client of the database, one statement after the other."""

    def __init__(self, database):
        command = [*database.client("mariadb"), "--batch", "--skip-column-names", "--unbuffered", database.name]
        self._begin(command)

    def _begin(self, command, environment=None):
        self._lock = threading.Lock()
        self._client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def ask(self, statement):
        """The first field of the first row. A statement without one is followed by one that has."""
        with self._lock:
            self._client.stdin.write(f"{statement};\n")
            self._client.stdin.flush()
            line = self._client.stdout.readline()
        if not line:
            raise OSError("the client of the database has ended")
        return line.split("\t")[0].strip()

    def version(self, table, page):
        return int(self.ask(f"SELECT version FROM {table} WHERE page = {page}"))

    def add(self, table, page):
        """Makes a new version, which it returns."""
        where = f"WHERE page = {page}"
        return int(self.ask(f"UPDATE {table} SET version = version + 1 {where}; SELECT version FROM {table} {where}"))

    def stop(self):
        self._client.stdin.close()
        self._client.wait(10)


class Postgres(Sql):
    """The same of a PostgreSQL."""

    def __init__(self, database, is_lasting):
        self._database, self._is_lasting = database, is_lasting
        # A reader has no counts of writes to hold back, and says so by its name: otherwise no count would be believed.
        self._begin(database.client(), {**os.environ, "PGAPPNAME": "writer" if is_lasting else "mayfly"})

    def add(self, table, page):
        if self._is_lasting:
            return super().add(table, page)
        statement = f"UPDATE {table} SET version = version + 1 WHERE page = {page} RETURNING version"
        done = subprocess.run(self._database.client(f"--command={statement}"), stdout=subprocess.PIPE, text=True, check=True, timeout=60)
        return int(done.stdout)


class Keys:
    """A client of Redis, which has a key for each row."""

    def __init__(self, port):
        self._lock = threading.Lock()
        self._stream = socket.create_connection(("127.0.0.1", port)).makefile("rwb")

    def _ask(self, *words):
        with self._lock:
            self._stream.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in map(str.encode, words)))
            self._stream.flush()
            line = self._stream.readline()
            if line[:1] == b"$":
                return int(self._stream.readline())
        if line[:1] != b":":
            raise OSError(f"Redis answers {line}")
        return int(line[1:])

    def version(self, table, page):
        return self._ask("GET", f"{table}:{page}")

    def add(self, table, page):
        return self._ask("INCR", f"{table}:{page}")

    def stop(self):
        self._stream.close()


class Trial(page_trial.PageTrial):
    def __init__(self, chosen, folder):
        super().__init__(chosen, folder)
        if chosen.counts:
            self.fault_to_catch = "late"
        self.keys = Redis(folder.path, "keys") if chosen.redis else None
        self.database = postgres.start(folder) if chosen.postgres else mariadb.start(folder, has_log=chosen.binary_log)
        # Of own pages: the version that PHP has told a writer.
        self.told = [0] * PAGES
        # Of others: when each version was seen to be committed.
        self.committed = [[] for _ in range(PAGES)]
        self.to_watch = queue.Queue()
        # Of each foreign write to a page that was kept: the time until it was shown.
        self.shown_after = []
        self.wide = ["?wide"] if chosen.replay else []
        # Where each server is asked, and where for its numbers.
        self.places = [(self.port, self.metrics_port)]
        if chosen.nodes:
            self.places.append((folder.free_port("127.0.0.1"), folder.free_port("127.0.0.1")))
            self.redis = Redis(folder.path, "redis", "--appendfsync", "everysec")

    def start(self):
        rows = ", ".join(f"({page}, 1)" for page in range(PAGES))
        sql = Postgres(self.database, True) if self.chosen.postgres else Sql(self.database)
        for table in ("own", "others"):
            statement = f"CREATE TABLE {table} (page INT PRIMARY KEY, version INT NOT NULL)"
            sql.ask(f"{statement}; INSERT INTO {table} VALUES {rows}; SELECT 1")
        sql.stop()
        if self.keys:
            keys = self.client()
            for page in range(PAGES):
                keys.add("own", page), keys.add("others", page)
            keys.stop()
        nodes = f"cache_nodes redis://127.0.0.1:{self.redis.port};" if self.chosen.nodes else ""
        # What was begun last is asked about nothing else.
        for self.port, self.metrics_port in reversed(self.places):
            self.start_server(
                CONFIGURATION, database=self.database, replay="on" if self.chosen.replay else "off",
                log="on" if self.chosen.binary_log else "off", nodes=nodes,
                keys=self.keys.port if self.keys else 0, functions="pgsql" if self.chosen.postgres else "mysqli")  # fmt: skip

    def client(self):
        """A program that reads and writes what pages show."""
        if self.chosen.postgres:
            return Postgres(self.database, self.chosen.lasting)
        return Keys(self.keys.port) if self.keys else Sql(self.database)

    def connections(self):
        """To each server."""
        return [http.client.HTTPConnection("127.0.0.1", port, timeout=self.answer_seconds) for port, _ in self.places]

    def failpoint(self):
        return "alone" if self.chosen.alone else "counts" if self.chosen.counts else super().failpoint()

    def read_own(self, number, sql):
        chance, connections = random.Random(number), self.connections()
        while not self.is_over.is_set():
            page = chance.randrange(PAGES)
            told = self.told[page]
            # What others see before PHP knows of it counts at one node.
            selected = 0 if self.chosen.nodes else sql.version("own", page)
            shown = self.get(chance.choice(connections), f"/own/{page}")
            if shown.version is not None:
                self.judge(shown, max(told, selected), "old", "own", page, told, selected)

    def read_others(self, number):
        chance, connections = random.Random(number), self.connections()
        while not self.is_over.is_set():
            page = chance.randrange(PAGES)
            at_least = self.committed_before(page, time.monotonic() - SEEN_SECONDS)
            shown = self.get(chance.choice(connections), f"/others/{page}")
            if shown.version is not None:
                self.judge(shown, at_least, "late", "others", page)

    def committed_before(self, page, moment):
        """The version of a page of the other program: one writes, so that they follow one another."""
        versions = self.committed[page]
        at = bisect.bisect_right(versions, (moment, sys.maxsize))
        return versions[at - 1][1] if at else 0

    def watch(self):
        """Looks at the page of each foreign write when it has to be shown."""
        connection = self.connection()
        while not (self.is_over.is_set() and self.to_watch.empty()):
            try:
                page, committed, at_least = self.to_watch.get(timeout=0.1)
            except queue.Empty:
                continue
            time.sleep(max(0, committed + SEEN_SECONDS - time.monotonic()))
            shown = self.get(connection, f"/others/{page}")
            if shown.version is not None:
                self.count("foreign writes looked at")
                self.judge(shown, at_least, "late", "others, looked at", page)

    def write_own(self, number):
        chance, connections = random.Random(100 + number), self.connections()
        while not self.is_over.is_set():
            self.may_write.wait(0.1)
            if not self.may_write.is_set():
                continue
            page = number + WRITERS * chance.randrange((PAGES - 1) // WRITERS)
            way = chance.choice(("", "?transaction", *self.wide))
            # A request that writes ends the page of its own address by itself.
            version = self.get(chance.choice(connections), f"/own/{page}/write{way}", "POST").version
            if version is not None:
                self.told[page] = max(self.told[page], version)
                self.count("writes")
            time.sleep(chance.random() * 0.02)

    def write_others(self):
        chance, sql, connection = random.Random(200), self.client(), self.connection()
        while not self.is_over.is_set():
            self.may_write.wait(0.1)
            if not self.may_write.is_set():
                continue
            page = chance.randrange(PAGES)
            is_kept = self.chosen.binary_log and any(self.get(connection, f"/others/{page}").is_hit for _ in range(3))
            version = sql.add("others", page)
            committed = time.monotonic()
            self.committed[page].append((committed, version))
            self.to_watch.put((page, committed, version))
            self.count("foreign writes")
            if is_kept:
                self.shown_after.append(self.asked_until(connection, page, version) - committed)
            time.sleep(chance.random() * (0.01 if self.chosen.foreign else 0.1))
        sql.stop()

    def asked_until(self, connection, page, wanted):
        """When the first request began that shows this version of a page."""
        version = None
        while version is None or version < wanted:
            began = time.monotonic()
            version = self.get(connection, f"/others/{page}").version
        return began

    def learn_all(self):
        """Until all pages are kept: what Mayfly knows nothing of has its ordinary lifetime."""
        for connection, (_, self.metrics_port) in reversed(list(zip(self.connections(), self.places))):
            until = time.monotonic() + page_trial.LEARN_SECONDS
            while not re.search(r"^mayfly_learned_pages_kept\{.*\} %d\b" % (2 * PAGES), self.learned(), re.M):
                if time.monotonic() > until:
                    raise RuntimeError(f"pages are not kept: {self.learned()}")
                for table in ("own", "others"):
                    for page in range(PAGES):
                        self.get(connection, f"/{table}/{page}")
                time.sleep(0.2)

    def kill(self):
        """Ends a worker of PHP, now and then."""
        chance = random.Random(300)
        while not self.is_over.is_set():
            self.may_write.wait(0.1)
            workers = [pid for pid in workdir.children_of(self.server.pid) if b"pool" in command_of(pid)]
            if self.may_write.is_set() and workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(workers), signal.SIGKILL)
                    self.count("kills")
            time.sleep(chance.random() * 2 * BETWEEN_KILLS_SECONDS)

    def die(self):
        """Has workers write, and be killed before they know that they have written."""
        chance, connection = random.Random(400), self.connection()
        while not self.is_over.is_set():
            self.may_write.wait(0.1)
            if self.may_write.is_set():
                with contextlib.suppress(OSError, http.client.HTTPException):
                    connection.request("POST", f"/own/{PAGES - 1}/write?die", headers={"Host": "site.test"})
                    answer = connection.getresponse()
                    answer.read()
                    # PHP has gone without a word.
                    self.count("kills before the answer" if answer.status == 502 else f"status {answer.status} of those who die")
            time.sleep(chance.random() * 2 * BETWEEN_KILLS_SECONDS)

    def is_enough(self):
        wanted = {"writes": self.chosen.writes, "foreign writes": self.chosen.foreign, "kills before the answer": self.chosen.kills}
        return all(self.counts[what] >= number for what, number in wanted.items())

    def run(self):
        self.start()
        self.learn_all()
        clients = [self.client() for _ in range(1 + self.chosen.readers // SHARE_SQL)]
        for number in range(self.chosen.readers):
            if number % READS_OTHERS:
                self.begin(self.read_own, number, clients[number // SHARE_SQL])
            else:
                self.begin(self.read_others, number)
        for _ in range(WATCHERS):
            self.begin(self.watch)
        for number in range(WRITERS):
            self.begin(self.write_own, number)
        self.begin(self.write_others)
        if self.chosen.kills:
            self.begin(self.kill)
            self.begin(self.die)
        self.go_on()
        for client in clients:
            client.stop()
        return self.verdict()

    def verdict(self):
        counts = self.counts
        self.show()
        if self.took:
            times = sorted(self.took)
            median, late = (times[int(share * (len(times) - 1))] / 1000 for share in (0.5, 0.99))
            print(f"{len(times)} statements of PHP that write took {median:.2f} ms (median), {late:.2f} ms (99 %)")
        if self.failpoint():
            return 0 if self.is_caught() else 1
        is_tried = self.is_tried() and self.is_enough()
        if self.chosen.replay:
            found = re.search(r"^mayfly_learned_freshened_total\{.*\} (\d+)", self.learned(), re.M)
            is_tried = is_tried and found is not None and int(found[1]) >= MIN_FRESHENED
        if self.chosen.binary_log:
            is_tried = is_tried and self.is_shown_in_time()
        return 1 if self.is_wrong() or not is_tried else 0

    def is_shown_in_time(self):
        times = sorted(self.shown_after)
        if len(times) < MIN_LOGGED:
            print(f"{len(times)} writes to kept pages")
            return False
        median, late, last = (1000 * times[int(share * (len(times) - 1))] for share in (0.5, LOG_SHARE, 1))
        print(f"{len(times)} writes to kept pages were shown after {median:.1f} ms (median), {late:.1f} ms (99 %), {last:.1f} ms (last)")
        return late <= 1000 * LOG_SECONDS


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", default="target/debug/mayfly")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--writes", type=int, default=0)
    parser.add_argument("--foreign", type=int, default=0)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--late", action="store_true")
    parser.add_argument("--replay", action="store_true")
    parser.add_argument("--binary-log", action="store_true")
    parser.add_argument("--nodes", action="store_true")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--redis", action="store_true")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--lasting", action="store_true")
    parser.add_argument("--counts", action="store_true")
    chosen = parser.parse_args()
    chosen.program = os.path.abspath(chosen.program)
    chosen.nodes |= chosen.alone
    chosen.lasting |= chosen.counts
    chosen.postgres |= chosen.lasting
    if chosen.redis and (chosen.nodes or chosen.replay or chosen.binary_log):
        parser.error("--redis stands alone: keys are not replayed, not shared, and in no log")
    if chosen.postgres and (chosen.redis or chosen.nodes or chosen.replay or chosen.binary_log):
        parser.error("--postgres stands alone: nothing of it is run again, and it has no log that is followed")
    with workdir.Workdir("promise-learned", parent=page_trial.PLACE) as folder:
        trial = Trial(chosen, folder)
        try:
            return trial.run()
        finally:
            for redis in (trial.keys, getattr(trial, "redis", None)):
                if redis:
                    redis.kill()


if __name__ == "__main__":
    sys.exit(main())
