"""WordPress (Debian's package) in a real browser.

Pages, login, writing a post in the block editor and as a quick draft,
commenting, uploading, the admin area and logging out, with no failed request
behind any of them; a second, anonymous browser sees changes within the
lifetime and nothing else.
"""

import os
import time

from harness import set_ups, wordpress
from harness.client import Client
from harness.picture import png
from harness.steps import Steps
from harness.webdriver import Browser

# Beyond the lifetime: how long `serve` may show a page while a new one is made.
STALE_SECONDS = 10.0
ADMIN_PAGES = (
    "index.php", "edit.php", "edit.php?post_type=page", "edit-tags.php?taxonomy=category",
    "upload.php", "upload.php?mode=list", "media-new.php", "edit-comments.php", "themes.php",
    "plugins.php", "users.php", "user-new.php", "profile.php", "tools.php", "export.php",
    "options-general.php", "options-writing.php", "options-reading.php",
    "options-discussion.php", "options-media.php", "options-permalink.php", "privacy.php",
)  # fmt: skip


def run(options, report):
    with wordpress.served(options, report, "wordpress") as (site, subject):
        workdir = site.workdir
        admin = wordpress.User("root1", "Ada Admin", "administrator")
        site.install(subject, admin)
        post = {"title": "First", "slug": "first", "author": admin.login, "content": "<p>The first post.</p>"}
        site.seed([admin], [post])
        browser = Browser(workdir, origin=subject.url)
        other = Browser(workdir, "anonymous", origin=subject.url)
        steps = Steps(report, browser, "wordpress")
        log_sees_failures(report, browser)
        anonymous_reads(steps, browser)
        login(steps, admin, browser)
        block_editor(steps, options, browser, other)
        quick_draft(steps, browser, other)
        comments(steps, options, admin, browser, other)
        upload(steps, workdir, site, browser, other)
        admin_area(steps, browser)
        logout(steps, admin, browser)
        refused_paths(report, subject, site)
        if report.failed:
            report.note(subject.logs())


def log_sees_failures(report, browser):
    """A network log that misses a failed picture would prove nothing below."""
    browser.open("/")
    browser.settle()
    browser.failures()
    browser.script("const i = new Image(); i.src = '/wp-includes/images/missing.png'; document.body.append(i)")
    found = []
    is_seen = set_ups.until(lambda: found.extend(browser.failures()) or any("404" in line for line in found), 30)
    report.check("wordpress: the network log notices a missing picture", is_seen, found)
    # The log and the console tell of it one after the other.
    browser.settle()
    browser.failures()


def anonymous_reads(steps, browser):
    with steps.step("front page, with theme and pictures"):
        browser.open("/")
        browser.wait_text("First")
        assert not browser.has("#wpadminbar")
    with steps.step("a post by its name"):
        browser.open("/first/")
        browser.wait_text("The first post.")
    with steps.step("a page at the old address leads to the new one"):
        browser.open("/?p=1")
        assert browser.url.endswith("/hello-world/"), browser.url
    with steps.step("archive, search and author"):
        for target in ("/category/uncategorized/", "/?s=first", "/author/root1/"):
            browser.open(target)
            browser.wait_text("First")
    with steps.step("a page that does not exist says so", expected_failures=("/no-such-page/",)):
        browser.open("/no-such-page/")
        browser.wait_text("This page could not be found")
    with steps.step("the front page comes from memory"):
        browser.network()
        answers = []
        for _ in range(3):
            browser.open("/")
            answers += [e.fields for e in browser.network() if e.kind == "Document" and e.url.endswith("/")]
        words = [f.get("cache-status", f.get("x-cache-status", "")) for f in answers]
        assert any("hit" in word.lower() for word in words), words


def login(steps, admin, browser):
    # WordPress answers 200 to it.
    with steps.step("a wrong password is refused"):
        log_in(browser, admin.login, "wrong")
        browser.wait_text("is incorrect")
    with steps.step("login leads to the dashboard"):
        log_in(browser, admin.login, admin.password)
        browser.wait_text("Dashboard")
        assert browser.url.endswith("/wp-admin/"), browser.url
    with steps.step("the front page is now the user's own"):
        browser.open("/")
        browser.wait_text(f"Howdy, {admin.name}")


