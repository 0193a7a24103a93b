"""The example in examples/news: one round of its editor beside 50 visitors, with pages in memory and in memcached.

`scripts/example/run.py` does it for longer, with more visitors.
"""

import os
import re
import subprocess
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
SHARED_SECONDS = 10


def checks(binary):
    if subject.kind_of(binary) != "mayfly":
        return []
    return [
        *((f"each_write_purges_exactly_what_its_table_names_and_no_answer_is_old ({config})", by_the_table(binary, config)) for config in example.CONFIGS),
        ("what_is_personal_is_the_visitors_own_and_the_page_is_shared", lambda: personal(binary)),
        ("fragments_live_for_their_own_times", lambda: fragments(binary)),
        ("a_search_that_cannot_know_what_it_shows_ends_with_its_lifetime", lambda: search(binary)),
        ("memcached_serves_and_php_answers_for_all_else", lambda: memcached(binary)),
        ("two_nodes_serve_from_one_memcached", lambda: memcached_at_two_nodes(binary)),
        ("a_notice_changed_at_one_machine_is_seen_at_once_on_the_others", lambda: several_machines(binary)),
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


def shared(visitor, target):
    """The page that visitors share: it says when it was made, and so it takes a few views to see that it may be shared."""
    process.wait_until(lambda: visitor.get(target).is_from_memory, f"{target} in memory", SHARED_SECONDS)
    return visitor.get(target)


def personal(binary):
    with site(binary) as news:
        stranger = Visitor(news.port)
        page = shared(stranger, "/news/5")
        cookies = {}
        for name in ("Ada", "B<b>o"):
            entered = stranger.post("/visit", name=name)
            cookies[name] = entered.fields["Set-Cookie"].split(";")[0]
        ada, bo = (Visitor(news.port, cookie) for cookie in cookies.values())
        ada.post("/saved/5")
        for visitor, greeting in ((ada, "Hello <b>Ada</b>, 1 put aside."), (bo, "Hello <b>B&lt;b&gt;o</b>, 0 put aside.")):
            own = shared(visitor, "/news/5")
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
        first = shared(visitor, "/")
        assert "unknown" in first.fragment("river")
        news.measure(215)
        process.wait_until(lambda: "215 cm" in visitor.get("/").fragment("river"), "the new measurement", RIVER_SECONDS + LATE_SECONDS)
        later = visitor.get("/")
        assert later.made == first.made, "the page itself was made anew"
        assert later.fragment("discussed") == first.fragment("discussed") and "Most discussed" in first.fragment("discussed")


def search(binary):
    with site(binary) as news:
        visitor = Visitor(news.port)
        first = shared(visitor, "/search?q=Unheard")
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


def memcached_at_two_nodes(binary):
    """The application deletes from memcached what has changed, and its tags purge what the nodes keep themselves."""
    with tempfile.TemporaryDirectory(prefix="mayfly-example-") as folder, site(binary, "memcached.conf") as news:
        engine, ports = subject.free_port(), [news.port, subject.free_port()]
        redis = process.start(["redis-server", "--bind", "127.0.0.1", "--port", str(engine), "--save", "", "--dir", folder])
        try:
            news.become_node(engine)
            with news.another_node(ports[1]):
                one, two = (Visitor(port) for port in ports)
                discussed = lambda visitor: visitor.get("/section/town").fragment("discussed")
                article = re.search(r"/news/(\d+)", discussed(one))[1]
                for target in ("/news/5", "/section/town"):
                    one.get(target)
                    assert two.get(target).fields["X-Page"] == "memcached", target
                for turn, (writer, reader) in enumerate([(one, two), (two, one)] * 3):
                    # Both keep the fragment.
                    assert discussed(one) and discussed(two)
                    title = f"Title number {turn}"
                    assert writer.post("/editor/", do="headline", id=article, title=title, lead="New.").status == 303
                    assert title in reader.get(f"/news/{article}").text
                    assert title in discussed(reader), discussed(reader)
        finally:
            process.stop(redis)


def several_machines(binary):
    """examples/several-machines, started by its one command."""
    source = os.path.join(ROOT, "examples/several-machines")
    with tempfile.TemporaryDirectory(prefix="mayfly-example-") as folder:
        os.chmod(folder, 0o755)
        ports = {str(port): str(subject.free_port()) for port in (6390, 8081, 8082, 8083)}
        for root, _, names in os.walk(source):
            for name in names:
                copy = os.path.join(folder, os.path.relpath(os.path.join(root, name), source))
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                with open(os.path.join(root, name)) as file:
                    text = file.read()
                for port, other in ports.items():
                    text = text.replace(port, other)
                with open(copy, "w") as file:
                    file.write(text)
        started = process.start(["sh", os.path.join(folder, "start"), binary], stdout=subprocess.DEVNULL)
        try:
            visitors = [Visitor(int(ports[port])) for port in ("8081", "8082", "8083")]
            for visitor in visitors:
                process.wait_until(lambda: is_from_memory(visitor), "a page from memory", 30)
            assert visitors[0].post("/", notice="A page for all").status == 303
            # Node 2 asks for it a second time. So what it has made goes to the others.
            _, second, third = (visitor.get("/").made for visitor in visitors)
            assert second == third, "each node has made the page"
            for turn in range(6):
                text = f"Notice number {turn}"
                assert visitors[turn % 3].post("/", notice=text).status == 303
                for visitor in visitors:
                    assert f"<p>{text}</p>" in visitor.get("/").text
        finally:
            process.stop(started)


def is_from_memory(visitor):
    try:
        return visitor.get("/").fields["X-Cache"] == "HIT"
    except OSError:
        time.sleep(0.05)
        return False
