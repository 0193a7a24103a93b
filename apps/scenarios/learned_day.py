"""A day in the life of three sites that are learned (`cache_learn on`), in an hour: two of WordPress and a MediaWiki without caches of its
own, behind one Mayfly, with databases of one server.

Visitors ask for some pages often and for others seldom, some have a session, a crawler follows all links, and an editor changes
the sites: in the browser, by commands (`mayfly run`), by a client of the database that Mayfly knows nothing of. Cron runs, comments are
written, files are deployed, a database is dumped and restored, and each part is restarted in its turn. Every answer is judged: it must
not be older than what was changed before it was asked for (two seconds for other programs), nor another visitor's. One in ten
from memory is compared with what the application makes at that moment.
"""

import collections
import copy
import os
import random
import re
import shutil
import signal
import threading
import time
import urllib.parse

from harness import learned, mariadb, wordpress_blog
from harness.client import Client, path_of
from harness.day_judge import Events, Judge
from harness.day_server import CRON, Server, Used
from harness.day_sites import FAILURES, MediaWiki, WordPress, quietly
from harness.workdir import Workdir

LIFETIME_SECONDS = 1
VISITORS, AUDITORS = 3, 2
# Requests of all visitors of a site, in a second; an editor changes something each so many seconds.
RATES = {"first": 5.0, "second": 5.0, "wiki": 1.5}
CHANGE_SECONDS, CRON_SECONDS, CRAWL_SECONDS, SESSION_SECONDS = 10.0, 30.0, 3.0, 3.0
LOGIN_EVERY = 30
# An error so long after a restart or a restoration has another cause.
AFTER_SECONDS = 15
# All that happens to servers once; in a long run, again and again.
ROUND_SECONDS = 1800
SETTLE_SECONDS, SETTLED_SHARE, LOOK_SECONDS = 240, 0.8, 4
MIN_KEPT = 50
COUNTERS = (
    "learned_renders", "not_learned_renders", "learned_removals", "learned_writes", "learned_matches", "learned_comparisons", "learned_audits",
    "learned_replays", "learned_freshened", "spared_seconds",
)  # fmt: skip
SHOWN = 12
MAX_CRAWLED = 200


def run(options, report):
    if options.subject != "mayfly":
        report.note("left out: only Mayfly's own configuration learns")
        return
    original = wordpress_blog.block_theme()
    if original is None:
        report.note("left out: there is no theme of blocks here")
        return
    options = copy.copy(options)
    options.ttl = LIFETIME_SECONDS
    with (
        Workdir("day", keep=options.keep, parent=learned.SITES) as workdir,
        Workdir("day-first", keep=options.keep, parent=learned.SITES) as first,
        Workdir("day-second", keep=options.keep, parent=learned.SITES) as second,
        Workdir("day-wiki", keep=options.keep, parent=learned.SITES) as third,
    ):
        # PHP's account runs commands by it.
        options.binary = shutil.copy(options.binary, workdir.mkdir("program"))
        database = mariadb.start(workdir, names=("first", "second", "wiki"))
        sites = [
            WordPress("first", first, options.binary, database, has_own_cron=True, cron=CRON),
            WordPress("second", second, options.binary, database.beside("second"), has_own_cron=False, cron=CRON),
            MediaWiki("wiki", third, options.binary, database.beside("wiki")),
        ]
        server = Server(workdir, options, sites, "apc.enabled=0\n")
        names = [wordpress_blog.put_themes(folder, original) for folder in (first, second)]
        server.start()
        try:
            for site, of_site in zip(sites[:2], names, strict=True):
                site.install(of_site)
            sites[2].install()
            day = Day(options, report, server, sites)
            day.run()
        finally:
            wrong = server.stop()
            if report.failed:
                report.note(workdir.log_tail("mayfly"))
        report.check("day: the server ran to the end", not wrong, wrong)


