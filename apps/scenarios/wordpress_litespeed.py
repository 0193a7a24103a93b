"""LiteSpeed's own cache plug-in for WordPress, unmodified, behind one directive: `cache_litespeed on`.

Its source is not part of this project: LITESPEED_PLUGIN names the folder where it was unpacked (the one
with litespeed-cache.php). A post is published, edited, commented and deleted, and all is purged at once;
somebody logs in; then the plug-in's own setting puts pages together from fragments. Each time the next
visitor sees what is new, nobody sees what is another's, and the rest stays in memory.
"""

import os
import re
import shutil

from harness import subject as subjects
from harness import wordpress
from harness.client import Client
from harness.workdir import Workdir
from harness.wordpress_editor import evaluate

from .wordpress_purges import Story

PLUGIN = "litespeed-cache/litespeed-cache.php"
A_WEEK = 604800
NEW = "/news/"
# Where a post is shown beside its own page.
LISTS = ("/", "/author/root1/", "/category/uncategorized/", "/feed/")
# Kept whatever becomes of a post: its address is wrong, or it has other posts. The plug-in purges all single
# posts and all pages with each of them.
OTHERS = ("/nowhere/", "/category/quiet/")
SINGLE = ("/first/", "/second/", "/about/")
# The plug-in drops what is personal in a page that it lets visitors share; this one prints it always.
WITHOUT_MARKER = """<?php
if (get_option('litespeed.conf.esi')) { add_action('init', fn () => remove_action('wp_footer', 'marker_print')); }
"""


def run(options, report):
    folder = os.environ.get("LITESPEED_PLUGIN", "")
    if not options.subject.startswith("mayfly"):
        report.note("left out: nginx does not speak LiteSpeed's cache protocol")
        return
    if not os.path.isfile(os.path.join(folder, "litespeed-cache.php")):
        report.note("left out: LITESPEED_PLUGIN names no folder with the source of LiteSpeed's plug-in")
        return
    with Workdir("litespeed", keep=options.keep) as workdir:
        php = subjects.start_php_fpm(workdir, options.workers)
        site = wordpress.Site(workdir)
        install_plugin(workdir, folder)
        subject = subjects.start_with(workdir, options, "wordpress_litespeed.conf", php=php)
        failed = report.failed
        users = [
            wordpress.User("root1", "Ada Admin", "administrator"),
            wordpress.User("carl", "Carl Copyist", "subscriber"),
            wordpress.User("dora", "Dora Draughts", "subscriber"),
        ]
        site.install(subject, users[0])
        site.seed(users, [
            {"title": slug.title(), "slug": slug, "author": "root1", "content": f"<p>The {slug} post.</p>"}
            for slug in ("first", "second")
        ])  # fmt: skip
        more = (
            "wp_insert_post(['post_type' => 'page', 'post_name' => 'about', 'post_title' => 'About', 'post_status' => 'publish']);"
            " wp_insert_term('Quiet', 'category');"
        )
        evaluate(site, more, user="root1")
        story = LiteSpeedStory(report, subject, users, site)
        story.activate()
        story.tell()
        report.check("litespeed: the server ran to the end", not (wrong := subject.stop()), wrong)
        if report.failed > failed:
            report.note(subject.logs())
            report.note(workdir.log_tail("subject/error"))
            report.note(workdir.log_tail("subject/purge", 60))


def install_plugin(workdir, folder):
    plugins = workdir.mkdir("plugins")
    shutil.copytree(folder, os.path.join(plugins, os.path.dirname(PLUGIN)))
    for path, folders, files in os.walk(plugins):
        for name in (*folders, *files):
            os.chmod(os.path.join(path, name), 0o755)
    data = workdir.mkdir("plugin-data")
    shutil.chown(data, "www-data")
    workdir.write("mu-plugins/without_marker.php", WITHOUT_MARKER)
    with open(workdir.join("config.php"), "a", encoding="utf-8") as config:
        config.write(f"define('WP_PLUGIN_DIR', '{plugins}');\ndefine('LSCWP_CONTENT_DIR', '{data}');\n")
        config.write("define('DISABLE_WP_CRON', true);\n")


