"""What comes of each form and link of an application (files/guests) that guests use, and of writes that another site forges."""

import collections
import concurrent.futures
import itertools
import threading
import time
import urllib.parse

from . import guests
from .guests import Guest

CARTS = 20
CHOOSE = 4
# The key of a comment is good after two seconds, as without a cache.
KEY_SECONDS = 2.3
EVIL = "http://evil.example"
# What a browser says of a write from another page than the site's.
FORGED = {
    "another origin": {"Origin": EVIL, "Referer": f"{EVIL}/", "Sec-Fetch-Site": "cross-site"},
    "another origin, an older browser": {"Origin": EVIL},
    "no origin": {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    "no origin, an older browser": {"Origin": "null"},
    "another host of the site": {"Origin": "http://evil.{host}", "Sec-Fetch-Site": "same-site"},
    "another port": {"Origin": "http://{name}:1", "Sec-Fetch-Site": "same-site"},
    "a name that begins alike": {"Origin": "http://{host}.evil.example", "Referer": "http://{host}.evil.example/"},
    "another referrer alone": {"Referer": f"{EVIL}/http://{{host}}/"},
    "fetch metadata alone": {"Sec-Fetch-Site": "cross-site"},
    "nothing said": {},
}
# Which have the session's name in links.
WITH_LINKS = ("smf", "zencart")
VICTIMS = ("new", "guest", "alice")


class Outcomes:
    """What came of each form and link, as (found, expected), and which forged writes were accepted."""

    def __init__(self, subject, site, ledger, variants=FORGED):
        self.variants = variants
        self.subject, self.site, self.ledger = subject, site, ledger
        self.actions = {}
        self.accepted = set()
        self.forged = 0
        # First writes of guests: from pages from memory, and all.
        self.forms = collections.Counter()
        self.number, self.numbers_of_guests = itertools.count(), itertools.count(10)
        first = self.guest()
        front = first.open("/")
        self.links = dict(front.links)
        item = first.click("item-3")
        actions = []

        def do(name, *action):
            actions.append((name, *action))

        for name in ("contact", "comment", "register", "search", "vote", "login", "wrong_token"):
            page = {"comment": "item-3", "vote": "to-poll", "wrong_token": "to-register"}.get(name, f"to-{name}")
            if page in self.links and (name != "comment" or "comment" in item.forms):
                do(name, getattr(self, name))
        for what, to in (("language", "de"), ("currency", "EUR")):
            if f"{what}-{to}" in self.links:
                do(f"{what} by a link", self.choose, what, to, True)
            if what in front.forms:
                do(f"{what} by a form", self.choose, what, to, False)
        do("a form in a second tab", self.second_tab)
        do("a form in a page that says no referrer", self.no_referrer)
        if self.site.name == "opencart":
            do("the partner by whose link guests came", self.partner)
        if self.site.name == "zencart":
            do("the partner by whose link guests came", self.partner_in_session)
        for way in ("add", "add-link"):
            if way in item.forms or way in item.links:
                do(f"{CARTS} carts at once by {way}", self.carts, way)
        # At a person's pace all side by side, which else would take long.
        with concurrent.futures.ThreadPoolExecutor(len(actions) if Guest.pace else 1) as pool:
            list(pool.map(lambda action: self.do(*action), actions))
        if self.variants:
            self.do("forged writes are sent", self.forge, item)

    def do(self, name, action, *arguments):
        try:
            self.actions[name] = action(*arguments)
        except (KeyError, IndexError) as error:
            # The form or link is not in the page.
            self.actions[name] = (repr(error), "no error")

    def failed(self):
        return [name for name, (found, expected) in self.actions.items() if found != expected]

    def guest(self):
        return Guest(self.subject, next(self.numbers_of_guests), self.ledger, self.forms)

    def at(self, link):
        """A new guest on a page, where they came by a link."""
        guest = self.guest()
        guest.open("/")
        if link not in guest.page.links:
            guest.click("to-list")
        guest.click(link)
        return guest

    def word(self, prefix):
        return f"{prefix}-{next(self.number)}"

    def count(self, table, column, value):
        return sum(row == (value,) for row in self.site.select(f"SELECT {column} FROM {table}"))

    def contact(self):
        guest, text = self.at("to-contact"), self.word("contact")
        given = {"text": text}
        if guest.page.images:
            given["captcha"] = guest.look_at_picture()
        page = guest.submit("contact", given)
        first = guest.first.status
        again = guest.click("to-contact")
        if "file" in again.forms["contact"]["fields"]:
            text += f" with {len(guests.FILE)} bytes"
        found = (first, page.texts.get("flash"), again.texts.get("flash"), self.count("messages", "text", text))
        return found, (302, f"Sent: {text}", "", 1)

    def comment(self):
        guest, text = self.at("item-3"), self.word("comment")
        if "key" in guest.page.forms["comment"]["fields"]:
            time.sleep(KEY_SECONDS)
        at = guest.at
        guest.submit("comment", {"text": text})
        if "submit" in guest.page.forms:
            guest.submit("submit", {})
        page = guest.open(at, "same-origin")
        return (page.comments.count(text), self.count("comments", "text", text)), (1, 1)

    def register(self):
        guest, name = self.at("to-register"), self.word("carol")
        page = guest.submit("register", {"name": name, "password": "secret"})
        first = guest.first.status
        flash = page.texts.get("flash")
        later = guest.click("to-list")
        found = (first, page.texts.get("user"), flash, later.texts.get("user"), later.texts.get("flash"), self.count("users", "name", name))
        return found, (302, f"Hello {name}", "Your account is there.", f"Hello {name}", "", 1)

    def search(self):
        guest = self.at("to-search")
        by_form = guest.submit("search", {"q": "cand"})
        first = guest.first.status
        target = guest.at.replace("cand", "drum")
        by_address = self.guest().open(target)
        return (first, by_form.texts.get("found"), by_address.texts.get("found")), (302, "Candle", "Drum")

    def vote(self):
        guest = self.at("to-poll")
        before = len(self.site.select("SELECT * FROM votes"))
        page = guest.submit("vote", {"choice": "B"})
        again = guest.click("to-poll")
        found = (guest.first.status, page.texts.get("voted"), again.texts.get("voted"), len(self.site.select("SELECT * FROM votes")) - before)
        return found, (200, "You chose B", "You chose B", 1)

    def login(self):
        guest = self.at("to-login")
        wrong = guest.submit("login", {"name": "alice", "password": "guess"}).texts
        told = [wrong.get("flash"), wrong.get("user")]
        page = guest.submit("login", {"name": "alice", "password": "wonderland"}) if "login" in guest.page.forms else guest.page
        told += [page.texts.get("flash"), page.texts.get("user")]
        if "logout" in page.links:
            told.append(guest.click("to-list").texts.get("user"))
            told.append(guest.click("logout").texts.get("user"))
            told.append(guest.click("to-list").texts.get("user"))
        return told, ["The password is wrong.", "Guest", "You are in.", "Hello alice", "Hello alice", "Guest", "Guest"]

    def wrong_token(self):
        """A token that nobody was given is refused."""
        guest, name = self.at("to-register"), self.word("wrong")
        fields = guest.page.forms["register"]["fields"]
        tokens = {field: "0" * len(value) for field, value in fields.items() if field not in ("name", "password", "form_id")}
        if set(tokens.values()) == {"0"}:
            # The token is the field's name.
            for field in tokens:
                fields["0" * len(field)] = fields.pop(field)
            tokens = {}
        guest.submit("register", {**tokens, "name": name, "password": "secret"})
        is_free = self.site.name == "opencart"
        return (guest.first.status, self.count("users", "name", name)), (302, 1) if is_free else (403, 0)

    def choose(self, what, to, is_link):
        """Several guests do the same: what a page has for all, and what a session has for one."""
        for _ in range(1 if Guest.pace else CHOOSE):
            found, expected = self.choose_once(what, to, is_link)
            if found != expected:
                break
        return found, expected

    def choose_once(self, what, to, is_link):
        guest = self.at("to-list")
        if is_link:
            guest.click(f"{what}-{to}")
        else:
            guest.submit(what, {"to": to})
        pages = [guest.page, guest.click("item-2"), guest.click("to-list"), guest.click("item-2")]
        others = [self.at("item-2").page for _ in range(2)]
        if what == "language":
            wanted = {"de": "Willkommen", "fr": "Bienvenue"}[to]
            found = [page.texts.get("greeting") for page in pages] + [page.texts.get("greeting") for page in others]
            return found, [*[wanted] * 4, "Welcome", "Welcome"]
        found = [pages[1].texts.get("price"), pages[3].texts.get("price")] + [page.texts.get("price") for page in others]
        return found, ["EUR 18.00", "EUR 18.00", "USD 20.00", "USD 20.00"]

    def second_tab(self):
        """Two pages of one guest are open; the form of each is sent."""
        guest, name, text = self.at("to-register"), self.word("dora"), self.word("tab")
        register, at = guest.page, guest.at
        guest.click("to-contact")
        given = {"text": text}
        if guest.page.images:
            given["captcha"] = guest.look_at_picture()
        if "file" in guest.page.forms["contact"]["fields"]:
            given["file"] = "no file"
        guest.submit("contact", given)
        guest.page, guest.at = register, at
        page = guest.submit("register", {"name": name, "password": "secret"})
        found = (self.count("messages", "text", text), self.count("users", "name", name), page.texts.get("user"))
        return found, (1, 1, f"Hello {name}")

    def no_referrer(self):
        """As browsers do with `Referrer-Policy: no-referrer`."""
        guest, name = self.at("to-register"), self.word("finn")
        page = guest.submit("register", {"name": name, "password": "secret"}, fields={"Origin": "null", "Referer": None})
        return (self.count("users", "name", name), page.texts.get("user")), (1, f"Hello {name}")

    def partner(self):
        """A cookie whose value is in the address, of each guest who came so."""
        found = []
        for _ in range(CHOOSE):
            guest = self.guest()
            guest.open("/index.php?route=item&product_id=4&tracking=partner")
            found.append(guest.client.cookies.get("tracking"))
        return found, ["partner"] * CHOOSE

    def partner_in_session(self):
        """What no page shows until it counts."""
        names = []
        for _ in range(CHOOSE):
            guest = self.guest()
            guest.open("/index.php?page=item&id=4&ref=17")
            guest.click("to-register")
            names.append(self.word("gina"))
            guest.submit("register", {"name": names[-1], "password": "secret"})
        return [self.count("users", "name", f"{name} by 17") for name in names], [1] * CHOOSE

    def carts(self, way):
        """Each of many guests at once puts something else or more into their cart; what each finds there."""
        names = {1: "Anvil", 2: "Basket", 3: "Candle", 4: "Drum", 5: "Easel", 6: "Funnel"}
        together = threading.Barrier(CARTS)

        def fill(number):
            item = 1 + number % 6
            guest = self.guest()
            # Their first page: the link is not known to have anything of a session.
            links = dict(guest.open("/").links)
            guest.click(f"item-{item}")
            together.wait(60)
            times = 1 + number // 6
            for time_of_many in range(times):
                if time_of_many:
                    guest.open(links[f"item-{item}"], "same-origin")
                guest.click(way) if way in guest.page.links else guest.submit(way, {})
            cart = guest.open(links["to-cart"], "same-origin").texts.get("cart")
            cart += " / " + guest.open(links[f"item-{item}"], "same-origin").texts.get("in-cart")
            expected = f"{times} {names[item]} / Cart: {times}"
            return None if cart == expected else f"guest {number}: {cart!r}, expected {expected!r}"

        with concurrent.futures.ThreadPoolExecutor(CARTS) as pool:
            return [wrong for wrong in pool.map(fill, range(CARTS)) if wrong], []

    def victim(self, kind):
        guest = self.guest()
        if kind == "guest":
            # By a write that needs no token: they have a session, and nothing in it.
            guest.open("/")
            guest.click("to-search")
            guest.submit("search", {"q": "drum"})
        elif kind == "alice":
            guest.open("/")
            guest.click("to-login")
            guest.submit("login", {"name": "alice", "password": "wonderland"})
        return guest

    def forge(self, item):
        """By an author who has a cookie of the site, and by one who has none: where the session's name is in links, the application
        takes the author's session for the victim's, or not."""
        for self.has_cookie in (True, False) if self.site.name in WITH_LINKS else (False,):
            self.forge_as(item)
        return None, None

    def forge_as(self, item):
        """Writes that a page of another site has the browsers of victims send, with what its author got in a page of this site."""
        victims = {kind: self.victim(kind) for kind in ("guest", "alice")}
        forms = {"register": ("to-register", "users", "name"), "comment": ("item-3", "comments", "text"), "contact": ("to-contact", "messages", "text")}
        known = [name for name in forms if name != "comment" or "comment" in item.forms]
        for (number, (variant, said)), (turn, kind) in itertools.product(enumerate(self.variants.items()), enumerate(VICTIMS)):
            is_all = len(self.variants) == len(FORGED)
            for form in known if is_all else [known[(number + turn) % len(known)]]:
                self.forged_form(form, *forms[form], variant, self.filled(said), kind, victims.get(kind) or self.guest())
        for variant, said in self.variants.items():
            self.forged_login(variant, self.filled(said))
            for link in ("language-fr", "add-link"):
                self.forged_link(link, variant, self.filled(said))

    def filled(self, said):
        return {name: value.format(host=self.subject.host, name=self.subject.address) for name, value in said.items()}

    def attacker(self, link):
        """A new guest whose first page this is: links and forms may name the session. Or one who has a cookie."""
        guest = self.guest()
        if self.has_cookie:
            guest.open("/")
            guest.open(strip(self.links[link]))
        guest.open(strip(self.links[link]))
        return guest

    def forged_form(self, form, link, table, column, variant, said, kind, victim):
        attacker, text = self.attacker(link), self.word("forged")
        given = {"name": text, "password": "x"} if column == "name" else {"text": text}
        form_of_page = attacker.page.forms[form]
        body, content_type = guests.encoded(form_of_page, {**form_of_page["fields"], **given})
        victim.client.post(form_of_page["action"], body=body, fields={**said, "Content-Type": content_type})
        self.forged += 1
        if self.count(table, column, text):
            self.accepted.add((form, variant, kind))

    def forged_login(self, variant, said):
        """A log-in with the attacker's account."""
        attacker, victim = self.attacker("to-login"), self.guest()
        form = attacker.page.forms["login"]
        body, content_type = guests.encoded(form, {**form["fields"], "name": "bob", "password": "builder"})
        victim.client.post(form["action"], body=body, fields={**said, "Content-Type": content_type})
        self.forged += 1
        if victim.open("/").texts.get("user") != "Guest":
            self.accepted.add(("login", variant, "new"))

    def forged_link(self, link, variant, said):
        attacker, victim = self.attacker("item-3"), self.guest()
        if link not in attacker.page.links:
            return
        fields = {name: value for name, value in said.items() if name != "Origin"}
        victim.client.get(attacker.page.links[link], fields)
        self.forged += 1
        page = victim.open("/")
        cart = self.links.get("to-cart")
        if page.texts.get("greeting") != "Welcome" or (cart and victim.open(strip(cart)).texts.get("cart")):
            self.accepted.add((link, variant, "new"))


def strip(target):
    """An address without the name of a session."""
    path, _, query = target.partition("?")
    kept = [pair for pair in query.split("&") if pair.split("=")[0] not in ("PHPSESSID", "zenid")]
    return urllib.parse.urljoin(path, path) + ("?" + "&".join(kept) if kept != [""] else "")
