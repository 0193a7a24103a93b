#!/usr/bin/env python3
"""Upgrades of the program under visitors and purges, judged by content: does a request fail, or is a page ever
older than a purge that was answered, mixed or torn?

    scripts/promise/upgrades.py [--program target/debug/mayfly] [--upgrades 20] [--failing 4] [--stopped 2] [--connections 20]
                                [--purges 100] [--user root] [--visitors target/debug/bench-visitors]

One server on loopback, one application whose pages say which version they are, visitors on connections of HTTP/1.1
that they keep while the server lets them, and one who changes pages and purges, so many times a second: one purge of ten
is of a page that visitors ask for. With --visitors (cargo build -p bench-tools) there are as many connections of HTTP/2 and
of HTTP/3. Each upgrade is `mayfly upgrade`, and the next one begins when the process before has ended. In between there are upgrades
that fail: the new program refuses its configuration, or ends at once; the old one must go on. At the end there are upgrades
whose old process is stopped (SIGSTOP) once the new one serves: purges must hold all the same, so that it is killed, and its
visitors have to ask again, which is counted apart. Ends with 1 where something was wrong.
"""

import argparse
import contextlib
import http.client
import json
import mmap
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import kills  # It makes bench importable.
import encrypted
from lib import process
from lib.ports import free_port

END_SECONDS = 30
# Of the purges, those that visitors notice; and how many others there are to purge.
OF_VISITED_PAGES = 0.1
OTHER_PAGES = 1000
VERSION_BYTES = 4
MB = 1 << 20
LOOK_AT_MEMORY_SECONDS = 0.2
SETTLED_SECONDS = 3
# Longer than any run: whoever asks by then is ended.
VISIT_SECONDS = 24 * 3600

CONFIGURATION = """
daemon off;
worker_processes 2;
pid {folder}/pid;
error_log {folder}/error.log info;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 100000000;
    ssl_certificate {certificate};
    ssl_certificate_key {certificate};
    proxy_cache_path {folder}/cache keys_zone=pages:1m memory=16m max_size=64m;
    server {{
        listen 127.0.0.1:{port};
        listen 127.0.0.1:{tls_port} ssl;
        listen 127.0.0.1:{tls_port} quic;
        http2 on;
        location / {{
            proxy_pass http://127.0.0.1:{upstream};
            proxy_cache pages;
            proxy_cache_key $uri;
            proxy_cache_valid 200 1h;
            proxy_cache_purge PURGE from 127.0.0.1;
            add_header X-Cache $upstream_cache_status;
        }}
    }}
}}
"""


