"""The applications of files/guests: a site of them, and guests who use it as a browser does.

A guest has a jar, an address and a browser of their own; forms are read from the page that was shown and sent with what
stands in them, with `Origin`, `Referer` and `Sec-Fetch-Site`. Applications write down which sessions and tokens belong to one visitor:
`leaks` looks for them in what others were shown.
"""

import collections
import copy
import html.parser
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import time
import urllib.parse

from . import subject as subjects
from .client import Client, cookie_pair, is_deletion, path_of
from .workdir import WEB_USER, wait_for

FOLDER = os.path.join(subjects.FILES, "guests")
NAMES = tuple(sorted(name for name in os.listdir(FOLDER) if os.path.isdir(os.path.join(FOLDER, name))))
# Whose sessions are in Redis.
IN_REDIS = ("magento",)
# Whose tables, with their sessions, are in MariaDB where it is there.
IN_MARIADB = ("joomla", "mybb", "opencart", "smf")
# Whose own word is that no page of it may be shared.
PRIVATE = ("ledger",)
AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/139.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15",
)
MULTIPART = "multipart/form-data"
BOUNDARY = "----guest"
# What stands for a file that a guest has chosen.
FILE = "a file " * 20_000
MAX_REDIRECTS = 3
# Long enough to be nobody's word by chance.
WORD = re.compile(r"[\w%+/=.:-]{10,}")


class Page(html.parser.HTMLParser):
    """What a browser makes of a response: texts and links by their id, forms, the token of scripts."""

    def __init__(self, response):
        super().__init__()
        self.response = response
        self.texts, self.links, self.forms, self.metas, self.images, self.comments = {}, {}, {}, {}, [], []
        self._open = None
        self._form = None
        self.feed(response.text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "a" and "id" in attrs:
            self.links[attrs["id"]] = attrs["href"]
        elif tag == "form":
            self._form = self.forms.setdefault(attrs.get("id", ""), {"fields": {}, **attrs})
        elif tag == "input" and self._form is not None and "name" in attrs:
            value = FILE if attrs.get("type") == "file" else attrs.get("value", "")
            self._form["fields"].setdefault(attrs["name"], value)
        elif tag == "meta" and "name" in attrs:
            self.metas[attrs["name"]] = attrs.get("content")
        elif tag == "img":
            self.images.append(attrs["src"])
        elif tag == "p" and "id" in attrs:
            self._open = attrs["id"]
            self.texts[self._open] = ""
        elif tag == "blockquote":
            self._open = tag
            self.comments.append("")

    def handle_endtag(self, tag):
        if tag == "form":
            self._form = None
        elif tag in ("p", "blockquote"):
            self._open = None

    def handle_data(self, data):
        if self._open == "blockquote":
            self.comments[-1] += data
        elif self._open:
            self.texts[self._open] += data


class Guest:
    """Each has an address of their own, and one of three browsers."""

    # How long each waits before a request, in seconds.
    pace = 0

    def __init__(self, subject, number, ledger=None, forms=None):
        self.name = f"guest {number}"
        self.origin = subject.url
        self.ledger = ledger
        # Counts by whether the page of a guest's first write came from memory.
        self.forms = forms
        self.agent = AGENTS[number % len(AGENTS)]
        fields = {"User-Agent": self.agent, "Accept": "text/html,*/*;q=0.8", "Accept-Language": "en-GB,en;q=0.9"}
        source = f"127.0.{1 + number // 250 % 250}.{2 + number % 250}"
        self.client = Client(subject.address, subject.port, fields=fields, source=source)
        self.client.accepts_gzip = number % 2 == 1
        self.page = None
        self.at = "/"

    def _ask(self, method, target, body=None, fields=None):
        time.sleep(self.pace)
        response = self.client.request(method, target, body=body, fields=fields)
        if self.ledger is not None:
            self.ledger.saw(self.name, response)
        return response

    def open(self, target, site="none"):
        """A page, redirects followed; what was answered first is in `first`."""
        fields = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        if site == "same-origin":
            fields["Referer"] = self.origin + self.at
        return self._follow(self._ask("GET", target, fields=fields), target)

    def _follow(self, response, target):
        self.first = response
        for _ in range(MAX_REDIRECTS):
            if response.status not in (301, 302, 303):
                break
            target = path_of(urllib.parse.urljoin(self.origin + target, response.field("location")))
            fields = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"}
            response = self._ask("GET", target, fields=fields)
        self.at, self.page = target, Page(response)
        return self.page

    def click(self, link):
        return self.open(self.page.links[link], "same-origin")

    def written(self):
        """What a browser says of a write from a page of this site."""
        return {"Origin": self.origin, "Referer": self.origin + self.at, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"}

    def submit(self, name, given, fields=None):
        """Fills a form of the page and sends it, as its script does if it has one."""
        form = self.page.forms[name]
        if self.forms is not None:
            self.forms[self.page.response.is_hit] += 1
            self.forms = None
        action = form.get("action") or self.at
        values = {**form["fields"], **given}
        if "data-token" in form:
            told = json.loads(self._ask("GET", form["data-token"], fields={"Referer": self.origin + self.at, "Sec-Fetch-Site": "same-origin"}).text)
            values[told["name"]] = told["token"]
        body, kind = encoded(form, values)
        said = {**self.written(), "Content-Type": kind, **token_of_script(self.page, form, self.client.cookies)}
        said.update(fields or {})
        response = self._ask("POST", action, body=body, fields={name: value for name, value in said.items() if value is not None})
        return self._follow(response, action)

    def look_at_picture(self):
        """The word of the picture in the page."""
        fields = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "image", "Referer": self.origin + self.at}
        return self._ask("GET", self.page.images[0], fields=fields).text


def token_of_script(page, form, cookies):
    """The field with which a script sends the token of the page, or of a cookie."""
    if form.get("data-json") == "xsrf":
        return {"X-XSRF-TOKEN": urllib.parse.unquote(cookies["XSRF-TOKEN"])}
    return {"X-CSRF-Token": page.metas["csrf-token"]} if form.get("data-json", "body") != "body" else {}


def encoded(form, values):
    """The body of a form, and its type."""
    if "data-json" in form:
        return json.dumps(values).encode(), "application/json"
    if form.get("enctype") == MULTIPART:
        parts = ""
        for name, value in values.items():
            file = '; filename="file.txt"' if value == FILE else ""
            parts += f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n{value}\r\n'
        return f"{parts}--{BOUNDARY}--\r\n".encode(), f"{MULTIPART}; boundary={BOUNDARY}"
    return urllib.parse.urlencode(values).encode(), "application/x-www-form-urlencoded"


class Site:
    """An application in a folder, with what it keeps: in a database of MariaDB where one is given."""

    def __init__(self, workdir, folder, name, database=None):
        self.name = name
        self.root = workdir.mkdir(folder, name)
        for each in ("common.php", f"{name}/index.php"):
            shutil.copy(os.path.join(FOLDER, each), workdir.join(folder, each))
        workdir.mkdir(folder, "data")
        self.data = workdir.mkdir(folder, "data", name)
        workdir.mkdir(folder, "data", name, "sessions")
        self.redis = Redis(workdir, folder, self.data) if name in IN_REDIS else None
        self.database = database
        if database:
            access = {"socket": database.socket, "name": database.name, "user": database.user, "password": database.password}
            workdir.write(f"{folder}/data/{name}/mariadb.json", json.dumps(access), WEB_USER, 0o640)

    def _lines(self, name):
        try:
            with open(os.path.join(self.data, name), encoding="utf-8", errors="replace") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def runs(self):
        return len(self._lines("runs"))

    def secrets(self):
        """Sessions and tokens that belong to one visitor each."""
        return set(self._lines("secrets"))

    def select(self, query):
        if self.database:
            command = [*self.database.client("mariadb"), "--batch", "--skip-column-names", "-e", query, self.database.name]
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
            rows = (line.split("\t") for line in done.stdout.splitlines())
            return [tuple(int(value) if value.isdigit() else value for value in row) for row in rows]
        with sqlite3.connect(os.path.join(self.data, "site.sqlite"), timeout=10) as database:
            return database.execute(query).fetchall()

    def sessions(self):
        """How many there are, in files, in the table and in Redis."""
        if self.redis:
            return self.redis.sessions()
        return len(os.listdir(os.path.join(self.data, "sessions"))) + self.select("SELECT COUNT(*) FROM sessions")[0][0]


class Redis:
    """A Redis of the site's own, on a socket beside what it keeps."""

    START_SECONDS = 10

    def __init__(self, workdir, folder, data):
        self.socket = os.path.join(data, "redis.sock")
        command = ["redis-server", "--port", "0", "--unixsocket", self.socket, "--unixsocketperm", "777", "--save", "", "--dir", data]
        process = workdir.spawn(f"redis-{folder}", command)
        wait_for("redis", lambda: os.path.exists(self.socket), self.START_SECONDS, process)

    def sessions(self):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.socket)
            connection.sendall(b"EVAL \"return #redis.call('KEYS','PHPREDIS_SESSION:*')\" 0\r\n")
            return int(connection.makefile().readline()[1:])


