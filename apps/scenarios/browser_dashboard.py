"""Headless Chromium works with the dashboard during a flood: its figures and plots, a look inside the cache,
a purge; signed in and not; on a wide and a narrow screen, light and dark, and by keyboard."""

import collections
import http.client
import http.server
import subprocess
import threading
import time

from harness import axe, subject as subjects
from harness.steps import Steps
from harness.webdriver import Browser
from harness.workdir import Workdir

FLOOD_SECONDS = 90
LOOK_SECONDS = 8
CONNECTIONS = 50
SECRET = "letmein5"
MARKUP = "<img/src=x/onerror=window.fooled=1>"
VISITED = ["/a", "/b", f"/c?secret={SECRET}&page=2"]
NEWS = ["/news/5?page=2&secret=" + SECRET, "/news/6", "/news/7", "/news/%3Cimg%20src=x%20onerror=window.fooled=1%3E"]
ENTER, ESCAPE, RIGHT, TAB = "\ue007", "\ue00c", "\ue014", "\ue004"

# The totals that are shown, with the moment of the look that they are of; none while they change.
TOTALS = """
const shown = Object.fromEntries([...document.querySelectorAll("#totals tbody tr")].map((row) =>
  [row.cells[0].textContent, Number(row.cells[1].textContent)]));
const known = {};
for (const series of latest.numbers.requests) known[series.labels.cache] = (known[series.labels.cache] ?? 0) + series.value;
return Object.entries(shown).every(([name, count]) => (known[name] ?? 0) === count) ? [latest.at, shown] : null;
"""


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked = collections.Counter()

    def do_GET(self):
        Page.asked[self.path] += 1
        time.sleep(0.004)
        body = b"page " + self.path.encode() + b" " * 2000
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Surrogate-Key", f"all {self.path.split('?')[0].strip('/').replace('/', ':')} {MARKUP}")
        self.send_header("X-Note", MARKUP)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Visitors:
    """A few visits at a time beside the flood, until it is told to stop."""

    def __init__(self, address, port):
        self._address, self._port = address, port
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        connection = http.client.HTTPConnection(self._address, self._port, timeout=20)
        while not self._stopping.is_set():
            for path in VISITED:
                connection.request("GET", path)
                connection.getresponse().read()
            time.sleep(0.02)
        connection.close()

    def stop(self):
        self._stopping.set()
        self._thread.join()


class Flood:
    """`mayfly bench` on one page, as fast as it goes."""

    def __init__(self, workdir, binary, url):
        self._process = workdir.spawn(
            "flood",
            [binary, "bench", f"{url}/a", "--connections", str(CONNECTIONS), "--duration", f"{FLOOD_SECONDS}s",
             "--yes-this-is-mine"],
        )  # fmt: skip

    def is_on(self):
        return self._process.poll() is None

    def stop(self):
        if self.is_on():
            self._process.terminate()
            self._process.wait(20)


def run(options, report):
    if not options.subject.startswith("mayfly"):
        report.note("left out: nginx has no dashboard")
        return
    with Workdir("dashboard", keep=options.keep) as workdir:
        application = http.server.ThreadingHTTPServer((workdir.address, 0), Page)
        threading.Thread(target=application.serve_forever, daemon=True).start()
        workdir.undo(application.server_close)
        workdir.undo(application.shutdown)
        made = subprocess.run(
            [options.binary, "purge", "--new-token", "owner"], capture_output=True, text=True, check=True
        ).stdout.split()
        line = next(word for word in made if word.startswith("owner:"))
        token = made[made.index("once):") + 1]
        tokens = workdir.write("tokens", line + "\n")
        subject = subjects.start_with(
            workdir, options, "dashboard.conf", application=application.server_port, tokens=tokens
        )
        for path in NEWS:
            ask(subject, path)
        visitors = Visitors(workdir.address, subject.port)
        workdir.undo(visitors.stop)
        flood = Flood(workdir, options.binary, subject.url)
        workdir.undo(flood.stop)
        browser = Browser(workdir, origin=subject.url)
        # What a new tab asks for is not the page's.
        browser.script("location.href = 'about:blank'")
        browser.settle()
        browser.network()
        steps = Dashboard(report, browser, "dashboard")
        during_the_flood(steps, browser, workdir, subject, flood, token)
        report.check("dashboard: the flood went on all the while", flood.is_on(), workdir.log_tail("flood"))
        flood.stop()
        visitors.stop()
        with steps.step("figures are the access log's at the end"):
            logged = statuses(workdir)
            browser.wait("the totals", lambda: agree(browser, logged))
        signing_in(steps, browser, subject, token)
        for_everybody(report, steps, browser, token)
        foreign = [url for url in steps.asked if not url.startswith(subject.url + "/")]
        report.check("dashboard: nothing is asked of anybody else", steps.asked and not foreign, str(foreign[:5]))
        report.check("dashboard: the server ran to the end", not (wrong := subject.stop()), wrong)


