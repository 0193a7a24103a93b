"""WordPress with pages that are kept for hours, and the requests of Proxy Cache Purge.

A post is published, edited, commented, its comment deleted, and it is deleted; in the end all pages
are purged at once. Each time the next anonymous visitor sees it, and the pages that it does not
concern are still answered from memory.
"""

import json
import re

from harness import subject as subjects
from harness import wordpress
from harness.client import Client
from harness.workdir import Workdir

LIFETIME_SECONDS = 8 * 3600
NEW = "/news/"
# Where a post is shown beside its own page.
LISTS = ("/", "/author/root1/", "/category/uncategorized/", "/feed/")
# Kept whatever becomes of the new post.
OTHERS = ("/first/", "/second/", "/no-such-page/", "/first/feed/", "/wp-json/wp/v2/types/")


def run(options, report):
    if options.subject == "nginx":
        report.note("left out: nginx 1.22 has no purge")
        return
    with Workdir("purges", keep=options.keep) as workdir:
        php = subjects.start_php_fpm(workdir, options.workers)
        site = wordpress.Site(workdir, plugins=("purges.php",))
        subject = subjects.start_with(workdir, options, "wordpress_purges.conf", php=php)
        failed = report.failed
        admin = wordpress.User("root1", "Ada Admin", "administrator")
        site.install(subject, admin)
        site.seed([admin], [
            {"title": slug.title(), "slug": slug, "author": "root1", "content": f"<p>The {slug} post.</p>"}
            for slug in ("first", "second")
        ])  # fmt: skip
        Story(report, subject, admin).tell()
        the_log(report, workdir.join("subject", "purge.log"))
        report.check("purges: the server ran to the end", not (wrong := subject.stop()), wrong)
        if report.failed > failed:
            report.note(subject.logs())
            report.note(workdir.log_tail("subject/error"))
            report.note(workdir.log_tail("subject/purge", 60))


class Story:
    """What becomes of one post, written by an administrator and read by visitors."""

    # What checks begin with, and the pages that a change of the post leaves alone.
    name = "purges"
    others = OTHERS

    def __init__(self, report, subject, admin):
        self.report = report
        self.subject = subject
        self.editor = Client(subject.address, subject.port)
        wordpress.log_in(self.editor, admin)
        nonce = self.editor.get("/wp-admin/admin-ajax.php?action=rest-nonce").text.strip()
        self.rest = {"X-WP-Nonce": nonce, "Content-Type": "application/json"}

    def tell(self):
        self.all_are_stored()
        post = self.publish()
        self.edit(post)
        comment = self.comment(post)
        self.delete_comment(comment)
        self.delete(post)
        self.empty()

    def visit(self, target):
        return Client(self.subject.address, self.subject.port).get(target)

    def ask(self, method, path, **body):
        answer = self.editor.request(method, f"/wp-json/wp/v2/{path}", json.dumps(body).encode(), self.rest)
        if answer.status not in (200, 201):
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.text[:300]}")
        return json.loads(answer.text)

    def all_are_stored(self):
        """Every page, that of the post that is not there yet too."""
        targets = (*LISTS, *OTHERS, NEW)
        for target in targets:
            self.visit(target)
        pages = {target: self.visit(target) for target in targets}
        words = {target: page.cache_word for target, page in pages.items() if not page.is_hit}
        self.report.check("purges: all pages are in memory", not words, words)
        left = [int(re.search(r"ttl=(\d+)", page.field("cache-status")).group(1)) for page in pages.values()]
        self.report.check("purges: for hours", min(left) > LIFETIME_SECONDS - 120, min(left))
        self.report.check("purges: and the post is not there", pages[NEW].status == 404, pages[NEW].status)

    def seen(self, what, targets, is_seen, changed=()):
        """The first visitor of each of these sees it, and the next one gets the same from memory. Others
        are still in memory, but for those in `changed`."""
        wrong = []
        for target in targets:
            page = self.visit(target)
            if page.is_hit or not is_seen(page):
                wrong.append(f"{target}: {page.status} {page.cache_word}")
            if not self.visit(target).is_hit:
                wrong.append(f"{target} is not in memory again")
        self.report.check(f"{self.name}: {what}: the next visitor of {', '.join(targets)} sees it", not wrong, wrong)
        gone = [target for target in self.others if target not in changed and not self.visit(target).is_hit]
        self.report.check(f"{self.name}: {what}: other pages are still in memory", not gone, gone)

    def publish(self):
        post = self.ask("POST", "posts", title="Something new", slug="news", content="<p>What it is.</p>", status="publish")
        self.seen("published", (NEW, *LISTS), lambda page: page.status == 200 and "Something new" in page.text)
        return post["id"]

    def edit(self, post):
        self.ask("POST", f"posts/{post}", title="Something else")
        self.seen(
            "edited", (NEW, *LISTS), lambda page: "Something else" in page.text and "Something new" not in page.text
        )

    def comment(self, post):
        """By a visitor without account; the number of the comment."""
        for target in ("/comments/feed/", f"{NEW}feed/"):
            self.visit(target)
        answer = Client(self.subject.address, self.subject.port).post("/wp-comments-post.php", form={
            "comment": "what a day", "comment_post_ID": str(post), "comment_parent": "0",
            "author": "Cora", "email": "cora@example.test", "url": "",
        })  # fmt: skip
        self.report.check("purges: a visitor comments", answer.status == 302, answer.status)
        self.seen("commented", (NEW, "/comments/feed/", f"{NEW}feed/"), lambda page: "what a day" in page.text)
        found = re.search(r"#comment-(\d+)", answer.field("location") or "")
        return int(found.group(1))

    def delete_comment(self, comment):
        self.ask("DELETE", f"comments/{comment}", force=True)
        self.seen(
            "comment deleted", (NEW, "/comments/feed/", f"{NEW}feed/"), lambda page: "what a day" not in page.text
        )

    def delete(self, post):
        self.ask("DELETE", f"posts/{post}")
        self.seen("deleted", (NEW,), lambda page: page.status == 404)
        self.seen("deleted", LISTS, lambda page: page.status == 200 and "Something else" not in page.text)

    def empty(self):
        """What no event tells of, and the button that empties all."""
        self.ask("POST", "settings", title="A new name")
        page = self.visit("/")
        self.report.check("purges: a new name of the site is not told", page.is_hit and "A new name" not in page.text)
        answer = self.editor.get("/wp-admin/admin-post.php?action=empty_cache")
        self.report.check("purges: all is purged with one request", answer.status == 200, answer.status)
        self.seen("emptied", ("/", "/first/", "/second/"), lambda one: "A new name" in one.text, changed=OTHERS)


def the_log(report, path):
    with open(path, encoding="utf-8") as log:
        lines = log.read().splitlines()
    requests = [line for line in lines if " request " in line]
    report.check(f"purges: the log has {len(lines)} lines, all of requests", requests and requests == lines, lines[:3])
