"""`mayfly top` in a terminal of tmux: two sizes, a changed size, a server that goes and comes back."""

import contextlib
import json
import os
import shutil
import subprocess

import metrics
from lib import process, subject

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What the screens looked like, for whoever wants to see them.
RECORDED = os.path.join(ROOT, "target", "top")
SECONDS = 20


def checks(binary):
    if subject.kind_of(binary) != "mayfly":
        return []
    return [
        ("top_prints_a_table_once_and_all_numbers_as_json", lambda: prints(binary)),
        ("top_fits_80x24_and_200x60_and_outlives_its_server", lambda: outlives(binary)),
    ]


def control_socket(daemon):
    return os.path.join(daemon.folder, "pid.control")


def run(binary, *arguments):
    return subprocess.run([binary, "top", *arguments], capture_output=True, text=True, timeout=60)


def prints(binary):
    with metrics.server(binary) as daemon:
        metrics.visit(daemon, rounds=3)
        once = run(binary, "--once", "--socket", control_socket(daemon))
        assert once.returncode == 0, once.stderr
        assert "since the start" in once.stdout and "\x1b" not in once.stdout, once.stdout
        assert "pages" in once.stdout and "application" in once.stdout, once.stdout
        told = run(binary, "--json", "--socket", control_socket(daemon))
        requests = json.loads(told.stdout)["numbers"]["requests"]
        total = sum(one["value"] for one in requests)
        assert total == len(metrics.PATHS) * 3, requests
        # Output that goes to a file is no terminal.
        refused = run(binary, "--socket", control_socket(daemon))
        assert refused.returncode == 1 and "--once" in refused.stderr, refused
    gone = run(binary, "--once", "--socket", control_socket(daemon))
    assert gone.returncode == 2, gone


class Terminal:
    """A session of tmux with one program in it."""

    def __init__(self, folder, command, width, height):
        assert shutil.which("tmux"), "tmux is missing: scripts/setup.sh test installs it"
        self._tmux = ["tmux", "-f", "/dev/null", "-S", os.path.join(folder, "tmux")]
        self.tmux("new-session", "-d", "-x", str(width), "-y", str(height), *command)

    def tmux(self, *arguments):
        told = subprocess.run([*self._tmux, *arguments], capture_output=True, text=True, timeout=30)
        return told.stdout

    def screen(self):
        return self.tmux("capture-pane", "-p").splitlines()

    def wait(self, what, is_so):
        try:
            process.wait_until(lambda: is_so(self.screen()), what, SECONDS)
        except RuntimeError as error:
            raise AssertionError(f"{error}; the screen:\n" + "\n".join(self.screen()))
        return self.screen()

    def close(self):
        self.tmux("kill-server")


def record(name, screen):
    os.makedirs(RECORDED, exist_ok=True)
    with open(os.path.join(RECORDED, name), "w") as file:
        file.write("\n".join(screen) + "\n")


def outlives(binary):
    with contextlib.ExitStack() as stack:
        daemon = stack.enter_context(metrics.server(binary))
        metrics.visit(daemon, rounds=5)
        command = [os.path.abspath(binary), "top", "--socket", control_socket(daemon)]
        terminal = Terminal(daemon.folder, command, 80, 24)
        stack.callback(terminal.close)

        def shows(text):
            return lambda screen: any(text in line for line in screen)

        # It is drawn line by line.
        sections = ("MISS", "ZONE", "UPSTREAM", "PAGES THAT COST MOST")
        screen = terminal.wait("the first screen", lambda screen: all(shows(it)(screen) for it in sections))
        record("80x24.txt", screen)
        assert len(screen) <= 24 and max(map(len, screen)) <= 80, screen
        assert screen[0].startswith("mayfly "), screen
        terminal.tmux("send-keys", "w")
        terminal.wait("the most wanted pages", shows("MOST WANTED PAGES"))
        terminal.tmux("resize-window", "-x", "200", "-y", "60")
        screen = terminal.wait("the heading at the right", lambda screen: any(len(line) > 120 for line in screen))
        record("200x60.txt", screen)
        terminal.tmux("resize-window", "-x", "20", "-y", "5")
        screen = terminal.wait("a small screen", lambda screen: len(screen) <= 5 and shows("mayfly")(screen))
        terminal.tmux("resize-window", "-x", "80", "-y", "24")
        terminal.wait("the screen of before", shows("UPSTREAM"))

        daemon.stop()
        # What was last seen stays.
        screen = terminal.wait("that there is no answer", lambda screen: shows("no answer, trying again")(screen) and shows("ZONE")(screen))
        record("80x24-gone.txt", screen)
        daemon.start(subject.command_of(binary, daemon.folder, os.path.join(daemon.folder, "metrics.conf")))
        daemon.wait()
        metrics.visit(daemon)
        screen = terminal.wait("the server that came back", lambda screen: screen[0].startswith("mayfly ") and shows("since the start")(screen))
        assert not any("-" in line.split("per s")[1] for line in screen if line.startswith("per s")), screen
        terminal.tmux("send-keys", "q")
        process.wait_until(lambda: not terminal.tmux("list-sessions"), "the end of top", SECONDS)