def log_in(browser, name, password):
    browser.open("/wp-login.php")
    # The page focuses and selects the first field a moment after loading.
    time.sleep(0.5)
    browser.type("#user_login", name)
    browser.type("#user_pass", password)
    browser.submit("#wp-submit")


def block_editor(steps, options, browser, other):
    title, text = f"Title {os.urandom(5).hex()}", f"words {os.urandom(5).hex()}"
    link = None
    with steps.step("a post written in the block editor is published"):
        browser.open("/wp-admin/post-new.php")
        browser.find(".editor-post-title__input, .wp-block-post-title")
        browser.script("wp.data.dispatch('core/preferences').set('core/edit-post', 'welcomeGuide', false)")
        browser.type(".editor-post-title__input, .wp-block-post-title", title, clear=False)
        browser.click(".block-editor-default-block-appender__content")
        browser.type(".block-editor-rich-text__editable.wp-block-paragraph, p.block-editor-rich-text__editable",
                     text, clear=False)  # fmt: skip
        browser.click(".editor-post-publish-panel__toggle")
        browser.click(".editor-post-publish-panel .editor-post-publish-button")
        browser.find(".post-publish-panel__postpublish-header a")
        link = browser.script("return document.querySelector('.post-publish-panel__postpublish-header a').href")
    with steps.step("the post is shown at once to its writer"):
        browser.open(link)
        browser.wait_text(text)
        browser.open("/")
        browser.wait_text(title)
    with steps.step("an anonymous browser sees the post within the lifetime", browser=other):
        other.open("/")
        wait_for_text(other, title, options.ttl)
        other.open(link)
        other.wait_text(text)
        assert not other.has("#wpadminbar")
    with steps.step("a change in the block editor is stored and shown"):
        browser.open("/wp-admin/edit.php")
        browser.submit("td.title a.row-title")
        browser.find(".wp-block-paragraph")
        browser.type(".wp-block-paragraph", " and more", clear=False)
        browser.click(".editor-post-publish-button")
        browser.find(".components-snackbar")
        browser.open(link)
        browser.wait_text("and more")


def wait_for_text(browser, text, ttl):
    """Reloads until the text is there. A view that begins when the old page may not be shown any more must have it,
    however long a busy machine takes for the view itself."""
    until = time.monotonic() + ttl + STALE_SECONDS
    begun = 0
    while text not in browser.text:
        if begun > until:
            raise AssertionError(f"{text!r} not shown after {ttl + STALE_SECONDS} s")
        time.sleep(0.2)
        begun = time.monotonic()
        browser.reload()


def quick_draft(steps, browser, other):
    title = f"Draft {os.urandom(5).hex()}"
    with steps.step("a quick draft is stored"):
        browser.open("/wp-admin/index.php")
        browser.type("#quick-press #title", title)
        browser.type("#quick-press #content", "Not for everybody yet.")
        browser.click("#save-post")
        browser.wait("the draft in the list", lambda: title in browser.script(
            "return document.querySelector('#dashboard_quick_press .drafts')?.innerText || ''"))  # fmt: skip
    with steps.step("nobody else sees the draft", browser=other):
        other.open("/")
        assert title not in other.text


