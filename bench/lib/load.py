"""Load: wrk for speed, and a small client of our own that checks each answer.

The client speaks HTTP/1.1 with kept connections on epoll. It is slower than wrk
but misses nothing: status, framing, length and both marks of the benchmark page.
"""

import collections
import itertools
import json
import os
import re
import select
import socket
import subprocess
import threading
import time

from . import process

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# A server that has not answered by then never will, as far as we are concerned.
ANSWER_TIMEOUT_SECONDS = 60


def wrk(url, connections, seconds, core=None, script="report.lua", arguments=()):
    """Runs wrk with one thread and a script of bench/; latencies in milliseconds."""
    script = os.path.join(SCRIPTS, script)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", script, url, *arguments]
    if core is not None:
        command = ["taskset", "--cpu-list", str(core), *command]
    limit = seconds + ANSWER_TIMEOUT_SECONDS
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=limit).stdout
    figures = json.loads(re.search(r"^JSON (.*)$", output, re.MULTILINE)[1])
    for name in ("p50", "p99", "p99_9", "max"):
        figures[name + "_ms"] = round(figures.pop(name) / 1000, 2)
    figures["per_second"] = round(figures["requests"] / (figures.pop("microseconds") / 1e6))
    figures["errors"] = sum(figures[name] for name in ("refused", "broken", "timeouts", "bad_status"))
    return figures


def percentile(sorted_values, percent):
    if not sorted_values:
        return None
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * percent / 100))]


class Answers:
    """What came back: by status, by cache status, what was wrong, and how long it took."""

    def __init__(self):
        self.statuses = collections.Counter()
        self.cache = collections.Counter()
        self.broken = collections.Counter()
        self.milliseconds = []

    @property
    def count(self):
        return sum(self.statuses.values())

    def other_than_200(self):
        """Answers that were not a whole, right 200, connection failures included."""
        return self.count - self.statuses[200] + sum(self.broken.values())

    def summary(self):
        times = sorted(self.milliseconds)
        return {
            "answers": self.count,
            "statuses": {str(status): count for status, count in self.statuses.items()},
            "cache": dict(self.cache),
            "broken": dict(self.broken),
            **{f"p{str(p).replace('.', '_')}_ms": round(percentile(times, p) or 0, 2) for p in (50, 99, 99.9)},
            "max_ms": round(times[-1], 2) if times else None,
        }


class _Connection:
    def __init__(self, source):
        self.socket = None
        self.source = (source, 0) if source else None
        self.received = b""
        self.sent_at = 0.0
        self.due = 0.0


def crowd(port, targets, connections, expected_bytes=None, pause=0.0, seconds=None, answers=None,
          address="127.0.0.1", host="127.0.0.1", sources=(None,)):
    """Asks `host` for each of `targets` (an iterator of request targets) over so many connections.

    Every connection waits for its answer before it asks again, `pause` seconds
    apart. Ends when the targets do, or after `seconds`. Connections come from `sources` by turns: addresses of this machine.
    """
    answers = answers or Answers()
    targets = iter(targets)
    ends_at = time.monotonic() + seconds if seconds else float("inf")
    poll = select.epoll()
    open_connections, waiting = {}, collections.deque()

    def ask(connection):
        target = next(targets, None) if time.monotonic() < ends_at else None
        if target is None:
            if connection.socket:
                connection.socket.close()
            return
        try:
            if connection.socket is None:
                connection.socket = socket.create_connection((address, port), timeout=5, source_address=connection.source)
                connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                poll.register(connection.socket, select.EPOLLIN)
                open_connections[connection.socket.fileno()] = connection
            connection.received = b""
            connection.sent_at = time.monotonic()
            connection.socket.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            open_connections[connection.socket.fileno()] = connection
        except OSError as error:
            lose(connection, f"cannot send: {error.strerror or error}")

    def lose(connection, why):
        answers.broken[why] += 1
        if connection.socket is not None:
            open_connections.pop(connection.socket.fileno(), None)
            connection.socket.close()
            connection.socket = None
        rest(connection)

    def rest(connection):
        connection.due = connection.sent_at + pause
        waiting.append(connection)

    for _, source in zip(range(connections), itertools.cycle(sources)):
        ask(_Connection(source))
    while open_connections or waiting:
        now = time.monotonic()
        for _ in range(len(waiting)):
            connection = waiting.popleft()
            ask(connection) if connection.due <= now else waiting.append(connection)
        for number, _ in poll.poll(0.002 if waiting else 0.2):
            connection = open_connections.get(number)
            if connection is None:
                continue
            try:
                data = connection.socket.recv(262144)
            except OSError as error:
                lose(connection, f"cannot receive: {error.strerror}")
                continue
            if not data:
                lose(connection, "closed before the whole answer")
                continue
            connection.received += data
            answer = parse(connection.received)
            if answer is None:
                continue
            del open_connections[number]
            status, fields, body = answer
            answers.statuses[status] += 1
            answers.cache[fields.get(b"x-cache", b"").decode() or "none"] += 1
            answers.milliseconds.append((time.monotonic() - connection.sent_at) * 1000)
            if status == 200 and expected_bytes is not None and not _is_whole(body, expected_bytes):
                answers.broken["wrong body"] += 1
            if fields.get(b"connection", b"").lower() == b"close":
                connection.socket.close()
                connection.socket = None
            rest(connection)
        if now > ends_at + ANSWER_TIMEOUT_SECONDS:
            answers.broken["no answer in time"] += len(open_connections)
            break
    poll.close()
    return answers


