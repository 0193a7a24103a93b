"""What processes hold: counted before and after, so that what is left over is seen."""

import collections
import os
import re

from lib import process

MB = 1 << 20
DESCRIPTORS_GIVEN = 8


class Holdings:
    """Processes, threads, descriptors by kind, temporary files and anonymous memory, at one moment."""

    def __init__(self, root, folder):
        # PHP that another program has handed over is a child of whoever takes orphans: this process.
        self.processes = len(process.tree(os.getpid(), without=()))
        servers = process.tree(root)
        self.threads = sum(len(_listed(f"/proc/{pid}/task")) for pid in servers)
        self.descriptors = collections.Counter(kind for pid in servers for kind in _descriptors(pid))
        self.files = sorted(_files(os.path.join(folder, "body"))) + sorted(_temporary(folder))
        # PHP is in the tree if this program has started it, and not if another has handed it over.
        own = (pid for pid in servers if not _name(pid).startswith("php-fpm"))
        self.anonymous_mb = sum(process.own_memory_bytes(pid, "RssAnon") for pid in own) / MB

    def left_since(self, before):
        """One line for each kind of thing of which there is more than before. What happened thousands of times
        would have left thousands: some are given, since PHP that this program has started has a process more than
        PHP that another has handed over, and threads that wait for files end when they had nothing to do."""
        found = []
        for what, given in (("processes", 2), ("threads", 4)):
            if getattr(self, what) > getattr(before, what) + given:
                found.append(f"{what}: {getattr(before, what)} before, {getattr(self, what)} now")
        more = self.descriptors - before.descriptors
        if sum(self.descriptors.values()) > sum(before.descriptors.values()) + DESCRIPTORS_GIVEN:
            found += [f"descriptors of {kind}: {count} more" for kind, count in sorted(more.items())]
        found += [f"a file: {file}" for file in self.files if file not in before.files][:5]
        return found

    def __str__(self):
        return (f"{self.processes} processes, {self.threads} threads, {sum(self.descriptors.values())} descriptors, "
                f"{len(self.files)} temporary files, {self.anonymous_mb:.1f} MB anonymous memory")  # fmt: skip


def _descriptors(pid):
    for name in _listed(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if "/cache/" in target:
            # Pages on disk, in as many files as they need.
            continue
        # `socket:[123]`, `pipe:[123]`, `/path/of/journal-2`: without their number.
        yield f"{_name(pid)}: " + re.sub(r"(:\[|-)\d+\]?$", "", target.replace(" (deleted)", ""))


def _name(pid):
    try:
        with open(f"/proc/{pid}/cmdline", errors="replace") as file:
            return file.read().split("\0")[0]
    except OSError:
        return "ended"


def _temporary(folder):
    """What a server writes beside its pages while it works: bodies and responses that do not fit into memory."""
    for name in _listed(folder):
        if name.endswith("_temp"):
            yield from _files(os.path.join(folder, name))


def _files(folder):
    for at, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(at, name)


def _listed(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []
