#!/usr/bin/python3
"""Tries each PHP of Debian's releases with the packages, and prints what became of it as a table: whether the package
installs, whether Mayfly serves PHP, learns a page, shows it after a restart, forgets it after a write, is upgraded while it
serves (to the package in --next), and leaves nothing when it is purged.

    php_trial.py [--packages FOLDER] [--next FOLDER] [--architecture NAME] [--archive] [SUITE...]      bullseye, bookworm, trixie and sid

Where the package does not install because glibc is older, or with `--archive`, the static program of the archive is tried
in its place. Each version of PHP-FPM in a root has a pool. Roots of another architecture run by qemu. Needs root and what
`scripts/setup.sh trial` installs.
"""

import argparse
import contextlib
import glob
import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import roots  # noqa: E402

SUITES = ["bullseye", "bookworm", "trixie", "sid"]
PORT = 8080
COLUMNS = ("PHP", "installs", "serves", "learns", "restarts warm", "upgrades", "purges clean")
PID = "/run/mayfly/mayfly.pid"
# A page of a row in a database, which PHP changes when it is posted to.
PAGE = """<?php
$database = new PDO('sqlite:' . __DIR__ . '/data/site.db');
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    header('Cache-Control: no-store');
    $database->exec('CREATE TABLE IF NOT EXISTS page (version INTEGER)');
    $database->exec('INSERT INTO page SELECT COALESCE(MAX(version), 0) + 1 FROM page');
}
echo PHP_VERSION, ' version ', $database->query('SELECT MAX(version) FROM page')->fetchColumn();
"""
# The same of a file: what a database needs of the kernel (openat2 from memory alone), qemu lacks.
FILE_PAGE = """<?php
$file = __DIR__ . '/data/version';
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    header('Cache-Control: no-store');
    file_put_contents($file, (is_file($file) ? (int) file_get_contents($file) : 0) + 1);
}
echo PHP_VERSION, ' version ', file_get_contents($file);
"""
CONFIGURATION = """
daemon off;
pid {pid};
error_log /var/log/mayfly/error.log info;
{pools}
events {{}}
http {{
    access_log off;
    fastcgi_cache_path /var/cache/mayfly keys_zone=pages:8m disk_timeout=10s;
    server {{
        listen 127.0.0.1:{port};
        root /srv/site;
        {locations}
    }}
}}
"""
LOCATION = """
        location /{name}/ {{
            include fastcgi.conf;
            fastcgi_param SCRIPT_FILENAME /srv/site/index.php;
            fastcgi_pass php:{name};
            fastcgi_cache pages;
            fastcgi_cache_key $uri;
            fastcgi_cache_valid 200 1ms;
            cache_learn on;
            add_header X-Cache $upstream_cache_status;
        }}
        location /kept-{name}/ {{
            include fastcgi.conf;
            fastcgi_param SCRIPT_FILENAME /srv/site/index.php;
            fastcgi_pass php:{name};
            fastcgi_cache pages;
            fastcgi_cache_key $uri;
            fastcgi_cache_valid 200 1h;
            add_header X-Cache $upstream_cache_status;
        }}"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", default=os.path.join(roots.WORK, "out"))
    parser.add_argument("--next", help="a folder with the package of a later version")
    parser.add_argument("--architecture", default=roots.own_architecture())
    parser.add_argument("--archive", action="store_true", help="tries the static program everywhere")
    parser.add_argument("--inside")
    parser.add_argument("suites", nargs="*", default=SUITES)
    args = parser.parse_args()
    if args.inside:
        return trial(args)
    failed = 0
    print(f"| release | {' | '.join(COLUMNS)} |\n|{' --- |' * (len(COLUMNS) + 1)}", flush=True)
    for suite in args.suites:
        root = roots.fresh(suite, os.path.join(roots.WORK, "roots", f"php-{suite}-{args.architecture}"), ["php-sqlite3"], args.architecture)
        command = ["unshare", "--net", "--pid", "--mount", "--ipc", "--uts", "--fork", "--kill-child", sys.executable, os.path.abspath(__file__),
                   "--inside", root, "--packages", args.packages, "--architecture", args.architecture, suite, *(["--archive"] if args.archive else []),
                   *(["--next", args.next] if args.next else [])]
        failed += subprocess.run(command, check=False).returncode != 0
        shutil.rmtree(root)
    print(f"{len(args.suites) - failed} passed, {failed} failed")
    return failed != 0


def trial(args):
    root = roots.Root(args.inside)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    root.mount()
    installed = install(root, args)
    pools = {f"php{number}": program for number, program in enumerate(programs(root))}
    prepare(root, pools, PAGE if args.architecture == roots.own_architecture() else FILE_PAGE)
    rows = {name: Row(root, name, program) for name, program in pools.items()}
    start(root)
    for row in rows.values():
        row.serves()
        row.learns()
        row.keeps()
    stop(root)
    start(root)
    for row in rows.values():
        row.is_warm()
        row.forgets()
    if args.next and installed == "package":
        upgrade(root, args)
        for row in rows.values():
            row.is_upgraded()
    stop(root)
    clean = purge(root, installed)
    for row in rows.values():
        print(f"| {args.suites[0]}, {args.architecture} | {row.version} | {installed} | {row.served} | {row.learned} | {row.warm} | {row.upgraded} | {clean} |", flush=True)
    # A release with a glibc of the package must learn; another one must say why it does not.
    return any(row.problems for row in rows.values())


class Row:
    """What became of one version of PHP."""

    def __init__(self, root, name, program):
        self.root, self.name, self.problems = root, name, []
        self.version = re.search(r"PHP ([\d.]+)", root.run(program, "-v"))[1]
        self.served = self.learned = self.warm = "no"
        self.upgraded = "not tried"

    def check(self, holds, problem):
        if not holds:
            self.problems.append(problem)
            explained = self.root.run("mayfly", "explain", f"http://127.0.0.1:{PORT}/{self.name}/page", "-c", "/etc/mayfly/php.conf", check=False)[1]
            print(f"  FAIL  {self.version}: {problem}\n{self.root.read('/var/log/mayfly/error.log')[-2000:]}\n{explained}", file=sys.stderr, flush=True)
        return holds

    def ask(self, method="GET", kind=""):
        return ask(f"/{kind}{self.name}/page", method)

    def serves(self):
        status, _, body = self.ask("POST")
        if self.check(status == 200 and body.startswith(f"{self.version} version 1"), f"{status} {body[:200]}"):
            self.served = "yes"

    def learns(self):
        """A page that is not learned is stale after a millisecond."""
        answers = [self.again() for _ in range(6)]
        if answers[-1][1] == "HIT" and answers[-1][2] == answers[-2][2]:
            self.learned = "yes"
            return
        said = re.search(r"no page is learned \(cache_learn\): .*?: (.*)", self.root.read("/var/log/mayfly/error.log"))
        self.check(said and is_older(self.root), f"not learned, and the log does not say why: {answers}")
        self.learned = f"no: {said[1].strip()}" if said else "no"

    def keeps(self):
        """A page that is asked for twice is on the disk when the server has ended."""
        words = [self.ask(kind="kept-")[1] for _ in range(2)]
        self.check(words == ["MISS", "HIT"], f"not kept: {words}")

    def is_warm(self):
        # A request may come before the folder was read: then PHP makes the page.
        roots.wait_until(lambda: "were loaded" in self.root.read("/var/log/mayfly/error.log").split("stopping")[-1], "the folder was not read")
        status, word, body = self.ask(kind="kept-")
        if self.check(status == 200 and word == "HIT" and body.startswith(self.version), f"not warm: {status} {word} {body[:200]}"):
            self.warm = "yes"

    def forgets(self):
        written = re.match(r"\S+ version (\d+)", self.ask("POST")[2])[1]
        shown = self.ask()[2]
        return self.check(shown.endswith(f" version {written}"), f"version {written} was written, and {shown} is shown")

    def is_upgraded(self):
        status, word, body = self.ask(kind="kept-")
        is_same = self.check(status == 200 and word == "HIT" and body.startswith(self.version), f"{status} {word} {body[:200]}")
        self.upgraded = "yes" if self.forgets() and is_same else "no"

    def again(self):
        time.sleep(0.3)
        return self.ask()


def install(root, args):
    if not args.archive and not is_older(root):
        shutil.copy(roots.package_in(args.packages, args.architecture), root.path + "/root/mayfly.deb")
        root.run("dpkg", "--install", "/root/mayfly.deb")
        return "package"
    archive = glob.glob(os.path.join(args.packages, f"mayfly-*-linux-{roots.MACHINES[args.architecture][0]}.tar.gz"))
    assert len(archive) == 1, f"one archive in {args.packages}: {archive}"
    os.makedirs(root.path + "/root/mayfly")
    subprocess.run(["tar", "--extract", "--file", archive[0], "--directory", root.path + "/root/mayfly", "--strip-components=1"], check=True)
    root.run("sh", "-ec", "cd /root/mayfly; install -m 755 mayfly mayfly-tools /usr/bin; mkdir -p /etc/mayfly /var/log/mayfly; cp -r conf/* /etc/mayfly")
    # The programs that make accounts are not in each root.
    root.write("/etc/passwd", root.read("/etc/passwd") + "mayfly:x:990:990::/var/lib/mayfly:/usr/sbin/nologin\n")
    root.write("/etc/group", root.read("/etc/group") + "mayfly:x:990:\n")
    return "archive"


def is_older(root):
    """Whether the root's glibc is older than the package needs."""
    version = re.search(r"(\d+)\.(\d+)", root.run("ldd", "--version"))
    return (int(version[1]), int(version[2])) < (2, 34)


