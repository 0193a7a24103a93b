"""MediaWiki (Debian's package) with $wgUseCdn, the server as its CDN.

Pages are shared for as long as the wiki says, five hours, and taken back by its
own PURGE requests, whose target is an absolute URL. Nobody with a session ever
sees a shared page; cookies of analytics make no difference.
"""

import re
import time

from harness import mediawiki
from harness import subject as subjects
from harness.client import Client
from harness.mediawiki import is_personal
from harness.workdir import Workdir

PAGE = "/wiki/Shared_page"
TARGET = "/wiki/Target_page"
LINKING = "/wiki/Linking_page"
TITLE = "Shared page"
LIFETIME_SECONDS = 5 * 3600
# The wiki sends its purges after its answer, when the machine lets it; the page itself would stay for hours.
PURGED_SECONDS = 30.0
EDITS = 5
ANALYTICS = {"_ga": "GA1.2.1234.5678", "_ga_X1": "GS1.1", "_pk_id.1.a2b": "f00"}


def run(options, report):
    if options.subject == "nginx":
        report.note("left out: nginx 1.22 has no purge")
        return
    with Workdir("mediawiki", keep=options.keep) as workdir:
        socket = subjects.start_php_fpm(workdir, options.workers)
        port = workdir.free_port()
        wiki = mediawiki.Wiki(workdir, port)
        subject = subjects.start_with(
            workdir, options, "mediawiki.conf", port=port, php_socket=socket, settings=wiki.settings
        )
        editor = Client(subject.address, port)
        mediawiki.log_in(editor, wiki)
        mediawiki.edit(editor, TITLE, "first text")
        lifetime(report, subject)
        edits_are_seen(report, subject, editor)
        dependent_pages_are_seen(report, subject, wiki, editor)
        analytics(report, subject)
        sessions(report, subject, wiki, editor)
        strangers(report, subject)
        report.check("mediawiki: the server ran to the end", not (wrong := subject.stop()), wrong)
        if report.failed:
            report.note(subject.logs())
            report.note(workdir.log_tail("subject/error", 20))


def anonymous(subject):
    return Client(subject.address, subject.port)


def lifetime(report, subject):
    first, second = (anonymous(subject).get(PAGE) for _ in range(2))
    control = second.field("cache-control") or ""
    report.check("mediawiki: the second visitor gets the shared page", second.is_hit, describe(second))
    report.check("mediawiki: and it is the first one's", first.body == second.body, describe(first))
    told = re.search(r"ttl=(\d+)", second.field("cache-status") or "")
    left = int(told.group(1)) if told else -1
    is_long = LIFETIME_SECONDS - 120 <= left <= LIFETIME_SECONDS
    report.check("mediawiki: it is fresh for five hours", is_long, f"{left} s left; {control}")


def edits_are_seen(report, subject, editor):
    worst = 0.0
    visitor = anonymous(subject)
    for number in range(EDITS):
        text = f"edit number {number} at {time.time_ns()}"
        visitor.get(PAGE)
        was_shared = visitor.get(PAGE).is_hit
        mediawiki.edit(editor, TITLE, text)
        answered = time.monotonic()
        while text not in anonymous(subject).get(PAGE).text:
            if time.monotonic() - answered > PURGED_SECONDS:
                break
            time.sleep(0.01)
        worst = max(worst, time.monotonic() - answered)
        if not was_shared:
            report.check("mediawiki: the page was in memory before the edit", False)
    report.check(
        f"mediawiki: {EDITS} edits, each seen by anonymous visitors when its purge has come "
        f"(after {worst * 1000:.0f} ms at most)",
        worst <= PURGED_SECONDS, f"{worst:.2f} s",
    )  # fmt: skip
    report.check("mediawiki: and then it is in memory again", anonymous(subject).get(PAGE).is_hit)


