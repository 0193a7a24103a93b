"""A crawler that asks for wrong addresses again and again keeps nobody busy (WordPress).

2,000 addresses that lead nowhere, fifty a second, round after round. WordPress makes an
answer of its own for each and forbids to keep it. After the first round PHP needs at most a
tenth of what it needed then, and a visitor of the front page beside the crawler is answered
as fast as without it.
"""

import os
import threading
import time

from harness import subject as subjects
from harness import wordpress
from harness.client import Client
from harness.workdir import Workdir

ADDRESSES = 2000
PER_SECOND = 50
VISITS_PER_SECOND = 20
VISIT_SECONDS = 20
MOST_OF_FIRST_ROUND = 0.1
# What the clock of a busy machine does to one answer in a hundred.
NOISE_MS = 5.0


def run(options, report):
    with Workdir("wordpress", keep=options.keep) as workdir:
        site = wordpress.Site(workdir)
        subject = subjects.start(workdir, options, "wordpress", wordpress.ROOT)
        try:
            site.install(subject, wordpress.User("root1", "Ada Admin", "administrator"))
            crawl_and_visit(subject, report)
        except Exception:
            report.note(subject.logs())
            raise
        wrong = subject.stop()
        report.check("the server ran to the end and left no process behind", not wrong, wrong)


def crawl_and_visit(subject, report):
    # The installation is a write: what it leaves behind is over.
    time.sleep(2)
    alone = visit(subject)
    first = crawl(subject)
    beside = []
    visitor = threading.Thread(target=lambda: beside.extend(visit(subject)))
    visitor.start()
    second = crawl(subject)
    visitor.join()
    for name, figures in (("first", first), ("second", second)):
        report.note(f"{name} round: {figures}")
    quiet, busy = percentile(alone, 99), percentile(beside, 99)
    report.note(f"front page, 99th percentile: {quiet:.1f} ms alone, {busy:.1f} ms beside the crawler")
    report.check("each wrong address is told so", {first["wrong"], second["wrong"]} == {0})
    share = second["php_seconds"] / max(first["php_seconds"], 0.01)
    report.check(f"PHP needs at most a tenth after the first round ({share:.3f})",
                 share <= MOST_OF_FIRST_ROUND)
    report.check("a visitor does not notice the crawler", busy <= 2 * quiet + NOISE_MS, f"{busy:.1f} ms")


def crawl(subject):
    """One round; what PHP took meanwhile."""
    client = Client(subject.address, subject.port)
    before = php_seconds(subject.process.pid)
    began = time.monotonic()
    wrong = hits = 0
    for number in range(ADDRESSES):
        time.sleep(max(0, began + number / PER_SECOND - time.monotonic()))
        response = client.get(f"/no/such/page/{number}/")
        wrong += response.status != 404
        hits += response.is_hit
    return {
        "seconds": round(time.monotonic() - began, 1),
        "php_seconds": round(php_seconds(subject.process.pid) - before, 2),
        "hits": hits,
        "wrong": wrong,
    }


def visit(subject):
    """Milliseconds that the front page took, each time."""
    client = Client(subject.address, subject.port)
    took = []
    until = time.monotonic() + VISIT_SECONDS
    while time.monotonic() < until:
        response = client.get("/")
        took.append((response.ended - response.began) * 1000)
        time.sleep(1 / VISITS_PER_SECOND)
    return took


def percentile(values, percent):
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


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
