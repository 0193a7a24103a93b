#!/usr/bin/env python3
"""A year of operation in an hour: everything that happens to a server, at once, judged by content.

    scripts/endurance/run.py [--binary target/debug/mayfly] [--seconds 3600] [--visitors target/debug/bench-visitors]

One server with a pool of PHP, an origin, pages in memory and on disk, fragments and compressed forms; as root also a
database, and pages that are learned. Visitors ask, upload, break off and keep tunnels open, over plain connections and
TLS (with --visitors over HTTP/2 and HTTP/3 as well); pages are changed and purged; the dashboard and the numbers are read. Meanwhile the configuration is reloaded,
logs are rotated, PHP's workers and masters are killed, the origin is restarted, and the program takes its own
place (`mayfly upgrade`). Each page carries its key and its version, each upload is answered with its sum.

At the end all is quiet for at most a minute, and then processes, threads, descriptors and temporary files are those from
before, when each of it had happened once, and the anonymous memory is at most 1.3 times. As root, a disk for temporary files is full all the while:
an upload to it fails with a clear error, and nothing else does. Ends with 1 where something was wrong.
"""

import argparse
import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "bench"))
sys.path.insert(0, HERE)

import churn  # noqa: E402
import learned  # noqa: E402
import ledger  # noqa: E402
import pages  # noqa: E402
import visitors  # noqa: E402
from lib import process  # noqa: E402

MAX_MEMORY_TIMES = 1.3
REST_SECONDS = 60
PR_SET_CHILD_SUBREAPER = 36


