"""A crowd on WordPress's home page, while an editor changes a post each second.

Three servers one after the other, each with a site of its own: Mayfly that learns what pages are made of, without
another lifetime than that; Mayfly with its lifetime of a second; nginx with the same. With the first, each change is seen by each
request that begins after WordPress has saved it. The three are compared: how often PHP made the page, how long
readers waited, and how old a page was at most.
"""

import bisect
import collections
import copy
import re
import threading
import time

from harness import learned, wordpress
from harness import subject as subjects
from harness.client import Client
from harness.workdir import Workdir
from scenarios.learned_wordpress import door

READERS = 32
WORD = "0123456789abcdef0123456789abcdef"
EVERY_SECONDS = 1.0
MIN_CHANGES = 10
# The statements of a change come one after the other: a run that one of them overtakes is followed by another.
MAX_RUNS_FOR_CHANGE = 4
KEPT_SECONDS = 5


class Crowd:
    """What readers and editor saw of one server."""

    def __init__(self, subject):
        self.subject = subject
        self.is_over = threading.Event()
        self.lock = threading.Lock()
        # Times at which WordPress had saved each version, version by version.
        self.saved = []
        self.answers, self.wrong = [], collections.Counter()

    def read(self):
        client, answers, wrong = Client(self.subject.address, self.subject.port), [], collections.Counter()
        while not self.is_over.is_set():
            try:
                answer = client.get("/")
            except OSError as error:
                wrong[type(error).__name__] += 1
                continue
            found = re.search(r"Crowd version (\d+)\.", answer.text)
            if answer.status != 200 or not found:
                wrong[answer.status] += 1
                continue
            answers.append((answer.began, answer.ended, int(found[1]), answer.field("x-run")))
        with self.lock:
            self.answers += answers
            self.wrong += wrong

    def edit(self, evaluate, post, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            began = time.monotonic()
            save(evaluate, post, len(self.saved))
            self.saved.append(time.monotonic())
            time.sleep(max(0, EVERY_SECONDS - (time.monotonic() - began)))

    def run(self, evaluate, post, seconds):
        save(evaluate, post, 0)
        self.saved.append(time.monotonic())
        threads = [threading.Thread(target=self.read) for _ in range(READERS)]
        for thread in threads:
            thread.start()
        try:
            self.edit(evaluate, post, seconds)
        finally:
            self.is_over.set()
            for thread in threads:
                thread.join()

    def ages(self):
        """Of each answer: for how long another version had been saved when it was asked for, in seconds."""
        ages = []
        for began, _, version, _ in self.answers:
            at = version + 1
            ages.append(max(0.0, began - self.saved[at]) if at < len(self.saved) else 0.0)
        return sorted(ages)

    def waits(self):
        return sorted(ended - began for began, ended, *_ in self.answers)

    def runs(self):
        return len({run for *_, run in self.answers})

    def old(self):
        return [(version, bisect.bisect_right(self.saved, began) - 1) for began, _, version, _ in self.answers
                if version < bisect.bisect_right(self.saved, began) - 1]  # fmt: skip

    def describe(self):
        waits, ages = self.waits(), self.ages()
        return (
            f"{len(self.saved) - 1} changes, {len(waits)} answers: PHP made {self.runs()} of them, "
            f"99 % within {1000 * at(waits, 0.99):.1f} ms, all within {1000 * waits[-1]:.0f} ms; "
            f"{len(self.old())} older than the last change, by up to {1000 * ages[-1]:.0f} ms; not answered: {dict(self.wrong)}"
        )


def at(ordered, share):
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def save(evaluate, post, version):
    evaluate({
        "user": None, "given": {"id": post, "title": f"Crowd version {version}."},
        "code": "wp_update_post(['ID' => $given['id'], 'post_title' => $given['title']]);",
    })  # fmt: skip


def run(options, report):
    if options.subject != "mayfly":
        report.note("left out: it starts its servers itself")
        return
    crowds = {}
    for name in ("learned", "a second", "nginx"):
        with Workdir("crowd", keep=options.keep, parent=learned.SITES) as workdir:
            crowds[name] = of_server(workdir, options, report, name)
        report.note(f"{name}: {crowds[name].describe()}")
    judge(report, crowds)


def of_server(workdir, options, report, name):
    site = wordpress.Site(workdir, plugins=("run_number.php", "editor_door.php"))
    with open(workdir.join("config.php"), "a", encoding="utf-8") as config:
        config.write(f"define('DISABLE_WP_CRON', true);\ndefine('EDITOR_DOOR', '{WORD}');\n")
    subject, control = start(workdir, options, site, name)
    try:
        admin = wordpress.User("root1", "Ada Admin", "administrator")
        site.install(subject, admin)
        post = {"slug": "crowd", "title": "Crowd", "content": "For all.", "author": admin.login}
        site.seed([admin], [post])
        if control:
            wait_until_kept(subject, control)
        crowd = Crowd(subject)
        crowd.run(door(subject, WORD), post_of(site), options.seconds)
    finally:
        wrong = subject.stop()
        report.check(f"{name}: the server ran to the end", not wrong, wrong)
    return crowd


def post_of(site):
    return int(site.select("SELECT ID FROM wp_posts WHERE post_name = 'crowd'")[0][0])


def start(workdir, options, site, name):
    if name == "learned":
        return learned.start(workdir, options, wordpress.ROOT, site.database, "on")
    options = copy.copy(options)
    options.ttl = 1
    options.subject = "nginx" if name == "nginx" else "mayfly"
    return subjects.start(workdir, options, "wordpress", wordpress.ROOT), None


def wait_until_kept(subject, control):
    """For longer than another lifetime: scripts and tables that are new are not learned at once."""
    until = time.monotonic() + learned.LEARNED_SECONDS
    while int(Client(subject.address, subject.port).get("/").field("age") or 0) < KEPT_SECONDS:
        if time.monotonic() > until:
            raise RuntimeError(f"the home page is not kept: {control.learned(f'{subject.url}/')}")
        time.sleep(0.5)


def judge(report, crowds):
    known = crowds["learned"]
    changes = len(known.saved) - 1
    for name, crowd in crowds.items():
        report.check(f"{name}: nobody was refused", not crowd.wrong, dict(crowd.wrong))
    report.check(f"learned: {changes} changes, each seen by the next request", not known.old(), known.old()[:5])
    report.check(f"learned: at least {MIN_CHANGES} changes were made", changes >= MIN_CHANGES)
    most = MAX_RUNS_FOR_CHANGE * (changes + 1)
    report.check(f"learned: PHP made the page at most {MAX_RUNS_FOR_CHANGE} times for each change", known.runs() <= most, known.runs())
    others = [crowd for name, crowd in crowds.items() if name != "learned"]
    report.check("and pages are old with a lifetime of a second", all(crowd.old() for crowd in others))
