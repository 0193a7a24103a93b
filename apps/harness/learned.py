"""A server that learns what pages are made of (`cache_learn`), and the comparison of what it believes with what pages
really are: after each change every page is made anew, past memory."""

import collections
import concurrent.futures
import http.client
import json
import os
import re
import socket
import subprocess
import time

from . import subject as subjects
from .client import Client
from .workdir import listens, wait_for

# What PHP reads in /tmp is nobody's site, and makes a page one that is not learned.
SITES = "/var/lib"
THREADS = 4
# A script that changed: nothing is learned for two minutes (docs/learned.md).
LEARNED_SECONDS = 300
# Of the pages that can be learned, so many are waited for before a change.
SHARE_LEARNED = 0.9
# Within this the statements of suspect pages are run again.
REPLAYED_SECONDS = 30
# The longest lists of pages that are printed.
SHOWN = 4


class Control:
    """The control socket of a running server."""

    def __init__(self, path):
        self.path = path

    def post(self, target, value):
        return self._ask("POST", target, json.dumps(value), {"Content-Type": "application/json"})

    def numbers(self):
        """All counters: for each name a list of values, with their labels."""
        return self._ask("GET", "/1/numbers")["numbers"]

    def _ask(self, *request):
        connection = http.client.HTTPConnection("localhost", timeout=30)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(30)
        connection.sock.connect(self.path)
        try:
            connection.request(*request)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{request[1]} answers {answer.status}: {text[:300]}")
        return json.loads(text)

    def learned(self, url):
        """The state of a page, the reason why it is not learned, and what made it so."""
        part = self.post("/1/explain", {"url": url}).get("learned") or {}
        return part.get("state", "off"), part.get("reason", ""), part.get("detail", "")

    def is_kept(self, url):
        """Whether it is shown beyond its ordinary lifetime, while nothing that it was made of changes."""
        part = self.post("/1/explain", {"url": url}).get("learned") or {}
        return part.get("state") == "fresh" and "it is kept for" in part["sentence"]

    def forget(self, urls):
        self.post("/1/purge", {"urls": urls})


