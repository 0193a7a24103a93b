#!/usr/bin/env python3
"""Runs every measurement and writes down what came out.

The table goes to the terminal, the figures to bench/out/, and after a full run a
page for people to docs/benchmarks.md. A full run measures nginx as well and takes
about a quarter of an hour; --quick leaves nginx and the page out and takes three
minutes. Ends with status 1 when Mayfly misses a promise.
"""

import datetime
import importlib
import os
import platform
import sys

from lib import report, subject

MEASUREMENTS = ["flood", "cold_crowd", "hit_cost", "memory", "slow_clients"]
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


def machine():
    model = "unknown processor"
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GB, Linux {platform.release()}"


def markdown(results):
    """The page: what was measured on what, then one table per measurement."""
    versions = sorted({f"{result.server}: {result.version}" for result in results})
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`; do not edit. Client and server each have a core of their own,",
        "PHP shares the server's. What exactly is measured stands at the top of each script in",
        "[bench/](../bench/), and `bench/NAME.py` repeats one of them alone.",
        "",
        f"- {datetime.date.today().isoformat()}, {machine()}",
        *[f"- {version}" for version in versions],
        "",
    ]
    for name in dict.fromkeys(result.name for result in results):
        same = [result for result in results if result.name == name]
        lines += [f"## {same[0].title}", "", f"`bench/{name}.py`", ""]
        lines += ["| promise | at most | " + " | ".join(result.server for result in same) + " |"]
        lines += ["| --- | ---: |" + " ---: |" * len(same)]
        for promise in dict.fromkeys(check["promise"] for result in same for check in result.checks):
            checks = [next((c for c in r.checks if c["promise"] == promise), None) for r in same]
            cells = [_cell(check) for check in checks]
            limit = next(check for check in checks if check)
            lines.append(f"| {promise} | {_with_unit(limit, 'limit')} | " + " | ".join(cells) + " |")
        if name == "hit_cost":
            lines += _hit_costs(same[0])
        lines.append("")
    return "\n".join(lines)


def _with_unit(check, field):
    return report.number(check[field]) + (f" {check['unit']}" if check["unit"] else "")


def _cell(check):
    if check is None:
        return ""
    return _with_unit(check, "value") + ("" if check["kept"] else " (missed)")


def _hit_costs(result):
    lines = ["", f"| page | {result.server}, CPU per hit | nginx, CPU per hit |", "| --- | ---: | ---: |"]
    for page, figures in result.figures.items():
        if isinstance(figures, dict):
            cpu = figures["cpu_microseconds"]
            lines.append(f"| {page} | {cpu['subject']} us | {cpu['reference']} us |")
    return lines


def main():
    parser = report.options(__doc__)
    parser.add_argument("--only", choices=MEASUREMENTS, nargs="+", default=MEASUREMENTS)
    chosen = parser.parse_args()
    report.prepare(chosen)
    own = run(chosen, chosen.only)
    results = list(own)
    if not chosen.quick and subject.kind_of(chosen.binary) != "nginx":
        chosen.binary = chosen.nginx
        # The cost of a hit is a comparison already.
        results += run(chosen, [name for name in chosen.only if name != "hit_cost"])
    print(report.table(results))
    if not chosen.quick and chosen.only == MEASUREMENTS:
        with open(PAGE, "w") as file:
            file.write(markdown(results))
        print(f"\nWritten to {os.path.relpath(PAGE)} and {os.path.relpath(report.OUT)}/")
    sys.exit(0 if all(result.is_kept() for result in own) else 1)


if __name__ == "__main__":
    main()
