"""DokuWiki (Debian's package) in a real browser.

Pages, login, editing, uploading, the admin area and logging out, with no
failed request behind any of them; a second, anonymous browser sees a change
within the lifetime.
"""

import contextlib
import os
import time

from harness import dokuwiki
from harness import subject as subjects
from harness.client import Client
from harness.picture import png
from harness.steps import Steps
from harness.webdriver import Browser
from harness.workdir import Workdir

# Beyond the lifetime: how long `serve` may show a page while a new one is made.
STALE_SECONDS = 10.0
ADMIN_PAGES = ("usermanager", "acl", "config", "logviewer", "popularity", "revert", "styling")
# What the package's own .htaccess files and file names keep from visitors.
REFUSED = ("/inc/preload.php", "/bin/gittool.php", "/vendor/composer/installed.json",
           "/.htaccess", "/.htaccess.dist")  # fmt: skip


def run(options, report):
    with Workdir("dokuwiki", keep=options.keep) as workdir:
        wiki = dokuwiki.Wiki(workdir)
        subject = subjects.start(workdir, options, "dokuwiki", dokuwiki.ROOT)
        browser = Browser(workdir, origin=subject.url)
        other = Browser(workdir, "anonymous", origin=subject.url)
        steps = Steps(report, browser, "dokuwiki")
        anonymous_reads(steps, wiki, browser)
        login(steps, wiki, browser)
        edit(steps, options, browser, other)
        upload(steps, workdir, wiki, browser)
        admin_area(steps, browser)
        logout(steps, wiki, browser)
        refused_paths(report, subject)
        wrong = subject.stop()
        report.check("dokuwiki: the server ran to the end and left no process behind", not wrong, wrong)
        if report.failed:
            report.note(subject.logs())


def anonymous_reads(steps, wiki, browser):
    with steps.step("the root leads to the start page"):
        browser.open("/")
        browser.wait_text("The start page.")
        assert wiki.title in browser.title, browser.title
    with steps.step("a page that does not exist says so"):
        browser.open("/doku.php?id=nowhere")
        browser.wait_text("This topic does not exist yet")
    with steps.step("list of pages, recent changes and search"):
        browser.open("/doku.php?id=start&do=index")
        browser.wait_text("Sitemap")
        browser.open("/doku.php?id=start&do=recent")
        browser.wait_text("Recent Changes")
        browser.open("/doku.php?id=start&do=search&q=welcome")
        browser.wait_text("Search")
    with steps.step("the feed"):
        browser.open("/doku.php?id=start")
        status = browser.script("const x = new XMLHttpRequest(); x.open('GET', '/feed.php', false); x.send();"
                                "return x.status + ' ' + x.responseText.includes('<rdf:RDF')")  # fmt: skip
        assert status == "200 true", status


def login(steps, wiki, browser):
    # DokuWiki answers 403 to it.
    with steps.step("a wrong password is refused", expected_failures=("/doku.php?id=start",)):
        log_in(browser, wiki.admin, "wrong")
        browser.wait_text("Sorry, username or password was wrong.")
    with steps.step("login"):
        log_in(browser, wiki.admin, wiki.password)
        browser.wait_text("Logged in as")


def log_in(browser, name, password):
    browser.open("/doku.php?id=start&do=login")
    browser.type("#dw__login input[name=u]", name)
    browser.type("#dw__login input[name=p]", password)
    browser.submit("#dw__login button[type=submit]")


def edit(steps, options, browser, other):
    first, second = f"first text {os.urandom(6).hex()}", f"second text {os.urandom(6).hex()}"
    with steps.step("a new page is shown at once to its writer"):
        save(browser, "notes:one", f"====== Notes ======\n\n{first}\n")
        browser.wait_text(first)
    with steps.step("an anonymous browser sees the new page", browser=other):
        other.open("/doku.php?id=notes:one")
        wait_for_text(other, first, options.ttl)
        assert "Logged in as" not in other.text
    with steps.step("preview"):
        browser.open("/doku.php?id=notes:one&do=edit")
        browser.type("#wiki__text", "preview of //this//")
        browser.submit("#edbtn__preview")
        browser.wait_text("preview of this")
    with steps.step("an edited page is shown at once to its writer"):
        save(browser, "notes:one", f"====== Notes ======\n\n{second}\n")
        browser.wait_text(second)
        assert first not in browser.text
    with steps.step("an anonymous browser sees the edit within the lifetime", browser=other):
        wait_for_text(other, second, options.ttl, reload=True)
    with steps.step("old revisions and differences"):
        browser.open("/doku.php?id=notes:one&do=revisions")
        browser.wait_text("Old Revisions")
        browser.open("/doku.php?id=notes:one&do=diff")
        browser.wait_text("Differences")


