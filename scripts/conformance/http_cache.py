#!/usr/bin/env python3
"""Writes docs/http-conformance.md from docs/http-conformance.json, and that from results of the suite cache-tests.

    scripts/conformance/http_cache.py                                      # the page
    scripts/conformance/http_cache.py --suite DIR NAME=RESULTS.json ...    # new columns first

DIR is a checkout of https://github.com/http-tests/cache-tests, RESULTS what its command-line client prints. A column
of the same name is replaced, others stay. A test counts as by the rules of the suite's own page: it says nothing
where a test that it depends on was not passed, or where its preparation failed.
"""

import argparse
import json
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "docs/http-conformance.json")
PAGE = os.path.join(ROOT, "docs/http-conformance.md")
KINDS = ("required", "optimal", "check")
# The columns that are ours: each test that one of them does not pass has a reason.
OWN = ("mayfly", "mayfly, FastCGI", "mayfly, early_hints")

LIST_TESTS = """
const groups = (await import(process.argv[1])).default
const tests = groups.flatMap(group => group.tests.map(test => ({
  id: test.id, group: group.name, kind: test.kind ?? 'required', needs: test.depends_on ?? [],
  isForBrowsers: test.browser_only === true })))
console.log(JSON.stringify(tests))
"""


def outcomes(tests, results):
    """Of each test: `p` (passed), `f` (failed) or `n` (says nothing)."""
    known = {}

    def of(name):
        if name in known:
            return known[name]
        known[name] = "n"
        result = results.get(name)
        needs = tests[name]["needs"]
        if result is None or any(other not in tests or of(other) != "p" for other in needs):
            found = "n"
        elif result is True:
            found = "p"
        else:
            found = "n" if result[0] in ("Setup", "AbortError") else "f"
        known[name] = found
        return found

    return {name: of(name) for name in tests}


def record(data, suite, columns):
    module = "file://" + os.path.abspath(os.path.join(suite, "tests/index.mjs"))
    listed = subprocess.run(
        ["node", "--input-type=module", "-e", LIST_TESTS, module], capture_output=True, check=True, text=True
    )
    tests = {test["id"]: test for test in json.loads(listed.stdout)}
    data["tests"] = [
        {name: test[name] for name in ("id", "group", "kind")} for test in tests.values() if not test["isForBrowsers"]
    ]
    for column in columns:
        name, path = column.split("=", 1)
        with open(path, encoding="utf-8") as file:
            found = outcomes(tests, json.load(file))
        data["columns"][name] = "".join(found[test["id"]] for test in data["tests"])


def not_passed(data, column):
    """The required and optimal tests that a column does not pass."""
    letters = zip(data["tests"], data["columns"][column])
    return [test["id"] for test, letter in letters if letter != "p" and test["kind"] != "check"]


def row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |\n"


def table(head, rows, left):
    return row(head) + row("---" if at < left else "--:" for at in range(len(head))) + "".join(map(row, rows))


def count(data, column, kind, letter, group=None):
    pairs = zip(data["tests"], data["columns"][column])
    return sum(
        found == letter and test["kind"] == kind and group in (None, test["group"]) for test, found in pairs
    )


def page(data):
    columns = list(data["columns"])
    kinds = {kind: sum(test["kind"] == kind for test in data["tests"]) for kind in KINDS}
    text = f"""# How true the cache is to HTTP

The public suite [cache-tests](https://github.com/http-tests/cache-tests), revision `{data["suite"]}`, asks a cache in
front of an origin of its own. {len(data["tests"])} of its tests are for proxies: {kinds["required"]} are *required* by RFC
9110, RFC 9111 or RFC 9213, {kinds["optimal"]} are *optimal* (reuse that is allowed and useful), and {kinds["check"]} are
questions, whose answers are neither right nor wrong. This page is written by `scripts/conformance/http_cache.py` from
[http-conformance.json](http-conformance.json).

{data["configuration"]}

## Totals

A test says nothing (n/a) about a cache if a test that it depends on was not passed, or its preparation failed.

"""
    rows = [
        [name, *(count(data, name, kind, letter) for kind in KINDS for letter in "pfn")] for name in columns
    ]
    heads = ["required: passed", "failed", "n/a", "optimal: passed", "failed", "n/a", "questions: yes", "no", "n/a"]
    text += table(["", *heads], rows, 1)
    text += "\n## Tests that Mayfly does not pass\n\n"
    own = [name for name in OWN if name in columns]
    missed = {name: set(not_passed(data, name)) for name in own}
    rows = []
    for test in data["tests"]:
        without = [name for name in own if test["id"] in missed[name]]
        if without:
            where = "all" if without == own else "; ".join(without)
            rows.append([f"`{test['id']}`", test["kind"], where, data["reasons"].get(test["id"], "")])
    text += table(["test", "kind", "not passed by", "reason"], rows, 4)
    text += "\n## By group\n\nTests that are passed; of questions, those whose answer is yes.\n\n"
    rows = []
    for group in dict.fromkeys(test["group"] for test in data["tests"]):
        for kind in KINDS:
            size = sum(test["group"] == group and test["kind"] == kind for test in data["tests"])
            if size:
                passed = [count(data, name, kind, "p", group) for name in columns]
                rows.append([group, kind, size, *passed])
    return text + table(["group", "kind", "tests", *columns], rows, 2)


def load():
    with open(DATA, encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", metavar="DIR")
    parser.add_argument("columns", nargs="*", metavar="NAME=RESULTS.json")
    chosen = parser.parse_args()
    if bool(chosen.suite) != bool(chosen.columns):
        parser.error("--suite and results belong together")
    data = load()
    if chosen.suite:
        record(data, chosen.suite, chosen.columns)
        with open(DATA, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1, ensure_ascii=False)
            file.write("\n")
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page(data))


if __name__ == "__main__":
    main()
