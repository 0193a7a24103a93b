"""WordPress behind a proxy that ends TLS (nginx), `mayfly serve --behind` the proxy.

Visitors by https and by http, a login, comments from addresses of their own,
and strangers who forge what only the proxy may say. Then the same site without
`--behind`: nobody is believed.
"""

import copy
import os
import re

from harness import subject as subjects
from harness import tls, wordpress
from harness.client import Client
from harness.wordpress import seen
from harness.workdir import Workdir

# Long enough for every third request to be answered from memory: the first is a visitor's own, the second compared.
LIFETIME_SECONDS = 60
FORGED = "203.0.113.9"
PAGES = ("/", "/first/", "/wp-login.php", "/feed/")


def run(options, report):
    if not options.subject.startswith("mayfly"):
        report.note("left out: --behind is Mayfly's")
        return
    options = copy.copy(options)
    options.ttl = LIFETIME_SECONDS
    with Workdir("behind-tls", keep=options.keep) as workdir:
        site = wordpress.Site(workdir, plugins=("visitor.php",))
        more = ["--behind", tls.PROXY_ADDRESS]
        subject = subjects.start(workdir, options, "wordpress", wordpress.ROOT, more=more)
        failed = report.failed
        try:
            proxy = tls.start_proxy(workdir, subject)
            admin = install(site, subject, proxy)
            no_redirect_loop(report, site, proxy, admin)
            schemes_are_told_apart(report, proxy)
            true_addresses(report, site, subject, proxy)
            report.check("tls: the server ran to the end", not (wrong := subject.stop()), wrong)
            nobody_is_believed(report, workdir, options, site)
        finally:
            if report.failed > failed:
                report.note(subject.logs())
                report.note(workdir.log_tail("proxy/error"))


def install(site, subject, proxy):
    """By https, so that the site's own address becomes https by what WordPress was told."""
    admin = wordpress.User("root1", "Ada Admin", "administrator")
    site.install(subject, admin, proxy.client("https"))
    posts = [{"title": "First", "slug": "first", "author": "root1", "content": "<p>The first post.</p>"}]
    site.seed([admin], posts)
    return admin


def no_redirect_loop(report, site, proxy, admin):
    [[address]] = site.select("SELECT option_value FROM wp_options WHERE option_name = 'siteurl'")
    report.check("tls: the site was installed as https", address == f"https://{proxy.address}", address)
    visitor = proxy.client("https")
    for page in PAGES:
        answers = proxy.follow(visitor, page)
        is_direct = [one.status for one in answers] == [200]
        report.check(f"tls: {page} is answered without a redirect", is_direct, journey(answers))
        text = answers[-1].text.replace("\\/", "/")
        mixed = re.findall(rf".{{20}}http://{re.escape(proxy.address)}.{{20}}", text)
        report.check(f"tls: {page} links to no http address of the site", not mixed, mixed[:3])
    answers = proxy.follow(visitor, "/first")
    is_led = [one.status for one in answers] == [301, 200]
    report.check("tls: /first leads to /first/ and no further", is_led, journey(answers))
    for number, wanted in enumerate((False, False, True)):
        page = visitor.get("/first/?look")
        report.check(f"tls: view {number + 1} of a page knows that it is encrypted", is_encrypted(page), seen(page))
        report.check(f"tls: view {number + 1} is {'a hit' if wanted else 'a miss'}", page.is_hit == wanted,
                     page.cache_word)  # fmt: skip
    wordpress.log_in(visitor, admin)
    answers = proxy.follow(visitor, "/wp-admin/")
    report.check("tls: the administrator gets in", [one.status for one in answers] == [200], journey(answers))


