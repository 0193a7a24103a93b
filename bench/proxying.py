#!/usr/bin/env python3
"""What passing a response on costs: CPU time per request, beside nginx in the same run.

No cache. The upstream is bench-floor, which answers everything with the same bytes
from the client's core; connections are kept on both sides. Both servers run at once
and are asked in turns; the figure is the median of the rounds' ratios.
"""

import contextlib
import os
import types

import hit_cost
from lib import peers, report, subject, upstream

NAME = "proxying"
TITLE = "CPU time per proxied request"

KB = 1 << 10
# Name, target, bytes of the body.
CASES = [
    ("1 KB", "/small", KB),
    ("64 KB", "/large", 64 * KB),
    ("64 KB, larger buffers", "/large/fits", 64 * KB),
]
RATIO = 1.0


def floor_tool(chosen):
    tools = os.path.join(os.environ.get("CARGO_TARGET_DIR", "target"), "release")
    return getattr(chosen, "floor", None) or os.path.join(tools, "bench-floor")


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    seconds, rounds = (1, 3) if chosen.quick else (3, 7)
    peers.Floor.tool = floor_tool(chosen)
    if not os.access(peers.Floor.tool, os.X_OK):
        raise SystemExit(f"{peers.Floor.tool} is not there; cargo build --release --package bench-tools makes it")
    beside_client = types.SimpleNamespace(core=chosen.client_core)
    with contextlib.ExitStack() as running:
        folder = running.enter_context(subject.Folder())
        small, large = (
            running.enter_context(peers.Floor(beside_client, folder, upstream.http_response(b"x" * count))) for count in (KB, 64 * KB)
        )
        servers = {
            name: running.enter_context(subject.Server(
                binary, "proxying.conf", folder, chosen.server_core, SMALL=small.port, LARGE=large.port,
            ))
            for name, binary in [("subject", chosen.binary), ("reference", chosen.nginx)]
        }
        for name, target, body_bytes in CASES:
            figures = hit_cost.compare(servers, target, body_bytes, seconds, rounds, chosen.client_core)
            result.figures[name] = figures
            result.check(f"{name}: CPU, times nginx's", round(figures["ratio"], 2), RATIO)
    return result


if __name__ == "__main__":
    report.main(NAME, TITLE, measure, __doc__)
