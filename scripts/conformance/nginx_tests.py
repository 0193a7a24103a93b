#!/usr/bin/env python3
"""Writes docs/nginx-tests.md from docs/nginx-tests.json, and that from results of nginx's suite.

    scripts/conformance/nginx_tests.py                                # the page
    scripts/conformance/nginx_tests.py --suite REVISION FILES.tsv ... # new results first

FILES.tsv has a line for each file of https://github.com/nginx/nginx-tests that was run, with tabs between: its name, its
group, the result (pass, fail, died, skip, timeout), the subtests that were passed, those that nginx passes, and the
number that the file planned as tenth. Results of the same file are replaced, others stay. A file that is not passed
must have a reason; a reason of a file that is passed is removed.
"""

import argparse
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "docs/nginx-tests.json")
PAGE = os.path.join(ROOT, "docs/nginx-tests.md")
GROUPS = {
    "a-cache": "the cache",
    "b-fastcgi": "FastCGI",
    "c-proxy": "HTTP upstreams",
    "d-config": "the configuration language and HTTP",
    "dx-modules": "other modules",
    "e-h2ssl": "HTTP/2 and TLS",
    "h3": "HTTP/3",
}
# Two checks of the suite itself, which each file plans beside its own.
CHECKS_OF_THE_SUITE = 2


def group_of(file, group):
    return "h3" if file.startswith(("h3_", "quic_")) else group


def record(data, path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            cells = line.rstrip("\n").split("\t")
            file, group, result, passed, subtests, plan, reference = (cells[at] for at in (0, 1, 2, 3, 4, 9, 11))
            group = group_of(file, group)
            if group not in GROUPS or (result == "skip" and reference == "skip"):
                continue
            subtests = int(subtests)
            # nginx did not run it where the numbers of others were counted.
            if reference == "skip" and plan.isdigit():
                subtests = max(subtests, int(plan) - CHECKS_OF_THE_SUITE)
            data["files"][file] = {
                "group": group,
                "result": result,
                "passed": int(passed),
                "subtests": subtests,
            }
    for file, found in data["files"].items():
        if found["result"] == "pass":
            data["reasons"].pop(file, None)
    data["files"] = dict(sorted(data["files"].items()))


def row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |\n"


def page(data):
    files = data["files"]
    text = (
        f"""# nginx's own tests

What the suite [nginx-tests](https://github.com/nginx/nginx-tests), revision `{data["suite"]}`, says of Mayfly. A subtest
is one that nginx 1.31.5 passes. Tests that the suite marks as "to do", or skips by default, are not counted. {data["note"]}
`scripts/conformance/nginx_tests.py` writes this page from [nginx-tests.json](nginx-tests.json).

| tests of | files passed | subtests passed |
| --- | --: | --: |
"""
    )
    for group, name in GROUPS.items():
        of_group = [found for found in files.values() if found["group"] == group]
        if of_group:
            whole = sum(found["result"] == "pass" for found in of_group)
            passed = sum(found["passed"] for found in of_group)
            subtests = sum(found["subtests"] for found in of_group)
            text += row([name, f"{whole} of {len(of_group)}", f"{passed} of {subtests}"])
    text += "\nFiles that are not passed, those with the same reason together:\n\n| file | passes | why |\n| --- | --- | --- |\n"
    by_reason = {}
    for file, found in files.items():
        if found["result"] != "pass":
            by_reason.setdefault(data["reasons"].get(file, ""), []).append(file)
    order = list(GROUPS)
    by_group = sorted(by_reason.items(), key=lambda item: (order.index(files[item[1][0]]["group"]), item[1][0]))
    for reason, names in by_group:
        passed = sum(files[name]["passed"] for name in names)
        subtests = sum(files[name]["subtests"] for name in names)
        text += row([", ".join(f"`{name}`" for name in names), f"{passed}/{subtests}", reason])
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", metavar="REVISION")
    parser.add_argument("results", nargs="*", metavar="FILES.tsv")
    chosen = parser.parse_args()
    if bool(chosen.suite) != bool(chosen.results):
        parser.error("--suite and results belong together")
    with open(DATA, encoding="utf-8") as file:
        data = json.load(file)
    if chosen.suite:
        data["suite"] = chosen.suite
        for path in chosen.results:
            record(data, path)
        with open(DATA, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1, ensure_ascii=False)
            file.write("\n")
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page(data))
    unexplained = [
        name for name, found in data["files"].items() if found["result"] != "pass" and not data["reasons"].get(name)
    ]
    if unexplained:
        sys.exit("no reason in docs/nginx-tests.json: " + ", ".join(unexplained))


if __name__ == "__main__":
    main()