class Server:
    """The program, and those that took its place: orphans become children of this script."""

    def __init__(self, binary, site):
        self.binary, self.site = binary, site
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.site.configure()
        with open(os.path.join(site.folder, "output"), "a") as output:
            subprocess.Popen([binary, "-p", site.folder, "-c", site.configuration], stdout=output, stderr=output)
        process.wait_until(lambda: os.path.exists(self._pid_file) and self.serves(), f"the server\n{self.log()}", 30)

    @property
    def _pid_file(self):
        return os.path.join(self.site.folder, "pid")

    def pid(self):
        for _ in range(100):
            with contextlib.suppress(OSError, ValueError), open(self._pid_file) as file:
                return int(file.read())
            time.sleep(0.05)
        raise RuntimeError(f"no pid file: {self.log()}")

    def serves(self):
        answer = visitors.Visitor(self.site, visitors.Counts()).ask("GET", "/page/0")
        return answer is not None and answer[0] == 200

    def programs(self):
        """The processes of the program that are the first of their tree; those that have ended are waited for."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        below = process.tree(os.getpid())
        mine = [pid for pid in below if _executable(pid) == os.path.realpath(self.binary)]
        return sorted(pid for pid in mine if churn.parent_of(pid) not in mine)

    def log(self):
        said = ""
        for name in ("output", "error.log"):
            path = os.path.join(self.site.folder, name)
            if os.path.exists(path):
                with open(path, errors="replace") as file:
                    said += file.read()[-4000:]
        return said

    def stop(self):
        for pid in self.programs():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + 10
        while self.programs() and time.monotonic() < until:
            time.sleep(0.05)
        for pid in process.tree(os.getpid(), without=()):
            if pid != os.getpid():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _executable(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except OSError:
        return None


@contextlib.contextmanager
def full_disk():
    """A folder on a disk of 256 KB that is full; None for who may not mount one."""
    with tempfile.TemporaryDirectory(prefix="mayfly-full-") as folder:
        os.chmod(folder, 0o755)
        command = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=0777", "tmpfs", folder]
        if os.getuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
            yield None
            return
        try:
            with contextlib.suppress(OSError), open(os.path.join(folder, "filler"), "wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", folder], check=False)


class FullDisk:
    """Uploads whose body has no room: 500 at the latest at the end of the body, never a wrong answer."""

    def __init__(self, site, counts):
        self.visitor, self.counts = visitors.Visitor(site, counts), counts

    def step(self):
        answer = self.visitor.ask("POST", "/upload/full", body=os.urandom(600_000))
        if answer is None:
            return
        self.counts.add("uploads to a full disk")
        if answer[0] not in (500, 507) and answer[0] not in visitors.UNAVAILABLE:
            self.counts.add("wrong", f"an upload to a full disk is answered with {answer[0]}")


def crowd(place, counts, has_full_disk):
    """Everybody who asks; at the same time for all runs, however long they are."""
    work = visitors.Work(counts)
    tunnels = [visitors.Tunnel(place, counts) for _ in range(4)]
    for number in range(8):
        work.add(visitors.Visitor(place, counts, is_tls=number % 4 == 0).page, 0.004)
    for number in range(2):
        work.add(visitors.Visitor(place, counts, is_tls=number == 0).from_origin, 0.01)
        work.add(visitors.Visitor(place, counts, is_tls=number == 0).upload, 0.1)
    for tunnel in tunnels:
        work.add(tunnel.step, 0.05)
    work.add(visitors.Leaver(place, counts).step, 0.1)
    work.add(visitors.Visitor(place, counts).looks, 1)
    work.add(visitors.Visitor(place, counts).changes, 0.05)
    if place.learned:
        for work_of in (learned.LearnedVisitor(visitors.Visitor(place, counts)) for _ in range(2)):
            work.add(work_of.page, 0.01)
        work.add(work_of.changes, 0.1)
        work.add(work_of.looks, 1)
    if has_full_disk:
        work.add(FullDisk(place, counts).step, 0.5)
    return work, tunnels


def disturb(trouble, seconds):
    """Each disturbance at its own beat; one after the other, as the machine has time for."""
    beats = {
        trouble.reload: 2, trouble.rotate: 7, trouble.kill_a_php_worker: 1.5, trouble.kill_a_php_master: 10,
        trouble.restart_the_origin: 4, trouble.upgrade: min(15, seconds / 3),
    }  # fmt: skip
    began = time.monotonic()
    due = {step: beat for step, beat in beats.items()}
    while (now := time.monotonic() - began) < seconds:
        for step, at in due.items():
            if now >= at:
                step()
                due[step] = time.monotonic() - began + beats[step]
        time.sleep(0.05)


def other_protocols(place, program, seconds):
    """Visitors over HTTP/2 and HTTP/3 beside those of this script, who count what failed."""
    for protocol, options in (("http2", ["--tls"]), ("http3", [])):
        command = [program, protocol, f"127.0.0.1:{place.tls_port}", "/page/2", str(int(seconds)), "--keepers", "10", *options]
        yield subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def purge_all(place, counts):
    visitors.Visitor(place, counts).purge('{"everything":true}')


def rest(server, counts, before):
    """What is left when all is quiet: looked at until it is what was there before, a minute at most."""
    until = time.monotonic() + REST_SECONDS
    while True:
        # Orphans that have ended are no longer there once they were waited for.
        server.programs()
        now = ledger.Holdings(server.pid(), server.site.folder)
        left = now.left_since(before)
        if now.anonymous_mb > MAX_MEMORY_TIMES * before.anonymous_mb:
            left.append(f"anonymous memory: {before.anonymous_mb:.1f} MB before, {now.anonymous_mb:.1f} MB now")
        if not left or time.monotonic() > until:
            return now, left
        time.sleep(0.5)


def endure(arguments, site, has_full_disk):
    counts = visitors.Counts()
    server = Server(arguments.binary, site)
    try:
        trouble = churn.Churn(server, counts)
        # What the first visitors and the first of each disturbance leave for good is there before it is counted.
        work, tunnels = crowd(site, counts, has_full_disk)
        with work:
            trouble.each_once()
        settle(site, counts, tunnels)
        before = ledger.Holdings(server.pid(), site.folder)
        print(f"before: {before}", flush=True)
        work, tunnels = crowd(site, counts, has_full_disk)
        with work:
            others = list(other_protocols(site, arguments.visitors, arguments.seconds)) if arguments.visitors else []
            disturb(trouble, arguments.seconds)
            for other in others:
                print(f"{other.args[1]}: {other.communicate(timeout=60)[0].strip()}")
        trouble.wait_until_one_serves()
        settle(site, counts, tunnels)
        now, left = rest(server, counts, before)
        print(f"after:  {now}", flush=True)
        return report(counts, left, server)
    finally:
        server.stop()


def settle(site, counts, tunnels):
    for tunnel in tunnels:
        tunnel.close()
    purge_all(site, counts)
    time.sleep(2)


def report(counts, left, server):
    for what, count in sorted(counts.of.items(), key=lambda item: -item[1]):
        print(f"{count:>9,} {what}")
    wanted = ["pages", "uploads", "frames", "purges", "upgrades", "compressed", "looks"]
    if server.site.learned:
        wanted += ["learned pages", "learned pages purged", "learned pages compared"]
    missing = [what for what in wanted if not counts.of.get(what)]
    for line in left:
        print(f"left over: {line}")
    for line in counts.examples:
        print(line)
    if missing:
        print(f"nothing of this was tried: {', '.join(missing)}")
    # Most of those that are killed have no request.
    killed = counts.of.get("workers of PHP killed", 0) + counts.of.get("masters of PHP killed", 0)
    gaps = counts.of.get(pages.GAP, 0)
    if gaps > killed:
        print(f"{gaps} pages have a gap, and PHP was killed {killed} times only")
    if counts.wrong() or left or missing or gaps > killed:
        print(server.log()[-3000:])
        return 1
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "target/debug/mayfly"))
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--visitors", help="bench-visitors (cargo build -p bench-tools), for HTTP/2 and HTTP/3")
    arguments = parser.parse_args()
    arguments.binary = os.path.abspath(arguments.binary)
    folder = tempfile.mkdtemp(prefix="mayfly-endurance-", dir="/var/tmp")
    os.chmod(folder, 0o755)
    try:
        with full_disk() as full, learned.learned_pages() as known:
            site = pages.Site(folder, full or os.path.join(folder, "body"), known)
            status = endure(arguments, site, full is not None)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(f"/dev/shm/mayfly-endurance-{os.getpid()}", ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
