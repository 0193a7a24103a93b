"""What the server finds out by itself (`cache_learn`) misses no change of a MediaWiki on MariaDB.

The wiki is Debian's, and keeps nothing in caches of its own: pages that it makes of APCu, or of rows that end by the
clock, are not learned (docs/learned.md). After each change every page that counts as known is made anew, past memory: one
that is different and still counts as known was missed.
"""

import copy
import re

from harness import learned, mariadb, mediawiki
from harness.client import Client
from harness.workdir import Workdir

LIFETIME_SECONDS = 3600
# A session of something else: such a request is not answered from memory, and is no user's for the wiki.
PAST_MEMORY = {"other_session": "1"}
ARTICLES = 12
MIN_PAGES = 20
MIN_CHANGES = 24
DIFFERS_EACH_TIME = re.compile(
    r"<!--.*?-->|\"wgRequestId\":\"[^\"]*\"|\"wgBackendResponseTime\":\d+|\"wgPageParseReport\":.*?</script>", re.DOTALL
)


def run(options, report):
    if options.subject != "mayfly":
        report.note("left out: only Mayfly's own configuration learns")
        return
    options = copy.copy(options)
    options.ttl = LIFETIME_SECONDS
    with Workdir("learned-wiki", keep=options.keep, parent=learned.SITES) as workdir:
        database = mariadb.start(workdir)
        port = workdir.free_port()
        wiki = mediawiki.Wiki(workdir, port, mediawiki.NO_CACHES, database)
        root = wiki.document_root("root", "")
        subject, control = learned.start(
            workdir, options, root, database, options.learn, port=port, php_settings="apc.enabled=0\n", replays=True
        )
        with subject.judged(report, "learned wiki"):
            editor = Client(subject.address, subject.port)
            mediawiki.log_in(editor, wiki)
            judge(report, options, subject, control, editor, seed(editor))


def article(number, text):
    near, far = (number + 1) % ARTICLES, (number + 5) % ARTICLES
    return f"{text} {{{{Notice}}}} [[Article {near}]] [[Article {far}]] [[Nowhere {number}]] [[Category:Kind {number % 3}]]"


def seed(editor):
    """Returns the paths of pages."""
    mediawiki.edit(editor, "Template:Inner", "inner text")
    mediawiki.edit(editor, "Template:Notice", "a notice with {{Inner}}")
    for number in range(ARTICLES):
        mediawiki.edit(editor, f"Article {number}", article(number, f"The text of {number}."))
    for number in range(3):
        mediawiki.edit(editor, f"Category:Kind {number}", f"What is of kind {number}.")
    mediawiki.edit(editor, "Talk:Article 1", "== A question ==\nWhy?")
    mediawiki.edit(editor, "Old name", "#REDIRECT [[Article 2]]")
    articles = [f"/wiki/Article_{number}" for number in range(ARTICLES)]
    histories = [f"/index.php?title=Article_{number}&action=history" for number in (1, 2)]
    return [
        "/wiki/Main_Page", *articles, *histories, "/wiki/Talk:Article_1", "/wiki/Old_name", "/wiki/Template:Notice",
        *(f"/wiki/Category:Kind_{number}" for number in range(3)), "/index.php?title=Article_3&action=raw",
        "/load.php?lang=en&modules=startup&only=scripts&skin=vector", "/load.php?lang=en&modules=site.styles&only=styles&skin=vector",
    ]  # fmt: skip


def judge(report, options, subject, control, editor, paths):
    pages = learned.Pages(subject, control, paths, PAST_MEMORY, lambda text: DIFFERS_EACH_TIME.sub("", text))
    known, why = pages.settle()
    report.note(f"{len(known)} of {len(paths)} pages are learned; not: {why}")
    pages.paths = list(known)
    report.check(f"learned wiki: at least {MIN_PAGES} pages", len(known) >= MIN_PAGES)
    judged = learned.Judge(report, "learned wiki", pages, options.learn)
    seen = 0
    for name, make in changes(editor):
        seen += bool(judged.change(name, make))
    report.note(str(judged.totals))
    report.check(f"learned wiki: at least {MIN_CHANGES} changes", judged.totals.changes >= MIN_CHANGES)
    report.check("learned wiki: changes are seen", seen >= MIN_CHANGES // 2, seen)


def changes(editor):
    def edit(title, text):
        return lambda: mediawiki.edit(editor, title, text)

    def act(action, **form):
        return lambda: mediawiki.act(editor, action, **form)

    return [
        ("the text of a page", edit("Article 1", article(1, "Another text."))),
        ("an edit by the form", lambda: mediawiki.edit_by_form(editor, "Article_4", article(4, "By the form."))),
        ("the same text again", edit("Article 1", article(1, "Another text."))),
        ("a template", edit("Template:Notice", "another notice with {{Inner}}")),
        ("a template within a template", edit("Template:Inner", "other inner text")),
        ("a page that others link to is made", edit("Nowhere 3", "It is there now.")),
        ("a page that no page links to", edit("Alone", "Nobody links here.")),
        ("a category of its own", edit("Category:Kind 1", "Another description.")),
        ("a page leaves a category", edit("Article 5", "Without a category. {{Notice}}")),
        ("a page joins a category", edit("Article 5", article(2, "With another category."))),
        ("a comment on the talk page", edit("Talk:Article 1", "== A question ==\nWhy? Because.")),
        ("a page is moved", act("move", **{"from": "Article 6", "to": "Article six", "reason": "name"})),
        ("a page is moved back", act("move", **{"from": "Article six", "to": "Article 6 again", "noredirect": "1"})),
        ("a redirect leads elsewhere", edit("Old name", "#REDIRECT [[Article 3]]")),
        ("a page is protected", act("protect", title="Article 7", protections="edit=sysop", expiry="never")),
        ("a page is deleted", act("delete", title="Article 8")),
        ("a page is restored", act("undelete", title="Article 8")),
        ("a redlink is made and deleted", edit("Nowhere 9", "For a moment.")),
        ("it is deleted", act("delete", title="Nowhere 9")),
        ("a message of the interface", edit("MediaWiki:Tagline", "From another wiki")),
        ("the side bar", edit("MediaWiki:Sidebar", "* navigation\n** mainpage|Main\n** Article_1|First")),
        ("the style of the site", edit("MediaWiki:Common.css", "body { color: red }")),
        ("a notice on all pages", edit("MediaWiki:Sitenotice", "Closed on Sunday")),
        ("the tags of an edit are managed", act("managetags", operation="create", tag="checked")),
        ("an edit is undone", lambda: undo(editor, "Article 1")),
        ("the main page", edit("Main Page", "Welcome to [[Article 1]].")),
        ("a user's page", edit("User:Admin", "I am the administrator.")),
        ("a preference", lambda: mediawiki.prefer(editor, "skin", "timeless")),
    ]  # fmt: skip


def undo(editor, title):
    answer = editor.get(f"/api.php?action=query&prop=revisions&titles={title.replace(' ', '_')}&rvlimit=1&format=json").text
    mediawiki.act(editor, "edit", title=title, undo=re.search(r'"revid":(\d+)', answer)[1])
