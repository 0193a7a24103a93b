"""The WordPress plug-in (php/wordpress): pages are kept for an hour, and none is ever old.

An editor changes the site in each of the ways there are: with the block editor's interface (REST), in
wp-admin (quick edit, bulk edit, the settings' forms), by comments, by cron, and by scripts of the command
line. After each change every public page is asked for. One that comes from memory is compared with the page
as WordPress makes it now; one that does not has been purged. Last, a row is written past WordPress: the
pages that show it are old then, and so the comparison can fail.
"""

import concurrent.futures
import copy
import os
import re
import statistics
import subprocess
import time

from harness import subject as subjects
from harness import wordpress, wordpress_blog
from harness.client import Client
from harness.workdir import Workdir
from harness.wordpress_blog import ADMIN, PAST_MEMORY, public_pages
from harness.wordpress_changes import changes
from harness.wordpress_editor import Editor

LIFETIME_SECONDS = 3600
THREADS = 4
MAX_NEEDLESS = 0.30
MIN_PAGES = 100
MIN_CHANGES = 90
COST_PAGES = ("/", "/article-5/", "/category/sport/")
COST_ROUNDS = 100
PLUGIN = os.path.join(wordpress.FILES, "..", "..", "php", "wordpress", "build.sh")
# What CI does of it: a change by each way, and some pages of each kind.
CHANGES_IN_CI = (
    "a post is published", "the text of a post", "a draft is written", "quick edit", "a scheduled post is due",
    "the posts of a script", "a visitor comments", "a category is renamed", "another theme", "a widget is added",
)  # fmt: skip
PAGES_IN_CI = r"^/$|/page/2/|/article-(1|2|4|5|7|24)/$|feed|/category/|/author/mary/$|/wp/v2/posts|posts-post|s=article|/team/|/breaking/|/nowhere/"


# Of files/wordpress_plugin_tables.php; they are different each time.
ENDING_PAGES = ("/own-visits/", "/own-views/", "/own-past/", "/own-short/")
# The nonce on the last of them is taken for two seconds at least, and four at most.
ENDED_SECONDS = 3.2


class Pages:
    """All pages: as they come from the server, and as WordPress makes them now."""

    def __init__(self, subject, paths):
        self.subject = subject
        self.paths = paths

    def each(self, paths, cookies=None):
        """The answers to requests by as many visitors, by path."""

        def ask(path):
            return path, Client(self.subject.address, self.subject.port, cookies).get(path)

        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            return dict(pool.map(ask, paths))

    def warm(self):
        """Has all of them stored; returns those that the server does not keep."""
        # WordPress makes a page for its first visitor, and once more for comparison.
        for _ in range(2):
            self.each(self.paths)
        return [path for path, answer in self.each(self.paths).items() if not answer.is_hit]

    def look(self):
        """What visitors get, which pages were not in memory, and which were and are old."""
        now = self.each(self.paths)
        purged = [path for path, answer in now.items() if not answer.is_hit]
        kept = [path for path in self.paths if now[path].is_hit]
        made = self.each(kept, PAST_MEMORY)
        old = [path for path in kept if content(now[path]) != content(made[path])]
        return now, purged, old


def content(answer):
    return answer.status, answer.field("location"), answer.text


def run(options, report):
    if not options.subject.startswith("mayfly"):
        report.note("left out: nginx has no tags")
        return
    original = wordpress_blog.block_theme()
    if original is None:
        report.note("left out: there is no theme of blocks here")
        return
    options = copy.copy(options)
    options.ttl = LIFETIME_SECONDS
    with Workdir("plugin", keep=options.keep) as workdir:
        site = wordpress.Site(workdir, plugins=("cost.php", "wordpress_plugin_tables.php"))
        subprocess.run([PLUGIN, "--must-use", workdir.join("mu-plugins")], check=True)
        with open(workdir.join("config.php"), "a", encoding="utf-8") as config:
            config.write(f"define('DISABLE_WP_CRON', true);\ndefine('COST_FILE', '{workdir.mkdir('cost')}/cost');\n")
        names = wordpress_blog.put_themes(workdir, original)
        subject = subjects.start(workdir, options, "wordpress", wordpress.ROOT)
        with subject.judged(report, "plug-in"):
            made = wordpress_blog.install(site, subject, names)
            editor = Editor(site, subject, ADMIN, made)
            judge(report, options, editor, Pages(subject, public_pages(made)))
            if options.all_changes:
                cost(report, workdir, subject)


