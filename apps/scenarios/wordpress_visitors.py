"""WordPress pages that differ by kind of visitor: each kind has its own, and shares it.

`wp_is_mobile()` makes two pages of one address, a language plug-in's cookie as
many as there are languages. Visitors of all kinds ask in every order, and all
at once; what comes second is answered from memory.
"""

import copy
import itertools
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
ANALYTICS = {"_ga": "GA1.2.1234.5678", "_fbp": "fb.1.1.1", "experiment": "B"}
BURSTS = 3
BROWSERS_OF_A_BURST = 4


def run(options, report):
    if not options.subject.startswith("mayfly"):
        report.note("left out: classes of visitors are Mayfly's")
        return
    options = copy.copy(options)
    options.ttl = LIFETIME_SECONDS
    with Workdir("visitors", keep=options.keep) as workdir:
        site = wordpress.Site(workdir, plugins=("visitor.php",))
        subject = subjects.start(workdir, options, "wordpress", wordpress.ROOT)
        admin = wordpress.User("root1", "Ada Admin", "administrator")
        failed = report.failed
        try:
            site.install(subject, admin)
            posts = [{"title": "First", "slug": "first", "author": "root1", "content": "<p>The first post.</p>"}]
            site.seed([admin], posts)
            classes_in_every_order(report, subject)
            everybody_at_once(report, subject)
            unheard_of_fields(report, subject)
            logged_in(report, subject, admin)
            languages_in_every_order(report, subject)
            language_switch(report, subject)
            report.check("visitors: the server ran to the end", not (wrong := subject.stop()), wrong)
        finally:
            if report.failed > failed:
                report.note(subject.logs())


def visitor(subject, kind="desktop", number=0, cookies=None, **fields):
    return Client(subject.address, subject.port, cookies, fields={"User-Agent": AGENTS[kind][number], **fields})


def classes_in_every_order(report, subject):
    for number, order in enumerate(itertools.permutations(AGENTS)):
        wrong = []
        for view in range(2):
            for kind in order:
                page = visitor(subject, kind, view).get(f"/first/?order={number}")
                if problem := wrong_page(page, kind, is_hit=view == 1):
                    wrong.append(f"{kind}, view {view + 1}: {problem}")
        report.check(f"visitors: {', '.join(order)}: each has its own page, and the second a hit", not wrong, wrong)


def wrong_page(page, kind, is_hit=None):
    """What is wrong with a page for a visitor of this class; best nothing."""
    told = seen(page)
    if told.get("page") != PAGE_OF_CLASS[kind]:
        return f"{told.get('page')} for {kind} ({page.status})"
    if any(told["agent"] == agent for agents in AGENTS.values() for agent in agents):
        return f"made for {told['agent']}"
    if is_hit is not None and page.is_hit != is_hit:
        return f"{page.cache_word}, wanted a {'hit' if is_hit else 'miss'}"
    return None


def everybody_at_once(report, subject):
    """Visitors of all classes meet on an address that nobody has asked for."""
    wrong = []
    for burst in range(BURSTS):
        together = threading.Barrier(BROWSERS_OF_A_BURST * len(AGENTS))

        def ask(kind, number, target=f"/?burst={burst}", together=together):
            client = visitor(subject, kind, number % 2)
            together.wait()
            if problem := wrong_page(client.get(target), kind):
                wrong.append(problem)

        threads = [
            threading.Thread(target=ask, args=(kind, number), daemon=True)
            for number in range(BROWSERS_OF_A_BURST)
            for kind in AGENTS
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    report.check(f"visitors: {BURSTS} times all classes at once: each has its own page", not wrong, wrong[:4])


def unheard_of_fields(report, subject):
    """What newer releases of WordPress take for a mobile browser, from a desktop's."""
    hints = {"Sec-CH-UA-Mobile": "?1", "X-Invented-Tomorrow": "1", "Accept-Language": "de"}
    wrong = [
        problem
        for fields in (hints, {})
        if (problem := wrong_page(visitor(subject, "desktop", **fields).get("/first/?hints"), "desktop"))
    ]
    report.check("visitors: a hint that is not in the key makes nobody's page", not wrong, wrong)
    page = visitor(subject, cookies=ANALYTICS).get("/first/?hints")
    has_own = page.is_hit and seen(page)["cookies"] == []
    report.check("visitors: analytics and unknown cookies share the page", has_own, page.cache_word)


def logged_in(report, subject, admin):
    """A page of one's own is made of one's own request."""
    client = visitor(subject, "mobile", 1)
    wordpress.log_in(client, admin)
    told = seen(client.get("/first/?order=0"))
    is_own = told.get("agent") == AGENTS["mobile"][1] and told.get("page") == "MOBILE"
    report.check("visitors: a logged-in browser is known by its own name", is_own, told)


def languages_in_every_order(report, subject):
    for number, order in enumerate(itertools.permutations(COOKIES)):
        wrong = []
        for view in range(2):
            for name in order:
                cookies = {**ANALYTICS, **COOKIES[name]} if view else COOKIES[name]
                page = visitor(subject, number=view, cookies=cookies).get(f"/first/?language={number}")
                told = seen(page)
                if told.get("greeting") != GREETINGS[name]:
                    wrong.append(f"{name}, view {view + 1}: {told}")
                elif page.is_hit != (view == 1):
                    wrong.append(f"{name}, view {view + 1}: {page.cache_word}")
        report.check(f"visitors: {', '.join(order)}: each reads their language, and the second a hit", not wrong, wrong)


def language_switch(report, subject):
    """The address sets the cookie, for each who uses it; from then on the cookie counts."""
    page = "/first/?language=switch"
    visitor(subject).get(page)
    for number in range(2):
        client = visitor(subject, number=number)
        switched = client.get(f"{page}&lang=de")
        told = [cookie_pair(line) for line in switched.all("set-cookie")]
        is_own = told == [("pll_language", "de")] and not switched.is_hit
        report.check(f"visitors: switch {number + 1} gets a cookie of its own", is_own, f"{told} {switched.cache_word}")
        after = client.get(page)
        is_german = seen(after).get("greeting") == "Willkommen" and after.is_hit == (number == 1)
        report.check(f"visitors: after switch {number + 1} pages are German", is_german, after.cache_word)
    again = visitor(subject).get(page)
    is_english = seen(again).get("greeting") == "Welcome" and again.is_hit
    report.check("visitors: and others read what they did before", is_english, again.cache_word)
