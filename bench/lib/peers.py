"""Who takes part in a comparison: Mayfly, its peers, and the floor.

Each peer is a `Daemon` with a template of bench/peers/ and the words its
configuration has for the few things that scenarios vary: access log, compression.
`None` among those words is "has no such thing", and the peer sits the scenario out.
"""

import glob
import os
import shutil
import subprocess

from . import php, subject

# More than connections ask PHP at once: a connection that is kept keeps its worker.
PHP_WORKERS = 64
TEMPLATES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "peers")


def find(*names):
    """The first of some programs that is there, in the places where Debian keeps servers."""
    for name in names:
        for found in [shutil.which(name), *glob.glob(f"/usr/sbin/{name}")]:
            if found and os.access(found, os.X_OK):
                return found
    return None


class Peer(subject.Daemon):
    """A server that is being compared. `site` is a `Site`, `core` where it runs."""

    title = ""
    template = ""
    # Which lines of a template that several share are for it; its own name unless set.
    kind = None
    version_option = "-v"
    logs = {}
    compression = {}

    def __init__(self, site, folder, log, gzip):
        super().__init__(type(self).__name__.lower(), folder)
        self.site = site
        # One each: the connections that a peer keeps to PHP keep workers from others.
        os.makedirs(os.path.join(self.folder, "php"))
        self._fpm = php.PhpFpm(os.path.join(self.folder, "php"), PHP_WORKERS, site.core)
        words = {"LOG": self.logs.get(log, ""), "COMPRESSION": self.compression.get(gzip, "")}
        values = {**self.shared(), **words, **self.values(log, gzip)}
        values = {name: value.format(**values, FOLDER=self.folder) if name in words else value
                  for name, value in values.items()}
        self.config = self.configure(os.path.join(TEMPLATES, self.template), self.kind or self.name, values)
        self.launch()

    def shared(self):
        """What every template needs."""
        return {
            "SOCKET": self._fpm.socket,
            "FILES": self.site.files,
            "SCRIPTS": php.PAGES,
            "PAGE": os.path.join(php.PAGES, "page.php"),
            "ONE_LINE": os.path.join(php.PAGES, "one.php"),
        }

    def stop(self):
        super().stop()
        self._fpm.__exit__()

    def values(self, log, gzip):
        """What this peer's template needs beyond that."""
        return {}

    def launch(self):
        raise NotImplementedError

    @classmethod
    def program(cls):
        """Where the program is, None when it is not installed."""
        raise NotImplementedError

    @classmethod
    def version(cls):
        told = subprocess.run([cls.program(), cls.version_option], capture_output=True, text=True)
        lines = (told.stdout + told.stderr).strip().splitlines()
        return lines[0] if lines else os.path.basename(cls.program())


