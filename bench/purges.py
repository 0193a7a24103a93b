#!/usr/bin/env python3
"""What purges by tag cost: the one who purges, and all who read meanwhile.

- Ten tags are on a tenth of 1,000,000 stored pages each. How long does a purge of one take, from the request
  to the answer? Beside it the same request for a tag that nothing carries.
- 1,000 pages with 40 tags each are read at full load, while 1,000 purges a second name tags that 0, 1 and
  1,000 other stored pages carry. They are soft, so that these pages stay stored. CPU time per hit, the purges'
  own work included, beside the same without purges.

Varnish with xkey (varnish-modules) does the same in the same run, with the same pages from nginx.
"""

import contextlib
import http.client
import json
import os
import statistics
import threading
import time

import compare
from lib import load, peers, report, subject

NAME = "purges"
TITLE = "Purges by tag"

BODY_BYTES = 1024
BUSY = 50
FILLERS = 32
READ_PAGES = 1000
RATE = 1000
SHARED_TAGS = 38
# Those that a purge reaches in the measurement of a single purge, as a part of all.
TENTHS = 10


class Mayfly(subject.Daemon):
    """Mayfly, which makes its pages itself."""

    kind = "mayfly"

    def __init__(self, binary, folder, core, pages):
        super().__init__("mayfly", folder)
        with open(os.path.join(self.folder, "pages.conf"), "w") as file:
            file.write(pages.replace("@FOLDER@", self.folder))
        config = self.configure(os.path.join(subject.TEMPLATES, "purges.conf"), self.kind, {})
        self.start(subject.command_of(binary, self.folder, config), core)
        self.wait()

    def request(self, tag, soft=False):
        body = json.dumps({"tags": [tag], "soft": soft})
        return "POST", "/purge", body, {"Content-Type": "application/json"}


class Varnish(subject.Daemon):
    """Varnish with xkey, in front of nginx as its origin."""

    kind = "varnish"

    def __init__(self, nginx, folder, core, pages):
        super().__init__("varnish", folder)
        templates = peers.TEMPLATES
        vcl = self.configure(os.path.join(templates, "purges.vcl"), "varnish", {})
        config = os.path.join(self.folder, "nginx.conf")
        with open(config, "w") as file:
            user = "user root;" if os.getuid() == 0 else ""
            file.write(f"daemon off; {user} pid pid; error_log error.log;\n"
                       "events { worker_connections 4096; }\n"
                       f"http {{ access_log off;\n{pages.replace('@FOLDER@', self.folder)} }}\n")
        self.start([
            peers.find("varnishd"), "-F", "-j", "none", "-n", os.path.join(self.folder, "work"), "-f", vcl,
            "-a", f"127.0.0.1:{self.port}", "-s", "malloc,12g", "-p", "thread_pools=1",
            "-p", "timeout_idle=3600", "-p", "listen_depth=4096",
        ], core)
        self.start(subject.command_of(nginx, self.folder, config), core)
        self.wait()

    def request(self, tag, soft=False):
        return "PURGE", "/", None, {"xkey-softpurge" if soft else "xkey-purge": tag}


class Purger:
    """One connection that purges."""

    def __init__(self, server):
        self._server = server
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def purge(self, tag, soft=False):
        """Milliseconds from the request to the answer."""
        method, target, body, fields = self._server.request(tag, soft)
        began = time.perf_counter()
        self._connection.request(method, target, body, fields)
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"purge of {tag}: {answer.status} {said[:200]}")
        return (time.perf_counter() - began) * 1000


@contextlib.contextmanager
def purging(server, tags):
    """A thousand purges a second while the block runs; the names come in turns."""
    over = threading.Event()
    done = []

    def work():
        purger, began = Purger(server), time.monotonic()
        while not over.is_set():
            due = began + len(done) / RATE
            rest = due - time.monotonic()
            if rest > 0:
                time.sleep(rest)
            purger.purge(tags[len(done) % len(tags)], soft=True)
            done.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield done
    finally:
        over.set()
        thread.join()


