#!/usr/bin/env python3
"""Asks a Mayfly that counts where it goes (`-Cprofile-generate`) for a bit of everything.

The counts tell the compiler which way branches usually go and which code belongs
together (scripts/build.sh). They are taken from ordinary traffic: browsers that want
pages compressed, visitors who are logged in, crawlers that revalidate, files, pages
that are new, pages that expire, and an HTTP upstream. Measures nothing.
"""

import argparse
import os
import subprocess
import types

import encrypted
from lib import load, peers, php, subject, upstream
from proxying import KB

BROWSER = [
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language: en-GB,en;q=0.8,de;q=0.5", "Accept-Encoding: gzip, deflate, br, zstd",
    "Cookie: _ga=GA1.1.1234567890.1700000000; theme=dark", "Referer: https://www.example.org/",
]
# Target, options of bench-load beyond it, fields, requests. Few pages that are
# compressed anew: their loops would outweigh all the rest.
VISITS = [
    ("/bare/a?bytes=40", [], [], 60_000),
    ("/bare/b?bytes=21504", [], [], 40_000),
    ("/pages/c?bytes=21504", [], BROWSER, 20_000),
    ("/pages/d?bytes=400", [], BROWSER, 10_000),
    ("/index?bytes=3000", [], BROWSER, 5_000),
    ("/pages/{}?bytes=5000", ["--keys", "zipf:300"], BROWSER, 20_000),
    ("/pages/{}?bytes=900", ["--keys", "sequence:1000000"], [], 5_000),
    ("/pages/e?bytes=2000", [], [*BROWSER, "Cookie: session=1"], 3_000),
    ("/pages/c?bytes=21504", ["--method", "HEAD"], [], 5_000),
    ("/soon/f?bytes=21504", [], BROWSER, 20_000),
    ("/pages/g?bytes=2000", ["--per-connection", "1"], [], 3_000),
    ("/files/1k.html", [], [], 20_000),
    ("/files/1k.html", [], BROWSER, 5_000),
    ("/files/64k.html", [], [], 10_000),
    ("/small", [], [], 60_000),
    ("/small", [], BROWSER, 5_000),
    ("/large", [], [], 20_000),
    ("/kept/{}", ["--keys", "zipf:200"], [], 10_000),
]
# Scheme, target, options of h2load beyond it, requests.
ENCRYPTED_VISITS = [
    ("http", "/bare/a?bytes=40", encrypted.STREAMS, 40_000),
    ("http", "/bare/b?bytes=21504", (*encrypted.STREAMS, *encrypted.SMALL_WINDOWS), 10_000),
    ("https", "/bare/a?bytes=40", encrypted.STREAMS, 40_000),
    ("https", "/bare/b?bytes=21504", encrypted.STREAMS, 20_000),
    ("https", "/small", encrypted.STREAMS, 20_000),
    ("https", "/bare/b?bytes=21504", encrypted.KEPT, 20_000),
    # A handshake for each.
    ("https", "/bare/a?bytes=40", ("--h1", "-c", "500"), 500),
]


def visit_encrypted(ports):
    for scheme, target, options, count in ENCRYPTED_VISITS:
        url = f"{scheme}://127.0.0.1:{ports[scheme]}{target}"
        subprocess.run(["h2load", "-n", str(count), *options, url], check=True, capture_output=True, timeout=60)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--load", required=True, help="bench-load")
    parser.add_argument("--floor", required=True, help="bench-floor")
    chosen = parser.parse_args()
    peers.Floor.tool = chosen.floor
    anywhere = types.SimpleNamespace(core=None)
    with subject.Folder() as folder, php.PhpFpm(folder, 8) as fpm, peers.Floor(
        anywhere, folder, upstream.http_response(b"x" * KB)
    ) as small, peers.Floor(anywhere, folder, upstream.http_response(b"x" * (64 * KB))) as large:
        site = peers.Site(folder, None)
        for path in (site.files, os.path.join(site.files, "files")):
            os.chmod(path, 0o755)
        key, _ = encrypted.make_keys(folder)
        ports = {"http": subject.free_port(), "https": subject.free_port()}
        with subject.Server(
            chosen.binary, "training.conf", folder, SOCKET=fpm.socket, EXECUTIONS=fpm.executions,
            SMALL=small.port, LARGE=large.port, FILES=site.files,
            PLAIN=ports["http"], TLS=ports["https"], KEY=key,
        ) as server:
            for target, more, fields, count in VISITS:
                options = ["--count", str(count), "--seconds", "10", *more]
                for field in fields:
                    options += ["--field", field]
                figures, _, _ = load.bench_load(chosen.load, server, target, None, options, 60)
                if not figures["requests"]:
                    raise SystemExit(f"{target}: no answer; {figures}")
            visit_encrypted(ports)


if __name__ == "__main__":
    main()
