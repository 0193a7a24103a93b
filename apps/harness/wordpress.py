"""A WordPress site on Debian's package, which stays as it is.

The package reads /etc/wordpress/config-HOST.php: the site gets a loopback
address of its own as host, so one link named after that address, removed at
the end, is all that is added. Database, plug-in and uploads live in the
scenario's directory. The site is installed over HTTP, through the server
under test.
"""

import contextlib
import json
import os
import re
import subprocess

from . import mariadb, subject as subjects
from .client import Client
from .workdir import Workdir

ROOT = "/usr/share/wordpress"
CONTENT = "/var/lib/wordpress/wp-content"
FILES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "files")


class User:
    """Somebody with an account. `token` is printed on this user's pages only."""

    def __init__(self, login, name, role):
        self.login = login
        self.name = name
        self.role = role
        self.password = os.urandom(9).hex()
        self.email = f"{login}-{os.urandom(4).hex()}@example.test"
        self.token = os.urandom(12).hex()
        self.id = None


@contextlib.contextmanager
def served(options, report, name):
    """A site in a folder of its own and the server under test, which is judged at the end."""
    with Workdir("wordpress", keep=options.keep) as workdir:
        site = Site(workdir)
        subject = subjects.start(workdir, options, "wordpress", ROOT)
        with subject.judged(report, name):
            yield site, subject


class Site:
    """`plugins` are further must-use plug-ins of apps/files. Without a `database` it has a server of its own."""

    def __init__(self, workdir, plugins=(), database=None):
        self.workdir = workdir
        self.database = database or mariadb.start(workdir)
        self.uploads = workdir.mkdir("uploads")
        self.uploads_name = os.path.basename(workdir.path)
        workdir.link_for_the_run(self.uploads, f"{CONTENT}/uploads/{self.uploads_name}")
        folder = workdir.mkdir("mu-plugins")
        for name in ("marker.php", *plugins):
            with open(os.path.join(FILES, name), encoding="utf-8") as file:
                workdir.write(f"mu-plugins/{name}", file.read())
        config = workdir.write(
            "config.php", self._config(folder), owner="www-data", mode=0o600
        )
        workdir.link_for_the_run(config, f"/etc/wordpress/config-{workdir.address}.php")
        self.users = {}
        self.posts = {}
        # By which an editor's code runs within the pool, where there is one.
        self.door = None

    def _config(self, plugins):
        database = self.database
        keys = "".join(
            f"define('{name}', '{os.urandom(24).hex()}');\n"
            for kind in ("AUTH", "SECURE_AUTH", "LOGGED_IN", "NONCE")
            for name in (f"{kind}_KEY", f"{kind}_SALT")
        )
        return f"""<?php
define('DB_NAME', '{database.name}');
define('DB_USER', '{database.user}');
define('DB_PASSWORD', '{database.password}');
define('DB_HOST', 'localhost:{database.socket}');
define('DB_CHARSET', 'utf8mb4');
{keys}
define('WP_CONTENT_DIR', '{CONTENT}');
define('WPMU_PLUGIN_DIR', '{plugins}');
define('MARKER_UPLOADS', '{self.uploads_name}');
define('WP_ALLOW_MULTISITE', false);
// Loopback only: no update checks, no news, no avatars from elsewhere.
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('WP_ACCESSIBLE_HOSTS', '{self.workdir.address}');
"""

    def install(self, subject, admin, client=None):
        """Runs wp-admin/install.php as a person would; raises on refusal."""
        client = client or Client(subject.address, subject.port)
        start = client.get("/wp-admin/install.php")
        if start.status != 200:
            raise RuntimeError(f"install.php answers {start.status}: {start.text[:400]}")
        done = client.post(
            "/wp-admin/install.php?step=2",
            form={
                "weblog_title": "Mayfly test site", "user_name": admin.login,
                "admin_password": admin.password, "admin_password2": admin.password,
                "pw_weak": "on", "admin_email": admin.email, "blog_public": "0",
                "Submit": "Install WordPress", "language": "",
            },
        )  # fmt: skip
        if done.status != 200 or "Success!" not in done.text:
            raise RuntimeError(f"install.php step 2 answers {done.status}: {done.text[-1500:]}")

    def seed(self, users, posts):
        """Adds users, posts and options past HTTP, with PHP's command line."""
        seed = {
            "host": self.workdir.address,
            "users": [
                {"login": u.login, "password": u.password, "email": u.email,
                 "name": u.name, "role": u.role, "token": u.token}
                for u in users
            ],
            "options": {
                "permalink_structure": "/%postname%/",
                "comment_previously_approved": "0",
                "comment_moderation": "0",
                "show_comments_cookies_opt_in": "1",
                "comments_notify": "0",
                "moderation_notify": "0",
                "show_avatars": "0",
            },
            "posts": posts,
        }  # fmt: skip
        done = subprocess.run(
            ["setpriv", "--reuid=www-data", "--regid=www-data", "--clear-groups",
             "php", os.path.join(self._copy_of_seed_script())],
            input=json.dumps(seed), capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"seed: {done.stderr or done.stdout}")
        made = json.loads(done.stdout.splitlines()[-1])
        for user in users:
            user.id = made["users"][user.login]
            self.users[user.login] = user
        self.posts.update(made["posts"])

    def select(self, query):
        """Rows of a query, each a list of texts."""
        database = self.database
        done = subprocess.run(
            ["mariadb", "--no-defaults", f"--socket={database.socket}", f"--user={database.user}",
             f"--password={database.password}", "--batch", "--skip-column-names", "-e", query, database.name],
            check=True, capture_output=True, text=True, timeout=20,
        )  # fmt: skip
        return [line.split("\t") for line in done.stdout.splitlines()]

    def _copy_of_seed_script(self):
        # The checkout may lie where www-data cannot read.
        with open(os.path.join(FILES, "wordpress_seed.php"), encoding="utf-8") as file:
            return self.workdir.write("seed.php", file.read())


def log_in(client, user):
    """Logs in through wp-login.php; returns the responses for the checker."""
    form_page = client.get("/wp-login.php")
    client.cookies.setdefault("wordpress_test_cookie", "WP%20Cookie%20check")
    answer = client.post(
        "/wp-login.php",
        form={"log": user.login, "pwd": user.password, "wp-submit": "Log In",
              "redirect_to": "/wp-admin/", "testcookie": "1"},
    )  # fmt: skip
    if answer.status != 302 or not any(n.startswith("wordpress_logged_in_") for n in client.cookies):
        raise RuntimeError(f"login of {user.login} answers {answer.status}: {answer.text[-800:]}")
    return [form_page, answer]


def seen(page):
    """What WordPress was told of the visitor, of a page with files/visitor.php."""
    found = re.search(r"<!-- seen (\{.*\}) -->", page.text)
    return json.loads(found.group(1)) if found else {"status": page.status}