def during_the_flood(steps, browser, workdir, subject, flood, token):
    with steps.step("the page opens and says who it is"):
        browser.open("/dashboard")
        browser.wait_text("version 0.")
        browser.wait("a rate", lambda: browser.script("return byId('rate').textContent") not in ("–", "0"))
    with steps.step("plots move during a flood, and figures are the access log's"):
        first, seen = totals(browser), set()
        for _ in range(LOOK_SECONDS):
            seen.add(browser.script("return document.querySelector('#requests svg').innerHTML"))
            time.sleep(1)
        last = totals(browser)
        assert flood.is_on(), "the flood is over"
        assert len(seen) >= LOOK_SECONDS // 4, f"{len(seen)} pictures in {LOOK_SECONDS} s"
        for plot in ("requests", "hit_ratio", "hits", "misses", "workers", "used", "stored"):
            drawn = browser.script(f"return document.querySelectorAll('#{plot} svg path').length")
            assert drawn > 0, f"nothing is drawn in {plot}"
        time.sleep(1)
        logged = statuses(workdir, first[0], last[0])
        came = {name: last[1][name] - first[1][name] for name in last[1]}
        steps.report.note(f"{sum(came.values())} requests in {(last[0] - first[0]) / 1000:.1f} s of the flood")
        for name, count in (("HIT", logged["HIT"]), ("all", sum(logged.values()))):
            shown = sum(came.values()) if name == "all" else came[name]
            assert count > 1000 and abs(shown - count) <= 0.01 * count, f"{name}: {shown} shown, {count} logged"
        ratio = float(browser.script("return byId('ratio').textContent").split()[0])
        assert 50 < ratio <= 100, ratio
    with steps.step("pages are listed without what their arguments say"):
        browser.click("#tab_pages")
        browser.wait_text("/c?secret=*&page=*")
        assert SECRET not in browser.source, "the value of an argument is shown"
    with steps.step("what is stored is found by a part of its address and opened"):
        browser.click("#tab_cache")
        browser.wait("what is stored", lambda: len(found(browser)) == len(NEWS) + len(VISITED))
        find(browser, "ews/5", "/news/5?page=*&secret=*")
        browser.click("#results button.link")
        browser.wait_text("Given by")
        text = browser.script("return byId('entry').innerText")
        for part in ("/news/5?page=*&secret=*", "proxy_cache_valid 200 1h", "news:5", "news", "X-Note"):
            assert part in text, f"{part}: {text}"
        assert browser.script("return byId('purge').disabled"), "a purge without a token"
        assert SECRET not in browser.source, "the value of an argument is shown"
        browser.press(ESCAPE)
        browser.wait("no entry", lambda: not browser.script("return byId('entry').open"))
    with steps.step("nothing of an address, a tag or a field becomes markup"):
        find(browser, "<img", "/news/<img src=x onerror=window.fooled=1>")
        browser.click("#results button.link")
        browser.wait_text("X-Note")
        assert MARKUP in browser.script("return byId('entry').innerText")
        fooled = browser.script("return [window.fooled ?? 0, document.images.length]")
        assert fooled == [0, 0], fooled
        browser.click("#entry_close")
    with steps.step("a wrong token is told so", expected_failures=["about"]):
        sign_in(browser, "wrong")
        browser.wait_text("this token is not known")
    with steps.step("who signs in purges what was found, and the application is asked again"):
        sign_in(browser, token)
        browser.wait_text("signed in as owner")
        find(browser, "ews/5", "/news/5?page=*&secret=*")
        before = Page.asked[NEWS[0]]
        assert ask(subject, NEWS[0]) == 200 and Page.asked[NEWS[0]] == before, "it is not in memory"
        browser.click("#results button.link")
        browser.wait_text("Given by")
        browser.click("#purge")
        browser.wait_text("Purged 1 stored response")
        browser.wait("an empty list", lambda: not found(browser))
        browser.click("#entry_close")
        assert ask(subject, NEWS[0]) == 200 and Page.asked[NEWS[0]] == before + 1, "the application was not asked"
        search(browser, "", "news:6")
        browser.wait("the page with the tag", lambda: [it for it in found(browser) if it.endswith("/news/6")])


