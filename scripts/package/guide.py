#!/usr/bin/python3
"""Follows docs/guide.md and docs/guide/*.md in a fresh root of Debian, from the package: every command of their `console`
blocks is run as it is printed, and must print what stands there. A block that cannot be run so has a line above it,
`<!-- not run: REASON -->`, which is shown.

    guide.py [--packages FOLDER] [--next FOLDER] [SUITE]      bookworm

The first part is a newcomer's way: from the package to a WordPress seen as HIT, then to a service. It is timed, with what
a reader takes for the words of these pages. `$` is typed by the site's owner, `#` by root. The root has a systemd of its own
(machine.py), its own network with an issuer of certificates for tests (Pebble, which `scripts/setup.sh test` installs) in the place of
Let's Encrypt, and names of its own. Needs root and what `scripts/setup.sh trial` installs.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "apps")]
import machine  # noqa: E402
import roots  # noqa: E402
import trial  # noqa: E402
from harness import client, guide, wordpress  # noqa: E402

DOCS = os.path.join(HERE, "..", "..", "docs")
PACKAGES = ["apache2", "mariadb-server", "wordpress", "php-mysql"]
THEMES = {"bookworm": "wordpress-theme-twentytwentythree", "trixie": "wordpress-theme-twentytwentyfive"}
BLOCK = re.compile(r"^(?:<!-- not run: (.*?) -->\n)?( *)```console\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
OWNER = "anna"
ADDRESS, PORT = "127.0.0.1", 8080
WORDS_A_MINUTE = 200
PATH_MINUTES = 10
# Units of Debian's that the reader starts; none of them at the boot.
IDLE = ("nginx", "apache2")
PEBBLE = os.environ.get("MAYFLY_PEBBLE") or os.path.join(roots.WORK, "..", "tools", "pebble")
DIRECTORY = "https://127.0.0.1:14000/dir"
NAMES = ("example.org", "www.example.org")


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


class Reader:
    """Follows pages in a root."""

    def __init__(self, inside, next_package):
        self.root, self.next_package = inside, next_package
        self.pages, self.server, self.passed, self.failed = {}, None, 0, 0
        self.admin = wordpress.User("root1", "Ada Admin", "administrator")

    def page(self, name):
        return self.pages.setdefault(name, Page(name))

    def follow(self, name, until=None):
        """Runs the commands of the page that were not run yet, up to one that begins with `until`."""
        page = self.page(name)
        while page.commands:
            command = page.commands.pop(0)
            if command.text.startswith("apt install") and name == "guide/operations.md" and not self.next_package:
                page.left_out.append((command.text, "--next names no package"))
                continue
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
        user, home = ("root", "/root") if command.is_root else (OWNER, f"/home/{OWNER}")
        line = self.root.line("bash", "-c", f"cd; {command.text}", user=user, home=home)
        return subprocess.Popen(line, text=True, stdin=subprocess.DEVNULL, **how)

    def run_to_its_end(self, command):
        with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
            running = self.popen(command, stdout=file, stderr=subprocess.STDOUT)
            try:
                running.wait(roots.SECONDS)
            except subprocess.TimeoutExpired:
                raise AssertionError("does not end") from None
            file.seek(0)
            said = file.read()
        assert running.returncode in ENDS_WITH.get(command.text, (0,)), f"ended with {running.returncode}:\n{said}"
        return said

    def start_server(self, command):
        """Until Ctrl-C, which is typed when the page ends, or when it has its reader start another one."""
        self.end_server()
        log = tempfile.TemporaryFile("w+", encoding="utf-8")
        # In a terminal, as a person does: what is for that person alone is said there.
        text = f"script --quiet --flush --command '{command.text}' /dev/null"
        terminal = types.SimpleNamespace(text=text, is_root=command.is_root)
        self.server = self.popen(terminal, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        said = lambda: (log.seek(0), log.read().replace("\r\n", "\n"))[1]
        # What is announced is said when everything listens.
        roots.wait_until(lambda: self.server.poll() is not None or "Ctrl-C" in said(), "it does not serve")
        time.sleep(0.5)
        said = said()
        assert self.server.poll() is None, said
        return said

    def end_server(self):
        if self.server is None:
            return
        pid = self.root.run("sh", "-c", "pgrep --oldest --exact mayfly || true").strip()
        if pid:
            self.root.run("kill", "-INT", pid)
        roots.wait_until(lambda: self.server.poll() is not None, "Ctrl-C does not end it")
        self.server = None


# What a page says in words, before the command that comes behind it.

def wordpress_is_there(root):
    """The site that the newcomer has: Debian's WordPress, in the folder of its owner, with its database."""
    root.run("useradd", "--create-home", "--shell", "/bin/bash", OWNER)
    shutil.copytree(root.path + "/usr/share/wordpress", root.path + "/var/www/html", symlinks=False, dirs_exist_ok=True,
                    ignore=lambda _, names: [it for it in names if it == "wp-config.php"], ignore_dangling_symlinks=True)
    for name in ("index.html", "index.nginx-debian.html"):
        if os.path.exists(root.path + "/var/www/html/" + name):
            os.unlink(root.path + "/var/www/html/" + name)
    root.run("systemctl", "start", "mariadb")
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


