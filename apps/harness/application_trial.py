"""One application of harness/application_sites.py behind `mayfly serve FOLDER` without a line written, and the same folder behind a second
server that keeps nothing, whose answers are PHP's own."""

import collections
import html
import html.parser
import json
import os
import re
import shutil
import subprocess
import time
import urllib.parse

from . import learned, mariadb, postgres
from . import subject as subjects
from .application_changes import Changes, FileChanges
from .client import Client, path_of
from .workdir import listens, wait_for

PAGES = 20
CHANGES = 20
# What other programs wrote is to be seen by then; and pages are to be kept again.
FOREIGN_SECONDS, LATER_SECONDS = 2.05, 10
# A crawl at ten seconds after each of so many changes.
LATER_EACH = 4
# A script that changed: nothing is learned for two minutes.
SETTLE_SECONDS = 160
WARM_ROUNDS = 14
NOT_PAGES = re.compile(r"\.(css|js|png|jpe?g|gif|ico|svg|zip|gz|txt|webp|woff2?)$", re.I)
# What differs each time in many applications: tokens, digests, times of a page's making.
TOKENS = re.compile(r"[0-9a-f]{16,}|\b\d+\.\d{2,}\s*(?:s|ms|seconds?|sec)\b|(?<=value=[\"'])[\w+/=.:-]{16,}(?=[\"'])", re.I)
DOOR = """<?php
// Statements of the trial, run by the site's own PHP.
if (($_SERVER['HTTP_X_TRIAL'] ?? '') !== '%(word)s') { http_response_code(404); exit; }
$database = new PDO(%(place)s, %(user)s, %(password)s, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
foreach (explode("\n;\n", file_get_contents('php://input')) as $statement) { $database->exec($statement); }
echo 'done';
"""


