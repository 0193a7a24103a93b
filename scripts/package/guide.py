#!/usr/bin/python3
"""Follows docs/guide.md and docs/guide/*.md in a fresh root of Debian, from the package: every command of their `console`
blocks is run as it is printed, and must print what stands there. A block that cannot be run so has a line above it,
`<!-- not run: REASON -->`, which is shown.

    guide.py [--packages FOLDER] [--next FOLDER] [SUITE]      bookworm

The first part is a newcomer's way: from the package to a WordPress seen as HIT, then to a service. It is timed, with what
a reader takes for the words of these pages. `$` is typed by the site's owner, `#` by root. In the place of systemd, whose
command lines these are, the units are run by service.py. Namespaces as in trial.py; needs root and mmdebstrap.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "apps")]
import roots  # noqa: E402
import service  # noqa: E402
import trial  # noqa: E402
from harness import client, guide, wordpress  # noqa: E402

DOCS = os.path.join(HERE, "..", "..", "docs")
PACKAGES = ["apache2", "mariadb-server", "wordpress", "php-mysql"]
THEMES = {"bookworm": "wordpress-theme-twentytwentythree", "trixie": "wordpress-theme-twentytwentyfive"}
BLOCK = re.compile(r"^(?:<!-- not run: (.*?) -->\n)?( *)```console\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
OWNER = "anna"
ADDRESS, PORT = "127.0.0.1", 8080
SECONDS = 120
WORDS_A_MINUTE = 200
PATH_MINUTES = 10
BY_SYSTEMCTL = {"nginx": ("nginx", "nginx -s quit"), "apache2": ("apachectl start", "apachectl graceful-stop")}


class Page:
    """The commands of a page, in their order."""

    def __init__(self, name):
        self.name = name
        with open(os.path.join(DOCS, name), encoding="utf-8") as file:
            self.text = file.read()
        self.commands, self.left_out = [], []
        for reason, indent, block in BLOCK.findall(self.text):
            found = []
            for line in textwrap.dedent(block).splitlines():
                if line.startswith(("$ ", "# ")):
                    found.append(guide.Command(line[2:]))
                    found[-1].is_root = line.startswith("#")
                else:
                    found[-1].expected.append(line)
            if reason:
                self.left_out += [(command.text, reason) for command in found]
            else:
                self.commands += found

    def block(self, beginning):
        """A file that the page shows."""
        return re.search(rf"^```\n({re.escape(beginning)}.*?)^```$", self.text, re.MULTILINE | re.DOTALL)[1]

    def words(self):
        return len(re.findall(r"\w+", self.text))


class Manager:
    """What `systemctl` asks for in the root, done by service.py."""

    def __init__(self, root):
        self.root, self.running = root, {}
        os.makedirs(root.path + "/run/systemctl", exist_ok=True)
        self.ask, self.answer = (root.path + f"/run/systemctl/{name}" for name in ("ask", "answer"))
        for path in (self.ask, self.answer):
            os.mkfifo(path)
        self.asked = os.open(self.ask, os.O_RDWR | os.O_NONBLOCK)
        script = '#!/bin/sh\necho "$*" >/run/systemctl/ask\nread -r code said </run/systemctl/answer\n[ -z "$said" ] || echo "$said"\nexit "$code"\n'
        root.write("/usr/local/bin/systemctl", script)
        os.chmod(root.path + "/usr/local/bin/systemctl", 0o755)

    def serve(self):
        """Does what was asked, if anything was."""
        try:
            line = os.read(self.asked, 4096).decode().strip()
        except BlockingIOError:
            return
        code, said = 0, ""
        try:
            self.carry_out(line.split())
        except (AssertionError, OSError) as error:
            code, said = 1, " ".join(str(error).split())
        with open(self.answer, "w", encoding="utf-8") as file:
            file.write(f"{code} {said}\n")

    def carry_out(self, words):
        names = [word.removesuffix(".service") for word in words[1:] if not word.startswith("-")]
        verbs = {"enable": ["start"], "disable": ["stop"], "restart": ["stop", "start"]}.get(words[0], [words[0]])
        if words[0] in ("enable", "disable") and "--now" not in words:
            return
        for name in names:
            for verb in verbs:
                self.one(verb, name)

    def one(self, verb, name):
        if name in BY_SYSTEMCTL:
            start, stop = BY_SYSTEMCTL[name]
            self.root.run("sh", "-c", start if verb == "start" else stop)
            return
        now = self.running.get(name)
        if verb == "start" and now is None:
            self.running[name] = service.Service(self.root.path, f"{name}.service")
        elif verb == "stop" and now is not None:
            del self.running[name]
            now.stop()
        elif verb == "reload":
            code, said = now.reload()
            assert code == 0, said
        else:
            assert verb in ("start", "stop"), f"systemctl {verb} {name} is not known here"


class Reader:
    """Follows pages in a root."""

    def __init__(self, root, next_package):
        self.root, self.manager, self.next_package = root, Manager(root), next_package
        self.pages, self.server, self.passed, self.failed = {}, None, 0, 0
        self.admin = wordpress.User("root1", "Ada Admin", "administrator")

    def page(self, name):
        return self.pages.setdefault(name, Page(name))

    def follow(self, name, until=None):
        """Runs the commands of the page that were not run yet, up to one that begins with `until`."""
        page = self.page(name)
        while page.commands:
            command = page.commands.pop(0)
            for (page_name, beginning), prepare in PREPARATIONS.items():
                if page_name == name and command.text.startswith(beginning):
                    prepare(self)
            self.run(name, command)
            if until and command.text.startswith(until):
                return
        if not until:
            self.end_server()

    def run(self, name, command):
        text = command.text
        try:
            if text.startswith("mayfly serve") and "--print-config" not in text:
                said = self.start_server(command)
            else:
                said = self.run_to_its_end(command)
            missing = command.missing(said)
            assert missing is None, f"lacks {missing!r}:\n{said}"
            self.passed += 1
            print(f"  ok    {name}: {text}", flush=True)
        except AssertionError as error:
            self.failed += 1
            print(f"  FAIL  {name}: {text}\n        {error}", flush=True)
            if text.startswith("mayfly serve"):
                raise SystemExit(1) from error

    def popen(self, command, **how):
        user = [] if command.is_root else [f"--userspec={OWNER}:{OWNER}"]
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                       "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root" if command.is_root else f"/home/{OWNER}"}
        line = ["chroot", *user, self.root.path, "bash", "-c", f"cd \"$HOME\"; {command.text}"]
        return subprocess.Popen(line, env=environment, text=True, stdin=subprocess.DEVNULL, **how)

    def run_to_its_end(self, command):
        with open(self.root.path + "/tmp/said", "w+", encoding="utf-8") as file:
            running = self.popen(command, stdout=file, stderr=subprocess.STDOUT)
            deadline = time.monotonic() + SECONDS
            while running.poll() is None:
                assert time.monotonic() < deadline, "does not end"
                self.manager.serve()
                time.sleep(0.02)
            file.seek(0)
            said = file.read()
        assert running.returncode in ENDS_WITH.get(command.text, (0,)), f"ended with {running.returncode}:\n{said}"
        return said

    def start_server(self, command):
        """Until Ctrl-C, which is typed when the page ends, or when it has its reader start another one."""
        self.end_server()
        log = open(self.root.path + "/tmp/served", "w+", encoding="utf-8")
        # In a terminal, as a person does: what is for that person alone is said there.
        text = f"script --quiet --flush --command '{command.text}' /dev/null"
        terminal = types.SimpleNamespace(text=text, is_root=command.is_root)
        self.server = self.popen(terminal, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        trial.wait_until(lambda: self.server.poll() is not None or answers(), "it does not serve")
        time.sleep(0.3)
        log.seek(0)
        said = log.read().replace("\r\n", "\n")
        assert self.server.poll() is None, said
        return said

    def end_server(self):
        if self.server is None:
            return
        pid = self.root.run("sh", "-c", "pgrep --oldest --exact mayfly || true").strip()
        if pid:
            self.root.run("kill", "-INT", pid)
        trial.wait_until(lambda: self.server.poll() is not None, "Ctrl-C does not end it")
        self.server = None


def answers(port=PORT):
    try:
        client.Client(ADDRESS, port).get("/nothing-there")
        return True
    except OSError:
        return False


# What a page says in words, before the command that comes behind it.

def wordpress_is_there(root):
    """The site that the newcomer has: Debian's WordPress, in the folder of its owner, with its database."""
    root.run("useradd", "--create-home", "--shell", "/bin/bash", OWNER)
    shutil.copytree(root.path + "/usr/share/wordpress", root.path + "/var/www/html", symlinks=False, dirs_exist_ok=True,
                    ignore=lambda _, names: [it for it in names if it == "wp-config.php"], ignore_dangling_symlinks=True)
    for name in ("index.html", "index.nginx-debian.html"):
        if os.path.exists(root.path + "/var/www/html/" + name):
            os.unlink(root.path + "/var/www/html/" + name)
    os.makedirs(root.path + "/run/mysqld", exist_ok=True)
    root.run("chown", "mysql:mysql", "/run/mysqld")
    subprocess.Popen(["chroot", root.path, "mariadbd", "--user=mysql", "--bind-address=127.0.0.1"], stderr=subprocess.DEVNULL)
    trial.wait_until(lambda: root.run("mariadb-admin", "ping", check=False)[0] == 0, "no database")
    root.run("mariadb", "--execute", "CREATE DATABASE site; GRANT ALL ON site.* TO site@localhost IDENTIFIED BY 'password'")
    keys = "".join(f"define('{name}', '{os.urandom(24).hex()}');\n" for kind in ("AUTH", "SECURE_AUTH", "LOGGED_IN", "NONCE")
                   for name in (f"{kind}_KEY", f"{kind}_SALT"))
    root.write("/var/www/html/wp-config.php", f"""<?php
define('DB_NAME', 'site'); define('DB_USER', 'site'); define('DB_PASSWORD', 'password');
define('DB_HOST', 'localhost:/run/mysqld/mysqld.sock'); define('DB_CHARSET', 'utf8mb4'); $table_prefix = 'wp_';
{keys}define('WP_HTTP_BLOCK_EXTERNAL', true);
if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
""")
    root.run("chown", "-R", f"{OWNER}:{OWNER}", "/var/www/html")


