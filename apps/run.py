#!/usr/bin/env python3
"""Real PHP applications behind the server, one scenario or all of them.

    python3 apps/run.py [SCENARIO...] [--binary target/release/mayfly]
    python3 apps/run.py wordpress_isolation --subject nginx --seconds 10
    python3 apps/run.py --at-once 3

Each scenario is self-contained: it starts its own database, PHP, server and
browser on a loopback address of its own and removes all of it again. So several
may run at once, which most of their time wait: no scenario judges how long an
answer took where other work could prolong it. Needs
root (or sudo without a password): Debian's packages keep their configuration
in /etc. The last line is `N passed, N failed`; the exit status is 0 when none
failed.
"""

import argparse
import contextlib
import importlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from harness import mariadb  # noqa: E402
from harness.report import Report  # noqa: E402
from harness.subject import NAMES as SUBJECTS  # noqa: E402

# Shows that the checker can fail; brings its own server.
CHECKER = "isolation_checker_can_fail"
# Those that take longest come first: side by side, none is then left over at the end.
SCENARIOS = (
    "wordpress_plugin_installed",
    "browser_wordpress",
    "browser_wordpress_https",
    "browser_dashboard",
    "wordpress_isolation",
    "crawler_wordpress",
    "browser_dokuwiki",
    "mediawiki_serve",
    "wordpress_plugin",
    "wordpress_hit_ratio",
    "stranger",
    "apache_behind_cache",
    "browser_page_load",
    CHECKER,
    "mediawiki_variants",
    "set_up_tuned_php",
    "wordpress_purges",
    "set_up_wordpress",
    "wordpress_learned",
    "mediawiki_cdn",
    "wordpress_visitors",
    "wordpress_nodes",
    "wordpress_behind_tls",
    "browser_protocols",
    "set_up_microcache",
    "set_up_memcached",
    "guest_sessions",
    "guest_crowd",
    "laravel_session",
    "set_up_php_elsewhere",
    "wordpress_litespeed",
)
# Run when they are named.
BY_NAME = ("learned_wordpress", "learned_mediawiki", "learned_crowd", "learned_cost", "learned_day", "guest_microcache", "storm_wordpress", "learned_applications")
NEED_BROWSER = ("stranger", *(name for name in SCENARIOS if name.startswith("browser_")))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", nargs="*", help=f"of {', '.join(SCENARIOS)}; default: all")
    parser.add_argument("--binary", default=os.path.join(HERE, "..", "target", "debug", "mayfly"))
    parser.add_argument("--subject", choices=SUBJECTS, default="mayfly", help="the server under test")
    parser.add_argument("--seconds", type=int, default=30, help="length of wordpress_isolation, learned_crowd, learned_day, storm_wordpress (at most 25)")
    parser.add_argument("--ttl", type=float, default=1.0, help="lifetime of a page, in seconds")
    parser.add_argument("--workers", type=int, default=4, help="PHP workers")
    parser.add_argument("--guests", type=int, default=200, help="guest_crowd: how many there are; from 201 on beside WordPress")
    parser.add_argument("--all-changes", action="store_true", help="wordpress_plugin, learned_wordpress: every kind of change; what tags cost; guest_sessions: every forged write at every application")
    parser.add_argument("--design", choices=("blocks", "classic"), help="learned_wordpress: the 40 kinds of change of its design, in a theme with blocks or without")
    parser.add_argument("--learn", choices=("watch", "on", "auto"), default="watch", help="learned_wordpress, learned_mediawiki, learned_applications: what the server does with what it learns")
    parser.add_argument("--applications", help="learned_applications: some of them, separated by commas")
    parser.add_argument("--sources", default=os.environ.get("MAYFLY_APPS_SOURCES", ""), help="learned_applications: the folder with the applications' files")
    parser.add_argument("--sqlite", action="store_true", help="learned_applications: on SQLite")
    parser.add_argument("--postgres", action="store_true", help="learned_applications, learned_cost: on PostgreSQL")
    parser.add_argument("--settle", type=int, default=0, help="learned_applications: seconds to wait for pages to be learned")
    parser.add_argument("--keep", action="store_true", help="keep the temporary directory")
    parser.add_argument("--no-setup", action="store_true", help="do not look for missing packages")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="so many scenarios side by side")
    return parser.parse_args()


