#!/usr/bin/env python3
"""The tools beside what they stand for: mayfly advise on a large log, mayfly bench beside wrk.

    bench/tools.py [--binary FILE] [--log-bytes N] [--seconds N]

Says how long advise needs for a generated log and how much memory, and what share of wrk's rate
mayfly bench makes from one core, with the server on another one.
"""

import argparse
import json
import os
import random
import re
import subprocess

from lib import load, subject

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
)
CONNECTIONS = 32


def write_log(path, most_bytes):
    """A day after the other: few pages are wanted often, many seldom, some by their campaigns."""
    draw = random.Random(1)
    second, written, lines = 0, 0, 0
    with open(path, "w", buffering=1 << 20) as log:
        while written < most_bytes:
            second += draw.random() < 0.05
            page = int(draw.paretovariate(0.6)) % 500_000
            query = f"?utm_source=mail&utm_id={lines}" if draw.random() < 0.1 else ""
            day, clock = second // 86_400, second % 86_400
            line = (
                f"192.0.2.{page % 250} - - [{1 + day % 28:02}/Nov/2026:{clock // 3600:02}:{clock // 60 % 60:02}:"
                f'{clock % 60:02} +0000] "GET /news/{page}/{query} HTTP/1.1" 200 {5000 + page % 20_000} '
                f'"https://example.org/" "{AGENTS[page % 3]}" MISS rt=0.1{page % 90 + 10}\n'
            )
            log.write(line)
            written += len(line)
            lines += 1
    return lines


def advise(binary, folder, most_bytes):
    log = os.path.join(folder, "access.log")
    lines = write_log(log, most_bytes)
    timed = ["/usr/bin/time", "-v", "taskset", "--cpu-list", "0", binary, "advise", "--json", log]
    done = subprocess.run(timed, check=True, capture_output=True, text=True)
    os.unlink(log)
    told = json.loads(done.stdout)
    assert told["lines"] == lines and not told["bad_lines"], told["bad_lines"]
    clock = re.search(r"Elapsed.*?([\d:.]+)$", done.stderr, re.MULTILINE)[1].split(":")
    return {
        "lines": lines,
        "seconds": sum(float(part) * 60**place for place, part in enumerate(reversed(clock))),
        "peak_mb": int(re.search(r"Maximum resident.*: (\d+)", done.stderr)[1]) // 1024,
    }


def beside_wrk(binary, folder, seconds):
    """The page is a text of the configuration: as cheap for the server as a hit."""
    port = subject.free_port()
    conf = os.path.join(folder, "bench.conf")
    with open(conf, "w") as file:
        file.write(
            f"worker_processes 1; pid {folder}/pid; error_log {folder}/error.log; events {{ }}\n"
            f"http {{ access_log off; keepalive_requests 100000000; server {{ listen 127.0.0.1:{port};\n"
            f"return 200 '{'x' * 2000}'; }} }}\n"
        )
    server = subprocess.Popen(["taskset", "--cpu-list", "1", binary, "-c", conf, "-g", "daemon off;"])
    url = f"http://127.0.0.1:{port}/"
    try:
        subprocess.run(["curl", "-s", "--retry", "50", "--retry-connrefused", "--retry-delay", "0", url],
                       check=True, stdout=subprocess.DEVNULL)
        turns = [(load.wrk(url, CONNECTIONS, seconds, core=0)["per_second"], bench(binary, url, seconds))
                 for _ in range(3)]
    finally:
        server.terminate()
        server.wait()
    wrk, own = (sorted(turn[which] for turn in turns)[1] for which in (0, 1))
    return {"wrk_per_second": wrk, "bench_per_second": own, "share": round(own / wrk, 2)}


def bench(binary, url, seconds):
    command = ["taskset", "--cpu-list", "0", binary, "bench", url, "--json",
               "--connections", str(CONNECTIONS), "--duration", f"{seconds}s"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert not told["errors"], told["errors"]
    return round(told["rate"])


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--binary", default=os.path.join(ROOT, "target/release/mayfly"))
    arguments.add_argument("--log-bytes", type=int, default=1_000_000_000)
    arguments.add_argument("--seconds", type=int, default=5)
    chosen = arguments.parse_args()
    with subject.Folder() as folder:
        print(json.dumps({
            "advise": advise(chosen.binary, folder, chosen.log_bytes),
            "bench": beside_wrk(chosen.binary, folder, chosen.seconds),
        }, indent=2))


if __name__ == "__main__":
    main()
