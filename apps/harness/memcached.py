"""A memcached of the scenario's own, on a free port of the run's address."""

from .workdir import listens, stop, wait_for

START_SECONDS = 10


class Memcached:
    def __init__(self, workdir):
        port = workdir.free_port()
        self.server = f"{workdir.address}:{port}"
        command = ["memcached", "-u", "www-data", "-l", workdir.address, "-p", str(port), "-U", "0", "-m", "16"]
        self._process = workdir.spawn("memcached", command)
        wait_for("memcached", listens(workdir.address, port), START_SECONDS, self._process)

    def stop(self):
        return stop(self._process)
