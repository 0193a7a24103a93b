"""A MediaWiki on Debian's package, which stays as it is.

The wiki reads its settings where MW_CONFIG_FILE says, so nothing is added to
/etc. The database (SQLite), caches and settings live in the scenario's folder.
"""

import html
import os
import re
import shutil
import subprocess

from . import postgres

ROOT = "/var/lib/mediawiki"
MAINTENANCE = "/usr/share/mediawiki/maintenance"
INSTALL_SECONDS = 180
# The scripts of its folder that visitors reach.
ENTRY_POINTS = ("index.php", "api.php", "load.php", "rest.php")
# Settings of a wiki whose pages are learned (docs/learned.md).
NO_CACHES = """$wgMainCacheType = CACHE_NONE;
$wgParserCacheType = CACHE_NONE;
$wgMessageCacheType = CACHE_NONE;
$wgLanguageConverterCacheType = CACHE_NONE;
$wgSessionCacheType = CACHE_DB;
$wgCdnServers = [];
"""


class Wiki:
    """`more` are further lines of settings. Without a `database` of MariaDB or PostgreSQL it has one of SQLite."""

    def __init__(self, workdir, port, more="", database=None):
        self.workdir = workdir
        self.host = f"{workdir.address}:{port}"
        self.admin = "Admin"
        self.password = os.urandom(12).hex()
        folder = workdir.mkdir("wiki")
        self.settings = os.path.join(folder, "LocalSettings.php")
        where = ["--dbtype=sqlite", f"--dbpath={workdir.mkdir('wiki-data')}"]
        if database:
            is_postgres = isinstance(database, postgres.Database)
            place = ["postgres", database.folder] if is_postgres else ["mysql", f"localhost:{database.socket}"]
            where = [
                f"--dbtype={place[0]}", f"--dbserver={place[1]}", f"--dbname={database.name}",
                f"--dbuser={database.user}", f"--dbpass={database.password}",
            ]  # fmt: skip
        self._php(
            f"{MAINTENANCE}/install.php", "--quiet", *where,
            f"--confpath={folder}", f"--server=http://{self.host}", "--scriptpath=", f"--pass={self.password}",
            "Testwiki", self.admin,
        )  # fmt: skip
        with open(self.settings, "a", encoding="utf-8") as file:
            file.write(self._more(workdir.mkdir("wiki-cache")) + more)

    def _more(self, cache):
        return f"""
$wgArticlePath = '/wiki/$1';
$wgUsePathInfo = true;
$wgUseCdn = true;
$wgCdnServers = [ '{self.host}' ];
$wgInternalServer = 'http://{self.host}';
$wgMainCacheType = CACHE_ACCEL;
$wgCacheDirectory = '{cache}';
$wgUploadPath = '/images';
# No request has to do the jobs of others while it is being timed.
$wgJobRunRate = 0;
"""

    def document_root(self, name, more):
        """A folder as Debian's, with settings of its own that `serve` and PHP read: the wiki's, then `more`.
        `$wgCdnServers` is left to `more`."""
        folder = self.workdir.mkdir(name)
        for entry in os.listdir(ROOT):
            if entry != "LocalSettings.php" and entry not in ENTRY_POINTS:
                os.symlink(os.path.join(ROOT, entry), os.path.join(folder, entry))
        for script in ENTRY_POINTS:
            self.workdir.write(
                f"{name}/{script}",
                "<?php define( 'MW_CONFIG_FILE', __DIR__ . '/LocalSettings.php' );\n"
                f"require '{os.path.join(ROOT, script)}';\n",
            )
        with open(self.settings, encoding="utf-8") as file:
            lines = [line for line in file if not line.startswith("$wgCdnServers")]
        self.workdir.write(f"{name}/LocalSettings.php", "".join(lines) + more)
        shutil.chown(os.path.join(folder, "LocalSettings.php"), "www-data", "www-data")
        return folder

    def run_jobs(self):
        """As cron does it for a wiki with visitors: purges of pages that depend on others are jobs."""
        self._php(f"{MAINTENANCE}/runJobs.php", "--conf", self.settings, "--quiet")

    def _php(self, *command):
        done = subprocess.run(
            ["setpriv", "--reuid=www-data", "--regid=www-data", "--clear-groups", "php", *command],
            capture_output=True, text=True, timeout=INSTALL_SECONDS, cwd=self.workdir.path,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]}: {done.stderr or done.stdout}")


def token(client, kind):
    answer = client.get(f"/api.php?action=query&meta=tokens&type={kind}&format=json")
    found = re.search(rf'"{kind}token":"([^"]+)"', answer.text)
    if not found:
        raise RuntimeError(f"no {kind} token: {answer.status} {answer.text[:300]}")
    return found.group(1).replace("\\\\", "\\")


def log_in(client, wiki):
    """As the wiki's own form does it."""
    client.get("/index.php?title=Special:UserLogin")
    answer = client.post(
        "/api.php",
        form={"action": "clientlogin", "format": "json", "username": wiki.admin, "password": wiki.password,
              "loginreturnurl": f"http://{wiki.host}/", "logintoken": token(client, "login")},
    )  # fmt: skip
    if '"PASS"' not in answer.text:
        raise RuntimeError(f"login answers {answer.status}: {answer.text[:300]}")


def prefer(client, name, value):
    """Changes a preference of who is logged in."""
    form = {"action": "options", "format": "json", "change": f"{name}={value}", "token": token(client, "csrf")}
    answer = client.post("/api.php", form=form)
    if '"success"' not in answer.text:
        raise RuntimeError(f"options answers {answer.status}: {answer.text[:300]}")


def is_personal(answer):
    """Is it the page of somebody who is logged in?"""
    return '"wgUserName":null' not in answer.text


def edit(client, title, text):
    act(client, "edit", title=title, text=text)


def act(client, action, **form):
    """One of the actions that need a token, such as `edit`, `delete` or `undelete`."""
    form = {"action": action, "format": "json", "token": token(client, "csrf"), **form}
    answer = client.post("/api.php", form=form)
    is_done = answer.status == 200 and f'"{action}"' in answer.text
    if not is_done or '"error"' in answer.text or '"Failure"' in answer.text:
        raise RuntimeError(f"{action} answers {answer.status}: {answer.text[:300]}")


def edit_by_form(client, title, text):
    """As a browser sends the form; the answer leads to the page."""
    shown = client.get(f"/index.php?title={title}&action=edit").text
    form = {}
    for tag in re.findall(r"<input[^>]*>", shown):
        words = {name: html.unescape(value) for name, value in re.findall(r"""([\w-]+)=['"]([^'"]*)""", tag)}
        if words.get("type") == "hidden" and words.get("name", "").startswith(("wp", "mode", "format")):
            form[words["name"]] = words.get("value", "")
    form |= {"wpTextbox1": text, "wpSave": "Save"}
    answer = client.post(f"/index.php?title={title}&action=submit", form=form)
    if answer.status != 302:
        raise RuntimeError(f"the form answers {answer.status}: {answer.text[:300]}")