class Site:
    """What all peers serve from files, and the core that servers run on."""

    FILES = {"1k": 1 << 10, "64k": 64 << 10, "10m": 10 << 20}

    def __init__(self, folder, core):
        self.files, self.core = os.path.join(folder, "root"), core
        os.makedirs(os.path.join(self.files, "files"))
        for name, count in self.FILES.items():
            with open(os.path.join(self.files, "files", name + ".html"), "wb") as file:
                file.write(b"a file of the benchmark\n" * (count // 24 + 1))
                file.truncate(count)


class _NginxSyntax(Peer):
    template = "mayfly-nginx.conf"
    sendfile = "on"

    def values(self, log, gzip):
        lines = {
            "none": "off", "plain": "access.log combined",
            "buffered": "access.log combined buffer=64k flush=1s",
        }
        return {"ACCESS_LOG": lines[log], "GZIP": "on" if gzip else "off", "SENDFILE": self.sendfile}

    def launch(self):
        self.start(subject.command_of(self.program(), self.folder, self.config), self.site.core)


class Mayfly(_NginxSyntax):
    title = "Mayfly"
    binary = None

    @classmethod
    def program(cls):
        return cls.binary


class Nginx(_NginxSyntax):
    title = "nginx"

    @classmethod
    def program(cls):
        return find("nginx")


class NginxCopying(Nginx):
    """nginx reading stored pages into memory: dearer for large ones, cheaper for small ones."""

    title = "nginx, sendfile off"
    kind = "nginx"
    sendfile = "off"


class Varnish(Peer):
    title = "Varnish"
    template = "varnish.vcl"
    version_option = "-V"

    def values(self, log, gzip):
        self._log = log
        return {"GZIP": "true" if gzip else "false"}

    def launch(self):
        core = self.site.core
        origin = self.configure(os.path.join(TEMPLATES, "origin.conf"), "nginx", self.shared())
        work = os.path.join(self.folder, "work")
        os.makedirs(os.path.join(self.folder, "temp"), exist_ok=True)
        self.start([
            self.program(), "-F", "-j", "none", "-n", work, "-f", self.config,
            "-a", f"127.0.0.1:{self.port}", "-s", "malloc,4g", "-p", "thread_pools=1",
            "-p", "timeout_idle=3600", "-p", "listen_depth=4096",
        ], core)
        self.start(subject.command_of(find("nginx"), self.folder, origin), core)

    def wait(self):
        super().wait()
        if self._log != "none":
            # Varnish logs to memory; a program beside it writes the file, buffered.
            lines = ["-w", os.path.join(self.folder, "access.log")]
            self.start([find("varnishncsa"), "-n", os.path.join(self.folder, "work"), *lines], self.site.core)

    @classmethod
    def program(cls):
        return find("varnishd")


class Haproxy(Peer):
    title = "HAProxy"
    template = "haproxy.cfg"
    # HAProxy writes no files; standard output is one, a line a time.
    logs = {"plain": "log stdout format raw local0"}
    compression = {True: "compression algo gzip\n    compression type text/html"}

    def values(self, log, gzip):
        return {"LOG_FORMAT": "log global\n    option httplog" if log == "plain" else ""}

    def launch(self):
        self.start([self.program(), "-db", "-f", self.config], self.site.core)

    @classmethod
    def program(cls):
        return find("haproxy")


class Apache(Peer):
    title = "Apache"
    template = "apache.conf"
    logs = {
        "plain": "<IfModule !log_config_module>\nLoadModule log_config_module {MODULES}/mod_log_config.so\n</IfModule>\n"
        'CustomLog {FOLDER}/access.log "%h %l %u %t \\"%r\\" %>s %O \\"%{{Referer}}i\\" \\"%{{User-Agent}}i\\""',
    }
    logs["buffered"] = logs["plain"] + "\nBufferedLogs On"
    # The stored page is the compressed one: mod_cache stands behind these filters.
    compression = {True: "AddOutputFilterByType BROTLI_COMPRESS;DEFLATE text/html"}

    def values(self, log, gzip):
        modules = next((m for m in ("/usr/lib/apache2/modules", "/usr/lib64/httpd/modules") if os.path.isdir(m)), "")
        # Apache's children refuse to be root.
        account = "User www-data\nGroup www-data" if os.getuid() == 0 else ""
        return {"MODULES": modules, "ACCOUNT": account}

    def launch(self):
        os.makedirs(os.path.join(self.folder, "locks"))
        if os.getuid() == 0:
            for name in ("cache", "locks"):
                shutil.chown(os.path.join(self.folder, name), "www-data")
        self.start([self.program(), "-D", "FOREGROUND", "-f", self.config], self.site.core)

    @classmethod
    def program(cls):
        return find("apache2", "httpd")


class Floor(subject.Daemon):
    """A bare epoll loop that answers everything with the same bytes."""

    title = "floor"
    tool = None

    def __init__(self, site, folder, answer, *options):
        super().__init__("floor", folder)
        path = os.path.join(self.folder, "answer")
        with open(path, "wb") as file:
            file.write(answer)
        self.start([self.tool, str(self.port), path, *options], site.core)
        self.wait()


PEERS = [Mayfly, Nginx, NginxCopying, Varnish, Haproxy, Apache]
