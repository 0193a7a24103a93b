#!/usr/bin/env python3
"""Real PHP applications behind the server, one scenario or all of them.

    python3 apps/run.py [SCENARIO...] --binary target/release/mayfly
    python3 apps/run.py wordpress_isolation --subject nginx --seconds 10

Each scenario is self-contained: it starts its own database, PHP, server and
browser on a loopback address of its own and removes all of it again. Needs
root (or sudo without a password): Debian's packages keep their configuration
in /etc. The last line is `N passed, N failed`; the exit status is 0 when none
failed.
"""

import argparse
import importlib
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from harness.report import Report  # noqa: E402
from harness.subject import NAMES as SUBJECTS  # noqa: E402

# Shows that the checker can fail; brings its own server.
CHECKER = "isolation_checker_can_fail"
SCENARIOS = (
    CHECKER,
    "wordpress_isolation",
    "browser_dokuwiki",
    "browser_wordpress",
    "browser_wordpress_https",
    "browser_protocols",
    "browser_dashboard",
    "browser_page_load",
    "crawler_wordpress",
    "apache_behind_cache",
    "mediawiki_cdn",
    "mediawiki_serve",
    "wordpress_behind_tls",
    "wordpress_visitors",
    "wordpress_hit_ratio",
    "mediawiki_variants",
    "laravel_session",
    "set_up_microcache",
    "set_up_memcached",
    "set_up_wordpress",
    "set_up_tuned_php",
    "set_up_php_elsewhere",
    "wordpress_purges",
    "wordpress_plugin",
    "wordpress_litespeed",
    "wordpress_plugin_installed",
    "stranger",
)
NEED_BROWSER = ("stranger", *(name for name in SCENARIOS if name.startswith("browser_")))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", nargs="*", help=f"of {', '.join(SCENARIOS)}; default: all")
    parser.add_argument("--binary", default=os.path.join(HERE, "..", "target", "release", "mayfly"))
    parser.add_argument("--subject", choices=SUBJECTS, default="mayfly", help="the server under test")
    parser.add_argument("--seconds", type=int, default=30, help="length of wordpress_isolation")
    parser.add_argument("--ttl", type=float, default=1.0, help="lifetime of a page, in seconds")
    parser.add_argument("--workers", type=int, default=4, help="PHP workers")
    parser.add_argument("--all-changes", action="store_true", help="wordpress_plugin: every kind of change, and what tags cost")
    parser.add_argument("--keep", action="store_true", help="keep the temporary directory")
    parser.add_argument("--no-setup", action="store_true", help="do not look for missing packages")
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
        if name not in SCENARIOS:
            sys.exit(f"apps: no scenario {name}; there are {', '.join(SCENARIOS)}")
    needs_binary = options.subject.startswith("mayfly") and options.scenario != [CHECKER]
    if needs_binary and not os.access(options.binary, os.X_OK):
        sys.exit(f"apps: no program {options.binary}; build it first (make build)")
    become_root()
    if not options.no_setup:
        subprocess.run([os.path.join(HERE, "setup.sh")], check=True)
    # A termination unwinds like an interrupt, so that everything is undone.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("apps: terminated"))

    report = Report()
    for name in options.scenario or SCENARIOS:
        if name in NEED_BROWSER and not (shutil.which("chromedriver") and shutil.which("chromium")):
            # Ubuntu has no such packages.
            report.note(f"left out: {name}: there is no chromium with chromedriver here")
            continue
        print(f"==    {name}" + ("" if name == CHECKER else f" ({options.subject})"), flush=True)
        scenario = importlib.import_module(f"scenarios.{name}")
        begun = time.monotonic()
        try:
            scenario.run(options, report)
        except Exception:
            report.check(f"{name} ran to its end", False, traceback.format_exc())
        report.note(f"time: {name} {time.monotonic() - begun:.0f} s")
    print(report.closing_line())
    sys.exit(1 if report.failed else 0)


if __name__ == "__main__":
    main()
