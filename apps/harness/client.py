"""A small HTTP/1.1 client with a cookie jar, as one visitor's browser.

Standard library only. One connection per thread is kept alive; the jar is
shared by all threads of one visitor. Redirects are not followed unless asked:
each response is to be seen by the caller.
"""

import gzip
import http.client
import re
import threading
import time
import urllib.parse

TIMEOUT_SECONDS = 30
HIT_WORDS = ("HIT", "STALE", "UPDATING", "REVALIDATED")


class Response:
    def __init__(self, method, url, status, fields, body, began, ended):
        self.method = method
        self.url = url
        self.status = status
        self.fields = fields  # [(lower-case name, value)], in order
        self.body = body
        self.began = began
        self.ended = ended

    def field(self, name):
        return next((value for key, value in self.fields if key == name), None)

    def all(self, name):
        return [value for key, value in self.fields if key == name]

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    @property
    def is_hit(self):
        """Whether the response came from memory, by RFC 9211 or nginx's words."""
        status = self.field("cache-status")
        if status is not None:
            return re.search(r";\s*hit\b", status) is not None
        return (self.field("x-cache-status") or self.field("x-cache") or "").split(" ")[0] in HIT_WORDS

    @property
    def cache_word(self):
        status = self.field("x-cache-status") or self.field("x-cache")
        if status:
            return status
        status = self.field("cache-status")
        if status is None:
            return "-"
        found = re.search(r";\s*(hit|fwd=[a-z-]+)", status)
        return found.group(1) if found else "?"


class Client:
    """`fields` go with each request, `source` is the visitor's own address, and
    `tls` the context of a client that speaks TLS."""

    def __init__(self, address, port, cookies=None, fields=None, source=None, tls=None):
        self.address = address
        self.port = port
        self.cookies = dict(cookies or {})
        self.fields = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) test", **(fields or {})}
        self.source = source
        self.tls = tls
        self.accepts_gzip = False
        self._lock = threading.Lock()
        self._local = threading.local()

    def get(self, target, fields=None):
        return self.request("GET", target, fields=fields)

    def post(self, target, form=None, body=None, fields=None):
        fields = dict(fields or {})
        if form is not None:
            body = urllib.parse.urlencode(form).encode()
            fields.setdefault("Content-Type", "application/x-www-form-urlencoded")
        return self.request("POST", target, body=body, fields=fields)

    def request(self, method, target, body=None, fields=None):
        fields = {**self.fields, **(fields or {})}
        if self.accepts_gzip:
            fields["Accept-Encoding"] = "gzip"
        with self._lock:
            cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if cookies:
            fields["Cookie"] = cookies
        began = time.monotonic()
        answer, content = self._exchange(method, target, body, fields)
        if content and answer.getheader("Content-Encoding") == "gzip":
            content = gzip.decompress(content)
        response = Response(
            method, target, answer.status,
            [(name.lower(), value) for name, value in answer.getheaders()],
            content, began, time.monotonic(),
        )  # fmt: skip
        self._take_cookies(response)
        return response

    def _exchange(self, method, target, body, fields):
        """One retry of a GET on a kept connection that the server had closed."""
        for attempt in (1, 2):
            connection = getattr(self._local, "connection", None)
            is_kept = connection is not None
            if not is_kept:
                connection = self._connect()
                self._local.connection = connection
            try:
                connection.request(method, target, body=body, headers=fields)
                answer = connection.getresponse()
                return answer, answer.read()
            except (ConnectionError, http.client.RemoteDisconnected, http.client.BadStatusLine):
                connection.close()
                self._local.connection = None
                if not is_kept or attempt == 2:
                    raise
            except Exception:
                connection.close()
                self._local.connection = None
                raise
        raise AssertionError("unreachable")

    def _connect(self):
        source = (self.source, 0) if self.source else None
        if self.tls is None:
            return http.client.HTTPConnection(
                self.address, self.port, timeout=TIMEOUT_SECONDS, source_address=source
            )  # fmt: skip
        return http.client.HTTPSConnection(
            self.address, self.port, timeout=TIMEOUT_SECONDS, source_address=source, context=self.tls
        )  # fmt: skip

    def _take_cookies(self, response):
        with self._lock:
            for line in response.all("set-cookie"):
                name, value = cookie_pair(line)
                if is_deletion(line):
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = value


def cookie_pair(line):
    name, _, value = line.split(";", 1)[0].partition("=")
    return name.strip(), value.strip()


def is_deletion(line):
    """Whether a Set-Cookie line removes its cookie (PHP sends Max-Age=0 then)."""
    max_age = re.search(r"max-age=(-?\d+)", line, re.I)
    if max_age is not None:
        return int(max_age.group(1)) <= 0
    return cookie_pair(line)[1] in ("", "deleted", "%20", "+")


def path_of(url):
    """The request target of an absolute or relative URL, without fragment."""
    parts = urllib.parse.urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