def become_root():
    """Starts this program again under sudo where that needs no password."""
    if os.geteuid() == 0:
        return
    if shutil.which("sudo") and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0:
        os.execvp("sudo", ["sudo", "-n", sys.executable, *sys.argv])
    sys.exit("apps: needs root, or sudo without a password")


def main():
    options = arguments()
    for name in options.scenario:
        if name not in SCENARIOS + BY_NAME:
            sys.exit(f"apps: no scenario {name}; there are {', '.join(SCENARIOS + BY_NAME)}")
    needs_binary = options.subject.startswith("mayfly") and options.scenario != [CHECKER]
    if needs_binary and not os.access(options.binary, os.X_OK):
        sys.exit(f"apps: no program {options.binary}; build it first (make build)")
    become_root()
    if not options.no_setup:
        subprocess.run([os.path.join(HERE, "setup.sh")], check=True)
    # A termination unwinds like an interrupt, so that everything is undone.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("apps: terminated"))

    report = Report()
    names = [name for name in options.scenario or SCENARIOS if can_run(name, report)]
    if options.at_once > 1:
        run_at_once(names, options, report)
    else:
        for name in names:
            run(name, options, report)
    print(report.closing_line())
    sys.exit(1 if report.failed else 0)


def can_run(name, report):
    if name in NEED_BROWSER and not (shutil.which("chromedriver") and shutil.which("chromium")):
        # Ubuntu has no such packages.
        report.note(f"left out: {name}: there is no chromium with chromedriver here")
        return False
    return True


def run(name, options, report):
    print(f"==    {name}" + ("" if name == CHECKER else f" ({options.subject})"), flush=True)
    scenario = importlib.import_module(f"scenarios.{name}")
    begun, used = time.monotonic(), cpu_seconds()
    try:
        scenario.run(options, report)
    except Exception:
        report.check(f"{name} ran to its end", False, traceback.format_exc())
    report.note(f"time: {name} {time.monotonic() - begun:.0f} s, {cpu_seconds() - used:.0f} s of CPU")


def cpu_seconds():
    """What this process has taken, and what it started and saw end."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def run_at_once(names, options, report):
    """Each scenario is a process, `options.at_once` of them at a time. What it says is shown when it has ended."""
    mariadb.first_data()
    waiting, running = list(names), {}
    try:
        while waiting or running:
            while waiting and len(running) < options.at_once:
                name = waiting.pop(0)
                output = tempfile.TemporaryFile("w+", encoding="utf-8")
                child = subprocess.Popen(command_of(name, options), stdout=output, stderr=subprocess.STDOUT)
                running[child.pid] = (name, child, output)
            pid, status = os.wait()
            name, child, output = running.pop(pid)
            child.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            add_up(name, output.read(), report)
    finally:
        for _, child, _ in running.values():
            child.terminate()
        for _, child, _ in running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(20)


def command_of(name, options):
    command = [sys.executable, os.path.abspath(__file__), name, "--no-setup"]
    for option in ("binary", "subject", "seconds", "ttl", "workers", "learn", "guests"):
        command += [f"--{option}", str(getattr(options, option))]
    if options.design:
        command += ["--design", options.design]
    return command + [f"--{flag.replace('_', '-')}" for flag in ("all_changes", "keep") if getattr(options, flag)]


def add_up(name, told, report):
    """What a scenario said, but its closing line, whose figures are added to the others'."""
    body, _, closing = told.rstrip("\n").rpartition("\n")
    print(body, flush=True)
    if figures := re.fullmatch(r"(\d+) passed, (\d+) failed", closing):
        report.passed += int(figures[1])
        report.failed += int(figures[2])
    else:
        report.check(f"{name} ran to its end", False, closing)


if __name__ == "__main__":
    main()
