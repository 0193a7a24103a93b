"""A root of Debian with systemd as its process 1, in namespaces of its own: for processes, mounts, names, messages, the network and
control groups. No port and no process of this machine is touched. Needs root, and a cgroup2 that is mounted here."""

import contextlib
import ctypes
import os
import signal
import subprocess

from roots import PATH, Root, wait_until

PACKAGES = ["systemd", "systemd-sysv", "dbus", "passwd"]
# Runs with namespaces of its own for processes, mounts, names, messages, the network and control groups.
BOOT = r"""
set -e
root=$1
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for name in null zero full random urandom tty; do : >"$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"
ln -s pts/ptmx "$root/dev/ptmx"
ip link set lo up
cd "$root"
mkdir -p old
pivot_root . old
export container=trial
exec chroot . /bin/sh -c 'umount -l /old && exec /lib/systemd/systemd --system --unit=multi-user.target' >/dev/null 2>&1
"""


class Machine(Root):
    """A root with systemd as its process 1."""

    def __init__(self, path):
        super().__init__(path)
        self.group = cgroup2() + "/mayfly-trial"
        os.makedirs(self.group, exist_ok=True)
        command = ["unshare", "--pid", "--mount", "--uts", "--ipc", "--net", "--cgroup", "--fork", "--kill-child",
                   "bash", "-c", BOOT, "boot", path]
        self.starter = subprocess.Popen(["bash", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', self.group, *command],
                                        stdin=subprocess.DEVNULL)
        wait_until(lambda: self.first() is not None, "no first process")
        wait_until(lambda: self.run("systemctl", "is-system-running", check=False)[1].strip() in ("running", "degraded"), "systemd is not ready")

    def first(self):
        """The number of its process 1, as it is outside."""
        path = f"/proc/{self.starter.pid}/task/{self.starter.pid}/children"
        with contextlib.suppress(OSError):
            with open(path, encoding="utf-8") as file:
                children = file.read().split()
            if children:
                with open(f"/proc/{children[0]}/comm", encoding="utf-8") as file:
                    if file.read().strip() == "systemd":
                        return int(children[0])
        return None

    def line(self, *command, user="root", home="/root"):
        """A command line that runs a command inside, as one of its accounts."""
        account = [] if user == "root" else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        return ["nsenter", "-t", str(self.first()), "-p", "-m", "-u", "-i", "-n", "-C", "-r", "-w", "env", "-i", f"PATH={PATH}",
                "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", f"HOME={home}", *account, *command]

    def journal(self):
        command = self.line("journalctl", "--no-pager", "--lines=40")
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stdout

    def enter_network(self):
        """From now on this process speaks in the network of the machine."""
        with open(f"/proc/{self.first()}/ns/net", "rb") as file:
            assert ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0) == 0, os.strerror(ctypes.get_errno())

    def end(self):
        if (first := self.first()) is not None:
            os.kill(first, signal.SIGKILL)
        self.starter.wait()
        with contextlib.suppress(OSError):
            os.rmdir(self.group)


def cgroup2():
    with open("/proc/mounts", encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words[2] == "cgroup2":
                return words[1]
    raise SystemExit("systemd_trial: no cgroup2 is mounted here")
