#!/usr/bin/env python3
"""Is a page older than its purge ever shown? Mayfly, Varnish with xkey, and nginx with its purge module.

A writer changes a page, purges it, and reads it, thousands of times. Two hundred clients read the
same five pages all the while. Before each change the page is purged once more, so that the clients
have it made just then: a fetch is under way when the page changes. An answer is old if it was asked
for after the purge of the change had returned, and shows what was there before. All servers stand
before the same application (backend.py), whose pages take 20 milliseconds, and keep them for an hour.

It is no part of `make test`: it takes some minutes, and looks at other programs. Varnish, its
modules and nginx's module are Debian's packages varnish, varnish-modules and
libnginx-mod-http-cache-purge; what is missing is left out. With --write, the table goes into
docs/design/2026-11-23-invalidation.md.

    cargo build --release --package mayfly
    scripts/promise/run.py [--binary FILE] [--purges 10000] [--readers 200] [--only NAME...] [--write]

The status is 1 if Mayfly shows an old page.
"""

import argparse
import datetime
import glob
import http.client
import json
import os
import platform
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "bench")]

from lib import peers, process, subject  # noqa: E402
from readers import Purged  # noqa: E402

DOCUMENT = os.path.join(ROOT, "docs/design/2026-11-23-invalidation.md")
BEGIN, END = "<!-- begin: scripts/promise/run.py -->", "<!-- end: scripts/promise/run.py -->"
PAGES = 5
READING_PROCESSES = 2
HOST = {"Host": "site.test"}
# In a row: then the server is given up.
MAX_FAILED_PURGES = 100
READ_ATTEMPTS = 20
LIBRARIES = ("/usr/lib", "/usr/lib/*", "/usr/local/lib", "/usr/lib64")
MODULE_PACKAGE = "libnginx-mod-http-cache-purge"
MODULES = ("/usr/lib/nginx/modules", "/usr/share/nginx/modules", "/usr/lib64/nginx/modules")


class Application(subject.Daemon):
    def __init__(self, folder):
        super().__init__("application", folder)
        self.start([sys.executable, os.path.join(HERE, "backend.py"), str(self.port), str(PAGES)])
        self.wait()


class Server(subject.Daemon):
    """A server that is asked for the promise; `name` says which."""

    def errors(self):
        """Its error log, or what it printed where it has none."""
        path = os.path.join(self.folder, "error.log")
        with open(path if os.path.exists(path) else self._output, errors="replace") as file:
            return file.read()


class Mayfly(Server):
    LITESPEED = "off"

    def __init__(self, chosen, folder, application):
        super().__init__("mayfly", folder)
        values = {"APPLICATION": application.port, "LITESPEED": self.LITESPEED}
        config = self.configure(os.path.join(HERE, "server.conf"), "mayfly", values)
        self.start(subject.command_of(chosen.binary, self.folder, config))
        self.wait()

    @staticmethod
    def version(chosen):
        return f"Mayfly {re.search(r'mayfly ([^)]+)', subject.version_of(chosen.binary))[1]}"

    @staticmethod
    def missing(chosen):
        return "" if os.access(chosen.binary, os.X_OK) else f"there is no {chosen.binary}"


class MayflyForLiteSpeed(Mayfly):
    LITESPEED = "on"


class Nginx(Server):
    def __init__(self, chosen, folder, application):
        super().__init__("nginx", folder)
        values = {"APPLICATION": application.port, "MODULE": chosen.module}
        config = self.configure(os.path.join(HERE, "server.conf"), "nginx", values)
        self.start(subject.command_of(peers.find("nginx"), self.folder, config))
        self.wait()

    @staticmethod
    def version(chosen):
        return f"{subject.version_of(peers.find('nginx'))} with {chosen.module_version}"

    @staticmethod
    def missing(chosen):
        return "" if peers.find("nginx") and chosen.module else f"it needs {MODULE_PACKAGE}"


