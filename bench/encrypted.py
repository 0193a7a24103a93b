#!/usr/bin/env python3
"""What TLS and HTTP/2 cost: CPU time per request and per handshake, beside nginx in the same run.

h2load asks over 10 connections with 10 streams each (50 kept connections for HTTP/1.1); both
servers run at once and are asked in turns, and the figure is the median of the rounds' ratios.
Handshakes are made one after the other by this program, over TLS 1.3: only the server's time
counts. The upstream is bench-floor, which answers everything with the same bytes from the
client's core. CPU time is that of the whole process tree.
"""

import contextlib
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
import types

import hit_cost
import proxying
from lib import load, peers, process, report, subject, upstream

NAME = "encrypted"
TITLE = "CPU time over TLS and HTTP/2"

SMALL, LARGE = 40, 21 << 10
STREAMS = ("-c", "10", "-m", "10")
# The client's window for a stream and for the connection: 2 to this power, less one byte.
SMALL_WINDOWS = ("-w", "16", "-W", "16")
KEPT = ("--h1", "-c", "50")
# What is asked, in words; which port; the target; h2load's options; at most so many times nginx's CPU.
CASES = [
    ("HTTPS/1.1, 40 B", "tls", "/40", KEPT, 0.75),
    ("HTTPS/1.1, 21 KB", "tls", "/21k", KEPT, 0.70),
    ("HTTP/2 over TLS, 40 B", "tls", "/40", STREAMS, 0.25),
    ("HTTP/2 over TLS, 21 KB", "tls", "/21k", STREAMS, 0.50),
    ("HTTP/2 without TLS, 40 B", "plain", "/40", STREAMS, 0.25),
    ("HTTP/2 without TLS, 21 KB", "plain", "/21k", STREAMS, 0.40),
    ("HTTP/2 without TLS, 21 KB, windows of 64 KB", "plain", "/21k", (*STREAMS, *SMALL_WINDOWS), 0.40),
    ("HTTP/2 over TLS, 40 B that are not stored", "tls", "/uncached", STREAMS, 1.0),
]
# Which port, whether the session is resumed, at most so many times nginx's CPU.
HANDSHAKES = [
    ("a full handshake, ECDSA", "tls", False, 0.55),
    ("a resumed handshake, ECDSA", "tls", True, 0.55),
    ("a full handshake, RSA of 2048 bits", "rsa", False, 0.8),
]
HANDSHAKES_A_ROUND = 300
IDLE = 1000
REQUEST = b"GET /40 HTTP/1.1\r\nHost: bench.example\r\n\r\n"


class Server(subject.Daemon):
    """Mayfly or nginx with conf/encrypted.conf."""

    def __init__(self, binary, folder, core, keys, small, large):
        self.kind = subject.kind_of(binary)
        super().__init__(self.kind, folder)
        self.ports = {"tls": self.port, "plain": subject.free_port(), "rsa": subject.free_port()}
        for path in keys:
            shutil.copy(path, self.folder)
        template = os.path.join(subject.TEMPLATES, "encrypted.conf")
        ports = {"PLAIN": self.ports["plain"], "RSA": self.ports["rsa"], "SMALL": small, "LARGE": large}
        self.start(subject.command_of(binary, self.folder, self.configure(template, self.kind, ports)), core)
        self.wait()