def signing_in(steps, browser, subject, token):
    with steps.step("a token is kept for the session, and nowhere else"):
        browser.reload()
        browser.wait_text("signed in as owner")
        kept = browser.script("return [Object.values(sessionStorage), localStorage.length, document.cookie]")
        assert kept == [[token], 0, ""] and not browser.cookies(), kept
        browser.click("#sign")
        browser.wait("the other word", lambda: browser.script("return byId('sign').textContent") == "Sign in")
        assert browser.script("return sessionStorage.length") == 0
    with steps.step("from another machine the page is empty until one signs in"):
        browser.devtools("Network.enable")
        browser.devtools("Network.setExtraHTTPHeaders", headers={"X-Forwarded-For": "192.0.2.1"})
        browser.open("/dashboard")
        browser.wait_text("for those who have a token")
        assert not browser.script("return byId('views').checkVisibility()")
        sign_in(browser, token)
        browser.wait_text("version 0.")
        browser.click("#sign")
        browser.wait_text("for those who have a token")
    with steps.step("a token in the page's address is taken out of it"):
        browser.open(f"/dashboard#token={token}")
        browser.wait_text("signed in as owner")
        assert browser.url == f"{subject.url}/dashboard", browser.url
        browser.wait_text("version 0.")
        browser.devtools("Network.setExtraHTTPHeaders", headers={})
        assert token not in " ".join(steps.asked), "the token was in an address"
    with steps.step("a wrong one takes nothing from who is signed in", expected_failures=["about"]):
        browser.script("location.hash = '#token=wrong'")
        browser.wait_text("this token is not known")
        browser.wait_text("signed in as owner")
        assert browser.url == f"{subject.url}/dashboard", browser.url
    with steps.step("without tokens the page is read-only and says how to change that"):
        browser.open("/read")
        browser.wait_text("version 0.")
        browser.click("#tab_cache")
        browser.wait_text("cache_purge_token FILE;")
        assert not browser.script("return byId('sign').checkVisibility()")


def for_everybody(report, steps, browser, token):
    program = axe.program()
    if program is None:
        report.note("left out: axe-core could not be fetched")
    with steps.step("all of it works by keyboard"):
        browser.open(f"/dashboard#token={token}")
        browser.wait_text("version 0.")
        browser.script("byId('tab_now').focus()")
        browser.press(RIGHT)
        browser.press(RIGHT)
        browser.wait("the view", lambda: browser.script("return document.activeElement.id") == "tab_cache")
        for _ in range(2):
            browser.press(TAB)
        assert browser.script("return document.activeElement.id") == "search_text"
        browser.type("#search_text", "news/7" + ENTER)
        browser.wait("the page", lambda: [it[-7:] for it in found(browser)] == ["/news/7"])
        for _ in range(20):
            browser.press(TAB)
            if browser.script("return document.activeElement.matches('#results button.link')"):
                break
        browser.press(ENTER)
        browser.wait_text("Given by")
        assert browser.script("return document.activeElement.id") == "entry_title"
        for _ in range(20):
            browser.press(TAB)
            if browser.script("return document.activeElement.id") == "purge":
                break
        browser.press(ENTER)
        browser.wait_text("Purged 1 stored response")
        browser.press(ESCAPE)
        browser.wait("no entry", lambda: not browser.script("return byId('entry').open"))
    for width, mobile in ((1280, False), (360, True)):
        for scheme in ("light", "dark"):
            browser.screen(width, 740 if mobile else 900, mobile)
            browser.colours(scheme)
            with steps.step(f"nothing is too wide or hard to use, {width} pixels, {scheme}"):
                for view in views(browser, token):
                    browser.screenshot(f"{width}-{scheme}-{view}")
                    wide = browser.script("return document.documentElement.scrollWidth")
                    assert wide <= width, f"{view} is {wide} wide"
                    inside = browser.script("const it = byId('entry'); return it.scrollWidth - it.clientWidth")
                    assert inside <= 0, f"{view}: the entry is {inside} too wide"
                    grave = axe.faults(browser, program) if program else []
                    assert not grave, f"{view}: {grave}"


