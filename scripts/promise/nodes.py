#!/usr/bin/env python3
"""Several nodes (`cache_nodes`): when a purge has returned, does any node begin an answer with older data?

    scripts/promise/nodes.py [--program target/debug/mayfly] [--rounds 2000] [--seconds 150] [--passes 1]
                             [--seed 1] [--only FAULT...] [--unchecked]

Three nodes on loopback, each behind a proxy of its own to one Redis; PHP-FPM, whose pages say which version they are;
writers that change a page through PHP, purge it in one of four ways and read it at another node (a round); 60 readers.
Meanwhile one fault follows another. Then the same with three Sentinels and an engine that is replaced. The wall clock
of one node is an hour ahead. history.py judges all answers. Ends with 1 where one was old, where there were fewer
rounds, or where nothing came from memory: then nothing was tried.

With --unchecked the nodes do not check their leases, which a build with debug assertions can be told: it ends with 0 if
old answers are found.
"""

import argparse
import collections
import glob
import http.client
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

import history
from engines import Proxies, Proxy, Redis, wait_until  # It makes bench/lib importable.
from lib.ports import free_port

HERE = os.path.dirname(os.path.abspath(__file__))
PAGES = 16
READERS = 60
READER_REST_SECONDS = 0.1
# A visitor's request that purges is answered after 2.3 s although its purge is not confirmed.
CONFIRMED_WITHIN_SECONDS = 2.2
# Longer than a lease and than a publisher waits for one.
LONG_SECONDS = 2.4
MIN_HITS = 100
# After a fault, rounds that it must not stop.
ROUNDS_AFTER_A_FAULT = 20
# On a machine that does much else.
SETTLE_SECONDS = 60
REQUEST_SECONDS = 8

CONFIGURATION = """
daemon off; {user} worker_processes 2; pid {folder}/pid; error_log {folder}/error.log notice;
env LD_PRELOAD; env WALL_CLOCK_FILE; env MAYFLY_FAILPOINT_LEASE;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    cache_nodes {engine};
    {http}
    fastcgi_cache_path {folder}/cache keys_zone=pages:10m;
    server {{
        listen 127.0.0.1:{port};
        server_name site.test;
        keepalive_requests 100000000;
        fastcgi_param SCRIPT_FILENAME {php}/page.php;
        fastcgi_param REQUEST_METHOD $request_method;
        fastcgi_param PAGE $uri;
        fastcgi_keep_conn on;
        location /p/ {{
            fastcgi_pass unix:{php}/fpm;
            fastcgi_cache pages; fastcgi_cache_key $uri; fastcgi_cache_valid 200 1h; fastcgi_cache_lock on;
            cache_purge_fields on;
            fastcgi_cache_purge PURGE from 127.0.0.1;
            add_header X-Cache $upstream_cache_status;
        }}
        # Past what is stored.
        location /php/ {{ fastcgi_pass unix:{php}/fpm; }}
        # A change that says nothing to the server.
        location /change/ {{ fastcgi_pass unix:{php}/fpm; }}
        location = /purge {{ cache_purge_api; }}
    }}
}}
"""

FPM = """
[global]
error_log = {php}/fpm.log
daemonize = no
[www]
listen = {php}/fpm
pm = static
pm.max_children = 24
{user}
"""


