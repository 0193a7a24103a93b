"""Apache with mod_php (Debian's packages) behind `proxy_pass` with a cache.

The application's Cache-Control decides what is kept and for how long. A crowd
of 200 is answered without a failure, for which Apache makes each page once a
second at most, and does not notice when Apache is gone for five seconds.
"""

import os
import random
import re
import shutil
import threading
import time

from harness import subject as subjects
from harness.apache import Apache
from harness.client import Client
from harness.workdir import Workdir
from lib import load

CLIENTS = 200
REQUESTS = 10_000
PAGES = 20
OUTAGE_SECONDS = 5
# Before and after the outage.
AROUND_SECONDS = 3


def run(options, report):
    with Workdir("apache", keep=options.keep) as workdir:
        root = workdir.mkdir("root")
        shutil.copy(os.path.join(subjects.FILES, "steering.php"), os.path.join(root, "index.php"))
        apache = Apache(workdir, root)
        subject = subjects.start_with(
            workdir, options, "before_apache.conf", upstream=f"{apache.address}:{apache.port}"
        )
        what_the_application_says(report, subject)
        crowd_is_cheap(report, subject, apache)
        outage(report, subject, apache)
        report.check("apache: the server ran to the end", not (wrong := subject.stop()), wrong)
        if report.failed:
            report.note(subject.logs())


def execution(response):
    found = re.search(r"execution ([0-9a-f]{16})", response.text)
    return found.group(1) if found else f"status {response.status}"


def what_the_application_says(report, subject):
    client = Client(subject.address, subject.port)
    for path, is_kept in (("/long/1", True), ("/own", False), ("/never", False), ("/other", False)):
        first, second = (execution(client.get(path)) for _ in range(2))
        word = "kept" if is_kept else "made anew for each visitor"
        report.check(f"apache: {path} is {word}", (first == second) == is_kept, (first, second))
    first = execution(client.get("/page/0"))
    until = time.monotonic() + 30
    while (changed := execution(client.get("/page/0"))) == first and time.monotonic() < until:
        time.sleep(0.1)
    report.check("apache: a page with max-age=1 is made anew after it", changed != first)


def targets(count):
    chance = random.Random(7)
    return (f"/page/{chance.randrange(PAGES)}" for _ in range(count))


def crowd_is_cheap(report, subject, apache):
    before, began = apache.requests(), time.monotonic()
    answers = load.crowd(subject.port, targets(REQUESTS), CLIENTS, address=subject.address)
    seconds = time.monotonic() - began
    report.note(f"{answers.summary()}")
    is_all = answers.count == REQUESTS and not answers.other_than_200()
    report.check(f"apache: {CLIENTS} clients, {REQUESTS} requests, none failed", is_all, answers.summary())
    asked = apache.requests() - before
    most = PAGES * (int(seconds) + 2)
    report.check(f"apache: asked for each page once a second ({asked} times, at most {most})", 0 < asked <= most)


def outage(report, subject, apache):
    answers = load.Answers()
    is_over = threading.Event()

    def until_over():
        for target in targets(10**9):
            if is_over.is_set():
                return
            yield target

    crowd = threading.Thread(
        target=load.crowd, args=(subject.port, until_over(), CLIENTS),
        kwargs={"pause": 0.2, "answers": answers, "address": subject.address}, daemon=True,
    )  # fmt: skip
    crowd.start()
    time.sleep(AROUND_SECONDS)
    apache.kill()
    before = answers.count
    time.sleep(OUTAGE_SECONDS)
    during = answers.count - before
    apache.start()
    time.sleep(AROUND_SECONDS)
    is_over.set()
    crowd.join(load.ANSWER_TIMEOUT_SECONDS)
    report.note(f"{during} answers while Apache was gone; in all {answers.summary()}")
    report.check("apache: the crowd went on asking while it was gone", during > CLIENTS, during)
    report.check("apache: killed for five seconds, no answer but 200", not answers.other_than_200(), answers.summary())
    anew = execution(Client(subject.address, subject.port).get("/never"))
    report.check("apache: what is never kept comes again afterwards", len(anew) == 16, anew)
