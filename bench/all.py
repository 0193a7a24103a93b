#!/usr/bin/env python3
"""Everything that is measured: Mayfly beside its peers, then the promises it is held to alone.

Tables go to the terminal, every figure and a picture of each scenario to bench/out/, and after
a full run a page for people to docs/benchmarks.md, with a summary of the figures beside it.
A full run takes about three quarters of an hour. --quick takes three minutes: one short round
of each scenario, no promises, no page. --render measures nothing and writes the page anew from
its summary, after a change of bench/page.md. Ends with status 1 when Mayfly misses a goal or a
promise.
"""

import importlib
import os
import sys

import compare
import scenarios
from lib import comparison, page, peers, report, subject

PROMISES = ["flood", "cold_crowd", "refreshes", "purges", "esi", "fragments", "hit_cost", "from_disk", "stalled_disk", "encrypted", "http3", "proxying", "memory", "slow_clients", "storm", "scale", "large", "learned_writes", "endurance"]
# What compares with a peer by itself, or with nothing.
ALONE = ("hit_cost", "from_disk", "stalled_disk", "encrypted", "http3", "proxying", "purges", "esi", "fragments", "refreshes", "storm", "scale", "large", "learned_writes")
SCENARIOS = [scenario.name for scenario in scenarios.SCENARIOS]
PAGE = os.path.join(os.path.dirname(report.FOLDER), "docs", "benchmarks.md")


def run(chosen, names):
    results = []
    for name in names:
        measurement = importlib.import_module(name)
        server = subject.kind_of(chosen.binary)
        print(f"{measurement.TITLE} ({server}) ...", file=sys.stderr, flush=True)
        try:
            result = measurement.measure(chosen)
        except (Exception, SystemExit) as error:
            # One that cannot be taken is a promise missed, and the others go on.
            result = report.Result(name, measurement.TITLE, chosen.binary)
            result.figures["failed"] = str(error)
            result.check("measured at all (0 is yes)", 1, 0)
            print(f"  failed: {error}", file=sys.stderr, flush=True)
        result.save()
        results.append(result)
    return results


def promises(chosen, names):
    """Results of Mayfly, and of nginx beside them where the question is not a ratio to it."""
    own = run(chosen, names)
    if subject.kind_of(chosen.binary) == "nginx":
        return own, own
    binary, chosen.binary = chosen.binary, chosen.nginx
    theirs = run(chosen, [name for name in names if name not in ALONE])
    chosen.binary = binary
    return own, own + theirs


def main():
    parser = compare.options(__doc__)
    parser.add_argument("--only", choices=SCENARIOS + PROMISES, nargs="+", metavar="NAME")
    parser.add_argument("--page", help="write the page there, whatever was run, rather than to docs/ after a full run")
    parser.add_argument("--render", action="store_true", help="write the page anew from its summary, and end")
    chosen = parser.parse_args()
    if chosen.render:
        page.render(chosen.page or PAGE)
        return
    names = chosen.only or (SCENARIOS if chosen.quick else SCENARIOS + PROMISES)
    compare.prepare(chosen)
    compared = compare.run(chosen, [name for name in names if name in SCENARIOS])
    own, all_results = promises(chosen, [name for name in names if name in PROMISES])
    if compared:
        print(comparison.goals_table(compared))
    if own:
        print(report.table(all_results))
    is_full = not chosen.quick and not chosen.only
    path = chosen.page or (PAGE if is_full else None)
    if path:
        versions = [f"{one.title}: {one.version()}" for one in peers.PEERS
                    if one.program() and one is not peers.NginxCopying]
        page.write(path, page.about(chosen, versions), compared, all_results)
        print(f"\nWritten to {os.path.relpath(path)} and {os.path.relpath(report.OUT)}/")
    missed = [goal for result in compared for goal in result["goals"] if not goal["reached"]]
    # A quick look is too short to hold anybody to its figures.
    sys.exit(1 if not chosen.quick and (missed or not all(result.is_kept() for result in own)) else 0)


if __name__ == "__main__":
    main()
