#!/usr/bin/env python3
"""A page of three fragments (Edge Side Includes): CPU time for each request, beside Varnish.

The page is kept for an hour. One fragment is kept for a minute, one for a second, and one is private: it comes
from the origin with each request. The origin is nginx on the load's core, the same for both; only the
server's own CPU time counts.
"""

import contextlib
import os
import statistics

import compare
from lib import load, peers, report, subject

NAME = "esi"
TITLE = "A page of three fragments"

CONNECTIONS = 20
TEXT_BYTES = 2048
FRAGMENT_BYTES = 512
PAGE_START = "<html>"
PAGE_BYTES = 4 * TEXT_BYTES + 3 * FRAGMENT_BYTES


class Origin(subject.Daemon):
    def __init__(self, nginx, folder, core):
        super().__init__("origin", folder)
        template = os.path.join(peers.TEMPLATES, "esi_origin.conf")
        config = self.configure(template, "nginx", {"FRAGMENT": "y" * FRAGMENT_BYTES})
        includes = [f'<esi:include src="/{name}"/>' for name in ("minute", "second", "own")]
        text = "x" * TEXT_BYTES
        with open(os.path.join(self.folder, "page"), "w") as page:
            # Varnish looks for ESI in what begins as a page does.
            page.write(PAGE_START + text[len(PAGE_START):] + text.join(includes) + text)
        self.socket = os.path.join(self.folder, "origin.sock")
        self.start(subject.command_of(nginx, self.folder, config), core)
        self.wait()


class Mayfly(subject.Daemon):
    kind = "mayfly"

    def __init__(self, chosen, folder, origin):
        super().__init__("mayfly", folder)
        config = self.configure(os.path.join(subject.TEMPLATES, "esi.conf"), self.kind, {"ORIGIN": origin.socket})
        self.start(subject.command_of(chosen.binary, self.folder, config), chosen.server_core)
        self.wait()


class Varnish(subject.Daemon):
    kind = "varnish"

    def __init__(self, chosen, folder, origin):
        super().__init__("varnish", folder)
        vcl = self.configure(os.path.join(peers.TEMPLATES, "esi.vcl"), self.kind, {"ORIGIN": origin.socket})
        self.start([
            peers.find("varnishd"), "-F", "-j", "none", "-n", os.path.join(self.folder, "work"), "-f", vcl,
            "-a", f"127.0.0.1:{self.port}", "-s", "malloc,1g", "-p", "thread_pools=1", "-p", "listen_depth=4096",
        ], chosen.server_core)
        self.wait()


def per_request(chosen, server, seconds):
    """CPU microseconds of the server for a page."""
    options = ["--seconds", str(seconds), "--bytes", str(PAGE_BYTES), "--connections", str(CONNECTIONS)]
    figures, spent, _ = load.bench_load(chosen.load, server, "/page", chosen.client_core, options, seconds + 60)
    wrong = figures["wrong_status"] + figures["wrong_length"] + figures["broken"]
    if wrong or not figures["requests"]:
        raise SystemExit(f"{server.name}: {wrong} wrong answers of {figures['requests']}")
    return sum(spent) * 1e6 / figures["requests"]


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    seconds, rounds = (1, 1) if chosen.quick else (3, 5)
    spent = {"mayfly": [], "varnish": []}
    with subject.Folder() as folder, contextlib.ExitStack() as running:
        origin = running.enter_context(Origin(chosen.nginx, folder, chosen.client_core))
        servers = [running.enter_context(kind(chosen, folder, origin)) for kind in (Mayfly, Varnish)]
        for server in servers:
            per_request(chosen, server, 0.5)
        for _ in range(rounds):
            for server in servers:
                spent[server.name].append(per_request(chosen, server, seconds))
    medians = {name: statistics.median(values) for name, values in spent.items()}
    result.figures = {name: {"cpu_us": round(median, 2)} for name, median in medians.items()}
    result.check("a page of three fragments, one of them private: CPU for each request, times Varnish's",
                 round(medians["mayfly"] / medians["varnish"], 3), 0.7)
    return result


if __name__ == "__main__":
    parser = report.options(__doc__)
    compare.tools(parser)
    report.run(parser, measure)
