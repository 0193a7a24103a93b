"""How many of an ordinary site's views are answered from memory (WordPress).

Browsers and crawlers of many makes with cookies of analytics, consent and of
plug-ins that nobody knows, links from newsletters, a few who are logged in or
whose browser remembers that they have commented. The same views each time, in
the same order; how fast they come is left to the machine.
"""

import collections
import copy
import math
import random
import threading
import time

from harness import subject as subjects
from harness import wordpress
from harness.client import Client
from harness.workdir import Workdir

SEED = 20
# Nothing ends while they come: what is not shared is what visitors bring along.
LIFETIME_SECONDS = 3600
VISITORS = 160
VIEWS = 4000
THREADS = 4
POSTS = 10
# Of the views by those who are neither logged in nor remembered. With requests
# forwarded as they came, and one page for desktop and mobile browsers, it was
# 99.2 %. That nothing of what visitors send matters is seen on each page first:
# 95.6 to 97.0 % of these views, which all come to an empty cache, in an order that
# the machine chooses.
MIN_HIT_SHARE = 0.95
# So long after a page was compared, one visitor's answer is compared again, then after twice as long, and so on: how
# many views that is depends on how fast the machine is, so these are not held against the share.
FIRST_AUDIT_SECONDS = 10
DESKTOP = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:{0}.0) Gecko/20100101 Firefox/{0}.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 Safari/537.36",
)
MOBILE = (
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_{} like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.6 Mobile/15E148 Safari/604.1",
)
CRAWLERS = (
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
)
KINDS = {"desktop": 0.55, "mobile": 0.37, "crawler": 0.08}
LOGGED_IN_SHARE = 0.02
REMEMBERED_SHARE = 0.02
LINKED_SHARE = 0.25
LANGUAGES = ("de-DE,de;q=0.9,en;q=0.8", "en-US,en;q=0.9", "fr-FR,fr;q=0.9", "en-GB,en;q=0.5")


class Browser:
    def __init__(self, chance, subject):
        [self.kind] = chance.choices(list(KINDS), KINDS.values())
        agents = {"desktop": DESKTOP, "mobile": MOBILE, "crawler": CRAWLERS}[self.kind]
        fields = {
            "User-Agent": chance.choice(agents).format(chance.randint(100, 140)),
            "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
        }
        cookies = {}
        self.is_logged_in = False
        if self.kind != "crawler":
            fields["Accept-Language"] = chance.choice(LANGUAGES)
            cookies = cookies_of_browser(chance)
            self.is_logged_in = chance.random() < LOGGED_IN_SHARE
        self.is_remembered = any(name.startswith("comment_author_") for name in cookies)
        # Visitors are of many networks.
        source = f"127.{chance.randint(10, 200)}.{chance.randint(0, 255)}.9"
        self.client = Client(subject.address, subject.port, cookies, fields, source)

    @property
    def is_anonymous(self):
        return not (self.is_logged_in or self.is_remembered)


def cookies_of_browser(chance):
    cookies = {
        "_ga": f"GA1.1.{chance.getrandbits(31)}.1731000000",
        "_ga_8XK2L1": f"GS1.1.{chance.getrandbits(31)}.3.1",
        "_fbp": f"fb.1.{chance.getrandbits(40)}.{chance.getrandbits(31)}",
    }
    if chance.random() < 0.5:
        cookies["cookieyes-consent"] = f"consentid:{chance.getrandbits(60):x},consent:yes"
    if chance.random() < 0.2:
        cookies["popup_seen"] = str(chance.getrandbits(20))
    if chance.random() < REMEMBERED_SHARE:
        cookies["comment_author_0123456789abcdef"] = "Cora"
    return cookies