class Varnish(Server):
    def __init__(self, chosen, folder, application):
        super().__init__("varnish", folder)
        vcl = self.configure(os.path.join(HERE, "varnish.vcl"), "varnish", {"APPLICATION": application.port})
        self.start([
            peers.find("varnishd"), "-F", "-j", "none", "-n", os.path.join(self.folder, "work"), "-f", vcl,
            "-a", f"127.0.0.1:{self.port}", "-s", "malloc,64m", "-p", "timeout_idle=3600",
        ])  # fmt: skip
        self.wait()

    @staticmethod
    def version(chosen):
        told = subprocess.run([peers.find("varnishd"), "-V"], capture_output=True, text=True)
        found = re.search(r"varnish-([\d.]+)", told.stdout + told.stderr)
        return f"Varnish {found[1]} with {package_of('varnish-modules')}"

    @staticmethod
    def missing(chosen):
        has_xkey = any(glob.glob(f"{folder}/varnish/vmods/libvmod_xkey.so") for folder in LIBRARIES)
        return "" if peers.find("varnishd") and has_xkey else "it needs varnish and varnish-modules"


def package_of(name):
    """Debian's name and version of a package that is installed, else its name."""
    told = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}", name], capture_output=True, text=True)
    return told.stdout.strip() or name


def by_api(kind, text):
    def request(page):
        return "POST", "/purge", json.dumps({kind: [text.format(page)]}), {"Content-Type": "application/json"}

    return request


def by_method(page):
    return "PURGE", f"/p/{page}", None, {}


def by_tag_field(page):
    return "PURGE", "/", None, {"xkey-purge": f"page:{page}"}


def by_address(page):
    return "GET", f"/purge/p/{page}", None, {}


# Name: the server, how it is purged in words, and the request that purges a page; none if the change itself does.
WAYS = {
    "mayfly_url": (Mayfly, "URL, by the API", by_api("urls", "http://site.test/p/{}")),
    "mayfly_tag": (Mayfly, "tag, by the API", by_api("tags", "page:{}")),
    "mayfly_method": (Mayfly, "`PURGE`", by_method),
    "mayfly_field": (Mayfly, "tag, by a field of the application's response", None),
    "mayfly_litespeed": (MayflyForLiteSpeed, "tag, by `X-LiteSpeed-Purge`", None),
    "varnish_tag": (Varnish, "tag, by xkey", by_tag_field),
    "varnish_method": (Varnish, "`PURGE`, `return (purge)`", by_method),
    "nginx_method": (Nginx, "`PURGE`, `proxy_cache_purge PURGE`", by_method),
    "nginx_location": (Nginx, "`GET`, `proxy_cache_purge` in a location of its own", by_address),
}


class Connection:
    """A kept connection to a program on this machine."""

    def __init__(self, port):
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(self, method, target, body=None, fields=None):
        """(status, text); after an error the next request has a new connection."""
        try:
            self._connection.request(method, target, body, {**HOST, **(fields or {})})
            answer = self._connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise


class Writer:
    def __init__(self, request, server, application, purged):
        self._request = request
        # What has a page made anew, before it changes.
        self._remove = request or by_api("tags", "page:{}")
        self._server = Connection(server.port)
        self._application = Connection(application.port)
        self._purged = purged
        self.purges = self.failed = 0
        # Page and version of those that were not seen by who wrote them.
        self.unseen = set()

    def run(self, purges, ends):
        """Until so many are done, the time is over, or the server does not purge."""
        failed_in_a_row = 0
        for number in range(purges):
            if time.monotonic() > ends or failed_in_a_row >= MAX_FAILED_PURGES:
                return
            if self.change(number % PAGES):
                failed_in_a_row = 0
            else:
                failed_in_a_row += 1

    def change(self, page):
        """Changes a page, purges it and reads it; whether the purge has returned."""
        version = self.purge(page)
        if version is None:
            self.failed += 1
            return False
        self.purges += 1
        self._purged.set(page, version)
        if self.shown(page) < version:
            self.unseen.add((page, version))
        return True

    def purge(self, page):
        """The version that nobody may see less than any more; None if a purge did not return."""
        if not self._has_purged(self._remove, page):
            return None
        changed = self._server if self._request is None else self._application
        version = int(changed.ask("POST", f"/p/{page}", "x")[1])
        return version if self._request is None or self._has_purged(self._request, page) else None

    def _has_purged(self, request, page):
        try:
            status, _ = self._server.ask(*request(page))
        except (OSError, http.client.HTTPException):
            return False
        # 404 and 412: nothing was stored just then.
        return status in (200, 404, 412)

    def shown(self, page):
        """Asked again if the connection has ended, as it does when a worker dies."""
        for _ in range(READ_ATTEMPTS):
            try:
                _, text = self._server.ask("GET", f"/p/{page}")
                return int(re.fullmatch(r"version (\d+);", text)[1])
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)
        raise RuntimeError(f"no answer for page {page}")

    def left_old(self):
        """How many pages are old when all is over, and would stay so for an hour."""
        return sum(self.shown(page) < self._purged.of(page) for page in range(PAGES))


