"""The sites of the scenario learned_day: two of WordPress, one of MediaWiki, each with a database of its own. What is changed on them,
by whom, and which version of which page a visitor must see afterwards."""

import contextlib
import http.client
import json
import os
import random
import re
import subprocess
import threading
import time

from . import mediawiki, wordpress, wordpress_blog
from .client import Client
from .journal import Journal
from .wordpress_blog import ADMIN
from .wordpress_changes import FOOT
from .wordpress_editor import Editor, evaluate

# What another program writes is shown no later, and a file that is deployed: PHP looks at scripts every two seconds.
FOREIGN_SECONDS, DEPLOYED_SECONDS = 2.0, 6.0
COMMAND_SECONDS = 120
AS_WEB_USER = ("setpriv", "--reuid=www-data", "--regid=www-data", "--clear-groups")
ARTICLES = 20
# What a change ends with while a server is restarted.
FAILURES = (OSError, http.client.HTTPException, RuntimeError, AttributeError, TypeError, ValueError, KeyError, subprocess.SubprocessError)
# After cron was killed, its end is not told.
LONGEST_CRON_SECONDS = 60


class Site:
    # For longer than their ordinary lifetime, by what they were made of.
    is_kept = True
    past_memory = {}
    more = ""
    # For so long PHP goes on to work when it has answered.
    after = 0.0
    # By how much a page of the ordinary lifetime may be behind.
    ordinary_seconds = 3.0

    def __init__(self, name, workdir, binary, database):
        self.name, self.workdir, self.binary, self.database = name, workdir, binary, database
        self.address, self.port = workdir.address, workdir.free_port()
        self.host = f"{self.address}:{self.port}"
        self.url = f"http://{self.host}"
        self.journal = Journal()
        # Taken by who changes the site.
        self.editing = threading.Lock()
        self.chance = random.Random(name)
        self.number = 0
        self.refused = []

    def explains(self, began, ended):
        return self.journal.explains(began, ended)

    def article(self):
        """One of the articles, and its next version."""
        self.number += 1
        return self.chance.randrange(1, ARTICLES + 1), self.number

    def command(self, *words, **more):
        """By `mayfly run`, as the account of PHP."""
        return self._run(*AS_WEB_USER, self.binary, "run", "--", *words, **more)

    def _run(self, *words, **more):
        done = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND_SECONDS, cwd=self.workdir.path, **more)
        if done.returncode != 0:
            raise RuntimeError(f"{words[-2:]}: {done.returncode} {done.stderr[-300:] or done.stdout[-300:]}")
        return done.stdout

    def sql(self, statement):
        """By a client of the database, of which Mayfly knows nothing."""
        return self._run(*self.database.client("mariadb"), "--batch", "--skip-column-names", "-e", statement, self.database.name)

    def change(self, judge):
        """One change of those that the site knows, and what visitors see of it at once."""
        weights, names, makers = zip(*self.changes(), strict=True)
        [at] = self.chance.choices(range(len(makers)), weights)
        with self.editing:
            self._tried(makers[at], judge, names[at])

    def _tried(self, make, judge, name):
        try:
            make(judge)
            judge.count(f"changes: {name}")
        except FAILURES as error:
            judge.count("changes that failed")
            self.refused.append((time.monotonic(), f"{name}: {type(error).__name__} {str(error)[:160]}"))
            self.session = None

    def versioned(self, judge, name, grace, work):
        """Writes the next version of an article by `work`, and looks at it when it has to be shown."""
        number, version = self.article()
        path = self.path(number)
        with self.journal.change(name, grace, {path: version}, self.after):
            work(number, version)
        time.sleep(grace)
        judge.ask(Client(self.address, self.port), path)

    def dump(self):
        path = self.workdir.join("dump.sql")
        with open(path, "w") as file:
            subprocess.run([*self.database.client("mariadb-dump"), "--no-tablespaces", "--single-transaction", self.database.name],
                           check=True, stdout=file, stderr=subprocess.PIPE, timeout=COMMAND_SECONDS)  # fmt: skip
        return path

    def dump_and_restore(self, judge):
        """Dumps the database, changes the site, and puts the database back by the client: another program."""
        with self.editing:
            path, versions = self.dump(), self.journal.versions() | self.made_versions(self.journal.in_doubt())
            for make in self.own_changes():
                self._tried(make, judge, "before the restore")
            time.sleep(2)
            with self.journal.change("the database is restored", FOREIGN_SECONDS, versions), open(path) as file:
                self._run(*self.database.client("mariadb"), self.database.name, stdin=file)
                self.restored()
            self.session = None

    def restored(self):
        """What an application asks for when its database is an older one."""

    def made_versions(self, paths):
        """What the application shows now."""
        versions = {}
        for path in paths:
            answer = Client(self.address, self.port, self.past_memory).get(path)
            versions[path] = int(re.search(self.markers[path], answer.text)[1])
        return versions

    def normal(self, text):
        return self.differs_each_time.sub("", text)

    def marker(self, path):
        return self.markers.get(path)

    def begin(self):
        self.markers = {self.path(number): rf"Day {number} version (\d+)\." for number in range(1, ARTICLES + 1)}
        self.journal.begin(dict.fromkeys(self.markers, 0))


