#!/usr/bin/env python3
"""Large configurations: how long a start and a reload take, and what they hold after many reloads.

Four files that are generated: 10,000 prefix locations, 10,000 locations with regular expressions, 500
servers, and a map of 100,000 lines. Mayfly and nginx have the same files, start
in turns, and are reloaded with another answer to `/version`: a start takes until the first answer, a reload
until the first new one. Memory is what `smaps_rollup` calls Pss, of all processes, after the last reload.
"""

import itertools
import os
import signal
import statistics
import time

from lib import load, peers, process, report, subject

NAME = "large"
TITLE = "Large configurations"

STARTS, RELOADS = 7, 100
MB = 1 << 20
MAX_TIMES = 1.5
ANSWER_SECONDS = 30

MAIN = """daemon off; @USER@ pid pid; error_log error.log notice; worker_processes 1;
events {{ worker_connections 1024; }}
http {{
access_log off;
{http}
server {{ listen 127.0.0.1:@PORT@;
location = /version {{ return 200 @VERSION@; }}
{locations}
}} }}
"""


def prefixes():
    return "", "\n".join(f"location /path{number}/ {{ return 200 a{number}; }}" for number in range(10_000))


def regexes():
    return "", "\n".join(f"location ~ ^/path{number}/.*\\.php$ {{ return 200 a{number}; }}" for number in range(10_000))


def servers():
    site = """server {{ listen 127.0.0.1:@PORT@; server_name host{0}.example.com www.host{0}.example.com; root /var/www/{0};
index index.php; location / {{ try_files $uri $uri/ /index.php?$args; }}
location ~ \\.php$ {{ fastcgi_pass unix:/run/php.sock; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; }}
location ~* \\.(?:css|js|png|jpg|gif|svg|woff2)$ {{ expires 30d; }} location ~ /\\. {{ deny all; }} }}"""
    return "server_names_hash_max_size 8192; server_names_hash_bucket_size 128;", "} " + "\n".join(
        site.format(number) for number in range(500)
    ).rstrip("}").rstrip()


def redirects():
    lines = "\n".join(f"/old/path/{number} /new/path/{number};" for number in range(100_000))
    http = f"map_hash_max_size 262144; map $uri $new {{\n{lines}\n}}"
    return http, "location / { if ($new) { return 301 $new; } return 404; }"


LARGE = {"10,000 prefixes": prefixes, "10,000 expressions": regexes, "500 servers": servers, "a map of 100,000": redirects}


class Server(subject.Daemon):
    def __init__(self, binary, folder, template):
        super().__init__(subject.kind_of(binary), folder)
        self.template, self.version = template, 0
        self.took = self.first_answer(lambda: self.start(subject.command_of(binary, self.folder, self.config)))

    def reload(self):
        return self.first_answer(lambda: os.kill(self.pid, signal.SIGHUP))

    def first_answer(self, begin):
        """Seconds from `begin` to the first answer of a configuration that is written now."""
        self.version += 1
        self.config = self.configure(self.template, self.name, {"VERSION": f"v{self.version}"})
        request, wanted = load.request_bytes("GET", "/version", ()), f"v{self.version}".encode()
        began = time.monotonic()
        begin()
        while True:
            try:
                if load.ask_once(self.port, request).endswith(wanted):
                    break
            except OSError:
                pass
            if time.monotonic() > began + ANSWER_SECONDS:
                raise SystemExit(f"{self.name} does not answer {wanted}")
            time.sleep(0.001)
        return time.monotonic() - began


def measure_one(chosen, folder, name):
    http, locations = LARGE[name]()
    template = os.path.join(folder, "large.conf")
    with open(template, "w") as file:
        file.write(MAIN.format(http=http, locations=locations))
    programs = [chosen.binary, chosen.nginx]
    starts, timed = ({subject.kind_of(program): [] for program in programs} for _ in range(2))
    memory = {}
    for turn, program in itertools.product(range(chosen.starts), programs):
        with Server(program, folder, template) as server:
            starts[server.name].append(server.took)
            if turn:
                continue
            timed[server.name] += [server.reload() for _ in range(chosen.reloads)]
            # Workers of former configurations end.
            time.sleep(1)
            memory[server.name] = sum(map(process.proportional_bytes, process.tree(server.pid))) / MB
    median = {
        "start_ms": {name: round(statistics.median(each) * 1000, 1) for name, each in starts.items()},
        "reload_ms": {name: round(statistics.median(each) * 1000, 1) for name, each in timed.items()},
        "memory_mb": {name: round(each, 1) for name, each in memory.items()},
    }
    return median


def measure(chosen):
    result = report.Result(NAME, TITLE, chosen.binary)
    chosen.starts, chosen.reloads = (3, 9) if chosen.quick else (STARTS, RELOADS)
    with subject.Folder() as folder:
        for name in LARGE:
            figures = measure_one(chosen, folder, name)
            result.figures[name] = figures
            for what, limit in (("start_ms", MAX_TIMES), ("reload_ms", MAX_TIMES), ("memory_mb", 1.0)):
                mayfly, nginx = figures[what]["mayfly"], figures[what]["nginx"]
                result.check(f"{name}: {what}, {mayfly} beside nginx's {nginx}", round(mayfly / nginx, 2), limit)
    return result


if __name__ == "__main__":
    report.run(report.options(__doc__), measure)