def keep(chosen, name):
    """How a server kept the promise, as figures."""
    kind, _, request = WAYS[name]
    with subject.Folder() as folder, Application(folder) as application, kind(chosen, folder, application) as server:
        path = os.path.join(folder, "purged")
        purged = Purged.make(path, PAGES)
        each = chosen.readers // READING_PROCESSES
        command = [sys.executable, os.path.join(HERE, "readers.py"), str(server.port), str(each), str(PAGES), path]
        readers = [process.start(command, stdout=subprocess.PIPE) for _ in range(READING_PROCESSES)]
        writer = Writer(request, server, application, purged)
        began = time.monotonic()
        try:
            writer.run(chosen.purges, began + chosen.seconds)
        finally:
            purged.end()
            seen = [json.loads(reader.communicate(timeout=60)[0]) for reader in readers]
        seconds = time.monotonic() - began
        crowd = {word: sum(one[word] for one in seen) for word in ("answers", "old", "broken", "wrong")}
        outlived = writer.unseen.union(tuple(pair) for one in seen for pair in one["outlived"])
        return {
            "purges": writer.purges,
            "failed_purges": writer.failed,
            **crowd,
            "old_to_writer": len(writer.unseen),
            "outlived": len(outlived),
            "left_old": writer.left_old() if writer.purges else None,
            **json.loads(Connection(application.port).ask("GET", "/told")[1]),
            "seconds": round(seconds, 1),
            "deaths": re.findall(r"worker process \d+ exited on signal \d+.*", server.errors()),
            "errors": server.errors()[-2000:],
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "target/release/mayfly"))
    parser.add_argument("--module", nargs=2, metavar=("FILE", "VERSION"), help="nginx's module, if it is not installed")
    parser.add_argument("--purges", type=int, default=10_000, help="of each way to purge")
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=600, help="at most so long for each")
    parser.add_argument("--only", nargs="*", choices=WAYS, default=list(WAYS))
    parser.add_argument("--write", action="store_true", help="write the table into the design note")
    chosen = parser.parse_args()
    found = [path for folder in MODULES for path in glob.glob(f"{folder}/ngx_http_cache_purge_module.so")]
    chosen.module, chosen.module_version = chosen.module or (next(iter(found), None), package_of(MODULE_PACKAGE))

    figures = {}
    for name in chosen.only:
        kind, words, _ = WAYS[name]
        if reason := kind.missing(chosen):
            print(f"{name}: left out: {reason}", flush=True)
            continue
        figures[name] = keep(chosen, name)
        shown = {word: value for word, value in figures[name].items() if word not in ("errors", "deaths")}
        print(f"{name}: {kind.version(chosen)}, {words}\n  {shown}", flush=True)
        if deaths := figures[name]["deaths"]:
            print(f"  {len(deaths)} times: {deaths[0]}")
    table = "\n".join(rows(chosen, figures))
    print(table)
    if chosen.write:
        write(table)
    own = [figure for name, figure in figures.items() if issubclass(WAYS[name][0], Mayfly)]
    sys.exit(any(figure["old"] or figure["old_to_writer"] or figure["left_old"] for figure in own))


def rows(chosen, figures):
    yield f"On {datetime.date.today():%Y-%m-%d}, {os.cpu_count()} cores ({platform.machine()}), {chosen.readers} readers:"
    yield ""
    yield "| server | purged by | purges | during a fetch | answers | old answers | purges that an old answer followed |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for name, figure in figures.items():
        kind, words, _ = WAYS[name]
        purges = f"{figure['purges']:,}"
        if figure["deaths"]:
            signal = re.search(r"signal \d+", figure["deaths"][0])[0]
            purges += f", and {figure['failed_purges']:,} that ended with the worker ({signal})"
        old = figure["old"] + figure["old_to_writer"]
        yield (f"| {kind.version(chosen)} | {words} | {purges} | {figure['met']:,} | {figure['answers'] + figure['purges']:,} "
               f"| {old:,} | {figure['outlived']:,} |")  # fmt: skip


def write(table):
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    with open(DOCUMENT, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n{table}\n{END}{after}")


if __name__ == "__main__":
    main()
