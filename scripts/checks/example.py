"""The example in examples/news: one round of its editor beside 50 visitors, with pages in memory and in memcached.

`scripts/example/run.py` does it for longer, with more visitors.
"""

import os
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts/example"))

import run as example
from lib import process, subject
from news_site import Site, Visitor

VISITORS = 50
# Writes between two looks past memory; `scripts/example/run.py` looks after each.
PAST_EVERY = 6
# A search is kept for five seconds, a measurement for one.
SEARCH_SECONDS = 5
RIVER_SECONDS = 1
LATE_SECONDS = 3


def checks(binary):
    if subject.kind_of(binary) != "mayfly":
        return []
    return [
        *((f"each_write_purges_exactly_what_its_table_names_and_no_answer_is_old ({config})", by_the_table(binary, config)) for config in example.CONFIGS),
        ("what_is_personal_is_the_visitors_own_and_the_page_is_shared", lambda: personal(binary)),
        ("fragments_live_for_their_own_times", lambda: fragments(binary)),
        ("a_search_that_cannot_know_what_it_shows_ends_with_its_lifetime", lambda: search(binary)),
        ("memcached_serves_and_php_answers_for_all_else", lambda: memcached(binary)),
    ]


def by_the_table(binary, config):
    def check():
        found = example.work(binary, config, VISITORS, 0, PAST_EVERY)
        assert not found["wrong"], "\n        ".join(found["wrong"])
        assert found["answers"] > VISITORS, found

    return check


def site(binary, config="nginx.conf"):
    folder = tempfile.TemporaryDirectory(prefix="mayfly-example-")
    os.chmod(folder.name, 0o755)
    opened = Site(binary, folder.name, config)
    opened.kept_folder = folder
    return opened


def personal(binary):
    with site(binary) as news:
        stranger = Visitor(news.port)
        stranger.get("/news/5")
        page = stranger.get("/news/5")
        cookies = {}
        for name in ("Ada", "B<b>o"):
            entered = stranger.post("/visit", name=name)
            cookies[name] = entered.fields["Set-Cookie"].split(";")[0]
        ada, bo = (Visitor(news.port, cookie) for cookie in cookies.values())
        ada.post("/saved/5")
        for visitor, greeting in ((ada, "Hello <b>Ada</b>, 1 put aside."), (bo, "Hello <b>B&lt;b&gt;o</b>, 0 put aside.")):
            own = visitor.get("/news/5")
            assert own.fragment("visitor") == greeting, own.fragment("visitor")
            assert own.made == page.made and own.is_from_memory, "it is not the page that all share"
            assert own.fields["Cache-Control"] == "private, no-cache", own.fields["Cache-Control"]
        assert 'action="/visit"' in page.fragment("visitor") and 'action="/visit"' in stranger.get("/news/5").fragment("visitor")
        for target in ("/fragments/visitor", "/fragments/river"):
            assert ada.get(target).status == 404, f"{target} can be asked for from outside"
        source = stranger.get("/index.php")
        assert source.status == 404 and "<?php" not in source.text, source.status
        assert stranger.get("/style.css").fields["Content-Type"].startswith("text/css")
        forged = Visitor(news.port, cookies["Ada"])
        forged._fields["Sec-Fetch-Site"] = "cross-site"
        assert forged.post("/saved/6").status == 403


def fragments(binary):
    with site(binary) as news:
        visitor = Visitor(news.port)
        first = visitor.get("/")
        assert "unknown" in first.fragment("river")
        news.measure(215)
        process.wait_until(lambda: "215 cm" in visitor.get("/").fragment("river"), "the new measurement", RIVER_SECONDS + LATE_SECONDS)
        later = visitor.get("/")
        assert later.made == first.made, "the page itself was made anew"
        assert later.fragment("discussed") == first.fragment("discussed") and "Most discussed" in first.fragment("discussed")


def search(binary):
    with site(binary) as news:
        visitor = Visitor(news.port)
        visitor.get("/search?q=Unheard")
        first = visitor.get("/search?q=Unheard")
        begun = time.monotonic()
        assert first.is_from_memory and "Unheard of" not in first.text
        visitor.post("/editor/", do="headline", id=3, title="Unheard of", lead="New.")
        assert visitor.get("/search?q=Unheard").made == first.made or time.monotonic() - begun > SEARCH_SECONDS
        found = lambda: "Unheard of" in visitor.get("/search?q=Unheard").text
        process.wait_until(found, "what the search finds", SEARCH_SECONDS + LATE_SECONDS)


def memcached(binary):
    with site(binary, "memcached.conf") as news:
        visitor = Visitor(news.port)
        for target in ("/news/5", "/feed.atom", "/sitemap.xml", "/section/river"):
            made = visitor.get(target)
            kept = visitor.get(target)
            assert (made.fields["X-Page"], kept.fields["X-Page"]) == ("PHP", "memcached"), target
            assert kept.content == made.content and kept.fields["Content-Type"] == made.fields["Content-Type"], target
        assert visitor.get("/news/5?a=b").fields["X-Page"] == "PHP", "an address with arguments fills memory"
        assert visitor.get("/news/5?a=b").fields["X-Page"] == "PHP", "an address with arguments fills memory"
        assert visitor.post("/news/5/comments", name="Eve", text="By POST").status == 303
        assert "By POST" in visitor.get("/news/5").text
        assert visitor.get("/news/999").status == 404
        cookie = visitor.post("/visit", name="Ada").fields["Set-Cookie"].split(";")[0]
        own = Visitor(news.port, cookie).get("/section/river")
        assert "Hello <b>Ada</b>" in own.text and own.fields["X-Page"] == "memcached", own.text
        news.stop("memcached")
        for _ in range(2):
            page = visitor.get("/news/5")
            assert page.status == 200 and page.fields["X-Page"] == "PHP", "nobody answers without memcached"
        assert visitor.post("/editor/", do="text", id=5, body="Without memcached").status == 303
        assert "Without memcached" in visitor.get("/news/5").text
