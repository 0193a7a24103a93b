"""The two tables of examples/news/dependencies.md: which pages read what, and what a write changes."""

import re
import sqlite3

NEWEST = 10


class Data:
    """What pages could be made of, at one moment."""

    def __init__(self, path):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10) as database:
            rows = database.execute("SELECT id, section, author FROM articles WHERE published IS NOT NULL ORDER BY published DESC, id DESC")
            self.articles = [{"news": str(news), "section": section, "author": str(author)} for news, section, author in rows]
            self.all = {str(news): (section, str(author)) for news, section, author in database.execute("SELECT id, section, author FROM articles")}
            self.sections = [slug for (slug,) in database.execute("SELECT slug FROM sections ORDER BY slug")]
            self.authors = [str(author) for (author,) in database.execute("SELECT id FROM authors ORDER BY id")]
        database.close()

    @property
    def newest(self):
        return self.articles[:NEWEST]

    def pages(self):
        """All pages there are, drafts as the wrong addresses that they are."""
        pages = ["/", "/feed.atom", "/sitemap.xml"]
        return [*pages, *map("/section/{}".format, self.sections), *map("/author/{}".format, self.authors), *map("/news/{}".format, self.all)]


class Table:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self._reads = {row[0]: row[-1] for row in rows(text, "identifier")}
        self._changes = {row[0]: row[-1] for row in rows(text, "write")}

    @property
    def writes(self):
        return set(self._changes)

    def changed(self, write, facts, before, after):
        """The identifiers of the data that a write changes."""
        always, if_new = halves(self._changes[write])
        if before.newest != after.newest:
            always += if_new
        return {identifier.format(**facts) for identifier in always}

    def pages(self, identifiers, before, after):
        """The pages that read one of these, before a write or after it."""
        return {page for identifier in identifiers for page in self._pages_of(identifier, before, after)}

    def _pages_of(self, identifier, before, after):
        bound, cell = self._row(identifier)
        if cell.startswith("all but"):
            return {page for data in (before, after) for page in data.pages()} - set(quoted(cell))
        always, if_new = halves(cell)
        pages = {page.format(**bound) for page in always if set(re.findall(r"{(\w+)}", page)) <= set(bound)}
        for data in (before, after):
            for article in data.articles:
                if bound.items() <= article.items():
                    shown = always + (if_new if article in data.newest else [])
                    pages |= {page.format(**article) for page in shown}
        # The newest articles are the same for all who list them.
        return pages

    def _row(self, identifier):
        """What the identifier says of `{news}`, `{section}` or `{author}`, and the row's pages."""
        for name, cell in self._reads.items():
            pattern = re.sub(r"{(\w+)}", r"(?P<\1>\\w+)", name)
            if found := re.fullmatch(pattern, identifier):
                return found.groupdict(), cell
        raise AssertionError(f"dependencies.md has no {identifier}")


def rows(text, heading):
    """The rows of the table whose first column is called so; of the first column, what stands between backquotes."""
    table = re.search(rf"^\| {heading} \|.*\n\| ---.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    for line in table[1].splitlines():
        first, *others = [cell.strip() for cell in line.strip("|").split("|")]
        yield [quoted(first)[0], *others]


def halves(cell):
    always, _, if_new = cell.partition("if new:")
    return quoted(always), quoted(if_new)


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)