def installs_wordpress(reader):
    """Its owner has done so long ago; here it needs a server that runs."""
    wordpress.Site.install(None, types.SimpleNamespace(address=ADDRESS, port=PORT), reader.admin)


def visits(_):
    reader = client.Client(ADDRESS, PORT)
    for _ in range(10):
        reader.get("/")


def edits(reader):
    editor = client.Client(ADDRESS, PORT)
    wordpress.log_in(editor, reader.admin)
    nonce = editor.get("/wp-admin/admin-ajax.php?action=rest-nonce").text.strip()
    answer = editor.request("POST", "/index.php?rest_route=/wp/v2/posts/1", body=json.dumps({"title": "Seen at once"}).encode(),
                            fields={"Content-Type": "application/json", "X-WP-Nonce": nonce})
    assert answer.status == 200, answer.text[:300]


def edits_once(reader):
    if not getattr(reader, "has_edited", False):
        reader.has_edited = True
        edits(reader)


def enables_a_site(reader):
    root = reader.root
    text = root.read("/etc/mayfly/mayfly.conf")
    for line in re.findall(r"^# (?:php_pool www \{|    user www-data;|    workers auto;|\})$", text, re.MULTILINE):
        text = text.replace(line, line[2:], 1)
    root.write("/etc/mayfly/mayfly.conf", text)
    site = root.read("/etc/mayfly/sites/example").replace("/var/www/example.org", "/var/www/html")
    root.write("/etc/mayfly/sites/site.conf", site)


