"""`serve` alone on a copy of WordPress: pages are learned, kept for longer than their lifetime of a second, and show what an editor
changes at the next request, and what another program changes within two seconds.
"""

import os
import time

from harness import wordpress
from harness.client import Client
from harness.learned import SITES
from harness.workdir import Workdir
from harness.wordpress_blog import ADMIN
from scenarios.wordpress_plugin_installed import copy_of_wordpress, serve, write

LIFETIME_SECONDS = 1
# Pages are learned once the tables are known, and kept once the tables were polled.
KEPT_SECONDS = 90
LOOK_SECONDS = 0.5
FOREIGN_SECONDS = 2.0
# Scripts that are newer are not learned.
OLD_SECONDS = 600


def run(options, report):
    if options.subject != "mayfly":
        report.note("left out: only Mayfly's own configuration learns")
        return
    with Workdir("served", keep=options.keep, parent=SITES) as workdir:
        site = wordpress.Site(workdir)
        root = copy_of_wordpress(workdir)
        old = time.time() - OLD_SECONDS
        for name in ("wordpress/wp-config.php", "config.php"):
            os.utime(workdir.join(name), (old, old))
        subject = serve(options, workdir, root)
        with subject.judged(report, "served"):
            site.install(subject, ADMIN)
            judge(report, site, subject)


def judge(report, site, subject):
    def visit():
        return Client(subject.address, subject.port).get("/")

    def is_kept():
        """A page that is older than its lifetime, and is none that is shown while it is made anew."""
        until = time.monotonic() + KEPT_SECONDS
        while time.monotonic() < until:
            answer = visit()
            if answer.is_hit and int(answer.field("age")) > LIFETIME_SECONDS:
                return True
            time.sleep(LOOK_SECONDS)
        return False

    report.check("served: a page is kept for longer than its lifetime", is_kept())
    editor = Client(subject.address, subject.port)
    wordpress.log_in(editor, ADMIN)
    report.check("served: it is kept beside a login", is_kept())
    answer = write(editor, "posts/1", title="Changed at once")
    report.check("served: the editor writes", answer.status == 200, answer.text[:300])
    report.check("served: the next visitor sees the change", "Changed at once" in visit().text)
    report.check("served: it is kept again", is_kept())
    site.select("UPDATE wp_posts SET post_title = 'Changed elsewhere' WHERE ID = 1")
    time.sleep(FOREIGN_SECONDS)
    report.check("served: what another program writes is seen two seconds later", "Changed elsewhere" in visit().text)
