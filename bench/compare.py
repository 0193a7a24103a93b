#!/usr/bin/env python3
"""Mayfly beside its peers, scenario by scenario.

For each scenario every peer is started anew, is asked once and must answer rightly.
Then they are asked in turns, round after round, the order reversed every other time,
so that a noisy machine is noisy for all. A round has two halves: as fast as answers
come (requests per second, CPU time), then at a fixed rate (latency from the moment a
request was due). Figures are medians over the rounds, ratios are medians of each
round's ratio. The peer that is missing, fails or answers wrongly is in the table
with the reason.
"""

import contextlib
import gzip
import os
import statistics
import sys
import time

import scenarios
from lib import comparison, load, peers, php, process, report, subject

# Page numbers of one phase of a cold scenario; no phase gets through that many.
COLD_PAGES = 10_000_000
MB = 1 << 20


class Subject:
    """One line of a scenario: a server with the target it is asked for."""

    def __init__(self, label, server, target):
        self.label, self.server, self.target = label, server, target
        self.body_bytes = None
        # Resident memory before the first round. Later rounds find what earlier ones left.
        self.rest = None
        self.rounds = []
        self.failed = None


class Run:
    """One scenario: its servers up, its pages stored, its rounds."""

    def __init__(self, chosen, scenario, site, folder, running):
        self.chosen, self.scenario, self.site = chosen, scenario, site
        self.folder, self.running = folder, running
        self.seconds = max(chosen.seconds, scenario.least_seconds)
        self.target = scenario.target
        if scenario.php_milliseconds:
            self.target += f"&work={php.calibrate(scenario.php_milliseconds)}"
        self.phases = 0
        self.subjects = []

    def prepare(self):
        """Starts everything; the subjects with what kept them from taking part, if anything did."""
        classes = [one for one in peers.PEERS if one.__name__.lower() in self.scenario.peers]
        for one in classes:
            self.subjects.append(Subject(one.title, None, self.target))
            with self._blaming(self.subjects[-1]):
                if one.program() is None:
                    raise RuntimeError("not installed")
                self.subjects[-1].server = self.running.enter_context(
                    one(self.site, self.folder, self.scenario.log, self.scenario.gzip))
        for one in self._able():
            with self._blaming(one):
                one.server.wait()
                one.answer = self._right_answer(one)
                self._store_pages(one)
        mayfly = self.subjects[0]
        if not mayfly.failed:
            self._add_yardsticks(mayfly)
        return self.subjects

    def _add_yardsticks(self, mayfly):
        if self.scenario.uncached:
            self.subjects.append(Subject("Mayfly, uncached", mayfly.server, self.scenario.uncached))
            self.subjects[-1].body_bytes = mayfly.body_bytes
        floor = Subject("floor", None, self.target)
        self.subjects.append(floor)
        with self._blaming(floor):
            floor.body_bytes = mayfly.body_bytes
            floor.server = self.running.enter_context(
                peers.Floor(self.site, self.folder, mayfly.answer, *self.scenario.floor))

    def _able(self):
        return [one for one in self.subjects if not one.failed]

    @contextlib.contextmanager
    def _blaming(self, subject_):
        """What goes wrong inside is the subject's, and the others go on."""
        try:
            yield
        except (Exception, SystemExit) as error:
            subject_.failed = " ".join(str(error).split())[:300] or type(error).__name__
            print(f"  {subject_.label}: {subject_.failed}", file=sys.stderr, flush=True)

    def _right_answer(self, one):
        """The bytes of an answer from the cache, looked at closely."""
        wanted = self.scenario
        if wanted.method != "GET" or wanted.status != 200:
            load.ask_once(one.server.port, load.request_bytes("GET", self.target, ()))
        request = load.request_bytes(wanted.method, self.target, wanted.fields)
        for _ in range(3):
            answer = load.ask_once(one.server.port, request)
            time.sleep(0.01)
        if int(answer.split(b" ", 2)[1]) != wanted.status:
            raise RuntimeError(f"answers {answer[:60]!r}, wanted {wanted.status}")
        if wanted.method != "GET" or wanted.status != 200:
            one.body_bytes = 0
            return answer
        _, fields, body = load.parse(answer)
        one.body_bytes = len(body)
        encoding = fields.get(b"content-encoding", b"").decode()
        if encoding == "gzip":
            body = gzip.decompress(body)
        if wanted.gzip and not encoding:
            raise RuntimeError("does not compress the page")
        if encoding != "br" and len(body) != wanted.body_bytes:
            raise RuntimeError(f"the page has {len(body)} bytes, wanted {wanted.body_bytes}")
        return answer

    def _store_pages(self, one):
        count = self.scenario.zipf_pages
        if count:
            options = ["--keys", "sequence:0", "--count", str(count), "--connections", "16", "--seconds", "120"]
            load.bench_load(self.chosen.load, one.server, one.target, self.chosen.client_core, options, 150)

    def turn(self, number):
        """One round: each subject's two halves."""
        for one in self._able()[:: -1 if number % 2 else 1]:
            with self._blaming(one):
                one.rounds.append(self._round(one))

    def _round(self, one):
        if one.rest is None:
            one.rest = process.memory_bytes(*one.server.pids)
        fast, (user, system), memory = self._ask(one)
        requests = max(fast["requests"], 1)
        figures = {
            "per_second": fast["requests"] / fast["seconds"],
            "seconds_per_request": fast["seconds"] / requests,
            "user_us": user * 1e6 / requests,
            "system_us": system * 1e6 / requests,
            "cpu_us": (user + system) * 1e6 / requests,
            "wrong": fast["wrong_status"] + fast["wrong_length"] + fast["broken"],
        }
        if self.scenario.idle:
            connections = self.scenario.idle + self.scenario.connections
            figures["idle_kb"] = (memory - one.rest) / connections / 1024
        # The uncached page is a yardstick for cost, and could not follow the rate.
        if one.target != self.scenario.uncached:
            slow, _, _ = self._ask(one, "--rate", str(self.scenario.rate))
            figures |= {key: slow[key] for key in ("p50_us", "p99_us", "p99_9_us", "max_us")}
            figures["wrong"] += slow["wrong_status"] + slow["wrong_length"] + slow["broken"]
        figures["memory_mb"] = process.memory_bytes(*one.server.pids) / MB
        return figures

    def _ask(self, one, *more):
        wanted = self.scenario
        wait = 2 if self.chosen.quick else 10
        options = [
            "--connections", str(wanted.connections), "--seconds", str(self.seconds), "--wait", str(wait),
            "--idle", str(wanted.idle), "--method", wanted.method, "--status", str(wanted.status),
            "--bytes", str(one.body_bytes), *more,
        ]
        for field in wanted.fields:
            options += ["--field", field]
        if wanted.per_connection:
            options += ["--per-connection", str(wanted.per_connection)]
        if wanted.zipf_pages:
            options += ["--keys", f"zipf:{wanted.zipf_pages}"]
        if wanted.is_cold:
            self.phases += 1
            options += ["--keys", f"sequence:{self.phases * COLD_PAGES}"]
        limit = self.seconds + wait + 60
        return load.bench_load(self.chosen.load, one.server, one.target, self.chosen.client_core, options, limit)