def leaves_ports(reader):
    for name in list(reader.manager.running):
        reader.manager.one("stop", name)


def nginx_serves(reader):
    """With the lines that the page prints for the service."""
    leaves_ports(reader)
    page = reader.page("guide/from-nginx.md")
    reader.root.write("/etc/default/mayfly", page.block("MAYFLY_OPTIONS"))
    reader.root.write("/etc/systemd/system/mayfly.service.d/override.conf", page.block("[Service]"))
    reader.root.run("nginx")
    trial.wait_until(lambda: answers(80), "nginx does not serve")


def back_to_its_own(reader):
    leaves_ports(reader)
    reader.root.write("/etc/default/mayfly", "")
    shutil.rmtree(reader.root.path + "/etc/systemd/system/mayfly.service.d", ignore_errors=True)
    if os.path.exists(reader.root.path + "/run/nginx.pid"):
        reader.root.run("nginx", "-s", "quit")


def apache_serves(reader):
    back_to_its_own(reader)
    reader.root.write("/var/www/html/.htaccess", "Redirect 301 /old /\n")
    reader.root.run("apachectl", "start")


def mayfly_serves(reader):
    if reader.next_package:
        shutil.copy(reader.next_package, reader.root.path + "/root/mayfly_0.1.1_amd64.deb")
    if "mayfly" not in reader.manager.running:
        reader.root.run("sh", "-c", "apachectl stop || true")
        trial.wait_until(lambda: not answers(80), "Apache has not ended")
        reader.manager.one("start", "mayfly")


