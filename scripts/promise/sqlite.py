#!/usr/bin/env python3
"""Pages that are kept by the SQLite database they were made of (`cache_learn on`): is any answer older than the database?

    scripts/promise/sqlite.py [--program target/debug/mayfly] [--seconds 60] [--readers 16] [--kills 0] [--late]

A server on loopback with a PHP pool of its own, and pages that show which version of a row they were made from, in one
database for each kind of journal, over connections that end with the page and, but for a write-ahead log, persistent ones: a
worker that has such a log open makes no page that is learned. What is not learned has its
ordinary lifetime, a millisecond: it is no part of the promise. PHP and other programs write, the latter with checkpoints, VACUUM
and transactions that are larger than their cache. Readers ask the database themselves, with a plain SELECT, then ask for the page:
an answer is old if it shows an earlier version than the one that was selected before it was asked for, or that a writer
was told. Now and then all writing stops, so that pages are kept. With --kills, so many of the other programs are killed
in the middle of a transaction, which the next reader takes back.

Ends with 1 where an answer was old, or where too few were kept: then nothing was tried. With --late the server
takes the states that count for a page at the end of its fetch, not at its begin, which a build with debug assertions can
be told: it ends with 0 if old answers are found.
"""

import argparse
import collections
import contextlib
import os
import random
import sqlite3
import subprocess
import sys
import time

import page_trial  # It makes harness importable.
from harness import workdir

