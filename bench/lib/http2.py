"""A client of HTTP/2 without TLS (RFC 9113) that asks for one page again and again, one after the other.

It encodes requests as clients of the field do: the first one adds the host and the path to the
dynamic table, the next ones refer to them (RFC 7541 §6.1, §6.2.1). Of what the server sends it reads
where a response ends, and no fields.
"""

import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
FRAME_HEADER_BYTES = 9
INITIAL_WINDOW_SIZE = 4
LARGEST_WINDOW, FIRST_WINDOW = (1 << 31) - 1, 65535
# In the static table: `:method: GET`, `:scheme: http`; with the dynamic table behind it.
GET, HTTP = b"\x82", b"\x86"
ADD_AUTHORITY, ADD_PATH = b"\x41", b"\x44"
ADDED_AUTHORITY, ADDED_PATH = b"\xbe", b"\xbf"


def _frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _text(text):
    encoded = text.encode()
    if len(encoded) >= 127:
        raise ValueError("longer than one byte can say")
    return bytes([len(encoded)]) + encoded


class Connection:
    """`with Connection(port, target) as connection: ...`: asks 127.0.0.1 for one target."""

    def __init__(self, port, target, host="bench.example"):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        settings = _frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, LARGEST_WINDOW))
        window = _frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", LARGEST_WINDOW - FIRST_WINDOW))
        self._first = PREFACE + settings + window + _frame(SETTINGS, ACK, 0, b"")
        self._added = ADD_PATH + _text(target) + ADD_AUTHORITY + _text(host)
        self._stream = -1
        self._received = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def ask(self):
        """Sends a request."""
        self._stream += 2
        block = GET + HTTP + (self._added or ADDED_PATH + ADDED_AUTHORITY)
        request = _frame(HEADERS, END_STREAM | END_HEADERS, self._stream, block)
        self._socket.sendall(self._first + request)
        self._first, self._added = b"", b""

    def receive(self):
        """Reads to the end of the response to it; the bytes of its body."""
        body = 0
        while True:
            kind, flags, stream, payload = self._frame()
            if kind in (RST_STREAM, GOAWAY):
                raise RuntimeError(f"a frame of type {kind}: {payload!r}")
            if stream != self._stream:
                continue
            if kind == DATA:
                body += len(payload)
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                return body

    def _frame(self):
        header = self._take(FRAME_HEADER_BYTES)
        length = int.from_bytes(header[:3], "big")
        return header[3], header[4], int.from_bytes(header[5:9], "big"), self._take(length)

    def _take(self, count):
        while len(self._received) < count:
            data = self._socket.recv(1 << 20)
            if not data:
                raise RuntimeError("closed before the whole response")
            self._received += data
        taken, self._received = self._received[:count], self._received[count:]
        return taken
