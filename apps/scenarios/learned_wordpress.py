"""Pages without tags: what the server finds out by itself (`cache_learn`) misses no change of a WordPress site.

The plug-in is not there. An editor changes the site within the pool that serves it: by the block editor's interface, in
wp-admin, by comments, by cron, by WordPress's functions and by statements past them, and files are deployed. After each
change every page that counts as known is made anew, past memory: one that is different and still counts as known was
missed. Last, a client of the database writes, whom nobody sees: with `watch` that is missed, so the comparison can fail.
"""

import copy
import json
import re
import secrets
import time

from harness import learned, wordpress, wordpress_blog
from harness.client import Client
from harness.workdir import Workdir
from harness.wordpress_blog import ADMIN, PAST_MEMORY, public_pages
from harness.wordpress_changes import CONTENT_CHANGES, SITE_CHANGES, changes
from harness.wordpress_editor import Editor

LIFETIME_SECONDS = 3600
MIN_CHANGES = 60
MIN_PAGES = 80
MIN_PAGES_IN_CI = 12
# Those of plug-ins, of comments that wait, and some of the interface for programs.
NOT_IN_DESIGN = r"^/own-|/tables/|moderation-hash|_envelope|orderby|/wp/v2/(types|taxonomies|search|media|users)|comments\?post|\?parent|feed/rdf"
MIN_PAGES_IN_DESIGN = 65
# Own ones take their place: they wait for what only the plug-in does.
LEFT_OUT = ("a scheduled post is due",)
CHANGES_IN_CI = (
    "a post is published", "the text of a post", "the categories of a post", "quick edit", "the posts of a script",
    "a visitor comments", "a category is renamed", "the biography of an author", "an option by a statement",
    "a venue that events name", "another theme", "a widget is added", "the blog's name",
)  # fmt: skip
PAGES_IN_CI = r"^/$|/page/2/|/article-(1|2|5|14|24)/$|^/feed/$|/category/(news|sport)/$|/author/mary/$|/wp/v2/posts$|/breaking/|/nowhere/|/own-(events|banner|poll)/"
CRON_SECONDS = 30


def run(options, report):
    if options.subject != "mayfly":
        report.note("left out: only Mayfly's own configuration learns")
        return
    original = wordpress_blog.block_theme()
    if original is None:
        report.note("left out: there is no theme of blocks here")
        return
    options = copy.copy(options)
    options.ttl = LIFETIME_SECONDS
    with Workdir("learned", keep=options.keep, parent=learned.SITES) as workdir:
        site = wordpress.Site(workdir, plugins=("wordpress_plugin_tables.php", "editor_door.php"))
        word = secrets.token_hex(16)
        with open(workdir.join("config.php"), "a", encoding="utf-8") as config:
            config.write(f"define('DISABLE_WP_CRON', true);\ndefine('EDITOR_DOOR', '{word}');\n")
            if options.design:
                # WordPress 6.1 has the theme's styles in a transient of a minute, whose end every page reads, but for developers of themes:
                # on a slow machine it would end between each two changes. Later ones have none.
                config.write("define('SCRIPT_DEBUG', true);\n")
        names = wordpress_blog.put_themes(workdir, original)
        subject, control = learned.start(workdir, options, wordpress.ROOT, site.database, options.learn, replays=True)
        with subject.judged(report, "learned"):
            made = wordpress_blog.install(site, subject, names)
            site.door = door(subject, word)
            judge(report, options, Editor(site, subject, ADMIN, made), control)


def door(subject, word):
    def evaluate(task):
        answer = Client(subject.address, subject.port).post(
            "/editor-door/", body=json.dumps(task).encode(), fields={"X-Editor": word, "Content-Type": "application/json"}
        )
        if answer.status != 200 or not answer.text.startswith("{"):
            raise RuntimeError(f"{task['code'][:80]}: {answer.status} {answer.text[:300]}")
        return json.loads(answer.text)["returned"]

    return evaluate


def cron(editor):
    """WordPress publishes a post by cron, when its time has come."""
    number = editor.php(
        "return wp_insert_post(['post_title' => 'On time', 'post_status' => 'future', 'post_content' => 'Now.',"
        " 'post_date' => wp_date('Y-m-d H:i:s', time() + 2)]);"
    )
    until = time.monotonic() + CRON_SECONDS
    while editor.php("return get_post_status($given['id']);", id=number) != "publish":
        if time.monotonic() > until:
            raise RuntimeError("cron does not publish")
        time.sleep(0.2)
        editor.visit(f"/wp-cron.php?doing_wp_cron&at={time.time_ns()}")


def judge(report, options, editor, control):
    paths = public_pages(editor.made)
    if options.design:
        paths = [path for path in paths if not re.search(NOT_IN_DESIGN, path)]
        if options.design == "classic":
            next(make for name, _, make in changes() if name == "another theme")(editor)
    elif not options.all_changes:
        paths = [path for path in paths if re.search(PAGES_IN_CI, path)]
    pages = learned.Pages(editor.subject, control, paths, PAST_MEMORY)
    known, why = pages.settle()
    report.note(f"{len(known)} of {len(paths)} pages are learned; not: {why}")
    # Redirects are kept for a second, and some pages are not learned with reason.
    pages.paths = list(known)
    least = MIN_PAGES if options.all_changes else MIN_PAGES_IN_CI
    if options.design:
        least = MIN_PAGES_IN_DESIGN
    report.check(f"learned: at least {least} pages", len(known) >= least)
    judge = learned.Judge(report, "learned", pages, options.learn)
    seen = 0
    groups = {"content": (CONTENT_CHANGES, learned.Totals()), "site": (SITE_CHANGES, learned.Totals())}
    for name, is_visible, make in chosen(options):
        editor.written.clear()
        changed = judge.change(name, lambda make=make: make(editor), editor.written)
        seen += bool(changed) if is_visible else 0
        for names, totals in groups.values():
            if name in names:
                totals.add(judge.last)
    if options.design:
        for kind, (_, totals) in groups.items():
            report.note(f"{kind}: {totals}")
    report.note(str(judge.totals))
    report.check("learned: changes are seen", seen >= judge.totals.changes // 3, f"{seen} of {judge.totals.changes}")
    if options.all_changes:
        report.check(f"learned: at least {MIN_CHANGES} changes", judge.totals.changes >= MIN_CHANGES)
    if options.learn == "watch":
        past_the_pool(report, editor, pages)


def chosen(options):
    known = [("a scheduled post is due by cron", True, cron), *changes()]
    if options.design:
        return [change for change in known if change[0] in CONTENT_CHANGES + SITE_CHANGES]
    return [change for change in known if change[0] not in LEFT_OUT and (options.all_changes or change[0] in CHANGES_IN_CI)]


def past_the_pool(report, editor, pages):
    """What a client of the database writes is not seen yet: the comparison finds it."""
    known, _ = pages.settle(pages.paths)
    editor.site.select("UPDATE wp_options SET option_value = 'Past' WHERE option_name = 'blogname'")
    now = pages.made_now(["/"])
    is_old = now["/"] != known.get("/") and pages.beliefs(["/"])["/"][0] == "fresh"
    report.check("learned: what is written past the pool is found by the comparison", is_old)
