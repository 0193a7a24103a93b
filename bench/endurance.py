#!/usr/bin/env python3
"""What lasts: tunnels and busy connections through many reloads, and bodies of 1 GB.

WebSocket connections send numbered frames of changing sizes and want each back, while
the server is reloaded every ten seconds (half a minute; --websocket-seconds 600 for
ten). A download and two uploads of 1 GB go through the proxy while its memory is
watched. Then 1,000 reloads in a minute under 50 busy connections.
"""

import contextlib
import itertools
import os
import random
import signal
import socket
import threading
import time
import types

import proxying
from lib import load, origin, peers, process, report, subject, upstream

NAME = "endurance"
TITLE = "Tunnels, large bodies and reloads"

MB = 1 << 20
BODY_BYTES = 1 << 30
BODY_MEMORY_MB = 40
TUNNELS = 20
RELOAD_EACH_SECONDS = 10
RELOADS, RELOADS_SECONDS = 1000, 60
BUSY = 50
MERGED_SHARE = 0.05
# Not counting what the first reloads take for good.
SETTLED_AFTER = 0.2
GROWTH_MB = 2


class Echo(threading.Thread):
    """One tunnel: frames out and in until told to stop; `lost` says what was wrong."""

    def __init__(self, port, number, until):
        super().__init__(daemon=True)
        self.client = origin.WebSocket(port)
        self.chance = random.Random(number)
        self.until = until
        self.frames = 0
        self.lost = None

    def run(self):
        try:
            while time.monotonic() < self.until:
                content = b"%d " % self.frames + self.chance.randbytes(self.chance.choice((10, 300, 5000, 70_000)))
                self.client.send(content)
                if self.client.receive() != content:
                    self.lost = f"frame {self.frames} came back changed"
                    return
                self.frames += 1
                time.sleep(0.01)
        except (OSError, EOFError) as error:
            self.lost = f"after {self.frames} frames: {error}"
        finally:
            self.client.close()


def tunnels(server, result, seconds, each):
    until = time.monotonic() + seconds
    echoes = [Echo(server.port, number, until) for number in range(TUNNELS)]
    for echo in echoes:
        echo.start()
    reloads = 0
    while time.monotonic() + each < until:
        time.sleep(each)
        os.kill(server.pid, signal.SIGHUP)
        reloads += 1
    for echo in echoes:
        echo.join(60)
    lost = [echo.lost or "never ended" for echo in echoes if echo.lost or echo.is_alive()]
    frames = sum(echo.frames for echo in echoes)
    result.figures["tunnels"] = {"seconds": seconds, "reloads": reloads, "frames": frames, "lost": lost}
    result.check(f"{TUNNELS} tunnels, {frames:,} frames, {reloads} reloads: tunnels that lost one", len(lost), 0)


