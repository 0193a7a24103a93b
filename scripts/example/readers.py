"""Visitors who read all the time, and look whether what they get is older than what they know.

An editor writes words such as `h5v17`: the 17th headline of article 5. When the write has been answered, the
editor notes 17 in a file that all processes map into memory. A visitor notes that number before asking for a
page, and no page may show a smaller one.
"""

import collections
import json
import re
import selectors
import socket
import sys
import time

from known import Known

# 800 requests a second of 200 visitors.
REST_SECONDS = 0.25
WORD = re.compile(rb"\b([a-z])(\d+)v(\d+)\b")
ARTICLE = re.compile(r"/news/(\d+)$")


class Visitor:
    def __init__(self, number, pages, address, selector):
        self.page = pages[number % len(pages)]
        self._address = address
        self._selector = selector
        self._socket = None
        self._noted = None
        self._received = b""

    def ask(self, page, known):
        self.page, self._received, self._noted = page, b"", known.note()
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=10)
            self._selector.register(self._socket, selectors.EVENT_READ, self)
        self._socket.sendall(f"GET {page} HTTP/1.1\r\nHost: site.test\r\n\r\n".encode())

    def receive(self):
        """The whole answer, None while some of it is missing."""
        data = self._socket.recv(262144)
        if not data:
            raise ConnectionError("closed")
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return None
        if b"chunked" in head.lower():
            return joined(body) if body.endswith(b"0\r\n\r\n") else None
        length = int(re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)[1])
        return body if len(body) >= length else None

    def is_old(self, body):
        """The first word that is older than what was known, or is missing."""
        shown = collections.defaultdict(int)
        for kind, number, version in WORD.findall(body):
            slot = (kind.decode(), int(number))
            shown[slot] = max(shown[slot], int(version))
        if article := ARTICLE.match(self.page):
            for kind in "htc":
                shown.setdefault((kind, int(article[1])), 0)
        for slot, version in shown.items():
            if version < self._noted.of(*slot):
                return f"{self.page}: {slot[0]}{slot[1]}v{version}, and {self._noted.of(*slot)} was written"
        return None

    def close(self):
        if self._socket is not None:
            self._selector.unregister(self._socket)
            self._socket.close()
            self._socket = None


def joined(body):
    """A body without the marks of its chunks, which may stand within a word."""
    parts = []
    while body:
        size, _, body = body.partition(b"\r\n")
        size = int(size.split(b";")[0], 16)
        parts.append(body[:size])
        body = body[size + 2 :]
    return b"".join(parts)


def read(address, count, pages, known):
    selector = selectors.DefaultSelector()
    seen = {"answers": 0, "old": [], "broken": 0}
    visitors = [Visitor(number, pages, address, selector) for number in range(count)]
    resting = collections.deque((time.monotonic() + REST_SECONDS * number / count, visitor) for number, visitor in enumerate(visitors))
    turn = 0
    while not known.is_over:
        while resting and resting[0][0] <= time.monotonic():
            _, visitor = resting.popleft()
            turn += 1
            visitor.ask(pages[turn % len(pages)], known)
        for key, _ in selector.select(0.002):
            visitor = key.data
            try:
                body = visitor.receive()
            except OSError:
                seen["broken"] += 1
                visitor.close()
                body = b""
            if body is None:
                continue
            seen["answers"] += 1
            if old := visitor.is_old(body) if body else None:
                seen["old"].append(old)
            resting.append((time.monotonic() + REST_SECONDS, visitor))
    return seen


if __name__ == "__main__":
    port, count, path, *pages = sys.argv[1:]
    print(json.dumps(read(("127.0.0.1", int(port)), int(count), pages, Known(path))))
