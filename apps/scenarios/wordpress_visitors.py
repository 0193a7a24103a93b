"""WordPress pages that differ by kind of visitor: each kind has its own, and shares it.

`wp_is_mobile()` makes two pages of one address, a language plug-in's cookie as
many as there are languages. Visitors of all kinds ask in every order, and all
at once. The first of a kind has an own answer, the second one's is compared with
the shared request's, and what comes third is answered from memory. Each page says
what WordPress made of the visitor; a file says what WordPress was told (files/visitor.php).
"""

import collections
import copy
import itertools
import json
import threading

from harness import subject as subjects
from harness import wordpress
from harness.client import Client, cookie_pair
from harness.wordpress import seen
from harness.workdir import Workdir

LIFETIME_SECONDS = 60
# Two browsers of each class: they share what they do not see of each other.
AGENTS = {
    "desktop": (
        "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
    ),
    "mobile": (
        "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.6 Mobile/15E148 Safari/604.1",
    ),
    "crawler": (
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    ),
}  # fmt: skip
PAGE_OF_CLASS = {"desktop": "DESKTOP", "mobile": "MOBILE", "crawler": "DESKTOP"}
COOKIES = {
    "German": {"pll_language": "de"},
    "English": {"pll_language": "en"},
    "without a choice": {},
}
GREETINGS = {"German": "Willkommen", "English": "Welcome", "without a choice": "Welcome"}
ANALYTICS = {"_ga": "GA1.2.1234.5678", "_fbp": "fb.1.1.1"}
EXPERIMENT = {**ANALYTICS, "experiment": "B"}
# From where the shared request comes: no visitor has such an address (RFC 5737, RFC 2544).
NOBODY = ("192.0.2.", "198.51.100.", "203.0.113.", "198.18.", "198.19.")
BURSTS = 3
BROWSERS_OF_A_BURST = 8
# For each class: a browser's own request of each make, and the shared one.
RUNS_OF_A_BURST = 3 * len(AGENTS)


def run(options, report):
    if not options.subject.startswith("mayfly"):
        report.note("left out: classes of visitors are Mayfly's")
        return
    options = copy.copy(options)
    options.ttl = LIFETIME_SECONDS
    with Workdir("visitors", keep=options.keep) as workdir:
        site = wordpress.Site(workdir, plugins=("visitor.php",))
        workdir.mkdir("mu-plugins", "runs")
        runs = Runs(workdir.join("mu-plugins", "runs", "pages"))
        subject = subjects.start(workdir, options, "wordpress", wordpress.ROOT)
        admin = wordpress.User("root1", "Ada Admin", "administrator")
        failed = report.failed
        try:
            site.install(subject, admin)
            posts = [{"title": "First", "slug": "first", "author": "root1", "content": "<p>The first post.</p>"}]
            site.seed([admin], posts)
            classes_in_every_order(report, subject, runs)
            everybody_at_once(report, subject, runs)
            unheard_of_fields(report, subject)
            unknown_cookies(report, subject, runs)
            logged_in(report, subject, admin, runs)
            languages_in_every_order(report, subject, runs)
            language_switch(report, subject)
            report.check("visitors: the server ran to the end", not (wrong := subject.stop()), wrong)
        finally:
            if report.failed > failed:
                report.note(subject.logs())


def visitor(subject, kind="desktop", number=0, cookies=None, **fields):
    return Client(subject.address, subject.port, cookies, fields={"User-Agent": AGENTS[kind][number], **fields})


class Runs:
    """What WordPress was told, for each page that it made."""

    def __init__(self, path):
        self._path = path

    def of(self, target):
        with open(self._path, encoding="utf-8") as file:
            return [run for run in map(json.loads, file) if run["target"] == target]


def wrong_runs(runs, most=None, cookies=()):
    """What is wrong with what WordPress was told; best nothing.

    A shared request is nobody's, and has none but these cookies; a visitor's own has what the visitor sent.
    """
    own_agents = {agent for agents in AGENTS.values() for agent in agents}
    shared = [run for run in runs if run["address"].startswith(NOBODY)]
    own = [run for run in runs if not run["address"].startswith(NOBODY)]
    wrong = [f"a shared request told {run}" for run in shared
             if run["agent"] in own_agents or set(run["cookies"]) - set(cookies)]  # fmt: skip
    wrong += [f"a visitor's own request told {run}" for run in own if run["agent"] not in own_agents]
    if not shared:
        wrong.append("no request is shared")
    if most is not None and len(runs) > most:
        made = collections.Counter((run["address"], run["agent"], *run["cookies"]) for run in runs)
        wrong.append(f"{len(runs)} runs, at most {most}: {made}")
    return wrong


def classes_in_every_order(report, subject, runs):
    for number, order in enumerate(itertools.permutations(AGENTS)):
        target = f"/first/?order={number}"
        wrong = []
        for view in range(4):
            for kind in order:
                page = visitor(subject, kind, view % 2).get(target)
                if problem := wrong_page(page, kind, is_hit=view >= 2):
                    wrong.append(f"{kind}, view {view + 1}: {problem}")
        report.check(f"visitors: {', '.join(order)}: each has its own page, and the third a hit", not wrong, wrong)
        wrong = wrong_runs(runs.of(target), most=3 * len(order))
        report.check(f"visitors: {', '.join(order)}: each visit is one run, and one is shared", not wrong, wrong)


def wrong_page(page, kind, is_hit=None):
    """What is wrong with a page for a visitor of this class; best nothing."""
    told = seen(page)
    if told.get("page") != PAGE_OF_CLASS[kind]:
        return f"{told.get('page')} for {kind} ({page.status})"
    if is_hit is not None and page.is_hit != is_hit:
        return f"{page.cache_word}, wanted a {'hit' if is_hit else 'miss'}"
    return None