def programs(root):
    found = sorted(glob.glob(root.path + "/usr/sbin/php-fpm[0-9]*"))
    assert found, "no PHP-FPM"
    return [it.removeprefix(root.path) for it in found]


def prepare(root, pools, page):
    # The program finds a single one by itself.
    binary = {name: f" binary {program};" if len(pools) > 1 else "" for name, program in pools.items()}
    lines = "".join(f"php_pool {name} {{ user www-data; workers 2;{binary[name]} }}\n" for name in pools)
    locations = "".join(LOCATION.format(name=name) for name in pools)
    root.write("/etc/mayfly/php.conf", CONFIGURATION.format(pid=PID, pools=lines, port=PORT, locations=locations))
    root.write("/srv/site/index.php", page)
    os.makedirs(root.path + "/srv/site/data")
    root.run("chown", "-R", "www-data:www-data", "/srv/site")
    root.run("mayfly", "-t", "-c", "/etc/mayfly/php.conf")


def start(root):
    server = subprocess.Popen(root.line("mayfly", "-c", "/etc/mayfly/php.conf"))
    roots.wait_until(lambda: server.poll() is not None or answers(), "it does not answer")
    assert server.poll() is None, f"it has ended: {root.read('/var/log/mayfly/error.log')[-2000:]}"


