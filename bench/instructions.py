#!/usr/bin/env python3
"""What a hit costs in instructions, which no other load on the machine changes.

The program itself runs under callgrind and is asked over one kept connection. Counters are read
before N requests and after them, and once more when as much time has passed without a request: what is
done by the clock falls out. The rest, divided by N, is what one request costs in user space from
`epoll_wait` back to `epoll_wait`. What the kernel does is not in it: bench/compare.py measures that. Whoever is at the
other end of a connection sends only when the program waits: what it finds when it reads
does not depend on who was quicker, and two counts of one program differ by less than 0.3 %.

Beside scenarios of the comparison there are some of this program's own: hits over HTTP/2 without
TLS, a hit on what `mayfly serve` writes for WordPress, asked by a browser with analytics cookies,
a miss, and responses that are passed on from an upstream and not stored.

One figure is no request's: what a second costs in which the server is watched by all that can watch
it. An open dashboard asks for the numbers and the pages every two seconds, Prometheus for the metrics
every second, `mayfly top` for the numbers and the pages every second over the control socket. A line at
the end says what part of a hit that is on a site with 20,000 hits a second, and counts as failed above
1 %. Two counts of this one differ by up to 5 %: it may rise by 10 %.

Two builds are counted: `release`, without the lines of its source (`make instructions`), and `dev`, which the tests
run (`make test`). In the second the crates that a hit comes to are optimised a little, and assertions are on: its figures
are four times as high, and a rise shows in both. Only what is steady there is counted. Under load it is up to a quarter
less, since an upstream's response is there sooner than the program looks for it: figures of this build are recorded
on a quiet machine, where they are highest.

The figures agreed on are in bench/instructions.json, by the build. A rise above 3 % (10 % in the tests' build) ends with status 1: argue for it in the
commit and write the new figures with --record, or take it back. A fall wants recording as well, so that it is not lost again unnoticed.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import glob
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

import scenarios
from lib import http2, load, peers, php, process, report, subject, upstream

RECORD = os.path.join(report.FOLDER, "instructions.json")
BUILDS = ("release", "dev")
# Of the build with assertions, two counts of these on a quiet machine differ by less than 1.5 % (a miss by 8 %); of the
# others by up to a third.
STEADY = ["page_40", "page_21k", "page_21k_browser", "not_modified", "head", "file_1k", "http2_page_40", "tagged", "miss", "proxied_1k"]
COUNTED = ["page_40", "page_21k", "page_21k_browser", "log_buffered", "not_modified", "head", "file_1k"]
# What the browser of somebody who has been to the site carries along.
COOKIES = "Cookie: _ga=GA1.1.1203950286.1762000000; _ga_QX7BFZ2H4C=GS2.1.s1762000000$o1$g0; _fbp=fb.1.1762000000.42"
# What makes `serve` take a folder for WordPress.
WORDPRESS = ("wp-login.php", "wp-load.php", "wp-settings.php", "wp-config.php", "wp-includes/version.php")
# Bodies of what is passed on.
SMALL, LARGE = 1 << 10, 21 << 10
# Enough that what happens by the clock (dates, sweeps, flushed logs) does not weigh.
REQUESTS = 1000
# The first requests fill buffers and tables that later ones find, and of the first in a minute more are timed and
# named (crates/server-base/src/sampling.rs).
WARM_UP = 1200
MAX_RISE = 0.03
MAX_RISE_WATCHING = 0.10
MAX_RISE_DEV = 0.10
# A busy site, for what those who watch it cost: an eighth of what a core answers (docs/benchmarks.md).
BUSY_HITS_PER_SECOND = 20_000
MAX_WATCHING = 0.01
# Pages that a watched site has, each of which has been missed and hit: more than its lists show.
WATCHED_PAGES = 150
# What Prometheus says it takes.
PROMETHEUS = "Accept: application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
# Counts of a scenario before a rise is believed, beyond the first.
AGAIN = 2
# Scenarios side by side: for half of its time each waits.
AT_ONCE = 2


class Mayfly(peers.Mayfly):
    """Mayfly under callgrind."""

    def launch(self):
        command = subject.command_of(self.program(), self.folder, self.config)
        # The allocator gives nothing back: when it did so would depend on the clock, and what
        # free pieces it has decides how long it looks for one.
        self.start([
            "env", "_RJEM_MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1",
            "valgrind", "--tool=callgrind", "--trace-children=yes", "--quiet",
            f"--callgrind-out-file={self.folder}/callgrind.%p", *command,
        ])

    def wait_until_asleep(self):
        process.wait_until_asleep(self.pid)

    def instructions(self):
        """What was executed since this was last asked, or since the start."""
        total = 0
        for pid in process.tree(self.pid):
            dumps = os.path.join(self.folder, f"callgrind.{pid}.*")
            subprocess.run(["vgdb", f"--pid={pid}", "dump"], check=True, capture_output=True, timeout=60)
            process.wait_until(lambda dumps=dumps: totals(dumps), "callgrind's dump", 60)
            total += sum(totals(dumps))
            for path in glob.glob(dumps):
                os.unlink(path)
        return total


def totals(dumps):
    """What files of callgrind have in their last lines; nothing while they are being written."""
    found = []
    for path in glob.glob(dumps):
        with open(path, errors="replace") as file:
            found += [int(line.split()[1]) for line in file if line.startswith("totals:")]
    return found


class PlainHttp2(Mayfly):
    """The same where HTTP/2 is spoken beside HTTP/1."""

    kind = "mayfly"

    def configure(self, template, kind, values):
        path = super().configure(template, kind, values)
        with open(path) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write(text.replace("http {", "http {\n    http2 on;", 1))
        return path


class PassingOn(Mayfly):
    """The same with bench/conf/passing_on.conf and upstreams that always answer the same."""

    def configure(self, template, kind, values):
        http = upstream.is_whole_http
        page = upstream.fastcgi_response(["Content-Type: text/html; charset=utf-8"], b"x" * SMALL)
        self._upstreams = contextlib.ExitStack()
        ports = {
            "SMALL": self._add_upstream(http, upstream.http_response(b"x" * SMALL)),
            "LARGE": self._add_upstream(http, upstream.http_response(b"x" * LARGE)),
            "RESPONDER": self._add_upstream(upstream.is_whole_fastcgi, page),
        }
        template = os.path.join(subject.TEMPLATES, "passing_on.conf")
        return super().configure(template, kind, {**values, **ports})

    def _add_upstream(self, is_whole, answer):
        listener = socket.create_server(("127.0.0.1", 0))
        self._upstreams.enter_context(upstream.Upstream(listener, is_whole, answer, self.wait_until_asleep))
        return listener.getsockname()[1]

    def stop(self):
        super().stop()
        self._upstreams.close()


class Serve(Mayfly):
    """The same with what `mayfly serve` writes for a folder of WordPress, less the pool:
    the PHP that answers must not be counted."""

    def configure(self, template, kind, values):
        site = os.path.join(self.folder, "site")
        for name in ("index.php", *WORDPRESS):
            os.makedirs(os.path.dirname(os.path.join(site, name)), exist_ok=True)
            shutil.copy(os.path.join(php.PAGES, "page.php"), os.path.join(site, name))
        shutil.copy(os.path.join(php.PAGES, "work.php"), site)
        command = [self.program(), "serve", site, "--print-config", "--ttl", "1h", "--listen", f"127.0.0.1:{self.port}"]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        if "WordPress" not in text.splitlines()[0]:
            raise RuntimeError("serve did not take the folder for WordPress")
        text = re.sub(r"^php_pool site \{.*?^\}", "", text, flags=re.DOTALL | re.MULTILINE)
        text = re.sub(r"^user [^;]*;", "", text, flags=re.MULTILINE)
        text = text.replace("php:site", f"unix:{self._fpm.socket}").replace("worker_processes auto", "worker_processes 1")
        text = text.replace("http {", "http {\n    keepalive_requests 1000000;", 1)
        user = "user root;\n" if os.getuid() == 0 else ""
        path = os.path.join(self.folder, "serve.conf")
        with open(path, "w") as file:
            file.write(f"{user}pid {self.folder}/pid;\n{text}")
        return path


class Watched(Mayfly):
    """The same with the locations that are asked by those who watch it."""

    kind = "mayfly"

    def configure(self, template, kind, values):
        path = super().configure(template, kind, values)
        with open(path) as file:
            text = file.read()
        watched = "location = /metrics { metrics; }\n location = /dashboard { dashboard; }\n"
        with open(path, "w") as file:
            file.write(text.replace("location /page/", watched + "location /page/", 1))
        return path


class Node(Watched):
    """The same where purges are shared with other machines, and nothing stored is used without a lease."""

    def configure(self, template, kind, values):
        path = super().configure(template, kind, values)
        self._engine = os.path.join(self.folder, "engine")
        with open(path) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write(text.replace("http {", f"http {{\n    cache_nodes unix:{self._engine};", 1))
        return path

    def launch(self):
        command = ["redis-server", "--port", "0", "--unixsocket", self._engine, "--save", "", "--dir", self.folder]
        self._redis = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        super().launch()

    def wait(self):
        super().wait()
        process.wait_until(self._holds_lease, "a lease", 60)

    def _holds_lease(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(load.request_bytes("GET", "/metrics", ()))
            return b"\nmayfly_nodes_lease_held 1.0\n" in load.receive(connection, False)

    def stop(self):
        super().stop()
        self._redis.terminate()
        self._redis.wait()


@dataclasses.dataclass
class Counted:
    """A request that is counted. `{}` in the target is its number, where each is for another page."""

    name: str
    title: str
    target: str
    server: type = Mayfly
    fields: tuple = ()
    method: str = "GET"
    log: str = "none"
    gzip: bool = False
    # Bytes of the body, where that is checked.
    body: int = 0
    # How many are counted.
    requests: int = REQUESTS
    warm_up: int = WARM_UP
    most_rise: float = MAX_RISE

    def request(self, number):
        return load.request_bytes(self.method, self.target.format(number), self.fields)

    @contextlib.contextmanager
    def asking(self, server):
        """On one connection: a function that asks for the request with a number."""
        if self.server is PlainHttp2:
            with http2.Connection(server.port, self.target) as connection:
                yield lambda _: ask_http2(connection, server, self.body)
        else:
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
                yield lambda number: ask_on(connection, server, self.request(number))


@dataclasses.dataclass
class Watching(Counted):
    """What is counted is no request, but a second of watching."""

    most_rise: float = MAX_RISE_WATCHING

    @contextlib.contextmanager
    def asking(self, server):
        pages = [load.request_bytes("GET", f"/page/{number}?bytes=40&age=3600", ()) for number in range(WATCHED_PAGES)]
        ask(server, pages + pages)
        with contextlib.ExitStack() as connections:
            dashboard, prometheus = (
                connections.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
                for _ in range(2)
            )
            yield lambda second: watch(dashboard, prometheus, server, second)


def watch(dashboard, prometheus, server, second):
    """What is asked in one second by all who watch."""
    ask_on(prometheus, server, load.request_bytes("GET", "/metrics", (PROMETHEUS,)))
    for path in ("/1/numbers", "/1/pages"):
        with socket.socket(socket.AF_UNIX) as top:
            top.settimeout(60)
            top.connect(os.path.join(server.folder, "pid.control"))
            ask_on(top, server, load.request_bytes("GET", path, ()))
    if second % 2 == 0:
        for what in ("numbers", "pages"):
            ask_on(dashboard, server, load.request_bytes("GET", f"/dashboard?{what}", ()))


OWN = [
    Counted("http2_page_40", "40-byte page over HTTP/2 without TLS", scenarios.PAGE.format(0) % 40, PlainHttp2, body=40),
    Counted("http2_page_21k", "21 KB page over HTTP/2 without TLS", scenarios.PAGE.format(0) % (21 << 10), PlainHttp2,
            body=21 << 10),
    Counted("serve_wordpress", "a hit of `serve` on WordPress, a browser with cookies", "/?bytes=21504&age=3600",
            Serve, (*scenarios.BROWSER, COOKIES)),
    Counted("tagged", "a hit of 40 bytes with 40 tags", scenarios.PAGE.format(0) % 40 + "&tags=40"),
    Counted("leased", "a hit of 40 bytes at a node with a lease", scenarios.PAGE.format(0) % 40, Node),
    Counted("miss", "a page that is not stored", "/page/{}?bytes=2048&age=3600"),
    Counted("proxied_1k", "a proxied response of 1 KB", "/small", PassingOn),
    Counted("proxied_21k", "a proxied response of 21 KB", "/large", PassingOn),
    Counted("fastcgi_1k", "a response of 1 KB from FastCGI, not stored", "/fastcgi", PassingOn),
    Watching("watching", "a second of dashboard, metrics and top", scenarios.PAGE.format(0) % 40, Watched,
             requests=50, warm_up=60),
]


def all_counted():
    for scenario in scenarios.SCENARIOS:
        if scenario.name in COUNTED:
            yield Counted(scenario.name, scenario.title, scenario.target.format(0), Mayfly, scenario.fields,
                          scenario.method, scenario.log, scenario.gzip)
    yield from OWN


def ask(server, requests):
    """Asks one after the other, the next when the server waits for it."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        for request in requests:
            ask_on(connection, server, request)