def everybody_at_once(report, subject, runs):
    """Visitors of all classes meet on an address that nobody has asked for. Where PHP is slow, who has waited for others'
    answers until the lock timeout has a run of their own, and the server says so."""
    wrong, told_wrong, late = [], [], []
    for burst in range(BURSTS):
        together = threading.Barrier(BROWSERS_OF_A_BURST * len(AGENTS))
        target = f"/?burst={burst}"

        def ask(kind, number, target=target, together=together):
            client = visitor(subject, kind, number % 2)
            together.wait()
            page = client.get(target)
            if problem := wrong_page(page, kind):
                wrong.append(problem)
            if "detail=lock-timeout" in (page.field("cache-status") or ""):
                late.append(target)

        threads = [
            threading.Thread(target=ask, args=(kind, number), daemon=True)
            for number in range(BROWSERS_OF_A_BURST)
            for kind in AGENTS
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        told_wrong += wrong_runs(runs.of(target), most=RUNS_OF_A_BURST + late.count(target))
    report.check(f"visitors: {BURSTS} times all classes at once: each has its own page", not wrong, wrong[:4])
    report.check(f"visitors: {BURSTS} times all classes at once: most share a run", not told_wrong, told_wrong[:4])


def share(subject, target):
    """Has a desktop browser ask for a page until it is shared; gives the shared one."""
    return [visitor(subject).get(target) for _ in range(3)][-1]


def unheard_of_fields(report, subject):
    """What newer releases of WordPress take for a mobile browser, from a desktop's."""
    target = "/first/?hints"
    share(subject, target)
    for name, fields in {
        "a hint of the browser": {"Sec-CH-UA-Mobile": "?1"},
        "a field that nobody knows": {"X-Invented-Tomorrow": "1"},
        "all of it": {"Sec-CH-UA-Mobile": "?1", "X-Invented-Tomorrow": "1", "Accept-Language": "de"},
    }.items():
        own = visitor(subject, **fields).get(target)
        report.check(f"visitors: {name} is not answered from memory", own.status == 200 and not own.is_hit, own.cache_word)
        wrong = wrong_page(visitor(subject).get(target), "desktop", is_hit=True)
        report.check(f"visitors: {name} makes nobody's page", not wrong, wrong)


def unknown_cookies(report, subject, runs):
    """Those of statistics do not count; others are compared once."""
    target = "/first/?cookies"
    shared = share(subject, target)
    page = visitor(subject, cookies=ANALYTICS).get(target)
    report.check("visitors: analytics share the page", page.is_hit and page.body == shared.body, page.cache_word)
    pages = [visitor(subject, cookies=EXPERIMENT).get(target) for _ in range(2)]
    words = [page.cache_word for page in pages]
    is_shared = [page.is_hit for page in pages] == [False, True] and pages[1].body == shared.body
    report.check("visitors: an unknown cookie is compared once, and then shares the page", is_shared, words)
    told = [run["cookies"] for run in runs.of(target)]
    report.check("visitors: and WordPress is told of it by its visitor's own request alone",
                 sum("experiment" in cookies for cookies in told) == 1, told)  # fmt: skip
    wrong = wrong_runs(runs.of(target), most=4)
    report.check("visitors: cookies are not in the shared request", not wrong, wrong)


def logged_in(report, subject, admin, runs):
    """A page of one's own is made of one's own request."""
    client = visitor(subject, "mobile", 1)
    wordpress.log_in(client, admin)
    before = len(runs.of("/first/?order=0"))
    told = seen(client.get("/first/?order=0"))
    [run] = runs.of("/first/?order=0")[before:]
    is_own = run["agent"] == AGENTS["mobile"][1] and told.get("page") == "MOBILE"
    report.check("visitors: a logged-in browser is known by its own name", is_own, (told, run))


def languages_in_every_order(report, subject, runs):
    for number, order in enumerate(itertools.permutations(COOKIES)):
        target = f"/first/?language={number}"
        wrong = []
        for view in range(4):
            for name in order:
                cookies = {**ANALYTICS, **COOKIES[name]} if view else COOKIES[name]
                page = visitor(subject, number=view % 2, cookies=cookies).get(target)
                told = seen(page)
                if told.get("greeting") != GREETINGS[name]:
                    wrong.append(f"{name}, view {view + 1}: {told}")
                elif page.is_hit != (view >= 2):
                    wrong.append(f"{name}, view {view + 1}: {page.cache_word}")
        wrong += wrong_runs(runs.of(target), most=3 * len(order), cookies=("pll_language",))
        report.check(f"visitors: {', '.join(order)}: each reads their language, and the third a hit", not wrong, wrong)


def language_switch(report, subject):
    """The address sets the cookie, for each who uses it; from then on the cookie counts."""
    page = "/first/?language=switch"
    share(subject, page)
    for number in range(3):
        client = visitor(subject)
        switched = client.get(f"{page}&lang=de")
        told = [cookie_pair(line) for line in switched.all("set-cookie")]
        is_own = told == [("pll_language", "de")] and not switched.is_hit
        report.check(f"visitors: switch {number + 1} gets a cookie of its own", is_own, f"{told} {switched.cache_word}")
        after = client.get(page)
        is_german = seen(after).get("greeting") == "Willkommen" and after.is_hit == (number == 2)
        report.check(f"visitors: after switch {number + 1} pages are German", is_german, after.cache_word)
    again = visitor(subject).get(page)
    is_english = seen(again).get("greeting") == "Welcome" and again.is_hit
    report.check("visitors: and others read what they did before", is_english, again.cache_word)
