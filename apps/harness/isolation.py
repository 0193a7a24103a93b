"""The judge of every response: did anything of one visitor reach another?

`Ledger.judge` is called with each response and the visitor who asked. It
knows no application beyond what the marker plug-in prints and WordPress's
names of cookies, so each rule is one function that returns violations. A
visitor is a `Visitor`; secrets carry the names of those who may see them.
"""

import collections
import re
import threading

from .client import cookie_pair, is_deletion

MARKER = re.compile(r"<!-- (?:&lt;!-- )?for user:(\d+)")
NONCE = re.compile(
    r"""(?:_wpnonce=|nonce['"]?\s*[:=]\s*['"]?|nonce['"]\s+value=['"]|createNonceMiddleware\(\s*['"])([0-9a-f]{10})\b"""
)
PERSONAL_COOKIE = re.compile(r"^(wordpress_(?!test_cookie)|wp-|comment_author|PHPSESSID|shop_session|DokuWiki|DW)")
EXAMPLES_KEPT = 12
# How long a change is looked for after it was first seen.
WATCH_AFTER_SECONDS = 4
# For so long after its lifetime `serve` shows a page while a new one is made (`cache_stale`). Visitors whose page is not
# stored come first, so that on a slow machine a refresh waits its turn.
STALE_SECONDS = 10.0


class Visitor:
    """Somebody with a cookie jar; `user_id` is 0 for whoever is not logged in."""

    def __init__(self, name, client, user_id=0):
        self.name = name
        self.client = client
        self.user_id = user_id


class Ledger:
    def __init__(self):
        self.responses = 0
        self.by_kind = collections.Counter()
        self.violations = collections.Counter()
        self.examples = []
        self._secrets = {}  # text -> names of the visitors who may see it
        self._nonces = {}  # nonce -> owner
        self._cookies = {}  # (name, value) -> visitor's name
        self._watches = {}  # text -> Watch
        self.delays = []
        # Stale pages because PHP failed or did not keep up.
        self.shown_for_trouble = 0
        # Of responses that did not come from memory.
        self.made_seconds = []
        self.slowest = 0.0
        self._lock = threading.Lock()

    def add_secret(self, text, *names):
        with self._lock:
            self._secrets[text] = frozenset(names)

    def watch(self, watch):
        with self._lock:
            self._watches[watch.text] = watch

    def violate(self, rule, visitor, response, detail):
        with self._lock:
            self.violations[rule] += 1
            if len(self.examples) < EXAMPLES_KEPT:
                self.examples.append(
                    f"{rule}: {visitor.name} asked {response.url} "
                    f"({response.status}, {response.cache_word}): {detail}"
                )

    def judge(self, visitor, response, expected_user=None, statuses=(200,), crowd=False):
        """Checks one response; returns it. `expected_user`: if not the visitor's own id."""
        user_id = visitor.user_id if expected_user is None else expected_user
        text = response.text
        fields = "\n".join(f"{name}: {value}" for name, value in response.fields)
        found = [
            *self._wrong_person(response, text, user_id),
            *self._secrets_of_others(visitor, text, fields),
            *self._nonces_of_others(user_id, text, fields),
            *self._cookies_of_others(visitor, response, crowd),
            *_incomplete(response, text, statuses),
        ]
        if crowd and response.method == "GET":
            found.extend(self._late(visitor, response, text))
        with self._lock:
            self.shown_for_trouble += crowd and _is_shown_for_trouble(response)
            if not response.is_hit:
                self.made_seconds.append(response.ended - response.began)
                self.slowest = max(self.slowest, self.made_seconds[-1])
            self.responses += 1
            who = "anonymous" if crowd else "logged in" if visitor.user_id else "visitor with cookies"
            self.by_kind[(who, response.status, response.cache_word)] += 1
        for rule, detail in found:
            self.violate(rule, visitor, response, detail)
        return response

    def _wrong_person(self, response, text, user_id):
        stated = set(response.all("x-for-user")) | set(MARKER.findall(text))
        for other in sorted(stated - {str(user_id)}):
            kind = "page of another person" if other != "0" else "anonymous page for a user"
            yield kind, f"made for user {other}, asked by user {user_id}"
        is_page = "</html>" in text[-200:]
        if is_page and user_id == 0 and 'id="wpadminbar"' in text:
            yield "admin bar for anonymous", "wpadminbar"

    def _secrets_of_others(self, visitor, text, fields):
        with self._lock:
            secrets = list(self._secrets.items())
        for secret, names in secrets:
            if visitor.name not in names and (secret in text or secret in fields):
                yield "secret of another person", f"{secret} belongs to {', '.join(sorted(names))}"

    def _nonces_of_others(self, user_id, text, fields):
        # WordPress makes the nonces of all who are not logged in alike.
        asking = f"user {user_id}" if user_id else "anonymous"
        for nonce in set(NONCE.findall(text)) | set(NONCE.findall(fields)):
            with self._lock:
                owner = self._nonces.setdefault(nonce, asking)
            if owner != asking:
                yield "nonce of another person", f"{nonce} belongs to {owner}"

    def _cookies_of_others(self, visitor, response, crowd):
        lines = response.all("set-cookie")
        if lines and response.is_hit:
            yield "Set-Cookie from memory", lines[0]
        for line in lines:
            name, value = cookie_pair(line)
            # The crowd only reads: nobody has a reason to give it a cookie.
            if crowd and name != "shop_session":
                yield "cookie for anonymous", line
            if is_deletion(line) or not PERSONAL_COOKIE.match(name):
                continue
            with self._lock:
                owner = self._cookies.setdefault((name, value), visitor.name)
                seen_before = owner != visitor.name
            if seen_before:
                yield "Set-Cookie of another person", f"{line} belongs to {owner}"

    def _late(self, visitor, response, text):
        with self._lock:
            watches = [w for w in self._watches.values() if w.target == response.url]
        is_for_trouble = _is_shown_for_trouble(response)
        for watch in watches:
            if watch.text in text:
                with self._lock:
                    if not watch.is_out:
                        watch.is_out = True
                        self.delays.append(max(0.0, response.ended - watch.written))
                    if watch.seen is None and _is_kept_or_compared(response):
                        watch.seen = response.ended
                        watch.seen_in = f"{visitor.name}, {response.field('cache-status')}"
            elif is_for_trouble:
                # An old page rather than none: how old it may be is bounded by `cache_stale` alone.
                continue
            elif watch.is_older_than_seen(response):
                after = response.began - watch.seen
                now = response.field("cache-status")
                took = response.ended - response.began
                yield "older page after newer", f"{watch.text}: {now} in {took:.3f} s, asked {after:.3f} s after {watch.seen_in}"
            elif watch.is_late(response, self.slowest):
                late = response.began - watch.written
                yield "change not shown in time", f"{watch.text} missing after {late:.2f} s: {response.field('cache-status')}"
            if watch.seen is not None and response.began > watch.seen + WATCH_AFTER_SECONDS:
                with self._lock:
                    self._watches.pop(watch.text, None)

    def unseen(self, targets):
        """Changes to the given targets that no anonymous response has shown yet."""
        with self._lock:
            return [w for w in self._watches.values() if not w.is_out and w.target in targets]