JOURNALS = ["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "WAL"]
# In each database: some are written by PHP alone, some by others alone, so that versions are known after a kill too.
OWN_PAGES, PAGES = 2, 4
WRITERS = 2
WAIT_SECONDS = 20

CONFIGURATION = """
daemon off; worker_processes 2; pid {folder}/pid; error_log {folder}/error.log info;
user root; env MAYFLY_FAILPOINT_LEARN;
php_pool site {{ workers 6; user www-data; }}
events {{ worker_connections 1024; }}
http {{
    access_log off;
    fastcgi_cache_path {folder}/cache keys_zone=pages:10m;
    server {{
        listen 127.0.0.1:{port};
        server_name site.test;
        keepalive_requests 100000000;
        location / {{
            fastcgi_pass php:site;
            fastcgi_cache pages; fastcgi_cache_key $request_uri; fastcgi_cache_valid 200 1ms; fastcgi_cache_lock on;
            cache_learn on;
            fastcgi_param SCRIPT_FILENAME {folder}/sqlite.php;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param PAGE $uri;
            add_header X-Cache $upstream_cache_status;
        }}
    }}
    server {{ listen 127.0.0.1:{metrics}; location = /metrics {{ metrics; }} }}
}}
"""

# Writes one database for as long as lines come, and says the page and its version after each.
OTHER_PROGRAM = f"""
import os, random, sqlite3, sys
file, journal, seed = sys.argv[1:]
chance = random.Random(int(seed))
db = sqlite3.connect(file, isolation_level=None, timeout={WAIT_SECONDS})
db.execute(f"PRAGMA journal_mode={{journal}}")
db.execute("PRAGMA cache_size=2")
for line in sys.stdin:
    page = chance.randrange({OWN_PAGES}, {PAGES})
    way = chance.random()
    if way < 0.5:
        db.execute("UPDATE page SET version = version + 1 WHERE page = ?", [page])
    else:
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE page SET version = version + 1 WHERE page = ?", [page])
        if way > 0.8 or line.startswith("die"):
            db.execute("DELETE FROM much")
            for number in range(30):
                db.execute("INSERT INTO much VALUES (zeroblob(?))", [chance.randrange(9000)])
        if line.startswith("die"):
            os.kill(os.getpid(), 9)
        db.execute("COMMIT" if way < 0.95 else "ROLLBACK")
    [version] = db.execute("SELECT version FROM page WHERE page = ?", [page]).fetchone()
    print(page, version, flush=True)
    if way < 0.1:
        db.execute("PRAGMA wal_checkpoint(%s)" % chance.choice(["PASSIVE", "RESTART", "TRUNCATE"])).fetchall()
    elif way < 0.13:
        db.execute("VACUUM")
"""


class Trial(page_trial.PageTrial):
    answer_seconds = end_seconds = 2 * WAIT_SECONDS

    def __init__(self, chosen, folder):
        super().__init__(chosen, folder)
        # By journal and page: the version that a writer was told.
        self.told = collections.Counter()

    def is_enough(self):
        return self.counts["kills"] >= self.chosen.kills

    def ways(self, journal):
        return [""] if journal == "WAL" else ["", "?persistent"]

    def file(self, journal):
        return self.folder.join("data", f"{journal}.db")

    def start(self):
        os.chmod(self.folder.mkdir("data"), 0o777)
        for journal in JOURNALS:
            with contextlib.closing(sqlite3.connect(self.file(journal), isolation_level=None)) as database:
                database.execute(f"PRAGMA journal_mode={journal}")
                database.execute("CREATE TABLE page (page INT PRIMARY KEY, version INT NOT NULL)")
                database.execute("CREATE TABLE much (bytes)")
                database.executemany("INSERT INTO page VALUES (?, 1)", [[page] for page in range(PAGES)])
            os.chmod(self.file(journal), 0o666)
        self.start_server(CONFIGURATION)

    def read(self, number):
        chance, connection = random.Random(number), self.connection()
        while not self.is_over.is_set():
            journal, page = chance.choice(JOURNALS), chance.randrange(PAGES)
            told = self.told[journal, page]
            with contextlib.closing(sqlite3.connect(self.file(journal), timeout=WAIT_SECONDS)) as database:
                [selected] = database.execute("SELECT version FROM page WHERE page = ?", [page]).fetchone()
            shown = self.get(connection, f"/{journal}/{page}{chance.choice(self.ways(journal))}")
            if shown.version is not None:
                self.judge(shown, max(told, selected), "old", journal, page, told, selected)

    def write(self, number):
        """By PHP."""
        chance, connection = random.Random(100 + number), self.connection()
        while not self.is_over.is_set():
            self.may_write.wait(0.1)
            if not self.may_write.is_set():
                continue
            journal, page = chance.choice(JOURNALS), chance.randrange(OWN_PAGES)
            version = self.get(connection, f"/{journal}/{page}{chance.choice([*self.ways(journal), '?transaction'])}", "POST").version
            if version is not None:
                self.tell(journal, page, version)
                self.count("writes")
            time.sleep(chance.random() * 0.05)

    def tell(self, journal, page, version):
        with self.lock:
            self.told[journal, page] = max(self.told[journal, page], version)

    def write_others(self, number, journal):
        """By another program, which is begun anew once it was killed."""
        chance, program = random.Random(200 + number), None
        while not self.is_over.is_set():
            self.may_write.wait(0.1)
            if not self.may_write.is_set():
                continue
            if program is None:
                command = [sys.executable, "-c", OTHER_PROGRAM, self.file(journal), journal, str(chance.randrange(1 << 30))]
                program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            # Without a journal on disk, a program that is killed leaves a broken database.
            dies = self.chosen.kills and journal != "MEMORY" and chance.random() < 0.05
            program.stdin.write("die\n" if dies else "go\n")
            program.stdin.flush()
            line = program.stdout.readline()
            if line:
                page, version = map(int, line.split())
                self.tell(journal, page, version)
                self.count("foreign writes")
            else:
                self.count("kills" if program.wait() == -9 else "broken programs")
                program = None
            time.sleep(chance.random() * 0.1)
        if program:
            program.stdin.close()
            program.wait(WAIT_SECONDS)

    def learn_all(self):
        """Until all pages are kept: the script is new, and what Mayfly knows nothing of has its ordinary lifetime."""
        connection, until = self.connection(), time.monotonic() + page_trial.LEARN_SECONDS
        left = [f"/{journal}/{page}{way}" for journal in JOURNALS for page in range(PAGES) for way in self.ways(journal)]
        while left:
            if time.monotonic() > until:
                raise RuntimeError(f"{left} are not kept: {self.learned()}")
            left = [target for target in left if self.get(connection, target).age < 1]
            time.sleep(0.2)

    def run(self):
        self.start()
        self.learn_all()
        for number in range(self.chosen.readers):
            self.begin(self.read, number)
        for number in range(WRITERS):
            self.begin(self.write, number)
        for number, journal in enumerate(JOURNALS):
            self.begin(self.write_others, number, journal)
        self.go_on()
        return self.verdict()

    def verdict(self):
        self.show()
        if self.chosen.late:
            return 0 if self.counts["old"] else 1
        return 1 if self.is_wrong() or not self.is_tried() else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", default="target/debug/mayfly")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--readers", type=int, default=16)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--late", action="store_true")
    chosen = parser.parse_args()
    chosen.program = os.path.abspath(chosen.program)
    with workdir.Workdir("promise-sqlite", parent=page_trial.PLACE) as folder:
        return Trial(chosen, folder).run()


if __name__ == "__main__":
    sys.exit(main())
