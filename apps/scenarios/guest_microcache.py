"""The microcache that articles print, beside `serve`: what becomes of carts, forms and sessions of guests (files/guests).

With nginx, pages are shared for a second whatever the application says of them (`fastcgi_ignore_headers Cache-Control Expires Set-Cookie`). The
same guests do the same with both, and without a cache. The table is for the docs. Run when it is named.
"""

import copy

from harness import guests
from harness import subject as subjects
from harness.guest_outcomes import CARTS, FORGED, Outcomes
from harness.guests import Guest, Ledger
from harness.workdir import Workdir
from scenarios.guest_sessions import crawl

SHOPS = ("opencart", "prestashop", "yii", "zencart")
FORUMS = ("e107", "mybb", "smf", "joomla")
ZONE = "fastcgi_cache_path {}/pages levels=1:2 keys_zone=microcache:5m max_size=64m inactive=1h;"
CACHE = """fastcgi_cache microcache;
            fastcgi_cache_key $scheme$request_method$host$request_uri;
            fastcgi_cache_valid 200 1s;
            fastcgi_cache_use_stale updating;
            fastcgi_cache_lock on;
            fastcgi_ignore_headers Cache-Control Expires Set-Cookie;"""
SERVERS = ("no cache", "microcache", "mayfly")
# Who came before: what they got is in memory for the next.
BEFORE = 3
# Longer than a page is in memory: what is shared then are the sessions, by their cookies.
PERSONS_PACE_SECONDS = 1.2
AT_A_PERSONS_PACE = ("opencart", "zencart")


def run(options, report):
    if options.subject != "mayfly":
        report.note("left out: it starts its servers itself")
        return
    report.note(f"| application | server | forms and links that fail | carts of {CARTS} that are wrong | sessions and tokens seen by two | forged writes accepted besides |")
    report.note("| --- | --- | --- | --- | --- | --- |")
    totals = {}
    for name in SHOPS + FORUMS:
        compare(options, report, totals, name, FORGED)
    Guest.pace = PERSONS_PACE_SECONDS
    for name in AT_A_PERSONS_PACE:
        compare(options, report, totals, name, {}, ", at a person's pace")
    for server, figures in totals.items():
        report.note(f"| all | {server} | " + " | ".join(map(str, figures)) + " |")
    # The checks of this folder can fail.
    report.check("microcache: forms fail, carts are mixed, sessions are shared", all(totals["microcache"][:3]), totals["microcache"])


def compare(options, report, totals, name, variants, how=""):
    alone = None
    for server in SERVERS:
        with Workdir(f"microcache-{name}", keep=options.keep) as workdir:
            outcomes, leaks = of_server(workdir, options, name, server, variants)
        alone = alone or outcomes
        carts = [len(found) for action, (found, _) in outcomes.actions.items() if "carts" in action]
        figures = [len(outcomes.failed()), max(carts, default=0), len(leaks), len(outcomes.accepted - alone.accepted)]
        of_all = totals.setdefault(f"{server}{how}", [0, 0, 0, 0])
        of_all[:] = [total + figure for total, figure in zip(of_all, figures, strict=True)]
        row = (f"{name}{how}", server, f"{figures[0]} of {len(outcomes.actions)}", figures[1] if carts else "-", figures[2], figures[3] if variants else "-")
        report.note("| " + " | ".join(map(str, row)) + " |")
        if server != "microcache":
            report.check(f"{name}, {server}{how}: nothing fails, nothing is mixed", not any(figures), [outcomes.failed(), leaks[:2]])


def of_server(workdir, options, name, server, variants):
    site = guests.Site(workdir, "sites", name)
    if server == "mayfly":
        options = copy.copy(options)
        options.ttl = 1
        subject = subjects.start(workdir, options, "guests", site.root)
    elif server == "microcache":
        subject = guests.start_nginx(workdir, options, site, ZONE.format(workdir.mkdir("memory")), CACHE)
    else:
        subject = guests.start_nginx(workdir, options, site)
    ledger = Ledger()
    for number in range(1 if Guest.pace else BEFORE):
        crawl(Guest(subject, number, ledger))
    outcomes = Outcomes(subject, site, ledger, variants)
    leaks = ledger.leaks(site)
    subject.stop()
    return outcomes, leaks
