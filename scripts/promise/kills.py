#!/usr/bin/env python3
"""kill -9 at random moments during changes and purges, judged by content: is a page ever older than a purge
that was answered, mixed or torn?

    scripts/promise/kills.py [--program target/debug/mayfly] [--kills 20] [--seed 1]

One server on loopback with its pages on disk, one application whose pages say which version they are, readers,
and one who changes pages and purges them, by address and by tag. The server is killed, and started again on the
same folder. Ends with 1 where a page was wrong, or where nothing was read from the disk: then nothing was tried.
"""

import argparse
import http.client
import http.server
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))

from lib.ports import free_port  # noqa: E402

PAGES = 40
LINES = 300
READERS = 4
START_SECONDS = 20

CONFIGURATION = """
daemon off;
worker_processes 2;
pid {folder}/pid;
error_log {folder}/error.log info;
events {{}}
http {{
    access_log off;
    proxy_cache_path {folder}/cache keys_zone=pages:1m memory=2m max_size=64m;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://127.0.0.1:{upstream};
            proxy_cache pages;
            proxy_cache_key $uri;
            proxy_cache_valid 200 1h;
            proxy_cache_purge PURGE from 127.0.0.1;
            cache_tags on;
        }}
    }}
}}
"""


class Pages:
    """What the application would show, and what was purged."""

    def __init__(self):
        self.lock = threading.Lock()
        self.version = [1] * PAGES
        self.purged = [0] * PAGES


class Application(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    pages = None

    def do_GET(self):
        page = int(self.path.rsplit("/", 1)[1])
        version = self.pages.version[page]
        time.sleep(random.random() * 0.004)
        body = body_of(page, version)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Tag", f"page-{page}")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def body_of(page, version):
    lines = LINES if page % 4 == 0 else 3
    return b"".join(b"page %d version %06d line %d\n" % (page, version, line) for line in range(lines))


def judge(page, body):
    """The version of a whole page; None where it is torn or mixed."""
    try:
        version = int(body.split(b" ")[3])
    except (IndexError, ValueError):
        return None
    return version if body == body_of(page, version) else None


def ask(port, method, path, fields=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, path, headers=fields or {})
        response = connection.getresponse()
        return response.status, response.getheader("Cache-Status", ""), response.read()
    finally:
        connection.close()


class Upstream(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A server that was killed has let go of its connections."""


class Trial:
    def __init__(self, arguments, folder):
        self.program, self.folder = arguments.program, folder
        self.random = random.Random(arguments.seed)
        self.port, self.pages = free_port(), Pages()
        Application.pages = self.pages
        self.upstream = Upstream(("127.0.0.1", 0), Application)
        threading.Thread(target=self.upstream.serve_forever, daemon=True).start()
        self.counts = dict.fromkeys(("answers", "purges", "from disk", "old", "torn"), 0)
        self.is_running = threading.Event()
        self.examples = []

    def count(self, what):
        with self.pages.lock:
            self.counts[what] += 1

    def start(self):
        text = CONFIGURATION.format(folder=self.folder, port=self.port, upstream=self.upstream.server_port)
        path = os.path.join(self.folder, "server.conf")
        with open(path, "w") as file:
            file.write(text)
        account = ["-g", "user root;"] if os.getuid() == 0 else []
        server = subprocess.Popen(
            [self.program, "-p", self.folder, *account, "-c", path],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            try:
                ask(self.port, "GET", "/p/0")
                return server
            except OSError:
                if server.poll() is not None:
                    break
                time.sleep(0.01)
        sys.exit(f"no start: {self.log()}")

    def log(self):
        with open(os.path.join(self.folder, "error.log")) as file:
            return file.read()[-2000:]

    def read(self):
        while self.is_running.is_set():
            page = random.randrange(PAGES)
            at_least = self.pages.purged[page]
            try:
                status, cache, body = ask(self.port, "GET", f"/p/{page}")
            except (OSError, http.client.HTTPException):
                # It was killed meanwhile.
                continue
            if status != 200:
                continue
            self.count("answers")
            if "detail=disk" in cache:
                self.count("from disk")
            version = judge(page, body)
            if version is None:
                self.count("torn")
            elif version < at_least:
                self.count("old")
                self.examples.append((page, version, at_least, cache))

    def change(self):
        while self.is_running.is_set():
            page = self.random.randrange(PAGES)
            self.pages.version[page] += 1
            version = self.pages.version[page]
            path, fields = f"/p/{page}", None
            if self.random.random() < 0.3:
                path, fields = "/", {"xkey-purge": f"page-{page}"}
            try:
                status, _, _ = ask(self.port, "PURGE", path, fields)
            except (OSError, http.client.HTTPException):
                continue
            if status in (200, 404):
                self.count("purges")
                self.pages.purged[page] = version
            time.sleep(self.random.random() * 0.01)

    def round(self):
        server = self.start()
        self.is_running.set()
        work = [threading.Thread(target=self.read) for _ in range(READERS)]
        work.append(threading.Thread(target=self.change))
        for thread in work:
            thread.start()
        time.sleep(0.05 + self.random.random() * 0.6)
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        self.is_running.clear()
        for thread in work:
            thread.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", default="target/debug/mayfly")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mayfly-kills-") as folder:
        trial = Trial(arguments, folder)
        for _ in range(arguments.kills):
            trial.round()
        counts = trial.counts
        print(f"{arguments.kills} kills: " + ", ".join(f"{count} {what}" for what, count in counts.items()))
        if counts["old"] or counts["torn"]:
            print(f"page, version, purged, Cache-Status: {trial.examples[:5]}\n{trial.log()}")
        return 1 if counts["old"] or counts["torn"] or not counts["from disk"] else 0


if __name__ == "__main__":
    sys.exit(main())
