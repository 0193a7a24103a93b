#!/usr/bin/python3
"""Runs the package under a real systemd: as process 1 of a fresh root of Debian, in namespaces of its own.

    systemd_trial.py [--packages FOLDER] [--next FOLDER] [SUITE...]      bookworm and trixie

The service and two instances of its template serve a PHP site each, while visitors ask the instances a hundred times a
second. The service is restarted and stopped, an instance is restarted, the package is upgraded (to that in --next), removed and
purged: those that are not concerned answer every request. What the hardened unit may not write is named, and mistakes of a reload
are shown. Needs root and what `scripts/setup.sh trial` installs.
"""

import argparse
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import machine  # noqa: E402
import roots  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
WORK = os.path.join(os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target"), "package")
RATE = 100
PORTS = {"main": 8080, "one": 8081, "two": 8082}
PAGE = "<?php echo 'page ', getmypid();"


class Visitors:
    """Ask a site a hundred times a second, for pages that PHP makes; in the network of the machine."""

    def __init__(self, inside, name):
        self.name = name
        self.process = subprocess.Popen(["nsenter", "-t", str(inside.first()), "-n", sys.executable, os.path.abspath(__file__), "--visit", str(PORTS[name])],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end(self):
        said, _ = self.process.communicate(timeout=roots.SECONDS)
        return json.loads(said)


def visit(port):
    """Until standard input ends. Prints how many requests were made, and what went wrong."""
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    asked, wrong, lock = [0], [], threading.Lock()

    def one(number):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", f"/?n={number}")
            answer = connection.getresponse()
            text = answer.read()
            problem = None if answer.status == 200 and text.startswith(b"page") else f"{answer.status} {text[:60]!r}"
            connection.close()
        except OSError as error:
            problem = repr(error)
        with lock:
            asked[0] += 1
            if problem:
                wrong.append(problem)
    threads, number, began = [], 0, time.monotonic()
    while not ended.is_set():
        thread = threading.Thread(target=one, args=(number,))
        thread.start()
        threads.append(thread)
        number += 1
        time.sleep(max(0, began + number / RATE - time.monotonic()))
    for thread in threads:
        thread.join()
    print(json.dumps({"asked": asked[0], "wrong": len(wrong), "first": wrong[:3]}))


def package_in(folder):
    found = [it for it in sorted(os.listdir(folder)) if re.match(r"mayfly_.*\.deb$", it)]
    assert len(found) == 1, f"{folder} has {found}"
    return os.path.join(folder, found[0])


class Trial:
    def __init__(self, inside, package, following):
        self.machine, self.package, self.following, self.failed = inside, package, following, 0

    def check(self, name, holds, detail=""):
        self.failed += not holds
        print(f"  {'ok  ' if holds else 'FAIL'}  {name}{'' if holds else ': ' + str(detail)}", flush=True)

    def prepare(self):
        for name in PORTS:
            self.machine.write(f"/var/www/{name}/index.php", PAGE)
        self.machine.run("dpkg", "--install", self.inside(self.package))
        self.machine.write("/etc/mayfly/mayfly.conf", """error_log /var/log/mayfly/error.log;
events {}
php_pool main { user www-data; workers 2; }
http { server { listen 127.0.0.1:8080; root /var/www/main; location / { include /etc/mayfly/fastcgi.conf; fastcgi_pass php:main; fastcgi_param SCRIPT_FILENAME $document_root/index.php; } } }
""")
        for name in ("one", "two"):
            self.machine.write(f"/etc/mayfly/sites/{name}.env", f'SITE_OPTIONS="--listen 127.0.0.1:{PORTS[name]} --ttl 0"\n')
        self.machine.run("systemctl", "daemon-reload")
        self.machine.run("systemctl", "start", "mayfly", "mayfly@one", "mayfly@two")
        self.machine.run("systemctl", "enable", "mayfly@one")

    def inside(self, package):
        shutil.copy(package, self.machine.path + "/root/")
        return "/root/" + os.path.basename(package)

    def during(self, name, concerned, *commands):
        """Runs commands while visitors ask those sites that are not concerned."""
        visitors = [Visitors(self.machine, site) for site in PORTS if site not in concerned]
        time.sleep(1)
        for command in commands:
            self.machine.run(*command)
        time.sleep(1)
        for it in visitors:
            report = it.end()
            self.check(f"{name}: {it.name} answered {report['asked']} requests", report["wrong"] == 0 and report["asked"] > RATE, report)

    def left(self):
        return self.machine.run("pgrep", "--exact", "--list-full", "mayfly", check=False)[1]

    def denials(self):
        """What the unit may not write is named before the start, and the drop-in that is named lets it be written."""
        inside = self.machine
        inside.run("mkdir", "-p", "/var/log/apache2")
        before = inside.read("/etc/mayfly/mayfly.conf")
        inside.write("/etc/mayfly/mayfly.conf", before.replace("http {", "http { access_log /var/log/apache2/shop.log combined;"))
        said = inside.run("mayfly", "-t")
        advice = re.search(r"systemctl edit (\S+), and add: \[Service\] (ReadWritePaths=.*)", said)
        self.check("-t names the drop-in for a log of Apache", bool(advice), said)
        code, _ = inside.run("systemctl", "restart", "mayfly", check=False)
        journal = inside.run("journalctl", "--no-pager", "--unit=mayfly", "--lines=20")
        self.check("the unit may not write there, and the start says so", code != 0 and "ReadWritePaths=/var/log/apache2" in journal, journal)
        if advice:
            inside.write(f"/etc/systemd/system/{advice[1]}.d/override.conf", f"[Service]\n{advice[2]}\n")
        inside.run("systemctl", "daemon-reload")
        inside.run("systemctl", "restart", "mayfly")
        said = inside.run("mayfly", "-t")
        self.check("with the drop-in it may, and -t says nothing", "ReadWritePaths" not in said, said)
        inside.run("curl", "--silent", "--output", "/dev/null", f"http://127.0.0.1:{PORTS['main']}/")
        roots.wait_until(lambda: "GET / " in inside.read("/var/log/apache2/shop.log"), "no line in the log")
        inside.write("/etc/mayfly/mayfly.conf", before)
        inside.run("rm", "-r", "/etc/systemd/system/mayfly.service.d")
        inside.run("systemctl", "daemon-reload")
        inside.run("systemctl", "restart", "mayfly")

    def mistakes(self):
        """A reload that is refused fails, and the mistakes are where the guide says."""
        inside = self.machine
        inside.write("/etc/mayfly/mayfly.conf", inside.read("/etc/mayfly/mayfly.conf").replace("root /var/www/main;", "rot /var/www/main;"))
        by_systemd = inside.run("systemctl", "reload", "mayfly", check=False)
        status = inside.run("systemctl", "status", "--no-pager", "--lines=20", "mayfly", check=False)[1]
        by_itself = inside.run("mayfly", "-s", "reload", check=False)
        self.check("systemctl reload fails with a mistake", by_systemd[0] != 0, by_systemd)
        self.check("systemctl status shows the mistake", '"rot"' in status, status)
        self.check("mayfly -s reload shows it itself", by_itself[0] == 1 and '"rot"' in by_itself[1], by_itself)
        inside.write("/etc/mayfly/mayfly.conf", inside.read("/etc/mayfly/mayfly.conf").replace("rot /var/www/main;", "root /var/www/main;"))
        inside.run("systemctl", "reload", "mayfly")

    def run(self):
        self.prepare()
        self.denials()
        self.mistakes()
        self.during("the service is restarted", ["main"], ["systemctl", "restart", "mayfly"])
        self.during("the service is stopped and started", ["main"], ["systemctl", "stop", "mayfly"], ["systemctl", "start", "mayfly"])
        self.during("an instance is restarted", ["one"], ["systemctl", "restart", "mayfly@one"])
        self.during("an instance is stopped and started", ["one"], ["systemctl", "stop", "mayfly@one"], ["systemctl", "start", "mayfly@one"])
        self.during("the service is reloaded", [], ["systemctl", "reload", "mayfly"])
        if self.following:
            self.during("the package is upgraded", [], ["dpkg", "--install", self.inside(self.following)])
        self.machine.run("dpkg", "--remove", "mayfly")
        self.check("a removal stops the service and all instances", self.left() == "", self.left())
        self.check("a removal keeps certificates", os.path.isdir(self.machine.path + "/var/lib/mayfly"))
        self.machine.run("dpkg", "--purge", "mayfly")
        links = self.machine.run("find", "/etc/systemd/system", "/var/lib/mayfly", "/var/cache/mayfly", "/run/mayfly", "-name", "*mayfly*", check=False)[1]
        links = [line for line in links.splitlines() if "No such file" not in line]
        self.check("a purge leaves nothing", not links, links)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", default=os.path.join(WORK, "out"))
    parser.add_argument("--next")
    parser.add_argument("--visit", type=int)
    parser.add_argument("suite", nargs="*", default=["bookworm", "trixie"])
    args = parser.parse_args()
    if args.visit:
        return visit(args.visit)
    failed = 0
    for suite in args.suite:
        print(f"{suite}:", flush=True)
        root = roots.fresh(suite, os.path.join(WORK, "roots", f"systemd-{suite}"), machine.PACKAGES)
        inside = machine.Machine(os.path.realpath(root))
        try:
            trial = Trial(inside, package_in(args.packages), args.next and package_in(args.next))
            trial.run()
            failed += trial.failed
        finally:
            inside.end()
            shutil.rmtree(root, ignore_errors=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
