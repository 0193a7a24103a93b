"""The crowd: clients that read all the time, and compare what they get with what has been purged.

A client notes the newest purge of a page that has returned, asks for the page, looks whether the
answer is older than that, and rests for a moment. All processes see the purges in a file that they
map into memory.
"""

import collections
import json
import mmap
import re
import selectors
import socket
import struct
import sys
import time

# 4,000 requests a second of 200 clients.
REST_SECONDS = 0.05
# A flag that says that it is over, then a counter for each page.
COUNTER = struct.Struct("<q")
VERSION = re.compile(rb"version (\d+);")
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


class Purged:
    """What has been purged: by the writer's hand, for all to see."""

    def __init__(self, path):
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)

    @staticmethod
    def make(path, pages):
        with open(path, "wb") as file:
            file.write(bytes(COUNTER.size * (pages + 1)))
        return Purged(path)

    def of(self, page):
        return COUNTER.unpack_from(self._memory, COUNTER.size * (page + 1))[0]

    def set(self, page, version):
        COUNTER.pack_into(self._memory, COUNTER.size * (page + 1), version)

    @property
    def is_over(self):
        return self._memory[0] != 0

    def end(self):
        self._memory[0] = 1


class Client:
    def __init__(self, number, pages, port, selector):
        self._page = number % pages
        self._pages = pages
        self._address = ("127.0.0.1", port)
        self._selector = selector
        self._socket = None

    def ask(self, purged):
        """Sends a request; False if the server does not take it."""
        self._page = (self._page + 1) % self._pages
        self._least = purged.of(self._page)
        self._received = b""
        try:
            if self._socket is None:
                self._socket = socket.create_connection(self._address, timeout=10)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._selector.register(self._socket, selectors.EVENT_READ, self)
            self._socket.sendall(f"GET /p/{self._page} HTTP/1.1\r\nHost: site.test\r\n\r\n".encode())
        except OSError:
            self.close()
            return False
        return True

    def receive(self):
        """(page, least, shown) of a whole answer, None while some of it is missing.

        # Raises
        OSError if the connection ended, ValueError if it is no page."""
        data = self._socket.recv(65536)
        if not data:
            raise ConnectionError("closed")
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return None
        length = LENGTH.search(head)
        if length is None or not head.startswith(b"HTTP/1.1 200"):
            raise ValueError(head)
        if len(body) < int(length[1]):
            return None
        return self._page, self._least, int(VERSION.fullmatch(body)[1])

    def close(self):
        if self._socket is not None:
            self._selector.unregister(self._socket)
            self._socket.close()
            self._socket = None


def read(port, count, pages, purged):
    """What the clients saw until it was over."""
    selector = selectors.DefaultSelector()
    seen = collections.Counter(answers=0, old=0, broken=0, wrong=0)
    outlived = set()
    # When each may ask again, the first in front.
    resting = collections.deque((time.monotonic(), Client(number, pages, port, selector)) for number in range(count))

    def rest(client):
        resting.append((time.monotonic() + REST_SECONDS, client))

    def lose(client, why):
        seen[why] += 1
        client.close()
        rest(client)

    while not purged.is_over:
        while resting and resting[0][0] <= time.monotonic():
            _, client = resting.popleft()
            if not client.ask(purged):
                lose(client, "broken")
        for key, _ in selector.select(0.002):
            client = key.data
            try:
                answer = client.receive()
            except OSError:
                lose(client, "broken")
                continue
            except (ValueError, TypeError):
                lose(client, "wrong")
                continue
            if answer is None:
                continue
            page, least, shown = answer
            seen["answers"] += 1
            if shown < least:
                seen["old"] += 1
                outlived.add((page, least))
            rest(client)
    return {**seen, "outlived": sorted(outlived)}


if __name__ == "__main__":
    port, count, pages, path = sys.argv[1:]
    print(json.dumps(read(int(port), int(count), int(pages), Purged(path))))
