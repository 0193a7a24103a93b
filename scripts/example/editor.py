"""A scripted editor, who makes every kind of write and looks at all pages after each."""

import concurrent.futures
import itertools
import sqlite3

from news_site import Visitor
from table import Data

LOOKING = 4
# A page is stored when it is asked for a second time, at the latest.
LOOKS = 20


class Editor:
    """After each so many writes, kept pages are compared with what PHP makes now: `past_every`."""

    def __init__(self, site, table, known, past_every=1):
        self._past_every = past_every
        self._site = site
        self._table = table
        self._known = known
        self._visitor = Visitor(site.port)
        self._versions = itertools.count(1)
        self._past = itertools.count(1)
        self._looking = [Visitor(site.port) for _ in range(LOOKING)]
        self.made = set()
        self.writes = 0
        self._before = None

    def steps(self):
        """(write, fields, facts, is it seen): together they leave the site as it was, but for words and comments."""
        new = 1 + self._query("SELECT seq FROM sqlite_sequence WHERE name = 'articles'")[0]
        return [
            ("headline", {"id": 5}, {"news": "5"}, True),
            ("headline", {"id": 1}, {"news": "1"}, True),  # too old for the front page
            ("text", {"id": 5}, {"news": "5"}, True),
            ("comment", {"id": 5}, {"news": "5"}, True),
            ("comment", {"id": 9}, {"news": "9"}, True),
            ("remove comment", {"id": 9}, {"news": "9"}, True),
            ("rename author", {"id": 2}, {"author": "2"}, True),
            ("describe section", {"slug": "river"}, {"section": "river"}, True),
            ("rename section", {"slug": "town"}, {"section": "town"}, True),
            ("author", {"id": 7, "author": 1}, {"news": "7", "author": "3", "to": "1"}, True),
            ("author", {"id": 7, "author": 3}, {"news": "7", "author": "1", "to": "3"}, True),
            ("move", {"id": 8, "slug": "river"}, {"news": "8", "section": "culture", "to": "river"}, True),
            ("move", {"id": 8, "slug": "culture"}, {"news": "8", "section": "river", "to": "culture"}, True),
            ("headline", {"id": 13}, {"news": "13"}, False),  # a draft
            ("add", {"slug": "town", "author": 1}, {"news": str(new)}, False),
            ("publish", {"id": new, "hours": 0}, {"news": str(new), "section": "town", "author": "1"}, True),
            ("withdraw", {"id": new}, {"news": str(new), "section": "town", "author": "1"}, True),
            ("publish", {"id": new, "hours": 500}, {"news": str(new), "section": "town", "author": "1"}, True),  # none of the newest
            ("delete", {"id": new}, {"news": str(new), "section": "town", "author": "1"}, True),
            ("schedule", {"id": 14, "seconds": 0}, {"news": "14"}, False),
            ("publish", None, {"news": "14", "section": "river", "author": "2"}, True),  # by bin/publish-due.php
            ("withdraw", {"id": 14}, {"news": "14", "section": "river", "author": "2"}, True),
            ("add section", {}, {}, True),
        ]  # fmt: skip

    def work(self):
        """Makes each write; the sentences say what was wrong."""
        wrong = []
        self._before = self._look()
        for write, fields, facts, is_seen in self.steps():
            wrong += [f"{write} {fields or ''}: {what}" for what in self._make(write, fields, facts, is_seen)]
        return wrong

    def _make(self, write, fields, facts, is_seen):
        data_before = self._data()
        word = None
        if fields is None:
            self._site.run("publish-due.php")
        else:
            target, form, word = self._form(write, dict(fields))
            answer = self._visitor.post(target, **form)
            if answer.status != 303:
                return [f"answered with {answer.status}: {answer.text[:300]}"]
        if word:
            self._known.set(*word)
        self.writes += 1
        self.made.add(write)
        data = self._data()
        identifiers = self._table.changed(write, facts, data_before, data) if is_seen else set()
        named = self._table.pages(identifiers, data_before, data)
        before, now = self._before, self._look()
        self._before = now
        # What is new has not been kept before, and what is gone is not looked at.
        pages = [page for page in now if page in before]
        kept = [page for page in pages if now[page].is_kept and before[page].is_kept]
        purged = {page for page in kept if now[page].made != before[page].made}
        differs = {page for page in pages if now[page].first.content != before[page].first.content}
        return [
            *tell("purged, and not in the table", purged - named),
            *tell("in the table, and not purged", (named - purged) & set(kept)),
            *tell("looks as before", (named - differs) & set(pages)),
            *tell("looks different, and is not in the table", differs - named),
            *tell("kept, and not what PHP makes now", self._old(now) if self.writes % self._past_every == 0 else ()),
        ]

    def _form(self, write, form):
        """Where it is sent, the fields, and the word in them that visitors must see from now on."""
        version = next(self._versions)
        text = lambda kind, number: f"{kind}{number}v{version}"
        number = form.get("id")
        if write == "comment":
            form = {"name": "Eve", "text": f'{text("c", number)} <esi:include src="/fragments/visitor"/>'}
            return f"/news/{number}/comments", form, ("c", number, version)
        form["do"] = write
        word = None
        if write in ("headline", "add"):
            form |= {"title": text("h", number or 0), "lead": "A lead.", "body": "A text."}
            word = ("h", number, version) if number else None
        elif write == "text":
            form["body"], word = text("t", number), ("t", number, version)
        elif write == "rename author":
            form["name"], word = text("a", number), ("a", number, version)
        elif write in ("rename section", "describe section"):
            kind = "s" if write == "rename section" else "d"
            number = self._data().sections.index(form["slug"])
            form["name"] = form["about"] = text(kind, number)
            word = (kind, number, version)
        elif write == "add section":
            # Last in the alphabet, so that the others keep their numbers.
            form |= {"slug": "z" + "".join(chr(97 + int(digit)) for digit in str(version)), "name": "Another", "about": "More."}
        elif write == "remove comment":
            comments = self._site_comments(form["id"])
            form["comment"] = comments[0]
        return "/editor/", form, word

    def _site_comments(self, article):
        return self._query("SELECT id FROM comments WHERE article = ? ORDER BY id", article)

    def _look(self):
        return dict(self._each(self._seen, self._data().pages()))

    def _each(self, ask, pages):
        """Asks with some visitors at the same time."""
        with concurrent.futures.ThreadPoolExecutor(LOOKING) as pool:
            shares = [pages[number::LOOKING] for number in range(LOOKING)]
            work = [pool.submit(lambda visitor, share: [(page, ask(visitor, page)) for page in share], *pair) for pair in zip(self._looking, shares)]
            return [answer for done in work for answer in done.result()]

    @staticmethod
    def _seen(visitor, page):
        return Seen(visitor, page)

    def _old(self, now):
        """Kept pages beside what PHP makes for an address of which nothing is stored."""
        kept = [page for page in now if now[page].is_kept]
        past = next(self._past)
        made = self._each(lambda visitor, page: visitor.get(f"{page}?past={past}"), kept)
        return {page for page, fresh in made if fresh.content != now[page].first.content}

    def _data(self):
        return Data(self._site.database)

    def _query(self, text, *values):
        with sqlite3.connect(f"file:{self._site.database}?mode=ro", uri=True, timeout=10) as database:
            return [value for (value,) in database.execute(text, values)]


class Seen:
    """A page as a visitor sees it first, and the time of the one that is kept then."""

    def __init__(self, visitor, page):
        self.first = visitor.get(page)
        last = self.first
        for _ in range(LOOKS if last.status == 200 else 2):
            if last.is_from_memory:
                break
            last = visitor.get(page)
        self.is_kept = last.is_from_memory
        self.made = last.made


def tell(what, pages):
    return [f"{what}: {' '.join(sorted(pages))}"] if pages else []
