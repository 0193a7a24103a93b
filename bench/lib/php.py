"""A PHP-FPM of our own, with a known number of workers, on a unix socket.

It runs beside the server under test rather than below it, so that it can be
killed and started again, and is the same for every server.
"""

import glob
import os
import shutil
import socket
import subprocess

from . import process

PAGES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "php")


def find_fpm():
    """The php-fpm binary; Debian's carries its version in its name."""
    for found in [shutil.which("php-fpm"), *sorted(glob.glob("/usr/sbin/php-fpm*"), reverse=True)]:
        if found and os.access(found, os.X_OK):
            return found
    raise SystemExit("php-fpm is missing; scripts/setup.sh bench installs it")


def calibrate(milliseconds):
    """How many rounds of work in php/page.php cost PHP that much CPU here."""
    script = os.path.join(PAGES, "calibrate.php")
    output = subprocess.run(["php", script, str(milliseconds)], check=True, capture_output=True, text=True)
    return int(output.stdout)


class PhpFpm:
    """`with PhpFpm(folder) as fpm: ...`; inside, `kill` and `start` may alternate."""

    def __init__(self, folder, workers=4, core=None):
        self.socket = os.path.join(folder, "php.sock")
        self.executions = os.path.join(folder, "executions")
        self._core = core
        self._config = os.path.join(folder, "php-fpm.conf")
        self._log = os.path.join(folder, "php-fpm.log")
        with open(self._config, "w") as file:
            file.write(
                f"[global]\ndaemonize = no\nerror_log = {self._log}\n"
                f"[bench]\nlisten = {self.socket}\nlisten.backlog = 4096\nlisten.mode = 0666\n"
                f"pm = static\npm.max_children = {workers}\n"
            )
            if os.getuid() == 0:
                file.write("user = root\ngroup = root\n")
        open(self.executions, "w").close()
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        process.stop(self._process)

    def start(self):
        as_root = ["--allow-to-run-as-root"] if os.getuid() == 0 else []
        command = [find_fpm(), "--nodaemonize", "--fpm-config", self._config, *as_root]
        with open(self._log, "a") as log:
            self._process = process.start(command, self._core, stdout=log, stderr=log)
        process.wait_until(self._accepts, "PHP-FPM listening")

    def _accepts(self):
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self.socket) == 0

    def kill(self):
        """SIGKILL for master and workers, as the kernel does when memory runs out."""
        process.kill_session(self._process)

    def count(self):
        """How many times PHP ran the page, by its own account."""
        return sum(1 for line in self._lines() if line[0] == "S")

    def most_at_once(self):
        """The most executions under way at one time, by PHP's own account."""
        running = most = 0
        for _, step in sorted((int(at), 1 if event == "S" else -1) for event, at in self._lines()):
            running += step
            most = max(most, running)
        return most

    def _lines(self):
        with open(self.executions) as file:
            return [line.split() for line in file]