def ask(chosen, server, target, seconds, *options):
    """The figures of bench-load, and the server's CPU microseconds."""
    options = ["--seconds", str(seconds), "--bytes", str(BODY_BYTES), *options]
    figures, spent, _ = load.bench_load(chosen.load, server, target, chosen.client_core, options, seconds + 600)
    wrong = figures["wrong_status"] + figures["wrong_length"] + figures["broken"]
    if wrong or not figures["requests"]:
        raise SystemExit(f"{wrong} wrong answers of {figures['requests']}")
    return figures["requests"], sum(spent) * 1e6


def fill(chosen, server, target, count):
    ask(chosen, server, target, 600, "--keys", "sequence:0", "--count", str(count), "--connections", str(FILLERS))


def one_purge(chosen, server, pages):
    """Milliseconds of a purge: of tags on a tenth of the pages each, and of one on none."""
    fill(chosen, server, "/few/{}", pages)
    purger = Purger(server)
    none = [purger.purge("nothing") for _ in range(50)]
    many = [purger.purge(f"ten:{digit}") for digit in range(TENTHS)]
    return {"none_ms": round(statistics.median(none), 3), "many_ms": round(statistics.median(many), 3),
            "longest_ms": round(max(many), 3)}


def beside_load(chosen, server, seconds, rounds):
    """CPU per hit with purges, as a ratio to that without, by how many stored pages carry the tag."""
    fill(chosen, server, "/many/{}", READ_PAGES)
    fill(chosen, server, "/one/{}", READ_PAGES)
    fill(chosen, server, "/thousand/{}", READ_PAGES)
    names = {
        "0": ["nothing"],
        "1": [f"one:{number}" for number in range(READ_PAGES)],
        "1000": ["thousand"],
    }

    def per_hit():
        hits, spent = ask(chosen, server, "/many/{}", seconds, "--keys", f"uniform:{READ_PAGES}",
                          "--connections", str(BUSY))
        return spent / hits

    ratios = {carriers: [] for carriers in names}
    rates = {carriers: [] for carriers in names}
    for _ in range(rounds):
        for carriers, tags in names.items():
            alone = per_hit()
            with purging(server, tags) as done:
                began, before = time.monotonic(), len(done)
                ratios[carriers].append(per_hit() / alone)
                rates[carriers].append((len(done) - before) / (time.monotonic() - began))
    return {carriers: {"cpu_per_hit": round(statistics.median(ratios[carriers]), 3),
                       "purges_per_second": round(statistics.median(rates[carriers]))} for carriers in names}


def pages_to_store():
    with open(os.path.join(peers.TEMPLATES, "purges_origin.conf")) as template:
        text = template.read()
    tags = " ".join(f"shared:{number}" for number in range(SHARED_TAGS))
    return text.replace("@SHARED_TAGS@", tags).replace("@BODY@", "x" * BODY_BYTES)


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    seconds, rounds, pages = (1, 1, 100_000) if chosen.quick else (3, 3, 1_000_000)
    figures = {}
    starts = {
        "mayfly": lambda folder: Mayfly(chosen.binary, folder, chosen.server_core, pages_to_store()),
        "varnish": lambda folder: Varnish(chosen.nginx, folder, chosen.server_core, pages_to_store()),
    }
    for name, start in starts.items():
        with subject.Folder() as folder:
            with start(folder) as server:
                figures[name] = {"beside_load": beside_load(chosen, server, seconds, rounds)}
            with start(folder) as server:
                figures[name]["one_purge"] = one_purge(chosen, server, pages)
    result.figures = figures
    own = figures["mayfly"]
    result.check(f"purge of a tag on {pages // TENTHS:,} of {pages:,} pages, milliseconds",
                 own["one_purge"]["many_ms"], 1.0)
    for carriers, limit in (("0", 1.1), ("1", 1.1), ("1000", 1.3)):
        result.check(f"{RATE:,} purges a second of tags on {carriers} pages: CPU per hit, times that without",
                     own["beside_load"][carriers]["cpu_per_hit"], limit)
    return result


if __name__ == "__main__":
    parser = report.options(__doc__)
    compare.tools(parser)
    report.run(parser, measure)
