#!/usr/bin/env python3
"""Compares `mayfly serve` and `mayfly convert` with Debian's Apache on the .htaccess files that six applications document.

    scripts/conformance/apache_htaccess.py [--binary FILE] [--way WAY] [--show] [SITE...]
    scripts/conformance/apache_htaccess.py --generated TREES [--seed FIRST] [--requests COUNT] [--binary FILE] [--show]

All serve the same folder (htaccess_sites.py) on loopback and get the same 200 requests for each site, in two ways:
`serve` is `mayfly serve` on the folder; `convert` is Mayfly with what `mayfly convert` makes of a virtual host that lets the
files count, with PHP by FastCGI. Compared are the status, where a redirect
leads, and what is served: a script with its path and query, or a file. Each request is `same`; `closed`, where what
Apache hands out is refused (`serve` keeps more closed than Apache does, and no file opens it); `asked`, where Apache has
no such file and the application is asked, which says so itself; `known`, for a reason that htaccess_sites.py gives; or
`different`, which fails the comparison. `--show` prints all that is not the same.

`--generated` compares trees of .htaccess files that htaccess_generator.py makes, one for each seed, with `htaccess on`, or with
`--way convert` what a virtual host is converted to that has their lines in sections, beside sections for addresses and patterns. An
answer is `closed here` where Mayfly refuses by intent: a POST to a file, and scripts where a line is meant to keep them from
running, and a virtual host with a line that `mayfly convert` names as one that keeps visitors out is not asked. It is `open` where Apache refuses (401, 403, 404, 405, 410) and Mayfly does not, which fails the comparison, as it does if
less than 97 % of what Apache gives is the same. Needs Debian's apache2 with mod_php,
php-fpm, and root, as whom all change to www-data.
"""

import argparse
import contextlib
import glob
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import htaccess_generator
import htaccess_sites

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))

from lib.ports import free_port  # noqa: E402

MODULES = "/usr/lib/apache2/modules"
LOADED = "mpm_prefork auth_basic authn_core authn_file authz_core authz_groupfile authz_host authz_user access_compat alias autoindex deflate dir env expires filter headers" \
    " mime negotiation rewrite setenvif".split()
START_SECONDS = 30
WAYS = ("serve", "convert")
# What a refusal may be called. Its page is not compared.
REFUSALS = (403, 404)
OUTCOMES = ("same", "closed", "asked", "known", "different")

APACHE = """
ServerRoot {work}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {work}/apache.pid
ErrorLog {work}/apache.log
User www-data
Group www-data
{modules}
LoadModule php_module {php}
TypesConfig /etc/mime.types
DocumentRoot {root}
DirectoryIndex index.html index.php
StartServers 2
MaxRequestWorkers 4
<FilesMatch ".+\\.ph(?:ar|p|tml)$">
SetHandler application/x-httpd-php
</FilesMatch>
<Directory />
Options FollowSymLinks
AllowOverride None
Require all denied
</Directory>
<Directory {root}>
Options Indexes FollowSymLinks
AllowOverride All
Require all granted
</Directory>
<FilesMatch "^\\.ht">
Require all denied
</FilesMatch>
"""

CONVERTED = """
user www-data;
daemon off;
pid {work}/converted.pid;
error_log {work}/converted.log;
worker_processes 1;
events {{ }}
http {{
    access_log off;
    include /etc/nginx/mime.types;
{servers}
}}
"""

VIRTUAL_HOST = """
<VirtualHost 127.0.0.1:{port}>
ServerName {name}
DocumentRoot {root}
{lines}
</VirtualHost>
"""

FPM = """
[global]
error_log = {work}/fpm.log
daemonize = no
[www]
user = www-data
group = www-data
listen = {work}/fpm.sock
listen.owner = www-data
pm = static
pm.max_children = 2
security.limit_extensions = .php .phtml .phar
"""


