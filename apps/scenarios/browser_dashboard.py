"""Headless Chromium looks at the dashboard while visitors come: its figures, its plots, a narrow screen."""

import collections
import http.client
import http.server
import threading
import time

from harness import subject as subjects
from harness.steps import Steps
from harness.webdriver import Browser
from harness.workdir import Workdir

SECONDS = 12
SECRET = "letmein5"
PATHS = ["/a", "/a", "/b", "/a", f"/c?secret={SECRET}&page=2", "/a", "/b"]


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep(0.004)
        body = b"page " + self.path.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Visitors:
    """A few visits at a time, until it is told to stop."""

    def __init__(self, address, port):
        self._address, self._port = address, port
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        connection = http.client.HTTPConnection(self._address, self._port, timeout=20)
        while not self._stopping.is_set():
            for path in PATHS:
                connection.request("GET", path)
                connection.getresponse().read()
            time.sleep(0.02)
        connection.close()

    def stop(self):
        self._stopping.set()
        self._thread.join()


def run(options, report):
    if not options.subject.startswith("mayfly"):
        report.note("left out: nginx has no dashboard")
        return
    with Workdir("dashboard", keep=options.keep) as workdir:
        application = http.server.ThreadingHTTPServer((workdir.address, 0), Page)
        threading.Thread(target=application.serve_forever, daemon=True).start()
        workdir.undo(application.server_close)
        workdir.undo(application.shutdown)
        subject = subjects.start_with(workdir, options, "dashboard.conf", application=application.server_port)
        visitors = Visitors(workdir.address, subject.port)
        workdir.undo(visitors.stop)
        browser = Browser(workdir, origin=subject.url)
        look(report, browser, workdir, subject, visitors)
        report.check("dashboard: the server ran to the end", not (wrong := subject.stop()), wrong)


def look(report, browser, workdir, subject, visitors):
    # What a new tab asks for is not the page's.
    browser.script("location.href = 'about:blank'")
    browser.settle()
    browser.network()
    steps = Dashboard(report, browser, "dashboard")
    with steps.step("the page opens and says who it is"):
        browser.open("/dashboard")
        browser.wait_text("version 0.")
        browser.wait("a rate", lambda: browser.script("return document.getElementById('rate').textContent") not in ("–", "0"))
    with steps.step("plots move while visitors come"):
        seen = set()
        for _ in range(SECONDS // 2):
            seen.add(browser.script("return document.querySelector('#requests svg').innerHTML"))
            time.sleep(2)
        assert len(seen) >= SECONDS // 4, f"{len(seen)} pictures in {SECONDS} s"
        for plot in ("requests", "hit_ratio", "hits", "misses", "workers", "used", "stored"):
            drawn = browser.script(f"return document.querySelectorAll('#{plot} svg path').length")
            assert drawn > 0, f"nothing is drawn in {plot}"
        ratio = float(browser.script("return document.getElementById('ratio').textContent").split()[0])
        assert 50 < ratio < 100, ratio
    with steps.step("pages are listed without what their arguments say"):
        browser.wait_text("/c?secret=*&page=*")
        assert SECRET not in browser.source, "the value of an argument is shown"
    with steps.step("figures are the access log's"):
        visitors.stop()
        logged = statuses(workdir)
        browser.wait("the totals", lambda: agree(browser, logged))
    with steps.step("a narrow screen shows all of it"):
        browser._do("POST", "/goog/cdp/execute", {
            "cmd": "Emulation.setDeviceMetricsOverride",
            "params": {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True},
        })  # fmt: skip
        browser.reload()
        browser.wait_text("version 0.")
        width = browser.script("return document.documentElement.scrollWidth")
        assert width <= 360, f"the page is {width} wide"
    browser.screenshot("narrow")
    foreign = [url for url in steps.asked if not url.startswith(subject.url + "/")]
    report.check("dashboard: nothing is asked of anybody else", steps.asked and not foreign, str(foreign[:5]))


class Dashboard(Steps):
    """Steps that also keep what the browser has asked for."""

    def __init__(self, report, browser, prefix):
        super().__init__(report, browser, prefix)
        self.asked = []
        self._failures = browser.failures
        browser.failures = self._failures_and_addresses

    def _failures_and_addresses(self, expected=()):
        network = self.browser.network()
        self.asked += [exchange.url for exchange in network]
        failed = [repr(exchange) for exchange in network if exchange.status == 0 or exchange.status >= 400]
        return failed + self.browser.console_errors()


def statuses(workdir):
    """What the access log has of the visitors."""
    with open(workdir.join("subject", "access.log")) as file:
        lines = [line.split() for line in file]
    return collections.Counter(line[1] for line in lines if line[2] != "/dashboard")


def agree(browser, logged):
    rows = browser.script(
        "return [...document.querySelectorAll('#totals tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    shown = {status: int(count) for status, count in rows}
    known = {status: count for status, count in logged.items() if status not in ("-",)}
    return known and all(abs(shown.get(status, 0) - count) <= 0.01 * count for status, count in known.items())