def shop_is_there(reader):
    leaves_ports(reader)
    root, page = reader.root, reader.page("guide/several-sites.md")
    root.run("useradd", "--system", "--user-group", "--no-create-home", "shop")
    root.write("/var/www/shop/index.php", trial.PAGE)
    root.run("chown", "-R", "shop:shop", "/var/www/shop")
    root.write("/etc/mayfly/sites/shop.env", page.block("SITE_DIR"))


# By page and the beginning of the command.
PREPARATIONS = {
    ("guide.md", "for i"): installs_wordpress,
    ("guide.md", "mayfly top"): visits,
    ("guide.md", "curl -si"): edits_once,
    ("guide/package.md", "mayfly -t"): enables_a_site,
    ("guide/from-nginx.md", "systemctl stop nginx"): nginx_serves,
    ("guide/from-apache.md", "grep -rn"): apache_serves,
    ("guide/operations.md", "apt install"): mayfly_serves,
    ("guide/several-sites.md", "systemctl enable"): shop_is_there,
}
# Commands that say by their end what they have found.
ENDS_WITH = {"mayfly doctor": (0, 3, 4)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", default=os.path.join(trial.WORK, "out"))
    parser.add_argument("--next")
    parser.add_argument("--inside")
    parser.add_argument("suite", nargs="?", default="bookworm")
    args = parser.parse_args()
    if args.inside:
        return inside(args)
    root = roots.fresh(args.suite, os.path.join(trial.WORK, "roots", f"guide-{args.suite}"), [*PACKAGES, THEMES[args.suite]])
    command = ["unshare", "--net", "--pid", "--mount", "--ipc", "--uts", "--fork", "--kill-child", sys.executable, os.path.abspath(__file__),
               "--inside", root, "--packages", args.packages, *(["--next", args.next] if args.next else [])]
    return subprocess.run(command, check=False).returncode


def inside(args):
    root = trial.Root(args.inside)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    trial.prepare(args.inside)
    os.mkdir(args.inside + "/dev/pts")
    subprocess.run(["mount", "-t", "devpts", "-o", "newinstance,ptmxmode=666,mode=620", "devpts", args.inside + "/dev/pts"], check=True)
    os.symlink("pts/ptmx", args.inside + "/dev/ptmx")
    service.prepare()
    wordpress_is_there(root)
    shutil.copy(trial.package_in(args.packages), root.path + "/root/mayfly_0.1.0_amd64.deb")
    reader = Reader(root, args.next and trial.package_in(args.next))
    began = time.monotonic()
    reader.follow("guide/package.md", until="mayfly serve")
    reader.follow("guide.md", until="for i in 1 2")
    seconds = time.monotonic() - began
    words = sum(reader.page(name).words() for name in ("guide/package.md", "guide.md"))
    minutes = seconds / 60 + words / WORDS_A_MINUTE
    is_quick = minutes < PATH_MINUTES
    reader.failed += not is_quick
    print(f"  {'ok  ' if is_quick else 'FAIL'}  from the package to a WordPress seen as HIT: {seconds:.0f} s for the commands, and "
          f"{words} words of both pages, {minutes:.1f} minutes together", flush=True)
    for name in ("guide.md", "guide/package.md", "guide/from-nginx.md", "guide/from-apache.md", "guide/operations.md",
                 "guide/several-sites.md", "guide/trouble.md", "guide/service.md", "guide/container.md"):
        reader.follow(name)
    leaves_ports(reader)
    for page in reader.pages.values():
        for text, reason in page.left_out:
            print(f"  left  {page.name}: {text} ({reason})")
    known = {os.path.join("guide", name) for name in os.listdir(os.path.join(DOCS, "guide"))} | {"guide.md"}
    assert known == set(reader.pages), f"pages that nobody follows: {known ^ set(reader.pages)}"
    print(f"{reader.passed} passed, {reader.failed} failed")
    return reader.failed != 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("guide: terminated"))
    sys.exit(main())
