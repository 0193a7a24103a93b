#!/usr/bin/env python3
"""Floods of HTTP/2 and HTTP/3: how much memory they take, and how long other clients wait.

A flood is sent by one core. The server has another one, and one worker. Meanwhile visitors ask for
a stored page of 21 KB at a steady rate: 200 times a second over 20 connections that they keep, and
50 times a second over new ones. The control is the same flood against a second server on the same
core: so the same CPU time is spent elsewhere, and the difference is what the flooded server itself
lets its visitors feel. Where the machine has other work, root starts it with `nice -n -10`.

What must hold: memory at its highest is at most 256 MB, no visitor goes without an answer, and the
99th percentile of each kind of visitor is at most twice the control's. The status is 1 where it
does not. Needs two cores; takes 40 seconds for each flood, a quarter of an hour in all.

    cargo build --release --package mayfly --package bench-tools
    scripts/floods/run.py [--binary FILE] [--seconds 20] [--only NAME...] [--json FILE] [--write]
"""

import argparse
import contextlib
import json
import os
import platform
import re
import resource
import subprocess
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "bench"))

import encrypted  # noqa: E402
from lib import peers, process, report, subject, upstream  # noqa: E402

DOCUMENT = os.path.join(ROOT, "docs/design/2026-11-23-floods.md")
BEGIN, END = "<!-- begin: scripts/floods/run.py -->", "<!-- end: scripts/floods/run.py -->"
PAGE_BYTES = 21 << 10
MAX_MEMORY_MB = 256
MAX_TIMES_THE_CONTROL = 2

# What is sent, in words, and what it asks for.
HTTP2 = {
    "rapid_reset": ("requests that are taken back at once", "/uncached"),
    "continuation": ("CONTINUATION frames without an end", "/page"),
    "ping": ("PING frames", "/page"),
    "settings": ("SETTINGS frames that change each window", "/page"),
    "window_update": ("WINDOW_UPDATE frames", "/page"),
    "empty_data": ("DATA frames without data", "/uncached"),
    "hpack_bomb": ("heads that decode to 64 MB (HPACK bomb)", "/page"),
}
HTTP3 = {
    "forged_addresses": ("first packets from 512 addresses that read no answer", "/page"),
    "handshakes": ("handshakes", "/page"),
    "tiny_packets": ("packets of up to 40 bytes from 512 addresses", "/page"),
    "stalls": ("100 requests a connection, whose answers are not taken", "/page"),
}


class Flood:
    """One kind over one way to the server."""

    def __init__(self, kind, way, words, path):
        self.kind, self.way, self.words, self.path = kind, way, words, path
        self.name = kind if way == "http3" else f"{kind}_{way}"
        self.protocol = "http3" if way == "http3" else "http2"
        self.options = ["--tls"] if way == "tls" else []

    def port_of(self, server):
        return server.ports["plain" if self.way == "plain" else "tls"]

    def title(self):
        over = {"tls": "HTTP/2, TLS", "plain": "HTTP/2, plain", "http3": "HTTP/3"}[self.way]
        return f"{over}: {self.words}"


FLOODS = [Flood(kind, way, *facts) for way in ("tls", "plain") for kind, facts in HTTP2.items()]
FLOODS += [Flood(kind, "http3", *facts) for kind, facts in HTTP3.items()]


class Server(subject.Daemon):
    def __init__(self, binary, folder, core, origin):
        super().__init__("mayfly", folder)
        self.ports = {"tls": self.port, "plain": subject.free_port()}
        list(encrypted.make_keys(self.folder))
        values = {"PLAIN": self.ports["plain"], "ORIGIN": origin}
        config = self.configure(os.path.join(HERE, "server.conf"), "mayfly", values)
        self.start(subject.command_of(binary, self.folder, config), core)
        self.wait()

    def memory_mb(self):
        return process.memory_bytes(self.pid, field="VmHWM") / (1 << 20)

    def log_bytes(self):
        return os.path.getsize(os.path.join(self.folder, "error.log"))


class Tool:
    """One of bench/tools' programs, which says in JSON what it did."""

    def __init__(self, chosen, name, *arguments, nice=0):
        def hurry():
            # Visitors do not wait for the sender, with whom they share a core. Only root may do so.
            with contextlib.suppress(PermissionError):
                os.nice(nice)

        self.name = name
        command = ["taskset", "--cpu-list", str(chosen.client_core), os.path.join(chosen.tools, name)]
        command += [str(argument) for argument in arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=hurry)

    def told(self):
        """What it did, with the CPU time that it took."""
        output = self._process.stdout.read()
        _, status, used = os.wait4(self._process.pid, 0)
        self._process.returncode = status
        if status:
            raise RuntimeError(f"{self.name} ended with status {status}")
        return {**json.loads(output), "cpu_seconds": round(used.ru_utime + used.ru_stime, 2)}


