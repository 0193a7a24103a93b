#!/usr/bin/python3
"""Runs the package under a real systemd: as process 1 of a fresh root of Debian, in namespaces of its own.

    systemd_trial.py [--packages FOLDER] [--next FOLDER] [SUITE...]      bookworm and trixie

The service and two instances of its template serve a PHP site each, while visitors ask the instances a hundred times a
second. The service is restarted and stopped, an instance is restarted, the package is upgraded (to that in --next), removed and
purged: those that are not concerned answer every request. Needs root and what `scripts/setup.sh trial` installs.
"""

import argparse
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import roots  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
WORK = os.path.join(os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target"), "package")
PACKAGES = ["systemd", "systemd-sysv", "dbus", "passwd"]
SECONDS = 60
RATE = 100
PORTS = {"main": 8080, "one": 8081, "two": 8082}
PAGE = "<?php echo 'page ', getmypid();"
# Runs with namespaces of its own for processes, mounts, names, messages, the network and control groups.
BOOT = r"""
set -e
root=$1
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for name in null zero full random urandom tty; do : >"$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"
ln -s pts/ptmx "$root/dev/ptmx"
ip link set lo up
cd "$root"
mkdir -p old
pivot_root . old
export container=trial
exec chroot . /bin/sh -c 'umount -l /old && exec /lib/systemd/systemd --system --unit=multi-user.target' >/dev/null 2>&1
"""


class Machine:
    """A root with systemd as its process 1."""

    def __init__(self, root):
        self.root = root
        self.group = cgroup2() + "/mayfly-trial"
        os.makedirs(self.group, exist_ok=True)
        command = ["unshare", "--pid", "--mount", "--uts", "--ipc", "--net", "--cgroup", "--fork", "--kill-child",
                   "bash", "-c", BOOT, "boot", root]
        self.starter = subprocess.Popen(["bash", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', self.group, *command],
                                        stdin=subprocess.DEVNULL)
        wait_until(lambda: self.first() is not None, "no first process")
        wait_until(lambda: self.run("systemctl", "is-system-running", check=False)[1].strip() in ("running", "degraded"), "systemd is not ready")

    def first(self):
        """The number of its process 1, as it is outside."""
        path = f"/proc/{self.starter.pid}/task/{self.starter.pid}/children"
        with contextlib.suppress(OSError):
            with open(path, encoding="utf-8") as file:
                children = file.read().split()
            if children:
                with open(f"/proc/{children[0]}/comm", encoding="utf-8") as file:
                    if file.read().strip() == "systemd":
                        return int(children[0])
        return None

    def run(self, *command, check=True):
        line = ["nsenter", "-t", str(self.first()), "-p", "-m", "-u", "-i", "-n", "-C", "-r", "-w", "env", "-i",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", *command]
        run = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert not check or run.returncode == 0, f"{command} ended with {run.returncode}:\n{run.stdout}{run.stderr}{self.journal() if check else ''}"
        return run.returncode, run.stdout + run.stderr

    def journal(self):
        return self.run("journalctl", "--no-pager", "--lines=40", check=False)[1]

    def write(self, path, text):
        os.makedirs(os.path.dirname(self.root + path), exist_ok=True)
        with open(self.root + path, "w", encoding="utf-8") as file:
            file.write(text)

    def end(self):
        if (first := self.first()) is not None:
            os.kill(first, signal.SIGKILL)
        self.starter.wait()
        with contextlib.suppress(OSError):
            os.rmdir(self.group)


class Visitors:
    """Ask a site a hundred times a second, for pages that PHP makes; in the network of the machine."""

    def __init__(self, machine, name):
        self.name = name
        self.process = subprocess.Popen(["nsenter", "-t", str(machine.first()), "-n", sys.executable, os.path.abspath(__file__), "--visit", str(PORTS[name])],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end(self):
        said, _ = self.process.communicate(timeout=SECONDS)
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


def cgroup2():
    with open("/proc/mounts", encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words[2] == "cgroup2":
                return words[1]
    raise SystemExit("systemd_trial: no cgroup2 is mounted here")


def wait_until(holds, problem):
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, problem
        time.sleep(0.1)


def package_in(folder):
    found = [it for it in sorted(os.listdir(folder)) if re.match(r"mayfly_.*\.deb$", it)]
    assert len(found) == 1, f"{folder} has {found}"
    return os.path.join(folder, found[0])


class Trial:
    def __init__(self, machine, package, following):
        self.machine, self.package, self.following, self.failed = machine, package, following, 0

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
        shutil.copy(package, self.machine.root + "/root/")
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

    def run(self):
        self.prepare()
        self.during("the service is restarted", ["main"], ["systemctl", "restart", "mayfly"])
        self.during("the service is stopped and started", ["main"], ["systemctl", "stop", "mayfly"], ["systemctl", "start", "mayfly"])
        self.during("an instance is restarted", ["one"], ["systemctl", "restart", "mayfly@one"])
        self.during("an instance is stopped and started", ["one"], ["systemctl", "stop", "mayfly@one"], ["systemctl", "start", "mayfly@one"])
        self.during("the service is reloaded", [], ["systemctl", "reload", "mayfly"])
        if self.following:
            self.during("the package is upgraded", [], ["dpkg", "--install", self.inside(self.following)])
        self.machine.run("dpkg", "--remove", "mayfly")
        self.check("a removal stops the service and all instances", self.left() == "", self.left())
        self.check("a removal keeps certificates", os.path.isdir(self.machine.root + "/var/lib/mayfly"))
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
        root = roots.fresh(suite, os.path.join(WORK, "roots", f"systemd-{suite}"), PACKAGES)
        machine = Machine(os.path.realpath(root))
        try:
            trial = Trial(machine, package_in(args.packages), args.next and package_in(args.next))
            trial.run()
            failed += trial.failed
        finally:
            machine.end()
            shutil.rmtree(root, ignore_errors=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