class Upgrades(kills.Trial):
    def __init__(self, arguments, folder):
        arguments.seed = 1
        super().__init__(arguments, folder)
        # One of its own, whose file is changed.
        self.program = shutil.copy(self.program, os.path.join(folder, "mayfly"))
        self.configuration = os.path.join(folder, "server.conf")
        self.pause = 1 / arguments.purges
        self.user = arguments.user
        self.counts = dict.fromkeys(("answers", "hits", "purges", "connections", "failed", "old", "torn"), 0)
        self.tls_port = free_port()
        self.command = arguments.program
        self.certificate, _ = encrypted.make_keys(folder)
        # What other programs judge by: a number for each page.
        self.purged_file = os.path.join(folder, "purged")
        with open(self.purged_file, "wb") as file:
            file.write(bytes(VERSION_BYTES * kills.PAGES))
        with open(self.purged_file, "r+b") as file:
            self.purged = mmap.mmap(file.fileno(), 0)
        self.most_memory = 0

    def start(self):
        text = CONFIGURATION.format(
            folder=self.folder, port=self.port, tls_port=self.tls_port, certificate=self.certificate,
            upstream=self.upstream.server_port)
        with open(self.configuration, "w") as file:
            file.write(text)
        account = ["-g", f"user {self.user};"] if os.getuid() == 0 else []
        server = subprocess.Popen(
            [self.program, "-p", self.folder, *account, "-c", self.configuration], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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

    def other_protocols(self, program, connections):
        """Visitors over HTTP/2 and HTTP/3, who judge what they get as well, and tell it when they are ended."""
        for protocol, options in (("http2", ["--tls"]), ("http3", [])):
            command = [program, protocol, f"127.0.0.1:{self.tls_port}", "/p/", str(VISIT_SECONDS), *options,
                       "--keepers", str(connections), "--judge", self.purged_file]  # fmt: skip
            yield subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def hear(self, visitors):
        """What they have counted."""
        visitors.send_signal(signal.SIGINT)
        told = json.loads(visitors.communicate(timeout=60)[0])["kept"]
        print(f"{visitors.args[1]}: {told}", flush=True)
        self.counts["answers"] += told["asked"] - told["failed"]
        self.counts["hits"] += told["cache"].get("HIT", 0)
        for what in ("failed", "old", "torn"):
            self.counts[what] += told[what]

    def memory(self):
        """Of all processes of the program that serve here; a page that several have counts once."""
        found = 0
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{entry}/cmdline") as file:
                if file.read().startswith(f"{self.program}\0") and os.readlink(f"/proc/{entry}/exe") == self.program:
                    found += process.proportional_bytes(int(entry))
        return found

    def look_at_memory(self):
        while self.is_running.is_set():
            self.most_memory = max(self.most_memory, self.memory())
            time.sleep(LOOK_AT_MEMORY_SECONDS)

    def change(self):
        while self.is_running.is_set():
            if self.random.random() > OF_VISITED_PAGES:
                self.purge(f"/q/{self.random.randrange(OTHER_PAGES)}")
                time.sleep(self.pause)
                continue
            page = self.random.randrange(kills.PAGES)
            self.pages.version[page] += 1
            version = self.pages.version[page]
            if self.purge(f"/p/{page}"):
                self.pages.purged[page] = version
                at = page * VERSION_BYTES
                self.purged[at : at + VERSION_BYTES] = version.to_bytes(VERSION_BYTES, "little")
            time.sleep(self.pause)

    def purge(self, path):
        """Whether it was answered, so that it holds."""
        try:
            status, _, _ = kills.ask(self.port, "PURGE", path)
        except (OSError, http.client.HTTPException) as error:
            self.count("failed")
            self.examples.append(f"purge: {error!r}")
            return False
        self.count("purges" if status in (200, 404) else "failed")
        return status in (200, 404)

    def upgrade(self, old_stops=False):
        old = self.pid()
        command = [self.command, "upgrade", "--socket", os.path.join(self.folder, "pid.control")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=130)
        if done.returncode != 0:
            sys.exit(f"no upgrade: {done.stderr} {self.log()}")
        if old_stops:
            os.kill(old, signal.SIGSTOP)
        self.wait_for_end(old)

    def fail(self, how):
        """An upgrade that must fail, and leave the old process as it is."""
        old, changed = self.pid(), self.configuration if how == "refused" else self.program
        aside = f"{changed}.aside"
        os.rename(changed, aside)
        if how == "refused":
            with open(changed, "w") as file:
                file.write("nonsense;\n")
        else:
            shutil.copy("/bin/false", changed)
        command = [self.command, "upgrade", "--socket", os.path.join(self.folder, "pid.control")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=130)
        os.rename(aside, changed)
        if done.returncode != 1 or self.pid() != old or not done.stderr:
            sys.exit(f"an upgrade that is {how} ends with {done.returncode}: {done.stderr} {self.log()}")

    def wait_for_end(self, old):
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
    parser.add_argument("--failing", type=int, default=4)
    parser.add_argument("--stopped", type=int, default=2)
    parser.add_argument("--connections", type=int, default=20)
    parser.add_argument("--purges", type=int, default=100)
    parser.add_argument("--user", default="root")
    parser.add_argument("--visitors")
    arguments = parser.parse_args()
    arguments.program = os.path.abspath(arguments.program)
    with tempfile.TemporaryDirectory(prefix="mayfly-upgrades-") as folder:
        os.chmod(folder, 0o755)
        trial = Upgrades(arguments, folder)
        trial.start()
        trial.is_running.set()
        work = [threading.Thread(target=trial.visit) for _ in range(arguments.connections)]
        work += [threading.Thread(target=trial.change), threading.Thread(target=trial.look_at_memory)]
        for thread in work:
            thread.start()
        others = list(trial.other_protocols(arguments.visitors, arguments.connections)) if arguments.visitors else []
        try:
            time.sleep(SETTLED_SECONDS)
            before, trial.most_memory = trial.memory(), 0
            for number in range(max(arguments.upgrades, arguments.failing)):
                if number < arguments.failing:
                    trial.fail(("refused", "ended")[number % 2])
                if number < arguments.upgrades:
                    trial.upgrade()
            for visitors in others:
                trial.hear(visitors)
            failed, most_memory = trial.counts["failed"], trial.most_memory
            for _ in range(arguments.stopped):
                trial.upgrade(old_stops=True)
        finally:
            for visitors in others:
                visitors.kill()
            trial.is_running.clear()
            for thread in work:
                thread.join()
            os.kill(trial.pid(), signal.SIGQUIT)
        counts = trial.counts
        of_stopped, counts["failed"] = counts["failed"] - failed, failed
        print(f"{arguments.upgrades} upgrades: " + ", ".join(f"{count} {what}" for what, count in counts.items()))
        print(f"hit ratio {100 * counts['hits'] / max(1, counts['answers']):.2f} %")
        print(f"memory {before / MB:.1f} MB before, at most {(most_memory - before) / MB:.1f} MB more")
        print(f"{arguments.failing} upgrades failed as they must")
        print(f"{arguments.stopped} old processes were stopped and killed: {of_stopped} of their requests had no answer")
        wrong = counts["old"] + counts["torn"] + counts["failed"]
        if wrong:
            print(f"{trial.examples[:5]}\n{trial.log()}")
        return 1 if wrong or not counts["purges"] else 0


if __name__ == "__main__":
    sys.exit(main())
