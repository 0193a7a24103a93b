"""A measurement's options, checks and output.

Every script in bench/ has `NAME`, `TITLE` and `measure(options) -> Result`, and
hands over to `main`. bench/all.py runs them one after the other.
"""

import argparse
import json
import os
import resource
import sys

from . import subject

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(FOLDER, "out")


class Result:
    """Figures of one measurement of one server, and which promises they keep."""

    def __init__(self, name, title, binary):
        self.name, self.title = name, title
        self.server = subject.kind_of(binary)
        self.version = subject.version_of(binary)
        self.figures = {}
        self.checks = []

    def check(self, promise, value, limit, unit=""):
        """Records that `value` should be at most `limit`."""
        self.checks.append(
            {"promise": promise, "value": value, "limit": limit, "unit": unit, "kept": value <= limit}
        )

    def is_kept(self):
        return all(check["kept"] for check in self.checks)

    def save(self):
        os.makedirs(OUT, exist_ok=True)
        with open(os.path.join(OUT, f"{self.name}-{self.server}.json"), "w") as file:
            json.dump(vars(self), file, indent=2)
            file.write("\n")


def write_json(path, value):
    with open(path, "w") as file:
        json.dump(value, file, indent=1, default=str)
        file.write("\n")


def rows_of_json(value, depth=4, indent=0):
    """JSON whose outer levels have a line for each part, and everything deeper one line in all."""
    if not depth or not isinstance(value, (dict, list)) or not value:
        return json.dumps(value, default=str) + ("" if indent else "\n")
    space = " " * (indent + 1)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {rows_of_json(one, depth - 1, indent + 1)}" for key, one in value.items()]
    else:
        parts = [rows_of_json(one, depth - 1, indent + 1) for one in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    text = f"{first}\n{space}" + f",\n{space}".join(parts) + f"\n{' ' * indent}{last}"
    return text + ("" if indent else "\n")


def number(value):
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(results):
    """The checks of some results as lines of text."""
    rows = [("measurement", "server", "promise", "measured", "at most", "")]
    for result in results:
        for check in result.checks:
            unit = f" {check['unit']}" if check["unit"] else ""
            limit, value = number(check["limit"]) + unit, number(check["value"]) + unit
            rows.append(
                (result.name, result.server, check["promise"], value, limit, "ok" if check["kept"] else "NO")
            )
    return columns(rows, right=(3, 4), has_heading=True)


def columns(rows, right=(), has_heading=False):
    """Rows of cells as lines of text, aligned."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    if has_heading:
        rows = [rows[0], ["-" * width for width in widths], *rows[1:]]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) if column in right else cell.ljust(width)
                 for column, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def options(description):
    """The command line that all measurements share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--binary", default=os.environ.get("BINARY", "target/release/mayfly"),
                        help="server under test; a name starting with nginx is run as nginx")
    parser.add_argument("--nginx", default="/usr/sbin/nginx", help="nginx to compare with")
    parser.add_argument("--quick", action="store_true", help="a few seconds each, for a first look")
    parser.add_argument("--client-core", type=int, default=0)
    parser.add_argument("--server-core", type=int, default=1)
    return parser


def prepare(chosen):
    """Checks the machine and moves this process, a client, to the client's core."""
    if not os.access(chosen.binary, os.X_OK):
        raise SystemExit(f"{chosen.binary} is not there; make build makes it")
    cores = os.sched_getaffinity(0)
    if not {chosen.client_core, chosen.server_core} <= cores or chosen.client_core == chosen.server_core:
        raise SystemExit(f"two cores are needed, one each for client and server; there are {sorted(cores)}")
    os.sched_setaffinity(0, {chosen.client_core})
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main(name, title, measure, description):
    """Runs one measurement from the command line."""
    run(options(description), measure)


def run(parser, measure):
    """The same with options of the measurement's own."""
    chosen = parser.parse_args()
    prepare(chosen)
    result = measure(chosen)
    result.save()
    print(table([result]))
    print(json.dumps(result.figures, indent=2))
    sys.exit(0 if result.is_kept() else 1)