def dependent_pages_are_seen(report, subject, wiki, editor):
    """A page that is created, deleted and restored, one with a link to it, and a template."""
    mediawiki.edit(editor, "Template:Notice", "the first notice")
    mediawiki.edit(editor, "Linking page", "A [[Target page]]. {{Notice}}")
    wiki.run_jobs()

    def change(what, changed, action, **form):
        """The page that is changed and the one with the link, as the next visitors see them."""
        for page in (changed, LINKING, PAGE):
            anonymous(subject).get(page)
            if not anonymous(subject).get(page).is_hit:
                report.check(f"mediawiki: {page} is in memory before {what}", False)
        # The wiki compares times of a second.
        viewed = int(time.time())
        while int(time.time()) == viewed:
            time.sleep(0.01)
        mediawiki.act(editor, action, **form)
        first = next_made(subject, changed)
        # It may note jobs only after its answer, and after the purge.
        linking = next_made(subject, LINKING, before=wiki.run_jobs)
        kept = anonymous(subject).get(PAGE).is_hit
        report.check(f"mediawiki: {what}: a page that it does not concern stays in memory", kept)
        return first, linking

    target = {"title": "Target page"}
    red = "title=Target_page&amp;action=edit&amp;redlink=1"
    for what, action, form, status in (
        ("a page is created", "edit", {**target, "text": "here it is"}, 200),
        ("it is deleted", "delete", target, 404),
        ("it is restored", "undelete", target, 200),
    ):
        page, linking = change(what, TARGET, action, **form)
        report.check(f"mediawiki: {what}: the next visitor sees it", page.status == status, describe(page))
        is_right = (red in linking.text) == (status == 404) and not linking.is_hit
        colour = "red" if status == 404 else "blue"
        report.check(f"mediawiki: {what}: a link to it is {colour} for the next visitor", is_right, describe(linking))
    template = {"title": "Template:Notice", "text": "the second notice"}
    pages = change("a template changes", "/wiki/Template:Notice", "edit", **template)
    is_shown = all("the second notice" in page.text and not page.is_hit for page in pages)
    report.check(
        "mediawiki: a template changes: the next visitor of a page with it sees it", is_shown, [*map(describe, pages)]
    )


def next_made(subject, target, before=lambda: time.sleep(0.01)):
    """The first page that does not come from memory, within the time that a purge may take."""
    until = time.monotonic() + PURGED_SECONDS
    before()
    while (page := anonymous(subject).get(target)).is_hit and time.monotonic() < until:
        before()
    return page


def analytics(report, subject):
    shared = anonymous(subject).get(PAGE)
    for cookies in (ANALYTICS, {"_ga": "GA1.2.other"}):
        visitor = Client(subject.address, subject.port, cookies)
        answer = visitor.get(PAGE)
        is_same = answer.is_hit and answer.body == shared.body
        report.check(f"mediawiki: a visitor with {', '.join(cookies)} gets the shared page", is_same, describe(answer))


def sessions(report, subject, wiki, editor):
    """Visitors with a session and without, in turns."""
    other = anonymous(subject)
    mediawiki.log_in(other, wiki)
    for name, client in (("an editor", editor), ("another session with analytics", other)):
        client.cookies.update(ANALYTICS)
        answers = []
        for _ in range(5):
            answers.append(client.get(PAGE))
            crowd = anonymous(subject).get(PAGE)
            if is_personal(crowd):
                report.check("mediawiki: the crowd never gets a page of a session", False, describe(crowd))
        is_own = all(is_personal(answer) and not answer.is_hit for answer in answers)
        report.check(f"mediawiki: {name} never gets the shared page", is_own, [describe(one) for one in answers])
    is_public = not is_personal(anonymous(subject).get(PAGE)) and anonymous(subject).get(PAGE).is_hit
    report.check("mediawiki: and the crowd still gets the shared one", is_public)


def strangers(report, subject):
    """What a purge says to those who ask for it in other ways."""
    client = anonymous(subject)
    client.get(PAGE)
    elsewhere = client.request("PURGE", f"http://elsewhere.example{PAGE}", fields={"Host": "elsewhere.example"})
    report.check("mediawiki: a purge for another host removes nothing", elsewhere.status == 404, elsewhere.status)
    report.check("mediawiki: the page is still there", client.get(PAGE).is_hit)
    by_path = client.request("PURGE", PAGE)
    report.check("mediawiki: a purge by path removes it", by_path.status == 200, by_path.status)
    client.get(PAGE)
    absolute = client.request("PURGE", f"{subject.url}{PAGE}", fields={"Host": subject.host})
    report.check("mediawiki: a purge by absolute URL removes it", absolute.status == 200, absolute.status)
    report.check("mediawiki: and the next visitor is a miss", not client.get(PAGE).is_hit)


def describe(answer):
    return f"{answer.status} {answer.cache_word} {answer.field('cache-control')} {answer.field('vary')}"
