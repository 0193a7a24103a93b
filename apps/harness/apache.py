"""Debian's Apache with mod_php, with a configuration of the scenario's own."""

import contextlib
import glob
import os
import signal

from .subject import START_SECONDS, fill
from .workdir import children_of, listens, wait_for

MODULES = "/usr/lib/apache2/modules"
# Debian's own bound is 150; memory is dear.
CHILDREN = 48


class Apache:
    """Serves a folder; `kill` and `start` may alternate."""

    def __init__(self, workdir, root):
        self.workdir = workdir
        self.address = workdir.address
        self.port = workdir.free_port()
        self._config = fill(
            workdir, "apache.conf", dir=workdir.mkdir("apache"), address=self.address, port=self.port,
            modules=MODULES, php=sorted(glob.glob(f"{MODULES}/libphp*.so"))[-1], children=CHILDREN, root=root,
        )  # fmt: skip
        self.start()

    def start(self):
        # In a session of its own: at its end Apache sends SIGTERM to its whole process group.
        command = ["setsid", "/usr/sbin/apache2", "-D", "FOREGROUND", "-f", self._config]
        self.process = self.workdir.spawn("apache", command)
        wait_for("apache", listens(self.address, self.port), START_SECONDS, self.process)

    def requests(self):
        """How many it has answered."""
        with open(self.workdir.join("apache", "access.log"), encoding="utf-8") as log:
            return sum(1 for _ in log)

    def kill(self):
        """SIGKILL for all of it at once; its children would go on serving."""
        family = [self.process.pid, *children_of(self.process.pid)]
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
