"""A crawler that asks for wrong addresses again and again keeps nobody busy (WordPress).

200 addresses that lead nowhere, one after the other, in three rounds. WordPress makes an answer of its own for each
and forbids to keep it. The first round has the crawler's own requests, the second one the shared requests, each once.
Crawlers get answers that are up to a minute old: in the third round, which begins within that time, PHP needs at most a
tenth of what it needed in the first. Visitors of the front page never wait for PHP meanwhile: beside the first round,
which keeps PHP busy, they are answered from memory.
"""

import collections
import os
import threading
import time

from harness import subject as subjects
from harness import wordpress
from harness.client import Client
from harness.workdir import wait_for

ADDRESSES = 200
CRAWLER = {"User-Agent": "Mozilla/5.0 (compatible; Googlebot/2.1)"}
VISITS_PER_SECOND = 20
MIN_VISITS = 20
MAX_OF_FIRST_ROUND = 0.1
# Each address is made once in each of both.
MAX_OF_SECOND_ROUND = 1.5


def run(options, report):
    with wordpress.served(options, report, "crawler") as (site, subject):
        site.install(subject, wordpress.User("root1", "Ada Admin", "administrator"))
        crawl_and_visit(subject, report)


def crawl_and_visit(subject, report):
    # The installation is a write: until what it leaves behind is over, a page is made for each visitor.
    visitor = Client(subject.address, subject.port)
    wait_for("the front page in memory", lambda: visitor.get("/").is_hit, subjects.START_SECONDS)
    words, is_over = collections.Counter(), threading.Event()
    visits = threading.Thread(target=visit, args=(visitor, words, is_over))
    visits.start()
    try:
        first = crawl(subject)
    finally:
        is_over.set()
        visits.join()
    second, third = crawl(subject), crawl(subject)
    for name, figures in (("first", first), ("second", second), ("third", third)):
        report.note(f"{name} round: {figures}")
    report.note(f"the front page beside the first round: {dict(words)}")
    report.check("each wrong address is told so", {figures["wrong"] for figures in (first, second, third)} == {0})
    compared, share = (figures["php_seconds"] / max(first["php_seconds"], 0.01) for figures in (second, third))
    report.check(f"PHP makes each page once more for comparison ({compared:.3f})", compared <= MAX_OF_SECOND_ROUND)
    report.check(f"PHP needs at most a tenth from then on ({share:.3f})", share <= MAX_OF_FIRST_ROUND)
    waited = sum(count for (is_hit, _), count in words.items() if not is_hit)
    report.check("a visitor does not notice the crawler", words.total() >= MIN_VISITS and not waited, dict(words))


def crawl(subject):
    """One round; what PHP took meanwhile."""
    client = Client(subject.address, subject.port, fields=CRAWLER)
    before = php_seconds(subject.process.pid)
    began = time.monotonic()
    wrong = hits = 0
    for number in range(ADDRESSES):
        response = client.get(f"/no/such/page/{number}/")
        wrong += response.status != 404
        hits += response.is_hit
    return {
        "seconds": round(time.monotonic() - began, 1),
        "php_seconds": round(php_seconds(subject.process.pid) - before, 2),
        "hits": hits,
        "wrong": wrong,
    }


def visit(client, words, is_over):
    """Counts what the cache says of the front page, until it is over."""
    while not is_over.is_set():
        response = client.get("/")
        words[response.is_hit, response.cache_word] += 1
        time.sleep(1 / VISITS_PER_SECOND)


def php_seconds(root):
    """CPU time of all processes of php-fpm below `root`, those that ended included."""
    parents, ticks = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                command, rest = file.read().rsplit(")", 1)
        except OSError:
            continue
        fields = rest.split()
        parents[int(name)] = int(fields[1])
        if "(php-fpm" in command:
            # utime, stime, and those of children that were waited for
            ticks[int(name)] = sum(int(field) for field in fields[11:15])
    def is_below(pid):
        while pid not in (0, 1, root):
            pid = parents.get(pid, 0)
        return pid == root
    return sum(count for pid, count in ticks.items() if is_below(pid)) / os.sysconf("SC_CLK_TCK")
