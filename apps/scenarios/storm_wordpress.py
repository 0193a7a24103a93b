"""A crawl of WordPress beside visitors who read, comment and log in.

3,000 addresses that nobody asked for before, by 40 connections that look like a browser. 20 visitors with addresses of
their own look at posts, search, comment, and three of them log in: first alone, then beside the crawl, for --seconds
each. No visitor gets an error, and 95 of 100 answers take at most twice as long as alone. It judges times: run by name,
on a machine without other work.
"""

import itertools
import random
import re
import threading
import time

from harness import wordpress
from harness.client import Client

ADDRESSES, CONNECTIONS = 3000, 40
READERS, COMMENTERS, MEMBERS = 12, 5, 3
SLUGS = [f"story-{number}" for number in range(10)]
MOST = 2.0
numbers = itertools.count()


def run(options, report):
    with wordpress.served(options, report, "storm") as (site, subject):
        members = prepare(site, subject)
        judge(subject, members, min(options.seconds, 25), report)


def prepare(site, subject):
    admin = wordpress.User("root1", "Ada Admin", "administrator")
    members = [wordpress.User(f"member{number}", f"Member {number}", "author") for number in range(MEMBERS)]
    site.install(subject, admin)
    posts = [{"title": slug.title(), "slug": slug, "author": "member0", "content": f"<p>The {slug}.</p>" * 50} for slug in SLUGS]
    site.seed([admin, *members], posts)
    return members


def judge(subject, members, seconds, report):
    alone = Visitors(subject, members, seconds).run()
    crawl = Crawl(subject)
    crawl.start()
    # The crawl is known for what it is after a few seconds, as it would be in an hour of it.
    time.sleep(4)
    beside = Visitors(subject, members, seconds).run()
    crawl.stop()
    report.note(f"alone: {alone.summary()}")
    report.note(f"beside the crawl: {beside.summary()}")
    report.note(f"the crawl: {crawl.answers} of {ADDRESSES} addresses answered, by status {crawl.statuses}")
    report.check("visitors get no error", not beside.errors, beside.errors[:5])
    times = (alone.share(95), beside.share(95))
    report.check(f"95 of 100 answers take at most {MOST} times as long ({times[1]:.0f} of {times[0]:.0f} ms)", times[1] <= MOST * times[0])
    report.check("the crawl gets answers as well", crawl.statuses.get(200, 0) > 0, crawl.statuses)


class Visitors:
    """All at once for a time; their times and errors."""

    def __init__(self, subject, members, seconds):
        self.subject, self.members, self.seconds = subject, members, seconds
        self.milliseconds, self.errors = [], []
        self._lock = threading.Lock()

    def run(self):
        self._ends_at = time.monotonic() + self.seconds
        tasks = [self._read] * READERS + [self._comment] * COMMENTERS
        threads = [threading.Thread(target=task) for task in tasks]
        threads += [threading.Thread(target=self._log_in, args=(user,)) for user in self.members]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self

    def summary(self):
        return {"answers": len(self.milliseconds), "errors": len(self.errors), **{f"p{percent}_ms": round(self.share(percent)) for percent in (50, 95, 99)}}

    def share(self, percent):
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else 0.0

    def _client(self):
        number = next(numbers)
        return Client(self.subject.address, self.subject.port, source=f"127.201.{number // 250}.{number % 250 + 1}")

    def _ask(self, what, ask):
        began = time.monotonic()
        try:
            response = ask()
        except OSError as error:
            response = None
            self._note(began, f"{what}: {error}")
        else:
            wrong = response.status not in (200, 302)
            self._note(began, f"{what}: {response.status} {response.text[:80]}" if wrong else None)
        time.sleep(random.uniform(0.6, 1.4))
        return response

    def _note(self, began, error):
        with self._lock:
            self.milliseconds.append(1000 * (time.monotonic() - began))
            if error:
                self.errors.append(error)

    def _is_over(self):
        return time.monotonic() >= self._ends_at

    def _see(self, client, target):
        """A page, and what browsers load with it."""
        page = self._ask(target, lambda: client.get(target))
        client.get("/wp-includes/css/dashicons.min.css")
        return page

    def _read(self):
        client = self._client()
        while not self._is_over():
            self._see(client, f"/{random.choice(SLUGS)}/")
            self._see(client, f"/?s=word{next(numbers)}")

    def _comment(self):
        # WordPress takes a comment of an address each 15 seconds.
        while not self._is_over():
            client = self._client()
            page = self._see(client, f"/{random.choice(SLUGS)}/")
            post_id = page and re.search(r"name='comment_post_ID' value='(\d+)'", page.text)
            if not post_id:
                continue
            number = next(numbers)
            form = {"comment": f"Comment {number}", "comment_post_ID": post_id.group(1), "comment_parent": "0",
                    "author": f"Guest {number}", "email": f"guest{number}@example.test"}
            self._ask("a comment", lambda: client.post("/wp-comments-post.php", form=form))

    def _log_in(self, user):
        client = self._client()
        self._see(client, "/wp-login.php")
        client.cookies.setdefault("wordpress_test_cookie", "WP%20Cookie%20check")
        form = {"log": user.login, "pwd": user.password, "wp-submit": "Log In", "redirect_to": "/wp-admin/", "testcookie": "1"}
        self._ask("a login", lambda: client.post("/wp-login.php", form=form))
        while not self._is_over():
            self._see(client, "/wp-admin/profile.php")
            self._see(client, f"/{random.choice(SLUGS)}/")


class Crawl:
    """All addresses, by all connections, until it is stopped."""

    def __init__(self, subject):
        self._targets = iter([f"/?m=2020{number % 12 + 1:02}&paged={number}" for number in range(ADDRESSES)])
        self._subject = subject
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(CONNECTIONS)]
        self.statuses = {}

    @property
    def answers(self):
        return sum(self.statuses.values())

    def start(self):
        for thread in self._threads:
            thread.start()

    def stop(self):
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self):
        client = Client(self._subject.address, self._subject.port, source="127.202.0.1")
        while not self._is_over.is_set():
            with self._lock:
                target = next(self._targets, None)
            if target is None:
                return
            try:
                status = client.get(target).status
            except OSError:
                status = 0
            with self._lock:
                # A page of a month without posts says 404, and is made by PHP as any other.
                status = 200 if status == 404 else status
                self.statuses[status] = self.statuses.get(status, 0) + 1
            if status != 200:
                self._is_over.wait(0.2)
