#!/usr/bin/python3
"""Runs the images of scripts/package/image.sh with podman, as docs/guide/container.md says: a folder served with the
PHP-FPM inside; a configuration of one's own with PHP-FPM in a container beside; and the static image with the configuration,
the account and the restrictions of packaging/compose. All must answer from memory in the end, and stop with 0.

    image_trial.py [ARCHIVE [STATIC-ARCHIVE]]      target/package/out/mayfly-VERSION-image.tar and mayfly-static-*-image.tar

Containers share the network of this trial, which is a namespace of its own without a way out. Needs root and podman.
"""

import glob
import http.client
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
WORK = os.path.join(os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target"), "package")
PLACE = os.path.realpath(os.path.join(WORK, "image", "trial"))
TIMEOUT = 60
NAMES = ("serves", "configured", "php", "beside")
PAGE = "<?php usleep(2000); echo 'made by PHP ', hrtime(true), ' as ', posix_geteuid();"
CONFIGURATION = """events {}
error_log stderr;
http {
    access_log /dev/stdout;
    fastcgi_cache_path pages keys_zone=pages:8m;
    server {
        listen 8081;
        root /var/www/html;
        index index.php;
        location ~ \\.php$ {
            include fastcgi.conf;
            fastcgi_pass 127.0.0.1:9000;
            fastcgi_cache pages;
            fastcgi_cache_valid 200 1m;
            add_header X-Cache $upstream_cache_status;
        }
    }
}
"""
POOL = "[global]\nerror_log = /dev/stderr\n[www]\nuser = www-data\ngroup = www-data\nlisten = 127.0.0.1:9000\npm = static\npm.max_children = 2\n"


def main():
    archives = sys.argv[1:] or [glob.glob(os.path.join(WORK, "out", name)) for name in ("mayfly-[0-9]*-image.tar", f"mayfly-static-*-{platform.machine()}-image.tar")]
    if not all(archives):
        raise SystemExit("no image: scripts/package/image.sh makes them")
    archives = [it if isinstance(it, str) else it[0] for it in archives]
    if os.environ.get("MAYFLY_TRIAL_IS_INSIDE") != "1":
        command = ["unshare", "--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child",
                   sys.executable, os.path.abspath(__file__), *map(os.path.realpath, archives)]
        return subprocess.run(command, env={**os.environ, "MAYFLY_TRIAL_IS_INSIDE": "1"}, check=False).returncode
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # crun takes no mixture of both versions of cgroups, which some machines have.
    subprocess.run("mount --make-rprivate / && umount --recursive /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup", shell=True, check=True)
    shutil.rmtree(PLACE, ignore_errors=True)
    os.makedirs(PLACE + "/site")
    write("site/index.php", PAGE)
    write("mayfly.conf", CONFIGURATION)
    write("pool.conf", POOL)
    write("site/steady.php", "<?php echo 'made by PHP';")
    write("compose.conf", composed(compose("mayfly.conf")))
    image = load(archives[0])
    passed = 2
    site = f"{PLACE}/site:/var/www/html"
    try:
        start("serves", image, "--volume", site, then=["serve", "/var/www/html", "--listen", "127.0.0.1:8080"])
        print(f"  ok    serves a folder with the PHP-FPM inside ({memory(8080)}; {stop('serves')})", flush=True)
        start("php", image, "--volume", site, "--volume", f"{PLACE}/pool.conf:/pool.conf:ro", "--entrypoint", php_of(image),
              then=["--nodaemonize", "--fpm-config", "/pool.conf"])
        start("configured", image, "--volume", site, "--volume", f"{PLACE}/mayfly.conf:/etc/mayfly/mayfly.conf:ro",
              then=["-g", "daemon off;"])
        answer = memory(8081)
        lines = podman("logs", "configured")
        assert "GET / HTTP/1.1" in lines, f"no access log in the container's output: {lines}"
        print(f"  ok    serves by a configuration, with PHP-FPM in a container beside ({answer}; {stop('configured')})", flush=True)
        if len(archives) > 1:
            text = compose("compose.yaml")
            folders = [word for it in re.search(r"tmpfs: \[(.*)\]", text)[1].split(", ") for word in ("--tmpfs", it.strip('"'))]
            user = re.search(r'user: "(.*)"', text)[1]
            assert "read_only: true" in text and "cap_drop: [ALL]" in text and "no-new-privileges:true" in text, text
            start("beside", load(archives[1]), "--read-only", "--read-only-tmpfs=false", "--cap-drop", "all", "--security-opt", "no-new-privileges",
                  "--user", user, *folders, "--volume", site + ":ro", "--volume", f"{PLACE}/compose.conf:/etc/mayfly/mayfly.conf:ro",
                  then=["-g", "daemon off;"])
            answers = [ask(8080, "/steady.php") for _ in range(3)]
            assert [cache for cache, _ in answers][-1] == "HIT" and answers[0][1] == "made by PHP", answers
            print(f"  ok    serves as compose.yaml has it, read-only, without rights, as {user} ({stop('beside')})", flush=True)
            passed += 1
    finally:
        for name in NAMES:
            subprocess.run([*PODMAN, "rm", "--force", "--time", "5", name], capture_output=True, check=False)
        subprocess.run([*PODMAN, "rmi", "--all", "--force"], capture_output=True, check=False)
        shutil.rmtree(PLACE, ignore_errors=True)
    print(f"{passed} passed, 0 failed: {', '.join(str(os.path.getsize(it)) for it in archives)} bytes as archives")
    return 0


def load(archive):
    return podman("load", "--quiet", "--input", archive).split("Loaded image")[1].split(":", 1)[1].split()[0]


def compose(name):
    with open(os.path.join(ROOT, "packaging", "compose", name), encoding="utf-8") as file:
        return file.read()


def composed(text):
    """The configuration without names: here all containers are at one address."""
    changed = text.replace("php:9000", "127.0.0.1:9000")
    assert changed != text and "resolver " in text, text
    return re.sub(r" *resolver .*\n", "", changed)


# A store of its own; no cgroups of its own, which a machine in a machine may not have.
PODMAN = ["podman", "--root", PLACE + "/storage", "--runroot", PLACE + "/run", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]


def podman(*words):
    done = subprocess.run([*PODMAN, *words], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"podman {' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def start(name, image, *options, then):
    podman("run", "--detach", "--name", name, "--network", "host", "--cgroups", "disabled", "--pull", "never", *options, image, *then)


def php_of(image):
    """Debian's PHP-FPM carries its version in its name."""
    found = podman("run", "--rm", "--network", "none", "--cgroups", "disabled", "--entrypoint", "sh", image, "-c", "ls /usr/sbin/php-fpm*")
    return found.split()[0]


def memory(port):
    """Without a configuration, PHP makes a page twice before it is shown to others."""
    answers = [ask(port) for _ in range(3)]
    caches = [cache for cache, _ in answers]
    assert caches in (["MISS", "MISS", "HIT"], ["MISS", "HIT", "HIT"]), answers
    assert answers[0][1].startswith("made by PHP") and not answers[0][1].endswith(" as 0"), answers
    return f"{', '.join(caches)}, PHP as {answers[0][1].split()[-1]}"


def stop(name):
    """With 0, since requests under way are finished."""
    podman("stop", "--time", "20", name)
    code = json.loads(podman("inspect", name))[0]["State"]["ExitCode"]
    assert code == 0, f"{name} ended with {code}: {podman('logs', name)}"
    return "stopped with 0"


def ask(port, path="/"):
    deadline = time.monotonic() + TIMEOUT
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            if response.status == 200 or time.monotonic() > deadline:
                return response.getheader("X-Cache"), response.read().decode()
        except OSError:
            if time.monotonic() > deadline:
                names = [name for name in NAMES if not subprocess.run([*PODMAN, "container", "exists", name], check=False).returncode]
                raise AssertionError("no answer: " + "".join(podman("logs", name) for name in names)) from None
        finally:
            connection.close()
        time.sleep(0.1)


def write(path, text):
    with open(os.path.join(PLACE, path), "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main())
