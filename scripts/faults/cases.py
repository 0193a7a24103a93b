"""The faults. Each takes a `Bench` and gives one sentence on what became of it."""

import os
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from email.utils import parsedate_to_datetime

from servers import Php, Server, process
from visitors import LARGE, Upstream, Visitors, open_connections

HERE = os.path.dirname(os.path.abspath(__file__))
MB = 1 << 20


class Bench:
    """One server's turn at one fault."""

    def __init__(self, kind, binary):
        self.kind, self.binary = kind, binary

    def server(self, **settings):
        return Server(self.kind, self.binary, self.folder, **settings)

    def run(self, case):
        with tempfile.TemporaryDirectory(prefix="mayfly-faults-") as self.folder:
            os.chmod(self.folder, 0o755)
            return case(self)

    @property
    def is_mayfly(self):
        return self.kind == "mayfly"


def again(seconds):
    return "not within 5 s" if seconds is None else f"after {seconds * 1000:.0f} ms"


def php_worker_killed(bench):
    """A PHP worker is killed (`kill -9`) ten times while 8 visitors ask for pages that are not stored"""
    with Php(bench.folder) as fpm, bench.server(fpm=fpm) as server:
        with Visitors(server, "/made?n=%d&ms=5") as visitors:
            for _ in range(10):
                os.kill(fpm.workers()[0], signal.SIGKILL)
                time.sleep(0.2)
    return str(visitors)


def php_gone_stored(bench):
    """PHP-FPM and all its workers are killed: visitors of stored pages, of a lifetime of 1 s with `use_stale`"""
    with Php(bench.folder) as fpm, bench.server(fpm=fpm) as server:
        server.get("/stale")
        with Visitors(server, "/stale") as visitors:
            time.sleep(1.2)
            fpm.kill()
            time.sleep(2)
            fpm.start()
    return str(visitors)


def php_gone_not_stored(bench):
    """PHP-FPM's master is killed: visitors of pages that are not stored"""
    with Php(bench.folder) as fpm, bench.server(fpm=fpm, pool=True) as server:
        server.answers_within("/made", 5)
        if bench.is_mayfly:
            master = next(p for p in process.tree(server.pid, without=()) if is_php(p))
        with Visitors(server, "/made?n=%d&ms=5", 4) as visitors:
            if bench.is_mayfly:
                os.kill(master, signal.SIGKILL)
            else:
                fpm.kill()
            back = server.answers_within("/made?back", 5)
        who = "its own pool, answers again " if bench.is_mayfly else "nobody starts PHP-FPM, answers again "
    return f"{visitors}; {who}{again(back)}"


def is_php(pid):
    with open(f"/proc/{pid}/comm") as file:
        return file.read().startswith("php-fpm")


def serving_process_killed(bench):
    """The process that serves is killed: visitors of a stored page"""
    with Php(bench.folder) as fpm, bench.server(fpm=fpm) as server:
        if server.workers() == [server.pid]:
            return "serves in the process that was started; a supervisor starts it again"
        server.get("/stored")
        with Visitors(server, "/stored") as visitors:
            # One that ends within a second of its start is not started again at once.
            time.sleep(1.2)
            os.kill(server.workers()[0], signal.SIGKILL)
            back = server.answers_within("/stored", 5)
            time.sleep(0.5)
    return f"{visitors}; answers again {again(back)}"


def parent_killed(bench):
    """The process that was started is killed: what is left, and the next start"""
    with Php(bench.folder) as fpm, bench.server(fpm=fpm, pool=True) as server:
        server.answers_within("/made", 5)
        below = [p for p in process.tree(server.pid, without=()) if p != server.pid]
        os.kill(server.pid, signal.SIGKILL)
        server.process.wait()
        time.sleep(1.5)
        left = [p for p in below if is_running(p)]
        stale = run_folders(server.pid)
        try:
            server.start()
            started = again(server.answers_within("/made", 5))
        except RuntimeError:
            started = "does not start: the address is in use"
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        swept = len([name for name in stale if os.path.exists(name)])
        words = f"{len(left)} processes are left; a new start: {started}"
        return words + (f"; run folders left {len(stale)}, after the next start {swept}" if bench.is_mayfly else "")


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def run_folders(pid):
    """The folders that a server of this number has made for its pool."""
    names = os.listdir("/run")
    return [os.path.join("/run", name) for name in names if name.startswith(f"mayfly-php-site-{pid}-")]


