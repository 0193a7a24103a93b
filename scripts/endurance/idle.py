#!/usr/bin/env python3
"""What an idle server gives back: anonymous memory at the start, after the first visitors, full of pages, and when
everything was purged and nobody comes.

    scripts/endurance/idle.py [--binary target/release/mayfly] [--pages 4000] [--rest 60]

Pages of 21 KB with tags, half of them asked for compressed, over 16 connections. Ends with 1 where the server then has more
than 1.3 times the memory that it had after the first visitors, or wakes up all the time.
"""

import argparse
import concurrent.futures
import http.client
import http.server
import os
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "bench"))

from lib import process, subject  # noqa: E402

PAGE_BYTES = 21 * 1024
CLIENTS = 16
FIRST_VISITORS = 40
MAX_MEMORY_TIMES = 1.3
LOOKED_AT_SECONDS = 10
MAX_WAKE_UPS_A_SECOND = 1


class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        line = f"{self.path} of an origin whose pages are as long as those of an application\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(PAGE_BYTES))
        self.send_header("Cache-Tag", f"page{self.path.replace('/', '-')}, all")
        self.end_headers()
        self.wfile.write((line * (PAGE_BYTES // len(line) + 1))[:PAGE_BYTES])

    def log_message(self, *_):
        pass


class Server(subject.Daemon):
    """The program, whose anonymous memory is looked at."""

    def __init__(self, binary, folder, origin_port):
        super().__init__("mayfly", folder)
        path = self.configure(os.path.join(HERE, "idle.conf"), "mayfly", {"ORIGIN": origin_port})
        self.start([binary, "-p", self.folder, "-c", path])
        self.wait()

    def anonymous_mb(self):
        return process.memory_bytes(self._processes[0].pid, field="RssAnon") / (1 << 20)

    def wake_ups(self):
        """How often all its threads went to sleep by themselves so far."""
        total = 0
        for pid in process.tree(self._processes[0].pid):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/status") as file:
                    total += sum(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt"))
        return total

    def ask(self, pages):
        """Each of the pages once, over some connections; every other one is asked for compressed."""
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as crowd:
            list(crowd.map(self._ask_some, (pages[number::CLIENTS] for number in range(CLIENTS))))

    def _ask_some(self, pages):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        for page in pages:
            fields = {"Accept-Encoding": "gzip"} if page % 2 else {}
            self._exchange(connection, "GET", f"/{page}", headers=fields)
        connection.close()

    def purge_all(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        fields = {"Content-Type": "application/json"}
        self._exchange(connection, "POST", "/purge", body='{"everything":true}', headers=fields)
        connection.close()

    @staticmethod
    def _exchange(connection, method, path, **options):
        connection.request(method, path, **options)
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise RuntimeError(f"{path} is answered with {response.status}")


def measure(server, arguments):
    time.sleep(2)
    figures = {"start": server.anonymous_mb()}
    server.ask(range(FIRST_VISITORS))
    time.sleep(2)
    figures["first visitors"] = server.anonymous_mb()
    server.ask(range(arguments.pages))
    figures["full"] = server.anonymous_mb()
    server.purge_all()
    until = time.monotonic() + arguments.rest
    while time.monotonic() < until:
        time.sleep(min(10, arguments.rest))
        seconds = arguments.rest - (until - time.monotonic())
        figures[f"idle for {seconds:.0f} s"] = server.anonymous_mb()
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "target/release/mayfly"))
    parser.add_argument("--pages", type=int, default=4000)
    parser.add_argument("--rest", type=float, default=60)
    arguments = parser.parse_args()
    origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    origin.daemon_threads = True
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    with subject.Folder() as folder, Server(os.path.abspath(arguments.binary), folder, origin.server_port) as server:
        figures = measure(server, arguments)
        before = server.wake_ups()
        time.sleep(LOOKED_AT_SECONDS)
        woken = (server.wake_ups() - before) / LOOKED_AT_SECONDS
    for what, megabytes in figures.items():
        print(f"{what}: {megabytes:.1f} MB")
    times = megabytes / figures["first visitors"]
    print(f"{times:.2f} times the memory after the first visitors, {woken:.1f} wake-ups a second")
    return 1 if times > MAX_MEMORY_TIMES or woken > MAX_WAKE_UPS_A_SECOND else 0


if __name__ == "__main__":
    sys.exit(main())
