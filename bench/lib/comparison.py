"""A scenario's figures: as plain values, as a table, as JSON, and which goals they reach."""

import os
import statistics

from . import chart, report

COLUMNS = [
    # Heading, key, how to write it.
    ("requests/s", "per_second", lambda value: f"{value:,.0f}"),
    ("CPU us", "cpu_us", chart.short),
    ("user", "user_us", chart.short),
    ("system", "system_us", chart.short),
    ("p50", "p50_us", chart.duration),
    ("p99", "p99_us", chart.duration),
    ("p99.9", "p99_9_us", chart.duration),
    ("memory", "memory_mb", lambda value: f"{value:,.1f} MB"),
    ("each idle", "idle_kb", lambda value: f"{value:.1f} KB"),
    ("wrong", "wrong", lambda value: f"{value:,.0f}"),
]


def of(scenario, subjects):
    """`subjects` are (label, medians or {"failed": why}, rounds)."""
    return {
        "name": scenario.name,
        "title": scenario.title,
        "what": scenario.what,
        "subjects": [{"label": label, **figures, "rounds": rounds} for label, figures, rounds in subjects],
        "goals": [_goal(goal, {label.lower(): rounds for label, _, rounds in subjects}) for goal in scenario.goals],
    }


def _goal(goal, rounds):
    """One goal: what was measured, None where Mayfly or the other could not be."""
    key, other, limit = goal
    values = []
    if other is None:
        values = [one[key] for one in rounds["mayfly"]]
    else:
        pairs = zip(rounds["mayfly"], rounds.get(other, []))
        values = [own[key] / theirs[key] for own, theirs in pairs if theirs.get(key)]
    value = round(statistics.median(values), 3) if values else None
    return {"figure": key, "of": other, "limit": limit, "value": value,
            "reached": value is not None and value <= limit}


def rows(result):
    """The table: a heading, then a line for each subject, cells as text."""
    columns = [column for column in COLUMNS if any(column[1] in one for one in result["subjects"])]
    lines = [["", *(heading for heading, _, _ in columns)]]
    for one in result["subjects"]:
        cells = [write(one[key]) if key in one else "" for _, key, write in columns]
        if "failed" in one:
            cells = [f"not measured: {one['failed']}", *[""] * (len(columns) - 1)]
        lines.append([one["label"], *cells])
    return lines


def table(result):
    """For the terminal."""
    lines = rows(result)
    whole = [line for line in lines if not line[1].startswith("not measured")]
    widths = [max(len(line[column]) for line in whole) for column in range(len(lines[0]))]
    widths[0] = max(len(line[0]) for line in lines)
    text = [result["title"]]
    for line in lines:
        cells = [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:]))]
        text.append("  " + "  ".join(cells).rstrip())
    return "\n".join([*text, ""])


NAMES = {
    "cpu_us": "CPU per request", "p99_9_us": "99.9th percentile", "seconds_per_request": "time per request",
    "idle_kb": "KB per idle connection",
}


def goal_cells(goal):
    """(what, at most, measured) of a goal, as text."""
    unit = f" x {goal['of']}" if goal["of"] else ""
    value = "not measured" if goal["value"] is None else f"{goal['value']:.3g}{unit}"
    return NAMES[goal["figure"]], f"{goal['limit']:g}{unit}", value


def goals_table(results):
    lines = []
    for result in results:
        for goal in result["goals"]:
            what, limit, value = goal_cells(goal)
            lines.append((result["title"], what, "at most " + limit, value, "reached" if goal["reached"] else "MISSED"))
    return report.columns(lines)


def save(results, folder):
    """Writes comparison.json, with the figures of every round, and a picture for each scenario."""
    os.makedirs(folder, exist_ok=True)
    for result in results:
        picture = chart.draw(result["title"], [(one["label"], one) for one in result["subjects"]])
        with open(os.path.join(folder, result["name"] + ".svg"), "w") as file:
            file.write(picture)
    report.write_json(os.path.join(folder, "comparison.json"), {"scenarios": results})