def names_and_issuer(root):
    """What the internet is to the machine: the site's names lead to it, and an issuer that all trust gives certificates."""
    root.write("/etc/hosts", f"127.0.0.1 localhost {' '.join(NAMES)}\n")
    folder = root.path + "/srv/issuer"
    shutil.copytree(PEBBLE, folder)
    root.run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", "/srv/issuer/key.pem", "-out", "/srv/issuer/cert.pem",
             "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
             "-addext", "basicConstraints=critical,CA:FALSE")
    root.write("/srv/issuer/pebble.json", json.dumps({"pebble": {
        "listenAddress": "127.0.0.1:14000", "managementListenAddress": "127.0.0.1:15000", "certificate": "cert.pem", "privateKey": "key.pem",
        "httpPort": 80, "tlsPort": 443, "ocspResponderURL": "", "externalAccountBindingRequired": False,
        "retryAfter": {"authz": 1, "order": 1}, "keyAlgorithm": "ecdsa",
        "profiles": {"default": {"description": "usual", "validityPeriod": 7776000}}}}))
    for unit, text in (("names", "pebble-challtestsrv -http01 '' -https01 '' -tlsalpn01 '' -doh '' -defaultIPv6 '' -defaultIPv4 127.0.0.1 -dnsserver 127.0.0.1:8053"),
                       ("issuer", "pebble -config pebble.json -strict -dnsserver 127.0.0.1:8053")):
        root.write(f"/etc/systemd/system/{unit}.service", f"[Service]\nWorkingDirectory=/srv/issuer\nEnvironment=PEBBLE_VA_NOSLEEP=1\nExecStart=/srv/issuer/{text}\n")
    root.run("systemctl", "daemon-reload")
    root.run("systemctl", "start", "names", "issuer")
    roots.wait_until(lambda: root.run("sh", "-c", "curl -ks https://127.0.0.1:15000/roots/0 >/usr/local/share/ca-certificates/issuer.crt", check=False)[0] == 0,
                     "no issuer")
    root.run("update-ca-certificates")


def installs_wordpress(reader):
    """Its owner has done so long ago; here it needs a server that runs, which has seen the first page lead to the installation."""
    wordpress.Site.install(None, types.SimpleNamespace(address=ADDRESS, port=PORT), reader.admin)
    time.sleep(10)


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


def asks_the_issuer_of_the_machine(reader):
    """The one change that is made to what was printed."""
    text = reader.root.read("/etc/mayfly/mayfly.conf")
    address = re.search(r"uri (https://\S+);", text)[1]
    if address == DIRECTORY:
        return
    issuer = f"{DIRECTORY};\n        ssl_trusted_certificate /srv/issuer/cert.pem"
    reader.root.write("/etc/mayfly/mayfly.conf", text.replace(address, issuer))


