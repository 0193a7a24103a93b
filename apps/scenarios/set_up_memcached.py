"""Full pages in memcached (files/set_ups/memcached.conf), put there by the application.

PHP makes a page once and is not asked again until its data changes: then the application takes back
the pages that were made of it, and no others. What is personal is included from PHP.
"""

from harness import set_ups
from harness import subject as subjects
from harness.client import Client
from harness.memcached import Memcached
from harness.set_ups import until
from harness.workdir import Workdir

CLIENTS = 50
REQUESTS = 2400
ARTICLES = (("anna", "Trees"), ("bert", "Rivers"), ("anna", "Hills"))
# Each page of the site and what it is made of.
PAGES = ("/", "/article/1", "/article/2", "/article/3", "/author/anna", "/author/bert")


def run(options, report):
    with Workdir("memcached", keep=options.keep) as workdir:
        site = set_ups.Site(workdir, "news.php")
        memcached = Memcached(workdir)
        php = subjects.start_php_fpm(workdir, options.workers)
        subject = set_ups.start(
            workdir, options, "memcached", php=php, root=site.root, data=site.data, memcached=memcached.server
        )
        failed = report.failed
        for author, title in ARTICLES:
            answer = visitor(subject).post("/article", form={"author": author, "title": title})
            report.check(f"memcached: an article is written ({title})", answer.status == 303, describe(answer))
        once_by_php(report, subject)
        a_crowd(report, subject, site)
        data_changes(report, subject)
        searches(report, subject)
        personal(report, subject, site)
        without_memcached(report, subject, memcached)
        report.check("memcached: the server ran to the end", not (wrong := subject.stop()), wrong)
        if report.failed > failed:
            report.note(subject.logs())
            report.note(workdir.log_tail("subject/error"))


def visitor(subject, **cookies):
    return Client(subject.address, subject.port, cookies)


def made_by(page):
    return page.field("x-page")


def look(subject):
    """Which of the pages came from PHP."""
    return [target for target in PAGES if made_by(visitor(subject).get(target)) == "PHP"]


def once_by_php(report, subject):
    report.check("memcached: PHP makes each page", look(subject) == list(PAGES))
    report.check("memcached: once", look(subject) == [])
    page = visitor(subject).get("/author/anna")
    is_right = "Trees by anna" in page.text and "Hills by anna" in page.text and "Rivers" not in page.text
    is_html = (page.field("content-type") or "").startswith("text/html")
    report.check("memcached: what is stored is the page", is_right and is_html, describe(page))
    missing = visitor(subject).get("/article")
    report.check("memcached: what does not exist is PHP's to say", missing.status == 404, describe(missing))


def a_crowd(report, subject, site):
    before = site.executions()
    answers = set_ups.crowd(subject, (PAGES[number % len(PAGES)] for number in range(REQUESTS)), CLIENTS)
    set_ups.check_crowd(report, f"memcached: {CLIENTS} clients at once", answers, REQUESTS)
    ran = site.executions() - before
    report.check("memcached: without PHP", ran == 0, ran)


def data_changes(report, subject):
    answer = visitor(subject).post("/article/2", form={"title": "Lakes"})
    report.check("memcached: a POST gets to PHP", answer.status == 303, describe(answer))
    again = look(subject)
    wanted = ["/", "/article/2", "/author/bert"]
    report.check("memcached: a changed article takes back the pages that show it, and no others", again == wanted, again)
    shown = visitor(subject).get("/").text
    report.check("memcached: which show the change", "Lakes by bert" in shown and "Rivers" not in shown, shown)
    visitor(subject).post("/article", form={"author": "anna", "title": "Deserts"})
    again = look(subject)
    report.check("memcached: a new one takes back the lists that it belongs to", again == ["/", "/author/anna"], again)


def searches(report, subject):
    def found():
        return visitor(subject).get("/search?word=e")

    first, second = found(), found()
    report.check("memcached: a search is made by PHP", made_by(first) == "PHP", describe(first))
    # Its second may have been over just then.
    is_kept = made_by(second) == "memcached" or until(lambda: made_by(found()) == "memcached")
    report.check("memcached: and kept", is_kept and second.body == first.body)
    visitor(subject).post("/article/1", form={"title": "Meadows"})
    report.check("memcached: for a second, after which it is right again", until(lambda: "Meadows" in found().text))


def personal(report, subject, site):
    visitor(subject).get("/article/3")
    for name in ("Anna", "Bert"):
        page = visitor(subject, name=name).get("/article/3")
        is_own = made_by(page) == "memcached" and f"<p>Hello {name}</p>" in page.text
        report.check(f"memcached: {name} is greeted, in a page from memcached", is_own, page.text)
    guest = visitor(subject).get("/article/3")
    report.check("memcached: a guest is not", "<p>Hello guest</p>" in guest.text, guest.text)
    ran = site.executions("/own/greeting")
    report.check("memcached: PHP made the two greetings", ran == 2, ran)


def without_memcached(report, subject, memcached):
    memcached.stop()
    pages = [visitor(subject).get(target) for target in PAGES]
    is_all = all(page.status == 200 and made_by(page) == "PHP" for page in pages)
    report.check("memcached: when it is gone, PHP makes all pages", is_all, [describe(page) for page in pages])


def describe(answer):
    return f"{answer.status} {made_by(answer)} {len(answer.body)} bytes"
