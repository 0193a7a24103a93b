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
# What WordPress takes in place of its own, and of which the plug-in cannot see what it reads.
DROP_INS = {"object-cache.php": "wordpress_object_cache.php", "db.php": "wordpress_db.php"}
DEPLOYED_SECONDS = 90
SETTLED_SECONDS = 30


def run(options, report):
    if not options.subject.startswith("mayfly"):
        report.note("left out: nginx installs nothing")
        return
    with Workdir("installed", keep=options.keep) as workdir:
        site = wordpress.Site(workdir)
        root = copy_of_wordpress(workdir)
        subject = serve(options, workdir, root, "--wordpress-plugin")
        with subject.judged(report, "installed"):
            installed(report, root)
            admin = wordpress.User("root1", "Ada Admin", "administrator")
            site.install(subject, admin)
            tell(report, subject, admin)
            for drop_in, source in DROP_INS.items():
                past_the_database(report, subject, admin, f"{root}/wp-content/{drop_in}", source)


def serve(options, workdir, root, *more):
    """As people type it: without a lifetime, which `subject.start` gives."""
    port = workdir.free_port()
    place = f"{workdir.address}:{port}"
    command = [os.path.abspath(options.binary), "serve", root, "--listen", place, "--workers", str(options.workers), *more]
    process = workdir.spawn("mayfly", command)
    wait_for("mayfly", listens(workdir.address, port), subjects.START_SECONDS, process)
    return subjects.Subject(workdir, "mayfly", process, port)


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


def write(editor, path, **fields):
    nonce = editor.get("/wp-admin/admin-ajax.php?action=rest-nonce").text.strip()
    return editor.request(
        "POST", f"/index.php?rest_route=/wp/v2/{path}", body=json.dumps(fields).encode(),
        fields={"Content-Type": "application/json", "X-WP-Nonce": nonce},
    )  # fmt: skip


def past_the_database(report, subject, admin, path, source):
    """With a drop-in, not all that a page shows is read where the plug-in sees it: pages are kept for `--ttl`, and what
    an editor changes is seen at once nevertheless."""
    name = os.path.basename(path)

    def visit():
        return Client(subject.address, subject.port).get("/")

    def is_kept():
        visit(), visit()
        time.sleep(MORE_SECONDS)
        return visit().field("x-cache") == "HIT"

    def becomes_kept(wanted):
        """It is so three times in a row in the end: a deployment ends pages once or twice, and PHP's workers see the new
        file one after the other."""
        until, in_a_row = time.monotonic() + DEPLOYED_SECONDS, 0
        while in_a_row < 3 and time.monotonic() < until:
            in_a_row = in_a_row + 1 if is_kept() == wanted else 0
        return in_a_row == 3

    report.check(f"installed: without {name} pages are kept", becomes_kept(True))
    shutil.copyfile(os.path.join(wordpress.FILES, source), path)
    report.check(f"installed: with {name} they are not vouched for", becomes_kept(False))
    editor = Client(subject.address, subject.port)
    wordpress.log_in(editor, admin)
    visit()
    answer = write(editor, "posts/1", title=f"With {name}")
    report.check(f"installed: with {name} the next visitor sees an edit", answer.status == 200 and f"With {name}" in visit().text)
    os.unlink(path)


def tell(report, subject, admin):
    def visit(target):
        return Client(subject.address, subject.port).get(target)

    # Their addresses are WordPress's to choose.
    post, other = (urllib.parse.urlsplit(visit(target).field("location")).path for target in ("/?p=1", "/?page_id=2"))
    feed = "/?feed=rss2"
    pages = ("/", post, other, feed)
    # What WordPress's first cron changes may end a page once more.
    caches, until = {}, time.monotonic() + SETTLED_SECONDS
    while set(caches.values()) != {"HIT"} and time.monotonic() < until:
        for page in pages:
            visit(page)
        time.sleep(MORE_SECONDS)
        # A copy that is shown while it is renewed is none.
        caches = {page: visit(page).field("x-cache") for page in pages}
    report.check("installed: pages are kept for longer than a second", set(caches.values()) == {"HIT"}, caches)
    head = visit("/")
    fields = [name for name in ("surrogate-key", "x-accel-expires") if head.field(name)]
    report.check("installed: what the plug-in says is for the server alone", not fields, fields)
    editor = Client(subject.address, subject.port)
    wordpress.log_in(editor, admin)
    answer = write(editor, "posts/1", title="Changed at once")
    report.check("installed: the editor writes", answer.status == 200, answer.text[:300])
    for page in ("/", post, feed):
        seen = visit(page)
        report.check(f"installed: {page} is new for the next visitor", not seen.is_hit and "Changed at once" in seen.text, seen.status)
    report.check("installed: the page that does not show it stays", visit(other).field("x-cache") == "HIT")
    due = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + SCHEDULED_SECONDS))
    answer = write(editor, "posts", title="On time", status="future", date_gmt=due)
    report.check("installed: a post is scheduled", answer.status == 201 and '"future"' in answer.text, answer.text[:300])
    until = time.monotonic() + CRON_SECONDS
    while "On time" not in visit("/").text and time.monotonic() < until:
        time.sleep(0.5)
    report.check("installed: it is seen, though no visitor has a page made", "On time" in visit("/").text)
    own = editor.get("/")
    report.check("installed: who is logged in gets a page of their own", not own.is_hit and "wp-admin-bar" in own.text)
    forbidden = visit("/wp-content/mu-plugins/mayfly.php")
    report.check("installed: nobody visits the plug-in", forbidden.status in (403, 404) or forbidden.text == "", forbidden.status)
