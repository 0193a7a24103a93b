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


class CpuTime:
    """User and system time of the trees below some processes since this was made.

    /proc/PID/stat knows user and system time of every thread a process ever had,
    in ticks of 10 ms; /proc/PID/task/TID/schedstat knows nanoseconds of the threads
    there are. The total is taken from the second (or from the first where a thread
    has ended meanwhile), its division from the first. A cgroup's cpu.stat would say
    the same in microseconds, but wants root and a cgroup of one's own, which a
    container often does not give; this works for anybody.
    """

    def __init__(self, *roots):
        self.roots = roots
        self._before = self._read()

    def _read(self):
        user = system = 0.0
        threads = {}
        for root in self.roots:
            for pid in tree(root):
                try:
                    with open(f"/proc/{pid}/stat") as file:
                        fields = file.read().rpartition(")")[2].split()
                    for thread in os.listdir(f"/proc/{pid}/task"):
                        with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                            threads[thread] = int(file.read().split()[0]) / 1e9
                except OSError:
                    continue
                user += int(fields[11]) / TICKS_PER_SECOND
                system += int(fields[12]) / TICKS_PER_SECOND
        return user, system, threads

    def spent(self):
        """(user, system) seconds since the beginning."""
        (user_before, system_before, before), (user, system, now) = self._before, self._read()
        user, system = max(user - user_before, 0), max(system - system_before, 0)
        total = user + system
        if before.keys() <= now.keys() and any(now.values()):
            total = sum(now.values()) - sum(before.values())
        share = user / (user + system) if user + system else 0.5
        return total * share, total * (1 - share)


def memory_bytes(*roots, field="VmRSS"):
    """Resident memory of the process trees now (VmRSS) or at its highest (VmHWM).

    Pages that several processes share count once for each of them.
    """
    return sum(own_memory_bytes(pid, field) for root in roots for pid in tree(root))


def own_memory_bytes(pid, field="VmRSS"):
    """The same of one process; 0 of one that ended."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(field + ":"))
    except OSError:
        return 0


def proportional_bytes(pid):
    """Memory of one process, in which a page that several share counts in part for each of them; 0 of one that ended."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("Pss:")), 0) * 1024
    except OSError:
        return 0


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


def wait_until_asleep(pid, seconds=60):
    """Returns when all threads of a process wait for something: what it had to do is done.

    A thread was asleep all the while between two looks if both found it asleep and it
    has not been woken in between.
    """
    deadline = time.monotonic() + seconds
    before = None
    while time.monotonic() < deadline:
        now = _wake_ups(pid)
        if now is not None and now == before:
            return
        before = now
        time.sleep(0.0001)
    raise RuntimeError(f"process {pid} was not at rest within {seconds} s")


def _wake_ups(pid):
    """How often each thread has gone to sleep, None if one of them is awake or has just ended."""
    counts = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/status") as file:
                facts = dict(line.split(":", 1) for line in file)
        except (FileNotFoundError, ProcessLookupError):
            return None
        if facts["State"].split()[0] != "S":
            return None
        counts[thread] = int(facts["voluntary_ctxt_switches"])
    return counts


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
