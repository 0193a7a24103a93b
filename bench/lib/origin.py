"""An origin server for what lasts: echoes WebSocket frames, sends and takes large bodies.

Standard library, a thread per connection. Frames are RFC 6455's: a text or binary
frame comes back with the same content, a close frame ends the connection.
"""

import base64
import hashlib
import os
import socket
import struct
import threading

MB = 1 << 20
# RFC 6455 section 1.3
ACCEPT_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CLOSE = 8


class Origin:
    """`with Origin(body_bytes) as origin: ...`; listens on `origin.port`."""

    def __init__(self, body_bytes):
        self.body_bytes = body_bytes
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, client.makefile("rb") as stream:
            try:
                target, fields = read_request(stream)
                if target.startswith("/socket"):
                    self._echo(client, stream, fields)
                elif target.startswith("/download"):
                    self._send(client)
                else:
                    self._take(client, stream, fields)
            except (OSError, EOFError, ValueError):
                pass

    def _echo(self, client, stream, fields):
        digest = hashlib.sha1(fields["sec-websocket-key"].encode() + ACCEPT_SUFFIX).digest()
        accept = base64.b64encode(digest).decode()
        client.sendall(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
        )
        while True:
            opcode, content = read_frame(stream)
            client.sendall(frame(content, opcode))
            if opcode == CLOSE:
                return

    def _send(self, client):
        client.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {self.body_bytes}\r\n\r\n".encode())
        block = bytes(range(256)) * (MB // 256)
        for _ in range(self.body_bytes // MB):
            client.sendall(block)

    def _take(self, client, stream, fields):
        taken = sum(len(block) for block in read_body(stream, fields))
        said = str(taken).encode()
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said))


def read_request(stream):
    target = stream.readline().decode().split(" ")[1]
    return target, read_fields(stream)


def read_fields(stream):
    fields = {}
    while line := stream.readline().strip():
        name, _, value = line.decode().partition(":")
        fields[name.lower()] = value.strip()
    return fields


def read_body(stream, fields):
    """Blocks of a body with a length or in chunks."""
    is_chunked = "chunked" in fields.get("transfer-encoding", "")
    while True:
        left = int(stream.readline(), 16) if is_chunked else int(fields["content-length"])
        if is_chunked and left == 0:
            return
        while left:
            block = stream.read(min(left, MB))
            if not block:
                raise EOFError("a body that broke off")
            left -= len(block)
            yield block
        if not is_chunked:
            return
        stream.readline()


def frame(content, opcode=2, mask=None):
    """One whole frame; a client's has a mask (RFC 6455 section 5.3)."""
    length, masked = len(content), 0x80 if mask else 0
    if length < 126:
        head = struct.pack("!BB", 0x80 | opcode, masked | length)
    elif length < 1 << 16:
        head = struct.pack("!BBH", 0x80 | opcode, masked | 126, length)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, masked | 127, length)
    return head + mask + _masked(content, mask) if mask else head + content


def read_frame(stream):
    """(opcode, content) of the next frame; EOFError at the end."""
    first, second = _exactly(stream, 2)
    length = second & 0x7F
    if length == 126:
        (length,) = struct.unpack("!H", _exactly(stream, 2))
    elif length == 127:
        (length,) = struct.unpack("!Q", _exactly(stream, 8))
    mask = _exactly(stream, 4) if second & 0x80 else None
    content = _exactly(stream, length)
    return first & 0x0F, _masked(content, mask) if mask else content


def _masked(content, mask):
    key = (mask * (len(content) // 4 + 1))[: len(content)]
    return (int.from_bytes(content, "big") ^ int.from_bytes(key, "big")).to_bytes(len(content), "big")


def _exactly(stream, count):
    data = stream.read(count)
    if len(data) < count:
        raise EOFError("closed")
    return data


class WebSocket:
    """A client's side of one tunnel."""

    def __init__(self, port, target="/socket"):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.stream = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        status = self.stream.readline()
        read_fields(self.stream)
        if b" 101 " not in status:
            raise RuntimeError(f"no upgrade: {status!r}")

    def send(self, content):
        self.socket.sendall(frame(content, mask=os.urandom(4)))

    def receive(self):
        return read_frame(self.stream)[1]

    def close(self):
        self.stream.close()
        self.socket.close()
