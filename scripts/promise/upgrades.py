#!/usr/bin/env python3
"""Upgrades of the program under visitors and purges, judged by content: does a request fail, or is a page ever
older than a purge that was answered, mixed or torn?

    scripts/promise/upgrades.py [--program target/debug/mayfly] [--upgrades 20] [--connections 20] [--purges 100] [--user root]

One server on loopback, one application whose pages say which version they are, visitors on connections of HTTP/1.1
that they keep while the server lets them, and one who changes pages and purges them, so many times a second. Each
upgrade is `mayfly upgrade`, and the next one begins when the process before has ended. HTTP/2 and HTTP/3 are
in the tests of the program (`upgrade::`). Ends with 1 where something was wrong.
"""

import argparse
import http.client
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import kills

END_SECONDS = 30


class Upgrades(kills.Trial):
    def __init__(self, arguments, folder):
        arguments.seed = 1
        super().__init__(arguments, folder)
        self.pause = 1 / arguments.purges
        self.user = arguments.user
        self.counts = dict.fromkeys(("answers", "hits", "purges", "connections", "failed", "old", "torn"), 0)

    def start(self):
        text = kills.CONFIGURATION.format(folder=self.folder, port=self.port, upstream=self.upstream.server_port)
        path = os.path.join(self.folder, "server.conf")
        with open(path, "w") as file:
            file.write(text)
        account = ["-g", f"user {self.user};"] if os.getuid() == 0 else []
        server = subprocess.Popen(
            [self.program, "-p", self.folder, *account, "-c", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + kills.START_SECONDS
        while not os.path.exists(os.path.join(self.folder, "pid")):
            if server.poll() is not None or time.monotonic() > until:
                sys.exit(f"no start: {self.log()}")
            time.sleep(0.01)
        return server

    def pid(self):
        with open(os.path.join(self.folder, "pid")) as file:
            return int(file.read())

    def visit(self):
        connection = None
        while self.is_running.is_set():
            page = random.randrange(kills.PAGES)
            at_least = self.pages.purged[page]
            try:
                if connection is None:
                    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
                    self.count("connections")
                connection.request("GET", f"/p/{page}")
                response = connection.getresponse()
                body, cache = response.read(), response.getheader("Cache-Status", "")
                if response.will_close:
                    connection.close()
                    connection = None
            except (OSError, http.client.HTTPException) as error:
                self.count("failed")
                self.examples.append(repr(error))
                connection = None
                continue
            self.count("answers" if response.status == 200 else "failed")
            if "hit" in cache:
                self.count("hits")
            version = kills.judge(page, body)
            if version is None or version < at_least:
                self.count("torn" if version is None else "old")
                self.examples.append((page, version, at_least, cache))

    def change(self):
        while self.is_running.is_set():
            page = self.random.randrange(kills.PAGES)
            self.pages.version[page] += 1
            version = self.pages.version[page]
            try:
                status, _, _ = kills.ask(self.port, "PURGE", f"/p/{page}")
            except (OSError, http.client.HTTPException) as error:
                self.count("failed")
                self.examples.append(f"purge: {error!r}")
                continue
            if status in (200, 404):
                self.count("purges")
                self.pages.purged[page] = version
            time.sleep(self.pause)

    def upgrade(self):
        old = self.pid()
        command = [self.program, "upgrade", "--socket", os.path.join(self.folder, "pid.control")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=130)
        if done.returncode != 0:
            sys.exit(f"no upgrade: {done.stderr} {self.log()}")
        until = time.monotonic() + END_SECONDS
        while time.monotonic() < until:
            try:
                os.kill(old, 0)
                # A child of this script stays until it was waited for.
                os.waitpid(old, os.WNOHANG)
            except (ProcessLookupError, ChildProcessError):
                if not os.path.exists(f"/proc/{old}"):
                    return
            time.sleep(0.01)
        sys.exit(f"process {old} does not end: {self.log()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", default="target/debug/mayfly")
    parser.add_argument("--upgrades", type=int, default=20)
    parser.add_argument("--connections", type=int, default=20)
    parser.add_argument("--purges", type=int, default=100)
    parser.add_argument("--user", default="root")
    arguments = parser.parse_args()
    arguments.program = os.path.abspath(arguments.program)
    with tempfile.TemporaryDirectory(prefix="mayfly-upgrades-") as folder:
        os.chmod(folder, 0o755)
        trial = Upgrades(arguments, folder)
        trial.start()
        trial.is_running.set()
        work = [threading.Thread(target=trial.visit) for _ in range(arguments.connections)]
        work.append(threading.Thread(target=trial.change))
        for thread in work:
            thread.start()
        try:
            for _ in range(arguments.upgrades):
                trial.upgrade()
        finally:
            trial.is_running.clear()
            for thread in work:
                thread.join()
            os.kill(trial.pid(), signal.SIGQUIT)
        counts = trial.counts
        print(f"{arguments.upgrades} upgrades: " + ", ".join(f"{count} {what}" for what, count in counts.items()))
        print(f"hit ratio {100 * counts['hits'] / max(1, counts['answers']):.2f} %")
        wrong = counts["old"] + counts["torn"] + counts["failed"]
        if wrong:
            print(f"{trial.examples[:5]}\n{trial.log()}")
        return 1 if wrong or not counts["purges"] else 0


if __name__ == "__main__":
    sys.exit(main())
