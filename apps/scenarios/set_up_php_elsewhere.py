"""PHP in a container of its own (files/set_ups/php_elsewhere.conf), as Docker is mostly used.

PHP-FPM listens on TCP, under a name that only the server knows, and sees another document root. The
server has the static files and no script at all.
"""

import os
import subprocess

from harness import set_ups
from harness import subject as subjects
from harness.client import Client
from harness.set_ups import facts
from harness.workdir import Workdir

# As PHP's image has it.
PHP_PORT = 9000
NAME = "php"


def run(options, report):
    with Workdir("php-elsewhere", keep=options.keep) as workdir:
        site = set_ups.Site(workdir, "site.php", root="container")
        with open(os.path.join(site.root, "other.php"), "w", encoding="utf-8") as file:
            file.write("<?php echo $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['PATH_INFO'] ?? '';")
        public = workdir.mkdir("public")
        workdir.write("public/app.css", set_ups.STYLE)
        subjects.start_php_fpm(workdir, options.workers, port=PHP_PORT)
        name, through = name_of_php(report, workdir)
        subject = set_ups.start(
            workdir, options, "php_elsewhere", php=name, through=through, public=public, there=site.root, data=site.data
        )  # fmt: skip
        failed = report.failed
        client = Client(subject.address, subject.port)
        for word in ("MISS", "HIT"):
            page = client.get("/a/route?x=1")
            told = facts(page)
            is_right = (page.cache_word, told.get("script"), told.get("root")) == (word, f"{site.root}/index.php", site.root)
            report.check(f"PHP elsewhere: a page is made of PHP's own files ({word})", is_right, f"{page.status} {told}")
        front = client.get("/")
        report.check("PHP elsewhere: the front page is its index.php", facts(front) != {}, front.status)
        other = client.get("/other.php/more/path")
        is_right = (other.status, other.text) == (200, "/other.php /more/path")
        report.check("PHP elsewhere: another script, with a path behind it", is_right, f"{other.status} {other.text}")
        style = client.get("/app.css")
        report.check("PHP elsewhere: static files are here", style.text == set_ups.STYLE, style.status)
        # What PHP has beside its scripts is not served: here is another folder.
        hidden = client.get("/style.css")
        report.check("PHP elsewhere: and PHP's are not", hidden.text != set_ups.STYLE, hidden.text[:40])
        absent = client.get("/absent.php")
        report.check("PHP elsewhere: a script that is not there is PHP's 404", absent.status == 404, absent.status)
        answer = client.post("/comment", form={"text": "by TCP"})
        report.check("PHP elsewhere: a form gets there", answer.status == 303, answer.status)
        shown = facts(client.get("/fresh"))["comments"]
        report.check("PHP elsewhere: with its data", shown == ["by TCP"], shown)
        report.check("PHP elsewhere: the server ran to the end", not (wrong := subject.stop()), wrong)
        if report.failed > failed:
            report.note(subject.logs())
            report.note(workdir.log_tail("subject/error"))


def name_of_php(report, workdir):
    """What `fastcgi_pass` names, and the command through which the server knows it.

    In Docker's network a service has its name. Here the server gets an /etc/hosts of its own, which
    needs the right to mount; without it, the address does.
    """
    hosts = workdir.write("hosts", f"127.0.0.1 localhost\n{workdir.address} {NAME}\n")
    through = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', hosts]
    if subprocess.run([*through, "true"], capture_output=True).returncode == 0:
        return NAME, through
    report.note("PHP elsewhere: by its address, because nothing may be mounted here")
    return workdir.address, ()