class WordPress(Site):
    """`has_own_cron`: WordPress's own begins at page views, and Mayfly asks for it; otherwise a command does."""

    past_memory = {"wordpress_no_cache": "1"}
    # Tokens against forgery, which end by the clock.
    differs_each_time = re.compile(r'short: [0-9a-f]{10}|name="_wpnonce" value="[0-9a-f]{10}"')

    def __init__(self, name, workdir, binary, database, has_own_cron, cron):
        super().__init__(name, workdir, binary, database)
        self.root, self.session = wordpress.ROOT, None
        self.has_own_cron = has_own_cron
        self.more = cron if has_own_cron else ""
        self.site = wordpress.Site(workdir, plugins=("wordpress_plugin_tables.php", "day_cron.php"), database=database)
        self.cron_file = workdir.write("cron-times", "", owner="www-data")
        self.offset = time.time() - time.monotonic()
        with open(workdir.join("config.php"), "a", encoding="utf-8") as config:
            config.write(f"define('DAY_CRON', '{self.cron_file}');\n")
            if not has_own_cron:
                config.write("define('DISABLE_WP_CRON', true);\n")
        with open(os.path.join(wordpress.FILES, "wordpress_eval.php"), encoding="utf-8") as file:
            self.script = workdir.write("day-eval.php", file.read())

    def install(self, names):
        self.made = wordpress_blog.install(self.site, self, names)
        code = (
            "foreach ($given['posts'] as $number => $id) { wp_update_post(['ID' => $id, 'post_content' => "
            "\"<!-- wp:paragraph --><p>Day $number version 0.</p><!-- /wp:paragraph -->\"]); }"
        )
        evaluate(self.site, code, {"posts": {number: self.post(number) for number in range(1, ARTICLES + 1)}})
        # Those that are different each time, and those of another session.
        self.paths = [path for path in wordpress_blog.public_pages(self.made) if "moderation-hash" not in path]
        self.begin()

    def post(self, number):
        return self.made["posts"][f"article-{number}"]

    def path(self, number):
        return f"/article-{number}/"

    def personal(self, answer):
        """What a page says of a visitor's session."""
        found = re.search(r"<!-- for user:([1-9]\d*)( token:\w+)?|token:(\w+)", answer.text)
        if found:
            return found[0]
        user = answer.field("x-for-user") or "0"
        return f"for user:{user}" if user != "0" else ("an admin bar" if 'id="wpadminbar"' in answer.text else "")

    def explains(self, began, ended):
        return self.journal.explains(began, ended) or self._cron_ran(began, ended)

    def _cron_ran(self, began, ended):
        open_ones, spans = {}, []
        with open(self.cron_file) as file:
            for line in file:
                word, pid, at = line.split()
                moment = float(at) - self.offset
                if word == "begin":
                    open_ones[pid] = moment
                elif pid in open_ones:
                    spans.append((open_ones.pop(pid), moment))
        spans += [(moment, moment + LONGEST_CRON_SECONDS) for moment in open_ones.values()]
        return any(first <= ended and last >= began for first, last in spans)

    def log_in(self):
        """A visitor with a session, and what its pages say of it."""
        client, user = Client(self.address, self.port), self.chance.choice(wordpress_blog.AUTHORS)
        with self.journal.change("a login"):
            wordpress.log_in(client, user)
        return client, f"for user:{user.id}"

    def editor(self):
        self.session = self.session or Editor(self.site, self, ADMIN, self.made)
        return self.session

    def php(self, code, **given):
        task = {"host": self.address, "user": ADMIN.login, "code": code, "given": given}
        return json.loads(self.command("php", self.script, input=json.dumps(task)).splitlines()[-1])["returned"]

    def changes(self):
        return [
            (6, "by the editor's interface", self._by_rest),
            (4, "by a command", self._by_command),
            (4, "by another program", self._by_another_program),
            (4, "a comment", self._comment),
            (1, "a setting by a command", self._setting),
            (1, "a category", self._category),
            (1, "a post that is due later", self._scheduled),
            (1, "a new post", self._new_post),
        ]

    def own_changes(self):
        return [self._by_rest, self._by_command, self._comment]

    @staticmethod
    def content(number, version):
        return f"<!-- wp:paragraph --><p>Day {number} version {version}.</p><!-- /wp:paragraph -->"

    def _by_rest(self, judge):
        editor = self.editor()
        self.versioned(judge, "the editor", 0, lambda number, version: editor.rest("POST", f"posts/{self.post(number)}", content=self.content(number, version)))

    def _by_command(self, judge):
        code = "return wp_update_post(['ID' => $given['id'], 'post_content' => $given['text']]);"
        self.versioned(judge, "a command", 0, lambda number, version: self.php(code, id=self.post(number), text=self.content(number, version)))

    def _by_another_program(self, judge):
        def write(number, version):
            self.sql(f"UPDATE wp_posts SET post_content = '{self.content(number, version)}' WHERE ID = {self.post(number)}")

        self.versioned(judge, "another program", FOREIGN_SECONDS, write)

    def _comment(self, judge):
        number, version = self.article()
        text = f"Comment number {version} is here."
        with self.journal.change("a comment"):
            self.editor().comment(self.post(number), text)
        judge.must_show(self.path(number), text)

    def _setting(self, judge):
        self.number += 1
        text = f"Tagline {self.number}"
        with self.journal.change("a setting"):
            self.php("update_option('blogdescription', $given['text']);", text=text)
        judge.must_show("/feed/", text)

    def _category(self, judge):
        self.number += 1
        with self.journal.change("a category"):
            self.editor().rest("POST", f"categories/{self.made['categories']['sport']}", description=f"Of balls, {self.number}.")

    def _scheduled(self, judge):
        code = (
            "return wp_insert_post(['post_title' => $given['title'], 'post_status' => 'future', 'post_content' => 'Now.',"
            " 'post_date' => wp_date('Y-m-d H:i:s', time() + 2)]);"
        )
        self.number += 1
        with self.journal.change("a post that is due later"):
            self.php(code, title=f"Due {self.number}")

    def _new_post(self, judge):
        self.number += 1
        title = f"News number {self.number} today"
        with self.journal.change("a new post"):
            self.editor().rest("POST", "posts", title=title, content="<p>Just in.</p>", status="publish")
        judge.must_show("/", title)

    def cron(self):
        """As a crontab has it, where WordPress's own does not run."""
        if self.has_own_cron:
            return
        code = f"$_SERVER['HTTP_HOST'] = '{self.address}'; $_SERVER['REQUEST_URI'] = '/wp-cron.php'; require '{wordpress.ROOT}/wp-cron.php';"
        with self.journal.change("cron"):
            self.command("php", "-r", code)

    def deploy(self, judge):
        """A file of the theme, as `cp` or `rsync` puts it there."""
        self.number += 1
        text = f"Deployed {self.number}."
        path = self.workdir.join("blocks/templates/page.html")
        with self.editing:
            with open(path, encoding="utf-8") as file:
                before = re.sub(r"<p>Deployed \d+\.</p>", "", file.read())
            with self.journal.change("a file of the theme", DEPLOYED_SECONDS):
                self.workdir.write("blocks/templates/page.html.new", f"{before}<p>{text}</p>")
                os.rename(f"{path}.new", path)
            time.sleep(DEPLOYED_SECONDS)
            judge.must_show("/contact/", text)

    def deploy_script(self, judge):
        """A plug-in is added, edited, and the next time removed."""
        path = "mu-plugins/dropped.php"
        with self.editing, self.journal.change("a plug-in", DEPLOYED_SECONDS):
            if os.path.exists(self.workdir.join(path)):
                os.unlink(self.workdir.join(path))
            else:
                self.workdir.write(path, FOOT % self.number)
        time.sleep(DEPLOYED_SECONDS)


