"""`serve --wordpress-plugin` on a copy of WordPress whose folders are its own: pages are kept for longer than a second,
and the next visitor sees what an editor changes.
"""

import json
import os
import re
import shutil
import subprocess
import time
import urllib.parse

from harness import subject as subjects
from harness import wordpress
from harness.client import Client
from harness.workdir import Workdir, listens, wait_for

# Without the plug-in a page is kept for one.
MORE_SECONDS = 1.5
# WordPress's cron is called each minute.
CRON_SECONDS = 150
# What is due earlier, WordPress publishes at once.
SCHEDULED_SECONDS = 62


def run(options, report):
    if not options.subject.startswith("mayfly"):
        report.note("left out: nginx installs nothing")
        return
    with Workdir("installed", keep=options.keep) as workdir:
        site = wordpress.Site(workdir)
        root = copy_of_wordpress(workdir)
        port = workdir.free_port()
        command = [
            os.path.abspath(options.binary), "serve", root, "--listen", f"{workdir.address}:{port}",
            "--workers", str(options.workers), "--wordpress-plugin",
        ]  # fmt: skip
        process = workdir.spawn("mayfly", command)
        wait_for("mayfly", listens(workdir.address, port), subjects.START_SECONDS, process)
        subject = subjects.Subject(workdir, "mayfly", process, port)
        failed = report.failed
        try:
            installed(report, root)
            admin = wordpress.User("root1", "Ada Admin", "administrator")
            site.install(subject, admin)
            tell(report, subject, admin)
        finally:
            wrong = subject.stop()
            if report.failed > failed:
                report.note(subject.logs())
        report.check("installed: the server ran to the end", not wrong, wrong)


def copy_of_wordpress(workdir):
    root = workdir.join("wordpress")
    shutil.copytree(wordpress.ROOT, root, ignore=shutil.ignore_patterns(".htaccess", "wp-config.php"))
    with open(workdir.join("config.php"), encoding="utf-8") as file:
        settings = re.sub(r".*(?:WP_CONTENT_DIR|WPMU_PLUGIN_DIR).*\n", "", file.read())
    rest = "$table_prefix = 'wp_';\ndefined('ABSPATH') || define('ABSPATH', __DIR__ . '/');\nrequire_once ABSPATH . 'wp-settings.php';\n"
    workdir.write("wordpress/wp-config.php", settings + rest, owner="www-data", mode=0o600)
    # As most sites are: PHP may write where plug-ins and uploads go.
    subprocess.run(["chown", "-R", "www-data:", f"{root}/wp-content"], check=True)
    return root


def installed(report, root):
    loader = f"{root}/wp-content/mu-plugins/mayfly.php"
    about = os.stat(loader) if os.path.exists(loader) else None
    is_right = about and about.st_uid == 0 and about.st_mode & 0o777 == 0o644
    report.check("installed: the plug-in is there, PHP may read it and not write it", is_right, about)


def tell(report, subject, admin):
    def visit(target):
        return Client(subject.address, subject.port).get(target)

    # Their addresses are WordPress's to choose.
    post, other = (urllib.parse.urlsplit(visit(target).field("location")).path for target in ("/?p=1", "/?page_id=2"))
    feed = "/?feed=rss2"
    pages = ("/", post, other, feed)
    for page in pages:
        visit(page)
    time.sleep(MORE_SECONDS)
    # A copy that is shown while it is renewed is none.
    kept = [page for page in pages if visit(page).field("x-cache") == "HIT"]
    report.check("installed: pages are kept for longer than a second", kept == list(pages), kept)
    head = visit("/")
    fields = [name for name in ("surrogate-key", "x-accel-expires") if head.field(name)]
    report.check("installed: what the plug-in says is for the server alone", not fields, fields)
    editor = Client(subject.address, subject.port)
    wordpress.log_in(editor, admin)
    nonce = editor.get("/wp-admin/admin-ajax.php?action=rest-nonce").text.strip()
    answer = editor.request(
        "POST", "/index.php?rest_route=/wp/v2/posts/1", body=json.dumps({"title": "Changed at once"}).encode(),
        fields={"Content-Type": "application/json", "X-WP-Nonce": nonce},
    )  # fmt: skip
    report.check("installed: the editor writes", answer.status == 200, answer.text[:300])
    for page in ("/", post, feed):
        seen = visit(page)
        report.check(f"installed: {page} is new for the next visitor", not seen.is_hit and "Changed at once" in seen.text, seen.status)
    report.check("installed: the page that does not show it stays", visit(other).field("x-cache") == "HIT")
    due = {"title": "On time", "status": "future", "date_gmt": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + SCHEDULED_SECONDS))}
    answer = editor.request(
        "POST", "/index.php?rest_route=/wp/v2/posts", body=json.dumps(due).encode(),
        fields={"Content-Type": "application/json", "X-WP-Nonce": nonce},
    )  # fmt: skip
    report.check("installed: a post is scheduled", answer.status == 201 and '"future"' in answer.text, answer.text[:300])
    until = time.monotonic() + CRON_SECONDS
    while "On time" not in visit("/").text and time.monotonic() < until:
        time.sleep(0.5)
    report.check("installed: it is seen, though no visitor has a page made", "On time" in visit("/").text)
    own = editor.get("/")
    report.check("installed: who is logged in gets a page of their own", not own.is_hit and "wp-admin-bar" in own.text)
    forbidden = visit("/wp-content/mu-plugins/mayfly.php")
    report.check("installed: nobody visits the plug-in", forbidden.status in (403, 404) or forbidden.text == "", forbidden.status)