class Php:
    """PHP-FPM, and the versions of the pages."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "php")
        os.makedirs(self.folder)
        with open(os.path.join(HERE, "page.php")) as page, open(f"{self.folder}/page.php", "w") as copy:
            copy.write(page.read())
        is_root = os.getuid() == 0
        with open(f"{self.folder}/fpm.conf", "w") as file:
            file.write(FPM.format(php=self.folder, user="user = root" if is_root else ""))
        program = sorted(glob.glob("/usr/sbin/php-fpm*"))[-1]
        command = [program, "-n", "-F", "-y", f"{self.folder}/fpm.conf", *(["-R"] if is_root else [])]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        wait_until(lambda: os.path.exists(f"{self.folder}/fpm"), "php-fpm listening")

    def be_slow(self, page, milliseconds):
        path = f"{self.folder}/slow-{page}"
        if milliseconds:
            with open(path, "w") as file:
                file.write(str(milliseconds))
        else:
            os.remove(path)

    def stop(self):
        self._process.terminate()
        self._process.wait()


class Node:
    def __init__(self, chosen, folder, name, engine, php, clock=None, http=""):
        self.name, self.port, self.folder = name, free_port(), os.path.join(folder, name)
        os.makedirs(self.folder)
        self.is_up = threading.Event()
        self._program = chosen.program
        self._config = os.path.join(self.folder, "conf")
        with open(self._config, "w") as file:
            file.write(CONFIGURATION.format(
                folder=self.folder, port=self.port, engine=engine, php=php.folder, http=http,
                user="user root;" if os.getuid() == 0 else ""))  # fmt: skip
        self._environment = {**os.environ, **(clock or {})}
        if chosen.unchecked:
            self._environment["MAYFLY_FAILPOINT_LEASE"] = "unchecked"
        self.start()

    def start(self):
        with open(f"{self.folder}/output", "a") as output:
            self.process = subprocess.Popen(
                [self._program, "-p", self.folder, "-c", self._config], stdout=output, stderr=output,
                start_new_session=True, env=self._environment)  # fmt: skip
        self._group = self.process.pid
        wait_until(self._listens, f"{self.name} listening")
        self.is_up.set()

    def _listens(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name} ended: {self.log()[-1000:]}")
        try:
            Client(self).ask("GET", "/none")
            return True
        except OSError:
            return False

    def log(self):
        text = ""
        for name in ("error.log", "output"):
            if os.path.exists(f"{self.folder}/{name}"):
                with open(f"{self.folder}/{name}", errors="replace") as file:
                    text += file.read()
        return text

    def signal(self, how):
        """To all its processes, those as well that took another's place."""
        os.killpg(self._group, how)

    def is_running(self):
        self.process.poll()
        try:
            self.signal(0)
            return True
        except ProcessLookupError:
            return False

    def pause(self, seconds):
        self.is_up.clear()
        self.signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.signal(signal.SIGCONT)
        self.is_up.set()

    def kill(self):
        self.is_up.clear()
        self.signal(signal.SIGKILL)
        wait_until(lambda: not self.is_running(), f"the end of {self.name}")

    def finish(self):
        """A clean stop, which writes what only memory has."""
        self.is_up.clear()
        with open(f"{self.folder}/pid") as file:
            os.kill(int(file.read()), signal.SIGTERM)
        wait_until(lambda: not self.is_running(), f"the end of {self.name}")

    def upgrade(self):
        command = [self._program, "upgrade", "--socket", f"{self.folder}/pid.control"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"{self.name}: upgrade: {done.stdout}\n{self.log()[-1000:]}")

    def stop(self):
        if self.is_running():
            self.signal(signal.SIGCONT)
            self.kill()


class Client:
    """A kept connection to a node."""

    def __init__(self, node):
        self.node = node
        self._connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=REQUEST_SECONDS)

    def ask(self, method, target, body=None):
        """(status, X-Cache, text)

        # Raises
        OSError if there is no answer."""
        fields = {"Host": "site.test", "Content-Type": "application/json"}
        try:
            self._connection.request(method, target, body, fields)
            answer = self._connection.getresponse()
            return answer.status, answer.getheader("X-Cache", ""), answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise OSError(str(error)) from error


def version_in(text):
    found = re.fullmatch(r"version (\d+);", text)
    return int(found[1]) if found else None


