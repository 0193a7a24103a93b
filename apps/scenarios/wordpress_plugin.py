"""The WordPress plug-in (php/wordpress): pages are kept for an hour, and none is ever old.

An editor changes the site in each of the ways there are: with the block editor's interface (REST), in
wp-admin (quick edit, bulk edit, the settings' forms), by comments, by cron, and by scripts of the command
line. After each change every public page is asked for. One that comes from memory is compared with the page
as WordPress makes it now; one that does not has been purged. Last, a row is written past WordPress: the
pages that show it are old then, and so the comparison can fail.
"""

import concurrent.futures
import copy
import json
import os
import re
import shutil
import statistics
import subprocess
import time

from harness import subject as subjects
from harness import wordpress
from harness.client import Client
from harness.workdir import Workdir

LIFETIME_SECONDS = 3600
THREADS = 4
MOST_PURGED = 0.40
LEAST_PAGES = 70
COST_PAGES = ("/", "/article-5/", "/category/sport/")
COST_ROUNDS = 100
PLUGIN = os.path.join(wordpress.FILES, "..", "..", "php", "wordpress", "build.sh")
# A cookie that keeps a request from memory, and that WordPress does not know.
PAST_MEMORY = {"wordpress_no_cache": "1"}
# What CI does of it: a change by each way, and some pages of each kind.
CHANGES_IN_CI = (
    "a post is published", "the text of a post", "a draft is written", "quick edit", "a scheduled post is due",
    "the posts of a script", "a visitor comments", "a category is renamed", "another theme", "a widget is added",
)  # fmt: skip
PAGES_IN_CI = r"^/$|/page/2/|/article-(1|2|4|5|7|24)/$|feed|/category/|/author/mary/$|/wp/v2/posts|posts-post|s=article|/team/|/breaking/|/nowhere/"


class Editor:
    """Somebody who changes the site, in all the ways there are."""

    def __init__(self, site, subject, admin, made):
        self.site = site
        self.subject = subject
        self.admin = admin
        self.made = made
        self.written = set()
        self.browser = Client(subject.address, subject.port)
        wordpress.log_in(self.browser, admin)
        self.nonce = self.browser.get("/wp-admin/admin-ajax.php?action=rest-nonce").text.strip()

    def rest(self, method, path, **fields):
        self.written.add(f"/wp-json/wp/v2/{path}")
        answer = self.browser.request(
            method, f"/wp-json/wp/v2/{path}", body=json.dumps(fields).encode(),
            fields={"Content-Type": "application/json", "X-WP-Nonce": self.nonce},
        )  # fmt: skip
        if answer.status not in (200, 201):
            raise RuntimeError(f"{method} {path} answers {answer.status}: {answer.text[:300]}")
        return json.loads(answer.text)

    def upload(self, name, content):
        fields = {
            "Content-Type": "image/png", "Content-Disposition": f'attachment; filename="{name}"', "X-WP-Nonce": self.nonce,
        }  # fmt: skip
        answer = self.browser.request("POST", "/wp-json/wp/v2/media", body=content, fields=fields)
        if answer.status != 201:
            raise RuntimeError(f"an upload answers {answer.status}: {answer.text[:300]}")
        return json.loads(answer.text)

    def form(self, page, target, pattern, **fields):
        """Sends a form of wp-admin, with the token that `pattern` finds on its page."""
        found = re.search(pattern, self.browser.get(page).text)
        if not found:
            raise RuntimeError(f"{page} has no {pattern}")
        [(name, value)] = found.groupdict().items()
        answer = self.browser.post(target, form={name: value, **fields})
        if answer.status not in (200, 302):
            raise RuntimeError(f"{target} answers {answer.status}: {answer.text[:300]}")
        return answer

    def php(self, code, **given):
        """Runs code in a script of the command line."""
        return evaluate(self.site, code, given, user=self.admin.login)

    def comment(self, post, text):
        answer = Client(self.subject.address, self.subject.port).post(
            "/wp-comments-post.php",
            form={"comment": text, "author": "Vera", "email": "vera@example.test", "comment_post_ID": str(post)},
        )  # fmt: skip
        if answer.status != 302:
            raise RuntimeError(f"a comment answers {answer.status}: {answer.text[:300]}")

    def post(self, number):
        return self.made["posts"][f"article-{number}"]


