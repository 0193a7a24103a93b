"""Visitors who come all the time, an upstream that misbehaves, and clients that do."""

import socket
import threading
import time


class Visitors:
    """`with Visitors(server, path) as visitors: ...` Each asks again when it has its answer; a
    path may hold `%d`, for a page nobody has asked for yet."""

    def __init__(self, server, path, count=8):
        self.server, self.path = server, path
        self.asked = self.failed = 0
        self.longest = 0.0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(count)]

    def _ask(self):
        while not self._stop.is_set():
            with self._lock:
                self.asked += 1
                number = self.asked
            path = self.path % number if "%d" in self.path else self.path
            began = time.monotonic()
            status, _, _ = self.server.get(path)
            took = time.monotonic() - began
            with self._lock:
                self.failed += status != 200
                self.longest = max(self.longest, took)
            time.sleep(0.002)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        time.sleep(0.2)
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join(15)

    def __str__(self):
        return f"{self.failed} of {self.asked} failed, longest {self.longest * 1000:.0f} ms"


LARGE = 16 << 20


class Upstream:
    """An HTTP server that does what the path says: hang, cut, short, long, large."""

    def __init__(self):
        self.asked = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client):
        with client:
            try:
                head = b""
                while b"\r\n\r\n" not in head:
                    got = client.recv(4096)
                    if not got:
                        return
                    head += got
                path = head.split()[1].decode()
                self.asked += 1
                answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: "
                if "hang" in path:
                    client.settimeout(5)
                    client.recv(1)
                elif "cut" in path:
                    client.sendall(answer + b"1000\r\n\r\nhalf")
                elif "nonsense" in path:
                    client.sendall(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
                elif "long" in path:
                    client.sendall(answer + b"4\r\n\r\nbody and more than was promised")
                elif "large" in path:
                    client.sendall(answer + b"%d\r\n\r\n" % LARGE + b"x" * LARGE)
                else:
                    client.sendall(answer + b"4\r\n\r\npage")
            except OSError:
                return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()


def open_connections(port, count, send=b""):
    """So many connections, each with the beginning of a request."""
    opened = []
    for _ in range(count):
        try:
            client = socket.create_connection(("127.0.0.1", port), timeout=2)
            client.sendall(send)
            opened.append(client)
        except OSError:
            break
    return opened