class MediaWiki(Site):
    # Each page says which request made it and how long that took: one that is made again is another, and is not kept for an hour.
    is_kept = False
    after = 5.0
    # It says itself for seconds that a page has not changed: its times are whole ones.
    ordinary_seconds = 15.0
    # A session of something else: no user's for the wiki, and not answered from memory.
    past_memory = {"other_session": "1"}
    differs_each_time = re.compile(
        r"<!--.*?-->|\"wgRequestId\":\"[^\"]*\"|\"wgBackendResponseTime\":\d+|\"wgPageParseReport\":.*?</script>"
        # Lists name the moment at which they were made.
        r"|\d\d:\d\d(:\d\d)?, \d{1,2} \w+ \d{4}|from=\d{14}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
        re.DOTALL,
    )

    def __init__(self, name, workdir, binary, database):
        super().__init__(name, workdir, binary, database)
        self.wiki = mediawiki.Wiki(workdir, self.port, mediawiki.NO_CACHES, self.database)
        self.root, self.session = self.wiki.document_root("root", ""), None
        self.settings = os.path.join(self.root, "LocalSettings.php")

    def install(self):
        editor = self.editor()
        mediawiki.edit(editor, "Template:Notice", "a notice")
        for number in range(1, ARTICLES + 1):
            mediawiki.edit(editor, f"Article {number}", self.text(number, 0))
        for number in range(3):
            mediawiki.edit(editor, f"Category:Kind {number}", f"What is of kind {number}.")
        articles = [self.path(number) for number in range(1, ARTICLES + 1)]
        self.paths = [
            "/wiki/Main_Page", *articles, *(f"/wiki/Category:Kind_{number}" for number in range(3)), "/wiki/Template:Notice",
            "/index.php?title=Article_1&action=history", "/index.php?title=Article_3&action=raw",
        ]  # fmt: skip
        self.begin()

    def restored(self):
        """By these times it says whether a page has changed."""
        self.sql("UPDATE page SET page_touched = DATE_FORMAT(UTC_TIMESTAMP(), '%Y%m%d%H%i%s')")

    def path(self, number):
        return f"/wiki/Article_{number}"

    @staticmethod
    def text(number, version):
        near = number % ARTICLES + 1
        return f"Day {number} version {version}. {{{{Notice}}}} [[Article {near}]] [[Nowhere {number}]] [[Category:Kind {number % 3}]]"

    def personal(self, answer):
        found = re.search(r'"wgUserName":"[^"]*"', answer.text)
        return found[0] if found else ""

    def log_in(self):
        client = Client(self.address, self.port)
        with self.journal.change("a login"):
            mediawiki.log_in(client, self.wiki)
        return client, f'"wgUserName":"{self.wiki.admin}"'

    def editor(self):
        if self.session is None:
            client = Client(self.address, self.port)
            mediawiki.log_in(client, self.wiki)
            self.session = client
        return self.session

    def changes(self):
        return [
            (5, "by the editor's interface", self._by_api),
            (3, "by a command", self._by_command),
            (3, "by another program", self._by_another_program),
            (1, "a template", self._template),
        ]

    def own_changes(self):
        return [self._by_api, self._by_command]

    def _by_api(self, judge):
        editor = self.editor()
        self.versioned(judge, "the editor", 0, lambda number, version: mediawiki.edit(editor, f"Article {number}", self.text(number, version)))

    def _by_command(self, judge):
        """As root: what it starts serves the wiki's account."""

        def write(number, version):
            script = f"{mediawiki.MAINTENANCE}/edit.php"
            words = (*AS_WEB_USER, "php", script, "--conf", self.settings, "--user", self.wiki.admin, "--summary", "command", f"Article {number}")
            self._run(self.binary, "run", "--", *words, input=self.text(number, version))

        self.versioned(judge, "a command", 0, write)

    def _by_another_program(self, judge):
        def write(number, version):
            self.sql(
                "UPDATE text JOIN content ON content_address = CONCAT('tt:', old_id) JOIN slots ON slot_content_id = content_id"
                " JOIN page ON slot_revision_id = page_latest"
                " SET page_touched = DATE_FORMAT(UTC_TIMESTAMP(), '%Y%m%d%H%i%s'),"
                f" old_text = '{self.text(number, version)}' WHERE page_namespace = 0 AND page_title = 'Article_{number}'"
            )

        self.versioned(judge, "another program", FOREIGN_SECONDS, write)

    def _template(self, judge):
        self.number += 1
        with self.journal.change("a template", after=self.after):
            mediawiki.edit(self.editor(), "Template:Notice", f"notice number {self.number}")
        judge.must_show(self.path(1), f"notice number {self.number}")

    def cron(self):
        """The jobs that edits leave."""
        with self.journal.change("jobs"):
            self.command("php", f"{mediawiki.MAINTENANCE}/runJobs.php", "--conf", self.settings, "--quiet")


def quietly(work, *arguments):
    """What fails while a server is restarted is no fault of this."""
    with contextlib.suppress(*FAILURES):
        work(*arguments)