def _is_whole(body, expected_bytes):
    return len(body) == expected_bytes and body[:10] == body[-10:]


def parse(received):
    """(status, fields, body) of a complete answer, None while some of it is missing."""
    head, separator, rest = received.partition(b"\r\n\r\n")
    if not separator:
        return None
    lines = head.split(b"\r\n")
    fields = {}
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        fields[name.strip().lower()] = value.strip()
    status = int(lines[0].split()[1])
    if b"chunked" in fields.get(b"transfer-encoding", b"").lower():
        body = _dechunk(rest) if rest.endswith(b"0\r\n\r\n") else None
    else:
        length = int(fields.get(b"content-length", b"0"))
        body = rest if len(rest) >= length else None
    return None if body is None else (status, fields, body)


def _dechunk(rest):
    body = b""
    while True:
        size, separator, rest = rest.partition(b"\r\n")
        length = int(size.split(b";")[0], 16) if separator else -1
        if length < 0 or len(rest) < length + 2:
            return None
        if length == 0:
            return body
        body += rest[:length]
        rest = rest[length + 2 :]


class Witness:
    """A few careful visitors beside wrk: `with Witness(...) as witness: ...`, then `.answers`.

    Each asks fifty times a second at most, so that the witness costs the client's
    core little.
    """

    def __init__(self, port, target, expected_bytes, visitors=10):
        self.answers = Answers()
        self._stop = threading.Event()
        arguments = (port, self._targets(target), visitors, expected_bytes)
        options = {"pause": 0.02, "answers": self.answers}
        self._thread = threading.Thread(target=crowd, args=arguments, kwargs=options, daemon=True)

    def _targets(self, target):
        while not self._stop.is_set():
            yield target

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(ANSWER_TIMEOUT_SECONDS)


def bench_load(tool, server, target, core, options, limit_seconds):
    """Runs bench-load; (its figures, (user, system) CPU seconds of the server, its memory in bytes).

    CPU time is that of the asking alone: connecting is over when it begins. Memory is
    what the server holds while all connections, the silent ones too, are open.
    """
    command = [tool, str(server.port), target, *options]
    started = process.start(command, core, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    watchdog = threading.Timer(limit_seconds, started.kill)
    watchdog.start()
    try:
        ready = started.stdout.readline()
        memory = process.memory_bytes(*server.pids)
        clock = process.CpuTime(*server.pids)
        if ready:
            started.stdin.write("\n")
            started.stdin.flush()
        figures = started.stdout.readline()
        spent = clock.spent()
    finally:
        watchdog.cancel()
        process.kill_session(started)
        said = started.communicate()[1].strip()
    if not figures:
        raise RuntimeError(f"bench-load gave nothing within {limit_seconds:.0f} s; {said}")
    return json.loads(figures), spent, memory


def request_bytes(method, target, fields):
    """A request as bench-load would send it for page 0."""
    lines = [f"{method} {target.replace('{}', '0')} HTTP/1.1", "Host: bench.example", *fields]
    return "\r\n".join([*lines, "", ""]).encode()


def ask_once(port, request):
    """The bytes of one whole answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(request)
        return receive(connection, request.startswith(b"HEAD"))


def receive(connection, is_head_only=False):
    """The bytes of one whole answer from a socket; one to HEAD and a 304 end with their head."""
    received = b""
    while True:
        head, separator, _ = received.partition(b"\r\n\r\n")
        if separator and (is_head_only or b" 304 " in head[:14]):
            return received
        if separator and parse(received):
            return received
        data = connection.recv(1 << 20)
        if not data:
            raise RuntimeError(f"closed after {len(received)} bytes: {received[:200]!r}")
        received += data
