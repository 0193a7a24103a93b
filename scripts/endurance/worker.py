#!/usr/bin/env python3
"""Does a worker of PHP grow by the library that tells what pages are made of (`cache_learn`)?

    scripts/endurance/worker.py [--binary target/debug/mayfly] [--requests 86400]

A request a second for a day, as fast as they are answered: one worker with the library and one without it run the same page,
each request under a name of its own, so that each is made anew and learned. Memory and descriptors are looked at after the first
2,000 requests and after the last. Ends with 1 where the worker with the library has more descriptors than before, has
grown by more than 256 KB beyond the other one, or was replaced. It needs root, for a database of its own.
"""

import argparse
import collections
import http.client
import os
import re
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "apps"))

from harness import mariadb, workdir  # noqa: E402

FIRST_REQUESTS = 2_000
MAX_GROWTH_KB = 256
ROWS = 100
# What lies in /tmp is not learned.
SITES = "/var/lib"
START_SECONDS = 30
PAGE = """<?php
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$n = (int) $_GET['n'];
$host = $n % 3 ? 'localhost' : 'p:localhost';
$database = new mysqli($host, $_SERVER['DB_USER'], $_SERVER['DB_PASSWORD'], 'site', null, $_SERVER['DB_SOCKET']);
for ($i = 0; $i < 8; $i++) {
    $row = $database->query("SELECT * FROM pages WHERE page = " . ($n * 7 + $i) % 100)->fetch_row();
}
$prepared = $database->prepare('SELECT version FROM pages WHERE page < ? ORDER BY page LIMIT 9');
$prepared->execute([$n % 100]);
$rows = $prepared->get_result()->fetch_all();
if ($n % 50 == 0) $database->query("UPDATE pages SET version = version + 1 WHERE page = " . $n % 100);
for ($i = 0; $i < 20; $i++) file_exists(__DIR__ . '/part' . ($n + $i) % 1000);
if ($n % 97 == 0) file_get_contents(__FILE__);
header('Worker: ' . getmypid());
echo count($rows), ' ', $row[1], "\\n";
"""
CONFIGURATION = """pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
    php_pool learned {{ workers 1; }}
    php_pool plain {{ workers 1; }}
    fastcgi_cache_path {folder}/stored keys_zone=pages:20m;
    fastcgi_param SCRIPT_FILENAME {folder}/site/page.php;
    fastcgi_param QUERY_STRING $query_string;
    fastcgi_param REQUEST_METHOD $request_method;
    fastcgi_param DB_USER {database.user};
    fastcgi_param DB_PASSWORD {database.password};
    fastcgi_param DB_SOCKET {database.socket};
    fastcgi_cache pages;
    fastcgi_cache_key $request_uri;
    fastcgi_cache_valid 200 1s;
    server {{
        listen {address}:{port};
        location = /metrics {{ metrics; }}
        location /plain {{ fastcgi_pass php:plain; }}
        location /learned {{
            fastcgi_pass php:learned;
            cache_learn on;
            cache_learn_database unix:{database.socket} {database.user} {database.password};
        }}
    }}
}}
"""


class Visitor:
    """Asks for the page of one pool, again and again, over one connection."""

    def __init__(self, folder, port, pool):
        self.address, self.pool, self.asked = (folder.address, port), pool, 0
        self.connection = http.client.HTTPConnection(*self.address, timeout=120)
        self.workers = collections.Counter()

    def ask(self, requests):
        for _ in range(requests):
            self.asked += 1
            self.connection.request("GET", f"/{self.pool}?n={self.asked}")
            answer = self.connection.getresponse()
            text = answer.read()
            if answer.status != 200 or b"\n" not in text:
                raise RuntimeError(f"/{self.pool}?n={self.asked} answers {answer.status}: {text[:300]}")
            self.workers[int(answer.getheader("Worker"))] += 1

    def measure(self):
        """Kilobytes of anonymous memory, and descriptors."""
        pid = next(iter(self.workers))
        with open(f"/proc/{pid}/status") as file:
            anonymous = next(int(line.split()[1]) for line in file if line.startswith("RssAnon:"))
        return anonymous, len(os.listdir(f"/proc/{pid}/fd"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "target/debug/mayfly"))
    parser.add_argument("--requests", type=int, default=86_400)
    args = parser.parse_args()
    with workdir.Workdir("endurance-worker", parent=SITES) as folder:
        port = start(folder, os.path.abspath(args.binary))
        visitors = [Visitor(folder, port, pool) for pool in ("learned", "plain")]
        together(visitors, FIRST_REQUESTS)
        before = [visitor.measure() for visitor in visitors]
        together(visitors, args.requests - FIRST_REQUESTS)
        after = [visitor.measure() for visitor in visitors]
        learned = learned_pages(folder, port)
    for visitor, (memory, files), (more_memory, more_files) in zip(visitors, before, after, strict=True):
        print(f"{visitor.pool}: {visitor.asked} requests, {len(visitor.workers)} worker; {memory} KB and {files} descriptors after "
              f"{FIRST_REQUESTS}, {more_memory} KB and {more_files} at the end")  # fmt: skip
    print(f"{learned} pages were learned")
    growth = [end[0] - begin[0] for begin, end in zip(before, after, strict=True)]
    is_right = growth[0] <= max(growth[1], 0) + MAX_GROWTH_KB and after[0][1] <= before[0][1]
    is_right &= all(len(visitor.workers) == 1 for visitor in visitors) and learned > 0
    sys.exit(not is_right)


def start(folder, binary):
    """A database, and a server before it; returns its port."""
    database = mariadb.start(folder)
    rows = ", ".join(f"({page}, 1)" for page in range(ROWS))
    statements = f"CREATE TABLE pages (page INT PRIMARY KEY, version INT NOT NULL); INSERT INTO pages VALUES {rows};"
    command = ["mariadb", "--no-defaults", f"--socket={database.socket}", f"--user={database.user}",
               f"--password={database.password}", "-e", statements, database.name]  # fmt: skip
    subprocess.run(command, check=True, timeout=30)
    port = folder.free_port()
    folder.mkdir("site")
    folder.write("site/page.php", PAGE)
    text = CONFIGURATION.format(folder=folder.path, database=database, address=folder.address, port=port)
    process = folder.spawn("mayfly", [binary, "-c", folder.write("server.conf", text)])
    workdir.wait_for("mayfly", workdir.listens(folder.address, port), START_SECONDS, process)
    return port


def together(visitors, requests):
    failed = []

    def work(visitor):
        try:
            visitor.ask(requests)
        except (OSError, RuntimeError, http.client.HTTPException) as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(visitor,)) for visitor in visitors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def learned_pages(folder, port):
    """How many renders the server counts as learned."""
    connection = http.client.HTTPConnection(folder.address, port, timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    return sum(int(number) for number in re.findall(r"^mayfly_learned_renders_total\{.*\} (\d+)", text, re.M))


if __name__ == "__main__":
    main()