def download(server, body_bytes):
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
        client.sendall(b"GET /download HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        with client.makefile("rb") as stream:
            stream.readline()
            fields = origin.read_fields(stream)
            return sum(len(block) for block in origin.read_body(stream, fields))


def upload(server, target, body_bytes):
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
        head = f"POST {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {body_bytes}\r\n\r\n"
        client.sendall(head.encode())
        block = os.urandom(MB)
        for _ in range(body_bytes // MB):
            client.sendall(block)
        with client.makefile("rb") as stream:
            stream.readline()
            fields = origin.read_fields(stream)
            return int(b"".join(origin.read_body(stream, fields)))


def bodies(server, result, body_bytes):
    ways = {
        "download": lambda: download(server, body_bytes),
        "upload, streamed": lambda: upload(server, "/upload/streamed", body_bytes),
        "upload, buffered": lambda: upload(server, "/upload/buffered", body_bytes),
    }
    for name, way in ways.items():
        began = time.monotonic()
        with process.PeakMemory(server.pid) as peak:
            try:
                arrived = way()
            except (OSError, EOFError, ValueError) as error:
                arrived = 0
                result.figures[f"{name}: why"] = str(error)
        seconds = time.monotonic() - began
        result.figures[name] = {"bytes": arrived, "seconds": round(seconds, 2), "memory_mb": round(peak.bytes / MB, 1)}
        result.check(f"{name} of {body_bytes // MB} MB: bytes missing", body_bytes - arrived, 0)
        result.check(f"{name} of {body_bytes // MB} MB: memory", round(peak.bytes / MB, 1), BODY_MEMORY_MB, "MB")


def reloads(server, result, count, seconds):
    """As evenly as the clock allows; memory is looked at after each."""
    answers = load.Answers()
    is_over = threading.Event()
    targets = itertools.takewhile(lambda _: not is_over.is_set(), itertools.repeat("/small"))
    crowd = threading.Thread(
        target=load.crowd, args=(server.port, targets, BUSY, proxying.KB),
        kwargs={"answers": answers, "pause": 0.01}, daemon=True,
    )  # fmt: skip
    crowd.start()
    before = reloads_done(server)
    began = time.monotonic()
    memory = []
    for number in range(count):
        os.kill(server.pid, signal.SIGHUP)
        memory.append(process.memory_bytes(server.pid) / MB)
        time.sleep(max(0, began + (number + 1) * seconds / count - time.monotonic()))
    took = time.monotonic() - began
    is_over.set()
    crowd.join(load.ANSWER_TIMEOUT_SECONDS)
    settled = memory[int(count * SETTLED_AFTER) :]
    fifth = max(len(settled) // 5, 1)
    growth = sum(settled[-fifth:]) / fifth - sum(settled[:fifth]) / fifth
    result.figures["reloads"] = {
        "signals": count, "seconds": round(took, 1), "done": reloads_done(server) - before, **answers.summary(),
        "memory_mb": {"first": round(memory[0], 1), "last": round(memory[-1], 1), "most": round(max(memory), 1)},
    }  # fmt: skip
    # The system keeps one signal of those that come while the program reads one.
    merged = count - result.figures["reloads"]["done"]
    result.check(f"{count:,} reloads: signals merged into the next one", merged, count * MERGED_SHARE)
    result.check(f"{count:,} reloads: failed requests of {answers.count:,}", answers.other_than_200(), 0)
    result.check(f"{count:,} reloads: memory growth after the first fifth", round(growth, 2), GROWTH_MB, "MB")


def reloads_done(server):
    """How many reloads the error log tells of, from its beginning. nginx writes a line about the
    signal as well, which ends in ", reconfiguring"."""
    with open(os.path.join(server.folder, "error.log"), errors="replace") as log:
        return sum(line.rstrip().endswith((" reloaded", ": reconfiguring")) for line in log)


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    seconds = getattr(chosen, "websocket_seconds", None) or (6 if chosen.quick else 30)
    each = 2 if chosen.quick else RELOAD_EACH_SECONDS
    body_bytes = BODY_BYTES // 4 if chosen.quick else BODY_BYTES
    peers.Floor.tool = proxying.floor_tool(chosen)
    beside_client = types.SimpleNamespace(core=chosen.client_core)
    with contextlib.ExitStack() as running:
        folder = running.enter_context(subject.Folder())
        small = running.enter_context(peers.Floor(beside_client, folder, upstream.http_response(b"x" * proxying.KB)))
        source = running.enter_context(origin.Origin(body_bytes))
        values = {"SMALL": small.port, "ORIGIN": source.port}
        server = running.enter_context(
            subject.Server(chosen.binary, "endurance.conf", folder, chosen.server_core, **values)
        )
        tunnels(server, result, seconds, each)
        bodies(server, result, body_bytes)
        scale = 10 if chosen.quick else 1
        reloads(server, result, RELOADS // scale, RELOADS_SECONDS / scale)
    return result


def main():
    parser = report.options(__doc__)
    parser.add_argument("--websocket-seconds", type=float, help="30, or 6 with --quick")
    report.run(parser, measure)


if __name__ == "__main__":
    main()
