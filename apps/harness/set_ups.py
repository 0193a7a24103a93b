"""What the scenarios of published set-ups share: starting one, its site, a crowd before it.

Their configurations are in files/set_ups, as their authors would write them. Sites are one script
(files/set_ups/*.php) that notes each execution, so that a test can count them.
"""

import collections
import json
import os
import re
import shutil
import time

from lib import load

from . import subject as subjects

FOLDER = os.path.join(subjects.FILES, "set_ups")

STYLE = "body { color: black }\n"


class Site:
    """A document root with a script for all addresses and a stylesheet; `data` is the script's folder."""

    def __init__(self, workdir, script, root="root"):
        self.root = workdir.mkdir(root)
        self.data = workdir.mkdir("data")
        shutil.copy(os.path.join(FOLDER, script), os.path.join(self.root, "index.php"))
        workdir.write(f"{root}/style.css", STYLE)

    def executions(self, path=""):
        """How often PHP ran for addresses that begin so."""
        try:
            with open(os.path.join(self.data, "executions"), encoding="utf-8") as file:
                return sum(line.split()[1].startswith(path) for line in file)
        except FileNotFoundError:
            return 0

    def set(self, name, is_set=True):
        """Makes or removes a file that the script looks for."""
        path = os.path.join(self.data, name)
        if is_set:
            open(path, "w").close()
        else:
            os.unlink(path)


def start(workdir, options, name, **values):
    """The subject with files/set_ups/NAME.conf."""
    workdir.mkdir("set_ups")
    shutil.copy(os.path.join(FOLDER, "fastcgi_params"), workdir.join("set_ups"))
    return subjects.start_with(workdir, options, f"set_ups/{name}.conf", **values)


def facts(page):
    """What site.php says of the execution that made a page; nothing (None for all) if it is not whole."""
    found = re.search(r"id=facts>(\{.*\})</script>", page.text)
    is_whole = found and "<!-- whole -->" in page.text
    return collections.defaultdict(lambda: None, json.loads(found.group(1)) if is_whole else {})


def hit(client, target):
    """The page from memory: asked again while it is being made."""
    pages = []
    until(lambda: pages.append(client.get(target)) or pages[-1].cache_word == "HIT")
    return pages[-1]


def until(probe, seconds=10):
    """Asks until the probe is true; whether it was in time."""
    ends = time.monotonic() + seconds
    while not (is_true := probe()) and time.monotonic() < ends:
        time.sleep(0.02)
    return bool(is_true)


def crowd(subject, targets, clients, **more):
    """All the targets, by so many clients at once; `load.Answers`."""
    return load.crowd(subject.port, targets, clients, address=subject.address, host=subject.host, **more)


def check_crowd(report, name, answers, requests):
    report.note(f"{answers.summary()}")
    is_all = answers.count == requests and not answers.other_than_200()
    report.check(f"{name}, {requests} requests, none failed", is_all, answers.summary())
