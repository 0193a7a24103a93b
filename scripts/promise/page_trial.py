"""What the trials of learned pages (learned.py, sqlite.py) have in common: a server whose pages show which version of a row they
were made from, threads that read and write, and what is counted."""

import collections
import glob
import http.client
import os
import re
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "apps"))

from harness import workdir  # noqa: E402

WRITES_SECONDS, RESTS_SECONDS = 2.0, 2.5
# On a machine that does much else.
# Nothing is kept while a command of `mayfly run` anywhere on the machine is not heard, as in tests beside it.
LEARN_SECONDS = 240
MIN_HITS, MIN_KEPT = 200, 20
# Beyond it the server has not answered what is waited for.
LONGEST_SECONDS = 3600
# Files of temporary folders say nothing of pages.
PLACE = "/var/lib"
# What a request has shown. The version is None where there is no page; age and remaining lifetime are in seconds.
Shown = collections.namedtuple("Shown", "version is_hit age ttl")
NOTHING = Shown(None, False, 0, 0)


class PageTrial:
    # An answer, and the end of a thread.
    answer_seconds, end_seconds = 20, 30
    # What comes of an error that the server makes on purpose.
    fault_to_catch = "old"

    def __init__(self, chosen, folder):
        self.chosen, self.folder = chosen, folder
        self.port, self.metrics_port = folder.free_port("127.0.0.1"), folder.free_port("127.0.0.1")
        # Microseconds that a statement took which PHP has timed.
        self.took = []
        self.lock = threading.Lock()
        self.counts, self.examples = collections.Counter(), []
        self.is_over, self.may_write = threading.Event(), threading.Event()
        self.threads = []

    def count(self, what, number=1):
        with self.lock:
            self.counts[what] += number

    def start_server(self, configuration, **values):
        """With the pages of this folder."""
        for each in glob.glob(os.path.join(HERE, "*.php")):
            with open(each) as page:
                self.folder.write(os.path.basename(each), page.read())
        text = configuration.format(folder=self.folder.path, port=self.port, metrics=self.metrics_port, **values)
        environment = {"MAYFLY_FAILPOINT_LEARN": self.failpoint()} if self.failpoint() else {}
        command = [self.chosen.program, "-p", self.folder.path, "-c", self.folder.write("conf", text)]
        self.server = server = self.folder.spawn("mayfly", command, environment)
        workdir.wait_for("mayfly", workdir.listens("127.0.0.1", self.port), 30, server)

    def failpoint(self):
        """The error that the server makes on purpose, which has to be found."""
        return "late" if self.chosen.late else ""

    def begin(self, work, *arguments):
        thread = threading.Thread(target=self._run, args=(work, *arguments), daemon=True)
        self.threads.append(thread)
        thread.start()

    def _run(self, work, *arguments):
        try:
            work(*arguments)
        except Exception as error:
            self.count("broken threads")
            self.examples.append(repr(error))

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.answer_seconds)

    def get(self, connection, target, method="GET"):
        try:
            connection.request(method, target, headers={"Host": "site.test"})
            answer = connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException):
            connection.close()
            self.count("no answer")
            return NOTHING
        found = re.fullmatch(r"page \d+ version (\d+)\n", text)
        if answer.status != 200 or not found:
            self.count(f"status {answer.status}")
            return NOTHING
        if answer.getheader("X-Took"):
            self.took.append(int(answer.getheader("X-Took")))
        ttl = re.search(r"; ttl=(\d+)", answer.getheader("Cache-Status") or "")
        return Shown(int(found[1]), answer.getheader("X-Cache") == "HIT", int(answer.getheader("Age") or 0), int(ttl[1]) if ttl else 0)

    def judge(self, shown, at_least, fault, *about):
        """Counts an answer, and notes it as a fault where it is older than it may be. A page that may not be learned, and has its
        ordinary lifetime of a millisecond, says that it has no second left."""
        self.count("answers")
        self.count("hits", shown.is_hit)
        self.count("kept", shown.is_hit and shown.age >= 2)
        if shown.version >= at_least:
            return
        is_ordinary = shown.is_hit and shown.ttl < 1 and not self.failpoint()
        self.count("of the ordinary lifetime" if is_ordinary else fault)
        self.examples.append((*about, at_least, shown))

    def go_on(self):
        """Lets the threads write, and rest so that pages are kept, until it is enough; then ends them. A command of another
        test that was killed (`mayfly run`) is in doubt for a minute, and no page of this server is kept meanwhile."""
        began = time.monotonic()
        while not self.is_caught() and time.monotonic() - began < LONGEST_SECONDS:
            if time.monotonic() - began >= self.chosen.seconds and self.is_enough() and self.is_tried():
                break
            self.may_write.set()
            time.sleep(WRITES_SECONDS)
            self.may_write.clear()
            time.sleep(RESTS_SECONDS)
        self.is_over.set()
        for thread in self.threads:
            thread.join(self.end_seconds)
        print(f"{round(time.monotonic() - began)} s, {self.chosen.readers} readers")

    def is_caught(self):
        return bool(self.failpoint()) and self.counts[self.fault_to_catch] > 0

    def is_tried(self):
        return self.counts["hits"] >= MIN_HITS and self.counts["kept"] >= MIN_KEPT

    def show(self):
        print(", ".join(f"{self.counts[what]} {what}" for what in sorted(self.counts)))
        for example in self.examples[:5]:
            print(f"  {example}")
        print(self.learned())

    def is_wrong(self):
        """Pages of which something was not heard are not learned: without any, nothing has its ordinary lifetime while it is written."""
        is_excused = 'reason="incomplete"' in self.learned()
        faults = ("old", "late", "broken threads", "broken programs", *(() if is_excused else ("of the ordinary lifetime",)))
        return any(self.counts[fault] for fault in faults)

    def learned(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=10)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        return "\n".join(line for line in lines if "learned" in line and line[0] != "#" and not line.endswith(" 0.0"))
