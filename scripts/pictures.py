#!/usr/bin/env python3
"""Makes the pictures of the documentation, docs/pictures/*.png: the dashboard and `mayfly top` of the demo site, while
some visitors read it. Run it after a change of what they show.

    scripts/pictures.py [--binary target/release/mayfly]

Needs chromium and chromium-driver, and what scripts/run-demo.sh needs.
"""

import argparse
import base64
import html
import http.client
import os
import random
import shutil
import subprocess
import sys
import threading
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "apps"))
from harness.webdriver import Browser  # noqa: E402
from harness.workdir import Workdir, listens, stop, wait_for  # noqa: E402

PICTURES = os.path.join(ROOT, "docs", "pictures")
ADDRESS = "127.0.0.1"
# The plots of the dashboard show the last minutes.
SECONDS = 75
VISITORS = 6
WIDTH = 1300


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "target", "release", "mayfly"))
    binary = os.path.realpath(parser.parse_args().binary)
    os.makedirs(PICTURES, exist_ok=True)
    with Workdir("pictures") as workdir:
        port = workdir.free_port(ADDRESS)
        with open(os.path.join(ROOT, "demo", "nginx.conf"), encoding="utf-8") as file:
            text = file.read()
        at = text.index("location ")
        conf = workdir.write("demo.conf", f"{text[:at]}location = /dashboard {{ dashboard; }}\n        {text[at:]}")
        environment = {"PORT": str(port), "STATE": workdir.mkdir("demo"), "CONFIG": conf}
        server = workdir.spawn("demo", [os.path.join(ROOT, "scripts", "run-demo.sh"), binary], env=environment)
        workdir.undo(lambda: stop(server))
        wait_for("the demo site", listens(ADDRESS, port), 30, server)
        visitors = Visitors(port)
        browser = Browser(workdir, origin=f"http://{ADDRESS}:{port}")
        browser.screen(WIDTH)
        browser.open("/dashboard")
        time.sleep(SECONDS)
        picture(browser, "dashboard", height_of(browser))
        said = subprocess.run([binary, "top", "--once", "--socket", socket_below(workdir.path)], check=True, capture_output=True, text=True).stdout
        visitors.stop()
        page = workdir.write("top.html", "<meta charset=utf-8><body style='margin:0;background:#181818'><pre style='margin:0;padding:16px;"
                             f"color:#ddd;font:14px/1.35 monospace;display:inline-block'>{html.escape(said.rstrip())}</pre>")
        browser.open(data_of(page))
        picture(browser, "top", browser.script("return document.querySelector('pre').offsetHeight"))
    return 0


def data_of(page):
    with open(page, "rb") as file:
        return "data:text/html;base64," + base64.b64encode(file.read()).decode()


class Visitors:
    """Some readers, each of whom opens a page a few times in a second."""

    def __init__(self, port):
        self.port, self.is_over = port, threading.Event()
        self.threads = [threading.Thread(target=self.read, args=(number,)) for number in range(VISITORS)]
        for thread in self.threads:
            thread.start()

    def read(self, number):
        chance = random.Random(number)
        connection = http.client.HTTPConnection(ADDRESS, self.port, timeout=20)
        while not self.is_over.wait(chance.uniform(0.05, 0.3)):
            connection.request("GET", chance.choice(["/", "/", "/", "/?page=2", "/?page=3"]))
            connection.getresponse().read()
        connection.close()

    def stop(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()


def socket_below(folder):
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".control"):
                return os.path.join(place, name)
    raise RuntimeError("the demo has no control socket")


def height_of(browser):
    return min(1600, browser.script("return document.documentElement.scrollHeight"))


def picture(browser, name, height):
    browser.screen(WIDTH, height)
    time.sleep(1)
    path = os.path.join(PICTURES, f"{name}.png")
    shutil.move(browser.screenshot(name), path)
    print(f"{os.path.relpath(path)}: {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    sys.exit(main())
