"""Runs a unit of systemd in a root without systemd: its own command lines, under its own restrictions.

What of the unit is applied, by namespaces of mounts, `setpriv` and seccomp: ProtectSystem, ProtectHome, PrivateTmp,
ReadWritePaths, RuntimeDirectory, StateDirectory, CacheDirectory, CapabilityBoundingSet, NoNewPrivileges,
SystemCallFilter (by the list of this machine's `systemd-analyze` and python3-seccomp, where both are there),
EnvironmentFile, NotifyAccess and the watchdog. Devices, address families, personalities and cgroups are not restricted.
"""

import ctypes
import glob
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time

TIMEOUT = 60
CLONE_NEWNS = 0x00020000
MS_BIND, MS_REMOUNT, MS_RDONLY, MS_REC, MS_PRIVATE = 4096, 32, 1, 16384, 1 << 18
libc = ctypes.CDLL(None, use_errno=True)


class Unit:
    """The [Service] section with its drop-ins; a name may have several values. `NAME@INSTANCE.service` is made from its
    template."""

    def __init__(self, root, name):
        self.values = {}
        template, _, instance = name.removesuffix(".service").partition("@")
        with open(os.path.join(root, "lib/systemd/system", f"{template}@.service" if instance else name), encoding="utf-8") as file:
            texts = [file.read().replace("%i", instance)]
        for path in sorted(glob.glob(os.path.join(root, "etc/systemd/system", name.removesuffix(".service") + ".service.d", "*.conf"))):
            with open(path, encoding="utf-8") as file:
                texts.append(file.read())
        sections = [text.split("[Service]", 1)[1].split("\n[", 1)[0] for text in texts]
        for line in "\n".join(sections).splitlines():
            if match := re.match(r"^(\w+)=(.*)$", line):
                self.values.setdefault(match[1], []).append(match[2])

    def one(self, name, default=""):
        return self.values.get(name, [default])[-1]

    def words(self, name):
        return " ".join(self.values.get(name, [])).split()