def evaluate(site, code, given=None, user=None):
    with open(os.path.join(wordpress.FILES, "wordpress_eval.php"), encoding="utf-8") as file:
        script = site.workdir.write("eval.php", file.read())
    task = {"host": site.workdir.address, "user": user, "code": code, "given": given or {}}
    done = subprocess.run(
        ["setpriv", "--reuid=www-data", "--regid=www-data", "--clear-groups", "php", script],
        input=json.dumps(task), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    if done.returncode != 0 or done.stderr:
        raise RuntimeError(f"{code[:80]}: {done.stderr or done.stdout}")
    return json.loads(done.stdout.splitlines()[-1])["returned"]


def changes():
    """Each change with its name, and whether visitors see anything of it (None: lists of users are made anew)."""
    made = {}

    def new_post(editor):
        made["new"] = editor.rest(
            "POST", "posts", title="Breaking", slug="breaking", content="<p>Just in.</p>", status="publish",
            categories=[editor.made["categories"]["news"]], tags=[editor.made["tags"]["red"]],
        )["id"]  # fmt: skip

    def new_draft(editor):
        made["draft"] = editor.rest("POST", "posts", title="Not yet", content="<p>Half.</p>", status="draft")["id"]

    def autosave(editor):
        editor.rest("POST", f"posts/{editor.post(9)}/autosaves", id=editor.post(9), content="<p>Only mine.</p>")

    def scheduled(editor):
        made["scheduled"] = editor.php(
            "return wp_insert_post(['post_title' => 'On time', 'post_status' => 'future', 'post_content' => 'Now.',"
            " 'post_date' => wp_date('Y-m-d H:i:s', time() + 2)]);"
        )  # fmt: skip

    def due(editor):
        # WordPress publishes it when cron is called after its time.
        scheduled(editor)
        until = time.monotonic() + 30
        while editor.php("return get_post_status($given['id']);", id=made["scheduled"]) != "publish":
            if time.monotonic() > until:
                raise RuntimeError("cron does not publish")
            time.sleep(0.2)
            Client(editor.subject.address, editor.subject.port).get(f"/wp-cron.php?doing_wp_cron&at={time.time_ns()}")
        # Cron has answered before it works, and purges at its end.
        while "On time" not in Client(editor.subject.address, editor.subject.port).get("/").text:
            if time.monotonic() > until:
                raise RuntimeError("cron does not purge")
            time.sleep(0.05)

    def quick_edit(editor):
        editor.form(
            "/wp-admin/edit.php", "/wp-admin/admin-ajax.php", r'name="_inline_edit" value="(?P<_inline_edit>\w+)"',
            action="inline-save", post_ID=str(editor.post(7)), post_type="post", screen="edit-post", post_view="list",
            post_title="Article 7, quickly", post_name="article-7", _status="publish", mm="01", jj="05", aa="2025",
            hh="10", mn="00", ss="00", post_author="1", comment_status="open",
        )  # fmt: skip

    def bulk_edit(editor):
        found = re.search(r'name="_wpnonce" value="(\w+)"', editor.browser.get("/wp-admin/edit.php").text)
        query = f"_wpnonce={found.group(1)}&action=edit&bulk_edit=Update&post_type=post&post_status=all&_status=-1&post_author=-1"
        posts = "".join(f"&post%5B%5D={editor.post(number)}" for number in (10, 11, 12))
        category = editor.made["categories"]["arts"]
        answer = editor.browser.get(
            f"/wp-admin/edit.php?{query}{posts}&comment_status=&ping_status=&sticky=-1&post_format=-1&tax_input%5Bpost_tag%5D="
            f"&post_category%5B%5D=0&post_category%5B%5D={category}"
        )
        if answer.status != 302:
            raise RuntimeError(f"bulk edit answers {answer.status}")

    def moderated(editor):
        editor.php("update_option('comment_moderation', '1');")
        editor.comment(editor.post(20), "Not shown yet.")
        made["held"] = editor.rest("GET", "comments?status=hold&per_page=1")[0]["id"]

    def options_form(editor):
        editor.form(
            "/wp-admin/options-reading.php", "/wp-admin/options.php", r'name="_wpnonce" value="(?P<_wpnonce>\w+)"',
            option_page="reading", action="update", show_on_front="posts", posts_per_page="5", posts_per_rss="8",
            rss_use_excerpt="1", blog_public="1", blog_charset="UTF-8",
        )  # fmt: skip

    def widget_added(editor):
        made["widget"] = "text-3"
        editor.php(
            "$all = get_option('widget_text'); $all[3] = ['title' => 'Added', 'text' => 'Another word.', 'filter' => false];"
            " update_option('widget_text', $all); $bars = get_option('sidebars_widgets'); $bars['below'][] = 'text-3';"
            " update_option('sidebars_widgets', $bars);"
        )  # fmt: skip

    def new_user(editor):
        made["user"] = editor.rest(
            "POST", "users", username="nora", email="nora@example.test", password="n0ra-n0ra", roles=["author"]
        )["id"]  # fmt: skip

    def upload(editor):
        with open(editor.php("return get_attached_file($given['id']);", id=editor.made["image"]), "rb") as file:
            made["upload"] = editor.upload("square.png", file.read())["id"]

    def template(editor):
        current = editor.rest("GET", f"templates/{BLOCK_THEME}//single?context=edit")["content"]["raw"]
        editor.rest("POST", f"templates/{BLOCK_THEME}//single", content=f"{current}<p>Below each article.</p>")

    def template_again(editor):
        current = editor.rest("GET", f"templates/{BLOCK_THEME}//single?context=edit")["content"]["raw"]
        editor.rest("POST", f"templates/{BLOCK_THEME}//single", content=current.replace("Below", "Under"))

    def template_part(editor):
        editor.rest("POST", f"template-parts/{BLOCK_THEME}//footer", content="<!-- wp:paragraph --><p>A foot.</p><!-- /wp:paragraph -->")

    def navigation(editor):
        made["navigation"] = editor.rest(
            "POST", "navigation", title="Ways", status="publish",
            content='<!-- wp:navigation-link {"label":"Away","url":"https://example.test/away"} /-->',
        )["id"]  # fmt: skip

    def another_theme(editor):
        editor.php("switch_theme($given['theme']);", theme=editor.made["theme"])
        # With the next request, WordPress moves the widgets to where it thinks they belong.
        Client(editor.subject.address, editor.subject.port).get("/wp-login.php")
        evaluate(editor.site, code_of("wordpress_plugin_widgets.php"), editor.made)

    def styles(editor):
        number = editor.php("return WP_Theme_JSON_Resolver::get_user_global_styles_post_id();")
        editor.rest("POST", f"global-styles/{number}", styles={"color": {"background": "#fafaf0"}})

    return [
        # Posts, by the interface of the block editor.
        ("a post is published", True, new_post),
        ("the text of a post", True, lambda e: e.rest("POST", f"posts/{e.post(5)}", content="<p>Corrected.</p>")),
        ("the title of a post", True, lambda e: e.rest("POST", f"posts/{e.post(6)}", title="Article 6, renamed")),
        ("the address of a post", True, lambda e: e.rest("POST", f"posts/{e.post(8)}", slug="article-eight")),
        ("the date of a post", True, lambda e: e.rest("POST", f"posts/{e.post(22)}", date="2025-03-04T05:06:07")),
        ("the author of a post", True, lambda e: e.rest("POST", f"posts/{e.post(16)}", author=e.made["authors"]["paul"])),
        ("the categories of a post", True, lambda e: e.rest("POST", f"posts/{e.post(14)}", categories=[e.made["categories"]["local"]])),
        ("the tags of a post", True, lambda e: e.rest("POST", f"posts/{e.post(15)}", tags=[e.made["tags"]["blue"]])),
        ("a featured image", True, lambda e: e.rest("POST", f"posts/{e.post(21)}", featured_media=e.made["other_image"])),
        ("a post is made sticky", True, lambda e: e.rest("POST", f"posts/{e.post(13)}", sticky=True)),
        ("a draft is written", False, new_draft),
        ("a draft is published", True, lambda e: e.rest("POST", f"posts/{made['draft']}", status="publish")),
        ("an autosave", False, autosave),
        ("a post becomes a draft", True, lambda e: e.rest("POST", f"posts/{e.post(17)}", status="draft")),
        ("a post becomes private", True, lambda e: e.rest("POST", f"posts/{e.post(18)}", status="private")),
        ("a password for a post", True, lambda e: e.rest("POST", f"posts/{e.post(19)}", password="secret")),
        ("a post is trashed", True, lambda e: e.rest("DELETE", f"posts/{made['draft']}")),
        ("a post is deleted", True, lambda e: e.rest("DELETE", f"posts/{e.post(23)}?force=true")),
        ("a page is published", True, lambda e: e.rest("POST", "pages", title="Visit", slug="visit", status="publish", parent=e.made["pages"]["about"])),
        ("the title of a page of the menu", True, lambda e: e.rest("POST", f"pages/{e.made['pages']['about']}", title="About us")),
        ("the address of a page with pages below", True, lambda e: e.rest("POST", f"pages/{e.made['pages']['about']}", slug="about-us")),
        ("a block that is used twice", True, lambda e: e.rest("POST", f"blocks/{e.made['block']}", content="<p>Another notice.</p>")),
        ("the alternative text of an image", True, lambda e: e.rest("POST", f"media/{e.made['image']}", alt_text="A harbour at dusk")),
        ("an upload", True, upload),
        # In wp-admin, by cron, by scripts.
        ("quick edit", True, quick_edit),
        ("bulk edit", True, bulk_edit),
        ("a scheduled post is due", True, due),
        ("the posts of a script", True, lambda e: e.php(
            "foreach ($given['ids'] as $id) { wp_update_post(['ID' => $id, 'post_content' => 'By a script.']); }", ids=[e.post(1), e.post(2)])),
        ("a script writes meta data", True, lambda e: e.php("set_post_thumbnail($given['id'], $given['image']);", id=e.post(3), image=e.made["image"])),
        ("a post comes back from the trash", True, lambda e: e.php(
            "wp_untrash_post($given['id']); wp_publish_post($given['id']);", id=made["draft"])),
        # Comments.
        ("a visitor comments", True, lambda e: e.comment(e.post(24), "Well said.")),
        ("a comment waits for moderation", False, moderated),
        ("a comment is approved", True, lambda e: e.rest("POST", f"comments/{made['held']}", status="approved")),
        ("a comment is edited", True, lambda e: e.rest("POST", f"comments/{made['held']}", content="Shown now.")),
        ("an old comment is edited", True, lambda e: e.rest("POST", f"comments/{e.made['comments'][0]}", content="Edited.")),
        ("a comment is spam", True, lambda e: e.rest("POST", f"comments/{made['held']}", status="spam")),
        # Terms and users.
        ("a category is made", True, lambda e: e.rest("POST", "categories", name="Weather")),
        ("a category is renamed", True, lambda e: e.rest("POST", f"categories/{e.made['categories']['arts']}", name="Culture")),
        ("a category is described", True, lambda e: e.rest("POST", f"categories/{e.made['categories']['sport']}", description="Of balls.")),
        ("a tag is deleted", True, lambda e: e.rest("DELETE", f"tags/{e.made['tags']['rare']}?force=true")),
        ("the name of an author", True, lambda e: e.rest("POST", f"users/{e.made['authors']['paul']}", name="Paul Painter")),
        ("the biography of an author", True, lambda e: e.rest("POST", f"users/{e.made['authors']['mary']}", description="Writes on Sundays.")),
        ("a user without posts", None, new_user),
        ("a login", False, lambda e: wordpress.log_in(Client(e.subject.address, e.subject.port), e.admin)),
        ("an author leaves and another inherits", True, lambda e: e.rest(
            "DELETE", f"users/{e.made['authors']['paul']}?force=true&reassign={e.made['authors']['mary']}")),
        # Block themes.
        ("a template", True, template),
        ("a template again", True, template_again),
        ("a template part", True, template_part),
        ("a navigation menu", True, navigation),
        ("a navigation menu is edited", True, lambda e: e.rest(
            "POST", f"navigation/{made['navigation']}", content='<!-- wp:navigation-link {"label":"Off","url":"https://example.test/off"} /-->')),
        ("global styles", True, styles),
        # What surrounds the pages, in a theme without blocks.
        ("another theme", True, another_theme),
        ("a menu item is renamed", True, lambda e: e.rest("POST", f"menu-items/{e.made['menu_item']}", title="Far away")),
        ("a menu item is deleted", True, lambda e: e.rest("DELETE", f"menu-items/{e.made['menu_item']}?force=true")),
        ("a widget is added", True, widget_added),
        ("a widget is edited", True, lambda e: e.rest(
            "POST", f"widgets/{made['widget']}", instance={"raw": {"title": "Edited", "text": "The word.", "filter": False, "visual": False}})),
        ("a widget is removed", True, lambda e: e.rest("DELETE", f"widgets/{made['widget']}?force=true")),
        ("the settings for reading", True, options_form),
        ("the order of comments", True, lambda e: e.php("update_option('comment_order', 'desc');")),
        ("a transient", False, lambda e: e.php("set_transient('anything', microtime(), 60);")),
        ("the blog's name", True, lambda e: e.rest("POST", "settings", title="Another name")),
        ("custom CSS", True, lambda e: e.php("wp_update_custom_css_post('body { color: #123456; }');")),
    ]  # fmt: skip


def block_theme():
    """The theme that Debian has, in this release; none in some."""
    folder = f"{wordpress.CONTENT}/themes"
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return next((name for name in sorted(names) if os.path.isfile(f"{folder}/{name}/theme.json")), None)


BLOCK_THEME = block_theme()


def public_pages(made):
    """Every kind of address that a visitor, a reader of feeds, or a program may ask for."""
    posts = made["posts"]
    pages = ["/", "/page/2/", "/page/3/", "/page/9/"]
    pages += [f"/article-{number}/" for number in range(1, 25)]
    pages += ["/about/", "/about/team/", "/about/history/", "/contact/", "/imprint/", "/harbour/", "/tower/"]
    pages += ["/category/news/", "/category/news/local/", "/category/sport/", "/category/arts/", "/category/arts/feed/"]
    pages += ["/tag/red/", "/tag/green/", "/tag/blue/", "/tag/rare/", "/tag/red/page/2/"]
    pages += ["/author/root1/", "/author/mary/", "/author/paul/", "/author/mary/feed/"]
    pages += made["archives"]
    pages += ["/feed/", "/feed/atom/", "/comments/feed/", "/article-24/feed/", "/article-23/feed/"]
    pages += ["/?s=article", "/?s=corrected", "/?s=nothing+like+it"]
    pages += ["/breaking/", "/nowhere/", "/category/weather/", "/about-us/team/", f"/?p={posts['article-4']}"]
    pages += ["/wp-sitemap.xml", "/wp-sitemap-posts-post-1.xml", "/wp-sitemap-posts-page-1.xml"]
    pages += ["/wp-sitemap-taxonomies-category-1.xml", "/wp-sitemap-users-1.xml", "/robots.txt"]
    pages += [f"/wp-json/wp/v2/{name}" for name in ("posts", "pages", "categories", "tags", "users", "comments", "media")]
    pages += [f"/wp-json/wp/v2/posts/{posts['article-5']}", "/wp-json/wp/v2/search?search=article"]
    pages += [f"/wp-json/wp/v2/comments?post={posts['article-8']}"]
    return pages


class Pages:
    """All pages: as they come from the server, and as WordPress makes them now."""

    def __init__(self, subject, paths):
        self.subject = subject
        self.paths = paths

    def each(self, paths, cookies=None):
        """The answers to requests by as many visitors, by path."""

        def ask(path):
            return path, Client(self.subject.address, self.subject.port, cookies).get(path)

        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            return dict(pool.map(ask, paths))

    def warm(self):
        """Has all of them stored; returns those that the server does not keep."""
        self.each(self.paths)
        return [path for path, answer in self.each(self.paths).items() if not answer.is_hit]

    def look(self):
        """What visitors get, which pages were not in memory, and which were and are old."""
        now = self.each(self.paths)
        purged = [path for path, answer in now.items() if not answer.is_hit]
        kept = [path for path in self.paths if now[path].is_hit]
        made = self.each(kept, PAST_MEMORY)
        old = [path for path in kept if content(now[path]) != content(made[path])]
        return now, purged, old


def content(answer):
    return answer.status, answer.field("location"), answer.text


def run(options, report):
    if not options.subject.startswith("mayfly"):
        report.note("left out: nginx has no tags")
        return
    if BLOCK_THEME is None:
        report.note("left out: there is no theme of blocks here")
        return
    options = copy.copy(options)
    options.ttl = LIFETIME_SECONDS
    with Workdir("plugin", keep=options.keep) as workdir:
        site = wordpress.Site(workdir, plugins=("cost.php",))
        subprocess.run([PLUGIN, "--must-use", workdir.join("mu-plugins")], check=True)
        with open(workdir.join("config.php"), "a", encoding="utf-8") as config:
            config.write(f"define('DISABLE_WP_CRON', true);\ndefine('COST_FILE', '{workdir.mkdir('cost')}/cost');\n")
        theme = f"classic-{os.path.basename(workdir.path)}"
        shutil.copytree(os.path.join(wordpress.FILES, "classic_theme"), workdir.join("theme"))
        workdir.link_for_the_run(workdir.join("theme"), f"{wordpress.CONTENT}/themes/{theme}")
        subject = subjects.start(workdir, options, "wordpress", wordpress.ROOT)
        failed = report.failed
        try:
            admin = wordpress.User("root1", "Ada Admin", "administrator")
            authors = [wordpress.User("mary", "Mary Mason", "author"), wordpress.User("paul", "Paul Parker", "author")]
            site.install(subject, admin)
            site.seed([admin, *authors], [])
            made = seed(site, theme, authors)
            editor = Editor(site, subject, admin, made)
            judge(report, options, editor, Pages(subject, public_pages(made)))
            if options.all_changes:
                cost(report, workdir, subject)
        finally:
            wrong = subject.stop()
            if report.failed > failed:
                report.note(subject.logs())
        report.check("plug-in: the server ran to the end", not wrong, wrong)


def code_of(name):
    with open(os.path.join(wordpress.FILES, name), encoding="utf-8") as file:
        return file.read().removeprefix("<?php")


def seed(site, theme, authors):
    given = {"theme": BLOCK_THEME, "authors": {user.login: user.id for user in authors}}
    made = evaluate(site, code_of("wordpress_plugin_seed.php"), given)
    made["theme"] = theme
    made["authors"] = {user.login: user.id for user in authors}
    made["archives"] = evaluate(
        site,
        "global $wpdb; $paths = []; foreach ($wpdb->get_col(\"SELECT DISTINCT DATE_FORMAT(post_date, '%Y/%m') FROM "
        "$wpdb->posts WHERE post_type = 'post' AND post_status = 'publish'\") as $month) { $paths[] = \"/$month/\";"
        " $paths[] = '/' . substr($month, 0, 4) . '/'; } return array_values(array_unique($paths));",
    )
    return made


def judge(report, options, editor, pages):
    if not options.all_changes:
        pages.paths = [path for path in pages.paths if re.search(PAGES_IN_CI, path)]
    unkept = pages.warm()
    # Redirects are kept for a second.
    pages.paths = [path for path in pages.paths if path not in unkept]
    report.note(f"{len(pages.paths)} pages; not kept: {unkept}")
    if options.all_changes:
        report.check(f"plug-in: at least {LEAST_PAGES} public pages are kept", len(pages.paths) >= LEAST_PAGES, unkept)
    before, _, old = pages.look()
    report.check("plug-in: a page made twice is the same", not old, old)
    shares = []
    for name, is_visible, change in changes():
        if not options.all_changes and name not in CHANGES_IN_CI:
            continue
        editor.written.clear()
        change(editor)
        now, purged, old = pages.look()
        differ = [path for path in pages.paths if content(now[path]) != content(before[path])]
        # WordPress forbids to keep some redirects. Any write drops the answers to wrong addresses
        # (cache_not_found), and what is stored for its own address (RFC 9111, section 4.4).
        counted = [path for path in pages.paths if before[path].status == 200 and path not in editor.written]
        purged = [path for path in purged if path in counted]
        shares.append(len(purged) / len(counted))
        report.note(f"{name}: {len(purged)} of {len(counted)} purged, {len(differ)} differ")
        report.check(f"plug-in: {name}: no page is old", not old, old)
        if is_visible is not None:
            is_right = bool(differ) if is_visible else not differ and not purged
            report.check(f"plug-in: {name}: {'it is seen' if is_visible else 'nothing is purged'}", is_right, purged or differ)
        before = now
    purged = f"plug-in: {len(shares)} changes purged {statistics.mean(shares):.1%} of the pages on average"
    if options.all_changes:
        report.check(f"{purged}, fewer than {MOST_PURGED:.0%}", statistics.mean(shares) < MOST_PURGED, shares)
    else:
        report.note(purged)
    editor.php("global $wpdb; $wpdb->update($wpdb->posts, ['post_title' => 'Past'], ['ID' => $given['id']]);", id=editor.post(4))
    _, _, old = pages.look()
    report.check("plug-in: what is written past WordPress is not seen, and found", "/article-4/" in old, old)


def cost(report, workdir, subject):
    """The CPU time of pages with tags and without, by turns."""
    log = workdir.join("cost", "cost")
    shares = []
    for page in COST_PAGES:
        for _ in range(COST_ROUNDS):
            for cookies in ({}, {"mayfly_off": "1"}):
                Client(subject.address, subject.port, {**PAST_MEMORY, "mayfly_cost": "1", **cookies}).get(page)
        with open(log, encoding="utf-8") as file:
            spent = [line.split() for line in file][-2 * COST_ROUNDS :]
        # The lower quartile: whatever else runs on the machine only adds to a page's time.
        on, off = (
            statistics.quantiles([int(cost) for kind, cost in spent if kind == wanted], n=4)[0] for wanted in ("on", "off")
        )
        shares.append(on / off - 1)
        report.note(f"{page} costs {off / 1000:.1f} ms of CPU time without tags, {on / 1000:.1f} ms with them")
    report.note(f"tags cost {statistics.mean(shares):.1%} of a page's CPU time")