class Links(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.links += [value for name, value in attrs if name == "href" and value]


class Site:
    """An installed application: its folder, its database, and two servers."""

    def __init__(self, workdir, options, application, database):
        self.workdir, self.options, self.application, self.database = workdir, options, application, database
        self.is_mysql = bool(database) and not options.postgres
        self.address = workdir.address
        self.plain_address = f"{self.address.rpartition('.')[0]}.251"
        self.port = workdir.free_port()
        self.host = f"{self.address}:{self.port}"
        self.root = workdir.mkdir("site")
        self.subject = None
        application.put(self)
        subprocess.run(["chown", "-R", "www-data:www-data", self.root], check=True)
        self.serve_plain()

    def serve_plain(self):
        # At another address, but on the same port, which applications write into links.
        self.plain = self.serve("plain", self.port, ["--ttl", "0", "--learn=off", "--guest-sessions=off"], self.plain_address)

    def serve(self, name, port, more, address=None):
        """A server of the folder, which PHP takes for the site itself."""
        address = address or self.address
        command = [os.path.abspath(self.options.binary), "serve", self.root, "--listen", f"{address}:{port}", "--workers", str(self.options.workers), *more]
        folder = self.workdir.mkdir("php-settings")
        self.workdir.write("php-settings/settings.ini", getattr(self.application, "php_settings", ""))
        process = self.workdir.spawn(name, command, {"PHP_INI_SCAN_DIR": f":{folder}"})
        try:
            wait_for(name, listens(address, port), subjects.START_SECONDS, process)
        except RuntimeError as error:
            raise RuntimeError(f"{error}\n{self.workdir.log_tail(name)}") from None
        server = subjects.Subject(self.workdir, name, process, port)
        server.address = address
        return server

    def prepare(self):
        self.application.install(self)
        self.application.seed(self)
        if self.application.has_database:
            self.put_door()
        if self.application.has_database and not self.database:
            # What its owner has to do (docs/learned.md#sqlite): the server's account reads it.
            os.chmod(self.sqlite(), 0o644)
            os.chmod(os.path.dirname(self.sqlite()), 0o755)
        # With the settings that are there now.
        self.plain.stop()
        self.serve_plain()

    def put_door(self):
        self.word = os.urandom(12).hex()
        if self.database:
            kind, host = ("mysql", self.address) if self.is_mysql else ("pgsql", self.database.folder)
            place = f"'{kind}:host={host};dbname={self.database.name}'"
            user, password = f"'{self.database.user}'", f"'{self.database.password}'"
        else:
            place, user, password = "'sqlite:' . file_get_contents(__DIR__ . '/trial-place')", "null", "null"
        self.write(self.application.door, DOOR % {"word": self.word, "place": place, "user": user, "password": password})

    def write(self, name, text):
        path = os.path.join(self.root, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        shutil.chown(path, "www-data", "www-data")

    def touch(self, name):
        self.write(name, "")

    def mkdir(self, name):
        path = os.path.join(self.root, name)
        os.makedirs(path, exist_ok=True)
        shutil.chown(path, "www-data", "www-data")
        return path

    def json(self, value):
        return json.dumps(value)

    def sql(self, text):
        """What another program writes and reads; rows of texts."""
        if self.options.postgres:
            command = self.database.client("--field-separator=\t")
        elif self.database:
            command = [*self.database.client("mariadb"), "--batch", "--skip-column-names", "--default-character-set=utf8mb4", self.database.name]
        else:
            command = ["setpriv", "--reuid=www-data", "--regid=www-data", "--clear-groups", "sqlite3", "-separator", "\t", "-cmd", ".timeout 5000", self.sqlite()]
        done = subprocess.run(command, input=f"{text};\n", capture_output=True, text=True, errors="replace", timeout=60)
        if done.returncode != 0 or done.stderr.strip():
            raise RuntimeError(f"{text[:200]}: {done.stderr[-300:]}")
        return [line.split("\t") for line in done.stdout.splitlines()]

    def sqlite(self):
        return self.application.sqlite_file(self)

    def own_sql(self, text):
        """A write by the site's own PHP."""
        answer = Client(self.subject.address, self.subject.port, fields={"Host": self.host, "X-Trial": self.word}).post(f"/{self.application.door}", body=text.encode())
        if not answer.text.startswith("done"):
            raise RuntimeError(f"{text[:100]}: {answer.status} {answer.text[:300]}")

    def columns(self, table):
        if self.database:
            rows = self.sql(f"SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {self.schema()} AND TABLE_NAME = '{table}' ORDER BY ORDINAL_POSITION")
            return [row[0] for row in rows]
        return [row[1] for row in self.sql(f"PRAGMA table_info({table})")]

    def empty(self, table, column):
        """A value for a column that has to have one."""
        if self.database:
            (kind, may_be_null, default), = self.sql(f"SELECT DATA_TYPE, IS_NULLABLE, COLUMN_DEFAULT IS NOT NULL FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {self.schema()} AND TABLE_NAME = '{table}' AND COLUMN_NAME = '{column}'")
            if may_be_null == "YES" or default in ("1", "t"):
                return None
        else:
            row = next(row for row in self.sql(f"PRAGMA table_info({table})") if row[1] == column)
            if row[3] == "0" or row[4]:
                return None
            kind = row[2].lower()
        return "0" if "int" in kind or kind in ("decimal", "float", "double") else "''"

    def schema(self):
        return f"'{self.database.name}'" if self.is_mysql else "current_schema()"

    def version(self):
        if self.options.postgres:
            return f"PostgreSQL {self.sql('SHOW server_version')[0][0]}"
        return self.sql("SELECT VERSION()")[0][0] if self.database else f"SQLite {self.sql('SELECT sqlite_version()')[0][0]}"


class Trial:
    """Its figures are read when it has ended."""

    def __init__(self, name, application, options):
        self.name, self.application, self.options = name, application, options
        self.pages = self.learned = self.pairs = self.changed = self.missed = self.old_for_a_second = self.changes = 0
        self.shares = collections.defaultdict(collections.Counter)
        self.reasons = collections.Counter()
        self.notes = []
        self.database = "-"

    def note(self, text):
        self.notes.append(text)
        print(f"#     {self.name}: {text}", flush=True)

    def run(self, workdir):
        has_database = self.application.has_database
        database = None
        if has_database and not self.options.sqlite:
            database = postgres.start(workdir) if self.options.postgres else mariadb.start(workdir, has_network=True)
        self.site = site = Site(workdir, self.options, self.application, database)
        try:
            site.prepare()
        except RuntimeError:
            self.note(workdir.log_tail("plain", 6))
            raise
        self.database = site.version() if has_database else "files"
        if has_database and not database:
            site.write("trial-place", site.sqlite())
        self.paths = self.crawl()
        self.pages = len(self.paths)
        site.subject = site.serve("mayfly", site.port, [] if self.options.learn == "auto" else [f"--learn={self.options.learn}"])
        for line in self.site.workdir.log_tail("mayfly").splitlines():
            if re.match(r"Serving|Note|Learn", line):
                self.note(line)
        self.control = learned.Control(f"/run/mayfly/serve-{site.address}-{site.port}.control")
        self.settle()
        self.steady = self.find_steady()
        self.make_changes()
        self.note(", ".join(f"{number:.0f} {what}" for what, number in learned.replays_of(self.control.numbers()).items()))
        self.wrong = site.subject.stop()
        site.plain.stop()

    def ask(self, subject, path):
        return Client(subject.address, subject.port, fields={"Host": self.site.host}).get(path)

    def content(self, answer):
        text = re.sub(self.application.normal, "", answer.text, flags=re.DOTALL)
        return answer.status, TOKENS.sub("#", text)

    def made_by_php(self, paths):
        return {path: self.content(self.ask(self.site.plain, path)) for path in paths}

    def crawl(self):
        """Pages that a guest finds, from link to link."""
        found, queue, seen, kinds = [], list(self.application.starts), set(), collections.Counter()
        later = []
        while (queue or later) and len(found) < PAGES:
            path = queue.pop(0) if queue else later.pop(0)
            # Not one kind of address alone.
            kind = re.sub(r"\d+|[\w-]{12,}", "#", path)
            if queue and kinds[kind] >= PAGES // 3:
                later.append(path)
                continue
            if path in seen:
                continue
            seen.add(path)
            answer = self.ask(self.site.plain, path)
            if answer.status != 200 or "text/html" not in (answer.field("content-type") or ""):
                continue
            kinds[kind] += 1
            found.append(path)
            for link in Links(answer.text).links:
                try:
                    parts = urllib.parse.urlsplit(urllib.parse.urljoin(f"http://{self.site.host}{path}", link))
                except ValueError:
                    continue
                target = path_of(parts._replace(fragment="").geturl())
                if parts.netloc == self.site.host and not NOT_PAGES.search(parts.path) and not re.search(self.application.skip, target) and target.isascii() and " " not in target:
                    if target not in seen and target not in queue:
                        queue.append(target)
        return found

    def visit(self, paths=None):
        return {path: self.ask(self.site.subject, path) for path in (self.paths if paths is None else sorted(paths))}

    def kept(self, answers):
        """Pages that came from memory because of what they were made of."""
        return {path: answer for path, answer in answers.items() if answer.is_hit and self.control.is_kept(self.site.subject.url + path)}

    def settle(self):
        """Until as many pages are learned as can be."""
        until = time.monotonic() + (self.options.settle or SETTLE_SECONDS)
        most, since = -1, time.monotonic()
        while time.monotonic() < until:
            if self.options.learn == "auto":
                for _ in range(20):
                    self.visit()
            kept = self.kept(self.visit())
            if len(kept) > most:
                most, since = len(kept), time.monotonic()
            if len(kept) == self.pages or (most and time.monotonic() - since > 45):
                break
            time.sleep(1)
        self.learned = most
        for path in self.paths:
            if path not in kept:
                state, reason, detail = self.control.learned(self.site.subject.url + path)
                self.reasons[reason or state] += 1
                self.note(f"not learned: {path}: {state} {reason} {detail[:300]} [{self.ask(self.site.subject, path).field('cache-status')}]")

    def find_steady(self):
        """Pages that PHP makes alike for two guests."""
        first = self.made_by_php(self.paths)
        time.sleep(1.1)
        second = self.made_by_php(self.paths)
        steady = {path for path in self.paths if first[path] == second[path]}
        if len(steady) < self.pages:
            path = next(path for path in self.paths if path not in steady)
            self.note(f"{self.pages - len(steady)} pages are different each time, such as {path}: {difference(first[path], second[path])}")
        return steady

    def make_changes(self):
        now = self.made_by_php(self.paths)
        kind = Changes if self.application.has_database else FileChanges
        changes = kind(self.site, "\n".join(text for _, text in now.values()))
        own = [("app", name, make) for name, make in self.application.own(self.site)]
        while self.changes < CHANGES:
            if own:
                who, name, make = own.pop(0)
            else:
                following = changes.following()
                if following is None:
                    self.note("no further row is shown on a page")
                    break
                who, name, make = following
            kept = self.warm()
            try:
                make()
            except RuntimeError as error:
                self.note(f"not made: {name}: {str(error)[:200]}")
                changes.failed()
                continue
            self.changes += 1
            now = self.judge(who, name, kept, now)
            broken = sum(status != 200 for status, _ in now.values())
            changes.made(is_broken=broken > self.pages // 3)

    def warm(self):
        """Has every page kept that can be; these."""
        most, idle = {}, 0
        for _ in range(WARM_ROUNDS):
            kept = self.kept(self.visit())
            idle = 0 if len(kept) > len(most) else idle + 1
            if len(kept) >= len(most):
                most = kept
            if len(most) >= self.learned or idle > (3 if most else 10):
                break
            time.sleep(0.6)
        return most

    def judge(self, who, name, kept, before):
        written = time.monotonic()
        # What the site's own PHP has written is seen at once, in a third of the pages each time. The others are asked two seconds after it.
        early = set() if who == "foreign" else set(self.paths[self.changes % 3 :: 3])
        shown = self.visit(early)
        time.sleep(max(0, written + FOREIGN_SECONDS - time.monotonic()))
        shown |= self.visit(set(self.paths) - early)
        now = self.made_by_php(self.paths)
        changed = {path for path in self.paths if now[path] != before[path]}
        missed, slow = [], []
        for path, answer in shown.items():
            if not answer.is_hit or self.content(answer) == now[path]:
                continue
            again = self.content(self.ask(self.site.plain, path))
            if again != now[path]:
                self.steady.discard(path)
                continue
            (missed if path in kept else slow).append(path)
        count = [path for path in kept if path in self.steady]
        self.pairs += len(count)
        self.changed += len(changed.intersection(count))
        self.missed += len(missed)
        self.old_for_a_second += len(slow)
        unchanged = self.steady - changed
        for when, paths in (("at once", unchanged & early), ("2 s", unchanged - early)):
            self.why_not(when, shown, paths)
            self.shares[when].update(hits=sum(shown[path].is_hit for path in paths), pages=len(paths))
        if self.changes % LATER_EACH == 0:
            time.sleep(max(0, written + LATER_SECONDS - time.monotonic()))
            later = self.visit()
            self.why_not("10 s", later, self.steady)
            self.shares["10 s"].update(hits=sum(later[path].is_hit for path in self.steady), pages=len(self.steady))
        for path in missed:
            self.note(f"MISSED {path} after {name} ({who}): {difference(self.content(shown[path]), now[path])} [{shown[path].field('cache-status')}; {self.control.learned(self.site.subject.url + path)}]")
        self.note(f"{who}: {name}: {len(count)} kept, {len(changed.intersection(count))} of them changed ({len(changed)} of all), {len(missed)} missed"
                  f", {sum(shown[path].is_hit for path in unchanged)} of {len(unchanged)} unchanged from memory")
        return now

    def why_not(self, when, answers, paths):
        """What kept pages from being answered from memory that could have been."""
        words = collections.Counter()
        for path in paths:
            if not answers[path].is_hit:
                words[re.sub(r"ttl=-?\d+; ?", "", answers[path].field("cache-status") or "-")] += 1
        if words:
            path = next(path for path in paths if not answers[path].is_hit)
            self.note(f"  {when}: not from memory: {dict(words)}, such as {path}: {self.control.learned(self.site.subject.url + path)}")

    def share(self, when):
        counted = self.shares[when]
        return f"{counted['hits'] / counted['pages']:.0%}" if counted["pages"] else "-"


def difference(first, second):
    """Where two pages begin to differ."""
    if first[0] != second[0]:
        return f"status {first[0]} and {second[0]}"
    at = next((at for at, (one, other) in enumerate(zip(first[1], second[1], strict=False)) if one != other), min(len(first[1]), len(second[1])))
    return f"{html.unescape(first[1][max(0, at - 40):at + 50])!r} and {html.unescape(second[1][max(0, at - 40):at + 50])!r}"