class Watch:
    """A text that anonymous views of `target` must show after the lifetime.

    After the lifetime a view may still get the older copy, once, while its
    request makes the server refresh; `refresh_seconds` after such a view the
    new text is due. What was read before the change may arrive as late as the
    slowest page of the run was made, which a busy machine prolongs.

        written ---- lifetime ----> first view asks ---- refresh, slowest ----> due
    """

    def __init__(self, text, target, written, lifetime, refresh_seconds):
        self.text = text
        self.target = target
        self.stale_from = written + lifetime
        self.written = written
        self.lifetime = lifetime
        self.refresh_seconds = refresh_seconds
        self.asked = None
        # An anonymous view has shown it.
        self.is_out = False
        # When a view first showed it that the server kept or compared; who saw it, and by which way of the server.
        self.seen = None
        self.seen_in = None

    def is_older_than_seen(self, response):
        """A later request must not travel back to an older copy, unless that is fresh still.

        Whoever saw the text first may have had an answer of their own, beside a fresh copy.
        """
        if self.seen is None:
            return False
        fresh_until = self.seen + (self.lifetime if response.cache_word == "HIT" else 0)
        return response.began > fresh_until

    def is_late(self, response, slowest):
        """Judges a response without the text; remembers the first after the lifetime."""
        if response.began <= self.stale_from:
            return False
        if self.asked is None:
            self.asked = response.ended
            return False
        return response.began > self.asked + self.refresh_seconds + slowest


def _is_kept_or_compared(response):
    """Not an answer for one visitor who has waited too long, of which the server may know nothing afterwards."""
    status = response.field("cache-status") or ""
    return response.is_hit or any(word in status for word in ("; stored", "; collapsed", "detail=unproven"))


def _is_shown_for_trouble(response):
    """A stale page that stands in for a PHP that fails, is slow, or for which too many requests wait."""
    status = response.field("cache-status") or ""
    lifetime = re.search(r"; hit; ttl=-(\d+)", status)
    return "detail=upstream-trouble" in status or lifetime is not None and int(lifetime[1]) > STALE_SECONDS


def _incomplete(response, text, statuses):
    if response.status not in statuses:
        yield "unexpected status", f"{response.status}: {text[:120]!r}"
    kind = response.field("content-type") or ""
    if response.status == 200 and "text/html" in kind and "</html>" not in text[-400:] and text[:1] == "<":
        if "<html" in text[:2000]:
            yield "truncated page", f"{len(text)} characters, ends {text[-60:]!r}"