class LiteSpeedStory(Story):
    """What becomes of one post; then who has which page."""

    name = "litespeed"
    others = OTHERS

    def __init__(self, report, subject, users, site):
        super().__init__(report, subject, users[0])
        self.users = users
        self.site = site

    def tell(self):
        self.all_are_stored()
        post = self.publish()
        self.edit(post)
        comment = self.comment(post)
        self.delete_comment(comment)
        self.delete(post)
        self.empty()
        self.private_pages()
        self.fragments()

    def activate(self):
        found = re.search(r'plugins\.php\?action=activate&amp;plugin=litespeed[^"\']*_wpnonce=(\w+)', self.editor.get("/wp-admin/plugins.php").text)
        target = f"/wp-admin/plugins.php?action=activate&plugin={PLUGIN.replace('/', '%2F')}&_wpnonce={found.group(1)}"
        answer = self.editor.get(target)
        is_done = answer.status == 302 and "activate=true" in (answer.field("location") or "")
        self.report.check("litespeed: the plug-in is activated", is_done, f"{answer.status} {answer.field('location')}")

    def all_are_stored(self):
        targets = (*LISTS, *OTHERS, *SINGLE, NEW)
        for target in targets:
            self.visit(target)
        pages = {target: self.visit(target) for target in targets}
        words = {target: page.cache_word for target, page in pages.items() if not page.is_hit}
        self.report.check("litespeed: all pages are in memory", not words, words)
        left = [int(re.search(r"ttl=(\d+)", pages[target].field("cache-status")).group(1)) for target in (*LISTS, *SINGLE)]
        self.report.check("litespeed: for a week, as the plug-in says", min(left) > A_WEEK - 120, min(left))
        told = [name for page in pages.values() for name, _ in page.fields if "litespeed" in name or "lsc" in name]
        self.report.check("litespeed: visitors are told nothing of it", not told, told)

    def empty(self):
        """What no event tells of, and the button that empties all."""
        self.ask("POST", "settings", title="A new name")
        bar = self.editor.get("/wp-admin/index.php").text
        found = re.search(r'href=[\'"]([^\'"]*LSCWP_CTRL=purge[^\'"]*litespeed_type=purge_all_lscache[^\'"]*)', bar)
        self.report.check("litespeed: wp-admin has a button that purges all", bool(found), bar[:200])
        target = re.sub(r"^https?://[^/]+", "", found.group(1).replace("&#038;", "&").replace("&amp;", "&"))
        answer = self.editor.get(target)
        self.report.check("litespeed: it is pressed", answer.status in (200, 302), answer.status)
        self.seen("emptied", ("/", "/first/", "/second/"), lambda one: "A new name" in one.text, changed=OTHERS)

    def private_pages(self):
        """A logged-in user has copies of their own, and nobody else sees them."""
        carl, dora = (self.logged_in(user) for user in self.users[1:])
        views = {user.login: [browser.get("/first/") for _ in range(4)] for user, browser in ((self.users[1], carl), (self.users[2], dora))}
        for user, others in ((self.users[1], self.users[2]), (self.users[2], self.users[1])):
            pages = views[user.login]
            own = all(user.token in page.text and others.token not in page.text for page in pages)
            self.report.check(f"litespeed: {user.login} sees their own pages", own)
            words = [page.cache_word for page in pages]
            self.report.check(f"litespeed: {user.login} has a copy of their own", pages[-1].is_hit, words)
        visitor = self.visit("/first/")
        is_clean = not any(user.token in visitor.text for user in self.users)
        self.report.check("litespeed: a visitor has the page of all visitors", visitor.is_hit and is_clean, visitor.cache_word)
        self.ask("POST", f"posts/{self.site.posts['first']}", content="<p>Corrected.</p>")
        page = carl.get("/first/")
        self.report.check("litespeed: an edit ends private copies too", "Corrected." in page.text and not page.is_hit, page.cache_word)
        self.log_out(carl)
        page = carl.get("/first/")
        is_out = self.users[1].token not in page.text
        self.report.check("litespeed: who has logged out sees the page of all visitors", is_out, page.cache_word)

    def fragments(self):
        """With the plug-in's setting for ESI, users share pages, and the bar above them is each one's own."""
        evaluate(self.site, "update_option('litespeed.conf.esi', 1); do_action('litespeed_purge_all');", user="root1")
        self.visit("/wp-login.php")
        carl, dora = (self.logged_in(user) for user in self.users[1:])
        # The first views say who may share what; then copies are made.
        for browser in (carl, dora, carl, dora):
            browser.get("/second/")
        pages = [browser.get("/second/") for browser in (carl, dora)]
        for user, page, other in zip(self.users[1:], pages, reversed(self.users[1:])):
            self.report.check(f"litespeed: fragments: {user.login} has the page from memory", page.is_hit, page.cache_word)
            own = "wp-admin-bar-my-account" in page.text and user.name in page.text
            self.report.check(f"litespeed: fragments: {user.login} has their own bar", own)
            self.report.check(f"litespeed: fragments: and not {other.login}'s", other.name not in page.text)
            self.report.check("litespeed: fragments: no tag is left", "<esi:" not in page.text)
        visitor = Client(self.subject.address, self.subject.port)
        pages = [visitor.get("/second/") for _ in range(2)]
        is_clean = not any(user.name in pages[1].text for user in self.users[1:]) and "wp-admin-bar" not in pages[1].text
        self.report.check("litespeed: fragments: a visitor has none", pages[1].is_hit and is_clean, pages[1].cache_word)

    def logged_in(self, user):
        browser = Client(self.subject.address, self.subject.port)
        wordpress.log_in(browser, user)
        return browser

    def log_out(self, browser):
        page = browser.get("/wp-admin/profile.php").text
        found = re.search(r"action=logout(?:&amp;|&#038;)_wpnonce=(\w+)", page)
        answer = browser.get(f"/wp-login.php?action=logout&_wpnonce={found.group(1)}")
        if answer.status != 302:
            raise RuntimeError(f"logging out answers {answer.status}: {answer.text[:300]}")