def run_one(chosen, flood, origin, folder, is_control):
    """The flood, or the same against another server, and what visitors saw of it."""
    with contextlib.ExitStack() as running:
        server, other = (
            running.enter_context(Server(chosen.binary, folder, chosen.server_core, origin)) for _ in range(2)
        )
        flooded = other if is_control else server
        address = f"127.0.0.1:{flood.port_of(server)}"
        # The page is stored, and all that is made once is there.
        Tool(chosen, "bench-visitors", flood.protocol, address, "/page", 1, *flood.options).told()
        before, clock = flooded.memory_mb(), process.CpuTime(flooded.pid)
        # The flood is under way before the visitors come and until they have gone.
        sender = Tool(
            chosen, "bench-flood", flood.kind, f"127.0.0.1:{flood.port_of(flooded)}", flood.path,
            chosen.seconds + 1, *flood.options,
        )
        visitors = Tool(
            chosen, "bench-visitors", flood.protocol, address, "/page", chosen.seconds, *flood.options, nice=-10,
        )
        visits, sent = visitors.told(), sender.told()
        return {
            "visits": visits, "sent": sent, "server_cpu_seconds": round(sum(clock.spent()), 2),
            "memory_before_mb": round(before, 1), "memory_mb": round(flooded.memory_mb(), 1),
            "log_bytes": flooded.log_bytes(),
        }


def judge(flood, control, flooded):
    """One row of figures, and what does not hold."""
    row = {
        "name": flood.name, "title": flood.title(), "control": control, "flooded": flooded,
        "memory_mb": flooded["memory_mb"], "broken": [],
    }
    if flooded["memory_mb"] > MAX_MEMORY_MB:
        row["broken"].append(f"{flooded['memory_mb']} MB of memory")
    for kind in ("kept", "new"):
        theirs, ours = control["visits"][kind], flooded["visits"][kind]
        times = ours["p99_ms"] / theirs["p99_ms"]
        row[f"{kind}_times"] = round(times, 2)
        if times > MAX_TIMES_THE_CONTROL:
            row["broken"].append(f"{kind} connections wait {times:.1f} times as long")
        if ours["failed"]:
            row["broken"].append(f"{ours['failed']} visitors on {kind} connections without an answer ({ours['reasons']})")
    return row


def cells(row):
    """What a row of the table says."""
    sent, seconds = row["flooded"]["sent"], row["flooded"]["sent"]["seconds"]
    waits = [
        "{:.1f} ms, {:.1f} ms".format(row["control"]["visits"][kind]["p99_ms"], row["flooded"]["visits"][kind]["p99_ms"])
        for kind in ("kept", "new")
    ]
    return [
        row["title"], f"{sent['pieces'] / seconds:,.0f}", f"{sent['connections'] / seconds:,.0f}",
        f"{row['memory_mb']:.0f} MB", *waits, "yes" if not row["broken"] else "; ".join(row["broken"]),
    ]


HEADING = [
    "flood", "pieces a second", "connections a second", "memory", "p99, kept connections: control, flood",
    "p99, new connections: control, flood", "holds",
]


def write(rows, seconds):
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    lines = [BEGIN, "", f"Commit {commit.stdout.strip()}, {os.cpu_count()} cores, Linux {platform.release()}, {seconds} s each.", ""]
    lines += ["| " + " | ".join(HEADING) + " |", "| --- |" + " --- |" * (len(HEADING) - 1)]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    with open(DOCUMENT) as file:
        text = file.read()
    between = re.compile(re.escape(BEGIN) + ".*" + re.escape(END), re.DOTALL)
    with open(DOCUMENT, "w") as file:
        file.write(between.sub(lambda _: "\n".join([*lines, "", END]), text))


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    parser.add_argument("--binary", default=os.path.join(target, "release/mayfly"))
    parser.add_argument("--tools", default=os.path.join(target, "release"), help="folder of bench-flood and the others")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[flood.name for flood in FLOODS],
                        help=", ".join(flood.name for flood in FLOODS))
    parser.add_argument("--json", default=os.path.join(target, "floods.json"), help="where all figures go")
    parser.add_argument("--write", action="store_true", help="write the table into docs/design/2026-11-23-floods.md")
    parser.add_argument("--client-core", type=int, default=0)
    parser.add_argument("--server-core", type=int, default=1)
    return parser.parse_args()


def main():
    chosen = options()
    if not {chosen.client_core, chosen.server_core} <= os.sched_getaffinity(0):
        raise SystemExit("two cores are needed, one for who sends and one for the server")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    peers.Floor.tool = os.path.join(chosen.tools, "bench-floor")
    beside_client = types.SimpleNamespace(core=chosen.client_core)
    rows = []
    with subject.Folder() as folder:
        answer = upstream.http_response(b"x" * PAGE_BYTES)
        with peers.Floor(beside_client, folder, answer) as origin:
            for flood in FLOODS:
                if chosen.only and flood.name not in chosen.only:
                    continue
                control, flooded = (
                    run_one(chosen, flood, origin.port, folder, is_control) for is_control in (True, False)
                )
                for told in (control, flooded):
                    told["sent"]["seconds"] = chosen.seconds + 1
                rows.append(judge(flood, control, flooded))
                print(report.columns(list(zip(HEADING, cells(rows[-1])))), "\n", flush=True)
    report.write_json(chosen.json, rows)
    if chosen.write:
        write(rows, f"{chosen.seconds:g}")
    broken = [row["name"] for row in rows if row["broken"]]
    print(f"{len(rows) - len(broken)} of {len(rows)} floods keep to the bounds; all figures are in {chosen.json}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
