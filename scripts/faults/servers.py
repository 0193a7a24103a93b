"""The two servers under the same configuration, and the PHP-FPM behind both.

Mayfly and nginx read the same file; what only one of them knows comes in by `main` and
`more`. Everything listens on the loopback address or a unix socket, in a folder of its own,
and is stopped by its process id.
"""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))

from lib import php, process  # noqa: E402
from lib.ports import free_port  # noqa: E402

CONF = """
daemon off; pid {folder}/pid; error_log {folder}/error.log notice; worker_processes 2; user www-data;
{main}
events {{ worker_connections 1024; }}
http {{
    log_format told '$status $body_bytes_sent [$request_completion] $request_uri';
    access_log {access_log} told;
    fastcgi_cache_path {folder}/cache keys_zone=pages:10m;
    proxy_cache_path {folder}/answers keys_zone=answers:10m;
    client_body_temp_path {folder}/body; fastcgi_temp_path {temp}/fastcgi; proxy_temp_path {temp}/proxy;
    {http}
    server {{
        listen 127.0.0.1:{port};
        client_header_timeout 60s; keepalive_requests 100000000;
        fastcgi_param REQUEST_METHOD $request_method; fastcgi_param QUERY_STRING $query_string;
        fastcgi_param SCRIPT_FILENAME {folder}/page.php; fastcgi_keep_conn on;
        location /stored {{
            fastcgi_pass {php}; fastcgi_cache pages; fastcgi_cache_valid 200 1h; fastcgi_cache_key $request_uri;
            add_header X-Cache $upstream_cache_status;
        }}
        location /stale {{
            fastcgi_pass {php}; fastcgi_cache pages; fastcgi_cache_valid 200 1s; fastcgi_cache_key $request_uri;
            fastcgi_cache_use_stale error timeout updating http_500 http_503; fastcgi_cache_background_update on;
            add_header X-Cache $upstream_cache_status;
        }}
        location /made {{ fastcgi_pass {php}; }}
        location /upstream {{
            proxy_pass http://127.0.0.1:{upstream}; proxy_read_timeout 2s; proxy_connect_timeout 2s;
            proxy_cache answers; proxy_cache_valid 200 1h; proxy_cache_key $request_uri;
            add_header X-Cache $upstream_cache_status; {more}
        }}
        location /slow {{ proxy_pass http://127.0.0.1:{upstream}; }}
    }}
}}
"""

PAGE = """<?php
parse_str($_SERVER['QUERY_STRING'], $wish);
if (isset($wish['ms'])) usleep((int) $wish['ms'] * 1000);
echo str_repeat('x', (int) ($wish['bytes'] ?? 2000)), 'end';
"""


class Server:
    """`with Server(kind, binary, folder, ...) as server: ...`"""

    def __init__(self, kind, binary, folder, fpm=None, upstream=1, main="", http="", more="", temp=None,
                 access_log=None, pool=False, env=None, before=None):
        self.kind, self.binary, self.folder, self.port = kind, binary, folder, free_port()
        if pool and kind == "mayfly":
            main += "php_pool site { workers 4; user www-data; }"
        place = "php:site" if pool and kind == "mayfly" else f"unix:{fpm.socket if fpm else '/nonexistent'}"
        with open(os.path.join(folder, "page.php"), "w") as file:
            file.write(PAGE)
        with open(os.path.join(folder, "conf"), "w") as file:
            file.write(CONF.format(
                folder=folder, main=main, http=http, more=more, temp=temp or folder, port=self.port,
                php=place, upstream=upstream, access_log=access_log or f"{folder}/access.log",
            ))
        self.env, self.before = env, before
        self.start()

    def start(self):
        command = [self.binary, "-p", self.folder, "-c", os.path.join(self.folder, "conf")]
        log = open(os.path.join(self.folder, "stderr"), "a")
        env = {**os.environ, **(self.env or {})}
        self.process = subprocess.Popen(
            command, start_new_session=True, stdout=log, stderr=log, env=env, preexec_fn=self.before,
        )
        process.wait_until(self.listens, f"{self.kind} listening")

    def listens(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.kind} ended: {self.log()}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    @property
    def pid(self):
        return self.process.pid

    def signal(self, how):
        os.kill(self.pid, how)

    def workers(self):
        """The processes that serve: children of the parent, or itself where there are none."""
        return [pid for pid in process.tree(self.pid) if pid != self.pid] or [self.pid]

    def log(self):
        text = ""
        for name in ("error.log", "stderr"):
            path = os.path.join(self.folder, name)
            if os.path.exists(path):
                with open(path, errors="replace") as file:
                    text += file.read()
        return text

    def get(self, path, seconds=10, fields=None):
        """(status, body length, fields); status 0 for what is no whole answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request("GET", path, headers=fields or {})
            answer = connection.getresponse()
            return answer.status, len(answer.read()), dict(answer.getheaders())
        except (OSError, http.client.HTTPException):
            return 0, 0, {}
        finally:
            connection.close()

    def answers_within(self, path, seconds):
        """Seconds until the path is answered 200; None if it is not in time."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            if self.get(path, 1)[0] == 200:
                return time.monotonic() - began
            time.sleep(0.02)
        return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        process.stop(self.process, signal.SIGTERM, 5)


class Php(php.PhpFpm):
    """The PHP-FPM beside a server."""

    def workers(self):
        pids = process.tree(self._process.pid, without=())
        return [pid for pid in pids if pid != self._process.pid]

    @property
    def master(self):
        return self._process.pid