class Ledger:
    """Who saw which long words, and was given which cookies."""

    def __init__(self):
        self._seen = collections.defaultdict(set)
        self._given = collections.defaultdict(set)

    def saw(self, name, response):
        told = response.text + "\n" + "\n".join(f"{field}: {value}" for field, value in response.fields)
        for text in (told, urllib.parse.unquote(told), html.unescape(told)):
            for word in WORD.findall(text):
                for part in (word, *re.split(r"[=/:]", word)):
                    self._seen[part].add(name)
        for line in response.all("set-cookie"):
            if not is_deletion(line):
                self._given[cookie_pair(line)].add(name)

    def leaks(self, site):
        """Secrets and cookies of sessions that two visitors saw."""
        secrets = site.secrets()
        found = [f"{secret} was shown to {sorted(self._seen[secret])}" for secret in secrets if len(self._seen[secret]) > 1]
        for (name, value), names in self._given.items():
            is_of_server = name == "mayfly_writer" or value.startswith("mayflyguest")
            if len(names) > 1 and len(value) > 12 and not is_of_server:
                found.append(f"cookie {name}={value} was given to {sorted(names)}")
        return found


def start_nginx(workdir, options, site, zone="", cache=""):
    """Debian's nginx and PHP-FPM before a site, without a cache or with what `zone` and `cache` say."""
    options = copy.copy(options)
    options.subject = "nginx"
    php = subjects.start_php_fpm(workdir, options.workers)
    params = os.path.join(subjects.FILES, "set_ups", "fastcgi_params")
    workdir.mkdir("guests")
    return subjects.start_with(workdir, options, "guests/nginx.conf", root=site.root, php=php, params=params, zone=zone, cache=cache)