def save(browser, page, text):
    browser.open(f"/doku.php?id={page}&do=edit")
    browser.type("#wiki__text", text)
    browser.submit("#edbtn__save")


def wait_for_text(browser, text, ttl, reload=False):
    """Reloads until the text is there. A view that begins when the old page may not be shown any more must have it,
    however long a busy machine takes for the view itself."""
    until = time.monotonic() + ttl + STALE_SECONDS
    begun = 0
    while True:
        if reload:
            begun = time.monotonic()
            browser.reload()
        if text in browser.text:
            return
        if begun > until:
            raise AssertionError(f"not shown after {ttl + STALE_SECONDS} s")
        reload = True
        time.sleep(0.2)


def content(path):
    """What is in a file; nothing where there is none yet."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        return file.read()
    return None


def upload(steps, workdir, wiki, browser):
    with open(workdir.join("picture.png"), "wb") as file:
        file.write(png())
    with steps.step("upload in the media manager"):
        browser.open("/lib/exe/mediamanager.php?ns=notes")
        browser.choose_file("input[type=file]", workdir.join("picture.png"))
        browser.click(".qq-upload-list button, #mediamanager__upload_button, form#dw__upload button[type=submit]")
        stored = os.path.join(wiki.media, "notes", "picture.png")
        browser.wait("the uploaded file", lambda: content(stored) == png())
    with steps.step("the uploaded picture is shown in a page"):
        save(browser, "notes:picture", "{{notes:picture.png}} {{notes:picture.png?20}}\n")
        browser.wait("both pictures", lambda: pictures(browser) == [64, 20])
    with steps.step("media manager of the whole wiki"):
        browser.open("/doku.php?id=start&do=media&ns=notes")
        browser.wait_text("picture.png")


def pictures(browser):
    """Natural widths of the pictures in the page's text, in order."""
    return browser.script(
        "return [...document.querySelectorAll('#dokuwiki__content .page img')].map(i => i.naturalWidth)"
    )


def admin_area(steps, browser):
    with steps.step("admin area"):
        browser.open("/doku.php?id=start&do=admin")
        browser.wait_text("User Manager")
    for page in ADMIN_PAGES:
        with steps.step(f"admin area: {page}"):
            browser.open(f"/doku.php?id=start&do=admin&page={page}")
            browser.find("#dokuwiki__content .page h1, #dokuwiki__content h1")
            assert "Logged in as" in browser.text
    with steps.step("admin area: a new user is stored and can be seen"):
        browser.open("/doku.php?id=start&do=admin&page=usermanager")
        browser.type("#add_userid", "nora")
        browser.type("#add_userpass", "secret-of-nora")
        browser.type("#add_userpass2", "secret-of-nora")
        browser.type("#add_username", "Nora New")
        browser.type("#add_usermail", "nora@example.test")
        browser.submit("button[name='fn[add]']")
        browser.wait_text("nora@example.test")
    with steps.step("admin area: a setting is stored"):
        browser.open("/doku.php?id=start&do=admin&page=config")
        browser.type("#config___tagline", "A calm tagline")
        browser.submit("#dw__configform button[type=submit]")
        browser.open("/doku.php?id=start")
        browser.wait_text("A calm tagline", seconds=2)


def logout(steps, wiki, browser):
    with steps.step("logout shows the anonymous page"):
        browser.open("/doku.php?id=start")
        browser.wait_text("Logged in as")
        browser.submit("a[href*='do=logout']")
        browser.wait("the anonymous page", lambda: "Logged in as" not in browser.text)
        browser.open("/doku.php?id=notes:one")
        assert "Logged in as" not in browser.text
        assert not browser.has("a[href*='do=admin']")


def refused_paths(report, subject):
    client = Client(subject.address, subject.port)
    answers = {path: client.get(path).status for path in REFUSED}
    bad = {path: status for path, status in answers.items() if status not in (403, 404)}
    report.check("dokuwiki: its inner files are refused", not bad, bad)
