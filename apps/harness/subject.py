"""The server under test: mayfly, or nginx with PHP-FPM as the comparison.

A subject serves one directory on one loopback address. All of them promise
the same: pages shared for `ttl` seconds, none of a logged-in person's.
`nginx-careless` breaks that promise on purpose: it is how the isolation
checker shows that it can fail.
"""

import contextlib
import glob
import os
import subprocess

from .workdir import listens, stop, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = os.path.join(os.path.dirname(HERE), "files")
START_SECONDS = 15
NAMES = ("mayfly", "mayfly-config", "nginx", "nginx-careless")

# What is private in each application, as nginx patterns.
APPLICATIONS = {
    "wordpress": {
        "private_paths": r'"~^/wp-(admin/|login\.php|cron\.php)|^/xmlrpc\.php|[?&]preview="',
        "private_cookies": '"~wordpress_logged_in_|wordpress_sec_|wp-postpass_|comment_author_|wrote="',
        "refused": r"location ~ ^/wp-content/uploads/.*\.php$ { return 403; }",
        # Debian keeps what a site adds outside the package (README.Debian).
        "locations": "location /wp-content/ { root /var/lib/wordpress; }\n"
        "        location / { try_files $uri $uri/ /index.php$is_args$args; }",
    },
    "dokuwiki": {
        "private_paths": r'"~[?&]do=|^/lib/exe/(ajax|mediamanager)"',
        "private_cookies": '"~DokuWiki=|DW[0-9a-f]{32}|wrote="',
        "refused": r"location ~ ^/(bin|conf|data|inc|vendor)/ { return 403; }"
        "\n        location ~ ^/(README|VERSION|COPYING)$ { return 403; }",
        "locations": "location / { try_files $uri $uri/ /doku.php$is_args$args; }",
    },
}


class Subject:
    """A running server; `stop` returns what was wrong with its end, best nothing."""

    def __init__(self, workdir, name, process, port):
        self.workdir = workdir
        self.name = name
        self.process = process
        self.port = port
        self.address = workdir.address
        self.host = f"{workdir.address}:{port}"
        self.url = f"http://{self.host}"

    def stop(self):
        return stop(self.process)

    def logs(self):
        return self.workdir.log_tail(self.name)

    @contextlib.contextmanager
    def judged(self, report, name):
        """Stops it at the end, shows its log where a check has failed meanwhile or the scenario ended early, and checks
        that it ran until then."""
        failed = report.failed
        is_early = True
        try:
            yield
            is_early = False
        finally:
            wrong = self.stop()
            if is_early or report.failed > failed:
                report.note(self.logs())
        report.check(f"{name}: the server ran to the end and left no process behind", not wrong, wrong)


def start(workdir, options, application, root, more=(), params=None, port=None):
    """`more` are further words of the command line for Mayfly. With `params`, it runs what
    `serve --print-config` prints, and these FastCGI params as well."""
    port = port or workdir.free_port()
    if options.subject.startswith("mayfly"):
        process = _start_mayfly(workdir, options, root, port, more, params)
    else:
        process = _start_nginx(workdir, options, application, root, port)
    try:
        wait_for(options.subject, listens(workdir.address, port), START_SECONDS, process)
    except RuntimeError as error:
        raise RuntimeError(f"{error}\n{workdir.log_tail(options.subject)}") from None
    return Subject(workdir, options.subject, process, port)


def _start_mayfly(workdir, options, root, port, more, params):
    serve = [
        os.path.abspath(options.binary), "serve", root,
        "--listen", f"{workdir.address}:{port}",
        "--ttl", f"{round(options.ttl * 1000)}ms",
        "--workers", str(options.workers),
        *more,
    ]  # fmt: skip
    if options.subject == "mayfly" and not params:
        return workdir.spawn("mayfly", serve)
    printed = subprocess.run(
        serve + ["--print-config"], check=True, capture_output=True, text=True, timeout=30
    )
    text = with_params(printed.stdout, params or {})
    config = workdir.write("mayfly.conf", text)
    stay = [] if "daemon " in text else ["-g", "daemon off;"]
    return workdir.spawn(options.subject, [serve[0], "-c", config, *stay])


def with_params(text, params):
    """Adds to the params that are written already."""
    first = "        fastcgi_param SCRIPT_FILENAME "
    lines = "".join(f"        fastcgi_param {name} {value};\n" for name, value in params.items())
    if first not in text:
        raise RuntimeError("serve --print-config writes no FastCGI params")
    return text.replace(first, lines + first, 1)


def _start_nginx(workdir, options, application, root, port):
    socket_path = start_php_fpm(workdir, options.workers)
    careless = options.subject == "nginx-careless"
    values = {
        **APPLICATIONS[application],
        "dir": workdir.mkdir("nginx"),
        "php_socket": socket_path,
        "address": workdir.address,
        "port": str(port),
        "root": root,
        # nginx counts in whole seconds.
        "ttl": f"{max(1, round(options.ttl))}s",
        "wrote_seconds": str(max(1, round(options.ttl)) + 2),
        # The careless one is copied from many a tutorial: no look at cookies,
        # and what the application says about caching is ignored.
        "skip_cookie": '""' if careless else "$skip_cookie",
        "ignored_fields": "fastcgi_ignore_headers Cache-Control Expires Set-Cookie;" if careless else "",
    }
    config = fill(workdir, "nginx_main.conf", **values)
    return workdir.spawn(options.subject, ["/usr/sbin/nginx", "-c", config])


def fill(workdir, name, **values):
    """A configuration from a template of apps/files, written to the run's directory; its path."""
    with open(os.path.join(FILES, name), encoding="utf-8") as file:
        text = file.read()
    for key, value in values.items():
        text = text.replace("{{" + key + "}}", str(value))
    return workdir.write(name, text)


def start_with(workdir, options, template, port=None, through=(), **values):
    """The subject with a configuration that Mayfly and nginx both take. `through` are the words of a
    command that becomes the server, such as one that changes what it sees of the system."""
    port = port or workdir.free_port()
    folder = workdir.mkdir("subject")
    config = fill(workdir, template, dir=folder, address=workdir.address, port=port, **values)
    program = "/usr/sbin/nginx" if options.subject == "nginx" else os.path.abspath(options.binary)
    process = workdir.spawn(options.subject, [*through, program, "-p", folder, "-c", config])
    try:
        wait_for(options.subject, listens(workdir.address, port), START_SECONDS, process)
    except RuntimeError as error:
        raise RuntimeError(f"{error}\n{workdir.log_tail(options.subject)}") from None
    return Subject(workdir, options.subject, process, port)


def start_php_fpm(workdir, workers, port=None):
    """PHP-FPM on a socket of the run, or on a port of its address; where it listens."""
    binary = sorted(glob.glob("/usr/sbin/php-fpm*"))[-1]
    socket_path = workdir.join("php.sock")
    listen = f"{workdir.address}:{port}" if port else socket_path
    config = workdir.write(
        "php-fpm.conf",
        f"""[global]
error_log = {workdir.join("php-fpm-error.log")}
daemonize = no
[www]
user = www-data
group = www-data
listen = {listen}
listen.mode = 0666
pm = static
pm.max_children = {workers}
""",
    )
    process = workdir.spawn("php-fpm", [binary, "-y", config])
    is_there = listens(workdir.address, port) if port else lambda: os.path.exists(socket_path)
    wait_for("php-fpm", is_there, START_SECONDS, process)
    return listen
