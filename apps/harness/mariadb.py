"""A MariaDB of the scenario's own: own data directory, unix socket, no network. MAYFLY_APPS_MYSQLD in the environment names
the server of a MySQL that takes its place."""

import atexit
import functools
import os
import pwd
import shutil
import subprocess
import tempfile

from .workdir import stop, wait_for

START_SECONDS = 30
# In the environment: where the data directory is that was made first.
MADE = "MAYFLY_APPS_MARIADB"
MYSQLD = os.environ.get("MAYFLY_APPS_MYSQLD")


def account():
    """Whom the server runs as. The program alone, without Debian's service, comes with no account of its own."""
    try:
        return pwd.getpwnam("mysql").pw_name
    except KeyError:
        return "daemon"


def options(data):
    """Of the server and of mariadb-install-db. A small log: what is written is little, and copied for each scenario.
    A server removes the temporary tables that it finds when it starts: each has its own folder for them."""
    log = "--innodb-redo-log-capacity=8M" if MYSQLD else "--innodb-log-file-size=8M"
    return ["--no-defaults", f"--user={account()}", log, f"--datadir={data}", f"--tmpdir={data}"]


class Database:
    """`spawn` starts its server."""

    def __init__(self, socket, name, user, password, spawn):
        self.socket = socket
        self.name = name
        self.user = user
        self.password = password
        self._spawn = spawn

    @property
    def address(self):
        """As `cache_learn_database` takes it."""
        return f"unix:{self.socket}"

    def start(self):
        self._process = self._spawn()
        wait_for("mariadb", self._answers, START_SECONDS, self._process)

    def restart(self):
        """As the service's manager does it."""
        stop(self._process, START_SECONDS)
        self.start()

    def beside(self, name):
        """Another database of the same server, with an account of its own."""
        return Database(self.socket, name, name, self.password, None)

    def client(self, program):
        """The words of a client's command line, without the name of the database."""
        return [program, "--no-defaults", f"--socket={self.socket}", f"--user={self.user}", f"--password={self.password}"]

    def _answers(self):
        probe = [*self.client("mariadb"), "-e", "SELECT 1", self.name]
        return subprocess.run(probe, capture_output=True, timeout=10).returncode == 0


@functools.cache
def first_data():
    """A data directory as mariadb-install-db makes it. That takes seconds, and a copy does not. The processes that this
    one starts find it as well."""
    if MADE in os.environ:
        return os.environ[MADE]
    folder = tempfile.mkdtemp(prefix="mayfly-mariadb-")
    os.chmod(folder, 0o755)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.chown(folder, account())
    install = ["mariadb-install-db", *options(folder), "--skip-test-db", "--auth-root-authentication-method=socket"]
    done = subprocess.run(
        [MYSQLD, *options(folder), "--initialize-insecure"] if MYSQLD else install,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"mariadb-install-db: {done.stdout}")
    os.environ[MADE] = folder
    return folder


def start(workdir, has_log=False, names=("site",), has_network=False):
    """Starts the server with empty databases and one user for each, who may read the binary log if there is one; the first of them.
    With `has_network` it listens at the run's address as well, on the usual port."""
    data = workdir.mkdir("mariadb", owner=account(), mode=0o755)
    socket = os.path.join(data, "sql.sock")
    database = Database(socket, names[0], names[0], os.urandom(9).hex(), lambda: workdir.spawn("mariadb", command))
    subprocess.run(["cp", "-a", f"{first_data()}/.", data], check=True, timeout=120)
    made = "".join(
        f"CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb4;\n"
        f"CREATE USER IF NOT EXISTS {name}@localhost IDENTIFIED BY '{database.password}';\n"
        f"GRANT ALL ON {name}.* TO {name}@localhost;\n"
        + (f"GRANT REPLICATION SLAVE ON *.* TO {name}@localhost;\n" if has_log else "")
        + (f"CREATE USER {name}@'%' IDENTIFIED BY '{database.password}';\nGRANT ALL ON {name}.* TO {name}@'%';\n" if has_network else "")
        for name in names
    )
    init = workdir.write("mariadb-init.sql", made)
    command = [
        MYSQLD or shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin"),
        *options(data),
        f"--socket={socket}",
        f"--pid-file={data}/pid",
        f"--init-file={init}",
        *([f"--bind-address={workdir.address}", "--port=3306"] if has_network else ["--skip-networking"]),
        *(["--mysqlx=OFF", "--secure-file-priv=NULL"] if MYSQLD else []),
        *(["--log-bin=log", "--server-id=1", "--binlog-format=ROW"] if has_log else ["--skip-log-bin"]),
        "--innodb-buffer-pool-size=64M",
        # The data lives for a minute: durability would only cost time.
        "--innodb-flush-log-at-trx-commit=0",
    ]
    database.start()
    return database
