"""One Mayfly for several sites, each with a pool of PHP and a database of its own: its configuration, and how it is reloaded,
restarted and upgraded. What it and PHP use is read from /proc."""

import os
import re
import signal
import subprocess
import threading
import time

from . import subject as subjects
from .learned import Control
from .workdir import children_of, is_alive, listens, wait_for

STOP_SECONDS = 30
SAMPLE_SECONDS = 1.0
SERVER = "\n    server {"
TICKS = os.sysconf("SC_CLK_TCK")
# WordPress's own cron: `serve --learn=on` asks for it each minute.
CRON = "cache_repeat '/wp-cron.php?doing_wp_cron' 60s;"


class Server:
    """`sites` have a name, an address, a port, a root and a database, and `more` lines of their location."""

    def __init__(self, workdir, options, sites, php_settings):
        self.workdir, self.options, self.sites = workdir, options, sites
        self.binary = os.path.abspath(options.binary)
        self.pid_file = workdir.join("pid")
        self.control = Control(f"{self.pid_file}.control")
        self.workers = dict.fromkeys((site.name for site in sites), options.workers)
        folder = workdir.mkdir("php-settings")
        workdir.write("php-settings/settings.ini", php_settings)
        self.environment = {"PHP_INI_SCAN_DIR": f":{folder}"}
        self.stored = workdir.mkdir("stored")
        self.printed = {site.name: self._print(site) for site in sites}
        self.configuration = workdir.join("mayfly.conf")
        self.starts = []
        workdir.undo(self.stop)

    def _print(self, site):
        printed = subprocess.run(
            [self.binary, "serve", site.root, "--listen", f"{site.address}:{site.port}", "--ttl", f"{round(self.options.ttl)}s",
             "--workers", str(self.options.workers), "--learn=watch", "--print-config"],
            check=True, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        return printed.stdout

    def _write(self):
        """Of each site's configuration: the pool, and the server."""
        pools, servers = [], []
        for site in self.sites:
            text = self.printed[site.name]
            database = site.database
            learn = (
                f"cache_learn on; cache_learn_replay on; {site.more}\n"
                f"        cache_learn_database unix:{database.socket} {database.user} {database.password};"
            )
            pool = re.search(r"php_pool site \{.*?\n\}\n", text, re.DOTALL)[0]
            pools.append(re.sub(r"workers \d+;", f"workers {self.workers[site.name]};", pool).replace("site", site.name, 1))
            body = text[text.index(SERVER) : text.rindex("}")].replace("php:site", f"php:{site.name}")
            # Purges that an application sends are another way, which looks for them after each edit.
            body = body.replace(" purges=seen;", ";")
            body = body.replace("fastcgi_cache pages;", f"fastcgi_cache {site.name};")
            body, found = re.subn(r"cache_learn watch;", lambda _, learn=learn: learn, body)
            if found != 1:
                raise RuntimeError("serve --learn=watch writes no cache_learn")
            servers.append(body)
        text = self.printed[self.sites[0].name]
        head = re.sub(r"php_pool site \{.*?\n\}\n", lambda _: "\n".join(pools), text[: text.index(SERVER)], flags=re.DOTALL)
        zones = [f"fastcgi_cache_path {self.stored}/{site.name} keys_zone={site.name}:8m inactive=3600s;" for site in self.sites]
        head = re.sub(r"fastcgi_cache_path [^;]+;", "\n    ".join(zones), head)
        self.workdir.write("mayfly.conf", f"pid {self.pid_file};\n{head}{''.join(servers)}}}\n")

    def start(self):
        self._write()
        self.process = self.workdir.spawn("mayfly", [self.binary, "-c", self.configuration], self.environment)
        self.starts.append(self.process)
        try:
            for site in self.sites:
                wait_for("mayfly", listens(site.address, site.port), subjects.START_SECONDS, self.process)
        except RuntimeError as error:
            raise RuntimeError(f"{error}\n{self.workdir.log_tail('mayfly')}") from None

    def pid(self):
        with open(self.pid_file) as file:
            return int(file.read())

    def reload(self):
        os.kill(self.pid(), signal.SIGHUP)

    def reload_with_another_pool(self, site):
        """With one worker more or fewer, which starts the pool anew."""
        self.workers[site.name] += 1 if self.workers[site.name] == self.options.workers else -1
        self._write()
        self.reload()

    def stop(self):
        """Returns what was wrong with its end, best nothing."""
        try:
            pid = self.pid()
        except OSError:
            return ["had ended"]
        if not is_alive(pid):
            return ["had ended"]
        family = children_of(pid)
        os.kill(pid, signal.SIGTERM)
        return self._gone([pid, *family])

    def _gone(self, pids):
        until = time.monotonic() + STOP_SECONDS
        while any(map(is_alive, pids)) and time.monotonic() < until:
            # What this process has started has to be taken notice of.
            for process in self.starts:
                process.poll()
            time.sleep(0.05)
        left = [pid for pid in pids if is_alive(pid)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return [f"{pid} is left" for pid in left]

    def restart(self):
        wrong = self.stop()
        self.start()
        return wrong

    def upgrade(self):
        before = self.pid()
        done = subprocess.run([self.binary, "upgrade", "-c", self.configuration], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            return [f"upgrade ends with {done.returncode}: {done.stderr or done.stdout}"]
        return self._gone([before])

    def processes(self):
        """Pids by what they are: `mayfly` and `php`."""
        found = {"mayfly": [], "php": []}
        pid = self.pid()
        for each in [pid, *children_of(pid)]:
            found["php" if command_of(each).startswith("php-fpm") else "mayfly"].append(each)
        return found

    def workers_of(self, site):
        """PHP's processes that serve a site."""
        return [pid for pid in self.processes()["php"] if command_of(pid).startswith(f"php-fpm: pool {site.name}")]

    def memory_bytes(self):
        return {what: sum(map(memory_of, pids)) for what, pids in self.processes().items()}


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().replace("\0", " ")
    except OSError:
        return ""


def memory_of(pid):
    """What a process has for itself, and its share of what it shares."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


class Used(threading.Thread):
    """Processor time of the server and of PHP, also of processes that end meanwhile."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self._server = server
        self._is_over = threading.Event()
        self._seconds = {"mayfly": {}, "php": {}}

    def run(self):
        while not self._is_over.wait(SAMPLE_SECONDS):
            self._sample()

    def _sample(self):
        try:
            processes = self._server.processes()
        except OSError:
            return
        for what, pids in processes.items():
            for pid in pids:
                try:
                    with open(f"/proc/{pid}/stat") as file:
                        fields = file.read().rpartition(")")[2].split()
                except OSError:
                    continue
                # The time at which it began tells it from another one with its number.
                self._seconds[what][pid, fields[19]] = (int(fields[11]) + int(fields[12])) / TICKS

    def stop(self):
        self._is_over.set()
        self.join()
        return {what: sum(seconds.values()) for what, seconds in self._seconds.items()}
