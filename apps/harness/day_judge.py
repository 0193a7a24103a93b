"""Judges every answer of one site: is it older than what was changed, is it somebody else's, did it fail; and compares some of those from memory
with what the application makes now."""

import collections
import difflib
import http.client
import random
import re
import statistics
import threading
import time

from .client import Client

# Past this age a page is kept by what is known of it: the ordinary lifetime is a second.
KEPT_SECONDS = 2
# An answer of the ordinary lifetime may be behind: a second, and the time in which PHP makes a page. One that is shown while another is made
# has ten seconds more (`cache_stale`).
UPDATING_SECONDS = 15.0
# Shown because a fetch failed, or because the application says that it has not changed.
NOT_PROMISED = ("STALE", "REVALIDATED")
AUDITED_SHARE = 0.1
AUDIT_TRIES, AUDIT_PAUSE_SECONDS = 20, 0.5
AUDITS_WAITING = 200
EXAMPLES = 10
NO_ANSWER = (OSError, http.client.HTTPException)
DIFFERENCES = 8


class Judge:
    def __init__(self, site, control, events):
        self.site, self.control, self.events = site, control, events
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.old, self.leaks, self.errors = [], [], []
        self.unsteady, self.ordinary = collections.Counter(), collections.Counter()
        self.hits, self.made = collections.Counter(), collections.defaultdict(list)
        self.php_seconds = 0.0
        self.to_audit = collections.deque(maxlen=AUDITS_WAITING)
        self.chance = random.Random(site.name)

    def count(self, what, number=1):
        with self.lock:
            self.counts[what] += number

    def ask(self, client, path, user=None, marker=None):
        """The answer to a request, judged; None where there is none. `marker`: what only a visitor with a session may see."""
        try:
            answer = client.get(path)
        except NO_ANSWER as error:
            self.fail(path, type(error).__name__)
            return None
        self.judge(path, answer, user, marker)
        return answer

    def fail(self, path, what):
        with self.lock:
            self.errors.append((time.monotonic(), what, path))

    def judge(self, path, answer, user, marker):
        word = answer.field("x-cache") or "-"
        self.count("requests")
        self.count(f"answers {word}")
        if answer.status >= 500:
            self.fail(path, str(answer.status))
            return
        if user is None:
            self._judge_anonymous(path, answer, word)
        else:
            self._judge_personal(path, answer, word, marker)
        self._judge_version(path, answer, word)
        if word == "HIT" and user is None:
            with self.lock:
                self.hits[path] += 1
                is_audited = self.chance.random() < AUDITED_SHARE
                if is_audited and len(self.to_audit) == AUDITS_WAITING:
                    self.counts["audits left out"] += 1
                if is_audited:
                    self.to_audit.append((path, answer))
        elif word != "HIT":
            self._note_made(path, answer)

    def _note_made(self, path, answer):
        seconds = answer.ended - answer.began
        with self.lock:
            if answer.field("x-cache"):
                self.php_seconds += seconds

    def _judge_anonymous(self, path, answer, word):
        found = self.site.personal(answer)
        if found:
            self.leak(path, answer, word, f"anonymous visitor is shown {found}")

    def _judge_personal(self, path, answer, word, marker):
        if word == "HIT":
            self.leak(path, answer, word, "a visitor with a session is answered from memory")
        found = self.site.personal(answer)
        if found and marker not in found:
            self.leak(path, answer, word, f"a visitor with the session {marker} is shown {found}")
        self.count("personal answers" if found else "personal answers without a session")

    def leak(self, path, answer, word, what):
        with self.lock:
            self.counts["leaks"] += 1
            if len(self.leaks) < EXAMPLES:
                self.leaks.append(f"{path} ({answer.status}, {word}, age {answer.field('age')}): {what}\n{self.explain(path)}")

    def lenience(self, answer, word):
        """By how much an answer may be behind."""
        if word == "HIT":
            return 0 if int(answer.field("age") or 0) >= KEPT_SECONDS else self.site.ordinary_seconds
        return UPDATING_SECONDS if word in ("UPDATING", "STALE") else 0

    def _judge_version(self, path, answer, word):
        pattern = self.site.marker(path)
        found = pattern and answer.status == 200 and re.search(pattern, answer.text)
        if not found:
            return
        self.count("answers with a version")
        if word == "HIT" and int(answer.field("age") or 0) >= KEPT_SECONDS:
            self.count("kept answers with a version")
        if word in NOT_PROMISED:
            return
        began = answer.began - self.lenience(answer, word)
        version = int(found[1])
        if not self.site.journal.allows(path, version, began, answer.ended):
            self.is_old(path, answer, word, f"shows version {version}, and not {self.site.journal.versions().get(path)}")

    def must_show(self, path, text):
        """Asks for a page when it has to show something."""
        answer = self.ask(Client(self.site.address, self.site.port), path)
        if answer is None or answer.status != 200 or text in answer.text:
            return
        word = answer.field("x-cache") or "-"
        if word not in NOT_PROMISED and not self.lenience(answer, word):
            self.is_old(path, answer, word, f"does not show '{text}'")

    def is_old(self, path, answer, word, what):
        with self.lock:
            self.counts["old"] += 1
            if len(self.old) >= EXAMPLES:
                return
        text = "\n".join([
            f"{path} ({answer.status}, {word}, age {answer.field('age')}), {time.strftime('%H:%M:%S')}: {what}",
            *(f"    {line}" for line in self.site.journal.last(answer.ended)),
            *(f"    {line}" for line in self.events.last(answer.ended)),
            f"    {self.explain(path)}",
        ])  # fmt: skip
        with self.lock:
            self.old.append(text)

    def explain(self, path):
        try:
            return self.control.post("/1/explain", {"url": f"http://{self.site.host}{path}"}).get("learned")
        except (OSError, RuntimeError, ValueError) as error:
            return repr(error)

    def audits(self, is_over):
        """Compares what was shown, until the run is over."""
        while not is_over.is_set():
            with self.lock:
                waiting = self.to_audit.popleft() if self.to_audit else None
            if waiting is None:
                time.sleep(0.02)
                continue
            try:
                self.count(f"audits: {self._audit(*waiting)}")
            except NO_ANSWER:
                self.count("audits: no answer")

    def _past_memory(self, path):
        answer = Client(self.site.address, self.site.port, self.site.past_memory).get(path)
        with self.lock:
            self.made[path].append(answer.ended - answer.began)
            self.php_seconds += answer.ended - answer.began
        return answer

    def _content(self, answer):
        return answer.status, answer.field("location"), self.site.normal(answer.text)

    def _audit(self, path, shown):
        for number in range(AUDIT_TRIES):
            fresh = self._past_memory(path)
            if fresh.status >= 500 or shown.status >= 500:
                return "not compared, PHP fails"
            if self._content(fresh) == self._content(shown):
                return "equal" if number == 0 else "equal, asked again after a change"
            again = self._past_memory(path)
            word = shown.field("x-cache") or "-"
            began = shown.began - self.lenience(shown, word)
            # Cron may be at work; it says so in a file before it changes anything.
            is_explained = self.site.explains(began, again.ended)
            if not is_explained and self._content(again) != self._content(fresh):
                with self.lock:
                    self.unsteady[path] += 1
                return "differs each time"
            if not is_explained and self.lenience(shown, word):
                # Feeds say by their times alone whether they have changed, and so the stored ones go on to be shown.
                with self.lock:
                    self.ordinary[path] += 1
                return "differs, and had the ordinary lifetime"
            if not is_explained and word in ("HIT", "MISS", "EXPIRED"):
                difference = list(difflib.unified_diff(
                    self.site.normal(shown.text).splitlines(), self.site.normal(fresh.text).splitlines(), "shown", "made", lineterm="", n=0))
                lines = "\n".join(f"    {line[:300]}" for line in difference[: 2 + DIFFERENCES])
                statuses = f"{shown.status} {fresh.status}"
                self.is_old(path, shown, word, f"differs from what is made {fresh.began - shown.began:.3f} s later ({statuses}; try {number})\n{lines}")
                return "old"
            time.sleep(AUDIT_PAUSE_SECONDS)
            shown = Client(self.site.address, self.site.port).get(path)
        return "undecided: changed all the time"

    def spared_seconds(self):
        """Of each answer from memory, how long PHP takes for the page: the median of the audits, of all of them where there was none."""
        medians = {path: statistics.median(seconds) for path, seconds in self.made.items()}
        ordinary = statistics.median(medians.values()) if medians else 0.0
        return sum(number * medians.get(path, ordinary) for path, number in self.hits.items())


class Events:
    """What happened to the servers, and when: errors at that time have a cause."""

    def __init__(self):
        self._lock = threading.Lock()
        self.events = []

    def begin(self, name):
        event = [name, time.monotonic(), float("inf")]
        with self._lock:
            self.events.append(event)
        return event

    def end(self, event):
        event[2] = time.monotonic()

    def cause(self, moment, after_seconds):
        with self._lock:
            found = [name for name, began, ended in self.events if began <= moment <= ended + after_seconds]
        return found[-1] if found else None

    def last(self, before, number=3):
        with self._lock:
            found = [event for event in self.events if event[1] <= before][-number:]
        return [f"{name}: from {began - before:+.3f} s to {ended - before:+.3f} s" for name, began, ended in found]
