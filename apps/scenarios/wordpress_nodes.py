"""WordPress on three nodes (`cache_nodes`) with the plug-in: each has a memory of its own, all have the database.

An editor changes a post at one node after the other; the next visitor of each of the others sees it. A login at one is
one at all, and an upload into the shared folder is there at all.
"""

import copy
import json
import os
import subprocess

from harness import subject as subjects
from harness import wordpress
from harness.client import Client
from harness.workdir import Workdir, listens, wait_for

LIFETIME_SECONDS = 3600
NODES = 3
EDITS = 6
LEASE_SECONDS = 30
PLUGIN = os.path.join(wordpress.FILES, "..", "..", "php", "wordpress", "build.sh")
PAGES = ("/", "/first/", "/feed/")
# A picture of one point.
GIF = bytes.fromhex("47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b")


def run(options, report):
    if not options.subject.startswith("mayfly"):
        report.note("left out: nginx shares no purges")
        return
    options = copy.copy(options)
    options.ttl, options.workers = LIFETIME_SECONDS, 2
    with Workdir("nodes", keep=options.keep) as workdir:
        site = wordpress.Site(workdir)
        subprocess.run([PLUGIN, "--must-use", workdir.join("mu-plugins")], check=True)
        engine = workdir.free_port()
        redis = workdir.spawn("redis", ["redis-server", "--bind", workdir.address, "--port", str(engine), "--save", ""])
        wait_for("redis", listens(workdir.address, engine), subjects.START_SECONDS, redis)
        nodes = [start(workdir, options, at, f"redis://{workdir.address}:{engine}") for at in range(NODES)]
        failed = report.failed
        admin = wordpress.User("root1", "Ada Admin", "administrator")
        site.install(nodes[0], admin)
        site.seed([admin], [{"title": "First", "slug": "first", "author": "root1", "content": "<p>The first post.</p>"}])
        Story(report, nodes, admin).tell(site.posts["first"])
        for node in nodes:
            wrong = node.stop()
            report.check(f"{node.name}: the server ran to the end", not wrong, wrong)
        if report.failed > failed:
            for node in nodes:
                report.note(node.logs())


def start(workdir, options, at, engine):
    """What `serve` writes for WordPress, as one of several nodes."""
    port = workdir.free_port()
    serve = [os.path.abspath(options.binary), "serve", wordpress.ROOT, "--listen", f"{workdir.address}:{port}",
             "--ttl", f"{options.ttl}s", "--workers", str(options.workers)]  # fmt: skip
    printed = subprocess.run([*serve, "--print-config"], check=True, capture_output=True, text=True, timeout=30).stdout
    text = printed.replace("\nhttp {", f"\nhttp {{\n    cache_nodes {engine};", 1)
    if text == printed:
        raise RuntimeError("serve --print-config writes no http block")
    config = workdir.write(f"node{at}.conf", text)
    stay = [] if "daemon " in text else ["-g", "daemon off;"]
    process = workdir.spawn(f"node{at}", [serve[0], "-c", config, *stay])
    wait_for(f"node{at}", listens(workdir.address, port), subjects.START_SECONDS, process)
    return subjects.Subject(workdir, f"node{at}", process, port)


class Story:
    def __init__(self, report, nodes, admin):
        self.report, self.nodes, self.admin = report, nodes, admin
        # The site has one name, at whichever node it is asked for.
        self.name = {"Host": nodes[0].host}
        self.editor = self.client(nodes[0])
        wordpress.log_in(self.editor, admin)

    def client(self, node, cookies=None):
        return Client(node.address, node.port, cookies, self.name)

    def tell(self, post):
        for node in self.nodes:
            wait_for(f"a lease of {node.name}", lambda: self.is_kept(node, "/first/"), LEASE_SECONDS)
        self.logins()
        for turn in range(EDITS):
            self.edit(post, turn)
        self.upload()

    def is_kept(self, node, page):
        return self.client(node).get(page).is_hit

    def logins(self):
        at = {node.name: self.client(node, self.editor.cookies).get("/wp-admin/").status for node in self.nodes}
        self.report.check("nodes: a login at one is one at all", set(at.values()) == {200}, at)

    def ask(self, node, path, body, fields):
        nonce = self.client(node, self.editor.cookies).get("/wp-admin/admin-ajax.php?action=rest-nonce").text.strip()
        editor = self.client(node, self.editor.cookies)
        answer = editor.request("POST", f"/wp-json/wp/v2/{path}", body, {"X-WP-Nonce": nonce, **fields})
        if answer.status not in (200, 201):
            raise RuntimeError(f"POST {path}: {answer.status} {answer.text[:300]}")
        return json.loads(answer.text)

    def edit(self, post, turn):
        writer, title = self.nodes[turn % NODES], f"Title number {turn}"
        # A node makes a page for its first visitor, and once more for comparison.
        kept = [page for page in PAGES for node in self.nodes if any(self.is_kept(node, page) for _ in range(3))]
        self.report.check(f"nodes: edit {turn}: all nodes keep all pages", len(kept) == len(PAGES) * NODES, kept)
        self.ask(writer, f"posts/{post}", json.dumps({"title": title}).encode(), {"Content-Type": "application/json"})
        old = [f"{page} at {node.name}" for page in PAGES for node in self.nodes if title not in self.client(node).get(page).text]
        self.report.check(f"nodes: edit {turn}, at {writer.name}: the next visitor of each node sees it", not old, old)

    def upload(self):
        fields = {"Content-Type": "image/gif", "Content-Disposition": 'attachment; filename="point.gif"'}
        made = self.ask(self.nodes[1], "media", GIF, fields)
        path = "/" + made["source_url"].split("/", 3)[3]
        there = {node.name: self.client(node).get(path).body == GIF for node in self.nodes}
        self.report.check("nodes: an upload is there at all", all(there.values()), there)
