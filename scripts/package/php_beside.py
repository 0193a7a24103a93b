#!/usr/bin/python3
"""Runs the PHP-FPM of several Debian releases beside each other: one Mayfly, one `php_pool` for each, and asks all of them
at once. Each PHP-FPM is that of a root of its release and runs with that root's libraries. Needs root and what
`scripts/setup.sh trial` installs.

    php_beside.py --binary PROGRAM [SUITE...]      bullseye, bookworm and trixie
"""

import argparse
import concurrent.futures
import glob
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import roots  # noqa: E402

REQUESTS = 200
CONFIGURATION = os.path.realpath(os.path.join(roots.ROOT, "packaging/conf/fastcgi.conf"))
# PHP-FPM with the loader and the libraries of its root, and without settings of this machine.
WRAPPER = """#!/bin/sh
export PHP_INI_SCAN_DIR=/nowhere
exec {root}/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 --library-path {root}/lib/x86_64-linux-gnu:{root}/usr/lib/x86_64-linux-gnu {program} -n "$@"
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("suites", nargs="*", default=["bullseye", "bookworm", "trixie"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mayfly-php-beside-", dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        pools = dict(pool(folder, suite) for suite in options.suites)
        os.mkdir(folder + "/site")
        with open(folder + "/site/index.php", "w", encoding="utf-8") as file:
            file.write("<?php header('Cache-Control: no-store'); echo PHP_VERSION;")
        with open(folder + "/mayfly.conf", "w", encoding="utf-8") as file:
            file.write(configuration(folder, pools))
        server = subprocess.Popen([options.binary, "-p", folder, "-c", folder + "/mayfly.conf"])
        try:
            trial(folder + "/socket", pools, server)
        except Exception:
            subprocess.run(["cat", folder + "/error.log"], check=False)
            raise
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)


def pool(folder, suite):
    """The name of a pool (php82), and the program that it starts."""
    root = roots.fresh(suite, os.path.join(roots.WORK, "beside", suite), packages=["php-fpm"])
    program = glob.glob(root + "/usr/sbin/php-fpm*")[0]
    version = re.search(r"php-fpm(\d)\.(\d)$", program)
    path = f"{folder}/{os.path.basename(program)}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(WRAPPER.format(root=os.path.realpath(root), program=os.path.realpath(program)))
    os.chmod(path, 0o755)
    return f"php{version[1]}{version[2]}", path


def configuration(folder, pools):
    texts = "".join(f"php_pool {name} {{ workers 2; binary {program}; }}\n" for name, program in pools.items())
    locations = "".join(
        f"location /{name} {{ include {CONFIGURATION}; fastcgi_param SCRIPT_FILENAME {folder}/site/index.php; fastcgi_pass php:{name}; }}\n"
        for name in pools
    )
    return (
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log info;\n{texts}events {{}}\n"
        f"http {{ access_log off; server {{ listen unix:{folder}/socket; root {folder}/site;\n{locations}}} }}\n"
    )


def trial(socket_path, pools, server):
    roots.wait_until(lambda: os.path.exists(socket_path) or server.poll() is not None, "Mayfly does not listen")
    names = [name for name in pools for _ in range(REQUESTS)]
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda name: ask(socket_path, name), names))
    for name in pools:
        got = {answer for it, answer in zip(names, answers, strict=True) if it == name}
        assert len(got) == 1 and next(iter(got)).replace(".", "").startswith(name[3:]), f"{name}: {got}"
        print(f"{name}: {REQUESTS} answers of PHP {next(iter(got))}")


def ask(socket_path, name):
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(60)
    connection.sock.connect(socket_path)
    connection.request("GET", "/" + name)
    answer = connection.getresponse()
    text = answer.read().decode()
    assert answer.status == 200, (name, answer.status, text)
    return text


if __name__ == "__main__":
    main()