def write_site(site, folder):
    """The files of a site; they are for all to read."""
    texts = {path: f"the file {path}\n" for path in site["files"].split()}
    texts.update(dict.fromkeys(site["scripts"].split(), htaccess_sites.PHP))
    texts.update(site["rules"])
    for path, text in texts.items():
        whole = os.path.join(folder, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w", encoding="utf-8") as file:
            file.write(text)
    for path, _, _ in os.walk(folder):
        os.chmod(path, 0o755)


@contextlib.contextmanager
def running(command, port, log, environment=None):
    """A server in a process group of its own, from when it listens until it has ended."""
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=environment, start_new_session=True
        )
    try:
        until = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if process.poll() is not None or time.monotonic() > until:
                with open(log, encoding="utf-8", errors="replace") as text:
                    sys.exit(f"{command[0]} did not start: {text.read()}")
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def apache(work, root, port, extra="", checks=False):
    """`extra` stands at the end of the configuration. With `checks`, whether Apache takes the whole."""
    config = os.path.join(work, "apache.conf")
    modules = "\n".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in LOADED)
    php = sorted(glob.glob(f"{MODULES}/libphp*.so"))[-1]
    with open(config, "w", encoding="utf-8") as file:
        file.write(APACHE.format(work=work, port=port, modules=modules, php=php, root=root) + extra)
    if checks:
        done = subprocess.run(["/usr/sbin/apache2", "-t", "-f", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return contextlib.nullcontext(done.returncode == 0)
    return running(["/usr/sbin/apache2", "-D", "FOREGROUND", "-f", config], port, os.path.join(work, "apache.out"))


def mayfly(binary, work, folder, port):
    environment = {**os.environ, "RUNTIME_DIRECTORY": work, "CACHE_DIRECTORY": os.path.join(work, "cache")}
    command = [binary, "serve", folder, "--listen", f"127.0.0.1:{port}", "--ttl", "0"]
    return running(command, port, os.path.join(work, "mayfly.out"), environment)


@contextlib.contextmanager
def php_fpm(work):
    """PHP for what was converted."""
    config, socket_path = os.path.join(work, "fpm.conf"), os.path.join(work, "fpm.sock")
    with open(config, "w", encoding="utf-8") as file:
        file.write(FPM.format(work=work))
    program = sorted(glob.glob("/usr/sbin/php-fpm*"))[-1]
    process = subprocess.Popen([program, "-y", config], stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + START_SECONDS
        while not os.path.exists(socket_path):
            if process.poll() is not None or time.monotonic() > until:
                sys.exit(f"{program} did not start")
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(START_SECONDS)


def convert(binary, work, name, virtual_host):
    """What `mayfly convert` makes of a virtual host, and what it says; None where it names a line that keeps visitors out."""
    source, output = os.path.join(work, f"{name}.apache"), os.path.join(work, f"{name}.server")
    with open(source, "w", encoding="utf-8") as file:
        file.write(virtual_host)
    command = [binary, "convert", "--php", f"unix:{work}/fpm.sock", "--output", output, source]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 3, 4):
        sys.exit(f"mayfly convert: {done.stderr}")
    with open(output, encoding="utf-8") as file:
        return None if done.returncode == 4 else file.read(), done.stderr.splitlines()[-1]


def converted(binary, work, servers, port):
    config = os.path.join(work, "converted.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONVERTED.format(work=work, servers=servers))
    return running([binary, "-p", work, "-c", config], port, os.path.join(work, "converted.out"))


def ask(port, target):
    """Status, where it leads, and what was served."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest("GET", target, skip_host=True, skip_accept_encoding=True)
    connection.putheader("Host", "localhost")
    connection.endheaders()
    reply = connection.getresponse()
    body = reply.read().decode("utf-8", "replace")
    connection.close()
    location = (reply.getheader("Location") or "").replace(f"//localhost:{port}/", "//localhost/")
    location = location.removeprefix("http://localhost")
    is_own_page = body.startswith(("[", "the file "))
    return reply.status, location, body if is_own_page else ""


def outcome(known, target, theirs, ours):
    is_refusal = ours[0] in REFUSALS
    if theirs == ours or (is_refusal and theirs[0] in REFUSALS):
        return "same"
    if any(re.search(pattern, target) for pattern in known):
        return "known"
    if is_refusal and theirs[0] == 200:
        return "closed"
    is_of_application = ours[0] == 200 and ours[2].startswith(r'["\/index.php"')
    return "asked" if theirs[0] == 404 and is_of_application else "different"


def compare(name, way, port, answers, shows):
    """Asks what Apache has answered."""
    site = htaccess_sites.SITES[name]
    known = site.get("known", {}) if way == "serve" else site.get("known_converted", {})
    counts = dict.fromkeys(OUTCOMES, 0)
    for target, theirs in answers.items():
        ours = ask(port, target)
        found = outcome(known, target, theirs, ours)
        counts[found] += 1
        if found == "different" or (shows and found != "same"):
            print(f"  {found}: {target}\n    Apache: {theirs}\n    {way}: {ours}")
    print(f"{name}, {way}: {sum(counts.values())} requests, " + ", ".join(f"{n} {kind}" for kind, n in counts.items()))
    return counts["different"]


def compare_site(name, ways, binary, shows):
    site = htaccess_sites.SITES[name]
    work = tempfile.mkdtemp(prefix="mayfly-htaccess-")
    different = 0
    try:
        os.chmod(work, 0o755)
        folder = os.path.join(work, "site")
        write_site(site, folder)
        root = os.path.join(folder, site.get("root", ""))
        port = free_port()
        with apache(work, root, port):
            answers = {target: ask(port, target) for target in htaccess_sites.requests(site)}
        if "serve" in ways:
            port = free_port()
            with mayfly(binary, work, folder, port):
                different += compare(name, "serve", port, answers, shows)
        if "convert" in ways:
            port = free_port()
            lines = f"<Directory {root}>\nOptions FollowSymLinks\nAllowOverride All\nRequire all granted\n</Directory>"
            server, said = convert(binary, work, "site", VIRTUAL_HOST.format(port=port, name="localhost", root=root, lines=lines))
            print(f"{name}: {said}")
            with php_fpm(work), converted(binary, work, server, port):
                different += compare(name, "convert", port, answers, shows)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return different


# Of what Apache gives, at least so much is the same.
MIN_SAME = 0.97
# Trees that are served at a time, each by a server of its own name.
TREES_AT_A_TIME = 500

APACHE_TREE = """
<VirtualHost *:{port}>
ServerName t{seed}
DocumentRoot {root}
</VirtualHost>
"""

MAYFLY_TREES = """
user www-data;
daemon off;
pid {work}/trees.pid;
error_log {work}/trees.log crit;
worker_processes 1;
events {{ }}
http {{
    access_log off;
    server_names_hash_max_size 100000;
    include /etc/nginx/mime.types;
    index index.html index.php;
    htaccess on;
    absolute_redirect on;
{servers}
}}
"""

MAYFLY_TREE = """    server {{
        listen 127.0.0.1:{port};
        server_name t{seed};
        root {root};
        location ~ \\.ph(?:p|tml|ar)(?:/|$) {{
            fastcgi_split_path_info ^(.+?\\.ph(?:p|tml|ar))(/.*)?$;
            if (!-f $document_root$fastcgi_script_name) {{ return 404; }}
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
            fastcgi_param PATH_INFO $fastcgi_path_info;
            fastcgi_param QUERY_STRING $args;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param DOCUMENT_ROOT $document_root;
            fastcgi_pass unix:{work}/fpm.sock;
        }}
    }}
"""


def convert_tree(seed, root, rules, work, binary, port):
    """A virtual host of Apache's for a tree, and the server that it is converted to; None where Apache does not take the first,
    or a line is named as one that keeps visitors out."""
    text, kept = htaccess_generator.server(seed, root, rules)
    for folder in set(rules) - set(kept):
        os.remove(os.path.join(root, folder, ".htaccess"))
    host = VIRTUAL_HOST.format(port=port, name=f"t{seed}", root=root, lines=text)
    with apache(work, root, port, host, checks=True) as is_taken:
        if not is_taken:
            return None, None
    return host, convert(binary, work, f"t{seed}", host)[0]


def write_tree(seed, root, work):
    """The files of a generated tree."""
    for folder in htaccess_generator.FOLDERS:
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    for folder in htaccess_generator.FOLDERS:
        for name in (*htaccess_generator.FILES, *htaccess_generator.SCRIPTS):
            if os.path.join(folder, name) in htaccess_generator.FOLDERS:
                continue
            with open(os.path.join(root, folder, name), "w", encoding="utf-8") as file:
                is_script = name in htaccess_generator.SCRIPTS
                file.write(htaccess_sites.PHP if is_script else f"the file {folder}/{name}\n")
    rules = htaccess_generator.tree(seed, os.path.join(work, "users"), os.path.join(work, "groups"))
    for folder, text in rules.items():
        with open(os.path.join(root, folder, ".htaccess"), "w", encoding="utf-8") as file:
            file.write(text)
    return rules


class Asker:
    """Connections to a server, one for each address that is asked from."""

    def __init__(self, port):
        self.port = port
        self.connections = {}

    def ask(self, seed, method, target, fields, address):
        for is_last in (False, True):
            connection = self.connections.get(address)
            if connection is None:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20, source_address=(address, 0))
                self.connections[address] = connection
            try:
                connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
                for name, value in {"Host": f"t{seed}", "Content-Length": "0", **fields}.items():
                    connection.putheader(name, value)
                connection.endheaders()
                reply = connection.getresponse()
                body = reply.read().decode("utf-8", "replace")
                break
            except (OSError, http.client.HTTPException):
                connection.close()
                self.connections.pop(address, None)
                if is_last:
                    # Some rules end a process of Apache.
                    return 500, "no answer", "", ()
        location = (reply.getheader("Location") or "").replace(f"//t{seed}:{self.port}/", f"//t{seed}/")
        is_own_page = body.startswith(("[", "the file "))
        fields = tuple(reply.getheader(name) or "" for name in FIELDS)
        return reply.status, location, body if is_own_page and method != "HEAD" else "", fields


# Fields that are compared where the rest is the same.
FIELDS = ("X-A", "X-B", "Cache-Control")

# Lines by which scripts are meant not to run. In Debian's Apache they do: what names PHP's handler stands behind.
NO_SCRIPTS = re.compile(r"^(?:AddType text|ForceType|RemoveHandler|SetHandler|php_flag engine [o0]f?f?$)", re.MULTILINE)


def judge_tree(theirs, ours, method, rules):
    """What two answers come to."""
    refuses = (401, 403, 404, 405, 410)
    if theirs[0] in refuses and ours[0] < 400:
        return "open"
    if ours[1] == "no answer":
        return "no answer"
    if theirs[0] >= 400 and ours[0] >= 400:
        # The page of an error; Apache's own pages are not compared.
        return "both refuse" if theirs[2] == ours[2] or theirs[0] != ours[0] else "other page"
    if theirs[0] >= 500:
        return "open where Apache breaks"
    if theirs[:2] == ours[:2] and (theirs[2] == ours[2] or theirs[0] >= 300):
        return "same" if theirs[3] == ours[3] else "other fields"
    # A converted server runs scripts with the suffix .php only.
    is_other_script = ".phtml" in theirs[2]
    if ours[0] == 405 and method == "POST" or ours[0] == 403 and (is_other_script or NO_SCRIPTS.search(rules)):
        return "closed here"
    return "stricter" if ours[0] >= 400 else "different"


def compare_trees(seeds, chosen):
    """Asks Apache and Mayfly for the same trees: with `htaccess on`, or with what the files are converted to."""
    work = tempfile.mkdtemp(prefix="mayfly-htaccess-")
    binary, is_converted = os.path.abspath(chosen.binary), chosen.way == ["convert"]
    counts = {}
    try:
        os.chmod(work, 0o755)
        with open(os.path.join(work, "users"), "w", encoding="utf-8") as file:
            file.write("ada:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\nbob:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n")
        with open(os.path.join(work, "groups"), "w", encoding="utf-8") as file:
            file.write("staff: ada\n")
        roots = {seed: os.path.join(work, "trees", str(seed)) for seed in seeds}
        rules = {seed: write_tree(seed, root, work) for seed, root in roots.items()}
        theirs_port, ours_port = free_port(), free_port()
        if is_converted:
            found = {seed: convert_tree(seed, roots[seed], rules[seed], work, binary, theirs_port) for seed in seeds}
            seeds = [seed for seed in seeds if found[seed][1] is not None]
            counts["virtual hosts converted"] = len(seeds)
            counts["of them named as open"] = sum(host is not None and ours is None for host, ours in found.values())
            extra = "".join(found[seed][0] for seed in seeds)
            servers = "".join(found[seed][1] for seed in seeds).replace(f":{theirs_port}", f":{ours_port}")
            mayfly_server = converted(binary, work, servers, ours_port)
            rules = {seed: {"": found[seed][0], **rules[seed]} for seed in seeds}
        else:
            extra = "".join(APACHE_TREE.format(port=theirs_port, seed=seed, root=root) for seed, root in roots.items())
            servers = "".join(MAYFLY_TREE.format(port=ours_port, seed=seed, root=roots[seed], work=work) for seed in seeds)
            config = os.path.join(work, "trees.conf")
            with open(config, "w", encoding="utf-8") as file:
                file.write(MAYFLY_TREES.format(work=work, servers=servers))
            mayfly_server = running([binary, "-p", work, "-c", config], ours_port, os.path.join(work, "trees.out"))
        with apache(work, os.path.join(work, "trees"), theirs_port, extra), php_fpm(work), mayfly_server:
            askers = Asker(theirs_port), Asker(ours_port)
            for seed in seeds:
                for request in htaccess_generator.requests(seed, chosen.requests):
                    theirs, ours = (asker.ask(seed, *request) for asker in askers)
                    found = judge_tree(theirs, ours, request[0], "".join(rules[seed].values()))
                    counts[found] = counts.get(found, 0) + 1
                    if found == "open" or chosen.show and found not in ("same", "both refuse"):
                        print(f"{found}, seed {seed}: {request}\n  Apache: {theirs}\n  Mayfly: {ours}")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return counts


def compare_generated(chosen):
    """The comparison of so many trees; false where it fails."""
    first, count = chosen.seed, chosen.generated
    counts = {}
    for begin in range(first, first + count, TREES_AT_A_TIME):
        seeds = range(begin, min(begin + TREES_AT_A_TIME, first + count))
        for kind, number in compare_trees(seeds, chosen).items():
            counts[kind] = counts.get(kind, 0) + number
    given = sum(counts.get(kind, 0) for kind in ("same", "stricter", "different", "other fields"))
    same = counts.get("same", 0) / max(given, 1)
    shown = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))
    print(f"seeds {first} to {first + count - 1}: {shown}; {same:.2%} of what Apache gives is the same")
    return counts.get("open", 0) + counts.get("no answer", 0) == 0 and same >= MIN_SAME


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sites", nargs="*", metavar="SITE", help=", ".join(htaccess_sites.SITES))
    parser.add_argument("--binary", default=os.path.join(ROOT, "target/debug/mayfly"))
    parser.add_argument("--way", action="append", choices=WAYS, help="may be given more than once; all without it")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--generated", type=int, metavar="TREES")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=int, default=16, help="for each tree")
    chosen = parser.parse_args()
    if chosen.generated:
        sys.exit(0 if compare_generated(chosen) else 1)
    unknown = set(chosen.sites) - set(htaccess_sites.SITES)
    if unknown:
        parser.error(f"no such site: {', '.join(sorted(unknown))}")
    binary = os.path.abspath(chosen.binary)
    sites = chosen.sites or htaccess_sites.SITES
    different = [compare_site(name, chosen.way or WAYS, binary, chosen.show) for name in sites]
    sys.exit(1 if any(different) else 0)


if __name__ == "__main__":
    main()