def temporary_disk_full(bench):
    """The disk for temporary files (1 MB) is full: 8 slow clients read 16 MB each"""
    disk = os.path.join(bench.folder, "disk")
    os.mkdir(disk)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
    try:
        with Upstream() as upstream, bench.server(upstream=upstream.port, temp=disk) as server:
            whole = []
            readers = [threading.Thread(target=read_slowly, args=(server.port, whole)) for _ in range(8)]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join(20)
            told = server.log().count("No space left")
    finally:
        subprocess.run(["umount", "-l", disk], check=False)
    return f"{sum(whole)} of 8 whole; {told} lines with the errno"


def read_slowly(port, whole):
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        client.settimeout(15)
        client.connect(("127.0.0.1", port))
        client.sendall(b"GET /slow/large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        time.sleep(1.5)
        got = 0
        try:
            while piece := client.recv(1 << 20):
                got += len(piece)
        except OSError:
            pass
        whole.append(got > LARGE)


def log_disk_full(bench):
    """The disk of the access log is full (64 KB): 8 visitors of a stored page"""
    disk = os.path.join(bench.folder, "disk")
    os.mkdir(disk)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
    try:
        with Php(bench.folder) as fpm, bench.server(fpm=fpm, access_log=f"{disk}/access.log") as server:
            server.get("/stored")
            with Visitors(server, "/stored") as visitors:
                time.sleep(3)
    finally:
        subprocess.run(["umount", "-l", disk], check=False)
    return str(visitors)


def clock_stepped(bench):
    """The wall clock is set a day ahead, then a day back, under stored pages of 1 h"""
    library = os.path.join(bench.folder, "clock.so")
    done = subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, os.path.join(HERE, "wall_clock.c")])
    if done.returncode:
        return "not tried: no C compiler"
    ahead = os.path.join(bench.folder, "ahead")
    set_clock(ahead, 0)
    env = {"LD_PRELOAD": library, "WALL_CLOCK_FILE": ahead}
    main = "env LD_PRELOAD; env WALL_CLOCK_FILE;"
    words = []
    with Php(bench.folder) as fpm, bench.server(fpm=fpm, env=env, main=main) as server:
        server.get("/stored")
        for name, seconds in (("ahead", 86400), ("back", -86400)):
            set_clock(ahead, seconds)
            time.sleep(1.2)
            _, _, fields = server.get("/stored")
            # That of a stored page says when it was made.
            date = parsedate_to_datetime(server.get("/made")[2]["Date"]).timestamp()
            follows = "follows" if abs(date - time.time() - seconds) < 60 else "does not follow"
            words.append(f"{name}: `Date` {follows}, page {fields['X-Cache']}")
    return "; ".join(words)


def set_clock(file, seconds):
    with open(file, "wb") as out:
        out.write(struct.pack("q", seconds))


def upstream_hangs(bench):
    """An upstream hangs (`proxy_read_timeout` 2 s), 50 requests at once: visitors of a stored page"""
    with Php(bench.folder) as fpm, Upstream() as upstream:
        with bench.server(fpm=fpm, upstream=upstream.port) as server:
            server.get("/stored")
            statuses = []
            asked = [
                threading.Thread(target=lambda n=n: statuses.append(server.get(f"/upstream/hang{n}")[0]))
                for n in range(50)
            ]
            with Visitors(server, "/stored") as visitors:
                for thread in asked:
                    thread.start()
                for thread in asked:
                    thread.join(15)
    return f"{statuses.count(504)} of 50 are 504; visitors: {visitors}"


def upstream_lies(bench):
    """An upstream breaks off, sends too much, or nonsense: what is stored of it"""
    words = []
    with Upstream() as upstream, bench.server(upstream=upstream.port) as server:
        for name in ("cut", "long", "nonsense"):
            first = server.get(f"/upstream/{name}")
            second = server.get(f"/upstream/{name}")
            stored = "stored" if second[2].get("X-Cache") == "HIT" else "not stored"
            shown = {0: "broken off for the client", 200: f"200 with {first[1]} bytes"}.get(first[0], str(first[0]))
            words.append(f"{name}: {shown}, {stored}")
    return "; ".join(words)


def no_descriptors(bench):
    """No descriptors are left (`worker_rlimit_nofile` 80, 300 connections): afterwards, and the log"""
    with Php(bench.folder) as fpm, bench.server(fpm=fpm, main="worker_rlimit_nofile 80;") as server:
        server.get("/stored")
        before = process.CpuTime(server.pid)
        held = open_connections(server.port, 300)
        time.sleep(2)
        cpu = sum(before.spent()) / 2
        for client in held:
            client.close()
        back = server.answers_within("/stored", 5)
        lines = server.log().count("Too many open files") + server.log().count("No file descriptors")
    return f"answers {again(back)} they left; {cpu * 100:.0f} % of a core meanwhile; {lines} log lines"


