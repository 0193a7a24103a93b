"""MediaWiki (Debian's package) with $wgUseCdn under `mayfly serve`, which reads in LocalSettings.php where purges go.

Here, also with `serve --tls`: pages are kept for longer than `--ttl`, and the next anonymous visitor sees an
edit, by the form and by the API. Elsewhere or nowhere: no page is older than `--ttl` and README's ten seconds.
The server sees to it that the wiki's jobs are run although nobody makes it make a page.
"""

import os
import ssl
import time

from harness import mediawiki
from harness import subject as subjects
from harness.client import Client
from harness.workdir import Workdir, listens, wait_for

# The wiki sends its purges after its answer, when the machine lets it; the page itself would stay for hours.
PURGED_SECONDS = 30.0
# The wiki's pages differ each time: it takes a few views until it is seen that they are the same for all.
SHARED_SECONDS = 20
# README: for so long beyond --ttl a page may be shown while a new one is made.
WHILE_RENEWED_SECONDS = 10
# A request runs all jobs that there are; the first comes ten seconds after the first response.
JOBS = "$wgJobRunRate = 100;\n"
JOBS_WITHIN_SECONDS = 60
TITLE, TEMPLATE, SHOWING, EDITED = "Shared_page", "Template:Notice", "Showing_page", "Edited_page"


class Site:
    """A server with a folder of its own; all are the same wiki."""

    def __init__(self, workdir, options, wiki, name, settings, is_tls=False):
        port = workdir.free_port()
        host = f"{workdir.address}:{port}"
        scheme = "https" if is_tls else "http"
        servers = f"$wgServer = '{scheme}://{host}';\n$wgInternalServer = 'http://{host}';\n"
        root = wiki.document_root(f"root-{name}", servers + settings.format(host=host))
        self.process = workdir.spawn(name, [
            os.path.abspath(options.binary), "serve", root, "--listen", host, "--ttl", f"{round(options.ttl * 1000)}ms",
            "--workers", str(options.workers), *(["--tls", "--acme-state", workdir.mkdir("state")] if is_tls else []),
        ])  # fmt: skip
        wait_for(name, listens(workdir.address, port), subjects.START_SECONDS, self.process)
        self.name, self.workdir, self.port, self.tls = name, workdir, port, None
        if is_tls:
            self.tls = ssl.create_default_context()
            self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE
        self.editor = self.visitor()
        mediawiki.log_in(self.editor, wiki)

    def visitor(self):
        return Client(self.workdir.address, self.port, tls=self.tls)

    def page(self, title):
        return self.visitor().get(f"/wiki/{title}")

    def share(self, title):
        """Asks for a page until it comes from memory."""
        wait_for(f"{title} in memory", lambda: self.page(title).is_hit, SHARED_SECONDS)

    def log(self):
        return self.workdir.log_tail(self.name, 1000)


def run(options, report):
    if options.subject != "mayfly":
        report.note("left out: it is about what serve does")
        return
    with Workdir("mediawiki-serve", keep=options.keep) as workdir:
        wiki = mediawiki.Wiki(workdir, workdir.free_port())
        sites = []

        def site(name, settings, is_tls=False):
            sites.append(Site(workdir, options, wiki, name, settings, is_tls))
            return sites[-1]

        failed = report.failed
        own = "$wgCdnServers = [ '{host}' ];\n"
        # One of them does the wiki's jobs, whose purges go where its own go.
        told = [site("own", own + JOBS), site("own-tls", own, is_tls=True)]
        elsewhere = f"$wgCdnServers = [ '{workdir.address}:{workdir.free_port()}' ];"
        untold = [site("another", elsewhere), site("empty", "$wgCdnServers = [];"), site("none", "")]
        for each in told:
            edits_are_seen(report, options, each)
        jobs_are_run(report, wiki, told[0])
        change_nothing(told[0])
        # Longer than the server waits for the purge of an edit.
        old_pages_end(report, options, untold)
        nothing_has_ended(report, told[0])
        for each in sites:
            report.check(f"{each.name}: the server ran to the end", not (wrong := subjects.stop(each.process)), wrong)
        if report.failed > failed:
            for each in sites:
                report.note(f"{each.name}: {each.log()}")


def edits_are_seen(report, options, site):
    asked, missed = [], 0
    mediawiki.edit(site.editor, TITLE, "the first text")
    for edit in (mediawiki.edit, mediawiki.edit_by_form):
        site.share(TITLE)
        time.sleep(options.ttl + 0.3)
        kept = site.page(TITLE)
        report.check(f"{site.name}: a page is kept for longer than --ttl", kept.is_hit, describe(kept))
        text = f"edited at {time.time_ns()}"
        edit(site.editor, TITLE, text)
        until = time.monotonic() + PURGED_SECONDS
        asked.append(1)
        while not (is_seen := text in site.page(TITLE).text) and time.monotonic() < until:
            asked[-1] += 1
            time.sleep(0.02)
        missed += not is_seen
    report.check(
        f"{site.name}: {len(asked)} edits by API and form, each seen when its purge has come "
        f"(by visitor {max(asked)} at the latest)", not missed, asked,
    )  # fmt: skip


def jobs_are_run(report, wiki, site):
    """Pages with a template are purged by a job; visitors get pages from memory meanwhile."""
    mediawiki.edit(site.editor, TEMPLATE, "the first notice")
    mediawiki.edit(site.editor, SHOWING, "{{Notice}}")
    wiki.run_jobs()
    site.share(SHOWING)
    shown = site.page(SHOWING)
    report.check(f"{site.name}: a page with a template is in memory", shown.is_hit, describe(shown))
    # The wiki compares times of a second.
    time.sleep(1.1)
    mediawiki.edit(site.editor, TEMPLATE, "the second notice")
    until = time.monotonic() + JOBS_WITHIN_SECONDS
    while (page := site.page(SHOWING)).is_hit and time.monotonic() < until:
        time.sleep(0.1)
    is_seen = "the second notice" in page.text
    report.check(f"{site.name}: the template changes: a job is run, and the page made anew", is_seen, describe(page))


def change_nothing(site):
    """An edit whose purge no one sends. Clients that take gzip are told so as well."""
    site.share(TITLE)
    mediawiki.edit(site.editor, TEMPLATE, "the second notice")
    site.editor.accepts_gzip = True
    mediawiki.edit(site.editor, TEMPLATE, "the second notice")
    site.editor.accepts_gzip = False


def nothing_has_ended(report, site):
    kept = site.page(TITLE)
    report.check(f"{site.name}: edits that change nothing end nothing", kept.is_hit, describe(kept))
    report.check(f"{site.name}: and the log misses no purge", "no purge came" not in site.log(), site.log())


def old_pages_end(report, options, sites):
    """An edit through one of them is an edit for all: it is the same wiki."""
    first = sites[0]
    mediawiki.edit(first.editor, EDITED, "an old text")
    for site in sites:
        site.share(EDITED)
    mediawiki.edit(first.editor, EDITED, "a new text")
    edited = time.monotonic()
    time.sleep(options.ttl + WHILE_RENEWED_SECONDS)
    for site in sites:
        page = site.page(EDITED)
        report.check(
            f"{site.name}: no page is older than --ttl and ten seconds where purges go elsewhere",
            "a new text" in page.text, f"{time.monotonic() - edited:.1f} s: {describe(page)}",
        )  # fmt: skip


def describe(answer):
    return f"{answer.status} {answer.cache_word} {answer.field('cache-control')} age {answer.field('age')}"