def comments(steps, options, admin, browser, other):
    text = f"comment {os.urandom(5).hex()}"
    with steps.step("a comment is shown at once to its writer"):
        browser.open("/first/")
        browser.type("#comment", text)
        browser.submit("#commentform input[type=submit]")
        browser.wait_text(text)
    with steps.step("an anonymous browser sees the comment within the lifetime", browser=other):
        other.open("/first/")
        wait_for_text(other, text, options.ttl)
        assert admin.email not in other.source
    own = f"anonymous comment {os.urandom(5).hex()}"
    with steps.step("a comment without account is shown at once in that browser", browser=other):
        other.open("/first/")
        other.type("#comment", own)
        other.type("#author", "Gerda Guest")
        other.type("#email", "gerda@example.test")
        other.submit("#commentform input[type=submit]")
        other.wait_text(own)
    with steps.step("the user moderates it in the admin area"):
        browser.open("/wp-admin/edit-comments.php")
        browser.wait_text(own)
        row = browser.script(
            "return [...document.querySelectorAll('#the-comment-list tr')].find(r => r.innerText.includes("
            f"'{own}')).id"
        )
        browser.script(f"document.querySelector('#{row} .row-actions .trash a').click()")
        browser.wait("the comment to go", lambda: own not in browser.text)
    with steps.step("the trashed comment is gone for the anonymous within the lifetime", browser=other):
        until = time.monotonic() + options.ttl + STALE_SECONDS
        begun = time.monotonic()
        other.open("/first/")
        while own in other.text:
            assert begun < until, "still shown"
            time.sleep(0.2)
            begun = time.monotonic()
            other.reload()


def upload(steps, workdir, site, browser, other):
    with open(workdir.join("picture.png"), "wb") as file:
        file.write(png(1400, 900))
    with steps.step("a picture is uploaded"):
        browser.open("/wp-admin/media-new.php")
        browser.choose_file("input[type=file][id^=html5]", workdir.join("picture.png"))
        browser.find("#media-items .media-item .edit-attachment, #media-items .media-item-copy-container", 40)
        stored = [name for _, _, names in os.walk(site.uploads) for name in names]
        assert "picture.png" in stored and len(stored) > 1, stored
    url = None
    with steps.step("the library shows it"):
        browser.open("/wp-admin/upload.php?mode=grid")
        browser.wait("its thumbnail", lambda: browser.script(
            "const i = document.querySelector('.attachment .thumbnail img'); return i && i.naturalWidth > 0"))  # fmt: skip
        url = browser.script("return wp.media.frames.browse.state().get('library').first().get('url')")
    with steps.step("anybody can load it", browser=other):
        other.open(url)
        width = other.script("return document.querySelector('img').naturalWidth")
        assert width == 1400, width


def admin_area(steps, browser):
    for page in ADMIN_PAGES:
        with steps.step(f"admin area: {page}"):
            browser.open(f"/wp-admin/{page}")
            browser.find("#wpadminbar")
            browser.find("#wpbody-content h1")
            assert "critical error" not in browser.text
    with steps.step("admin area: the site editor"):
        browser.open("/wp-admin/site-editor.php")
        browser.find(".edit-site-visual-editor iframe, iframe[name=editor-canvas]", 40)
    with steps.step("admin area: a setting is stored and shown at once"):
        browser.open("/wp-admin/options-general.php")
        browser.type("#blogdescription", "A calm tagline")
        browser.submit("#submit")
        browser.wait_text("Settings saved.")
        browser.open("/feed/")
        assert "A calm tagline" in browser.source


def logout(steps, admin, browser):
    with steps.step("logout shows the anonymous page"):
        browser.open("/")
        browser.wait_text(f"Howdy, {admin.name}")
        link = browser.script("return document.querySelector('#wp-admin-bar-logout a').href")
        browser.open(link)
        browser.wait_text("You are now logged out.")
        browser.open("/")
        assert not browser.has("#wpadminbar")
        assert "Howdy" not in browser.text
    with steps.step("the admin area asks for the password again"):
        browser.open("/wp-admin/")
        browser.find("#loginform")


def refused_paths(report, subject, site):
    """PHP among the uploads neither runs nor shows its source; dot files stay inside."""
    path = os.path.join(site.uploads, "evil.php")
    with open(path, "w", encoding="utf-8") as file:
        file.write("<?php echo 'it ' . 'ran';")
    client = Client(subject.address, subject.port)
    answer = client.get(f"/wp-content/uploads/{site.uploads_name}/evil.php")
    is_refused = answer.status in (403, 404) and "it ran" not in answer.text and "<?php" not in answer.text
    report.check("wordpress: PHP among the uploads is refused", is_refused, f"{answer.status} {answer.text[:80]}")
    answer = client.get("/.htaccess")
    report.check("wordpress: dot files are refused", answer.status in (403, 404), answer.status)
