"""The demo site, as a visitor and as the administrator see it."""

import contextlib
import http.client
import http.cookies
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
import urllib.parse
import xml.etree.ElementTree

from lib import php, process, subject

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIFETIME_SECONDS = 1
# nginx counts whole seconds and Mayfly refreshes in the background: both may show
# a copy a little after its time.
LATE_SECONDS = 2
SHARED_SECONDS = 10


class Browser:
    """A visitor who keeps cookies."""

    def __init__(self, port):
        self._port = port
        self._cookies = {}

    def ask(self, method, target, form=None):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        fields = {}
        if self._cookies:
            fields["Cookie"] = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        body = urllib.parse.urlencode(form) if form is not None else None
        if body is not None:
            fields["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, target, body, fields)
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        for line in answer.headers.get_all("Set-Cookie") or []:
            for name, morsel in http.cookies.SimpleCookie(line).items():
                self._cookies[name] = morsel.value
        return answer

    def get(self, target):
        return self.ask("GET", target)


def for_nginx(config, socket):
    """The demo's configuration with what only Mayfly has said in nginx's way."""
    config = re.sub(r"php_pool demo \{.*?\n    \}\n", "", config, flags=re.DOTALL)
    config = config.replace("SERVER_SOFTWARE mayfly", "SERVER_SOFTWARE nginx")
    config = config.replace("cache_shared on;", "fastcgi_cache_key $scheme$host$request_uri;")
    config = config.replace("php:demo", f"unix:{socket}").replace(" memory=64m", "")
    config = config.replace("/dev/shm/mayfly-demo", "cache")
    temp = "".join(f"{name}_temp_path temp; " for name in ("client_body", "fastcgi", "proxy", "scgi", "uwsgi"))
    remember = (
        temp + 'map $request_method $wrote { default ""; POST "wrote=1; Max-Age=2; Path=/"; }\n'
        "add_header Set-Cookie $wrote; fastcgi_cache_bypass $cookie_wrote; fastcgi_no_cache $cookie_wrote;"
    )
    config = config.replace("cache_read_your_writes 2s;", remember)
    return config.replace("add_header X-Cache ", "add_header Set-Cookie $wrote;\nadd_header X-Cache ")


class Site:
    """The demo, started the way `make run` starts it."""

    def __init__(self, binary, folder):
        self.binary, self.port = binary, subject.free_port()
        self.state = os.path.join(folder, "state")
        self.fpm = None
        settings = {"PORT": str(self.port), "STATE": self.state}
        if subject.kind_of(binary) == "nginx":
            self.fpm = php.PhpFpm(folder)
            os.chmod(self.fpm.socket, 0o666)
            settings["CONFIG"] = os.path.join(folder, "for-nginx.conf")
            with open(os.path.join(ROOT, "demo/nginx.conf")) as source, open(settings["CONFIG"], "w") as file:
                file.write(for_nginx(source.read(), self.fpm.socket))
        self._said = open(os.path.join(folder, "said"), "w+")
        self._process = process.start(
            [os.path.join(ROOT, "scripts/run-demo.sh"), binary],
            env={**os.environ, **settings}, stdout=self._said, stderr=self._said,
        )
        try:
            process.wait_until(lambda: "Ctrl-C" in self.said(), "the demo's start", 20)
        except RuntimeError as error:
            self.stop()
            raise AssertionError(f"{error}; it said: {self.saying()}")

    def said(self):
        if self._process.poll() not in (None, 0):
            raise RuntimeError(f"ended with status {self._process.returncode}")
        return self.saying()

    def saying(self):
        self._said.seek(0)
        return self._said.read()

    def processes(self):
        return process.tree(self._process.pid, without=("nothing at all",))

    def executions(self):
        return os.path.getsize(os.path.join(self.state, "data/executions"))

    def stop(self):
        process.stop(self._process, signal.SIGINT)
        if self.fpm:
            self.fpm.__exit__()


class Demo:
    """The checks, on one site that is started by the first and stopped by the last."""

    def __init__(self, binary):
        self.binary = binary
        self.stack = contextlib.ExitStack()
        self.site = None

    def it_starts_and_says_where_to_look(self):
        folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="mayfly-check-"))
        os.chmod(folder, 0o755)
        self.site = Site(self.binary, folder)
        assert f"http://127.0.0.1:{self.site.port}/" in self.site.said()

    def visitor(self):
        assert self.site, "the site did not start"
        return Browser(self.site.port)

    def the_same_page_is_a_miss_and_in_the_end_a_hit_without_php(self):
        visitor = self.visitor()
        first = visitor.get("/news/1")
        assert (first.status, first.headers["X-Cache"]) == (200, "MISS"), (first.status, first.headers["X-Cache"])
        self.share(visitor, "/news/1")
        second = visitor.get("/news/1")
        executions = self.site.executions()
        third = visitor.get("/news/1")
        assert third.headers["X-Cache"] == "HIT", third.headers["X-Cache"]
        assert second.text == third.text
        assert self.site.executions() == executions, "PHP ran for the hit"

    def share(self, visitor, target):
        """Asks until the page comes from memory: it says when it was made, and so differs each time."""
        is_hit = lambda: visitor.get(target).headers["X-Cache"] == "HIT"
        process.wait_until(is_hit, f"{target} in memory", SHARED_SECONDS)

    def a_page_says_when_php_made_it_and_the_response_whether_it_came_from_memory(self):
        page = self.visitor().get("/")
        assert "PHP made this page at" in page.text and 'data-made="' in page.text
        assert page.headers["Server-Timing"] == f'cache;desc="{page.headers["X-Cache"]}"'

    def the_style_sheet_is_served_without_php(self):
        visitor = self.visitor()
        executions = self.site.executions()
        style = visitor.get("/style.css")
        assert style.status == 200 and style.headers["Content-Type"].startswith("text/css"), style.headers
        assert self.site.executions() == executions

    def the_feed_is_atom(self):
        feed = xml.etree.ElementTree.fromstring(self.visitor().get("/feed").text)
        space = "{http://www.w3.org/2005/Atom}"
        assert feed.tag == space + "feed" and len(feed.findall(space + "entry")) >= 4

    def a_comment_is_seen_at_once_by_its_author_and_by_others_after_the_lifetime(self):
        author, other = self.visitor(), self.visitor()
        author.get("/news/3"), other.get("/news/3")
        text = f"seen <b>at once</b> & {time.time()}"
        posted = author.ask("POST", "/news/3", {"author": "Check", "text": text})
        location = posted.headers["Location"] or ""
        assert posted.status == 303 and location.endswith("/news/3#comments"), (posted.status, location)
        shown = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        mine = author.get("/news/3").text
        assert text not in mine, "the comment was not escaped"
        assert shown in mine, "the author did not see it at once"
        deadline = time.monotonic() + LIFETIME_SECONDS + LATE_SECONDS
        while shown not in other.get("/news/3").text:
            assert time.monotonic() < deadline, "others did not see it"
            time.sleep(0.1)

    def a_comment_is_seen_by_everybody_at_once_and_other_pages_stay_in_memory(self):
        author, other = self.visitor(), self.visitor()
        showing, others = ("/news/2", "/"), ("/news/1", "/news/3", "/feed")
        before = {}
        for target in showing + others:
            self.share(other, target)
            before[target] = other.get(target)
            assert before[target].headers["X-Cache"] == "HIT", target
        text = f"for everybody {time.time()}"
        posted = author.ask("POST", "/news/2", {"author": "Check", "text": text})
        assert posted.status == 303, posted.status
        now = {target: other.get(target) for target in showing + others}
        assert text in now["/news/2"].text, "another visitor does not see it"
        count = re.search(r'href="/news/2".*?(\d+) comment', before["/"].text)
        assert re.search(rf'href="/news/2".*?{int(count[1]) + 1} comment', now["/"].text), "the front page counts wrong"
        for target in showing:
            assert now[target].headers["X-Cache"] == "MISS", (target, now[target].headers["X-Cache"])
        for target in others:
            assert now[target].headers["X-Cache"] == "HIT", (target, now[target].headers["X-Cache"])
            assert now[target].text == before[target].text, target
        time.sleep(LIFETIME_SECONDS + 0.2)
        assert other.get("/news/1").headers["X-Cache"] == "HIT", "it was kept for a second only"

    def the_foot_of_a_page_says_what_it_reads(self):
        for target, names in (("/news/3", "article:3, comments:3"), ("/", "news, comments:1, comments:2")):
            page = self.visitor().get(target)
            assert f"It reads <i>{names}" in page.text and "is kept until one of them changes" in page.text, target
            assert not page.headers["Surrogate-Key"], "tags are for the server alone"
            assert page.headers["Cache-Control"] == "no-cache", page.headers["Cache-Control"]

    def a_comment_by_a_program_is_dropped(self):
        self.visitor().ask("POST", "/news/2", {"author": "Robot", "text": "buy!", "website": "http://x"})
        time.sleep(LIFETIME_SECONDS + 0.1)
        self.visitor().get("/news/2")
        time.sleep(0.3)
        assert "buy!" not in self.visitor().get("/news/2").text

    def unknown_pages_are_not_found_and_unknown_methods_not_allowed(self):
        assert self.visitor().get("/news/999").status == 404
        assert self.visitor().get("/news/1x").status == 404
        assert self.visitor().ask("DELETE", "/news/1").status == 405

    def fifty_visitors_of_a_cold_page_are_a_few_executions(self):
        self.visitor()
        before = self.site.executions()
        statuses = []
        visitors = [
            threading.Thread(target=lambda: statuses.append(self.visitor().get("/news/4?cold").status))
            for _ in range(50)
        ]
        for visitor in visitors:
            visitor.start()
        for visitor in visitors:
            visitor.join()
        assert statuses == [200] * 50, statuses
        ran = self.site.executions() - before
        # The page differs each time: one own answer, the shared one, one to compare with it, and a trial of four.
        assert ran <= 10, f"PHP ran {ran} times"

    def an_interrupt_stops_it_and_leaves_nothing_running(self):
        assert self.site, "the site did not start"
        started = self.site.processes()
        self.site.stop()
        # Workers may need a moment to be gone after the master is.
        gone = lambda: not any(os.path.exists(f"/proc/{pid}") for pid in started)
        process.wait_until(gone, f"{started} gone", seconds=5)
        self.stack.close()


# nginx has no tags.
OF_MAYFLY = ("a_comment_is_seen_by_everybody_at_once_and_other_pages_stay_in_memory", "the_foot_of_a_page_says_what_it_reads")


def checks(binary):
    demo = Demo(binary)
    left_out = () if subject.kind_of(binary) == "mayfly" else OF_MAYFLY
    names = [name for name in vars(Demo) if "_" in name and not name.startswith("_") and name not in left_out]
    return [(name, getattr(demo, name)) for name in names]
