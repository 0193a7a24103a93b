"""The microcache on a small machine (files/set_ups/microcache.conf), with PHP-FPM.

Pages are shared for a second; who writes sees their own write at once; sessions and crawlers have
copies of their own; a page stays when PHP fails; 150 clients at once get no error, and the log says
what became of each request.
"""

import collections
import re
import shutil
import tempfile
import time

from harness import set_ups
from harness import subject as subjects
from harness.client import Client, cookie_pair
from harness.set_ups import facts, hit, until
from harness.workdir import Workdir

CLIENTS = 150
REQUESTS = 4500
PAGES = 20
PAGE_BYTES = (20_000, 23_000)
CRAWLER = {"User-Agent": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"}


def run(options, report):
    with Workdir("microcache", keep=options.keep) as workdir:
        site = set_ups.Site(workdir, "site.php")
        memory = tempfile.mkdtemp(prefix="mayfly-", dir="/dev/shm")
        shutil.chown(memory, "www-data", "www-data")
        workdir.undo(lambda: shutil.rmtree(memory, ignore_errors=True))
        php = subjects.start_php_fpm(workdir, options.workers)
        subject = set_ups.start(
            workdir, options, "microcache", php=php, root=site.root, data=site.data, memory=memory
        )
        failed = report.failed
        shared_for_a_second(report, subject)
        writers(report, subject)
        sessions(report, subject)
        crawlers(report, subject)
        exempt(report, subject)
        php_fails(report, subject, site)
        seconds = a_crowd(report, subject)
        report.check("microcache: the server ran to the end", not (wrong := subject.stop()), wrong)
        the_log(report, workdir.join("subject", "cache.log"), site, seconds)
        if report.failed > failed:
            report.note(subject.logs())
            report.note(workdir.log_tail("subject/error"))


def visitor(subject, **fields):
    return Client(subject.address, subject.port, fields=fields)


def shared_for_a_second(report, subject):
    first = visitor(subject).get("/page/1")
    is_made = first.cache_word == "MISS" and PAGE_BYTES[0] < len(first.body) < PAGE_BYTES[1]
    report.check("microcache: the first visitor gets a page of 21 KB from PHP", is_made, describe(first))
    shared = hit(visitor(subject), "/page/1")
    says_no = shared.field("cache-control") == "no-cache"
    report.check("microcache: the next one the stored page, whatever its Cache-Control says", says_no, describe(shared))
    # PHP says by its ETag that the page is unchanged.
    asked_again = until(lambda: visitor(subject).get("/page/1").cache_word == "REVALIDATED")
    report.check("microcache: after a second PHP is asked again", asked_again)
    head = visitor(subject).request("HEAD", "/page/1")
    report.check("microcache: HEAD is answered", (head.status, head.body) == (200, b""), describe(head))
    static = visitor(subject).get("/style.css")
    is_file = static.text == set_ups.STYLE and static.field("x-cache") is None
    report.check("microcache: a stylesheet comes from the disk", is_file, describe(static))


def writers(report, subject):
    writer = visitor(subject)
    answer = writer.post("/comment", form={"text": "the first comment"})
    cookies = [cookie_pair(line) for line in answer.all("set-cookie")]
    is_marked = answer.status == 303 and cookies == [("wrote", "1")] and answer.field("x-microcachable") == "0"
    report.check("microcache: who writes gets a cookie for two seconds", is_marked, f"{answer.status} {cookies}")
    own = writer.get("/")
    is_own = own.cache_word == "BYPASS" and facts(own)["comments"] == ["the first comment"]
    report.check("microcache: and sees it at once, past the cache", is_own, describe(own))
    others = until(lambda: facts(visitor(subject).get("/"))["comments"])
    report.check("microcache: others see it when the second is over", others)
    word = visitor(subject).get("/").cache_word
    report.check("microcache: they are answered through the cache", word in ("HIT", "MISS", "EXPIRED", "UPDATING"), word)


def sessions(report, subject):
    people = {}
    for name in ("Anna", "Bert"):
        people[name] = visitor(subject)
        answer = people[name].post("/login", form={"name": name})
        has_session = "PHPSESSID" in people[name].cookies
        report.check(f"microcache: the session's cookie comes through for {name}", has_session, answer.fields)
        # The mark of a writer is over after two seconds, as in a browser.
        people[name].cookies.pop("wrote", None)
    for name, client in people.items():
        page = hit(client, "/page/2")
        is_own = page.cache_word == "HIT" and facts(page)["visitor"] == name
        report.check(f"microcache: {name} gets a stored copy of {name}'s own", is_own, f"{describe(page)} {facts(page)['visitor']}")
    page = hit(visitor(subject), "/page/2")
    report.check("microcache: and nobody else does", facts(page)["visitor"] is None, facts(page)["visitor"])


def crawlers(report, subject):
    first = visitor(subject, **CRAWLER).get("/page/3")
    made = facts(first)["execution"]
    report.check("microcache: a crawler has a page of its own", first.cache_word == "MISS", describe(first))
    before = facts(visitor(subject).get("/page/3"))["execution"]
    until(lambda: facts(visitor(subject).get("/page/3"))["execution"] != before)
    later = visitor(subject, **CRAWLER).get("/page/3")
    is_same = later.cache_word == "HIT" and facts(later)["execution"] == made
    report.check("microcache: which is kept longer than the visitors'", is_same, describe(later))


def exempt(report, subject):
    pages = [visitor(subject).get("/admin/list") for _ in range(2)]
    is_new = len({facts(page)["execution"] for page in pages}) == 2
    words = [page.field("x-cache") for page in pages]
    report.check("microcache: exempt paths never meet the cache", is_new and words == [None, None], words)


def php_fails(report, subject, site):
    hit(visitor(subject), "/page/4")
    site.set("broken")
    words = []
    stale = until(lambda: words.append(visitor(subject).get("/page/4")) or words[-1].cache_word == "STALE")
    statuses = {page.status for page in words}
    report.check("microcache: while PHP fails, the old page is shown", stale and statuses == {200}, statuses)
    site.set("broken", False)
    mended = until(lambda: visitor(subject).get("/page/4").cache_word in ("EXPIRED", "HIT"))
    report.check("microcache: and a new one afterwards", mended)


def a_crowd(report, subject):
    """How many seconds it took."""
    began = time.monotonic()
    answers = set_ups.crowd(subject, (f"/crowd/{number % PAGES}" for number in range(REQUESTS)), CLIENTS)
    set_ups.check_crowd(report, f"microcache: {CLIENTS} clients at once", answers, REQUESTS)
    return time.monotonic() - began


def the_log(report, path, site, seconds):
    words = collections.Counter()
    with open(path, encoding="utf-8") as log:
        for line in log:
            if found := re.search(r'"GET /crowd/\d+ HTTP/1.1" 200 (\S+) ', line):
                words[found.group(1)] += 1
    report.note(f"the crowd in the log: {dict(words)}")
    report.check("microcache: the log has a line for each request of the crowd", words.total() == REQUESTS, words)
    # Those who came while PHP made a page waited for it: theirs are MISS as well.
    made = words["MISS"] + words["EXPIRED"] + words["REVALIDATED"]
    ran = site.executions("/crowd/")
    report.check("microcache: and a MISS, EXPIRED or REVALIDATED for each that PHP was asked for", ran <= made < REQUESTS, f"{made}, {ran} made")
    most = PAGES * (int(seconds) + 2)
    report.check(f"microcache: once for each page and second ({ran} times, at most {most})", 0 < ran <= most)


def describe(answer):
    return f"{answer.status} {answer.cache_word} {len(answer.body)} bytes"
