"""Who asks while all of it happens. Each answer is judged by what is in it, not by its status alone."""

import contextlib
import gzip
import hashlib
import http.client
import os
import random
import socket
import ssl
import struct
import threading

from lib import origin

import pages as site

ANSWER_SECONDS = 30
# What a visitor may see of a server whose PHP is killed and whose origin is away.
UNAVAILABLE = {502, 503, 504}


class Counts:
    """What happened, by name; what was wrong, with the first examples."""

    WRONG = ("old", "torn", "wrong", "refused", "unexpected")

    def __init__(self):
        self._lock = threading.Lock()
        self.of = {}
        self.examples = []

    def add(self, what, example=None, by=1):
        with self._lock:
            self.of[what] = self.of.get(what, 0) + by
            example = f"{what}: {example}"
            if what in self.WRONG and len(self.examples) < 20 and example not in self.examples:
                self.examples.append(example)

    def wrong(self):
        return sum(self.of.get(what, 0) for what in self.WRONG)


class Work:
    """Threads that each do one thing again and again until told to stop, with a pause between."""

    def __init__(self, counts):
        self.counts = counts
        self._stop = threading.Event()
        self._threads = []

    def add(self, step, pause, count=1):
        for _ in range(count):
            self._threads.append(threading.Thread(target=self._repeat, args=(step, pause), daemon=True))

    def _repeat(self, step, pause):
        while not self._stop.wait(pause):
            try:
                step()
            except Exception as error:
                self.counts.add("unexpected", f"{step.__qualname__}: {type(error).__name__}: {error}")

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join(2 * ANSWER_SECONDS)
            if thread.is_alive():
                self.counts.add("unexpected", "a visitor still waits for an answer")


class Visitor:
    """Keeps a connection while the server lets it. A server may end a kept connection at any moment: a
    request on one that got no byte of an answer is sent once more, as browsers do."""

    def __init__(self, place, counts, is_tls=False):
        self.site, self.counts, self.is_tls = place, counts, is_tls
        self._connection = None

    def _new(self):
        if self.is_tls:
            trust = ssl.create_default_context(cafile=self.site.certificate)
            trust.check_hostname = False
            return http.client.HTTPSConnection("127.0.0.1", self.site.tls_port, timeout=ANSWER_SECONDS, context=trust)
        return http.client.HTTPConnection("127.0.0.1", self.site.port, timeout=ANSWER_SECONDS)

    def ask(self, method, path, body=None, fields=None):
        """(status, fields, body), or None where the connection broke."""
        for _ in range(2):
            is_kept = self._connection is not None
            connection = self._connection or self._new()
            self._connection = None
            try:
                connection.request(method, path, body=body, headers=fields or {})
                response = connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if is_kept and not isinstance(error, TimeoutError):
                    continue
                self.counts.add("refused", f"{method} {path}: {error!r}")
                return None
            try:
                content = response.read()
            except (OSError, http.client.HTTPException):
                # A worker of PHP was killed in the middle of a page that is passed on.
                self.counts.add("answers that broke off")
                connection.close()
                return None
            if response.will_close:
                connection.close()
            else:
                self._connection = connection
            return response.status, response, content
        return None

    def page(self):
        page = random.randrange(site.PAGES)
        fields = {"Accept-Encoding": "gzip"} if random.random() < 0.5 else {}
        at_least = self.site.pages.newest_purged(page)
        answer = self.ask("GET", f"/page/{page}", fields=fields)
        if answer is None or self.is_unavailable(answer[0]):
            return
        status, response, body = answer
        if response.getheader("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
            self.counts.add("compressed")
        self.counts.add("pages")
        self.counts.add("pages from memory or disk", by=response.getheader("X-Cache") == "HIT")
        fault = site.fault_of(page, body, at_least) if status == 200 else ("wrong", status)
        if fault:
            self.counts.add(fault[0], f"/page/{page}: {fault[1]}")

    def from_origin(self):
        path = f"/origin/{random.randrange(200)}"
        answer = self.ask("GET", path)
        if answer is None or self.is_unavailable(answer[0]):
            return
        self.counts.add("answers of the origin")
        if answer[0] != 200 or answer[2] != site.origin_body(path):
            self.counts.add("wrong", f"{path}: {answer[0]} {answer[2][:80]}")

    def upload(self):
        body = random.randbytes(random.choice((10, 3_000, 70_000, 900_000)))
        path = random.choice(("/upload/whole", "/upload/streamed"))
        answer = self.ask("POST", path, body=body, fields={"Content-Type": "application/octet-stream"})
        if answer is None or self.is_unavailable(answer[0]):
            return
        self.counts.add("uploads")
        if answer[0] != 200 or answer[2].decode(errors="replace") != hashlib.md5(body).hexdigest():
            self.counts.add("wrong", f"{path}: {answer[0]} {answer[2][:80]}")

    def looks(self):
        """The dashboard and the numbers, as who watches a server reads them each second."""
        for path in ("/metrics", "/dashboard"):
            answer = self.ask("GET", path)
            if answer is not None:
                self.counts.add("looks")
                if answer[0] != 200 or not answer[2]:
                    self.counts.add("wrong", f"{path}: {answer[0]}")

    def changes(self):
        """A change and its purge, by address or by tag."""
        page = random.randrange(site.PAGES)
        version = self.site.pages.change(page)
        if random.random() < 0.5:
            said = '{"tags":["page-%d"]}' % page
        else:
            said = '{"urls":["http://127.0.0.1:%d/page/%d"]}' % (self.site.port, page)
        if self.purge(said):
            self.counts.add("purges")
            self.site.pages.purge_returned(page, version)

    def purge(self, said):
        """Whether the purge was answered."""
        answer = self.ask("POST", "/purge", body=said, fields={"Content-Type": "application/json"})
        if answer is not None and answer[0] != 200:
            self.counts.add("wrong", f"purge: {answer[0]} {answer[2][:200]}")
        return answer is not None and answer[0] == 200

    def is_unavailable(self, status):
        if status in UNAVAILABLE:
            self.counts.add("answers that say PHP or the origin is away")
        return status in UNAVAILABLE


class Tunnel:
    """A WebSocket that wants back what it sends. Its connection may end with the process that serves it."""

    def __init__(self, place, counts):
        self.site, self.counts = place, counts
        self._tunnel = None

    def step(self):
        content = random.randbytes(random.choice((10, 300, 5_000, 70_000)))
        try:
            if self._tunnel is None:
                self._tunnel = origin.WebSocket(self.site.port)
                self.counts.add("tunnels")
            self._tunnel.send(content)
            came = self._tunnel.receive()
        except (OSError, EOFError):
            self.close()
            self.counts.add("tunnels that ended")
            return
        self.counts.add("frames")
        if came != content:
            self.counts.add("wrong", f"a frame of {len(content)} bytes came back with {len(came)}")

    def close(self):
        if self._tunnel is not None:
            with contextlib.suppress(OSError):
                self._tunnel.close()
        self._tunnel = None


class Leaver:
    """Asks for something large and leaves: at once, or in the middle of the answer or of an upload."""

    def __init__(self, place, counts):
        self.site, self.counts = place, counts

    def step(self):
        with socket.create_connection(("127.0.0.1", self.site.port), timeout=ANSWER_SECONDS) as client:
            # Closing sends a reset.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with contextlib.suppress(OSError):
                if random.random() < 0.3:
                    client.sendall(b"POST /upload/whole HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n" + os.urandom(20_000))
                else:
                    client.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
                if random.random() < 0.7:
                    client.recv(random.choice((1, 1000, 100_000)))
        self.counts.add("requests broken off")
