"""A crowd of guests on one page of a shop that begins a session for everybody (files/guests) and takes 25 ms to make a page.

PHP runs for a few of them, and few sessions are written. `--guests 1000` is the long form: a page that nobody has seen before, then the same page
again, beside WordPress in the same run, whose pages are for all.
"""

import copy
import time

from harness import guests, set_ups, wordpress
from harness import subject as subjects
from harness.client import Client
from harness.guests import Guest
from harness.workdir import Workdir

# One whose pages are the same for all guests, and one with a token that is new on each page.
SHOPS = ("opencart", "yii")
PAGE_MICROSECONDS = 25_000
CONNECTIONS = 100
SOURCES = [f"127.0.9.{number}" for number in range(2, 2 + CONNECTIONS)]
FEW_GUESTS = 200
BEFORE = 3
SETTLE_SECONDS = 2
MAX_RUNS = 0.02
MAX_SESSIONS = 0.05
SLOWER = 2
LIFETIME_SECONDS = 3600


def run(options, report):
    if options.subject != "mayfly":
        report.note("left out: it starts its servers itself")
        return
    if options.guests <= FEW_GUESTS:
        options = copy.copy(options)
        # Nothing ends while they come, however long that takes.
        options.ttl = LIFETIME_SECONDS
        for name in SHOPS:
            with Shop(options, report, name) as trial:
                trial.some_before()
                trial.crowd("known")
        return
    usual = of_wordpress(options, report)
    for name in SHOPS:
        with Shop(options, report, name) as trial:
            for phase in ("new", "known"):
                p99 = trial.crowd(phase)
                report.check(f"{name}: 99 of 100 wait at most twice as long as for WordPress", p99 <= SLOWER * usual[phase],
                             f"{p99} ms and {usual[phase]} ms")  # fmt: skip


class Shop:
    def __init__(self, options, report, name):
        self.options, self.report, self.name = options, report, name

    def __enter__(self):
        self.workdir = Workdir(f"crowd-{self.name}", keep=self.options.keep).__enter__()
        self.site = guests.Site(self.workdir, "sites", self.name)
        self.workdir.write(f"sites/data/{self.name}/delay", str(PAGE_MICROSECONDS))
        self.subject = subjects.start(self.workdir, self.options, "guests", self.site.root)
        front = Guest(self.subject, 0).open("/")
        self.target = front.links["item-1"]
        return self

    def __exit__(self, *error):
        self.workdir.__exit__(*error)

    def some_before(self):
        for number in range(BEFORE):
            Guest(self.subject, number).open(self.target)
        time.sleep(SETTLE_SECONDS)

    def crowd(self, phase):
        """How long 99 of 100 waited, in milliseconds."""
        count = self.options.guests
        runs, sessions = self.site.runs(), self.site.sessions()
        answers = set_ups.crowd(self.subject, [self.target] * count, CONNECTIONS, sources=SOURCES)
        runs, sessions = self.site.runs() - runs, self.site.sessions() - sessions
        name = f"{self.name}: {count} guests on a {phase} page"
        self.report.note(f"{name}: PHP ran {runs} times, {sessions} sessions written; {answers.summary()}")
        set_ups.check_crowd(self.report, name, answers, count)
        self.report.check(f"{name}: PHP runs for at most {MAX_RUNS:.0%} of them", runs <= MAX_RUNS * count, runs)
        self.report.check(f"{name}: at most {MAX_SESSIONS:.0%} of their sessions are written", sessions <= MAX_SESSIONS * count, sessions)
        return answers.summary()["p99_ms"]


def of_wordpress(options, report):
    """How long 99 of 100 wait for a new page, and for one that is known, in milliseconds."""
    with Workdir("crowd-wordpress", keep=options.keep) as workdir:
        site = wordpress.Site(workdir)
        subject = subjects.start(workdir, options, "wordpress", wordpress.ROOT)
        admin = wordpress.User("root1", "Ada Admin", "administrator")
        site.install(subject, admin)
        site.seed([admin], [{"title": "A post", "slug": "a-post", "author": "root1", "content": "<p>A post.</p>" * 20}])
        Client(subject.address, subject.port).get("/")
        waits = {}
        for phase in ("new", "known"):
            answers = set_ups.crowd(subject, ["/a-post/"] * options.guests, CONNECTIONS, sources=SOURCES)
            report.note(f"wordpress, {options.guests} guests on a {phase} page: {answers.summary()}")
            waits[phase] = answers.summary()["p99_ms"]
        return waits
