"""The site: its pages with their versions, an origin that can be restarted, and the server's configuration."""

import hashlib
import http.server
import os
import threading

import encrypted
from lib import origin, subject

HERE = os.path.dirname(os.path.abspath(__file__))
PAGES = 40
# Pages that have a fragment: the page before.
FRAGMENTS_EACH = 8
SCRIPTS = ("page.php", "large.php", "upload.php", "learned.php")


class Pages:
    """What the application would show, and up to which version a purge was answered."""

    def __init__(self, place):
        self.place = place
        os.makedirs(os.path.join(place, "versions"))
        self.lock = threading.Lock()
        self.version = [0] * PAGES
        self.purged = [0] * PAGES
        for page in range(PAGES):
            self.change(page)

    def change(self, page):
        """The new version: written beside the file and put in its place, so that PHP reads the one or the other."""
        self.version[page] += 1
        path = os.path.join(self.place, "versions", str(page))
        with open(path + ".new", "w") as file:
            file.write(str(self.version[page]))
        os.chmod(path + ".new", 0o644)
        os.replace(path + ".new", path)
        return self.version[page]

    def newest_purged(self, page):
        """At least these versions have to be in an answer that begins now, by page."""
        with self.lock:
            return {number: self.purged[number] for number in parts(page)}

    def purge_returned(self, page, version):
        with self.lock:
            self.purged[page] = max(self.purged[page], version)


def parts(page):
    return (page, page - 1) if page % FRAGMENTS_EACH == 1 else (page,)


GAP = "pages with a gap for a fragment"


def fault_of(page, body, at_least):
    """What is wrong with the body of a page: None, or a word and what was found."""
    try:
        lines = [line.split(" ") for line in body.decode("ascii").splitlines()]
        versions = {(int(number), int(version)) for _, number, _, version in lines}
        shown = dict(versions)
        expected = wanted(page, shown) if len(shown) == len(at_least) else None
    except (ValueError, KeyError, UnicodeDecodeError):
        return "torn", body[:200]
    # A fragment that PHP cannot answer, since it was killed, leaves a gap.
    is_gap = len(at_least) > 1 and len(lines) == 2 and [number for number, _ in versions] == [page]
    if not is_gap and (len(versions) != len(at_least) or body != expected):
        return "torn", sorted(versions)
    for number, version in versions:
        if version < at_least[number]:
            return "old", (number, version, at_least[number])
    return (GAP, None) if is_gap else None


def wanted(page, versions):
    line = f"page {page} version {versions[page]}\n".encode()
    if page % FRAGMENTS_EACH == 1:
        return line + wanted(page - 1, versions) + line
    return line * (600 if page % 4 == 0 else 3)


class Origin:
    """An HTTP server that counts its starts and is started anew on the same port."""

    def __init__(self):
        self.port = subject.free_port()
        self.starts = 0
        self.start()

    def start(self):
        self.starts += 1
        self._server = Listening(("127.0.0.1", self.port), Answering)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    def restart(self):
        self.stop()
        self.start()


class Listening(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, *_):
        """Clients that leave."""


class Answering(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = origin_body(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def origin_body(path):
    return hashlib.sha256(path.encode()).hexdigest().encode() * 40


class Site:
    """Folders, files and sockets around the server; `configure` writes a configuration that differs from the last one."""

    def __init__(self, folder, full, learned):
        self.folder = folder
        self.place = os.path.join(folder, "site")
        for name in ("site", "cache", "body"):
            os.makedirs(os.path.join(folder, name))
            os.chmod(os.path.join(folder, name), 0o777)
        for name in SCRIPTS:
            with open(os.path.join(HERE, name)) as source, open(os.path.join(self.place, name), "w") as file:
                file.write(source.read())
        self.pages = Pages(self.place)
        self.origin = Origin()
        self.echo = origin.Origin(0).__enter__()
        self.port, self.tls_port = subject.free_port(), subject.free_port()
        self.full, self.learned = full, learned
        self.version = 0
        self.name = f"mayfly-endurance-{os.getpid()}"
        self.certificate, _ = encrypted.make_keys(folder)

    @property
    def configuration(self):
        return os.path.join(self.folder, "server.conf")

    def configure(self):
        self.version += 1
        is_root = os.getuid() == 0
        values = {
            "USER": "user www-data;" if is_root else "",
            "PHP_USER": "user www-data;" if is_root else "",
            "MODULE": f"worker_shutdown_timeout {10 + self.version % 2}s;",
            "FOLDER": self.folder, "PLACE": self.place, "NAME": self.name, "FULL": self.full,
            "CERTIFICATE": self.certificate, "PORT": self.port, "TLS_PORT": self.tls_port,
            "ORIGIN": self.origin.port, "ECHO": self.echo.port,
            "LEARNED": self.learned.location if self.learned else "",
            "PARAMETERS": self.learned.parameters if self.learned else "", "VERSION": f"v{self.version}",
        }  # fmt: skip
        with open(os.path.join(HERE, "server.conf")) as file:
            text = subject.render(file.read(), "mayfly", values)
        with open(self.configuration + ".new", "w") as file:
            file.write(text)
        os.replace(self.configuration + ".new", self.configuration)
        return f"v{self.version}"