def half_requests(bench):
    """400 clients send half a request and wait: visitors of a stored page"""
    with Php(bench.folder) as fpm, bench.server(fpm=fpm) as server:
        server.get("/stored")
        held = open_connections(server.port, 400, b"GET /stored HTTP/1.1\r\nHost: a\r\nX-")
        with Visitors(server, "/stored") as visitors:
            time.sleep(2)
        for client in held:
            client.close()
    return str(visitors)


def reload_storm(bench):
    """40 reloads in 4 s: 8 visitors of a stored page"""
    with Php(bench.folder) as fpm, bench.server(fpm=fpm) as server:
        server.get("/stored")
        with Visitors(server, "/stored") as visitors:
            for _ in range(40):
                server.signal(signal.SIGHUP)
                time.sleep(0.1)
            time.sleep(0.5)
        left = len(process.tree(server.pid))
    return f"{visitors}; {left} processes afterwards"


def broken_reload(bench):
    """A reload with a configuration that is wrong, and one whose log cannot be opened"""
    with Php(bench.folder) as fpm, bench.server(fpm=fpm) as server:
        server.get("/stored")
        path = os.path.join(bench.folder, "conf")
        with open(path) as file:
            text = file.read()
        with Visitors(server, "/stored") as visitors:
            for wrong in (text + "}", text.replace("access_log ", f"access_log {path}/below/", 1)):
                with open(path, "w") as file:
                    file.write(wrong)
                server.signal(signal.SIGHUP)
                time.sleep(0.7)
        hit = server.get("/stored")[2].get("X-Cache")
    return f"{visitors}; stored page afterwards: {hit}"


def graceful_stop(bench):
    """QUIT while 8 requests of 500 ms are at PHP"""
    with Php(bench.folder, workers=8) as fpm, bench.server(fpm=fpm) as server:
        statuses = []
        asked = [
            threading.Thread(target=lambda n=n: statuses.append(server.get(f"/made?n={n}&ms=500")[0]))
            for n in range(8)
        ]
        for thread in asked:
            thread.start()
        time.sleep(0.2)
        began = time.monotonic()
        server.signal(signal.SIGQUIT)
        for thread in asked:
            thread.join(10)
        server.process.wait(10)
        took = time.monotonic() - began
    return f"{statuses.count(200)} of 8 are whole; ended {again(took)}"


def memory_limit(bench):
    """A control group of 128 MB, and junk addresses of 20 KB for 8 s"""
    group = make_group(128 * MB)
    if group is None:
        return "not tried: no right to make a control group"
    try:
        join = lambda: write(os.path.join(group, "cgroup.procs"), str(os.getpid()))  # noqa: E731
        with Php(bench.folder) as fpm, bench.server(fpm=fpm, before=join) as server:
            with Visitors(server, "/stored?n=%d&bytes=20000") as visitors:
                time.sleep(8)
            resident = process.memory_bytes(server.pid) / MB
            killed = "was killed" if "signal 9" in server.log() or "signal: 9" in server.log() else "was not killed"
    finally:
        time.sleep(0.2)
        try:
            os.rmdir(group)
        except OSError:
            pass
    return f"{visitors.asked} addresses, {visitors.failed} failed; {resident:.0f} MB resident; {killed}"


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def make_group(limit):
    with open("/proc/self/cgroup") as file:
        lines = [line.strip().split(":", 2) for line in file]
    for number, controllers, path in lines:
        if controllers == "memory":
            root, name = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
        elif (number, controllers) == ("0", ""):
            root, name = "/sys/fs/cgroup", "memory.max"
        else:
            continue
        group = os.path.join(root, path.lstrip("/"), f"mayfly-faults-{os.getpid()}")
        try:
            os.mkdir(group)
            write(os.path.join(group, name), str(limit))
            return group
        except OSError:
            if os.path.isdir(group):
                os.rmdir(group)
    return None


def rest(bench):
    """No fault: no visitor comes. Wake-ups a second over 10 s, half a minute after the last visitor, and memory"""
    with Php(bench.folder) as fpm, bench.server(fpm=fpm) as server:
        server.get("/stored")
        time.sleep(30)
        pids = process.tree(server.pid)
        before = sum(map(sleeps, pids))
        time.sleep(10)
        woke = (sum(map(sleeps, pids)) - before) / 10
        shared_once = sum(map(process.proportional_bytes, pids)) / MB
    return f"{woke:.1f} wake-ups a second; {shared_once:.1f} MB in {len(pids)} processes, shared pages counted once"


def sleeps(pid):
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches"))
    return total


ALL = (
    php_worker_killed, php_gone_stored, php_gone_not_stored, serving_process_killed, parent_killed,
    upstream_hangs, upstream_lies, temporary_disk_full, log_disk_full, no_descriptors, half_requests,
    memory_limit, clock_stepped, reload_storm, broken_reload, graceful_stop, rest,
)