def start(workdir, options, root, database, mode, name="mayfly", port=None, php_settings="", replays=False):
    """A server as `serve --learn` writes it, with the account by which it reads the tables; and its control socket. Several at
    once have a name each. `php_settings` are lines of a php.ini."""
    port = port or workdir.free_port()
    printed = subprocess.run(
        [os.path.abspath(options.binary), "serve", root, "--listen", f"{workdir.address}:{port}",
         "--ttl", f"{round(options.ttl)}s", "--workers", str(options.workers), "--learn=watch", "--print-config"],
        check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    account = f"cache_learn_database {database.address} {database.user} {database.password};"
    if not replays:
        account += "\n        cache_learn_replay off;"
    text, found = re.subn(r"cache_learn watch;", f"cache_learn {mode};\n        {account}", printed.stdout)
    if not found:
        raise RuntimeError("serve --learn=watch writes no cache_learn")
    # A place of the run's own: two runs may serve one folder.
    text = re.sub(r"fastcgi_cache_path \S+", f"fastcgi_cache_path {workdir.mkdir(f'stored-{name}')}", text)
    pid = workdir.join(f"pid-{name}")
    text = f"pid {pid};\n{text}"
    folder = workdir.mkdir(f"php-settings-{name}")
    workdir.write(f"php-settings-{name}/settings.ini", php_settings)
    command = [os.path.abspath(options.binary), "-c", workdir.write(f"{name}.conf", text)]
    process = workdir.spawn(name, command, {"PHP_INI_SCAN_DIR": f":{folder}"})
    try:
        wait_for("mayfly", listens(workdir.address, port), subjects.START_SECONDS, process)
    except RuntimeError as error:
        raise RuntimeError(f"{error}\n{workdir.log_tail(name)}") from None
    return subjects.Subject(workdir, name, process, port), Control(f"{pid}.control")


class Pages:
    """Every page: what is stored, what the server believes of it, and what the application makes now. `past_memory` are
    the cookies of a request that is not answered from memory; `normal` takes out of a text what differs each time."""

    def __init__(self, subject, control, paths, past_memory, normal=lambda text: text):
        self.subject = subject
        self.control = control
        self.paths = paths
        self.past_memory = past_memory
        self.normal = normal

    def each(self, ask, paths):
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            return dict(zip(paths, pool.map(ask, paths), strict=True))

    def visit(self, paths, cookies=None):
        return self.each(lambda path: Client(self.subject.address, self.subject.port, cookies).get(path), paths)

    def beliefs(self, paths):
        return self.each(lambda path: self.control.learned(self.subject.url + path), paths)

    def content(self, answer):
        return answer.status, answer.field("location"), self.normal(answer.text)

    def made_now(self, paths):
        return {path: self.content(answer) for path, answer in self.visit(paths, self.past_memory).items()}

    def settle(self, again=()):
        """Has every page stored and learned that can be, those of `again` made anew; returns these with what is stored,
        and why the others are not."""
        until = time.monotonic() + LEARNED_SECONDS
        again = set(again)
        while True:
            if again:
                self.control.forget([self.subject.url + path for path in again])
                self.visit(again)
            stored = {path: answer for path, answer in self.visit(self.paths).items() if answer.is_hit}
            beliefs = self.beliefs(self.paths)
            known = {path: self.content(answer) for path, answer in stored.items() if beliefs[path][0] == "fresh"}
            others = [path for path in self.paths if path not in known]
            why = {path: beliefs[path] if path in stored else ("not stored", "", "") for path in others}
            again = {path for path in why if path in stored or path in again}
            if len(known) >= SHARE_LEARNED * len(self.paths) or time.monotonic() > until:
                return known, why
            time.sleep(2)


class Totals:
    """Pairs of a change and a page. What replays were about is counted by the server: each poll of a table makes its pages suspect again."""

    def __init__(self):
        self.changes = self.looked = self.changed = self.matched = self.missed = 0
        self.replays = collections.Counter()

    def add(self, other):
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def __str__(self):
        replays = "".join(f", {number:.0f} {what}" for what, number in self.replays.items())
        return (
            f"{self.changes} changes, {self.looked} pairs of a change and a learned page: {self.changed} changed, "
            f"{self.matched} let go, {self.missed} missed{replays}"
        )


def replays_of(numbers):
    """How often pages were made suspect, statements run again, and pages shown again because of that."""

    def of(name, **labels):
        return sum(each["value"] for each in numbers[name] if labels.items() <= each.get("labels", {}).items())

    return collections.Counter({
        "times suspect": of("learned_matches"), "times shown again": of("learned_freshened"),
        "statements replayed equal": of("learned_replays", result="equal"),
        "different": of("learned_replays", result="different"), "failed": of("learned_replays", result="failed"),
    })  # fmt: skip


class Judge:
    """Makes each change, and compares. With `watch` a page is let go that became suspect; with `on`, one that the server
    does not show any more."""

    def __init__(self, report, prefix, pages, mode):
        self.report = report
        self.prefix = prefix
        self.pages = pages
        self.mode = mode
        self.totals, self.last = Totals(), Totals()
        self.unsteady = set()
        # Which pages have to be made anew before the next change.
        self.again = set()

    def change(self, name, make, left_out=frozenset()):
        """`left_out`: a set that `make` may add pages to, of which nothing can be said."""
        known, why = self.pages.settle(self.again)
        unsteady = self._unsteady(known)
        before = replays_of(self.pages.control.numbers())
        make()
        paths = [path for path in known if path not in left_out and path not in unsteady]
        let_go, causes = self._let_go(paths)
        replays = replays_of(self.pages.control.numbers()) - before
        now = self.pages.made_now(paths)
        changed = {path for path in paths if now[path] != known[path]}
        # What was made anew in between, to be compared, is shown as it is now.
        shown = self.pages.visit(changed - let_go)
        missed = sorted(path for path, answer in shown.items() if self.pages.content(answer) != now[path])
        self.again = changed | let_go | set(why) | (set(known) - set(paths))
        self.last = last = Totals()
        last.changes, last.looked, last.changed, last.matched, last.missed = 1, len(paths), len(changed), len(let_go), len(missed)
        last.replays = replays
        self.totals.add(last)
        reasons = collections.Counter(reason or state for state, reason, _ in why.values())
        self.report.note(
            f"{name}: {len(paths)} learned, {len(changed)} changed, {len(let_go)} let go, {len(missed)} missed"
            + (f"; not learned: {dict(reasons)}" if reasons else "")
            + (f"; differ each time: {sorted(unsteady)[:SHOWN]}" if unsteady else "")
        )
        if len(let_go) > len(changed) and causes:
            self.report.note(f"  most by: {causes.most_common(1)[0][0][:240]}")
        # Where no page was learned, none can be missed.
        self.report.check(f"{self.prefix}: {name}: pages were learned before it", bool(paths), dict(reasons))
        self.report.check(f"{self.prefix}: {name}: no page is missed", not missed, missed[: 2 * SHOWN])
        return changed

    def _unsteady(self, known):
        """Pages that differ although nothing happened; looked for once."""
        if self.totals.changes:
            return self.unsteady
        now = self.pages.made_now(list(known))
        self.unsteady = {path for path in known if now[path] != known[path]}
        return self.unsteady

    def _let_go(self, paths):
        beliefs = self.pages.beliefs(paths)
        if self.mode == "on":
            # Statements are run again before anyone asks: what replays find unchanged is not let go.
            until = time.monotonic() + REPLAYED_SECONDS
            suspect = [path for path in paths if beliefs[path][0] == "suspect"]
            while any(self.pages.beliefs(suspect)[path][0] == "suspect" for path in suspect) and time.monotonic() < until:
                time.sleep(0.2)
            shown = self.pages.visit(paths)
            gone = {path for path, answer in shown.items() if not answer.is_hit}
            return gone, collections.Counter(beliefs[path][2] for path in gone)
        gone = {path for path in paths if beliefs[path][0] != "fresh"}
        return gone, collections.Counter(beliefs[path][2] for path in gone)
