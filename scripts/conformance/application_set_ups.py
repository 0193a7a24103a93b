#!/usr/bin/env python3
"""Asks the set-ups of examples/set-ups end to end: each answer of each table, twice.

    scripts/conformance/application_set_ups.py [--binary FILE] [SET-UP...]

For each set-up, a folder gets the files that its table names: a script says how it was called, every other file holds
its own path. PHP-FPM runs them on a unix socket; the server listens on free ports of 127.0.0.1, with a certificate made
for the purpose. Paths, ports and the socket of the configuration are replaced, and nothing else.

The tables hold for Debian's nginx, too (`--binary /usr/sbin/nginx`), which is how they are checked. What stands on a line
that begins with @mayfly or @nginx holds for that server alone.
"""

import argparse
import contextlib
import http.client
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))

from lib import php, subject  # noqa: E402

FOLDER = os.path.join(ROOT, "examples/set-ups")
TYPES = "text/html html htm; text/css css; text/javascript js; text/plain txt; image/png png; image/jpeg jpg; text/csv csv;"
ANSWER_SECONDS = 20
# A directive of a module that Debian's nginx is built without.
PURGE = re.compile(r"fastcgi_cache_purge [^;]*;")
SCRIPT = """<?php
header('X-Powered-By: PHP');
foreach (%s as $line) { header($line); }
if (isset($_GET['cache'])) { header('Cache-Control: ' . $_GET['cache']); }
$query = ($_SERVER['QUERY_STRING'] ?? '') === '' ? '' : '?' . $_SERVER['QUERY_STRING'];
$path = ($_SERVER['PATH_INFO'] ?? '') === '' ? '' : ' +' . $_SERVER['PATH_INFO'];
echo 'php ', substr(__FILE__, strlen(%s)), $query, $path, "\\n";
"""


class Table:
    """What a file NAME.expected says (examples/set-ups/README.md)."""

    def __init__(self, path, kind):
        self.at, self.files, self.sends, self.rows = None, [], {}, []
        with open(path, encoding="utf-8") as file:
            lines = enumerate(file.read().splitlines(), 1)
        for number, line in lines:
            condition = re.match(r"@(mayfly|nginx) ", line)
            if condition and condition[1] != kind:
                continue
            self._read(number, line[condition.end() :] if condition else line)

    def _read(self, number, line):
        word, _, rest = line.partition(" ")
        if word == "at":
            self.at = rest
        elif word == "files":
            self.files += rest.split()
        elif word == "sends":
            script, _, field = rest.partition(" ")
            self.sends.setdefault(script, []).append(field)
        elif word.isupper():
            self.rows.append(Row(number, line, self.at))
        elif word not in ("", "#"):
            raise ValueError(f"line {number}: expected at, files, sends, a comment or a method: {line}")


class Row:
    """A request and what is expected, of its first and its second time."""

    def __init__(self, number, line, at):
        request, *cells = [cell.strip() for cell in line.split(" | ")]
        statuses, self.answer, caches, *self.expected = cells + [""] * (3 - len(cells))
        self.number, self.request = number, request
        self.method, target, *_ = request.split(" ")
        self.url = urllib.parse.urlsplit(target if "://" in target else at + target)
        self.fields = dict(part.split(": ", 1) for part in re.findall(r"\[([^]]*)\]", request))
        self.statuses = twice(statuses)
        # An empty cell says nothing.
        self.caches = twice(caches) if caches else None

    def differences(self, turn, answer):
        """What is not as expected, in words."""
        said = {"status": (self.statuses[turn], answer.status)}
        if self.answer:
            said["body"] = (self.answer, answer.first_line[: len(self.answer)] if self.answer == "file" else answer.first_line)
        if self.caches:
            said["cache"] = (self.caches[turn], answer.field("X-Cache") or "-")
        for field in self.expected:
            name, _, value = field.partition(": ")
            if name.startswith("!"):
                said[name] = (None, answer.field(name[1:]))
            else:
                said[name] = (value, answer.field(name))
        return [f"{name} is {found!r}, expected {wanted!r}" for name, (wanted, found) in said.items() if wanted != found]


def twice(cell):
    """`MISS HIT`, or one word for both times."""
    words = cell.split()
    return words if len(words) == 2 else [cell, cell]


class Answer:
    """A response, or a connection that was closed without one."""

    def __init__(self, response=None, ports=()):
        self._ports = "|".join(map(str, ports))
        self.status = str(response.status) if response else "closed"
        self._headers = response.headers if response else {}
        lines = response.read().decode("utf-8", "replace").splitlines() if response else []
        self.first_line = lines[0] if lines else ""

    def field(self, name):
        """All values of a field, joined; without the port that the server has here alone."""
        values = self._headers.get_all(name) if self._headers else None
        return re.sub(rf":({self._ports})(?=/)", "", ", ".join(values)) if values else None