class Day:
    def __init__(self, options, report, server, sites):
        self.report, self.server, self.sites, self.seconds = report, server, sites, options.seconds
        self.events = Events()
        self.judges = {site: Judge(site, server.control, self.events) for site in sites}
        self.is_over, self.auditing_is_over = threading.Event(), threading.Event()
        # Counters of processes that have ended.
        self.numbers = collections.Counter()
        self.crawled = {site: set() for site in sites}
        self.wrong = []

    def run(self):
        self.settle()
        begin = self.server.memory_bytes()
        used = Used(self.server)
        used.start()
        threads = [threading.Thread(target=work, args=arguments, daemon=True) for work, *arguments in self.works()]
        audits = [judge.audits for judge in self.judges.values() for _ in range(AUDITORS)]
        auditors = [threading.Thread(target=work, args=(self.auditing_is_over,), daemon=True) for work in audits]
        for thread in (*threads, *auditors):
            thread.start()
        self.happenings(time.monotonic())
        self.is_over.set()
        for thread in threads:
            thread.join(120)
        # What was shown last is compared as well.
        until = time.monotonic() + 60
        while any(judge.to_audit for judge in self.judges.values()) and time.monotonic() < until:
            time.sleep(0.2)
        self.auditing_is_over.set()
        for thread in auditors:
            thread.join(60)
        self.note_numbers()
        self.tell(begin, self.server.memory_bytes(), used.stop())

    def settle(self):
        """Until most pages of each site are learned: scripts that are new are not, for two minutes."""
        until = time.monotonic() + SETTLE_SECONDS
        others = {site: site.paths for site in self.sites}
        while any(len(left) > (1 - SETTLED_SHARE) * len(site.paths) for site, left in others.items()) and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
            for site in self.sites:
                pages = learned.Pages(site, self.server.control, site.paths, site.past_memory)
                pages.visit(site.paths)
                others[site] = {path: belief for path, belief in pages.beliefs(site.paths).items() if belief[0] != "fresh"}
        for site, left in others.items():
            self.report.note(f"{site.name}: {len(site.paths) - len(left)} of {len(site.paths)} pages are learned at the beginning")
            for path, belief in list(left.items())[:SHOWN]:
                self.report.note(f"  {path}: {' '.join(belief)[:160]}")

    def works(self):
        for site in self.sites:
            for number in range(VISITORS):
                yield self.visit, site, number
            yield self.visit_with_session, site
            yield self.crawl, site
            yield self.each, CHANGE_SECONDS, site.change, self.judges[site]
            yield self.each, CRON_SECONDS, quietly, site.cron

    def each(self, seconds, work, *arguments):
        chance = random.Random(seconds)
        while not self.is_over.wait(chance.uniform(0.5, 1.5) * seconds):
            work(*arguments)

    def visit(self, site, number):
        """Some pages are asked for far more often than others (Zipf's law)."""
        chance, judge = random.Random(f"{site.name} {number}"), self.judges[site]
        paths = list(site.paths)
        random.Random(site.name).shuffle(paths)
        weights = [1 / rank for rank in range(1, len(paths) + 1)]
        client = Client(site.address, site.port)
        while not self.is_over.wait(chance.expovariate(RATES[site.name] / VISITORS)):
            [path] = chance.choices(paths, weights)
            judge.ask(client, path)

    def visit_with_session(self, site):
        chance, judge, client, number = random.Random(f"session {site.name}"), self.judges[site], None, 0
        while not self.is_over.wait(chance.expovariate(1 / SESSION_SECONDS)):
            if client is None or number % LOGIN_EVERY == 0:
                try:
                    client, marker = site.log_in()
                    judge.count("logins")
                except FAILURES:
                    judge.count("logins that failed")
                    continue
            number += 1
            answer = judge.ask(client, chance.choice(site.paths), user=1, marker=marker)
            # A restoration takes sessions with it.
            if answer is not None and answer.status == 200 and "<html" in answer.text and not site.personal(answer):
                number = 0

    def crawl(self, site):
        """Follows all links within a site, and begins again at the end."""
        judge, seen, waiting = self.judges[site], self.crawled[site], collections.deque(site.paths[:1])
        client = Client(site.address, site.port)
        while not self.is_over.wait(CRAWL_SECONDS):
            path = waiting.popleft() if waiting else site.paths[0]
            answer = judge.ask(client, path)
            if answer is None:
                continue
            for link in links(site, path, answer):
                if link not in seen:
                    seen.add(link)
                    waiting.append(link)

    def happenings(self, began):
        """What happens to servers and sites, one after the other."""
        rounds = max(1, round(self.seconds / ROUND_SECONDS))
        plan = [happening for _ in range(rounds) for happening in self.round()]
        for number, (name, work, *arguments) in enumerate(plan, 1):
            self.sleep_until(began + self.seconds * number / (len(plan) + 1))
            event = self.events.begin(name)
            try:
                wrong = work(*arguments)
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            self.events.end(event)
            self.report.note(f"{time.strftime('%H:%M:%S')} {name}: {event[2] - event[1]:.1f} s" + (f": {wrong}" if wrong else ""))
            if wrong:
                self.wrong.append(f"{name}: {wrong}")
        self.sleep_until(began + self.seconds)

    @staticmethod
    def sleep_until(moment):
        time.sleep(max(0.0, moment - time.monotonic()))

    def round(self):
        first, second, wiki = self.sites
        server = self.server
        yield "the database of first is dumped and restored", first.dump_and_restore, self.judges[first]
        yield "the database server is restarted", first.database.restart
        yield "Mayfly is reloaded", server.reload
        yield "workers of PHP of second are killed", self.kill_workers, second
        yield "the pool of first is started anew by a reload", server.reload_with_another_pool, first
        yield "the database of wiki is dumped and restored", wiki.dump_and_restore, self.judges[wiki]
        yield "Mayfly is upgraded", self.counted, server.upgrade
        yield "workers of PHP of wiki are killed", self.kill_workers, wiki
        yield "a file of the theme of first is deployed", first.deploy, self.judges[first]
        yield "the database server is restarted again", first.database.restart
        yield "Mayfly is restarted", self.counted, server.restart
        yield "the database of second is dumped and restored", second.dump_and_restore, self.judges[second]
        yield "a file of the theme of second is deployed", second.deploy, self.judges[second]
        yield "a plug-in of second is deployed", second.deploy_script, self.judges[second]

    def counted(self, work):
        """Notes the counters of a process that ends."""
        self.note_numbers()
        return work()

    def kill_workers(self, site):
        for pid in self.server.workers_of(site):
            os.kill(pid, signal.SIGKILL)

    def note_numbers(self):
        for name, value in flat(self.server.control.numbers()):
            self.numbers[name] += value

    def tell(self, begin, end, used):
        for site, judge in self.judges.items():
            self.tell_site(site, judge)
        total = sum((judge.counts for judge in self.judges.values()), collections.Counter())
        hits = sum(sum(judge.hits.values()) for judge in self.judges.values())
        spared = sum(judge.spared_seconds() for judge in self.judges.values())
        spent = sum(judge.php_seconds for judge in self.judges.values())
        note = self.report.note
        note(f"all: {total['requests']} requests, {hits} from memory ({hits / max(1, total['requests']):.1%})")
        note(
            f"PHP: {spared:.0f} s spared (the time of each page, by its hits), {spent:.0f} s that who asks waited for it, audits included; "
            f"{used['php']:.0f} s of processor time"
        )
        note(f"Mayfly: {used['mayfly']:.0f} s of processor time")
        for what in begin:
            note(f"memory of {what}: {begin[what] / 1e6:.0f} MB at the beginning, {end[what] / 1e6:.0f} MB at the end")
        for name in sorted(self.numbers):
            note(f"{name}: {self.numbers[name]:.0f}")
        self.check(total)

    def tell_site(self, site, judge):
        note = self.report.note
        hits = sum(judge.hits.values())
        note(f"{site.name}: {hits} from memory of {judge.counts['requests']} ({hits / max(1, judge.counts['requests']):.1%}), {len(self.crawled[site])} links")
        note("  " + ", ".join(f"{number} {what}" for what, number in sorted(judge.counts.items())))
        if judge.unsteady:
            note(f"  differ each time: {judge.unsteady.most_common(SHOWN)}")
        if judge.ordinary:
            note(f"  differ, with the ordinary lifetime: {judge.ordinary.most_common(SHOWN)}")
        causes = collections.Counter((self.events.cause(moment, AFTER_SECONDS) or "no cause", what) for moment, what, _ in judge.errors)
        for (cause, what), number in sorted(causes.items()):
            note(f"  errors: {number} x {what} at: {cause}")
        for moment, what in site.refused:
            note(f"  change that failed at {self.events.cause(moment, AFTER_SECONDS) or 'no cause'}: {what}")
        states = collections.Counter(self.belief(site, path) for path in dict.fromkeys([*site.paths, *sorted(self.crawled[site])[:MAX_CRAWLED]]))
        note(f"  pages at the end: {', '.join(f'{number} {state}' for state, number in states.most_common())}")

    def belief(self, site, path):
        try:
            state, reason, _ = self.server.control.learned(f"http://{site.host}{path}")
        except (OSError, RuntimeError) as error:
            return type(error).__name__
        return f"{state} ({reason})" if state not in ("fresh", "suspect") and reason else state

    def check(self, total):
        report = self.report
        for site, judge in self.judges.items():
            report.check(f"day: {site.name}: no answer was old", not judge.counts["old"], "\n".join([str(judge.counts["old"]), *judge.old]))
            report.check(f"day: {site.name}: nobody was shown another's page", not judge.leaks, "\n".join(judge.leaks))
            without = [(what, path) for moment, what, path in judge.errors if self.events.cause(moment, AFTER_SECONDS) is None]
            report.check(f"day: {site.name}: no error without a cause", not without, without[:SHOWN])
            if site.is_kept:
                kept = judge.counts["kept answers with a version"]
                report.check(f"day: {site.name}: pages were kept", kept >= MIN_KEPT, kept)
        report.check("day: all that was planned happened", not self.wrong, self.wrong)
        report.check("day: audits were made", total["audits: equal"] > MIN_KEPT)


def links(site, path, answer):
    """The addresses of this site that a page leads to. Who follows them does not log out, and does not ask for a page by chance."""
    for found in [*re.findall(r"""<a\s[^>]*href=["']([^"'#]+)""", answer.text), *answer.all("location")]:
        url = urllib.parse.urljoin(f"http://{site.host}{path}", found.replace("&amp;", "&").replace("&#038;", "&"))
        if urllib.parse.urlsplit(url).netloc == site.host and not re.search(r"logout|Special:Random|action=purge", url):
            yield urllib.parse.quote(path_of(url), safe="/?&=%:+,;@!*'()[]~-._$")


def flat(numbers):
    """Counters with their labels as text."""
    for name, values in numbers.items():
        for each in values:
            if name in COUNTERS and each.get("value"):
                yield f"{name} {' '.join(each.get('labels', {}).values())}".strip(), each["value"]
