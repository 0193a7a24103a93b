"""Bots in their disguises, and visitors beside them. Every request has a connection of its own."""

import http.client
import itertools
import random
import threading
import time

from . import load

BOTS = 60
BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
NAMED = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"
# Between two pages of a visitor.
PAUSE = 0.3
numbers = itertools.count()


class Disguise:
    """What bots say they are, where they come from, and what else they do."""

    def __init__(self, agent, addresses, assets=False, slow=False):
        self.agent, self.addresses, self.assets, self.slow = agent, addresses, assets, slow


DISGUISES = {
    "named": Disguise(NAMED, ["127.0.0.2"]),
    "like a browser": Disguise(BROWSER, ["127.0.0.2"]),
    "from 60 addresses": Disguise(BROWSER, [f"127.1.0.{n + 1}" for n in range(60)]),
    "from 600 addresses": Disguise(BROWSER, [f"127.{n % 20 + 2}.{n // 20}.1" for n in range(600)]),
    "with assets": Disguise(BROWSER, ["127.0.0.2"], assets=True),
    "slow readers": Disguise(BROWSER, ["127.0.0.2"], slow=True),
}


class Reply:
    """What matters of an answer; status 0 if there is none."""

    def __init__(self, status=0, cookie="", body=b""):
        self.status, self.cookie, self.body = status, cookie, body


def ask(port, target, agent=BROWSER, source="127.0.0.1", cookie=None, body=None, slow=False):
    """One request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=(source, 0))
    try:
        fields = {"User-Agent": agent, **({"Cookie": cookie} if cookie else {})}
        connection.request("POST" if body else "GET", target, body=body, headers=fields)
        answer = connection.getresponse()
        parts = []
        while part := answer.read(65536 if slow else None):
            parts.append(part)
            if slow:
                time.sleep(0.02)
        return Reply(answer.status, answer.getheader("Set-Cookie", "").split(";")[0], b"".join(parts))
    except (OSError, http.client.HTTPException):
        return Reply()
    finally:
        connection.close()


class Storm:
    """`with Storm(...) as storm: ...`; connections that ask without a pause until the end. `cost` makes the arguments
    of a page from a source of chance."""

    def __init__(self, port, disguise, cost, connections=BOTS, path="/calendar/"):
        self.port, self.disguise, self.cost, self.path = port, disguise, cost, path
        self.served = self.refused = self.broken = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(n,), daemon=True) for n in range(connections)]

    def _ask(self, number):
        disguise = self.disguise
        chance = random.Random(number)
        size = "&bytes=1000000" if disguise.slow else ""
        while not self._stop.is_set():
            source = chance.choice(disguise.addresses)
            if disguise.assets:
                ask(self.port, "/files/style.css", disguise.agent, source)
            target = f"{self.path}{next(numbers)}?{self.cost(chance)}{size}"
            status = ask(self.port, target, disguise.agent, source, slow=disguise.slow).status
            with self._lock:
                self.served += status == 200
                self.refused += status in (429, 503)
                self.broken += status not in (200, 429, 503)
            if status != 200:
                self._stop.wait(0.2)

    def rate(self, seconds):
        """Answers per second, from now on."""
        before, began = self.served, time.monotonic()
        time.sleep(seconds)
        return (self.served - before) / (time.monotonic() - began)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()


class Times:
    """Milliseconds of answers, and how many failed."""

    def __init__(self):
        self.milliseconds, self.failed = [], 0

    def take(self, *arguments, **others):
        began = time.monotonic()
        reply = ask(*arguments, **others)
        self.milliseconds.append(1000 * (time.monotonic() - began))
        self.failed += reply.status != 200
        return reply

    def share(self, percent):
        return round(load.percentile(sorted(self.milliseconds), percent) or 0, 1)

    def summary(self):
        return {"p50_ms": self.share(50), "p95_ms": self.share(95), "p99_ms": self.share(99), "count": len(self.milliseconds), "failed": self.failed}


def visit(port, cost, seconds, readers=2):
    """Times of visitors' pages and of another's writes."""
    pages, writes = Times(), Times()
    ends_at = time.monotonic() + seconds

    def read(number):
        source = f"127.200.0.{number + 1}"
        while time.monotonic() < ends_at:
            pages.take(port, f"/page/{next(numbers)}?{cost}", source=source)
            ask(port, "/files/style.css", source=source)
            time.sleep(PAUSE)

    def write():
        source = "127.200.1.1"
        cookie = ask(port, f"/?{cost}&session", source=source).cookie
        ask(port, "/files/style.css", source=source)
        while time.monotonic() < ends_at:
            writes.take(port, f"/comment?{cost}", source=source, cookie=cookie, body=b"text=a")
            time.sleep(PAUSE)

    visitors = [threading.Thread(target=read, args=(number,)) for number in range(readers)]
    visitors.append(threading.Thread(target=write))
    for one in visitors:
        one.start()
    for one in visitors:
        one.join()
    return pages, writes