def views(browser, token):
    """Each view in its turn."""
    browser.script("location.href = 'about:blank'")
    browser.settle()
    browser.open(f"/dashboard#token={token}")
    browser.wait_text("version 0.")
    yield "now"
    browser.click("#tab_pages")
    yield "pages"
    browser.click("#tab_cache")
    browser.wait("what is stored", lambda: found(browser))
    yield "cache"
    find(browser, "news/6", "/news/6")
    browser.click("#results button.link")
    browser.wait_text("Given by")
    browser.script("byId('entry').scrollTop = 0")
    yield "entry"
    browser.click("#entry_close")
    browser.click("#sign")
    browser.wait("the other word", lambda: browser.script("return byId('sign').textContent") == "Sign in")
    browser.wait_text("version 0.")
    browser.click("#sign")
    browser.wait_text("With a token")
    yield "signin"


def ask(subject, path):
    connection = http.client.HTTPConnection(subject.address, subject.port, timeout=20)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


def search(browser, text, tag=""):
    browser.type("#search_text", text)
    browser.type("#search_tag", tag)
    browser.click("#search button[type=submit]")


def find(browser, text, address):
    """Searches for the text, which only this address has."""
    search(browser, text)
    browser.wait(address, lambda: [it[it.index("/"):] for it in found(browser)] == [address])


def found(browser):
    return browser.script("return [...document.querySelectorAll('#results button.link')].map((it) => it.textContent)")


def sign_in(browser, token):
    if not browser.script("return byId('signin').checkVisibility()"):
        browser.click("#sign")
    browser.type("#token", token)
    browser.click("#signin button[type=submit]")


class Dashboard(Steps):
    """Steps that also keep what the browser has asked for."""

    def __init__(self, report, browser, prefix):
        super().__init__(report, browser, prefix)
        self.asked = []
        browser.failures = self._failures_and_addresses

    def _failures_and_addresses(self, expected=()):
        def is_expected(text):
            return any(part in text for part in expected)

        network = [exchange for exchange in self.browser.network() if exchange.url != "about:blank"]
        self.asked += [exchange.url for exchange in network]
        failed = [repr(exchange) for exchange in network if exchange.status == 0 or exchange.status >= 400]
        return [text for text in failed + self.browser.console_errors() if not is_expected(text)]


def totals(browser):
    seen = []

    def probe():
        seen[:] = browser.script(TOTALS) or []
        return seen

    browser.wait("the totals of one look", probe)
    return seen


def statuses(workdir, after=0, until=float("inf")):
    """What the access log has between two moments, in milliseconds; the page's own requests only where they
    are all counted."""
    with open(workdir.join("subject", "access.log")) as file:
        lines = [line.split() for line in file]
    lines = [line for line in lines if after < float(line[-1]) * 1000 <= until]
    return collections.Counter("none" if line[1] == "-" else line[1] for line in lines if after or "/dashboard" not in line)


def agree(browser, logged):
    shown = totals(browser)[1]
    known = {status: count for status, count in logged.items() if status != "none"}
    return known and all(abs(shown.get(status, 0) - count) <= 0.01 * count for status, count in known.items())
