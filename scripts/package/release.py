#!/usr/bin/env python3
"""Gives the workspace another version, wherever one is written; the change is one commit.

    release.py VERSION

CHANGELOG.md gets a heading above the former one, with a link to the notes: docs/releases/VERSION.md, written by hand before.
`scripts/checks/run.py manifests documents` says whether all agree.
"""

import os
import re
import subprocess
import sys
import tomllib

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# Where the version stands as the current one: the whole text before it, and after.
PLACES = {
    "Cargo.toml": r'^(version = ")({})(")$',
    "README.md": r"(mayfly_)({})(_amd64\.deb)",
    "docs/guide/package.md": r"(mayfly[_ ])({})(_amd64\.deb|$)",
    "docs/guide/platforms.md": r"(mayfly-)({})(-vendored|$)",
    "docs/guide/container.md": r"(mayfly-static[-:])({})(-x86_64)",
    "scripts/package/guide.py": r"(mayfly_)({})(_amd64\.deb)",
    "php/wordpress/mayfly/mayfly.php": r"^( \* Version: +)({})()$",
}


def main():
    if len(sys.argv) != 2 or not re.fullmatch(r"\d+\.\d+\.\d+", sys.argv[1]):
        raise SystemExit("usage: scripts/package/release.py VERSION, such as 0.2.0")
    new = sys.argv[1]
    with open(os.path.join(ROOT, "Cargo.toml"), "rb") as file:
        old = tomllib.load(file)["workspace"]["package"]["version"]
    if not os.path.exists(os.path.join(ROOT, f"docs/releases/{new}.md")):
        raise SystemExit(f"docs/releases/{new}.md is missing: the notes for people come first")
    for path, pattern in PLACES.items():
        change(path, pattern.format(re.escape(old)), rf"\g<1>{new}\g<3>")
    change("CHANGELOG.md", rf"^(## {re.escape(old)})$", rf"## {new}\n\n[Notes for people who upgrade](docs/releases/{new}.md).\n\n\g<1>")
    subprocess.run(["cargo", "update", "--workspace", "--offline", "--quiet"], cwd=ROOT, check=True)
    print(f"{old} is {new} now: look at the difference, and commit it")


def change(path, pattern, by):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        text = file.read()
    text, count = re.subn(pattern, by, text, flags=re.MULTILINE)
    if not count:
        raise SystemExit(f"{path}: the version is not where it was")
    with open(os.path.join(ROOT, path), "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
