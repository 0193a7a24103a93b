#!/usr/bin/env python3
"""Slow clients must not slow others down.

5,000 connections send their request one byte a second. Meanwhile wrk asks for a
stored page over 50 connections, as it did before they came.
"""

import socket
import threading
import time

from lib import load, php, process, report, subject

NAME = "slow_clients"
TITLE = "Slow clients beside fast ones"

PAGE_BYTES = 21 * 1024
CONNECTIONS = 50
TARGET = f"/?bytes={PAGE_BYTES}"
# Longer than the measurement: none of the slow ever gets to the end of it.
REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: " + b"z" * 200


class SlowClients:
    """`with SlowClients(port, count) as slow: ...`; a byte each per second until the end."""

    def __init__(self, port, count):
        self.sockets = []
        for _ in range(count):
            self.sockets.append(socket.create_connection(("127.0.0.1", port), timeout=10))
        self.closed = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._trickle, daemon=True)

    def _trickle(self):
        for byte in REQUEST:
            began = time.monotonic()
            for index, client in enumerate(self.sockets):
                try:
                    if client is not None:
                        client.send(bytes([byte]))
                except OSError:
                    self.closed += 1
                    self.sockets[index] = None
            if self._stop.wait(max(0, 1 - (time.monotonic() - began))):
                return

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        for client in self.sockets:
            if client is not None:
                client.close()


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    count, seconds = (2000, 4) if chosen.quick else (5000, 10)
    with subject.Folder() as folder, php.PhpFpm(folder, core=chosen.server_core) as fpm, subject.Server(
        chosen.binary, "page.conf", folder, chosen.server_core,
        SOCKET=fpm.socket, EXECUTIONS="/dev/null", WORK_ROUNDS=0, LIFETIME="1h", MEMORY="64m",
    ) as server:
        load.crowd(server.port, [TARGET], 1, PAGE_BYTES)
        alone = load.wrk(server.url(TARGET), CONNECTIONS, seconds, chosen.client_core)
        before = process.memory_bytes(server.pid)
        with SlowClients(server.port, count) as slow:
            time.sleep(2)
            beside = load.wrk(server.url(TARGET), CONNECTIONS, seconds, chosen.client_core)
            per_client = (process.memory_bytes(server.pid) - before) / count
    result.figures = {
        "slow_clients": count, "alone": alone, "beside": beside,
        "bytes_per_slow_client": round(per_client), "closed_early": slow.closed,
    }
    # The slow ones' own packets take a share of both cores, hence not "the same".
    limit = round(2 * alone["p99_ms"] + 5, 2)
    result.check(f"{count:,} slow clients: 99th percentile of others", beside["p99_ms"], limit, "ms")
    result.check("errors", alone["errors"] + beside["errors"], 0)
    return result


if __name__ == "__main__":
    report.main(NAME, TITLE, measure, __doc__)
