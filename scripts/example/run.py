#!/usr/bin/env python3
"""The example (examples/news): does each write take back exactly the pages that its table of dependencies names?

A scripted editor makes every write of examples/news/dependencies.md, again and again, and looks at every page before
and after. Meanwhile visitors read all pages, 50 of them, then 200; no answer may be older than a write that had been
answered when it was asked for. The same with the pages in memory and with the pages in memcached. `make test` does a
part of it (scripts/checks/example.py).

    cargo build --release --package mayfly
    scripts/example/run.py [--binary FILE] [--visitors 50 200] [--seconds 60] [--only nginx.conf]
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "bench")]

from editor import Editor  # noqa: E402
from known import Known  # noqa: E402
from lib import process  # noqa: E402
from news_site import EXAMPLE, Site  # noqa: E402
from table import Table  # noqa: E402

CONFIGS = ("nginx.conf", "memcached.conf")
PAGES = ("/", "/feed.atom", "/sitemap.xml", "/section/river", "/section/town", "/section/culture", "/author/1", "/author/2", "/author/3")
ARTICLES = range(1, 13)
READING_PROCESSES = 2


class Crowd:
    """Visitors in processes of their own, who read until they are told that it is over."""

    def __init__(self, site, count, known, path):
        self._known = known
        share = count // READING_PROCESSES
        pages = [*PAGES, *map("/news/{}".format, ARTICLES)]
        command = [sys.executable, os.path.join(HERE, "readers.py"), str(site.port), str(share), path, *pages]
        self._processes = [process.start(command, stdout=subprocess.PIPE) for _ in range(READING_PROCESSES if count else 0)]

    def end(self):
        """What they have seen."""
        self._known.end()
        seen = {"answers": 0, "old": [], "broken": 0}
        for one in self._processes:
            said, _ = one.communicate(timeout=60)
            for name, value in json.loads(said).items():
                seen[name] += value
        return seen


def work(binary, config, visitors, seconds, past_every=1):
    """What an editor and a crowd have found, in some seconds or one round at least."""
    with tempfile.TemporaryDirectory(prefix="mayfly-example-") as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "known")
        known = Known.make(path)
        table = Table(os.path.join(EXAMPLE, "dependencies.md"))
        with Site(binary, folder, config) as site:
            editor = Editor(site, table, known, past_every)
            crowd = Crowd(site, visitors, known, path)
            wrong, until = [], time.monotonic() + seconds
            try:
                while not wrong:
                    wrong = editor.work()
                    if time.monotonic() > until:
                        break
            except Exception as error:
                wrong.append(f"the editor gave up: {error!r}")
            finally:
                seen = crowd.end()
            missing = table.writes - editor.made
            wrong += [f"not written: {', '.join(sorted(missing))}"] if missing else []
            wrong += [f"{len(seen['old'])} old answers: {seen['old'][:3]}"] if seen["old"] else []
            wrong += [f"{seen['broken']} answers broken off"] if seen["broken"] else []
            wrong += [site.said()] if wrong else []
    return {"writes": editor.writes, "answers": seen["answers"], "wrong": wrong}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "target/release/mayfly"))
    parser.add_argument("--visitors", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--seconds", type=float, default=60, help="for each row")
    parser.add_argument("--only", choices=CONFIGS, nargs="+", default=CONFIGS)
    chosen = parser.parse_args()
    # A termination unwinds like an interrupt, so that all that was started is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    failed = False
    for config in chosen.only:
        for visitors in chosen.visitors:
            found = work(os.path.abspath(chosen.binary), config, visitors, chosen.seconds)
            print(f"{config}, {visitors} visitors: {found['writes']} writes, {found['answers']} answers, {len(found['wrong'])} wrong", flush=True)
            for what in found["wrong"]:
                print(f"    {what}")
            failed |= bool(found["wrong"])
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