def make_keys(folder):
    """A certificate of each kind, with its key in the same file."""
    kinds = {"ecdsa": ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"], "rsa": ["rsa:2048"]}
    for name, kind in kinds.items():
        path = os.path.join(folder, f"{name}.pem")
        key, certificate = f"{path}.key", f"{path}.crt"
        subprocess.run([
            "openssl", "req", "-x509", "-nodes", "-days", "30", "-subj", "/CN=bench.example",
            "-addext", "subjectAltName=DNS:bench.example", "-newkey", *kind, "-keyout", key, "-out", certificate,
        ], check=True, capture_output=True)
        with open(path, "wb") as both:
            for part in (certificate, key):
                with open(part, "rb") as file:
                    both.write(file.read())
        yield path


def h2load(server, port, target, seconds, core, options):
    """(CPU microseconds per request, requests per second) of one round."""
    scheme = "http" if port == "plain" else "https"
    clock = process.CpuTime(server.pid)
    told = subprocess.run([
        "taskset", "--cpu-list", str(core), "h2load", "-D", str(seconds), *options,
        f"{scheme}://127.0.0.1:{server.ports[port]}{target}",
    ], check=True, capture_output=True, text=True, timeout=seconds + 60).stdout
    spent = sum(clock.spent())
    done = int(re.search(r"status codes: (\d+) 2xx", told)[1])
    wrong = [int(count) for count in re.findall(r"(\d+) (?:3xx|4xx|5xx|failed|errored|timeout)", told)]
    if any(wrong) or not done:
        raise SystemExit(f"{server.kind}: not every request to {target} was answered: {told}")
    return spent * 1e6 / done, done / seconds


class Client:
    """One who connects again and again, over HTTP/1.1."""

    def __init__(self, port, resumes):
        self._port, self._resumes, self._session = port, resumes, None
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.check_hostname, self._context.verify_mode = False, ssl.CERT_NONE
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3

    def connect(self):
        """A connection that had an answer, with which the ticket for the next one came."""
        plain = socket.create_connection(("127.0.0.1", self._port), timeout=30)
        connection = self._context.wrap_socket(plain, session=self._session, server_hostname="bench.example")
        if self._session and not connection.session_reused:
            raise SystemExit("a session was not resumed")
        connection.sendall(REQUEST)
        load.receive(connection, False)
        if self._resumes:
            self._session = connection.session
        return connection


def handshakes(server, port, resumes):
    """(CPU microseconds per connection, connections per second), a request on each included."""
    client = Client(server.ports[port], resumes)
    client.connect().close()
    clock, began = process.CpuTime(server.pid), time.monotonic()
    for _ in range(HANDSHAKES_A_ROUND):
        client.connect().close()
    seconds = time.monotonic() - began
    return sum(clock.spent()) * 1e6 / HANDSHAKES_A_ROUND, HANDSHAKES_A_ROUND / seconds


def idle_kilobytes(server):
    """Memory of each connection that had an answer and is kept."""
    client = Client(server.port, False)
    with contextlib.ExitStack() as kept:
        # The first ones pay for what all share.
        for _ in range(IDLE // 10):
            kept.enter_context(client.connect())
        before = process.memory_bytes(server.pid)
        for _ in range(IDLE):
            kept.enter_context(client.connect())
        return (process.memory_bytes(server.pid) - before) / IDLE / 1024


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    seconds, rounds = (1, 3) if chosen.quick else (3, 5)
    peers.Floor.tool = proxying.floor_tool(chosen)
    beside_client = types.SimpleNamespace(core=chosen.client_core)
    with contextlib.ExitStack() as running:
        folder = running.enter_context(subject.Folder())
        keys = list(make_keys(folder))
        small, large = (
            running.enter_context(peers.Floor(beside_client, folder, upstream.http_response(b"x" * count))).port
            for count in (SMALL, LARGE)
        )
        servers = {
            name: running.enter_context(Server(binary, folder, chosen.server_core, keys, small, large))
            for name, binary in [("subject", chosen.binary), ("reference", chosen.nginx)]
        }

        def check(title, cost, limit):
            figures = hit_cost.in_turns(servers, cost, rounds)
            result.figures[title] = figures
            result.check(f"{title}: CPU, times nginx's", round(figures["ratio"], 2), limit)

        for title, port, target, options, limit in CASES:
            check(title, lambda server: h2load(server, port, target, seconds, chosen.client_core, options), limit)
        for title, port, resumes, limit in HANDSHAKES:
            check(title, lambda server: handshakes(server, port, resumes), limit)
        idle = {name: round(idle_kilobytes(server), 1) for name, server in servers.items()}
        result.figures["idle connection, KB"] = idle
        result.check("idle TLS connection: memory, KB, nginx's is the limit", idle["subject"], idle["reference"], "KB")
    return result


if __name__ == "__main__":
    report.main(NAME, TITLE, measure, __doc__)
