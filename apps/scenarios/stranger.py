"""A stranger follows docs/guide.md, with a browser beside: every command of its blocks is run as it stands there, but
for the folder, and prints what the guide says.

    serve -> a HIT -> the dashboard -> an edit, seen and purged -> why is this page not stored?
"""

import json
import os
import pty
import re
import subprocess
import threading
import time

from harness import guide, isolated_network, wordpress
from harness import subject as subjects
from harness.client import Client
from harness.steps import Steps
from harness.webdriver import Browser
from harness.workdir import Workdir, listens, wait_for
from scenarios.wordpress_plugin_installed import copy_of_wordpress

GUIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "guide.md")
FOLDER = "/var/www/html"
ADDRESS, PORT, DASHBOARD_PORT = "127.0.0.1", 8080, 8090
COMMAND_SECONDS = 60
# For so long it is remembered that a page may not be stored.
FORBIDDEN_SECONDS = 5.5
VISITS = 20
# What the guide has its reader write.
TITLE = "Seen at once"


def run(options, report):
    if not options.subject.startswith("mayfly"):
        report.note("left out: the guide is Mayfly's")
        return
    with isolated_network.entered(), Workdir("stranger", keep=options.keep) as workdir:
        Stranger(workdir, options, report).follow()


class Stranger:
    def __init__(self, workdir, options, report):
        self.report = report
        self.workdir = workdir
        self.site = wordpress.Site(workdir)
        self.root = copy_of_wordpress(workdir)
        # From here on as the guide has it.
        workdir.address = ADDRESS
        self.commands = iter(guide.commands(GUIDE))
        bin_folder = workdir.mkdir("bin", owner="root")
        os.symlink(os.path.abspath(options.binary), f"{bin_folder}/mayfly")
        run_folder = workdir.mkdir("run", owner="root")
        self.environment = {
            **os.environ,
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
            # Other servers of this machine are none of the stranger's.
            "RUNTIME_DIRECTORY": run_folder,
            "LC_ALL": "C.UTF-8",
        }

    def follow(self):
        subject = self.serve()
        failed = self.report.failed
        try:
            self.admin = wordpress.User("root1", "Ada Admin", "administrator")
            self.site.install(subject, self.admin)
            # The guide begins with an installed WordPress; this one's front page led to the installation when the
            # server started, which is remembered for a while.
            time.sleep(FORBIDDEN_SECONDS)
            self.next("curl", "a page comes from memory the third time")
            self.browse(subject)
        finally:
            wrong = subject.stop()
            if self.report.failed > failed:
                self.report.note(self.said())
        self.report.check("stranger: the server ran to the end", not wrong, wrong)
        rest = [command.text for command in self.commands]
        self.report.check("stranger: every command of the guide was run", not rest, str(rest))

    def next(self, word, name):
        """Runs the guide's next command, in which this word stands."""
        command = next(self.commands)
        assert word in command.text, f"the guide goes on with {command.text!r}, and {word!r} was expected"
        done = subprocess.run(
            ["bash", "-c", command.text.replace(FOLDER, self.root)],
            env=self.environment, capture_output=True, text=True, timeout=COMMAND_SECONDS,
        )  # fmt: skip
        missing = command.missing(done.stdout)
        self.report.check(f"stranger: {name}", done.returncode == 0 and missing is None,
                          f"{command.text}\nlacks {missing!r}:\n{done.stdout}{done.stderr}")  # fmt: skip
        return done.stdout

    def serve(self):
        """In a terminal, as a person does: what is for that person alone is said there."""
        command = next(self.commands)
        assert command.text.startswith("mayfly serve "), command.text
        own, its = pty.openpty()
        self._heard = []
        text = command.text.replace(FOLDER, self.root)
        process = subprocess.Popen(
            ["bash", "-c", f"exec {text}"], env=self.environment, stdin=subprocess.DEVNULL, stdout=its, stderr=its
        )
        os.close(its)
        self.workdir.undo(lambda: process.poll() is None and process.terminate())
        threading.Thread(target=self._listen, args=(own,), daemon=True).start()
        wait_for("mayfly serve", listens(ADDRESS, PORT), subjects.START_SECONDS, process)
        wait_for("the address of the dashboard", lambda: "#token=" in self.said(), subjects.START_SECONDS, process)
        missing = command.missing(self.said().replace(self.root, FOLDER))
        self.report.check("stranger: serve says what the guide says", missing is None, f"lacks {missing!r}:\n{self.said()}")
        return subjects.Subject(self.workdir, "mayfly", process, PORT)

    def _listen(self, terminal):
        while True:
            try:
                heard = os.read(terminal, 4096)
            except OSError:  # the other end is closed
                return
            self._heard.append(heard)

    def said(self):
        return b"".join(self._heard).decode("utf-8", "replace").replace("\r\n", "\n")

    def browse(self, subject):
        origin = f"http://{ADDRESS}:{DASHBOARD_PORT}"
        browser = Browser(self.workdir, origin=origin)
        steps = Steps(self.report, browser, "stranger")
        address = re.search(r"http://\S+#token=[\w-]+", self.said()).group()
        with steps.step("the dashboard opens at the address that serve has said"):
            browser.open(address)
            browser.wait_text("version 0.")
            browser.wait_text("signed in as dashboard")
            assert browser.url == f"{origin}/", "the token stays in the address bar"
        with steps.step("HIT rises in the dashboard while a visitor reads"):
            before = total(browser, "HIT")
            reader = Client(ADDRESS, PORT)
            hits = sum(reader.get(path).field("x-cache") == "HIT" for path in ("/", "/?feed=rss2") * VISITS)
            assert hits >= VISITS, f"{hits} hits"
            browser.wait("HIT", lambda: total(browser, "HIT") >= before + hits)
        self.next("mayfly top", "top has the numbers as well")
        listed = self.next("mayfly explain --search", "the front page is listed among what is stored")
        front = re.search(rf"^.* {ADDRESS}/ +(\S+)$", listed, re.MULTILINE).group(1)
        with steps.step("an edit is counted as a purge, and its page is not found any more"):
            browser.click("#tab_cache")
            browser.type("#search_text", f"{ADDRESS}/")
            assert is_found(browser, f"{ADDRESS}/"), "the front page is not found"
            before = purged(browser)
            self.edit()
            browser.wait("a purge", lambda: purged(browser) > before)
            browser.wait("the page to be gone", lambda: not is_found(browser, f"{ADDRESS}/"))
        entry = subprocess.run(
            ["mayfly", "explain", "--entry", front], env=self.environment, capture_output=True, text=True, timeout=COMMAND_SECONDS
        )
        is_gone = entry.returncode != 0 or "removed by a purge" in entry.stdout
        self.report.check("stranger: the page with the old title is gone from memory", is_gone, entry.stdout + entry.stderr)
        self.next("curl", "a visitor sees the new title at once")
        told = self.next("mayfly explain http", "explain names the reason of a page that is not stored")
        word = re.search(r"^ +reason +(\S+):", told, re.MULTILINE).group(1)
        sent = self.next("curl", "the page itself says the reason")
        self.report.check("stranger: explain and the page agree", f"detail={word}" in sent, sent)

    def edit(self):
        editor = Client(ADDRESS, PORT)
        wordpress.log_in(editor, self.admin)
        nonce = editor.get("/wp-admin/admin-ajax.php?action=rest-nonce").text.strip()
        answer = editor.request(
            "POST", "/index.php?rest_route=/wp/v2/posts/1", body=json.dumps({"title": TITLE}).encode(),
            fields={"Content-Type": "application/json", "X-WP-Nonce": nonce},
        )  # fmt: skip
        assert answer.status == 200, answer.text[:300]


def rows(browser, table):
    return browser.script(
        "return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))",
        f"#{table}",
    )


def total(browser, status):
    """How many answers the dashboard counts of a cache status."""
    return next((int(count) for name, count in rows(browser, "totals") if name == status), 0)


def is_found(browser, address):
    """Whether a search finds a stored response that is shown with this address."""
    browser.script("byId('found').textContent = ''")
    browser.click("#search button")
    browser.wait("the answer", lambda: browser.script("return byId('found').textContent"))
    shown = browser.script("return [...document.querySelectorAll('#results button.link')].map((it) => it.textContent)")
    return address in shown


def purged(browser):
    """How many stored responses it says were purged; the last column of the zones."""
    return sum(int(row[-1]) for row in rows(browser, "zones") if row[-1].isdigit())
