"""A scenario as a picture: CPU time as bars, latency as dots on a logarithmic scale.

The SVG is written here, a hundred lines of it: matplotlib would bring 60 packages
for bars and dots, and its files change with its version where these do not.
"""

import math
from html import escape

ROW = 26
LABELS = 150
PANEL = 300
GAP = 70
TOP = 64
# What each class is filled with on light paper and on dark. A picture within a page is told
# by the browser which of them the reader asked for.
COLOURS = {
    "paper": ("#ffffff", "#0d1117"), "text": ("#222222", "#e6edf3"), "middle": ("#666666", "#9198a1"),
    "own": ("#b5451b", "#f0883e"), "user": ("#1f6f8b", "#4cb3d4"), "system": ("#99c4d3", "#2b5c6d"),
    "p50": ("#1f6f8b", "#4cb3d4"), "p99": ("#b8860b", "#e3b341"), "p99_9": ("#b5451b", "#f0883e"),
}
LINE = ("#dddddd", "#30363d")
DOTS = [("p50_us", "p50", "50th"), ("p99_us", "p99", "99th"), ("p99_9_us", "p99_9", "99.9th")]


def _style():
    def fills(paper):
        rules = [f".{name}{{fill:{colours[paper]}}}" for name, colours in COLOURS.items()]
        return "".join([f"text{{fill:{COLOURS['text'][paper]}}}", *rules, f"path{{stroke:{LINE[paper]}}}"])
    return ("text{font:12px system-ui,sans-serif}.title{font-weight:600;font-size:14px}.end{text-anchor:end}"
            f".middle{{text-anchor:middle}}.own{{font-weight:600}}{fills(0)}"
            f"@media(prefers-color-scheme:dark){{{fills(1)}}}")


def draw(title, rows):
    """`rows` are (label, figures); figures without "cpu_us" are written as missing."""
    height = TOP + ROW * len(rows) + 30
    width = LABELS + PANEL + GAP + PANEL + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title, quote=True)}">',
        f"<style>{_style()}</style>",
        f'<rect class="paper" width="{width}" height="{height}"/>',
        _text(12, 22, title, "title"),
    ]
    for row, (label, figures) in enumerate(rows):
        kind = "end own" if label == "Mayfly" else "end"
        parts.append(_text(LABELS - 10, _middle(row), label, kind))
        if "cpu_us" not in figures:
            parts.append(_text(LABELS, _middle(row), figures.get("failed", "not measured")[:90]))
    measured = [(row, figures) for row, (_, figures) in enumerate(rows) if "cpu_us" in figures]
    if measured:
        parts += _bars(LABELS, measured) + _dots(LABELS + PANEL + GAP, len(rows), measured)
    return "\n".join([*parts, "</svg>", ""])


def _middle(row):
    return TOP + row * ROW + ROW / 2 + 4


def _text(x, y, text, kind=""):
    attribute = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{attribute}>{escape(text)}</text>'


def _rectangle(x, y, width, height, kind):
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}"/>'


def _bars(left, measured):
    parts = [
        _text(left, 46, "CPU microseconds per request:"),
        _rectangle(left + 205, 37, 10, 10, "user"), _text(left + 219, 46, "user"),
        _rectangle(left + 252, 37, 10, 10, "system"), _text(left + 266, 46, "system"),
    ]
    scale = (PANEL - 20) / max(figures["cpu_us"] for _, figures in measured)
    for row, figures in measured:
        y, user, system = TOP + row * ROW + 4, figures["user_us"] * scale, figures["system_us"] * scale
        parts.append(_rectangle(left, y, user, ROW - 8, "user"))
        parts.append(_rectangle(left + user, y, system, ROW - 8, "system"))
        parts.append(_text(left + user + system + 5, _middle(row), short(figures["cpu_us"])))
    return parts


def _dots(left, count, measured):
    parts = [_text(left, 46, "latency:")]
    for index, (_, kind, name) in enumerate(DOTS):
        x = left + 62 + index * 58
        parts += [f'<circle class="{kind}" cx="{x}" cy="42" r="5"/>', _text(x + 9, 46, name)]
    parts.append(_text(left + 240, 46, "percentile"))
    values = [figures[key] for _, figures in measured for key, _, _ in DOTS if figures.get(key)]
    if not values:
        return parts
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values) * 1.01))
    place = lambda value: left + (math.log10(value) - low) / (high - low) * PANEL
    bottom = TOP + count * ROW
    for power in range(low, high + 1):
        x = place(10**power)
        parts.append(f'<path d="M{x:.1f} {TOP}V{bottom}" />')
        parts.append(_text(x, bottom + 16, duration(10**power), "middle"))
    for row, figures in measured:
        for key, kind, _ in DOTS:
            if figures.get(key):
                parts.append(f'<circle class="{kind}" cx="{place(figures[key]):.1f}" cy="{_middle(row) - 4:.1f}" r="5"/>')
    return parts


def short(value):
    """Three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def duration(microseconds):
    """In the unit a person would choose."""
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= factor:
            return f"{short(microseconds / factor) if microseconds % factor else f'{microseconds / factor:.0f}'} {unit}"
    return f"{short(microseconds) if microseconds % 1 else f'{microseconds:.0f}'} us"
