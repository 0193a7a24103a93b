"""MediaWiki in Chinese under `mayfly serve`: each reader in the script of their place.

The wiki converts its pages for readers by `Accept-Language` and names it in
`Vary`. What a site varies on is known once one of its pages was made: that one is
made without the field, whoever asks; from then on each reader gets what they asked
for, also at a new address, and shares it as soon as it was seen that it is the same
for all: the wiki's pages differ each time, so that it takes a few views. Who is
logged in shares nothing.
"""

import itertools
import threading

from harness import mediawiki
from harness import subject as subjects
from harness.client import Client
from harness.mediawiki import is_personal
from harness.workdir import Workdir

# Served by both schemes, so that it may lead from one to the other.
SETTINGS = """$wgLanguageCode = 'zh';
$wgCanonicalServer = $wgServer;
$wgServer = substr($wgServer, strlen('http:'));
"""
TEXT = "-{zh-cn:MAINLAND; zh-tw:TAIWAN; zh-hk:HONGKONG}-"
# Two browsers each, which say the same in other words.
READERS = {
    "zh-tw": ("zh-TW,zh;q=0.9,en;q=0.8", "zh-tw, zh;q=0.8, en;q=0.5"),
    "zh-cn": ("zh-CN,zh;q=0.9,en;q=0.8", "zh-cn, zh;q=0.8, en;q=0.5"),
    "zh-hk": ("zh-HK,zh;q=0.9,en;q=0.8", "zh-hk, zh;q=0.8, en;q=0.5"),
}
WANTED = {"zh-tw": "TAIWAN", "zh-cn": "MAINLAND", "zh-hk": "HONGKONG"}
ORDERS = list(itertools.permutations(READERS))
READERS_AT_ONCE = 4
# Of each reader, until what differs each time is told from what differs by reader: six or seven here.
MAX_VIEWS = 20
ANALYTICS = {"_ga": "GA1.2.1234.5678", "wiki_popup": "1"}


def run(options, report):
    if not options.subject.startswith("mayfly"):
        report.note("left out: it is about what serve does")
        return
    with Workdir("variants", keep=options.keep) as workdir:
        port = workdir.free_port()
        wiki = mediawiki.Wiki(workdir, port, SETTINGS)
        params = {"MW_CONFIG_FILE": wiki.settings}
        subject = subjects.start(workdir, options, "mediawiki", mediawiki.ROOT, params=params, port=port)
        failed = report.failed
        try:
            editor = Client(subject.address, port, fields={"Accept-Language": READERS["zh-tw"][0]})
            mediawiki.log_in(editor, wiki)
            for number in range(len(ORDERS)):
                mediawiki.edit(editor, f"Order {number}", TEXT)
            mediawiki.edit(editor, "All at once", TEXT)
            readers_in_every_order(report, subject)
            readers_at_once(report, subject)
            mediawiki.prefer(editor, "variant", "zh-tw")
            sessions(report, subject, editor)
            led_to_https(report, subject)
            report.check("variants: the server ran to the end", not (wrong := subject.stop()), wrong)
        finally:
            if report.failed > failed:
                report.note(subject.logs())


def reader(subject, language, number=0, cookies=None):
    fields = {"Accept-Language": READERS[language][number]} if language else {}
    return Client(subject.address, subject.port, cookies, fields)


def readers_in_every_order(report, subject):
    # From here on it is known that the site has languages.
    reader(subject, None).get("/wiki/Main_Page")
    for number, order in enumerate(ORDERS):
        page = f"/wiki/Order_{number}"
        first = reader(subject, order[0]).get(page)
        varies = "accept-language" in (first.field("vary") or "").lower()
        report.check(f"variants: {page} is there and varies on the language", first.status == 200 and varies,
                     describe(first))  # fmt: skip
        is_own = variant(first) == WANTED[order[0]]
        report.check("variants: its first reader reads their own", is_own, f"{variant(first)} {describe(first)}")
        wrong, hits = [], []
        # Two views in a row: both browsers of each reader share it.
        while hits[-2:] != [len(order)] * 2 and len(hits) < MAX_VIEWS:
            view = len(hits)
            hits.append(0)
            for language in order:
                answer = reader(subject, language, view % 2, ANALYTICS if view % 2 else None).get(page)
                hits[-1] += answer.is_hit
                is_early = view == 0 and language != order[0] and answer.is_hit
                if variant(answer) != WANTED[language] or is_early:
                    wrong.append(f"{language}, view {view + 1}: {variant(answer)} {describe(answer)}")
        report.check(f"variants: {', '.join(order)}: each reads their own", not wrong, wrong)
        report.check(f"variants: {', '.join(order)}: and shares it from view {len(hits) - 1} on",
                     len(hits) < MAX_VIEWS, hits)  # fmt: skip


def readers_at_once(report, subject):
    """All meet on a page that was not asked for before."""
    together = threading.Barrier(READERS_AT_ONCE * len(READERS))
    wrong, answered = [], []

    def ask(language, number):
        client = reader(subject, language, number % 2)
        together.wait()
        answer = client.get("/wiki/All_at_once")
        answered.append(answer.status)
        if variant(answer) != WANTED[language]:
            wrong.append(f"{language}: {variant(answer)} {describe(answer)}")

    threads = [
        threading.Thread(target=ask, args=(language, number), daemon=True)
        for number in range(READERS_AT_ONCE)
        for language in READERS
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    is_right = not wrong and answered == [200] * len(threads)
    report.check(f"variants: {len(threads)} readers at once: each reads their own", is_right, wrong)


def sessions(report, subject, editor):
    """Pages of who is logged in say Vary: Cookie as all do, and are for nobody else."""
    wrong = []
    for _ in range(3):
        own = editor.get("/wiki/Order_0")
        if not is_personal(own) or own.is_hit or variant(own) != "TAIWAN":
            wrong.append(f"editor: {variant(own)} {describe(own)}")
        for language in READERS:
            answer = reader(subject, language, cookies=ANALYTICS).get("/wiki/Order_0")
            if is_personal(answer) or not answer.is_hit or variant(answer) != WANTED[language]:
                wrong.append(f"{language}: {variant(answer)} {describe(answer)}")
    report.check("variants: a session has its own pages, and readers go on sharing theirs", not wrong, wrong)


def led_to_https(report, subject):
    """A cookie of who has logged in by https: by http the wiki leads there, and nobody else."""
    page = "/wiki/Order_0"
    led = reader(subject, "zh-tw", cookies={"forceHTTPS": "true"}).get(page)
    is_led = led.status == 302 and (led.field("location") or "").startswith("https://") and not led.is_hit
    report.check("variants: a visitor with forceHTTPS is led to https", is_led, describe(led))
    other = reader(subject, "zh-tw").get(page)
    report.check("variants: and others are not", other.is_hit and variant(other) == "TAIWAN", describe(other))


def variant(answer):
    """Which of the words of TEXT the page shows."""
    return next((word for word in WANTED.values() if word in answer.text), None)


def describe(answer):
    return f"{answer.status} {answer.cache_word} {answer.field('cache-control')} {answer.field('vary')}"
