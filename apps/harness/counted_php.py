"""PHP-FPM under callgrind, with the library of learned pages or without, asked by FastCGI; and who listens to the library."""

import glob
import os
import socket
import struct
import subprocess
import threading
import time

from .workdir import children_of, wait_for

START_SECONDS = 60
LOADER = "/lib64/ld-linux-x86-64.so.2"
# As of a processor of 2024: its first caches, and as the last one its second.
CACHES = ("--cache-sim=yes", "--I1=32768,8,64", "--D1=49152,12,64", "--LL=1048576,16,64")
# Here a page takes seconds: nothing of PHP ends meanwhile.
STEADY = ("-d", "opcache.revalidate_freq=3600", "-d", "realpath_cache_ttl=3600")
PARAMS, STDIN, STDOUT, END = 4, 5, 6, 3


class Php:
    """One worker, which runs as root: valgrind is asked for its counts by files of its own account. The loader is named, since valgrind's
    own programs would load the library otherwise, and take it out of the environment."""

    def __init__(self, workdir, name, library=None):
        self.folder = workdir.mkdir(f"counted-{name}", owner="root")
        self.socket = os.path.join(self.folder, "socket")
        conf = workdir.write(
            f"counted-{name}/conf",
            f"[global]\nerror_log = {self.folder}/log\ndaemonize = no\n[www]\nuser = root\ngroup = root\nlisten = {self.socket}\n"
            "pm = static\npm.max_children = 1\n",
        )
        preload, channel = (), {}
        if library:
            channel["MAYFLY_LEARN"] = listen(os.path.join(self.folder, "learn"))
            preload = (LOADER, "--preload", library)
        program = sorted(glob.glob("/usr/sbin/php-fpm*"))[-1]
        out = f"--callgrind-out-file={self.folder}/out.%p"
        command = ["valgrind", "--tool=callgrind", "--trace-children=yes", "--quiet", *CACHES, out, *preload, program, *STEADY, "-R", "-y", conf]
        self.process = workdir.spawn(f"counted-{name}", command, channel)
        wait_for("php-fpm", self._listens, START_SECONDS, self.process)

    def _listens(self):
        # The socket is there before anybody listens to it.
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(self.socket)
        return True

    def get(self, script, params):
        """The answer of a script, with its head."""
        params = {"SCRIPT_FILENAME": script, "REQUEST_METHOD": "GET", **params}
        encoded = b"".join(pair(name.encode(), value.encode()) for name, value in params.items())
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.socket)
            begin = record(1, struct.pack(">HB5x", 1, 0))
            connection.sendall(begin + record(PARAMS, encoded) + record(PARAMS, b"") + record(STDIN, b""))
            output = b""
            with connection.makefile("rb") as answer:
                while True:
                    _, kind, _, length, padding, _ = struct.unpack(">BBHHBB", answer.read(8))
                    content = answer.read(length + padding)[:length]
                    if kind == END:
                        return output
                    output += content if kind == STDOUT else b""

    def counts(self):
        """Since this was last asked: instructions, misses of the first cache for instructions, and of both first ones for data."""
        # The first child of the master; valgrind's programs are replaced by it.
        worker = min(children_of(self.process.pid))
        dumps = os.path.join(self.folder, f"out.{worker}.*")
        # What it does after the answer.
        time.sleep(0.3)
        subprocess.run(["vgdb", f"--pid={worker}", "dump"], check=True, capture_output=True, timeout=60)
        wait_for("callgrind's dump", lambda: totals(dumps), START_SECONDS)
        counts = dict(zip(("Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw"), totals(dumps), strict=False))
        for path in glob.glob(dumps):
            os.unlink(path)
        return counts["Ir"], counts["I1mr"], counts["D1mr"] + counts["D1mw"]


def record(kind, content):
    return struct.pack(">BBHHBB", 1, kind, 1, len(content), 0, 0) + content


def pair(name, value):
    return struct.pack(">II", len(name) | 1 << 31, len(value) | 1 << 31) + name + value


def totals(dumps):
    for path in glob.glob(dumps):
        with open(path, errors="replace") as file:
            for line in file:
                if line.startswith("totals:"):
                    return [int(word) for word in line.split()[1:]]
    return None


def listen(path):
    """Answers the library as a server does that takes note of each write; its address."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen()

    def answer(connection):
        while packet := connection.recv(1 << 16):
            # A write and its outcome (crates/learn-record/src/message.rs), with their number.
            if packet[0] in (3, 4):
                connection.send(struct.pack("<Q", number(packet[1:])))

    def accept():
        while True:
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return path


def number(encoded):
    """In groups of seven bits, the lowest first."""
    value = 0
    for shift, byte in enumerate(encoded):
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            break
    return value
