"""Applications that begin a session for every guest (files/guests), each behind `serve` and once without a cache.

Guests crawl each of them: once six have been there, two of each browser,, nearly all pages come from memory. Guests who got their page from memory use every
form and link, with the outcome that they have without a cache; writes that another site forges are refused
as before. Nobody sees a session, a token or a cart of somebody else.
"""

import collections
import concurrent.futures
import copy
import itertools
import shutil
import time

from harness import guests, mariadb
from harness import subject as subjects
from harness.guest_outcomes import FORGED, Outcomes
from harness.guests import Guest
from harness.workdir import Workdir

# Nothing ends while guests come: what is not shared is what the applications do.
LIFETIME_SECONDS = 3600
SIDE_BY_SIDE = 6
COLD_CRAWLS = 6
# Beside visitors the server asks PHP what pages depend on: until it has not done so for a while.
QUIET_SECONDS = 0.6
MAX_SECONDS = 15
FORGED_EACH = 3
MIN_SHARE = 0.9
MIN_APPLICATIONS = 0.75


def run(options, report):
    if options.subject != "mayfly":
        report.note("left out: it starts its servers itself")
        return
    options = copy.copy(options)
    options.ttl = LIFETIME_SECONDS
    with Workdir("guests-mariadb", keep=options.keep) as workdir, concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        databases = start_databases(workdir, report)
        trials = list(pool.map(lambda name: Trial(name, options, databases), guests.NAMES))
    for trial in trials:
        for name, is_true, detail in trial.checks:
            report.check(f"{trial.name}: {name}", is_true, detail)
    judge(report, trials)


def start_databases(workdir, report):
    """One for each site of an application that keeps its tables in MariaDB, by name and folder; none where it is not there."""
    if not shutil.which("mariadbd", path="/usr/sbin:/usr/bin"):
        report.note("left out: MariaDB is not there, so that all tables with sessions are SQLite's")
        return {}
    sites = [(name, folder) for name in guests.IN_MARIADB for folder in Trial.FOLDERS]
    first = mariadb.start(workdir, names=["_".join(site) for site in sites])
    return {site: first.beside("_".join(site)) for site in sites}


def judge(report, trials):
    report.note("application  pages  from memory: are new, go on, have a session, first forms  runs of PHP  sessions begun")
    for trial in trials:
        shares = "  ".join(f"{hits:3} of {views:3}" for hits, views in trial.crawled.values())
        forms = f"{trial.forms[True]:3} of {trial.forms.total():3}"
        report.note(f"{trial.name:12} {trial.pages:5}  {shares}  {forms}  {trial.runs:4}  {trial.sessions:4}")
    shared = [trial for trial in trials if trial.name not in guests.PRIVATE]
    for who in Trial.CRAWLS:
        enough = [trial.name for trial in shared if trial.share(who) >= MIN_SHARE]
        most = f"in {len(enough)} of {len(shared)}"
        report.check(f"guests who {who}: at least nine pages of ten from memory in three applications of four ({most})",
                     len(enough) >= MIN_APPLICATIONS * len(shared), sorted({trial.name for trial in shared} - set(enough)))  # fmt: skip
    for trial in trials:
        if trial.name in guests.PRIVATE:
            report.check(f"{trial.name}: no page whose application says private comes from memory",
                         not sum(hits for hits, _ in trial.crawled.values()), trial.crawled)  # fmt: skip


class Trial:
    """One application, behind the server and beside it without a cache."""

    FOLDERS = ("served", "plain")
    CRAWLS = ("are new", "go on", "have a session")

    def __init__(self, name, options, databases):
        self.name = name
        self.databases = databases
        self.checks = []
        self.crawled = {}
        self.pages = self.runs = self.sessions = 0
        self.forms = collections.Counter()
        try:
            with Workdir(f"guests-{name}", keep=options.keep) as workdir:
                self._run(workdir, options)
        except Exception as error:
            self.check("ran to its end", False, repr(error))
            if options.keep:
                raise

    def check(self, name, is_true, detail=""):
        self.checks.append((name, bool(is_true), detail))

    def share(self, who):
        hits, views = self.crawled.get(who, (0, 0))
        return hits / views if views else 0

    def _run(self, workdir, options):
        sites = {folder: guests.Site(workdir, folder, self.name, self.databases.get((self.name, folder))) for folder in self.FOLDERS}
        served = subjects.start(workdir, options, "guests", sites["served"].root)
        plain = guests.start_nginx(workdir, options, sites["plain"])
        self.ledger = guests.Ledger()
        self._crawl(served, sites["served"])
        failed = sum(not is_true for _, is_true, _ in self.checks)
        outcomes = {}
        variants = FORGED
        if not options.all_changes:
            # Other ones for the next application.
            first = guests.NAMES.index(self.name) * FORGED_EACH
            variants = dict(itertools.islice(itertools.cycle(FORGED.items()), first, first + FORGED_EACH))
        for kind, subject, ledger in (("plain", plain, None), ("served", served, self.ledger)):
            outcomes[kind] = Outcomes(subject, sites[kind], ledger, variants)
        for action, (plain_outcome, expected) in outcomes["plain"].actions.items():
            # The application alone must be right, or the comparison says nothing.
            self.check(f"{action}, without a cache", plain_outcome == expected, f"{plain_outcome}, expected {expected}")
            found = outcomes["served"].actions.get(action, ("nothing",))[0]
            self.check(f"{action}, from memory", found == expected, f"{found}, expected {expected}")
        self.forms = outcomes["served"].forms
        accepted = outcomes["served"].accepted - outcomes["plain"].accepted
        count = outcomes["served"].forged
        self.check(f"of {count} forged writes, none is accepted that the application alone refuses", not accepted, sorted(accepted))
        leaks = self.ledger.leaks(sites["served"])
        self.check("nobody saw a session or token of somebody else", not leaks, leaks[:3])
        wrong = served.stop()
        self.check("the server ran to the end", not wrong, wrong)
        if sum(not is_true for _, is_true, _ in self.checks) > failed:
            self.checks.append(("its log", True, served.logs()))

    def _crawl(self, subject, site):
        *cold, first, second = [Guest(subject, number, self.ledger) for number in range(COLD_CRAWLS + 2)]
        for guest in cold:
            crawl(guest)
            settle(site)
        runs, sessions = site.runs(), site.sessions()
        fresh = [first, second]
        for who, crowd in zip(self.CRAWLS, (fresh, fresh, cold[:1]), strict=True):
            answers = [answer for guest in crowd for answer in crawl(guest)]
            self.crawled[who] = (sum(answer.is_hit for answer in answers), len(answers))
            failed = [f"{answer.url}: {answer.status}" for answer in answers if answer.status != 200]
            self.check(f"guests who {who} get every page", not failed, failed[:3])
        self.pages = self.crawled["are new"][1] // len(fresh)
        self.runs, self.sessions = site.runs() - runs, site.sessions() - sessions


def settle(site):
    until = time.monotonic() + MAX_SECONDS
    seen, since = site.runs(), time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS and time.monotonic() < until:
        time.sleep(0.1)
        if (runs := site.runs()) != seen:
            seen, since = runs, time.monotonic()


def crawl(guest):
    """The answers for all pages of a site, from link to link as a person goes."""
    links = dict(guest.open("/").links)
    answers = [guest.page.response]
    order = ["to-list", *(f"item-{number}" for number in range(1, 7))]
    order += [link for link in links if link.startswith("to-") and link not in ("to-front", "to-list")]
    for link in order:
        answers.append(guest.open(links[link], "same-origin").response)
        links.update(guest.page.links)
    return answers