class Service:
    """A running service; `said` are the messages that it has sent to its manager."""

    def __init__(self, root, name):
        self.root, self.unit, self.said = root, Unit(root, name), []
        self.notifications = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify = f"/run/notify-{name}"
        path = root + self.notify
        if os.path.exists(path):
            os.unlink(path)
        self.notifications.bind(path)
        self.pid = os.fork()
        if self.pid == 0:
            self.become()
        self.main = self.pid
        self.wait_for("READY=1")

    def command(self, name):
        """A command line of the unit, with the variables of its environment file."""
        variables = dict(it.split("=", 1) for it in self.unit.words("Environment"))
        for path in self.unit.words("EnvironmentFile"):
            path = self.root + path.lstrip("-")
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    for line in file:
                        if "=" in line and not line.startswith("#"):
                            key, value = line.strip().split("=", 1)
                            variables[key] = value.strip('"')
        words = []
        for word in shlex.split(self.unit.one(name)):
            words += variables.get(word[1:], "").split() if word.startswith("$") else [word]
        return words

    def become(self):
        """In the child: the restrictions, then the program."""
        try:
            unit, root = self.unit, self.root
            folders = {"RUNTIME_DIRECTORY": ("RuntimeDirectory", "/run/"), "STATE_DIRECTORY": ("StateDirectory", "/var/lib/"),
                       "CACHE_DIRECTORY": ("CacheDirectory", "/var/cache/")}
            environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "NOTIFY_SOCKET": self.notify}
            writable = [path.lstrip("-") for path in unit.words("ReadWritePaths")]
            for variable, (name, above) in folders.items():
                if folder := unit.one(name):
                    environment[variable] = above + folder
                    writable.append(above + folder)
                    mode = int(unit.one(name + "Mode", "0755"), 8)
                    os.makedirs(root + above + folder, exist_ok=True)
                    os.chmod(root + above + folder, mode)
            if watchdog := unit.one("WatchdogSec"):
                environment["WATCHDOG_USEC"] = str(int(watchdog.rstrip("s")) * 1_000_000)
            command = self.command("ExecStart")
            self.mounts(writable)
            os.chroot(root)
            os.chdir("/")
            os.setsid()
            limit_system_calls(unit)
            capabilities = ",".join("+" + it.removeprefix("CAP_").lower() for it in unit.words("CapabilityBoundingSet"))
            line = ["setpriv", f"--bounding-set=-all,{capabilities}"]
            if unit.one("NoNewPrivileges") == "yes":
                line.append("--no-new-privs")
            os.execvpe("setpriv", [*line, "--", *command], environment)
        except BaseException as error:  # The child must not go on as a second harness.
            print(f"the service cannot be started: {error!r}", file=sys.stderr, flush=True)
            os._exit(226)

    def mounts(self, writable):
        call(libc.unshare, CLONE_NEWNS)
        mount(None, "/", MS_REC | MS_PRIVATE)
        unit, root = self.unit, self.root
        mount(root, root, MS_BIND | MS_REC)
        for path in writable:
            if os.path.isdir(root + path):
                mount(root + path, root + path, MS_BIND)
        if unit.one("PrivateTmp") == "yes":
            for path in ("/tmp", "/var/tmp"):
                mount("tmpfs", root + path, 0, "tmpfs")
        if unit.one("ProtectHome") == "yes":
            for path in ("/home", "/root"):
                mount("tmpfs", root + path, MS_RDONLY, "tmpfs")
        if unit.one("ProtectSystem") == "strict":
            mount(None, root, MS_BIND | MS_REMOUNT | MS_RDONLY)
        if unit.one("ProtectKernelTunables") == "yes":
            mount(root + "/proc/sys", root + "/proc/sys", MS_BIND)
            mount(None, root + "/proc/sys", MS_BIND | MS_REMOUNT | MS_RDONLY)

    def wait_for(self, part):
        """Waits for a message with this line, and gives it."""
        self.notifications.settimeout(TIMEOUT)
        while True:
            try:
                message = self.notifications.recv(4096).decode()
            except TimeoutError:
                raise AssertionError(f"{part} did not come; {self.said}") from None
            self.hear(message)
            if part in message.splitlines() or message.startswith(part):
                return message

    def hear(self, message):
        self.said.append(message)
        if match := re.search(r"^MAINPID=(\d+)$", message, re.MULTILINE):
            self.main = int(match[1])

    def reload(self):
        run = subprocess.run(["chroot", self.root, *self.command("ExecReload")], capture_output=True, text=True, timeout=TIMEOUT)
        return run.returncode, run.stdout + run.stderr

    def catch_up(self):
        """Hears what was said meanwhile: another process may have taken the place of the main one."""
        self.notifications.settimeout(0)
        try:
            while True:
                self.hear(self.notifications.recv(4096).decode())
        except BlockingIOError:
            pass

    def stop(self):
        self.catch_up()
        os.kill(self.main, getattr(signal, self.unit.one("KillSignal")))
        self.wait_for("STOPPING=1")
        self.ended()

    def ended(self):
        """Waits until the main process is gone."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                pass
            if not os.path.exists(f"{self.root}/proc/{self.main}"):
                return
            time.sleep(0.05)
        raise AssertionError(f"process {self.main} has not ended")


def call(function, *arguments):
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)}: {arguments}")


def mount(source, place, flags, kind=None):
    encoded = [it.encode() if it is not None else None for it in (source, place, kind)]
    call(libc.mount, encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), None)


def limit_system_calls(unit):
    groups = unit.words("SystemCallFilter")
    if not groups:
        return
    names = system_calls(groups)
    if names is None:
        print("    system calls are not restricted here: systemd-analyze or python3-seccomp is missing", flush=True)
        return
    import errno
    import seccomp
    rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
    for name in names:
        try:
            rules.add_rule(seccomp.ALLOW, name)
        except RuntimeError:
            pass  # The kernel's or the library's list is older.
    rules.load()


LISTS = {}


def system_calls(groups):
    """The calls of these groups; read before the root is changed (see `prepare`)."""
    found = set()
    for group in groups:
        if group not in LISTS:
            return None
        found |= LISTS[group]
    return found


def prepare(groups=("@system-service",)):
    """Reads the lists of system calls while the machine's own programs are in reach."""
    try:
        import seccomp  # noqa: F401
    except ImportError:
        return
    def expanded(group):
        run = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, text=True, check=False)
        names = [line.strip() for line in run.stdout.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
        calls = set()
        for name in names:
            calls |= expanded(name) if name.startswith("@") else {name}
        return calls
    for group in groups:
        if calls := expanded(group):
            LISTS[group] = calls
