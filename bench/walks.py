#!/usr/bin/env python3
"""Which files of this project a request passes, and whether docs/life-of-a-request.md says so.

The program runs under callgrind and answers requests over one kept connection, as in bench/instructions.py. The
counters are read before each request and after it: each line of code that was executed names its file, inlined
ones too. A file counts if each of some requests has passed it, and if it does not run without a request. Among the
files, those lead on that call a function of another; all others are helpers, as far as the compiler has kept the calls.

The table of the document says how many files each walk may pass, and how many may lead on. More of them, or a stop of
the walk that was not passed, ends with status 1.
"""

import argparse
import collections
import concurrent.futures
import glob
import os
import re
import subprocess
import time

from instructions import COOKIES, Counted, Serve, ask, report, scenarios
from lib import load, peers, process, subject

ROOT = os.path.dirname(report.FOLDER)
DOCUMENT = os.path.join(ROOT, "docs", "life-of-a-request.md")
WARM_UP, TRACED = 40, 8
# The walks of the document that are traced, by their headings.
WALKS = {
    "A hit": Counted("hit", "", scenarios.PAGE.format(0) % 40),
    "A miss": Counted("miss", "", "/page/{}?bytes=2048&age=3600"),
    "A hit of `serve`": Counted("serve", "", "/?bytes=21504&age=3600", Serve, (*scenarios.BROWSER, COOKIES)),
}
STOP = re.compile(r"^\d+\. `(crates/\S+\.rs)`", re.MULTILINE)
# A line of the table: the walk, the files that it passes, and those that lead on.
BOUND = re.compile(r"^\| (.*?) \| (\d+) \| (\d+) \|$", re.MULTILINE)


def passed_by(server):
    """The files in which something was executed since this was last asked, and those that lead on."""
    passed, leading = set(), set()
    for pid in process.tree(server.pid):
        dumps = os.path.join(server.folder, f"callgrind.{pid}.*")
        subprocess.run(["vgdb", f"--pid={pid}", "dump"], check=True, capture_output=True, timeout=60)
        process.wait_until(lambda dumps=dumps: is_whole(dumps), "callgrind's dump", 60)
        for path in glob.glob(dumps):
            read(path, passed, leading)
            os.unlink(path)
    return passed, leading


def is_whole(dumps):
    texts = [open(path, errors="replace").read() for path in glob.glob(dumps)]
    return bool(texts) and all("\ntotals:" in text for text in texts)


def read(path, passed, leading):
    """Adds the project's files with costs of their own in a file of callgrind, and those that call another."""
    names, file, caller, callee, is_call = {}, None, None, None, False
    for line in open(path, errors="replace"):
        if match := re.match(r"(fl|fi|fe|cfi|cfl)=\((\d+)\)(?: (.*))?", line):
            kind, number, name = match.groups()
            if name:
                names[number] = of_project(name.rstrip())
            if kind in ("cfi", "cfl"):
                callee = names[number]
            else:
                file = names[number]
                caller = file if kind == "fl" else caller
        elif line.startswith("calls="):
            if caller and callee and caller != callee:
                leading.add(caller)
            # The next line is the cost of what is called.
            callee, is_call = None, True
        elif re.match(r"[+*\d-]", line):
            if file and not is_call:
                passed.add(file)
            is_call = False


def of_project(path):
    """The path below the project's folder; none for code of others."""
    _, folder, below = path.partition("crates/")
    return folder + below if folder and os.path.isfile(os.path.join(ROOT, folder, below)) else None


def trace(walk):
    """The files that each of some requests passes, and those that lead on."""
    with subject.Folder() as folder, walk.server(peers.Site(folder, None), folder, "none", False) as server:
        server.wait()
        ask(server, [load.request_bytes("GET", walk.target.format(0), ())])
        traced = []
        with walk.asking(server) as ask_for:
            for number in range(WARM_UP):
                ask_for(number)
            passed_by(server)
            for number in range(WARM_UP, WARM_UP + TRACED):
                ask_for(number)
                server.wait_until_asleep()
                traced.append(passed_by(server))
            time.sleep(1)
            idle = passed_by(server)
        return [set.intersection(*each) - without for each, without in zip(zip(*traced), idle)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.environ.get("BINARY", "target/debug/mayfly"), help="with debug information")
    parser.add_argument("--list", action="store_true", help="name all files that were passed")
    chosen = parser.parse_args()
    peers.Mayfly.binary = chosen.binary
    with open(DOCUMENT) as file:
        text = file.read()
    bounds = {title: (int(passed), int(leading)) for title, passed, leading in BOUND.findall(text)}
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    stops = {title: STOP.findall(part) for title, part in zip(parts[1::2], parts[2::2])}
    wrong = []
    with concurrent.futures.ThreadPoolExecutor() as pool:
        traces = dict(zip(WALKS, pool.map(trace, WALKS.values())))
    for title, (passed, leading) in traces.items():
        by_crate = collections.Counter(path.split("/")[1] for path in passed)
        crates = ", ".join(f"{name} {number}" for name, number in by_crate.most_common())
        print(f"{title}: {len(stops[title])} stops, {len(passed)} files, {len(leading)} of them lead on ({crates})")
        for path in sorted(passed) if chosen.list else []:
            print(f"  {path}{' leads on' if path in leading else ''}{', a stop' if path in stops[title] else ''}")
        wrong += [f"{title}: {path} is a stop and was not passed" for path in stops[title] if path not in passed]
        if len(passed) > bounds[title][0] or len(leading) > bounds[title][1]:
            wrong.append(f"{title}: more files than the document's table says: {len(passed)}, {len(leading)}")
    failed = len({line.split(":")[0] for line in wrong})
    print(*wrong, f"{len(WALKS) - failed} passed, {failed} failed", sep="\n")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
