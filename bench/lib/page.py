"""docs/benchmarks.md: what was measured, when, on what, with which commands.

The words are in bench/page.md; what stands between @ signs there is put in here. The page is
made from its summary, docs/benchmarks.json: medians, goals and promises. Figures of every
round and pictures stay in bench/out. Both files are written after full runs only.
"""

import datetime
import json
import math
import os
import platform
import subprocess
import sys

import scenarios

from . import chart, comparison, report

TEMPLATE = os.path.join(report.FOLDER, "page.md")
# Medians of fewer rounds say little on a machine with neighbours.
MIN_ROUNDS = 5
# More of a figure is noise.
DIGITS = 6
# Lines of a table that are no competitor.
YARDSTICKS = ("Mayfly", "Mayfly, uncached", "floor")


def about(chosen, versions):
    """Date, machine, versions and command of a run."""
    return {
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "commit": _told("git", "-C", report.FOLDER, "rev-parse", "--short", "HEAD"),
        "versions": versions,
        "command": "make bench" if not chosen.only and not chosen.quick else " ".join(["bench/all.py", *sys.argv[1:]]),
        "quick": chosen.quick,
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
    """Writes the summary beside the page, and the page from it."""
    with open(_summary_path(path), "w") as file:
        file.write(report.rows_of_json(summary(facts, comparisons, promises)))
    render(path)


def render(path):
    """Writes the page anew from its summary; nothing is measured."""
    with open(_summary_path(path)) as file:
        kept = json.load(file)
    with open(path, "w") as file:
        file.write(markdown(os.path.basename(_summary_path(path)), kept))


def _summary_path(path):
    return os.path.splitext(path)[0] + ".json"


def summary(facts, comparisons, promises):
    """What the page shows."""
    return {
        "run": facts,
        "scenarios": [{**result, "subjects": [_medians(one) for one in result["subjects"]]} for result in comparisons],
        "promises": [{"name": one.name, "title": one.title, "server": one.server,
                      "checks": [_rounded(check) for check in one.checks]} for one in promises],
    }


def _medians(subject):
    return _rounded({key: value for key, value in subject.items() if key != "rounds"})


def _rounded(figures):
    return {key: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value for key, value in figures.items()}


def markdown(summary_name, kept):
    with open(TEMPLATE) as file:
        page = file.read()
    scenarios_ = kept["scenarios"]
    parts = {
        "RUN": _run(kept["run"]),
        "JSON": summary_name,
        "MUST_SHOW": _must_show(must_show(scenarios_)),
        "CPU": _overview(scenarios_, "cpu_us", chart.short),
        "LATENCY": _overview(scenarios_, "p99_9_us", chart.duration),
        "SCENARIOS": "\n".join(line for result in scenarios_ for line in _scenario(result)),
        "PROMISES": _promises(kept["promises"]),
    }
    for marker, text in parts.items():
        page = page.replace(f"@{marker}@", text)
    return page.rstrip() + "\n"


def _run(facts):
    few = "" if facts["rounds"] >= MIN_ROUNDS else " (too few to hold anybody to)"
    lines = [
        f"{facts['date']}, commit {facts['commit']}, `{facts['command']}`",
        f"rounds: {facts['rounds']}{few}, {facts['seconds']:g} s for each half of one",
        *(["a quick look: fewer stored pages, idle connections and seconds than the titles say"]
          if facts["quick"] else []),
        facts["machine"],
        *facts["versions"],
    ]
    return "\n".join(f"- {line}" for line in lines)


def must_show(comparisons):
    """What was asked for, item by item: which figures stand for it, and whether it holds."""
    by_name = {result["name"]: result for result in comparisons}
    items = []
    for number, (asked, names) in enumerate(scenarios.MUST_SHOW, 1):
        goals = [{"scenario": by_name[name]["title"], "floor": _floors_ratio(by_name[name], goal), **goal}
                 for name in names if name in by_name for goal in by_name[name]["goals"]]
        is_whole = all(name in by_name for name in names)
        items.append({"number": number, "asked": asked, "goals": goals,
                      "holds": is_whole and all(goal["reached"] for goal in goals)})
    missing = [scenario.title for scenario in scenarios.SCENARIOS if scenario.name not in by_name]
    unmeasured = [f"{one['label']} in {result['title']}" for result in comparisons
                  for one in result["subjects"] if "failed" in one]
    items.append({"number": len(items) + 1, "asked": scenarios.NOTHING_LEFT_OUT, "goals": [],
                  "holds": not missing and not unmeasured, "missing": missing + unmeasured,
                  "ahead": [cell for result in comparisons for cell in _ahead(result)]})
    return items


def _floors_ratio(result, goal):
    """What the floor would have in Mayfly's place; None where nobody can tell."""
    figures = {one["label"].lower(): one.get(goal["figure"]) for one in result["subjects"]}
    floor, peer = figures.get("floor"), figures.get(goal["of"] or "")
    return floor / peer if floor and peer and goal["of"] != "floor" else None


def _ahead(result):
    """Peers that are cheaper or quicker than Mayfly in this scenario."""
    figures = {one["label"]: one for one in result["subjects"] if "failed" not in one}
    own = figures.get("Mayfly")
    peers = {label: one for label, one in figures.items() if label not in YARDSTICKS} if own else {}
    return [f"{label} in {result['title']} ({name})" for label, one in peers.items()
            for key, name in (("cpu_us", "CPU time"), ("p99_9_us", "99.9th percentile"))
            if one.get(key, math.inf) < own.get(key, 0)]


def _must_show(items):
    rows = []
    for item in items:
        measured = [f"{goal['scenario']}: {_measured(goal)}" for goal in item["goals"]]
        if "ahead" in item:
            measured = [f"not measured: {', '.join(item['missing'])}"] if item["missing"] else []
            measured.append(f"ahead of Mayfly: {', '.join(item['ahead']) or 'nobody'}")
        verdict = "pass" if item["holds"] else "**fail**"
        rows.append([str(item["number"]), item["asked"], "<br>".join(measured) or "not measured", verdict])
    return "\n".join(grid(["", "asked", "measured", ""], rows, "rlll"))


def _measured(goal):
    what, limit, value = comparison.goal_cells(goal)
    if goal["reached"]:
        return f"{what} {value} (at most {limit})"
    floor = goal.get("floor")
    possible = f", and the floor is {floor:.3g} x {goal['of']}" if floor else ""
    return f"{what} **{value}** (at most {limit}{possible})"


def _overview(comparisons, key, write):
    """One figure of every server in every scenario."""
    labels = list(dict.fromkeys(one["label"] for result in comparisons for one in result["subjects"]))
    # Mayfly first, then its peers, then the yardsticks.
    labels.sort(key=lambda label: (label != "Mayfly", label in YARDSTICKS))
    rows = []
    for result in comparisons:
        figures = {one["label"]: one for one in result["subjects"]}
        own = figures.get("Mayfly", {}).get(key, 0)
        cells = []
        for label in labels:
            one = figures.get(label, {})
            text = write(one[key]) if key in one else "failed" if "failed" in one else ""
            is_ahead = key in one and label not in YARDSTICKS and one[key] < own
            cells.append(f"**{text}**" if is_ahead else text)
        rows.append([f"[{result['title']}](#{_anchor(result['title'])})", *cells])
    return "\n".join(grid(["scenario", *labels], rows, "l" + "r" * len(labels)))


def _promises(promises):
    parts = []
    for name in dict.fromkeys(result["name"] for result in promises):
        parts += _promise([result for result in promises if result["name"] == name])
    return "\n".join(parts) or "Not measured in this run."


def _anchor(title):
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -")
    return kept.replace(" ", "-")


def _scenario(result):
    heading, *lines = comparison.rows(result)
    return [
        f"### {result['title']}", "", result["what"], "",
        f"`bench/compare.py --only {result['name']}`", "",
        *grid(heading, lines, "l" + "r" * (len(heading) - 1)), "",
    ]


def _promise(same):
    lines = []
    for promise in dict.fromkeys(check["promise"] for result in same for check in result["checks"]):
        checks = [next((c for c in r["checks"] if c["promise"] == promise), None) for r in same]
        limit = next(check for check in checks if check)
        lines.append([promise, _with_unit(limit, "limit"), *(_cell(check) for check in checks)])
    heading = ["promise", "at most", *(result["server"] for result in same)]
    return [f"### {same[0]['title']}", "", f"`bench/{same[0]['name']}.py`", "",
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
