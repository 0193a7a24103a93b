"""The server under test: Mayfly, or nginx for comparison.

Configurations are templates (bench/conf/) for both. `@NAME@` is replaced by a
value; a line that begins with `@mayfly` or `@nginx` is for that server alone.
A server whose program name starts with "nginx" is nginx, every other is Mayfly.
"""

import os
import re
import shutil
import socket
import subprocess
import tempfile

from . import process
from .ports import free_port

TEMPLATES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "conf")


def kind_of(binary):
    return "nginx" if os.path.basename(binary).startswith("nginx") else "mayfly"


def version_of(binary):
    """What the program says about itself with -v, on one line."""
    told = subprocess.run([binary, "-v"], capture_output=True, text=True)
    lines = (told.stdout + told.stderr).strip().splitlines()
    return lines[0].removeprefix("nginx version: ") if lines else os.path.basename(binary)


def render(template, kind, values):
    """The configuration for one kind of server; an unknown @NAME@ is a KeyError."""
    lines = []
    for line in template.splitlines(keepends=True):
        condition = re.match(r"\s*@(mayfly|nginx)\b ?", line)
        if condition and condition[1] != kind:
            continue
        lines.append(line[condition.end() :] if condition else line)
    return re.sub(r"@([A-Z_]+)@", lambda match: str(values[match[1]]), "".join(lines))


class Folder:
    """A folder below /dev/shm (memory, as the caches of the field use it), removed at the end."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="mayfly-bench-", dir="/dev/shm")
        # A server that gives up being root must still get to its own folder below.
        os.chmod(self.path, 0o711)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


class Daemon:
    """A program that listens on a free port of 127.0.0.1 and is stopped by its process id.

    Its folder, its port and its template are ready when `start` is called; a program
    that needs another beside it starts that one first, with `also`.
    """

    def __init__(self, name, folder):
        self.name = name
        self.port = free_port()
        # A port that an earlier program has given back may be drawn again; that one's folder is still there.
        self.folder = os.path.join(folder, f"{name}{self.port}-{len(os.listdir(folder))}")
        os.makedirs(os.path.join(self.folder, "cache"))
        self._output = os.path.join(self.folder, "output")
        self._processes = []

    def configure(self, template, kind, values):
        """Writes the configuration from a template's path; its path."""
        values = {
            "PORT": self.port,
            "FOLDER": self.folder,
            "CACHE": os.path.join(self.folder, "cache"),
            "USER": "user root;" if os.getuid() == 0 else "",
            **values,
        }
        path = os.path.join(self.folder, os.path.basename(template))
        with open(template) as source, open(path, "w") as file:
            file.write(render(source.read(), kind, values))
        return path

    def start(self, command, core=None):
        """Starts the program without waiting for it."""
        with open(self._output, "a") as output:
            self._processes.append(process.start(command, core, stdout=output, stderr=output))

    def wait(self):
        """Returns when the port accepts; SystemExit with what the program said if it never does."""
        try:
            process.wait_until(self._accepts, f"{self.name} listening on port {self.port}", seconds=60)
        except RuntimeError as error:
            self.stop()
            raise SystemExit(f"{error}; {self.said()}")

    def said(self):
        """The end of what the program wrote, for an error."""
        with open(self._output, errors="replace") as output:
            return f"it said:\n{output.read()[-2000:]}"

    def _accepts(self):
        for one in self._processes:
            if one.poll() is not None:
                raise RuntimeError(f"{self.name} ended with status {one.returncode}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        while self._processes:
            process.stop(self._processes.pop())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def pids(self):
        """The roots of everything that belongs to it."""
        return [one.pid for one in self._processes]

    @property
    def pid(self):
        return self._processes[0].pid

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.port}{path}"


class Server(Daemon):
    """`with Server(...) as server: ...`: Mayfly or nginx, from a template of bench/conf."""

    def __init__(self, binary, template, folder, core=None, **values):
        self.kind = kind_of(binary)
        super().__init__(self.kind, folder)
        values = {"PAGE": os.path.join(os.path.dirname(TEMPLATES), "php", "page.php"), **values}
        config = self.configure(os.path.join(TEMPLATES, template), self.kind, values)
        self.start(command_of(binary, self.folder, config), core)
        self.wait()


def command_of(binary, folder, config):
    """How Mayfly and nginx are started."""
    return [os.path.abspath(binary), "-p", folder, "-e", "error.log", "-c", config]
