#!/usr/bin/env python3
"""What HTTP/3 costs: CPU time per request, beside Caddy in the same run.

bench-load-http3 (quinn) asks over 10 connections with 10 streams each. Mayfly answers from what it
has stored, Caddy with a text of its configuration, which is the cheapest that it has. Both servers
run at once and are asked in turns, and the figure is the median of the rounds' ratios. CPU time is
that of the whole process tree.
"""

import contextlib
import json
import os
import shutil
import subprocess
import types

import encrypted
import hit_cost
import proxying
from lib import peers, process, report, subject, upstream

NAME = "http3"
TITLE = "CPU time over HTTP/3"

ROOT = os.path.dirname(report.FOLDER)
# What is asked, in words; the target; bytes of the page; at most so many times Caddy's CPU.
CASES = [
    ("HTTP/3, 40 B", "/40", encrypted.SMALL, 0.20),
    ("HTTP/3, 21 KB", "/21k", encrypted.LARGE, 0.35),
]


class Caddy(subject.Daemon):
    """Caddy with peers/caddy.conf."""

    kind = "caddy"

    def __init__(self, program, folder, core, keys):
        super().__init__("caddy", folder)
        for path in keys:
            shutil.copy(path, self.folder)
        pages = {"SMALL": "x" * encrypted.SMALL, "LARGE": "x" * encrypted.LARGE}
        config = self.configure(os.path.join(peers.TEMPLATES, "caddy.conf"), self.kind, pages)
        self.start([program, "run", "--adapter", "caddyfile", "--config", config], core)
        self.wait()


def caddy_program():
    """The newest that scripts/setup.sh has installed; None where there is none."""
    folder = os.path.join(ROOT, "target", "tools")
    names = sorted(name for name in os.listdir(folder) if name.startswith("caddy-")) if os.path.isdir(folder) else []
    return os.path.join(folder, names[-1]) if names else None


def ask(server, target, page_bytes, seconds, chosen):
    """(CPU microseconds per request, requests per second) of one round."""
    tool = os.path.join(os.path.dirname(proxying.floor_tool(chosen)), "bench-load-http3")
    clock = process.CpuTime(server.pid)
    told = subprocess.run(
        ["taskset", "--cpu-list", str(chosen.client_core), tool, f"127.0.0.1:{server.port}", target, str(seconds)],
        check=True, capture_output=True, text=True, timeout=seconds + 60,
    ).stdout
    spent, told = sum(clock.spent()), json.loads(told)
    if told["least_bytes"] < page_bytes:
        raise SystemExit(f"{server.kind}: an answer to {target} has only {told['least_bytes']} bytes")
    return spent * 1e6 / told["answers"], told["answers"] / seconds


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    seconds, rounds = (1, 3) if chosen.quick else (3, 5)
    program = caddy_program()
    if not program:
        raise SystemExit("Caddy is not there; scripts/setup.sh bench installs it")
    result.figures["caddy"] = os.path.basename(program)
    peers.Floor.tool = proxying.floor_tool(chosen)
    beside_client = types.SimpleNamespace(core=chosen.client_core)
    with contextlib.ExitStack() as running:
        folder = running.enter_context(subject.Folder())
        keys = list(encrypted.make_keys(folder))
        small, large = (
            running.enter_context(peers.Floor(beside_client, folder, upstream.http_response(b"x" * count))).port
            for count in (encrypted.SMALL, encrypted.LARGE)
        )
        servers = {
            "subject": running.enter_context(
                encrypted.Server(chosen.binary, folder, chosen.server_core, keys, small, large)
            ),
            "reference": running.enter_context(Caddy(program, folder, chosen.server_core, keys)),
        }
        for title, target, page_bytes, limit in CASES:
            figures = hit_cost.in_turns(
                servers, lambda server: ask(server, target, page_bytes, seconds, chosen), rounds
            )
            result.figures[title] = figures
            result.check(f"{title}: CPU, times Caddy's", round(figures["ratio"], 2), limit)
    return result


if __name__ == "__main__":
    report.main(NAME, TITLE, measure, __doc__)
