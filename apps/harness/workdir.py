"""A scenario's temporary directory, processes and loopback address.

Everything a scenario starts or creates is registered here and undone in
reverse order, also when the scenario fails or is interrupted. Processes are
stopped by their pid: first SIGTERM, after a while SIGKILL.
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from lib import ports

STOP_SECONDS = 10
WEB_USER = "www-data"


class Workdir:
    def __init__(self, name, keep=False, parent=None):
        self.path = tempfile.mkdtemp(prefix=f"mayfly-{name}-", dir=parent)
        os.chmod(self.path, 0o755)
        self.keep = keep
        # An address of its own: Debian's packages choose their configuration
        # by host name, and 127/8 needs neither DNS nor /etc/hosts.
        chance = random.SystemRandom()
        self.address = "127." + ".".join(str(chance.randint(2, 250)) for _ in range(3))
        self._undo = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for undo in reversed(self._undo):
            try:
                undo()
            except Exception as error:  # the rest must still be undone
                print(f"# clean-up: {error}")
        if self.keep:
            print(f"# kept: {self.path}")
        else:
            shutil.rmtree(self.path, ignore_errors=True)

    def undo(self, action):
        """Registers an action for the end, last registered first run."""
        self._undo.append(action)

    def join(self, *parts):
        return os.path.join(self.path, *parts)

    def mkdir(self, *parts, owner=WEB_USER, mode=0o755):
        path = self.join(*parts)
        os.makedirs(path, exist_ok=True)
        os.chmod(path, mode)
        shutil.chown(path, owner, owner)
        return path

    def write(self, name, text, owner=None, mode=0o644):
        path = self.join(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        if owner:
            shutil.chown(path, owner, owner)
        return path

    def free_port(self, address=None):
        return ports.free_port(address or self.address)

    def link_for_the_run(self, target, link):
        """A symbolic link outside the directory, refused if the name is taken.

        Links of earlier runs that were killed are removed: they lead nowhere.
        """
        folder = os.path.dirname(link)
        for name in os.listdir(folder):
            old = os.path.join(folder, name)
            if os.path.islink(old) and not os.path.exists(old) and "/mayfly-" in os.readlink(old):
                os.unlink(old)
        os.symlink(target, link)
        self.undo(lambda: os.unlink(link))

    def spawn(self, name, command, env=None):
        """Starts a process that is stopped, with its children, at the end."""
        log = open(self.join(f"{name}.log"), "ab")
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
        )
        log.close()
        self.undo(lambda: stop(process))
        return process

    def log_tail(self, name, lines=30):
        try:
            with open(self.join(f"{name}.log"), errors="replace") as file:
                return "".join(file.readlines()[-lines:])
        except OSError:
            return ""


def children_of(pid):
    """Pids of all living descendants of a process."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                parents.setdefault(int(fields[1]), []).append(int(entry))
    found, queue = [], [pid]
    while queue:
        for child in parents.get(queue.pop(), []):
            found.append(child)
            queue.append(child)
    return found


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def stop(process, wait_seconds=STOP_SECONDS):
    """Ends a process; returns what was wrong with that, best nothing.

    Wrong is an end before its time, and a descendant that outlives the
    process (it is ended as well).
    """
    if process.poll() is not None:
        return [f"had ended with status {process.returncode}"]
    family = children_of(process.pid)
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(wait_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    until = time.monotonic() + 3
    while any(map(is_alive, family)) and time.monotonic() < until:
        time.sleep(0.05)
    orphans = [pid for pid in family if is_alive(pid)]
    wrong = [f"{pid} is left" for pid in orphans]
    for pid in orphans:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return wrong


def wait_for(what, probe, seconds, process=None):
    """Waits until `probe` is true; its last error ends up in the message."""
    until = time.monotonic() + seconds
    error = None
    while time.monotonic() < until:
        if process is not None and process.poll() is not None:
            raise RuntimeError(f"{what}: ended with status {process.returncode}")
        try:
            if probe():
                return
        except (OSError, urllib.error.URLError) as caught:
            error = caught
        time.sleep(0.05)
    raise RuntimeError(f"{what}: not there after {seconds} s ({error})")


def listens(address, port):
    def probe():
        with socket.create_connection((address, port), timeout=2):
            return True

    return probe
