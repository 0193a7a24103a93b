"""Clients that others have made, over HTTPS: HTTP/1.1 and HTTP/2.

A page, a form, a download and an upload of 100 MB (`MAYFLY_LARGE_MB`), 200 requests at once,
transfers that the client gives up, trailers. The server's memory must not grow with what is
transferred. The client of HTTP/3 is in crates/mayfly/tests/program/http3.
"""

import contextlib
import http.server
import json
import os
import subprocess
import tempfile
import threading

from lib import process, subject

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
LARGE_MB = int(os.environ.get("MAYFLY_LARGE_MB", "100"))
# The program itself, with its assertions and its libraries, is most of it: nothing of a large body stays.
MAX_MEMORY_MB = 64

CONFIG = """
daemon off;
@USER@
worker_processes 1;
pid pid;
error_log error.log;
events { worker_connections 1024; }
http {
    access_log off;
    keepalive_requests 100000;
    server {
        listen 127.0.0.1:@PORT@ ssl;
        http2 on;
        ssl_certificate @FOLDER@/cert.pem;
        ssl_certificate_key @FOLDER@/cert.key;
        root @FOLDER@;
        client_max_body_size 0;
        proxy_http_version 1.1;
        location = /page { return 200 page; }
        location = /large { }
        location = /echo { proxy_pass http://127.0.0.1:@UPSTREAM@; }
        location = /upload { proxy_request_buffering off; proxy_pass http://127.0.0.1:@UPSTREAM@; }
        location = /trailers { proxy_pass_trailers on; proxy_set_header TE trailers; proxy_pass http://127.0.0.1:@UPSTREAM@; }
    }
}
"""

# What a client says when all is well.
EXPECTED = {
    "page": "page", "post": "said", "download": LARGE_MB << 20, "upload": LARGE_MB << 20, "parallel": 200,
    "after_cancelling": "page",
}


def checks(binary):
    clients = {
        "httpx": (["/usr/bin/python3", os.path.join(HERE, "httpx_client.py")], False),
        "go_net_http": ([go_client()], True),
        "php_curl": (["php", os.path.join(HERE, "php_client.php")], True),
    }
    found = []
    for version in ("1", "2"):
        found.append((f"curl_over_http_{version}", lambda version=version: curl(binary, version)))
        for name, (command, has_trailers) in clients.items():
            found.append((
                f"{name}_over_http_{version}",
                lambda command=command, version=version, has=has_trailers: program(binary, command, version, has),
            ))
    return found


def go_client():
    """Built by scripts/setup.sh."""
    return os.path.join(ROOT, "target/tools/go_client")


class Upstream(http.server.BaseHTTPRequestHandler):
    """Says what it was sent, or how much."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        left = int(self.headers["Content-Length"])
        if self.path == "/echo":
            return self.answer(self.rfile.read(left))
        count, buffer = 0, memoryview(bytearray(1 << 20))
        while count < left:
            got = self.rfile.readinto(buffer[: left - count])
            if not got:
                return None
            count += got
        return self.answer(str(count).encode())

    def do_GET(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Trailer", "X-Sum")
        self.end_headers()
        self.wfile.write(b"4\r\nbody\r\n0\r\nX-Sum: sum\r\n\r\n")

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def site(binary):
    """A server (`.url`, `.certificate`) in front of `Upstream`. Afterwards its memory is looked at."""
    upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder, subject.Daemon(subject.kind_of(binary), folder) as server:
        os.chmod(folder, 0o755)
        server.certificate = os.path.join(server.folder, "cert.pem")
        subprocess.run([
            "openssl", "req", "-x509", "-nodes", "-days", "30", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=IP:127.0.0.1", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-keyout", os.path.join(server.folder, "cert.key"), "-out", server.certificate,
        ], check=True, capture_output=True)
        with open(os.path.join(server.folder, "large"), "wb") as large:
            large.truncate(LARGE_MB << 20)
        template = os.path.join(folder, "clients.conf")
        with open(template, "w") as file:
            file.write(CONFIG)
        config = server.configure(template, server.name, {"UPSTREAM": upstream.server_port})
        server.start(subject.command_of(binary, server.folder, config))
        server.wait()
        server.origin = f"https://127.0.0.1:{server.port}"
        yield server
        used = process.memory_bytes(server.pid, field="VmHWM") >> 20
        assert used < MAX_MEMORY_MB, f"{used} MB of memory"
    upstream.shutdown()
    upstream.server_close()


def program(binary, command, version, has_trailers):
    with site(binary) as server:
        done = subprocess.run(
            [*command, version, server.origin, server.certificate, str(LARGE_MB)],
            capture_output=True, text=True, timeout=300,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        told = json.loads(done.stdout)
    assert told.pop("version").startswith("HTTP/2" if version == "2" else "HTTP/1.1"), done.stdout
    assert told == {**EXPECTED, **({"trailer": "sum"} if has_trailers else {})}, told


def curl(binary, version):
    with site(binary) as server:

        def ask(*arguments, fails=False):
            command = [
                "curl", "-sS", "--http2" if version == "2" else "--http1.1", "--cacert", server.certificate, *arguments,
            ]
            done = subprocess.run(command, capture_output=True, timeout=300)
            assert fails or done.returncode == 0, done.stderr
            return done.stdout.decode()

        origin = server.origin
        assert ask("-w", " %{http_version}", f"{origin}/page") == ("page 2" if version == "2" else "page 1.1")
        assert ask("-d", "said", f"{origin}/echo") == "said"
        assert ask("-o", "/dev/null", "-w", "%{size_download}", f"{origin}/large") == str(LARGE_MB << 20)
        large = os.path.join(server.folder, "large")
        assert ask("-H", "Expect:", "-X", "POST", "-T", large, f"{origin}/upload") == str(LARGE_MB << 20)
        assert ask("-Z", "--parallel-max", "200", *(f"{origin}/page?{n}" for n in range(200))) == "page" * 200
        # Each is given up at its first bytes.
        for _ in range(3):
            ask("-o", "/dev/null", "--max-filesize", "1000", f"{origin}/large", fails=True)
        assert ask(f"{origin}/page") == "page"
        assert "x-sum: sum" in ask("-D", "-", "-o", "/dev/null", f"{origin}/trailers").lower()
