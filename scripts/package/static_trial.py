#!/usr/bin/python3
"""Serves a PHP site with the static program, in a root that has no glibc: musl's loader and busybox, as in Alpine.

    static_trial.py [ARCHIVE]      target/package/out/mayfly-*-linux-*.tar.gz

The root is made of Debian's packages busybox-static and musl, for want of Alpine's own. The program is put there as its
README says, and PHP-FPM runs beside it, on this machine, with its socket in the root. Needs root.
"""

import glob
import http.client
import os
import shutil
import subprocess
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
WORK = os.path.join(os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target"), "package")
PLACE = os.path.join(WORK, "roots", "static")
PORT = 8080
TIMEOUT = 30
CONFIGURATION = """
daemon off;
user root;
events {}
http {
    fastcgi_cache_path pages keys_zone=pages:8m;
    server {
        listen 127.0.0.1:8080;
        root /site;
        index index.php;
        location ~ \\.php$ {
            include /etc/mayfly/fastcgi.conf;
            fastcgi_pass unix:/run/php.sock;
            fastcgi_cache pages;
            fastcgi_cache_valid 200 1m;
            add_header X-Cache $upstream_cache_status;
        }
    }
}
"""


def main():
    archives = sys.argv[1:] or glob.glob(os.path.join(WORK, "out", "mayfly-*-linux-*.tar.gz"))
    if not archives:
        raise SystemExit("no archive: scripts/package/build.sh tarball makes one")
    if os.environ.get("MAYFLY_TRIAL_IS_INSIDE") != "1":
        fetch()
        command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", sys.executable, os.path.abspath(__file__), *archives]
        return subprocess.run(command, env={**os.environ, "MAYFLY_TRIAL_IS_INSIDE": "1"}, check=False).returncode
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    make_root(archives[0])
    fpm = start_php()
    version = in_root("/usr/local/bin/mayfly", "--version").strip()
    in_root("/usr/local/bin/mayfly", "bench", "--help")
    in_root("/usr/local/bin/mayfly-tools", "--version")
    in_root("/usr/local/bin/mayfly", "-t", "-c", "/etc/mayfly/site.conf")
    server = subprocess.Popen(["chroot", PLACE, "/usr/local/bin/mayfly", "-c", "/etc/mayfly/site.conf"])
    try:
        answers = [ask() for _ in range(3)]
    finally:
        server.terminate()
        fpm.terminate()
    assert server.wait(TIMEOUT) == 0, "it did not end well"
    assert answers[0][1].startswith("made by PHP"), answers
    assert [cache for cache, _ in answers] == ["MISS", "HIT", "HIT"] and len({page for _, page in answers}) == 1, answers
    print(f"  ok    {version}, {os.path.getsize(archives[0])} bytes as an archive, serves PHP in a root with musl: {answers}")
    return 0


def fetch():
    """While there is a network."""
    shutil.rmtree(PLACE, ignore_errors=True)
    os.makedirs(PLACE + "/packages")
    subprocess.run(["apt-get", "download", "busybox-static", "musl"], cwd=PLACE + "/packages", check=True, capture_output=True)


def make_root(archive):
    for folder in ("bin", "dev", "etc/mayfly", "proc", "run", "site", "tmp", "usr/local/bin", "var/log"):
        os.makedirs(os.path.join(PLACE, folder), exist_ok=True)
    for package in glob.glob(PLACE + "/packages/*.deb"):
        subprocess.run(["dpkg-deb", "--extract", package, PLACE], check=True)
    in_root("/bin/busybox", "--install", "-s", "/bin")
    assert not glob.glob(PLACE + "/lib*/**/ld-linux*", recursive=True), "glibc is in the root"
    subprocess.run(["tar", "--extract", "--file", archive, "--directory", PLACE + "/tmp", "--strip-components=1"], check=True)
    in_root("/bin/sh", "-ec", "cd /tmp; cp mayfly mayfly-tools /usr/local/bin; chmod 755 /usr/local/bin/*; cp -r conf/* /etc/mayfly")
    for path, text in (("etc/passwd", "root:x:0:0::/:/bin/sh\n"), ("etc/group", "root:x:0:\n"),
                       ("etc/mayfly/site.conf", CONFIGURATION),
                       ("site/index.php", "<?php echo 'made by PHP ', hrtime(true);")):
        with open(os.path.join(PLACE, path), "w", encoding="utf-8") as file:
            file.write(text)
    subprocess.run(["mount", "-t", "proc", "proc", PLACE + "/proc"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "dev", PLACE + "/dev"], check=True)
    for name, minor in (("null", 3), ("random", 8), ("urandom", 9)):
        subprocess.run(["mknod", "-m", "666", f"{PLACE}/dev/{name}", "c", "1", str(minor)], check=True)


def in_root(*command):
    done = subprocess.run(["chroot", PLACE, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def start_php():
    program = (glob.glob("/usr/sbin/php-fpm[0-9]*") or ["php-fpm"])[0]
    configuration = PLACE + "/fpm.conf"
    with open(configuration, "w", encoding="utf-8") as file:
        file.write(f"[global]\nerror_log = {PLACE}/fpm.log\n[site]\nuser = nobody\ngroup = nogroup\nlisten = {PLACE}/run/php.sock\n"
                   f"chroot = {PLACE}\n"
                   "listen.mode = 0666\npm = static\npm.max_children = 1\n")
    return subprocess.Popen([program, "--nodaemonize", "--fpm-config", configuration], stderr=subprocess.DEVNULL)


def ask():
    deadline = time.monotonic() + TIMEOUT
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=TIMEOUT)
        try:
            connection.request("GET", "/")
            response = connection.getresponse()
            if response.status == 200 or time.monotonic() > deadline:
                return response.getheader("X-Cache"), response.read().decode()
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
        finally:
            connection.close()
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
