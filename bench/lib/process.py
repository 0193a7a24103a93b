"""Processes as the operating system sees them: children, CPU time, memory.

Reads /proc only. A process that ends while it is looked at counts as gone.
"""

import os
import signal
import subprocess
import threading
import time

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def tree(root, without=("php-fpm",)):
    """The process and its descendants, less those whose name starts with `without`."""
    children, names = {}, {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as file:
                stat = file.read()
        except OSError:
            continue
        names[int(entry)] = stat[stat.index("(") + 1 : stat.rindex(")")]
        parent = int(stat[stat.rindex(")") + 2 :].split()[1])
        children.setdefault(parent, []).append(int(entry))
    found, queue = [], [root]
    while queue:
        pid = queue.pop()
        if pid in names and not names[pid].startswith(without):
            found.append(pid)
            queue += children.get(pid, [])
    return found


def cpu_seconds(root):
    """User and system time of the process tree so far, in seconds."""
    ticks = 0
    for pid in tree(root):
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        except OSError:
            continue
    return ticks / TICKS_PER_SECOND


def memory_bytes(root, field="VmRSS"):
    """Resident memory of the process tree now (VmRSS) or at its highest (VmHWM).

    Pages that several processes share count once for each of them.
    """
    total = 0
    for pid in tree(root):
        try:
            with open(f"/proc/{pid}/status") as file:
                for line in file:
                    if line.startswith(field + ":"):
                        total += int(line.split()[1]) * 1024
        except OSError:
            continue
    return total


class PeakMemory:
    """Samples resident memory in the background: `with PeakMemory(pid) as peak: ...`."""

    INTERVAL_SECONDS = 0.02

    def __init__(self, root):
        self.root = root
        self.bytes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def _sample(self):
        while not self._stop.wait(self.INTERVAL_SECONDS):
            self.bytes = max(self.bytes, memory_bytes(self.root))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


def start(command, core=None, **arguments):
    """Starts a program in a session of its own, on one core if asked."""
    if core is not None:
        command = ["taskset", "--cpu-list", str(core), *command]
    return subprocess.Popen(command, start_new_session=True, **arguments)


def stop(process, how=signal.SIGTERM, seconds=10):
    """Asks the program to end; after `seconds` it and its children are killed."""
    if process.poll() is None:
        process.send_signal(how)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        pass
    finally:
        kill_session(process)


def kill_session(process):
    """SIGKILL for the program and everything it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def wait_until(is_ready, what, seconds=10):
    """Polls until `is_ready()`; a RuntimeError names `what` never came."""
    deadline = time.monotonic() + seconds
    while not is_ready():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not happen within {seconds} s")
        time.sleep(0.01)