class Trial:
    """The nodes, those who use them, and what they saw."""

    def __init__(self, chosen, folder, php, proxies, has_sentinels):
        self.chosen, self.php, self.has_sentinels = chosen, php, has_sentinels
        self.folder = os.path.join(folder, "sentinel" if has_sentinels else "one")
        self.random = random.Random(chosen.seed)
        self.history, self.lock = history.History(), threading.Lock()
        self.counts = collections.Counter()
        self.is_over = threading.Event()
        self._threads, self.sentinels, self.proxies = [], [], []
        self.engine = Redis(self.folder, "engine")
        if has_sentinels:
            self.replica = Redis(self.folder, "replica", "--replicaof", "127.0.0.1", str(self.engine.port))
            self.sentinels = [Redis(self.folder, f"sentinel{at}", sentinel_of=self.engine) for at in range(3)]
            wait_until(self._has_replica, "a replica that the Sentinels know")
            places = ",".join(f"127.0.0.1:{one.port}" for one in self.sentinels)
            engines = [f"sentinel://{places}/pages"] * 3
        else:
            self.proxies = [Proxy(proxies, self.engine.port) for _ in range(3)]
            engines = [f"redis://127.0.0.1:{proxy.port}" for proxy in self.proxies]
        clocks = [None, None, self._clock_of_another_hour()]
        self.nodes = [
            Node(chosen, self.folder, f"node{at}", engines[at], php, clocks[at]) for at in range(3)
        ]

    def _has_replica(self):
        def knows(sentinel):
            return sentinel.say("SENTINEL", "CKQUORUM", "pages").startswith("+OK 3") and sentinel.say(
                "SENTINEL", "REPLICAS", "pages"
            ).startswith("*1")

        return all(knows(sentinel) for sentinel in self.sentinels)

    def _clock_of_another_hour(self):
        library, ahead = os.path.join(self.folder, "clock.so"), os.path.join(self.folder, "ahead")
        source = os.path.join(os.path.dirname(HERE), "faults/wall_clock.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O", "-o", library, source], check=True)
        with open(ahead, "wb") as file:
            file.write(struct.pack("<q", 3600))
        return {"LD_PRELOAD": library, "WALL_CLOCK_FILE": ahead}

    # Writers and readers.

    def begin(self):
        for page in range(PAGES):
            self._begin(self._write, page)
        for number in range(READERS):
            self._begin(self._read, number)

    def _begin(self, work, argument):
        thread = threading.Thread(target=work, args=(argument,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _read(self, number):
        chance = random.Random(number)
        client = Client(self.nodes[number % len(self.nodes)])
        while not self.is_over.is_set():
            if client.node.is_up.wait(0.5):
                self.look(client, chance.randrange(PAGES))
            self.is_over.wait(READER_REST_SECONDS * chance.random() * 2)

    def look(self, client, page):
        """Reads a page and notes what it showed; whether there was a page."""
        asked = time.monotonic()
        try:
            status, cache, text = client.ask("GET", f"/p/{page}")
        except OSError:
            self.count("no answer")
            return False
        version = version_in(text)
        if status != 200 or version is None:
            self.count(f"status {status}")
            return False
        self.count("from memory" if cache == "HIT" else "from PHP")
        self.history.answers.append(history.Answer(asked, page, version, client.node.name, cache))
        return True

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def _write(self, page):
        chance = random.Random(1000 + page)
        clients = [Client(node) for node in self.nodes]
        while not self.is_over.is_set():
            up = [client for client in clients if client.node.is_up.is_set()]
            one = chance.choice(up)
            way = chance.choice(("field", "tag", "url", "method"))
            try:
                version = self._change_and_purge(one, page, way)
            except OSError:
                version = None
            if version is None:
                self.count("purges that did not return")
                continue
            self.history.purges.append(history.Purge(time.monotonic(), page, version, one.node.name, way))
            another = [client for client in clients if client is not one and client.node.is_up.is_set()]
            if another and self.look(chance.choice(another), page):
                self.count("rounds")

    def _change_and_purge(self, client, page, way):
        """The version that no answer may be older than from now on; None if the purge has not returned."""
        if way == "field":
            began = time.monotonic()
            status, _, text = client.ask("POST", f"/p/{page}", "")
            has_returned = status == 200 and time.monotonic() - began < CONFIRMED_WITHIN_SECONDS
            return version_in(text) if has_returned else None
        _, _, text = client.ask("POST", f"/change/{page}", "")
        version = version_in(text)
        ask = {
            "tag": ("POST", "/purge", json.dumps({"tags": [f"page-{page}"]})),
            "url": ("POST", "/purge", json.dumps({"urls": [f"http://site.test/p/{page}"]})),
            "method": ("PURGE", f"/p/{page}"),
        }
        status, _, _ = client.ask(*ask[way])
        # 404: nothing was stored there just then.
        return version if status in (200, 404) else None

    # Faults.

    def run(self, faults, rounds, ends):
        self.settle("the start")
        for name in faults * self.chosen.passes:
            FAULTS[name](self)
            self.count("faults")
            self.settle(name)
        wait_until(lambda: self.counts["rounds"] >= rounds, f"{rounds} rounds", max(1, ends - time.monotonic()))

    def settle(self, what):
        wanted = self.counts["rounds"] + ROUNDS_AFTER_A_FAULT
        wait_until(lambda: self.counts["rounds"] >= wanted, f"{ROUNDS_AFTER_A_FAULT} rounds after {what}", SETTLE_SECONDS)

    def restart_with_data(self):
        self.engine.kill()
        self.engine.start()

    def restart_without_data(self):
        self.engine.kill()
        self.engine.forget()
        self.engine.start()

    def stop_engine(self):
        self.engine.signal(signal.SIGSTOP)
        time.sleep(LONG_SECONDS)
        self.engine.signal(signal.SIGCONT)

    def flush(self):
        self.engine.say("FLUSHALL")

    def trim(self):
        self.engine.say("XTRIM", "mayfly:log", "MAXLEN", "0")

    def cut_one(self):
        proxy = self.random.choice(self.proxies)
        proxy.be("cut")
        time.sleep(LONG_SECONDS)
        proxy.be("whole")

    def flicker(self):
        for _ in range(6):
            proxy = self.random.choice(self.proxies)
            proxy.be("cut")
            time.sleep(self.random.random() * 0.1)
            proxy.be("whole")

    def slow_down(self):
        for proxy in self.proxies:
            proxy.be("slow")
        time.sleep(1.5)
        for proxy in self.proxies:
            proxy.be("whole")

    def mute_one(self):
        proxy = self.random.choice(self.proxies)
        proxy.be("mute")
        time.sleep(LONG_SECONDS)
        proxy.be("whole")

    def stop_nodes(self):
        """With requests under way at each."""
        for seconds in (0.05, 0.4, LONG_SECONDS):
            self.random.choice(self.nodes).pause(seconds)

    def crash_after_publishing(self):
        """What the engine answers is held back, so that the node cannot know that its purge is in the log."""
        at = self.random.randrange(len(self.nodes))
        node, proxy = self.nodes[at], self.proxies[at]
        node.is_up.clear()
        # What its writers have begun is published by then.
        time.sleep(0.2)
        proxy.be("mute")
        tag = f"crash-{self.random.random()}"
        purge = threading.Thread(target=self._try, args=(Client(node), "POST", "/purge", json.dumps({"tags": [tag]})))
        purge.start()
        ends = time.monotonic() + 1
        while time.monotonic() < ends:
            if tag in self.engine.say("XREVRANGE", "mayfly:log", "+", "-", "COUNT", "100", lines=3000):
                self.count("crashes after publishing")
                break
        node.kill()
        proxy.be("cut")
        purge.join()
        proxy.be("whole")
        node.start()

    def _try(self, client, *request):
        try:
            client.ask(*request)
        except OSError:
            self.count("no answer")

    def start_one_again(self):
        """Its pages are on its disk, and the others purge while it is away."""
        for end in (Node.kill, Node.finish, Node.kill):
            node = self.random.choice(self.nodes)
            end(node)
            self.settle("the end of a node")
            node.start()
            self.settle("the start of a node")

    def upgrade_one(self):
        """Its pages go over to the program that takes its place, while all purge."""
        for _ in range(3):
            self.random.choice(self.nodes).upgrade()

    def rejoin_with_slow_fetch(self):
        """A fetch begins before a purge elsewhere and ends after its node has come back."""
        at, page = self.random.randrange(len(self.nodes)), self.random.randrange(PAGES)
        self.php.be_slow(page, 3200)
        self._try(Client(self.nodes[at]), "POST", "/purge", json.dumps({"tags": [f"page-{page}"]}))
        fetch = threading.Thread(target=self.look, args=(Client(self.nodes[at]), page))
        fetch.start()
        time.sleep(0.05)
        self.php.be_slow(page, 0)
        self.proxies[at].be("cut")
        time.sleep(LONG_SECONDS)
        self.proxies[at].be("whole")
        fetch.join()

    def fail_over_with_lost_tail(self):
        """The replica lacks what the engine has confirmed last."""
        self.replica.signal(signal.SIGSTOP)
        time.sleep(0.3)
        self.engine.kill()
        self.replica.signal(signal.SIGCONT)
        self._exchange_engines()
        self.replica.start()
        wait_until(self._has_replica_again, "the old engine follows the new one")

    def fail_over_while_stopped(self):
        """The engine goes on as if nothing had happened, after another one has taken over."""
        self.engine.signal(signal.SIGSTOP)
        self._exchange_engines()
        self.replica.signal(signal.SIGCONT)
        wait_until(self._has_replica_again, "the old engine follows the new one")

    def _exchange_engines(self):
        wait_until(lambda: self._is_master(self.replica), "a failover")
        self.engine, self.replica = self.replica, self.engine

    def _is_master(self, engine):
        return engine.say("INFO", "replication", lines=3).endswith("role:master")

    def _has_replica_again(self):
        # The Sentinels may have gone back to the first one.
        if self._is_master(self.replica) and not self._is_master(self.engine):
            self.engine, self.replica = self.replica, self.engine
        return self.engine.say("WAIT", "1", "100") == ":1" and self._has_replica()

    def end(self):
        self.is_over.set()
        for proxy in self.proxies:
            proxy.be("whole")
        for node in self.nodes:
            node.is_up.set()
        for thread in self._threads:
            thread.join(2 * REQUEST_SECONDS)

    def stop(self):
        for one in (*self.nodes, *self.sentinels, self.engine, *([self.replica] if self.has_sentinels else [])):
            one.stop()


ONE_ENGINE = (
    Trial.restart_with_data, Trial.restart_without_data, Trial.stop_engine, Trial.flush, Trial.trim, Trial.cut_one,
    Trial.flicker, Trial.slow_down, Trial.mute_one, Trial.stop_nodes, Trial.crash_after_publishing,
    Trial.rejoin_with_slow_fetch, Trial.start_one_again, Trial.upgrade_one,
)  # fmt: skip
SENTINELS = (Trial.fail_over_with_lost_tail, Trial.fail_over_while_stopped)
FAULTS = {fault.__name__: fault for fault in ONE_ENGINE + SENTINELS}


def try_with(chosen, folder, php, proxies, faults, rounds):
    """Whether all was as it must be."""
    trial = Trial(chosen, folder, php, proxies, faults is SENTINELS)
    names = [fault.__name__ for fault in faults if fault.__name__ in chosen.only]
    began = time.monotonic()
    trouble = ""
    try:
        trial.begin()
        trial.run(names, rounds, began + chosen.seconds)
    except RuntimeError as error:
        trouble = f"{error}\n" + "\n".join(one.log()[-1500:] for one in (*trial.nodes, *trial.sentinels[:1]))
    finally:
        trial.end()
        trial.stop()
    old = trial.history.old()
    counts = dict(sorted(trial.counts.items()))
    print(f"{', '.join(names)}: {time.monotonic() - began:.0f} s, {len(trial.history.purges)} purges, "
          f"{len(trial.history.answers)} answers, {len(old)} old; {counts}", flush=True)  # fmt: skip
    for answer, purge in old[:5]:
        print(f"  {answer}\n    after {purge}")
    if chosen.unchecked:
        return bool(old)
    if trouble:
        print(trouble)
    is_tried = counts.get("from memory", 0) > MIN_HITS and counts.get("rounds", 0) >= rounds
    return not old and not trouble and is_tried


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", default="target/debug/mayfly")
    parser.add_argument("--rounds", type=int, default=2000, help="of which a fifth with Sentinels")
    parser.add_argument("--seconds", type=float, default=150, help="until then there are so many, in each half")
    parser.add_argument("--passes", type=int, default=1, help="how often each fault comes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--unchecked", action="store_true")
    chosen = parser.parse_args()
    chosen.program = os.path.abspath(chosen.program)
    if chosen.unchecked:
        chosen.only = ["cut_one"]
    history.judges_as_the_sentence_says()
    is_good = True
    with tempfile.TemporaryDirectory(prefix="mayfly-nodes-") as folder:
        php, proxies = Php(folder), Proxies()
        try:
            for faults, share in ((ONE_ENGINE, 0.8), (SENTINELS, 0.2)):
                if any(fault.__name__ in chosen.only for fault in faults):
                    is_good &= try_with(chosen, folder, php, proxies, faults, int(chosen.rounds * share))
        finally:
            php.stop()
            proxies.stop()
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
