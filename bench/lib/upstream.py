"""An upstream that answers every request with the same bytes, for counting what Mayfly does.

It answers when told that it may: the caller waits there until Mayfly waits for the
answer. So Mayfly takes the same way through its code with each request, however the
threads and programs of a machine are scheduled.
"""

import contextlib
import socket
import struct
import threading

# Record types of FastCGI 1.0, section 8.
END_REQUEST, STDIN, STDOUT = 3, 5, 6
RECORD_HEADER = struct.Struct("!BBHHBx")


class Upstream:
    """`with Upstream(listener, is_whole, answer, before_answer): ...`

    `is_whole` tells from the bytes received whether a request has ended;
    `before_answer` returns when the answer may be sent.
    """

    def __init__(self, listener, is_whole, answer, before_answer):
        self._listener, self._is_whole = listener, is_whole
        self._answer, self._before_answer = answer, before_answer

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        # Wakes the thread that accepts, which `close` alone would not.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, contextlib.suppress(OSError):
            received = b""
            while data := connection.recv(1 << 16):
                received += data
                if self._is_whole(received):
                    received = b""
                    self._before_answer()
                    connection.sendall(self._answer)


def is_whole_http(received):
    """A request without a body ends with its head."""
    return received.endswith(b"\r\n\r\n")


def http_response(body):
    head = (
        "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nServer: bench\r\n"
        f"Content-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def is_whole_fastcgi(received):
    """A request ends with an empty record of its input."""
    at = 0
    while len(received) - at >= RECORD_HEADER.size:
        _, kind, _, content, padding = RECORD_HEADER.unpack_from(received, at)
        at += RECORD_HEADER.size + content + padding
        if kind == STDIN and content == 0:
            return True
    return False


def fastcgi_response(fields, body):
    """The records of a response as PHP-FPM sends it; connections carry one request at a time, number 1."""
    head = "".join(f"{field}\r\n" for field in fields).encode() + b"\r\n"
    return _record(STDOUT, head + body) + _record(END_REQUEST, bytes(8))


def _record(kind, content):
    padding = -len(content) % 8
    return RECORD_HEADER.pack(1, kind, 1, len(content), padding) + content + bytes(padding)