def ask_on(connection, server, request):
    """Asks when the server waits; its answer, which says that all is well."""
    server.wait_until_asleep()
    connection.sendall(request)
    answer = load.receive(connection, request.startswith(b"HEAD"))
    if answer.split(b" ", 2)[1] not in (b"200", b"304"):
        raise RuntimeError(f"{answer[:100]} to {request[:100]}")


def ask_http2(connection, server, body):
    """The same over HTTP/2."""
    server.wait_until_asleep()
    connection.ask()
    received = connection.receive()
    if received != body:
        raise RuntimeError(f"a body of {received} bytes, not {body}")


def count(scenario):
    """Instructions for each request."""
    with subject.Folder() as folder:
        with scenario.server(peers.Site(folder, None), folder, scenario.log, scenario.gzip) as server:
            server.wait()
            try:
                # What is stored is stored by a plain GET.
                ask(server, [load.request_bytes("GET", scenario.target.format(0), ())])
            except (OSError, RuntimeError) as error:
                raise RuntimeError(f"{scenario.title}: {error}; {server.said()}") from error
            with scenario.asking(server) as ask_for:
                for number in range(scenario.warm_up):
                    ask_for(number)
                server.instructions()
                began = time.monotonic()
                for number in range(scenario.warm_up, scenario.warm_up + scenario.requests):
                    ask_for(number)
                took = time.monotonic() - began
                asked = server.instructions()
                time.sleep(took)
                return round((asked - server.instructions()) / scenario.requests)


