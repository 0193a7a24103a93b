"""The server under test: Mayfly, or nginx for comparison.

Configurations are templates (bench/conf/) for both. `@NAME@` is replaced by a
value; a line that begins with `@mayfly` or `@nginx` is for that server alone.
A server whose program name starts with "nginx" is nginx, every other is Mayfly.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile

from . import process

TEMPLATES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "conf")


def kind_of(binary):
    return "nginx" if os.path.basename(binary).startswith("nginx") else "mayfly"


def version_of(binary):
    """What the program says about itself with -v, on one line."""
    told = subprocess.run([binary, "-v"], capture_output=True, text=True)
    lines = (told.stdout + told.stderr).strip().splitlines()
    return lines[0].removeprefix("nginx version: ") if lines else os.path.basename(binary)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


class Server:
    """`with Server(...) as server: ...`, configured from a template, on a free port."""

    def __init__(self, binary, template, folder, core=None, **values):
        self.kind = kind_of(binary)
        self.port = free_port()
        self.folder = os.path.join(folder, self.kind + str(self.port))
        os.makedirs(os.path.join(self.folder, "cache"))
        values = {
            "PORT": self.port,
            "CACHE": os.path.join(self.folder, "cache"),
            "PAGE": os.path.join(os.path.dirname(TEMPLATES), "php", "page.php"),
            "USER": "user root;" if os.getuid() == 0 else "",
            **values,
        }
        config = os.path.join(self.folder, "nginx.conf")
        with open(os.path.join(TEMPLATES, template)) as source, open(config, "w") as file:
            file.write(render(source.read(), self.kind, values))
        self._output = os.path.join(self.folder, "output")
        with open(self._output, "w") as output:
            command = [os.path.abspath(binary), "-p", self.folder, "-e", "error.log", "-c", config]
            self._process = process.start(command, core, stdout=output, stderr=output)
        try:
            process.wait_until(self._accepts, f"{self.kind} listening on port {self.port}")
        except RuntimeError as error:
            process.stop(self._process)
            with open(self._output) as output:
                raise SystemExit(f"{error}; it said:\n{output.read()}")

    def _accepts(self):
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.kind} ended with status {self._process.returncode}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        process.stop(self._process, signal.SIGTERM)

    @property
    def pid(self):
        return self._process.pid

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.port}{path}"
