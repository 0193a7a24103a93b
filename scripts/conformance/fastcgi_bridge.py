#!/usr/bin/env python3
"""A FastCGI application that asks an HTTP origin: with it, a suite for proxies judges `fastcgi_pass`.

    scripts/conformance/fastcgi_bridge.py PORT ORIGIN_PORT

Both are ports of this machine. Fields of the request are those of HTTP_*; what the origin says is sent on,
fields in their order. An origin that closes without an answer closes the connection to the server as well.
"""

import http.client
import socketserver
import struct
import sys

BEGIN, END, PARAMS, STDIN, STDOUT = 1, 3, 4, 5, 6
# No request or response of a suite is larger.
MAX_BODY = 16 << 20
TIMEOUT = 30


def pairs(data):
    at = 0

    def length():
        nonlocal at
        size = data[at]
        at += 1
        if size & 0x80:
            (size,) = struct.unpack(">I", bytes([size & 0x7F]) + data[at : at + 3])
            at += 3
        return size

    while at < len(data):
        name_length, value_length = length(), length()
        name = data[at : at + name_length].decode("latin-1")
        at += name_length
        yield name, data[at : at + value_length].decode("latin-1")
        at += value_length


def ask(port, params, body):
    fields = {
        name[5:].replace("_", "-").title(): value
        for name, value in params.items()
        if name.startswith("HTTP_") and name not in ("HTTP_CONNECTION", "HTTP_CONTENT_LENGTH")
    }
    if params.get("CONTENT_TYPE"):
        fields["Content-Type"] = params["CONTENT_TYPE"]
    origin = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        origin.putrequest(params["REQUEST_METHOD"], params["REQUEST_URI"], skip_host=True, skip_accept_encoding=True)
        for name, value in fields.items():
            origin.putheader(name, value)
        if body:
            origin.putheader("Content-Length", str(len(body)))
        origin.endheaders(body or None)
        response = origin.getresponse()
        head = [f"Status: {response.status} {response.reason}"]
        head += [f"{name}: {value}" for name, value in response.getheaders() if name.lower() != "transfer-encoding"]
        return "\r\n".join([*head, "", ""]).encode("latin-1") + response.read(MAX_BODY)
    finally:
        origin.close()


class Responder(socketserver.StreamRequestHandler):
    timeout = TIMEOUT

    def record(self):
        head = self.rfile.read(8)
        if len(head) < 8:
            return None, b""
        _, kind, _, size, padding, _ = struct.unpack(">BBHHBB", head)
        content = self.rfile.read(size)
        self.rfile.read(padding)
        return kind, content

    def send(self, kind, content):
        self.wfile.write(struct.pack(">BBHHBB", 1, kind, 1, len(content), 0, 0) + content)

    def handle(self):
        params, body = b"", b""
        while True:
            kind, content = self.record()
            if kind is None or len(params) + len(body) > MAX_BODY:
                return
            if kind == PARAMS:
                params += content
            elif kind == STDIN and content:
                body += content
            elif kind == STDIN:
                break
        try:
            answer = ask(self.server.origin_port, dict(pairs(params)), body)
        except (OSError, http.client.HTTPException):
            return
        for at in range(0, len(answer), 0xFFF8):
            self.send(STDOUT, answer[at : at + 0xFFF8])
        self.send(STDOUT, b"")
        self.send(END, bytes(8))


class Bridge(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with Bridge(("127.0.0.1", int(sys.argv[1])), Responder) as bridge:
        bridge.origin_port = int(sys.argv[2])
        bridge.serve_forever()


if __name__ == "__main__":
    main()
