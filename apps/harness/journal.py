"""What was changed on a site, and when: whether a visitor may have been shown a version of a page, and whether two texts of a page
may differ because something was changed in between."""

import collections
import contextlib
import threading
import time

NEVER = float("inf")


class Change:
    """Whoever asks before `began` sees nothing of it, and who asks after `shown` must see it. It may be in doubt: then it is never
    shown for certain."""

    def __init__(self, name, version=None):
        self.name = name
        self.version = version
        self.began = time.monotonic()
        self.shown = NEVER

    def touches(self, began, ended):
        return self.began <= ended and self.shown >= began


class Journal:
    def __init__(self):
        self._lock = threading.Lock()
        self._changes = []
        self._versions = collections.defaultdict(list)

    @contextlib.contextmanager
    def change(self, name, grace=0.0, pages=None, after=0.0):
        """`pages`: the version that each of these paths has afterwards. What raises may have been done or not. `after`: for so
        long, the application goes on to change other pages."""
        changes = [Change(name), *(Change(name, version) for version in (pages or {}).values())]
        with self._lock:
            self._changes.append(changes[0])
            for path, change in zip(pages or {}, changes[1:], strict=True):
                self._versions[path].append(change)
        is_done = False
        try:
            yield
            is_done = True
        finally:
            for number, change in enumerate(changes):
                if is_done or number == 0:
                    change.shown = time.monotonic() + grace + (0 if number else after)

    def begin(self, pages):
        """The versions that pages have when nothing was changed yet."""
        for path, version in pages.items():
            first = Change("begin", version)
            first.began, first.shown = -NEVER, -NEVER
            self._versions[path].append(first)

    def versions(self):
        """The last version of each page, which may be in doubt."""
        with self._lock:
            return {path: changes[-1].version for path, changes in self._versions.items()}

    def in_doubt(self):
        """Pages of which it is not known whether the last change was made."""
        with self._lock:
            return [path for path, changes in self._versions.items() if changes[-1].shown == NEVER]

    def explains(self, began, ended):
        """Was anything changed in this time?"""
        with self._lock:
            return any(change.touches(began, ended) for change in self._changes)

    def allows(self, path, version, began, ended):
        """May a request of this time have been answered with this version of a page?"""
        with self._lock:
            changes = self._versions.get(path)
            if not changes:
                return True
            until = NEVER
            for change in reversed(changes):
                if change.version == version and change.began <= ended and until >= began:
                    return True
                until = min(until, change.shown)
            return False

    def last(self, before, number=8):
        """The last changes before a moment, for people."""
        with self._lock:
            found = [change for change in self._changes if change.began <= before][-number:]
        return [f"{change.name}: from {change.began - before:+.3f} s, to be shown at {change.shown - before:+.3f} s" for change in found]

    def __len__(self):
        with self._lock:
            return len(self._changes)
