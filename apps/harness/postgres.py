"""A PostgreSQL of the scenario's own: own cluster, a socket, and the run's address if there is a network. It does not run as root."""

import glob
import os
import signal
import subprocess

from .workdir import wait_for

START_SECONDS = 60
ACCOUNT = "postgres"
AS_ACCOUNT = ["setpriv", f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--clear-groups"]
PORT = 5432


def program(name):
    """Debian keeps the programs of each version in a folder of its own."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    if not found:
        raise RuntimeError(f"{name} is missing: install postgresql")
    return found[-1]


class Database:
    def __init__(self, folder, name, user, password):
        self.folder, self.name, self.user, self.password = folder, name, user, password
        self.socket = os.path.join(folder, f".s.PGSQL.{PORT}")

    @property
    def address(self):
        """As `cache_learn_database` takes it."""
        return f"postgres:unix:{self.socket}/{self.name}"

    def client(self, *more):
        """The words of a client's command line that prints rows alone, and stops at the first error."""
        return [
            "env", f"PGPASSWORD={self.password}", "PGOPTIONS=--client-min-messages=warning", program("psql"), "--no-psqlrc", "--quiet", "--no-align", "--tuples-only",
            "--set=ON_ERROR_STOP=1", f"--host={self.folder}", f"--username={self.user}", f"--dbname={self.name}", *more,
        ]  # fmt: skip

    def answers(self):
        return subprocess.run(self.client("--command=SELECT 1"), capture_output=True, timeout=10).returncode == 0


def start(workdir, name="site", has_network=False):
    """Starts the server with an empty database and its owner."""
    data = workdir.mkdir("postgres", owner=ACCOUNT)
    password = os.urandom(9).hex()
    whole = Database(data, "postgres", "postgres", password)
    secret = workdir.write("postgres-password", password, owner=ACCOUNT, mode=0o600)
    cluster = os.path.join(data, "cluster")
    made = subprocess.run(
        [*AS_ACCOUNT, program("initdb"), "--no-sync", "--auth=scram-sha-256", "--username=postgres", "--encoding=UTF8",
         "--locale=C.UTF-8", f"--pwfile={secret}", "--pgdata", cluster],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, cwd="/",
    )  # fmt: skip
    if made.returncode != 0:
        raise RuntimeError(f"initdb: {made.stdout}")
    if has_network:
        with open(os.path.join(cluster, "pg_hba.conf"), "a", encoding="utf-8") as file:
            file.write(f"host all all {workdir.address}/32 scram-sha-256\n")
    settings = {
        "listen_addresses": workdir.address if has_network else "", "port": PORT, "unix_socket_directories": data,
        # The data lives for a minute: durability would only cost time.
        "fsync": "off", "synchronous_commit": "off", "shared_buffers": "32MB", "max_connections": 200,
    }  # fmt: skip
    options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    process = workdir.spawn("postgres", [*AS_ACCOUNT, program("postgres"), "-D", cluster, *options])
    # It does not wait for its clients.
    workdir.undo(lambda: process.poll() is None and process.send_signal(signal.SIGINT))
    wait_for("postgres", whole.answers, START_SECONDS, process)
    made = f"CREATE ROLE {name} LOGIN PASSWORD '{password}'; CREATE DATABASE {name} OWNER {name};"
    for statement in filter(str.strip, made.split(";")):
        subprocess.run(whole.client(f"--command={statement}"), check=True, timeout=60)
    return Database(data, name, name, password)
