"""A DokuWiki on Debian's package, which stays as it is.

The package reads /etc/dokuwiki/farm/HOST/ where that exists (its inc/preload.php):
the wiki gets a loopback address of its own as host, so one link named after
that address, removed at the end, is all that is added. Pages, media, users and
settings live in the scenario's directory.
"""

import os
import shutil
import subprocess

ROOT = "/usr/share/dokuwiki"
FARM = "/etc/dokuwiki/farm"
DATA_FOLDERS = ("attic", "cache", "index", "locks", "log", "media", "media_attic",
                "media_meta", "meta", "pages", "tmp")  # fmt: skip


class Wiki:
    def __init__(self, workdir):
        self.workdir = workdir
        self.title = "Mayfly test wiki"
        self.admin = "admin"
        self.password = os.urandom(9).hex()
        data = workdir.mkdir("data")
        for folder in DATA_FOLDERS:
            workdir.mkdir("data", folder)
        self.media = os.path.join(data, "media")
        conf = workdir.mkdir("wiki-conf")
        workdir.write("data/pages/start.txt", "====== Welcome ======\n\nThe start page.\n", "www-data")
        workdir.write(
            "wiki-conf/local.php",
            f"<?php\n$conf['title'] = '{self.title}';\n$conf['savedir'] = '{data}';\n"
            "$conf['useacl'] = 1;\n$conf['superuser'] = '@admin';\n"
            "$conf['dnslookups'] = 0;\n$conf['updatecheck'] = 0;\n",
            "www-data",
        )
        workdir.write("wiki-conf/acl.auth.php", "*\t@ALL\t1\n*\t@user\t8\n", "www-data")
        workdir.write(
            "wiki-conf/users.auth.php",
            f"{self.admin}:{bcrypt(self.password)}:Ada Admin:ada@example.test:admin,user\n",
            "www-data",
        )
        for name in ("plugins.php", "plugins.local.php", "plugins.required.php"):
            shutil.copy(f"/etc/dokuwiki/{name}", conf)
        if not os.path.isdir(FARM):
            os.mkdir(FARM)
            workdir.undo(lambda: os.rmdir(FARM))
        workdir.link_for_the_run(conf, f"{FARM}/{workdir.address}")


def bcrypt(password):
    done = subprocess.run(
        ["php", "-r", "echo password_hash($argv[1], PASSWORD_BCRYPT);", password],
        check=True, capture_output=True, text=True, timeout=20,
    )  # fmt: skip
    return done.stdout.strip()