def upgrade(root, args):
    """Installs the later package while the server runs: the new process takes the place of the former one."""
    former = running(root)
    shutil.copy(roots.package_in(args.next, args.architecture), root.path + "/root/mayfly.deb")
    said = root.run("dpkg", "--install", "/root/mayfly.deb")
    assert running(root) != former, f"process {former} serves on: {said}"
    roots.wait_until(lambda: has_ended(root, former), f"process {former}, whose place was taken, has not ended")


def stop(root):
    server = running(root)
    os.kill(server, signal.SIGTERM)
    roots.wait_until(lambda: has_ended(root, server), "it has not ended")


def running(root):
    return int(root.read(PID))


def has_ended(root, process):
    """This program is the first process in its namespace, and waits for whatever ends."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return not os.path.exists(f"{root.path}/proc/{process}")


def purge(root, installed):
    if installed != "package":
        return "archive"
    root.run("dpkg", "--purge", "mayfly")
    left = root.run("find", "/etc", "/usr", "/var", "/run", "-xdev", "-name", "*mayfly*").split()
    assert not left, left
    return "yes"


def answers():
    try:
        return ask("/none")[0] == 404
    except OSError:
        return False


def ask(path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    try:
        connection.request(method, path, headers={"Host": "site.test"})
        response = connection.getresponse()
        return response.status, response.getheader("X-Cache"), response.read().decode()
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
