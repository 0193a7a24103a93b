"""WordPress with a microcache (files/set_ups/wordpress.conf) that the application steers.

The site is kept for an hour and the forum for a second, as X-Accel-Expires says; a stale page is
shown while PHP makes the new one; who is logged in goes past the cache, and in the forum has copies
of their own; each of PHP's responses says what the cache did.
"""

import re

from harness import set_ups
from harness import subject as subjects
from harness import wordpress
from harness.client import Client
from harness.set_ups import hit, until
from harness.workdir import Workdir

CLIENTS = 200
REQUESTS = 3000
SITE = ("/", "/first/", "/second/", "/author/root1/", "/feed/")
FORUM = "/forum/"


def run(options, report):
    with Workdir("set-up-wordpress", keep=options.keep) as workdir:
        php = subjects.start_php_fpm(workdir, options.workers)
        site = wordpress.Site(workdir, plugins=("lifetimes.php",))
        subject = set_ups.start(workdir, options, "wordpress", php=php)
        failed = report.failed
        admin = wordpress.User("root1", "Ada Admin", "administrator")
        editor = wordpress.User("edith", "Edith Editor", "editor")
        site.install(subject, admin)
        posts = [
            {"title": slug.title(), "slug": slug, "author": "root1", "content": f"<p>The {slug} post.</p>"}
            for slug in ("first", "second", "forum")
        ]
        site.seed([admin, editor], posts)
        lifetimes(report, subject, site)
        status_on_each_response(report, subject)
        logged_in(report, subject, (admin, editor))
        a_crowd(report, subject)
        report.check("set-up of WordPress: the server ran to the end", not (wrong := subject.stop()), wrong)
        if report.failed > failed:
            report.note(subject.logs())
            report.note(workdir.log_tail("subject/error"))


def visitor(subject):
    return Client(subject.address, subject.port)


def made_for(page):
    """The number of the user, 0 for anybody; files/marker.php says it."""
    found = re.search(r"<!-- for user:(\d+)", page.text)
    return int(found.group(1)) if found else None


def lifetimes(report, subject, site):
    words = [visitor(subject).get("/first/").cache_word for _ in range(2)]
    report.check("set-up of WordPress: the site's pages are made once", words == ["MISS", "HIT"], words)
    if told := re.search(r"ttl=(\d+)", visitor(subject).get("/first/").field("cache-status") or ""):
        left = int(told.group(1))
        report.check("set-up of WordPress: and kept for an hour", 3500 < left <= 3600, left)
    hit(visitor(subject), FORUM)
    answer = visitor(subject).post("/wp-comments-post.php", form={
        "comment": "who is there?", "comment_post_ID": str(site.posts["forum"]), "comment_parent": "0",
        "author": "Cora", "email": "cora@example.test", "url": "",
    })  # fmt: skip
    report.check("set-up of WordPress: a visitor writes in the forum", answer.status == 302, answer.status)
    words = []

    def is_shown():
        page = visitor(subject).get(FORUM)
        words.append(page.cache_word)
        return "who is there?" in page.text

    report.check("set-up of WordPress: others read it when the second is over", until(is_shown))
    waited = [word for word in words if word not in ("HIT", "STALE", "UPDATING")]
    report.check("set-up of WordPress: and nobody waits for PHP meanwhile", not waited, words)
    still = visitor(subject).get("/first/").cache_word
    report.check("set-up of WordPress: while the site's pages stay", still == "HIT", still)


def status_on_each_response(report, subject):
    client = visitor(subject)
    for target, status in (("/second/", 200), ("/no-such-page/", 404), ("/second", 301), ("/wp-login.php", 200)):
        words = [client.get(target) for _ in range(2)]
        has_all = all(page.status == status and page.field("x-cache") for page in words)
        said = [f"{page.status} {page.field('x-cache')}" for page in words]
        report.check(f"set-up of WordPress: {target} says what the cache did ({', '.join(said)})", has_all)


def logged_in(report, subject, users):
    clients = {user: visitor(subject) for user in users}
    for user, client in clients.items():
        wordpress.log_in(client, user)
        page = client.get("/first/")
        is_own = page.cache_word == "BYPASS" and made_for(page) == user.id
        report.check(f"set-up of WordPress: {user.login} goes past the cache", is_own, describe(page))
        own = hit(client, FORUM)
        is_own = own.cache_word == "HIT" and made_for(own) == user.id and user.token in own.text
        report.check(f"set-up of WordPress: {user.login} has copies of {user.login}'s own in the forum", is_own, describe(own))
    for target in ("/first/", FORUM):
        page = hit(visitor(subject), target)
        is_public = made_for(page) == 0 and not any(user.token in page.text for user in users)
        report.check(f"set-up of WordPress: {target} of the crowd is nobody's", is_public, describe(page))


def a_crowd(report, subject):
    for target in SITE:
        visitor(subject).get(target)
    targets = (FORUM if number % 4 == 0 else SITE[number % len(SITE)] for number in range(REQUESTS))
    answers = set_ups.crowd(subject, targets, CLIENTS)
    set_ups.check_crowd(report, f"set-up of WordPress: {CLIENTS} clients at once", answers, REQUESTS)
    waited = answers.count - sum(answers.cache[word] for word in ("HIT", "STALE", "UPDATING"))
    report.check("set-up of WordPress: nobody of them waited for PHP", waited == 0, dict(answers.cache))


def describe(answer):
    return f"{answer.status} {answer.cache_word}, made for {made_for(answer)}"