def recorded():
    """The figures of each build."""
    with contextlib.suppress(FileNotFoundError), open(RECORD) as file:
        return json.load(file)
    return {}


def least(scenario, agreed):
    """The count; again where it seems to have risen, since what is done once in a while (is the
    file still the same?) is done more often while the machine is slow."""
    now = count(scenario)
    for _ in range(AGAIN):
        if not agreed or now <= agreed * (1 + scenario.most_rise):
            break
        now = min(now, count(scenario))
    return now


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.environ.get("BINARY", "target/counted/mayfly"))
    parser.add_argument("--build", choices=BUILDS, default="release", help="whose figures the program is compared with")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/instructions.json")
    names = [counted.name for counted in all_counted()]
    parser.add_argument("--only", choices=names, nargs="+", metavar="SCENARIO")
    chosen = parser.parse_args()
    chosen.only = chosen.only or (STEADY if chosen.build == "dev" else names)
    if not shutil.which("valgrind"):
        raise SystemExit("valgrind is missing; scripts/setup.sh instructions installs it")
    peers.Mayfly.binary = chosen.binary
    builds = recorded()
    agreed, risen, lines = builds.get(chosen.build, {}), 0, [("scenario", "instructions", "agreed", "change", "")]
    figures = dict(agreed)
    counted = [scenario for scenario in all_counted() if scenario.name in chosen.only]
    if chosen.build == "dev":
        counted = [dataclasses.replace(scenario, most_rise=MAX_RISE_DEV) for scenario in counted]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        counts = list(pool.map(lambda scenario: least(scenario, agreed.get(scenario.name)), counted))
    for scenario, now in zip(counted, counts):
        before = agreed.get(scenario.name)
        figures[scenario.name] = now
        change = now / before - 1 if before else 0
        too_many = change > scenario.most_rise
        risen += too_many
        verdict = "ROSE" if too_many else "" if before else "new"
        lines.append((scenario.title, f"{now:,}", f"{before:,}" if before else "", f"{change:+.1%}" if before else "", verdict))
    print(report.columns(lines, right=(1, 2, 3), has_heading=True))
    if chosen.record:
        with open(RECORD, "w") as file:
            json.dump(builds | {chosen.build: figures}, file, indent=2)
            file.write("\n")
    checks = len(lines) - 1
    if {"watching", "page_40"} <= figures.keys() and "watching" in chosen.only:
        share = figures["watching"] / BUSY_HITS_PER_SECOND / figures["page_40"]
        checks, risen = checks + 1, risen + (share > MAX_WATCHING)
        print(f"watched, a hit costs {share:.2%} more at {BUSY_HITS_PER_SECOND:,} hits a second, "
              f"{2 * share:.2%} at half of that, {20 * share:.1%} at a twentieth")
    print(f"{checks - risen} passed, {risen} failed")
    sys.exit(1 if risen and not chosen.record else 0)


if __name__ == "__main__":
    main()
