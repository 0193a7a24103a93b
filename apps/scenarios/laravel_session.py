"""A site with Laravel's session on every page, under `mayfly serve`.

Nothing of it is shared: visitors who ask for the same page, one after the other
or all at once, with and without cookies, each get their own session, token,
language and messages. Pages outside of the session are shared, also those that differ each time.
"""

import json
import os
import re
import threading

from harness import subject as subjects
from harness.client import Client
from harness.workdir import Workdir, wait_for

LANGUAGES = {
    "de": ("de-DE,de;q=0.9,en;q=0.8", "Willkommen"),
    "en": ("en-GB,en;q=0.9", "Welcome"),
    "fr": ("fr-FR,fr;q=0.9,en;q=0.8", "Bienvenue"),
}
ANALYTICS = {"_ga": "GA1.2.1234.5678"}
VISITORS_AT_ONCE = 12
BURSTS = 3
SHARED_SECONDS = 10


def run(options, report):
    if not options.subject.startswith("mayfly"):
        report.note("left out: it is about what serve does")
        return
    with Workdir("laravel", keep=options.keep) as workdir:
        key = os.urandom(16).hex()
        subject = subjects.start(workdir, options, "laravel", write_site(workdir, key))
        failed = report.failed
        try:
            first_visits(report, subject)
            all_at_once(report, subject)
            people(report, subject)
            outside_of_the_session(report, subject, key)
            said = subject.logs()
            report.check("laravel: serve knew it", "Serving Laravel" in said or options.subject != "mayfly", said)
            report.check("laravel: the server ran to the end", not (wrong := subject.stop()), wrong)
        finally:
            if report.failed > failed:
                report.note(subject.logs())


def write_site(workdir, key):
    """A project's folder as Laravel's: what serve looks for, and what visitors may not see."""
    for folder in ("site", "site/public", "site/storage", "site/storage/sessions"):
        workdir.mkdir(folder)
    workdir.write("site/artisan", "#!/usr/bin/env php\n")
    workdir.write("site/storage/key", key, owner="www-data", mode=0o600)
    with open(os.path.join(subjects.FILES, "laravel_front.php"), encoding="utf-8") as file:
        workdir.write("site/public/index.php", file.read())
    return workdir.join("site")


def visitor(subject, language="en", cookies=None):
    return Client(subject.address, subject.port, cookies, fields={"Accept-Language": LANGUAGES[language][0]})


def facts(page):
    found = re.search(r'<script type="application/json">(.*)</script>', page.text)
    return json.loads(found.group(1)) if found else {"status": page.status}


def first_visits(report, subject):
    """Before any cookie: each by their own language, also the first who asks."""
    for order in (("de", "en", "fr"), ("fr", "de", "en"), ("en", "fr", "de")):
        wrong, sessions = [], set()
        for view in range(2):
            for language in order:
                page = visitor(subject, language, ANALYTICS if view else None).get(f"/?first={order[0]}")
                told = facts(page)
                sessions.add(told.get("session"))
                if told.get("greeting") != LANGUAGES[language][1] or page.is_hit:
                    wrong.append(f"{language}, view {view + 1}: {told} {page.cache_word}")
        is_own = not wrong and len(sessions) == 2 * len(order)
        report.check(f"laravel: {', '.join(order)} before any cookie: each reads their language", is_own, wrong)