def goes_live(reader):
    """Writes the lines that the page shows into wp-config.php, and waits for the certificate."""
    lines = re.search(r"^```text\n(define.*?)^```$", reader.page("guide/package.md").text, re.MULTILINE | re.DOTALL)[1]
    settings = reader.root.read("/var/www/html/wp-config.php")
    reader.root.write("/var/www/html/wp-config.php", settings.replace("<?php\n", "<?php\n" + lines, 1))
    trusts = ("curl", "--silent", "--show-error", "https://example.org/wp-login.php")
    roots.wait_until(lambda: reader.root.run(*trusts, check=False)[0] == 0, f"no certificate: {reader.root.run(*trusts, check=False)[1][:200]}")


def log_is_written(_):
    time.sleep(1.5)


def leaves_ports(reader):
    reader.end_server()
    reader.root.run("systemctl", "stop", "mayfly", "mayfly@shop", *IDLE, check=False)


def nginx_serves(reader):
    """With the lines that the page prints for the service."""
    leaves_ports(reader)
    page = reader.page("guide/from-nginx.md")
    reader.root.write("/etc/default/mayfly", page.block("MAYFLY_OPTIONS"))
    reader.root.write("/etc/systemd/system/mayfly.service.d/override.conf", page.block("[Service]"))
    reader.root.run("systemctl", "daemon-reload")
    reader.root.run("systemctl", "start", "nginx")


def back_to_its_own(reader):
    leaves_ports(reader)
    reader.root.write("/etc/default/mayfly", "")
    shutil.rmtree(reader.root.path + "/etc/systemd/system/mayfly.service.d", ignore_errors=True)
    reader.root.run("systemctl", "daemon-reload")


def apache_serves(reader):
    back_to_its_own(reader)
    reader.root.write("/var/www/html/.htaccess", "Redirect 301 /old /\n")
    reader.root.run("systemctl", "start", "apache2")


def mayfly_serves(reader):
    if reader.next_package:
        shutil.copy(reader.next_package, reader.root.path + "/root/mayfly_0.2.1_amd64.deb")
    reader.root.run("systemctl", "stop", "apache2")
    reader.root.run("systemctl", "start", "mayfly")


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
    ("guide/package.md", "mayfly -t"): asks_the_issuer_of_the_machine,
    ("guide/package.md", "for i"): goes_live,
    ("guide/package.md", "tail"): log_is_written,
    ("guide/from-nginx.md", "systemctl stop nginx"): nginx_serves,
    ("guide/from-apache.md", "grep -rn"): apache_serves,
    ("guide/operations.md", "apt install"): mayfly_serves,
    ("guide/several-sites.md", "systemctl enable"): shop_is_there,
}
# Commands that say by their end what they have found.
ENDS_WITH = {"mayfly doctor": (0, 3, 4)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", default=os.path.join(roots.WORK, "out"))
    parser.add_argument("--next")
    parser.add_argument("suite", nargs="?", default="bookworm")
    args = parser.parse_args()
    root = roots.fresh(args.suite, os.path.join(roots.WORK, "roots", f"guide-{args.suite}"), [*machine.PACKAGES, *PACKAGES, THEMES[args.suite]])
    for unit in IDLE:
        subprocess.run(["systemctl", f"--root={root}", "disable", "--quiet", unit], check=True)
    inside = machine.Machine(os.path.realpath(root))
    try:
        inside.enter_network()
        return follow_all(inside, args)
    finally:
        inside.end()
        shutil.rmtree(root, ignore_errors=True)


def follow_all(inside, args):
    wordpress_is_there(inside)
    names_and_issuer(inside)
    shutil.copy(roots.package_in(args.packages), inside.path + "/root/mayfly_0.2.0_amd64.deb")
    reader = Reader(inside, args.next and roots.package_in(args.next))
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
                 "guide/several-sites.md", "guide/trouble.md", "guide/service.md", "guide/container.md", "guide/platforms.md"):
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
