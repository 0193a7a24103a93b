"""What happens to the server, its PHP and its origin meanwhile."""

import contextlib
import os
import random
import signal
import subprocess
import time

from lib import process

UPGRADE_SECONDS = 130


class Churn:
    """Each method is one disturbance; all are judged by what visitors see."""

    def __init__(self, server, counts):
        self.server, self.site, self.counts = server, server.site, counts

    def each_once(self):
        """What the first of each leaves for good is there afterwards."""
        self.reload()
        self.rotate()
        self.kill_a_php_worker()
        self.kill_a_php_master()
        self.restart_the_origin()
        self.upgrade()
        self.wait_until_one_serves()

    def reload(self):
        self.site.configure()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.server.pid(), signal.SIGHUP)
        self.counts.add("reloads")

    def rotate(self):
        log = os.path.join(self.site.folder, "access.log")
        with contextlib.suppress(OSError):
            os.replace(log, log + ".1")
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.server.pid(), signal.SIGUSR1)
        self.counts.add("logs rotated")

    def kill_a_php_worker(self):
        workers = [pid for master in self._php_masters() for pid in process.tree(master, without=()) if pid != master]
        self._kill(workers, "workers of PHP killed")

    def kill_a_php_master(self):
        self._kill(self._php_masters(), "masters of PHP killed")

    def _kill(self, pids, what):
        if pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(random.choice(pids), signal.SIGKILL)
                self.counts.add(what)

    def _php_masters(self):
        """Also those that another program has handed over: they are children of whoever takes orphans."""
        below = process.tree(os.getpid(), without=())
        return [pid for pid in below if title_of(pid).startswith("php-fpm: master")]

    def restart_the_origin(self):
        self.site.origin.restart()
        self.counts.add("restarts of the origin")

    def upgrade(self):
        """The program takes its own place; the one before ends when its requests have."""
        command = [self.server.binary, "upgrade", "--socket", os.path.join(self.site.folder, "pid.control")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=UPGRADE_SECONDS)
        if done.returncode == 0:
            self.counts.add("upgrades")
        elif "has not ended" in done.stderr or "takes the place" in done.stderr:
            # One at a time.
            self.counts.add("upgrades refused")
        else:
            self.counts.add("unexpected", f"upgrade: {done.stderr}")

    def wait_until_one_serves(self, seconds=60):
        """Returns when the programs before the last upgrade have ended."""
        until = time.monotonic() + seconds
        while self.server.programs() != [self.server.pid()]:
            if time.monotonic() > until:
                self.counts.add("unexpected", f"programs {self.server.programs()}, of which {self.server.pid()} serves")
                return
            time.sleep(0.1)


def title_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0