class SetUp:
    """A server with one of the configurations, from `with` to its end."""

    def __init__(self, name, binary, folder, socket_path, certificate):
        self.name, self.kind = name, subject.kind_of(binary)
        self.table = Table(os.path.join(FOLDER, f"{name}.expected"), self.kind)
        self._certificate = certificate
        self._tls_port = subject.free_port()
        self._daemon = subject.Daemon(name, folder)
        self._site = os.path.join(self._daemon.folder, "srv", name)
        self._write_files()
        self._binary, self._config = binary, self._write_config(socket_path)
        self._daemon.start(subject.command_of(binary, self._daemon.folder, self._config))

    def __enter__(self):
        self._daemon.wait()
        return self

    def __exit__(self, *_):
        self._daemon.stop()

    def _write_files(self):
        for path in {*self.table.files, *self.table.sends}:
            text = f"file /{path}\n"
            if path.endswith(".php"):
                fields = "[" + ", ".join(map(quoted, self.table.sends.get(path, []))) + "]"
                text = SCRIPT % (fields, quoted(self._site))
            write(os.path.join(self._site, path), text)

    def _write_config(self, socket_path):
        with open(os.path.join(FOLDER, f"{self.name}.conf"), encoding="utf-8") as file:
            text = file.read()
        if self.kind == "nginx":
            text = PURGE.sub("return 405;", text)
        folder = self._daemon.folder
        for written, meant in (
            ("unix:/run/php/php-fpm.sock", f"unix:{socket_path}"),
            ("/srv/", f"{folder}/srv/"),
            ("/var/cache/set-ups/", f"{folder}/cache/"),
            ("/etc/ssl/set-ups.crt", f"{self._certificate}.crt"),
            ("/etc/ssl/set-ups.key", f"{self._certificate}.key"),
            ("listen 80", f"listen 127.0.0.1:{self._daemon.port}"),
            ("listen 443", f"listen 127.0.0.1:{self._tls_port}"),
        ):
            text = text.replace(written, meant)
        temporary = "".join(f"{kind}_temp_path temp; " for kind in ("client_body", "fastcgi", "proxy", "scgi", "uwsgi"))
        user = "user root;" if os.getuid() == 0 else ""
        text = f"daemon off; pid pid; error_log error.log; {user}\n" + text.replace("http {", "http { " + temporary, 1)
        shutil.copy(os.path.join(ROOT, "packaging/conf/fastcgi.conf"), folder)
        write(os.path.join(folder, "mime.types"), f"types {{ {TYPES} }}\n")
        config = os.path.join(folder, f"{self.name}.conf")
        write(config, text)
        return config

    def unsafe(self):
        """What `mayfly check` calls unsafe in the configuration, in its words."""
        said = subprocess.run([self._binary, "check", self._config], capture_output=True, text=True).stdout
        return said[said.find("\nunsafe: ") :].splitlines() if "\nunsafe: " in said else []

    def differences(self):
        """Every answer that is not as the table says."""
        found = []
        for row in self.table.rows:
            for turn in (0, 1):
                for difference in row.differences(turn, self.ask(row)):
                    found.append(f"{self.name}.expected:{row.number}: {row.request}, asked {turn + 1}×: {difference}")
        return found

    def ask(self, row):
        host, target = row.url.hostname, row.url.path + (f"?{row.url.query}" if row.url.query else "")
        connection = http.client.HTTPConnection("127.0.0.1", self._daemon.port, timeout=ANSWER_SECONDS)
        if row.url.scheme == "https":
            trust = ssl.create_default_context(cafile=f"{self._certificate}.crt")
            plain = socket.create_connection(("127.0.0.1", self._tls_port), ANSWER_SECONDS)
            connection.sock = trust.wrap_socket(plain, server_hostname=host)
        with contextlib.closing(connection):
            try:
                connection.request(row.method, target, "a=b" if row.method in ("POST", "PUT") else None, {"Host": host, **row.fields})
                return Answer(connection.getresponse(), (self._daemon.port, self._tls_port))
            except http.client.RemoteDisconnected:
                return Answer()


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def names():
    """All set-ups."""
    return sorted(name.removesuffix(".conf") for name in os.listdir(FOLDER) if name.endswith(".conf"))


def hosts_of(name):
    """The host names in a table."""
    with open(os.path.join(FOLDER, f"{name}.expected"), encoding="utf-8") as file:
        return set(re.findall(r"https://([a-z0-9.-]+)", file.read()))


def make_certificate(path, hosts):
    """A certificate for these names and its key."""
    subprocess.run([
        "openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=set-ups", "-newkey", "ec",
        "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", f"{path}.key", "-out", f"{path}.crt",
        "-addext", "subjectAltName=" + ",".join(f"DNS:{host}" for host in sorted(hosts)),
    ], check=True, capture_output=True)


@contextlib.contextmanager
def surroundings(chosen):
    """A folder, PHP-FPM's socket and a certificate, for as long as some set-ups are asked."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        certificate = os.path.join(folder, "certificate")
        make_certificate(certificate, set().union({"example.com"}, *map(hosts_of, chosen)))
        with php.PhpFpm(folder) as fpm:
            yield folder, fpm.socket, certificate
            # Its workers have nothing to bring to an end, and would take half a second for it.
            fpm.kill()


def differences(binary, name, around):
    """What one set-up answers differently from its table; how many requests were made."""
    with SetUp(name, binary, *around) as set_up:
        return set_up.differences(), 2 * len(set_up.table.rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set_ups", nargs="*", metavar="SET-UP", default=names())
    parser.add_argument("--binary", default=os.path.join(ROOT, "target/debug/mayfly"))
    chosen = parser.parse_args()
    failed = 0
    with surroundings(chosen.set_ups) as around:
        for name in chosen.set_ups:
            found, asked = differences(os.path.abspath(chosen.binary), name, around)
            print(f"{name}: {asked} requests, {len(found)} answered differently", *found, sep="\n    ", flush=True)
            failed += bool(found)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
