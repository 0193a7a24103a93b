"""Pages that are made from a database, which the server learns of (`cache_learn watch`). A known page that would have been
old is a fault; so is one that is older than a purge that has returned."""

import contextlib
import os
import random
import re
import shutil
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "apps"))

from harness import mariadb, workdir  # noqa: E402

PAGES = 20
LOCATION = """location /learned/ {{
            fastcgi_pass php:site;
            fastcgi_cache pages;
            fastcgi_cache_key $uri;
            fastcgi_cache_valid 200 2s;
            fastcgi_cache_use_stale off;
            cache_learn watch;
            cache_learn_database unix:{0.socket} {0.user} {0.password};
        }}"""
PARAMETERS = """fastcgi_param DB_USER {0.user};
    fastcgi_param DB_PASSWORD {0.password};
    fastcgi_param DB_SOCKET {0.socket};"""
WOULD_BE_OLD = re.compile(r'^mayfly_learned_comparisons_total\{.*result="fresh_changed".*\} ([1-9]\d*)', re.M)
COMPARED = re.compile(r"^mayfly_learned_comparisons_total\{.*\} ([1-9]\d*)", re.M)


class LearnedPages:
    """The database, and up to which version a purge was answered."""

    def __init__(self, database):
        self.location, self.parameters = LOCATION.format(database), PARAMETERS.format(database)
        self.lock = threading.Lock()
        self.purged = [0] * PAGES
        rows = ", ".join(f"({page}, 1)" for page in range(PAGES))
        statements = f"CREATE TABLE pages (page INT PRIMARY KEY, version INT NOT NULL); INSERT INTO pages VALUES {rows};"
        command = ["mariadb", "--no-defaults", f"--socket={database.socket}", f"--user={database.user}",
                   f"--password={database.password}", "-e", statements, database.name]  # fmt: skip
        subprocess.run(command, check=True, timeout=30)


@contextlib.contextmanager
def learned_pages():
    """None for who may not start a database."""
    if os.getuid() != 0 or not shutil.which("mariadbd", path="/usr/sbin:/usr/bin"):
        yield None
        return
    with workdir.Workdir("endurance-database") as folder:
        yield LearnedPages(mariadb.start(folder))


class LearnedVisitor:
    """Reads learned pages and changes them; `visitor` asks."""

    def __init__(self, visitor):
        self.visitor, self.counts, self.pages = visitor, visitor.counts, visitor.site.learned

    def page(self):
        page = random.randrange(PAGES)
        with self.pages.lock:
            at_least = self.pages.purged[page]
        answer = self.visitor.ask("GET", f"/learned/{page}")
        if answer is None or self.visitor.is_unavailable(answer[0]):
            return
        self.counts.add("learned pages")
        version = version_of(page, answer)
        if version is None:
            self.counts.add("wrong", f"/learned/{page}: {answer[0]} {answer[2][:200]}")
        elif version < at_least:
            self.counts.add("old", f"/learned/{page}: {version}, {at_least} was purged")

    def changes(self):
        page = random.randrange(PAGES)
        answer = self.visitor.ask("POST", f"/learned/{page}", body="")
        version = answer and version_of(page, answer)
        if version is None:
            return
        if self.visitor.purge('{"tags":["learned-%d"]}' % page):
            self.counts.add("learned pages purged")
            with self.pages.lock:
                self.pages.purged[page] = max(self.pages.purged[page], version)

    def looks(self):
        answer = self.visitor.ask("GET", "/metrics")
        text = answer[2].decode() if answer is not None else ""
        self.counts.add("learned pages compared", by=sum(map(int, COMPARED.findall(text))) > 0)
        if found := WOULD_BE_OLD.search(text):
            self.counts.add("wrong", f"learned pages that would have been old: {found[0]}")


def version_of(page, answer):
    """The version that an answer shows; None where it is no such page."""
    status, _, body = answer
    found = re.fullmatch(rb"page (\d+) version (\d+)\n", body)
    return int(found[2]) if status == 200 and found and int(found[1]) == page else None
