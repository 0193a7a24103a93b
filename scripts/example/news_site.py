"""The news site of examples/, in a folder of its own, behind Mayfly and, if asked, with a memcached of its own."""

import contextlib
import http.client
import os
import re
import shutil
import subprocess
import time
import urllib.parse

from lib import process, subject

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLE = os.path.join(ROOT, "examples/news")
ACCOUNT = "www-data"
HOST = "site.test"


class Page:
    def __init__(self, answer):
        self.status = answer.status
        self.fields = answer.headers
        self.text = answer.read().decode()

    @property
    def is_from_memory(self):
        return self.fields["X-Page"] == "memcached" or self.fields["X-Cache"] == "HIT"

    @property
    def made(self):
        """When PHP made it: two with the same time are the same page."""
        found = re.search(r"made (?:this page )?at (?:<time>)?([\d:.]+)", self.text)
        return found and found[1]

    @property
    def content(self):
        """Without what says when it was made, and without its fragments."""
        text = re.sub(r'<div id="(\w+)">.*?</div>', r"[\1]", self.text, flags=re.DOTALL)
        return re.sub(r"<footer>.*?</footer>|<!-- made at [\d:.]+ -->", "", text)

    def fragment(self, name):
        return re.search(rf'<div id="{name}">(.*?)</div>', self.text, re.DOTALL)[1]


class Visitor:
    """Asks over a connection that is kept."""

    def __init__(self, port, cookie=None):
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._fields = {"Host": HOST, **({"Cookie": cookie} if cookie else {})}

    def get(self, target):
        return self._ask("GET", target)

    def post(self, target, **form):
        fields = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._ask("POST", target, urllib.parse.urlencode(form), fields)

    def _ask(self, method, target, body=None, fields={}):
        try:
            self._connection.request(method, target, body, {**self._fields, **fields})
            return Page(self._connection.getresponse())
        except OSError:
            # The next request opens it again.
            self._connection.close()
            raise


class Site:
    """`with Site(binary, folder, config) as site:`; the configuration is nginx.conf or memcached.conf."""

    def __init__(self, binary, folder, config):
        self.port = subject.free_port()
        self._config = config
        self._with_memcached = config == "memcached.conf"
        # As they lie beside each other in the repository.
        self.folder = os.path.join(folder, "examples/news")
        for part in ("examples/news", "php/library/src", "php/library/autoload.php"):
            source, copy = os.path.join(ROOT, part), os.path.join(folder, part)
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copytree(source, copy) if os.path.isdir(source) else shutil.copy(source, copy)
        shutil.rmtree(os.path.join(self.folder, "data"), ignore_errors=True)
        self._socket = os.path.join(folder, "memcached.sock")
        self.data = os.path.join(self.folder, "data")
        self._processes = {}
        self._output = os.path.join(folder, "output")
        self._binary = shutil.copy(binary, os.path.join(folder, "mayfly"))
        self.configure()
        if os.getuid() == 0:
            subprocess.run(["chown", "-R", ACCOUNT, folder], check=True)

    def configure(self):
        path = os.path.join(self.folder, self._config)
        with open(path) as file:
            text = file.read()
        text = text.replace("127.0.0.1:8080", f"127.0.0.1:{self.port}")
        text = text.replace("127.0.0.1:11211", f"unix:{self._socket}")
        with open(path, "w") as file:
            file.write(text)

    def __enter__(self):
        try:
            if self._with_memcached:
                self._start("memcached", ["memcached", "-s", self._socket, "-a", "0700", "-m", "32"], self._socket)
            self._start("mayfly", [self._binary, "-p", self.folder, "-c", self._config], self.control_socket)
            visitor = Visitor(self.port)
            process.wait_until(lambda: answers(visitor), "the first page", 20)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in list(self._processes):
            self.stop(name)

    def _start(self, name, command, socket):
        with open(self._output, "a") as output:
            started = process.start(as_account(command), stdout=output, stderr=output)
        self._processes[name] = started
        process.wait_until(lambda: os.path.exists(socket) or started.poll() is not None, f"the start of {name}", 20)
        assert started.poll() is None, f"{name} does not start: {self.said()}"

    def become_node(self, engine_port):
        """Shares purges with others by way of a Redis."""
        path = os.path.join(self.folder, self._config)
        with open(path) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write(text.replace("http {", f"http {{\n    cache_nodes redis://127.0.0.1:{engine_port};", 1))
        self.stop("mayfly")
        self._start("mayfly", [self._binary, "-p", self.folder, "-c", self._config], self.control_socket)
        visitor = Visitor(self.port)
        process.wait_until(lambda: answers(visitor), "the first page", 20)

    @contextlib.contextmanager
    def another_node(self, port):
        """A second server of the same site and the same memcached."""
        config = f"second-{self._config}"
        with open(os.path.join(self.folder, self._config)) as file:
            text = file.read()
        for own in ("mayfly.pid", "mayfly.control", "/dev/shm/mayfly-news-fragments"):
            text = text.replace(own, f"{own}-second")
        with open(os.path.join(self.folder, config), "w") as file:
            file.write(text.replace(f"127.0.0.1:{self.port}", f"127.0.0.1:{port}"))
        self._start("second", [self._binary, "-p", self.folder, "-c", config], f"{self.control_socket}-second")
        visitor = Visitor(port)
        process.wait_until(lambda: answers(visitor), "the first page", 20)
        try:
            yield
        finally:
            self.stop("second")

    def stop(self, name):
        process.stop(self._processes.pop(name))

    @property
    def control_socket(self):
        return os.path.join(self.folder, "mayfly.control")

    @property
    def database(self):
        return os.path.join(self.data, "news.sqlite")

    def said(self):
        with open(self._output) as file:
            return file.read()[-3000:]

    def run(self, script):
        """A program of the command line, as cron runs it."""
        environment = {**os.environ, "MAYFLY_CONTROL_SOCKET": self.control_socket}
        if self._with_memcached:
            environment["NEWS_MEMCACHED"] = f"unix:{self._socket}"
        command = as_account(["php", os.path.join(self.folder, "bin", script)])
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and not done.stderr, f"{script}: {done.stdout}{done.stderr}"
        return done.stdout

    def measure(self, centimetres):
        """What the gauge writes."""
        path = os.path.join(self.data, "river.txt")
        with open(f"{path}.new", "w") as file:
            file.write(str(centimetres))
        os.chmod(f"{path}.new", 0o644)
        os.rename(f"{path}.new", path)


def as_account(command):
    """Root starts nothing here as root: who may speak to the control socket is who started the server."""
    if os.getuid() != 0:
        return command
    return ["setpriv", "--reuid", ACCOUNT, "--regid", ACCOUNT, "--clear-groups", *command]


def answers(visitor):
    try:
        return visitor.get("/").status == 200
    except OSError:
        time.sleep(0.05)
        return False