def judge(report, options, editor, pages):
    if not options.all_changes:
        pages.paths = [path for path in pages.paths if re.search(PAGES_IN_CI, path)]
    unkept = pages.warm()
    # Redirects are kept for a second.
    pages.paths = [path for path in pages.paths if path not in unkept]
    report.note(f"{len(pages.paths)} pages; not kept: {unkept}")
    if options.all_changes:
        report.check(f"plug-in: at least {MIN_PAGES} public pages are kept", len(pages.paths) >= MIN_PAGES, unkept)
    before, _, old = pages.look()
    report.check("plug-in: a page made twice is the same", not old, old)
    counts = Counts()
    stale = set()
    for name, is_visible, change in changes():
        if not options.all_changes and name not in CHANGES_IN_CI:
            continue
        editor.written.clear()
        change(editor)
        now, purged, old = pages.look()
        differ = [path for path in pages.paths if content(now[path]) != content(before[path])]
        # WordPress forbids to keep some redirects. Any write drops the answers to wrong addresses
        # (cache_not_found), and what is stored for its own address (RFC 9111, section 4.4).
        counted = [path for path in pages.paths if before[path].status == 200 and path not in editor.written]
        purged = [path for path in purged if path in counted]
        needless = [path for path in purged if path not in differ and path not in stale]
        missed = [path for path in old if path not in stale]
        stale = set(old)
        counts.add(len(differ) + len(missed), len(purged), len(needless), len(missed))
        report.note(f"{name}: {len(purged)} of {len(counted)} purged, {len(differ)} differ, needless: {' '.join(needless[:4])}")
        report.check(f"plug-in: {name}: no page is old", not missed, missed)
        if is_visible is not None:
            is_right = bool(differ) if is_visible else not differ and not purged
            report.check(f"plug-in: {name}: {'it is seen' if is_visible else 'nothing is purged'}", is_right, purged or differ)
        before = now
    report.note(f"{counts.changes} changes over {len(pages.paths)} pages: {counts}")
    if options.all_changes:
        report.check(f"plug-in: at least {MIN_CHANGES} changes", counts.changes >= MIN_CHANGES)
        share = counts.needless / counts.purged
        report.check(f"plug-in: {share:.1%} of what is purged is unchanged, fewer than {MAX_NEEDLESS:.0%}", share < MAX_NEEDLESS)
    past_wordpress(report, editor, pages)
    ending(report, editor)


class Counts:
    """Pairs of a change and a page."""

    def __init__(self):
        self.changes = self.changed = self.purged = self.needless = self.missed = 0

    def add(self, changed, purged, needless, missed):
        self.changes += 1
        self.changed += changed
        self.purged += purged
        self.needless += needless
        self.missed += missed

    def __str__(self):
        return f"{self.changed} pages changed, {self.missed} missed; {self.purged} purged, {self.needless} of them needlessly"


def past_wordpress(report, editor, pages):
    """The comparison can fail: what a client of the database writes is not seen."""
    editor.site.select(f"UPDATE wp_posts SET post_title = 'Past' WHERE ID = {editor.post(7)}")
    _, _, old = pages.look()
    report.check("plug-in: what is written past WordPress is not seen, and found", "/article-7/" in old, old)


def ending(report, editor):
    """Pages that show what each view changes, or what WordPress does not read, are kept for a second at most, and
    no page is kept longer than its nonce."""
    for path in ENDING_PAGES:
        for _ in range(3):
            editor.visit(path)
    time.sleep(ENDED_SECONDS)
    for path in ENDING_PAGES:
        report.check(f"plug-in: {path} is not kept", editor.visit(path).cache_word != "HIT")


def cost(report, workdir, subject):
    """The CPU time of pages with tags and without, by turns."""
    log = workdir.join("cost", "cost")
    shares = []
    for page in COST_PAGES:
        for _ in range(COST_ROUNDS):
            for cookies in ({}, {"mayfly_off": "1"}):
                Client(subject.address, subject.port, {**PAST_MEMORY, "mayfly_cost": "1", **cookies}).get(page)
        with open(log, encoding="utf-8") as file:
            spent = [line.split() for line in file][-2 * COST_ROUNDS :]
        # The lower quartile: whatever else runs on the machine only adds to a page's time.
        on, off = (
            statistics.quantiles([int(cost) for kind, cost in spent if kind == wanted], n=4)[0] for wanted in ("on", "off")
        )
        shares.append(on / off - 1)
        report.note(f"{page} costs {off / 1000:.1f} ms of CPU time without tags, {on / 1000:.1f} ms with them")
    report.note(f"tags cost {statistics.mean(shares):.1%} of a page's CPU time")
