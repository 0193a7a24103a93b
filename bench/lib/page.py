"""docs/benchmarks.md: what was measured, when, on what, with which commands, and every figure.

One part from the comparison with peers, one from the promises that Mayfly is held to
alone. Written after full runs only.
"""

import datetime
import os
import platform
import subprocess

from . import comparison, report


def about(chosen, versions):
    """Date, machine, versions and commands of a run."""
    return {
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "commit": _told("git", "-C", report.FOLDER, "rev-parse", "--short", "HEAD"),
        "versions": versions,
        "command": "make bench",
        "rounds": chosen.rounds,
        "seconds": chosen.seconds,
    }


def _told(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def machine():
    model = "unknown processor"
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GB, Linux {platform.release()}"


def write(path, facts, comparisons, promises):
    """Writes the page, and pictures and JSON into a folder of the page's name beside it."""
    folder = os.path.splitext(path)[0]
    comparison.save(comparisons, folder, facts)
    with open(path, "w") as file:
        file.write(markdown(os.path.basename(folder), facts, comparisons, promises))


def markdown(folder, facts, comparisons, promises):
    parts = [
        "# Benchmarks",
        "",
        "Written by `make bench`; do not edit. Client and server have a core of their own each; PHP shares the",
        "server's. All servers of a scenario run at once and are asked in turns, round after round; figures are",
        "medians over the rounds, ratios are medians of each round's ratio. CPU time is user and system time of",
        "the server's whole process tree per request, without PHP-FPM, while it answers as fast as it can;",
        "latency is taken at a fixed rate, from the moment a request was due. The *floor* is a bare epoll loop",
        "that receives and sends the same bytes. *Wrong* are answers of another status or length, connections",
        "closed before their answer, and requests never answered, over both halves of a round.",
        "",
        f"- {facts['date']}, commit {facts['commit']}, {facts['rounds']} rounds of {facts['seconds']:g} s for each half",
        f"- {facts['machine']}",
        *[f"- {version}" for version in facts["versions"]],
        "",
        "Again: `make bench` for everything, `make bench QUICK=1` for a look within three minutes,",
        "`bench/compare.py --only page_21k` for one scenario. Configurations are in [bench/peers](../bench/peers/),",
        f"all figures of all rounds in [comparison.json]({folder}/comparison.json).",
        "",
        *_goals(comparisons),
        "## Beside other servers",
        "",
    ]
    for result in comparisons:
        parts += _scenario(folder, result)
    if promises:
        parts += ["## What Mayfly promises", ""]
        for name in dict.fromkeys(result.name for result in promises):
            parts += _promise([result for result in promises if result.name == name])
    return "\n".join(parts)


def _goals(comparisons):
    rows = [(result, goal) for result in comparisons for goal in result["goals"]]
    if not rows:
        return []
    lines = ["## Goals", ""]
    cells = []
    for result, goal in rows:
        what, limit, value = comparison.goal_cells(goal)
        link = f"[{result['title']}](#{_anchor(result['title'])})"
        cells.append([link, what, limit, value if goal["reached"] else f"**{value}**"])
    return [*lines, *grid(["scenario", "figure", "at most", "measured"], cells, "llrr"), "",
            "What is in bold falls short.", ""]


def _anchor(title):
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -")
    return kept.replace(" ", "-")


def _scenario(folder, result):
    heading, *lines = comparison.rows(result)
    picture = f"![CPU time and latency: {result['title']}]({folder}/{result['name']}.svg)"
    return [
        f"### {result['title']}", "", result["what"], "",
        f"`bench/compare.py --only {result['name']}`", "", picture, "",
        *grid(heading, lines, "l" + "r" * (len(heading) - 1)), "",
    ]


def _promise(same):
    lines = []
    for promise in dict.fromkeys(check["promise"] for result in same for check in result.checks):
        checks = [next((c for c in r.checks if c["promise"] == promise), None) for r in same]
        limit = next(check for check in checks if check)
        lines.append([promise, _with_unit(limit, "limit"), *(_cell(check) for check in checks)])
    heading = ["promise", "at most", *(result.server for result in same)]
    return [f"### {same[0].title}", "", f"`bench/{same[0].name}.py`", "",
            *grid(heading, lines, "l" + "r" * (len(heading) - 1)), ""]


def _with_unit(check, field):
    return report.number(check[field]) + (f" {check['unit']}" if check["unit"] else "")


def _cell(check):
    if check is None:
        return ""
    value = _with_unit(check, "value")
    return value if check["kept"] else f"**{value}**"


def grid(heading, lines, sides):
    """A table in Markdown; `sides` has an l or an r for each column."""
    rules = [{"l": "---", "r": "---:"}[side] for side in sides]
    return ["| " + " | ".join(cells) + " |" for cells in (heading, rules, *lines)]