def run(options, report):
    if not options.subject.startswith("mayfly"):
        report.note("left out: nginx has other rules")
        return
    options = copy.copy(options)
    options.ttl = LIFETIME_SECONDS
    with Workdir("hit-ratio", keep=options.keep) as workdir:
        site = wordpress.Site(workdir)
        subject = subjects.start(workdir, options, "wordpress", wordpress.ROOT)
        admin = wordpress.User("root1", "Ada Admin", "administrator")
        site.install(subject, admin)
        slugs = [f"post-{number}" for number in range(POSTS)]
        site.seed([admin], [
            {"title": slug, "slug": slug, "author": "root1", "content": "<p>A post.</p>" * 20} for slug in slugs
        ])  # fmt: skip
        chance = random.Random(SEED)
        browsers = [Browser(chance, subject) for _ in range(VISITORS)]
        for browser in browsers:
            if browser.is_logged_in:
                wordpress.log_in(browser.client, admin)
        views = [(chance.choice(browsers), target(chance, slugs)) for _ in range(VIEWS)]
        began = time.monotonic()
        counts, wrong = play(views)
        judge(report, counts, wrong, audits(time.monotonic() - began))
        report.check("hit ratio: the server ran to the end", not (wrong := subject.stop()), wrong)


def target(chance, slugs):
    """An address; of the posts, the newest most often. Links carry where they were found."""
    [slug] = chance.choices(slugs, [1 / rank for rank in range(1, len(slugs) + 1)])
    [address] = chance.choices(["/", f"/{slug}/", "/feed/", "/author/root1/"], [0.3, 0.6, 0.04, 0.06])
    if chance.random() >= LINKED_SHARE:
        return address
    campaign = chance.getrandbits(32)
    return address + chance.choice((
        f"?utm_source=newsletter&utm_medium=email&utm_campaign={campaign}", f"?fbclid=IwAR{campaign:x}",
        f"?gclid={campaign:x}",
    ))  # fmt: skip


def play(views):
    """All views, by a few threads in turns; what the cache said of each, by who asked."""
    counts = collections.Counter()
    wrong = []
    lock = threading.Lock()

    def part(first):
        for browser, address in views[first::THREADS]:
            page = browser.client.get(address)
            with lock:
                counts[(browser.kind, browser.is_anonymous, page.is_hit)] += 1
                if page.status != 200:
                    wrong.append(f"{address}: {page.status}")

    threads = [threading.Thread(target=part, args=(first,), daemon=True) for first in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return counts, wrong


def audits(seconds):
    """At most so many views of all pages are answered by PHP to compare a page again in so many seconds."""
    of_page = int(math.log2(seconds / FIRST_AUDIT_SECONDS + 1))
    return of_page * (POSTS + 3)


def judge(report, counts, wrong, audits):
    def share(is_counted):
        counted = {key: number for key, number in counts.items() if is_counted(*key)}
        hits = sum(number for (_, _, is_hit), number in counted.items() if is_hit)
        return hits / max(1, sum(counted.values()))

    report.check("hit ratio: every view was answered", not wrong and counts.total() == VIEWS, wrong[:4])
    for kind in KINDS:
        anonymous = share(lambda of, is_anonymous, _, kind=kind: of == kind and is_anonymous)
        report.note(f"{kind}: {anonymous:.2%} from memory")
    report.note(f"with those who have pages of their own: {share(lambda *_: True):.2%}")
    anonymous = share(lambda _, is_anonymous, __: is_anonymous)
    views = sum(number for (_, is_anonymous, _), number in counts.items() if is_anonymous)
    report.check(
        f"hit ratio: {anonymous:.2%} of anonymous views from memory, at least {MIN_HIT_SHARE:.1%} but for {audits} audits",
        anonymous + audits / views >= MIN_HIT_SHARE, f"{anonymous:.2%}",
    )  # fmt: skip
    personal = {is_hit: 0 for is_hit in (True, False)}
    for (_, is_anonymous, is_hit), number in counts.items():
        personal[is_hit] += 0 if is_anonymous else number
    report.check(
        "hit ratio: nobody with a page of their own is answered from memory",
        personal[False] > 0 and personal[True] == 0, personal,
    )  # fmt: skip