def measure(chosen, scenario):
    """The scenario's figures as `comparison` takes them."""
    if chosen.quick:
        scenario = scenario.quick()
    print(f"{scenario.title} ...", file=sys.stderr, flush=True)
    with contextlib.ExitStack() as running:
        folder = running.enter_context(subject.Folder())
        site = peers.Site(folder, chosen.server_core)
        run = Run(chosen, scenario, site, folder, running)
        subjects = run.prepare()
        for number in range(chosen.rounds):
            run.turn(number)
        return comparison.of(scenario, [
            (one.label, {"failed": one.failed} if one.failed else medians(one.rounds), one.rounds)
            for one in subjects
        ])


def medians(rounds):
    return {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}


def tools(parser):
    """The options for our own two programs."""
    folder = os.path.join(os.environ.get("CARGO_TARGET_DIR", "target"), "release")
    parser.add_argument("--load", default=os.path.join(folder, "bench-load"), help="the client, built from bench/tools")
    parser.add_argument("--floor", default=os.path.join(folder, "bench-floor"), help="the floor, likewise")


def options(description):
    parser = report.options(description)
    tools(parser)
    parser.add_argument("--rounds", type=int, help="5, or 1 with --quick")
    parser.add_argument("--seconds", type=float, help="each half of a round lasts so long: 1.5, or 0.3 with --quick")
    return parser


def prepare(chosen):
    """Fills in what was not said, and checks that the tools are there."""
    report.prepare(chosen)
    chosen.rounds = chosen.rounds or (1 if chosen.quick else 5)
    chosen.seconds = chosen.seconds or (0.3 if chosen.quick else 1.5)
    for tool in (chosen.load, chosen.floor):
        if not os.access(tool, os.X_OK):
            raise SystemExit(f"{tool} is not there; cargo build --release --package bench-tools makes it")
    peers.Mayfly.binary, peers.Floor.tool = chosen.binary, chosen.floor


def run(chosen, names):
    """Measures the named scenarios and prints a table after each."""
    results = []
    for scenario in scenarios.SCENARIOS:
        if scenario.name in names:
            results.append(measure(chosen, scenario))
            print(comparison.table(results[-1]), flush=True)
            comparison.save(results, report.OUT)
    return results


def main():
    parser = options(__doc__)
    names = [scenario.name for scenario in scenarios.SCENARIOS]
    parser.add_argument("--only", choices=names, nargs="+", default=names, metavar="SCENARIO")
    chosen = parser.parse_args()
    prepare(chosen)
    results = run(chosen, chosen.only)
    print(comparison.goals_table(results))


if __name__ == "__main__":
    main()
