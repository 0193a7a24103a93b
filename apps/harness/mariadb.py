"""A MariaDB of the scenario's own: own data directory, unix socket, no network."""

import os
import shutil
import subprocess

from .workdir import wait_for

START_SECONDS = 30


class Database:
    def __init__(self, socket, name, user, password):
        self.socket = socket
        self.name = name
        self.user = user
        self.password = password


def start(workdir):
    """Starts the server with one empty database and one user for it."""
    data = workdir.mkdir("mariadb", owner="mysql", mode=0o755)
    socket = os.path.join(data, "sql.sock")
    database = Database(socket, "site", "site", os.urandom(9).hex())
    common = ["--no-defaults", f"--datadir={data}", "--user=mysql"]
    subprocess.run(
        ["mariadb-install-db", *common, "--skip-test-db", "--auth-root-authentication-method=socket"],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=120,
    )
    init = workdir.write(
        "mariadb-init.sql",
        f"CREATE DATABASE {database.name} CHARACTER SET utf8mb4;\n"
        f"CREATE USER {database.user}@localhost IDENTIFIED BY '{database.password}';\n"
        f"GRANT ALL ON {database.name}.* TO {database.user}@localhost;\n",
    )
    process = workdir.spawn(
        "mariadb",
        [
            shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin"),
            *common,
            f"--socket={socket}",
            f"--pid-file={data}/pid",
            f"--init-file={init}",
            "--skip-networking",
            "--skip-log-bin",
            "--innodb-buffer-pool-size=64M",
            # The data lives for a minute: durability would only cost time.
            "--innodb-flush-log-at-trx-commit=0",
        ],
    )

    def answers():
        probe = ["mariadb", "--no-defaults", f"--socket={socket}", f"--user={database.user}",
                 f"--password={database.password}", "-e", "SELECT 1", database.name]  # fmt: skip
        return subprocess.run(probe, capture_output=True, timeout=10).returncode == 0

    wait_for("mariadb", answers, START_SECONDS, process)
    return database
