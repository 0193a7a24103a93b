"""The numbers as Prometheus sees them: their form, and whether they are what the access log says."""

import collections
import contextlib
import http.client
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request

from lib import process, subject

CONFIG = """
daemon off;
@USER@
pid pid;
error_log error.log;
events {}
http {
    log_format counted '$status $upstream_cache_status $bytes_sent $request_length $request_time $uri';
    access_log access.log counted;
    proxy_cache_path cache keys_zone=pages:1m;
    upstream application { server 127.0.0.1:@UPSTREAM@; }
    server {
        listen 127.0.0.1:@PORT@;
        location / {
            proxy_pass http://application;
            proxy_cache pages;
            proxy_cache_valid 200 1s;
            proxy_cache_bypass $arg_bypass;
        }
        location = /none { return 404; }
        location = /metrics { metrics; }
    }
}
"""
# How long Prometheus looks.
SECONDS = 30
PATHS = ["/a", "/b", "/a", "/a", "/none", "/c?bypass=1", "/a", "/b"]
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


def checks(binary):
    if subject.kind_of(binary) != "mayfly":
        return []
    return [
        ("promtool_finds_no_fault_in_the_metrics", lambda: promtool_is_content(binary)),
        ("what_prometheus_has_scraped_is_what_the_access_log_says", lambda: prometheus_agrees(binary)),
    ]


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep(0.003)
        body = b"page " + self.path.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def server(binary):
    """A server with a cache in front of an application of Python's."""
    application = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=application.serve_forever, daemon=True).start()
    with contextlib.ExitStack() as stack:
        stack.callback(application.server_close)
        stack.callback(application.shutdown)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        os.chmod(folder, 0o755)
        daemon = stack.enter_context(subject.Daemon("mayfly", folder))
        template = os.path.join(folder, "metrics.conf")
        with open(template, "w") as file:
            file.write(CONFIG)
        config = daemon.configure(template, daemon.name, {"UPSTREAM": application.server_port})
        daemon.start(subject.command_of(binary, daemon.folder, config))
        daemon.wait()
        yield daemon


def visit(daemon, rounds=1):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=10)
    for path in PATHS * rounds:
        connection.request("GET", path)
        connection.getresponse().read()
    connection.close()


def scrape(daemon, **fields):
    request = urllib.request.Request(daemon.url("/metrics"), headers=fields)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def promtool_is_content(binary):
    assert shutil.which("promtool"), "promtool is missing: scripts/setup.sh test installs it"
    with server(binary) as daemon:
        visit(daemon)
        media_type, text = scrape(daemon)
        assert media_type.startswith("text/plain; version=0.0.4"), media_type
        told = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
        assert told.returncode == 0 and not told.stdout + told.stderr, told.stdout + told.stderr
        media_type, text = scrape(daemon, Accept=OPEN_METRICS)
        assert media_type.startswith("application/openmetrics-text"), media_type
        assert text.endswith("# EOF\n"), text[-100:]


@contextlib.contextmanager
def prometheus(daemon):
    """The address of a Prometheus that looks each second."""
    assert shutil.which("prometheus"), "prometheus is missing: scripts/setup.sh test installs it"
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "prometheus.yml")
        with open(config, "w") as file:
            json.dump({
                "global": {"scrape_interval": "1s"},
                "scrape_configs": [{
                    "job_name": "mayfly",
                    "static_configs": [{"targets": [f"127.0.0.1:{daemon.port}"]}],
                }],
            }, file)
        port = subject.free_port()
        said = open(os.path.join(folder, "said"), "w")
        started = process.start([
            "prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ], stdout=said, stderr=said)
        try:
            process.wait_until(lambda: query(port, "vector(1)"), "the start of Prometheus", 60)
            yield port
        finally:
            process.stop(started)
            said.close()


def query(port, expression):
    """The value of each series; nothing where Prometheus is not there yet."""
    target = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    try:
        with urllib.request.urlopen(target, timeout=10) as answer:
            found = json.load(answer)["data"]["result"]
    except OSError:
        return {}
    return {tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in found}


def by_label(port, metric, label):
    sums = query(port, f"sum by ({label}) ({metric})")
    return {dict(labels).get(label): value for labels, value in sums.items()}


def logged(daemon):
    with open(os.path.join(daemon.folder, "access.log")) as file:
        return [line.split() for line in file]


def prometheus_agrees(binary):
    with server(binary) as daemon, prometheus(daemon) as port:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            visit(daemon, rounds=4)
            time.sleep(0.1)
        lines = [line for line in logged(daemon) if line[-1] != "/metrics"]
        statuses = collections.Counter(line[1] for line in lines)
        assert {"HIT", "MISS", "EXPIRED", "BYPASS", "-"} <= statuses.keys(), statuses

        def by_cache():
            found = by_label(port, "mayfly_requests_total", "cache")
            return {status: found.get(status) for status in statuses if status != "-"}

        expected = {status: float(count) for status, count in statuses.items() if status != "-"}
        try:
            # The next look has all of it.
            process.wait_until(lambda: by_cache() == expected, "a scrape after the last visit", 15)
        except RuntimeError:
            raise AssertionError(f"scraped {by_cache()}, logged {expected}")
        refused = by_label(port, "mayfly_responses_total", "class").get("4xx")
        assert refused == sum(line[0] == "404" for line in lines), refused
        waited = [float(line[4]) for line in lines if line[1] in ("MISS", "EXPIRED", "BYPASS", "REVALIDATED")]
        count = sum(query(port, "mayfly_miss_duration_seconds_count").values())
        total = sum(query(port, "mayfly_miss_duration_seconds_sum").values())
        assert count == len(waited), (count, len(waited))
        # The two look at the clock one after the other.
        assert abs(total - sum(waited)) <= 0.001 * len(waited), (total, sum(waited))
        asked = sum(query(port, "mayfly_upstream_requests_total").values())
        assert asked == len(waited), (asked, len(waited))
        looks = sum(query(port, f"count_over_time(up{{job='mayfly'}}[{SECONDS + 60}s])").values())
        healthy = sum(query(port, f"sum_over_time(up{{job='mayfly'}}[{SECONDS + 60}s])").values())
        assert looks == healthy >= SECONDS / 2, (looks, healthy)
        # Each look is a request too: none is missing, and none is counted twice.
        scrapes = sum(line[-1] == "/metrics" for line in logged(daemon))
        _, text = scrape(daemon)
        own = next(line for line in text.splitlines() if line.startswith('mayfly_requests_total{cache="none"}'))
        assert float(own.split()[1]) >= statuses["-"] + scrapes, own