def schemes_are_told_apart(report, proxy):
    """One address by both schemes; by http it leads to https, which must not come out there."""
    for order in (("http", "https"), ("https", "http")):
        name = " before ".join(order)
        for page, by_http in ((f"/first/?plain={order[0]}", 200), (f"/first/?force_ssl={order[0]}", 301)):
            wanted = {"http": by_http, "https": 200}
            for number in range(3):
                for scheme in order:
                    answer = proxy.client(scheme).get(page)
                    is_own = answer.status == wanted[scheme]
                    if answer.status == 200:
                        is_own &= is_encrypted(answer) == (scheme == "https")
                    is_own &= answer.is_hit == (number == 2)
                    report.check(f"tls: {name}: {scheme} gets its own {page}, view {number + 1}", is_own,
                                 f"{answer.status} {answer.cache_word} {answer.field('location')}")  # fmt: skip
        answers = proxy.follow(proxy.client("http"), f"/first/?force_ssl={order[0]}")
        report.check(f"tls: {name}: http is led to https once", [one.status for one in answers] == [301, 200],
                     journey(answers))  # fmt: skip


def true_addresses(report, site, subject, proxy):
    forged = {"X-Forwarded-For": FORGED, "X-Real-IP": FORGED, "Forwarded": f"for={FORGED}"}
    claims = {**forged, "X-Forwarded-Proto": "https", "Host": proxy.address}
    strangers = Client(subject.address, subject.port, source="127.77.1.4", fields=claims)
    for name, client, address in (
        ("a visitor by https", proxy.client("https", source="127.77.1.1"), "127.77.1.1"),
        ("a visitor by http", proxy.client("http", source="127.77.1.2"), "127.77.1.2"),
        ("a forger by https", proxy.client("https", source="127.77.1.3", fields=forged), "127.77.1.3"),
        ("a forger past the proxy", strangers, "127.77.1.4"),
    ):
        stored = address_of_comment(site, client)
        report.check(f"tls: the comment of {name} has the visitor's address", stored == address, stored)
    for number in range(2):
        page = strangers.get("/first/?stranger")
        report.check(f"tls: a forger past the proxy is not encrypted, view {number + 1}", not is_encrypted(page),
                     seen(page))  # fmt: skip
    page = proxy.client("https").get("/first/?stranger")
    report.check("tls: and nobody by https gets the forger's page", is_encrypted(page) and not page.is_hit, seen(page))
    # nginx passes on what it does not set itself: the host counts, in the key as well.
    proxy.client("https", fields={"X-Forwarded-Host": "elsewhere.example"}).get("/first/?host")
    page = proxy.client("https").get("/first/?host")
    is_own = is_encrypted(page) and "elsewhere.example" not in page.text
    report.check("tls: nobody gets the page of a forged host", is_own and not page.is_hit, seen(page))


def nobody_is_believed(report, workdir, options, site):
    """What the proxy says, said to a server that was not told of a proxy."""
    subject = subjects.start(workdir, options, "wordpress", wordpress.ROOT)
    told = {"Host": workdir.address, "X-Forwarded-Proto": "https", "X-Forwarded-For": FORGED, "X-Real-IP": FORGED}
    client = Client(subject.address, subject.port, fields=told)
    page = client.get("/first/?alone")
    report.check("tls: without --behind no page is encrypted", not is_encrypted(page), seen(page))
    forced = client.get("/first/?force_ssl=alone")
    report.check("tls: without --behind a page that insists on https leads there", forced.status == 301, forced.status)
    stored = address_of_comment(site, client)
    report.check("tls: without --behind a comment has the proxy's address", stored == tls.PROXY_ADDRESS, stored)
    report.check("tls: that server ran to the end as well", not (wrong := subject.stop()), wrong)


def address_of_comment(site, client):
    """Writes a comment; the address that WordPress keeps of who wrote it."""
    text = f"comment {os.urandom(8).hex()}"
    form = {"comment": text, "comment_post_ID": str(site.posts["first"]), "comment_parent": "0",
            "author": "Cora", "email": "cora@example.test", "url": ""}  # fmt: skip
    answer = client.post("/wp-comments-post.php", form=form)
    rows = site.select(f"SELECT comment_author_IP FROM wp_comments WHERE comment_content = '{text}'")
    return rows[0][0] if rows else f"no comment: {answer.status} {answer.text[:200]}"


def is_encrypted(page):
    told = seen(page)
    return (told.get("ssl"), told.get("port"), told.get("scheme")) == (True, "443", "https")


def journey(answers):
    return [f"{one.status} {one.url} {one.field('location') or ''}" for one in answers]