def all_at_once(report, subject):
    """Nobody shares a session, also where all wait for one page."""
    wrong = []
    for burst in range(BURSTS):
        together = threading.Barrier(VISITORS_AT_ONCE)
        answers = []

        def ask(number, together=together, answers=answers, target=f"/?burst={burst}"):
            language = list(LANGUAGES)[number % len(LANGUAGES)]
            client = visitor(subject, language)
            together.wait()
            answers.append((language, client, client.get(target)))

        threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(VISITORS_AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        told = [facts(page) for _, _, page in answers]
        for what in ("session", "token"):
            values = {one.get(what) for one in told}
            if len(values) != VISITORS_AT_ONCE or None in values:
                wrong.append(f"{what}: {len(values)} of {VISITORS_AT_ONCE}")
        for (language, client, _), before in zip(answers, told, strict=True):
            # The cookie that came along is the session of the page.
            after = facts(client.get(f"/?burst={burst}"))
            if after.get("session") != before.get("session") or before.get("greeting") != LANGUAGES[language][1]:
                wrong.append(f"{language}: {before} then {after}")
    report.check(f"laravel: {BURSTS} times {VISITORS_AT_ONCE} at once: each has a session of their own", not wrong,
                 wrong[:3])  # fmt: skip


def people(report, subject):
    """Alice and Bob by turns, and Carol who is nobody, on the same addresses."""
    alice, bob, carol = (visitor(subject, language) for language in ("de", "fr", "en"))
    everybody = {"alice": alice, "bob": bob, "carol": carol}
    tokens = {name: facts(client.get("/"))["token"] for name, client in everybody.items()}
    refused = carol.post("/login", form={"_token": tokens["alice"], "user": "alice", "password": "wonderland"})
    report.check("laravel: another's token is refused", refused.status == 419, refused.status)
    for name, password in (("alice", "wonderland"), ("bob", "builder")):
        answer = everybody[name].post("/login", form={"_token": tokens[name], "user": name, "password": password})
        report.check(f"laravel: {name} logs in", answer.status == 302, answer.status)
    expect(report, subject, "after the login", everybody, flashes={"alice": "Hello alice.", "bob": "Hello bob."})
    expect(report, subject, "messages are shown once", everybody)
    for name, client in (("alice", alice), ("bob", bob)):
        token = facts(client.get("/"))["token"]
        client.post("/note", form={"_token": token, "note": f"of {name}"})
    expect(report, subject, "after a note", everybody, flashes={"alice": "Saved: of alice", "bob": "Saved: of bob"})
    # As scripts send it.
    script = {"X-XSRF-TOKEN": bob.cookies["XSRF-TOKEN"]}
    answer = bob.post("/locale", form={"locale": "de"}, fields=script)
    report.check("laravel: the token of the cookie is taken as well", answer.status == 302, answer.status)
    expect(report, subject, "after bob chose a language", everybody, greetings={"bob": "Willkommen"})
    alice.post("/logout", form={"_token": facts(alice.get("/"))["token"]})
    expect(report, subject, "after alice left", everybody, users={"alice": None}, greetings={"bob": "Willkommen"})


def expect(report, subject, when, everybody, flashes=None, users=None, greetings=None):
    """What each must see of `/`, with the stranger between the two who are logged in."""
    users = {"alice": "alice", "bob": "bob", **(users or {})}
    greetings = {"alice": "Willkommen", "bob": "Bienvenue", "carol": "Welcome", **(greetings or {})}
    wrong = []
    for name in ("alice", "carol", "bob"):
        page = everybody[name].get("/")
        told = facts(page)
        wanted = (users.get(name), (flashes or {}).get(name), greetings[name])
        if (told.get("user"), told.get("flash"), told.get("greeting")) != wanted or page.is_hit:
            wrong.append(f"{name}: {told} {page.cache_word}")
    stranger = facts(visitor(subject).get("/"))
    if stranger.get("user") or stranger.get("flash"):
        wrong.append(f"a stranger: {stranger}")
    report.check(f"laravel: {when}: each sees their own page", not wrong, wrong)


def outside_of_the_session(report, subject, key):
    def views(path):
        return [visitor(subject, language).get(path) for language in LANGUAGES]

    def are_shared(pages):
        return all(page.is_hit for page in pages) and len({page.field("x-run") for page in pages}) == 1

    first, second = views("/open/prices"), views("/open/prices")
    is_own = not any(page.is_hit for page in first) and len({page.field("x-run") for page in first}) == len(first)
    report.check("laravel: outside of the session, a language not seen yet is compared first", is_own,
                 [page.cache_word for page in first])  # fmt: skip
    report.check("laravel: then all share one page", are_shared(second), [page.cache_word for page in second])
    # That a page differs each time is found out beside the visitors.
    wait_for("a page that differs each time is shared", lambda: are_shared(views("/open/draw")), SHARED_SECONDS)
    drawn = {facts(page).get("drawn") for page in views("/open/draw")}
    report.check("laravel: a page that differs each time is shared as well", len(drawn) == 1, drawn)
    for path, secret in (("/artisan", "env php"), ("/storage/key", key), ("/../storage/key", key)):
        answer = visitor(subject).get(path)
        report.check(f"laravel: {path} is not handed out", secret not in answer.text, f"{answer.status}")
