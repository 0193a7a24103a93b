"""Applications with a database (harness/application_base.py), and all by their names.

What an installer leaves is little: `seed` writes more rows. `own` are changes by the application's own forms."""

import os
import re
import shutil

from . import mediawiki, wordpress
from .application_base import PASSWORD, SECONDS, Application, Source, installed, php, remove, words_of
from .application_files import Bludit, CmsimpleXh, DokuWiki, GetSimple, Kirby, PluXml
from .web_forms import Visitor
from .workdir import listens, wait_for


class WordPress(Application):
    """Debian's, unless it has a source, in a folder as from wordpress.org; with `has_redis` its object cache is in a Redis of the run."""

    skip = r"wp-admin|wp-login|wp-json|xmlrpc|/feed|replytocom|\?s=|wp-content"
    starts = ("/", "/article-3/", "/category/news/", "/about-1/")

    def __init__(self, has_redis=False):
        self.has_redis = has_redis

    def put(self, site):
        if self.source:
            super().put(site)
        else:
            shutil.copytree(wordpress.ROOT, site.root, dirs_exist_ok=True)
        for name in os.listdir(os.path.join(site.root, "wp-content")):
            path = os.path.join(site.root, "wp-content", name)
            if os.path.islink(path):
                os.unlink(path)
        more = ""
        if self.has_redis:
            port = site.workdir.free_port()
            site.workdir.spawn("redis", ["redis-server", "--bind", site.address, "--port", str(port), "--save", "", "--appendonly", "no", "--dir", site.workdir.path])
            wait_for("redis", listens(site.address, port), SECONDS)
            more = f"define('WP_REDIS_HOST', '{site.address}');\ndefine('WP_REDIS_PORT', {port});\n"
            shutil.copy(os.path.join(wordpress.FILES, "wordpress_redis_cache.php"), os.path.join(site.root, "wp-content/object-cache.php"))
        site.write("wp-config.php", f"""<?php
define('DB_NAME', '{site.database.name}');
define('DB_USER', '{site.database.user}');
define('DB_PASSWORD', '{site.database.password}');
define('DB_HOST', '{site.address}');
define('DB_CHARSET', 'utf8mb4');
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTH_KEY', 'a'); define('SECURE_AUTH_KEY', 'b'); define('LOGGED_IN_KEY', 'c'); define('NONCE_KEY', 'd');
{more}$table_prefix = 'wp_';
if (!defined('ABSPATH')) {{ define('ABSPATH', __DIR__ . '/'); }}
require_once ABSPATH . 'wp-settings.php';
""")  # fmt: skip

    def install(self, site):
        answer = Visitor(site.plain, site.host).post("/wp-admin/install.php?step=2", {
            "weblog_title": "A blog", "user_name": "admin", "admin_password": PASSWORD, "admin_password2": PASSWORD, "pw_weak": "on",
            "admin_email": "admin@example.test", "blog_public": "1", "Submit": "Install WordPress", "language": "",
        })  # fmt: skip
        installed(answer, "Success!")

    def seed(self, site):
        php(site, site.workdir.write("seed.php", f"""<?php
$_SERVER += ['HTTP_HOST' => '{site.host}', 'REQUEST_METHOD' => 'GET', 'REQUEST_URI' => '/', 'SERVER_PROTOCOL' => 'HTTP/1.1'];
require '{site.root}/wp-load.php';
foreach (['permalink_structure' => '/%postname%/', 'comment_previously_approved' => '0', 'comment_moderation' => '0', 'comments_notify' => '0', 'moderation_notify' => '0', 'show_avatars' => '0'] as $name => $value) {{
    update_option($name, $value);
}}
$news = wp_insert_term('News', 'category')['term_id'];
for ($number = 1; $number <= 12; $number++) {{
    $made = wp_insert_post(['post_title' => "Article $number", 'post_name' => "article-$number", 'post_content' => "<p>Words of article $number.</p>", 'post_status' => 'publish',
        'post_author' => 1, 'comment_status' => 'open', 'post_category' => $number % 2 ? [$news] : [1], 'post_date' => sprintf('2026-05-%02d 10:00:00', $number), 'tags_input' => ['red', "tag $number"]]);
    wp_insert_comment(['comment_post_ID' => $made, 'comment_content' => "A comment on $number", 'comment_author' => 'Guest', 'comment_approved' => 1]);
}}
for ($number = 1; $number <= 3; $number++) {{
    wp_insert_post(['post_type' => 'page', 'post_title' => "About $number", 'post_name' => "about-$number", 'post_content' => "<p>Words on $number.</p>", 'post_status' => 'publish', 'post_author' => 1]);
}}
$GLOBALS['wp_rewrite']->init();
flush_rewrite_rules(false);
"""))  # fmt: skip

    def own(self, site):
        visitor = Visitor(site.subject, site.host)
        ids = {name: number for number, name in site.sql("SELECT ID, post_name FROM wp_posts WHERE post_name LIKE 'article-%'")}

        def call(method, *values):
            said = "".join(f"<param><value>{value}</value></param>" for value in ("<int>1</int>", *values))
            body = f"<?xml version=\"1.0\"?><methodCall><methodName>{method}</methodName><params>{said}</params></methodCall>"
            answer = visitor.client.post("/xmlrpc.php", body=body.encode(), fields={"Content-Type": "text/xml"})
            if answer.status != 200 or "<fault>" in answer.text:
                raise RuntimeError(f"{method}: {answer.status} {answer.text[:300]}")

        def struct(**values):
            return "<struct>" + "".join(f"<member><name>{name}</name><value><string>{value}</string></value></member>" for name, value in values.items()) + "</struct>"

        who = ("<string>admin</string>", f"<string>{PASSWORD}</string>")
        number = f"<int>{ids['article-5']}</int>"
        return [
            ("the text of an article", lambda: call("wp.editPost", *who, number, struct(post_title="Article five", post_content="Other words."))),
            ("a new article", lambda: call("wp.newPost", *who, struct(post_title="A new one", post_content="New words.", post_status="publish", post_type="post"))),
            ("a visitor comments", lambda: visitor.submit("/article-3/", "comment_post_ID", comment="A comment by a visitor.", author="Guest", email="guest@example.test")),
            ("the blog's name", lambda: call("wp.setOptions", *who, struct(blog_title="Another blog"))),
            ("an article is removed", lambda: call("wp.deletePost", *who, f"<int>{ids['article-7']}</int>")),
            ("a category", lambda: call("wp.newTerm", *who, struct(name="Weather", taxonomy="category"))),
        ]  # fmt: skip


class ClassicPress(WordPress):
    """A fork of WordPress 6 without its block editor."""

    source = Source("ClassicPress/ClassicPress-release")


class MediaWiki(Application):
    """Debian's. Its settings say that it keeps nothing in caches (docs/learned.md)."""

    has_sqlite = has_postgres = True
    skip = r"Special:|oldid=|action=(edit|info)|diff=|printable=|load\.php|api\.php|veaction|redlink=1"
    normal = mediawiki_normal = (
        r"<!--.*?-->|\"wgRequestId\":\"[^\"]*\"|\"wgBackendResponseTime\":\d+|\"wgPageParseReport\":.*?</script>"
    )
    starts = ("/wiki/Main_Page", "/wiki/Article_1", "/wiki/Category:Kind_1")
    php_settings = "apc.enabled=0\n"

    def put(self, site):
        site.wiki = mediawiki.Wiki(site.workdir, site.port, mediawiki.NO_CACHES, site.database)
        site.root = site.wiki.document_root("site", "")
        if site.options.postgres:
            # Programs name its tables without their schema.
            site.sql(f"ALTER ROLE {site.database.user} SET search_path = mediawiki, public")

    def install(self, site):
        pass

    def sqlite_file(self, site):
        return next(site.workdir.join("wiki-data", name) for name in os.listdir(site.workdir.join("wiki-data")) if re.fullmatch(r"\w*wiki\.sqlite", name))

    def seed(self, site):
        editor = Visitor(site.plain, site.host).client
        mediawiki.log_in(editor, site.wiki)
        mediawiki.edit(editor, "Template:Notice", "a notice")
        for number in range(12):
            near, far = (number + 1) % 12, (number + 5) % 12
            text = f"The text of {number}. {{{{Notice}}}} [[Article {near}]] [[Article {far}]] [[Category:Kind {number % 3}]]"
            mediawiki.edit(editor, f"Article {number}", text)
        for number in range(3):
            mediawiki.edit(editor, f"Category:Kind {number}", f"What is of kind {number}.")
        mediawiki.edit(editor, "Main Page", "Welcome to [[Article 1]], [[Article 4]] and [[Article 8]].")

    def own(self, site):
        editor = Visitor(site.subject, site.host).client
        mediawiki.log_in(editor, site.wiki)
        return [
            ("the text of an article", lambda: mediawiki.edit(editor, "Article 1", "Another text. {{Notice}} [[Article 2]]")),
            ("a template", lambda: mediawiki.edit(editor, "Template:Notice", "another notice")),
            ("an edit by the form", lambda: mediawiki.edit_by_form(editor, "Article_4", "By the form. [[Article 5]]")),
            ("an article is deleted", lambda: mediawiki.act(editor, "delete", title="Article 8")),
            ("a message of the interface", lambda: mediawiki.edit(editor, "MediaWiki:Tagline", "From another wiki")),
        ]


class OpenCart(Application):
    source = Source("opencart/opencart", "upload")
    skip = r"account|checkout|cart|compare|wishlist|currency|language=|limit=|sort=|tracking|voucher|returns"

    def install(self, site):
        for name in ("config.php", "admin/config.php"):
            site.touch(name)
        told = php(
            site, "install/cli_install.php", "install", "--username", "admin", "--email", "admin@example.test", "--password", PASSWORD,
            "--http_server", f"http://{site.host}/", "--language", "en-gb", "--db_driver", "mysqli", "--db_hostname", site.address,
            "--db_username", site.database.user, "--db_password", site.database.password, "--db_database", site.database.name,
            "--db_port", "3306", "--db_prefix", "oc_",
        )  # fmt: skip
        if "SUCCESS" not in told:
            raise RuntimeError(told[-1000:])
        remove(site, "install")


class Piwigo(Application):
    source = Source("Piwigo/Piwigo")
    skip = r"identification|register|password|feed\.php|action\.php|calendar|display=|slideshow|qsearch|search\.php|profile|/random|random\.php|_data|i\.php"
    normal = r"\d+ SQL queries"

    def install(self, site):
        answer = Visitor(site.plain, site.host).post("/install.php?language=en_UK", {
            "language": "en_UK", "dbhost": site.address, "dbuser": site.database.user, "dbpasswd": site.database.password,
            "dbname": site.database.name, "prefix": "piwigo_", "admin_name": "admin", "admin_pass1": PASSWORD, "admin_pass2": PASSWORD,
            "admin_mail": "admin@example.test", "install": "Start installation",
        })  # fmt: skip
        installed(answer, "Congratulations")

    def seed(self, site):
        for number in range(1, 7):
            site.sql(f"INSERT INTO piwigo_categories (id, name, comment, `rank`, global_rank, uppercats, visible, status) VALUES ({number}, 'Album {number}', 'About album {number}', {number}, '{number}', '{number}', 'true', 'public')")
        for number in range(1, 13):
            album = 1 + number % 6
            site.sql(
                "INSERT INTO piwigo_images (id, file, name, comment, date_available, path, width, height, filesize, md5sum) VALUES "
                f"({number}, 'p{number}.jpg', 'Picture {number}', 'Words on picture {number}', '2026-01-{number:02} 10:00:00', './galleries/p{number}.jpg', 800, 600, 90, MD5('{number}'))"
            )
            site.sql(f"INSERT INTO piwigo_image_category (image_id, category_id) VALUES ({number}, {album})")
        for number in range(1, 4):
            site.sql(f"INSERT INTO piwigo_tags (id, name, url_name) VALUES ({number}, 'Tag {number}', 'tag_{number}')")
            site.sql(f"INSERT INTO piwigo_image_tag (image_id, tag_id) VALUES ({number}, {number}), ({number + 4}, {number})")
        site.sql("UPDATE piwigo_categories SET representative_picture_id = id")
        site.sql("DELETE FROM piwigo_user_cache")
        site.sql("DELETE FROM piwigo_user_cache_categories")


class Textpattern(Application):
    source = Source("textpattern/textpattern")
    skip = r"/textpattern/|\?q=|file_download"
    # How long ago something was, which a kept page may say for a minute (docs/learned.md).
    normal = r"\b(?:\d+|a|an|a few) \w+ ago"

    def install(self, site):
        config = site.workdir.write("textpattern.json", site.json({
            "site": {"language_code": "en", "public_url": site.host, "admin_theme": "hive", "public_theme": "four-point-nine", "content_directory": ""},
            "database": {"user": site.database.user, "password": site.database.password, "host": site.address, "db_name": site.database.name, "table_prefix": ""},
            "user": {"full_name": "Ada Admin", "email": "admin@example.test", "login_name": "admin", "password": PASSWORD},
        }), owner="www-data")  # fmt: skip
        php(site, "textpattern/setup/setup.php", f"--config={config}")
        remove(site, "textpattern/setup")

    def seed(self, site):
        # Without the figures of a site under test in each page.
        site.sql("UPDATE txp_prefs SET val = 'live' WHERE name = 'production_status'")
        columns = [name for name in site.columns("textpattern") if name != "ID"]
        for number in range(2, 16):
            values = {"Title": f"'Article {number}'", "url_title": f"'article-{number}'", "Body_html": f"'<p>Words of article {number}.</p>'",
                      "Posted": f"'2026-02-{number:02} 10:00:00'", "uid": f"'{number:032}'"}  # fmt: skip
            site.sql(f"INSERT INTO textpattern ({', '.join(columns)}) SELECT {', '.join(values.get(name, name) for name in columns)} FROM textpattern WHERE ID = 1")


class Serendipity(Application):
    source = Source("s9y/Serendipity")
    has_sqlite = True
    # It keeps values in APCu where there is one, which is not learned (docs/learned.md).
    php_settings = "apc.enabled=0\n"
    skip = r"admin|exit\.php|/plugin/|comment\.php|serendipity\.css|/feeds/|rss\.php|wfwcomment|/archives/\d{4}|P\d+\.html|/archive$|search"

    def install(self, site):
        # It writes its own rules of rewriting for Apache, which `serve` reads.
        form = {
            "serendipity[step]": "2a", "serendipity[getstep]": "3", "user": "admin", "pass": PASSWORD, "realname": "Ada Admin", "email": "admin@example.test",
            "username": "admin", "pass2": PASSWORD, "lang": "en", "serendipityPath": f"{site.root}/", "serendipityHTTPPath": "/",
            "defaultBaseURL": f"http://{site.host}/", "dbPrefix": "serendipity_", "want_mail": "false", "rewrite": "none",
        }  # fmt: skip
        if site.database:
            form |= {"dbType": "mysqli", "dbHost": site.address, "dbUser": site.database.user, "dbPass": site.database.password, "dbName": site.database.name}
        else:
            form |= {"dbType": "sqlite3oo", "dbName": "serendipity"}
        answer = Visitor(site.plain, site.host).post("/serendipity_admin.php?serendipity[step]=3", form)
        installed(answer, "successfully installed")

    def sqlite_file(self, site):
        return next(os.path.join(site.root, name) for name in os.listdir(site.root) if name.startswith("serendipity_") and name.endswith(".db"))

    def seed(self, site):
        # As its form for designs does: without it, each page has the second in the addresses of its styles.
        site.sql("INSERT INTO serendipity_config (name, value, authorid) VALUES ('last_template_change', '1767000000', 0)")
        for number in range(1, 4):
            site.sql(f"INSERT INTO serendipity_category (categoryid, category_name, category_description, authorid, parentid, category_left, category_right) VALUES ({number}, 'Category {number}', 'On category {number}', 1, 0, {2 * number - 1}, {2 * number})")
        for number in range(1, 15):
            site.sql(
                "INSERT INTO serendipity_entries (id, title, timestamp, body, comments, trackbacks, extended, exflag, author, authorid, isdraft, allow_comments, last_modified, moderate_comments) VALUES "
                f"({number}, 'Entry {number}', {1767000000 + number * 86400}, 'Words of entry {number}.', 0, 0, '', 0, 'Ada Admin', 1, 'false', 'true', {1767000000 + number * 86400}, 'false')"
            )
            site.sql(f"INSERT INTO serendipity_entrycat (entryid, categoryid) VALUES ({number}, {1 + number % 3})")

    def own(self, site):
        visitor = Visitor(site.subject, site.host)

        def comment(number):
            visitor.submit(f"/index.php?/archives/{number}-Entry-{number}.html", "serendipity[comment]", more={
                "serendipity[name]": "Guest", "serendipity[email]": "guest@example.test", "serendipity[comment]": f"A comment on {number} by a visitor.",
                "serendipity[preview]": None, "serendipity[submit]": "Submit Comment",
            })  # fmt: skip

        return [(f"a visitor comments entry {number}", lambda number=number: comment(number)) for number in (3, 9)]


class Typecho(Application):
    """`serve` does not find its account: the settings give it to a method."""

    source = Source("typecho/typecho")
    has_sqlite = has_postgres = True
    skip = r"/admin/|/action/|/feed/|/comment\b|\?|/attachment/"

    def install(self, site):
        settings = {"SITE_URL": f"http://{site.host}", "USER_NAME": "admin", "USER_PASSWORD": PASSWORD, "USER_MAIL": "admin@example.test"}
        if site.database:
            settings |= {
                "DB_ADAPTER": "Pdo_Mysql" if site.is_mysql else "Pdo_Pgsql", "DB_HOST": site.address if site.is_mysql else site.database.folder,
                "DB_USER": site.database.user, "DB_PASSWORD": site.database.password, "DB_DATABASE": site.database.name,
            }  # fmt: skip
        else:
            settings |= {"DB_ADAPTER": "Pdo_SQLite", "DB_FILE": self.sqlite_file(site)}
        php(site, "install.php", environment={f"TYPECHO_{name}": value for name, value in settings.items()})

    def sqlite_file(self, site):
        return f"{site.mkdir('usr/data')}/site.db"

    def seed(self, site):
        # Its protection against spam is another script in each page.
        site.sql("UPDATE typecho_options SET value = '0' WHERE name IN ('commentsAntiSpam', 'commentsPostIntervalEnable')")
        php(site, site.workdir.write("seed.php", f"""<?php
require '{site.root}/config.inc.php';
$db = \\Typecho\\Db::get();
$make = fn($table, $rows) => $db->query($db->insert("table.$table")->rows($rows));
for ($number = 11; $number <= 13; $number++) {{
    $make('metas', ['mid' => $number, 'name' => "Kind $number", 'slug' => "kind-$number", 'type' => 'category', 'description' => "On kind $number", 'count' => 5]);
}}
for ($number = 11; $number <= 25; $number++) {{
    $time = 1767000000 + $number * 86400;
    $make('contents', ['cid' => $number, 'title' => "Article $number", 'slug' => "article-$number", 'created' => $time, 'modified' => $time, 'text' => "Words of article $number.",
        'authorId' => 1, 'type' => 'post', 'status' => 'publish', 'commentsNum' => 1, 'allowComment' => 1, 'allowPing' => 1, 'allowFeed' => 1]);
    $make('relationships', ['cid' => $number, 'mid' => 11 + $number % 3]);
    $make('comments', ['cid' => $number, 'created' => $time, 'author' => "Guest $number", 'ownerId' => 1, 'text' => "A comment on $number", 'type' => 'comment', 'status' => 'approved']);
}}
"""))  # fmt: skip

    def own(self, site):
        visitor = Visitor(site.subject, site.host)

        def comment(number):
            visitor.submit(f"/index.php/archives/{number}/", "text", text=f"A comment on {number} by a visitor.", author="Guest", mail="guest@example.test")

        return [(f"a visitor comments article {number}", lambda number=number: comment(number)) for number in (13, 19)]


class Dotclear(Application):
    source = Source("dotclear/dotclear")
    has_sqlite = has_postgres = True
    skip = r"/admin/|/feed/|\?q=|xmlrpc|/rsd|/trackback"

    def put(self, site):
        super().put(site)
        for name in ("cache", "db", "public", "var"):
            site.mkdir(name)

    def install(self, site):
        login = {"dbdriver": "pdosqlite", "dbname": "site.sqlite"}
        if site.database:
            login = {"dbdriver": "mysqlimb4" if site.is_mysql else "pgsql", "dbhost": site.address if site.is_mysql else site.database.folder,
                     "dbname": site.database.name, "dbuser": site.database.user, "dbpassword": site.database.password}  # fmt: skip
        words = login | {
            "dbprefix": "dc_", "adminemail": "admin@example.test", "ufirstname": "Ada", "ulastname": "Admin", "uemail": "admin@example.test",
            "ulogin": "admin", "upassword": PASSWORD, "adminurl": f"http://{site.host}/admin", "blogurl": f"http://{site.host}",
        }  # fmt: skip
        # Settings first, then tables.
        for _ in range(2):
            php(site, "admin/install/index.php", "-n", *(f"--{name}={value}" for name, value in words.items()))

    def sqlite_file(self, site):
        return os.path.join(site.root, "db/site.sqlite")

    def seed(self, site):
        columns = site.columns("dc_post")
        for number in range(11, 25):
            words = f"Words of entry {number}"
            date = f"'2026-02-{number:02} 10:00:00'"
            values = {"post_id": number, "post_title": f"'Entry {number}'", "post_url": f"'2026/02/{number:02}/entry-{number}'", "post_dt": date, "post_creadt": date, "post_upddt": date,
                      "post_content": f"'<p>{words}</p>'", "post_content_xhtml": f"'<p>{words}</p>'", "post_words": f"'{words.lower()}'", "nb_comment": 0}  # fmt: skip
            site.sql(f"INSERT INTO dc_post ({', '.join(columns)}) SELECT {', '.join(str(values.get(name, name)) for name in columns)} FROM dc_post WHERE post_id = 1")
            site.sql(f"INSERT INTO dc_meta (meta_id, meta_type, post_id) VALUES ('Tag {number % 3}', 'tag', {number})")

    def own(self, site):
        visitor = Visitor(site.subject, site.host)

        def comment(number):
            visitor.submit(f"/index.php?post/2026/02/{number:02}/entry-{number}", "c_content", c_name="Guest", c_mail="guest@example.test", c_content=f"A comment on {number} by a visitor.")

        return [(f"a visitor comments entry {number}", lambda number=number: comment(number)) for number in (13, 21)]


class Question2Answer(Application):
    source = Source("q2a/question2answer")
    skip = r"qa=(login|register|forgot|admin|ask|account|feedback|feed|captcha|vote|favorite)|/(login|register|forgot|ask|feedback|feed)\b|qa=ip|state=|show=\d+#"

    def install(self, site):
        with open(os.path.join(site.root, "qa-config-example.php"), encoding="utf-8") as file:
            text = file.read()
        for name, value in {"HOSTNAME": site.address, "USERNAME": site.database.user, "PASSWORD": site.database.password, "DATABASE": site.database.name}.items():
            text = re.sub(rf"(define\('QA_MYSQL_{name}', )'[^']*'", rf"\g<1>'{value}'", text)
        site.write("qa-config.php", text)
        visitor = Visitor(site.plain, site.host)
        visitor.post("/index.php?qa=install", {"create": "Set up the Database including User Management"})
        visitor.submit("/index.php?qa=install", "handle", handle="admin", email="admin@example.test", password=PASSWORD, super="Set up the Super Administrator")

    def seed(self, site):
        for number in range(1, 4):
            site.sql(f"INSERT INTO qa_categories (categoryid, title, tags, content, qcount, position, backpath) VALUES ({number}, 'Category {number}', 'category-{number}', '', 4, {number}, 'category-{number}')")
        for number in range(1, 13):
            site.sql(
                "INSERT INTO qa_posts (postid, type, categoryid, catidpath1, acount, userid, created, title, content, tags, format) VALUES "
                f"({number}, 'Q', {1 + number % 3}, {1 + number % 3}, 1, 1, '2026-03-{number:02} 10:00:00', 'Question number {number}', 'Why is it {number}', 'red,blue', '')"
            )
            site.sql(f"INSERT INTO qa_posts (postid, type, parentid, userid, created, content, format) VALUES ({number + 100}, 'A', {number}, 1, '2026-03-{number:02} 11:00:00', 'Because of {number}', '')")
        site.sql("REPLACE INTO qa_options (title, content) VALUES ('cache_qcount', '12'), ('cache_acount', '12'), ('tags_or_categories', 'tc')")


class ProcessWire(Application):
    source = Source("processwire/processwire")

    def install(self, site):
        shutil.move(os.path.join(site.root, "site-blank"), os.path.join(site.root, "site"))
        shutil.move(os.path.join(site.root, "htaccess.txt"), os.path.join(site.root, ".htaccess"))
        # What its installer does in a browser: both files of statements, and the end of the settings.
        for name in ("wire/core/install.sql", "site/install/install.sql"):
            with open(os.path.join(site.root, name), encoding="utf-8") as file:
                site.sql("SET sql_mode = '';\n" + file.read())
        database = site.database
        with open(os.path.join(site.root, "site/config.php"), encoding="utf-8") as file:
            text = file.read()
        site.write("site/config.php", f"""{text}
$config->dbHost = '{site.address}';
$config->dbName = '{database.name}';
$config->dbUser = '{database.user}';
$config->dbPass = '{database.password}';
$config->dbPort = '3306';
$config->dbCharset = 'utf8mb4';
$config->dbEngine = 'InnoDB';
$config->userAuthSalt = 'salt';
$config->tableSalt = 'salt';
$config->chmodDir = '0755';
$config->chmodFile = '0644';
$config->timezone = 'UTC';
$config->installed = 1767000000;
$config->httpHosts = array('{site.host}');
""")  # fmt: skip
        remove(site, "site/install", "install.php")

    def seed(self, site):
        php(site, site.workdir.write("seed.php", f"""<?php
require '{site.root}/index.php';
for ($number = 1; $number <= 15; $number++) {{
    $parent = $number > 5 ? ProcessWire\\wire('pages')->get('/page-' . ($number % 5 + 1) . '/') : ProcessWire\\wire('pages')->get('/');
    $page = new ProcessWire\\Page();
    $page->template = ProcessWire\\wire('templates')->get('basic-page');
    $page->parent = $parent;
    $page->name = "page-$number";
    $page->title = "Page number $number";
    $page->save();
}}
"""))  # fmt: skip


class Chyrp(Application):
    source = Source("xenocrat/chyrp-lite")
    has_sqlite = True
    skip = r"admin|login|register|lost_password|search|random|/feed|feed=|theme_preview|\?action=feed|lightness"
    normal = r"Queries: \d+ \| Load Time: [\d.]+"

    def install(self, site):
        form = {
            "install": "yes", "adapter": "mysql", "host": site.address, "port": "3306", "prefix": "", "url": f"http://{site.host}", "name": "A blog", "description": "On blogs",
            "timezone": "Europe/London", "locale": "en_US", "login": "admin", "password1": PASSWORD, "password2": PASSWORD, "email": "admin@example.test",
        }  # fmt: skip
        if site.database:
            form |= {"username": site.database.user, "password": site.database.password, "database": site.database.name}
        else:
            form |= {"adapter": "sqlite", "host": "", "port": "", "username": "", "password": "", "database": f"{site.mkdir('data')}/site.db"}
        installed(Visitor(site.plain, site.host).post("/install.php", form), "nstall")
        remove(site, "install.php")

    def sqlite_file(self, site):
        return os.path.join(site.root, "data/site.db")

    def seed(self, site):
        for number in range(1, 16):
            site.sql(
                "INSERT INTO posts (id, feather, clean, url, pinned, status, user_id, created_at, updated_at) VALUES "
                f"({number}, 'text', 'post-{number}', 'post-{number}', 0, 'public', 1, '2026-04-{number:02} 10:00:00', '2026-04-{number:02} 10:00:00')"
            )
            site.sql(f"INSERT INTO post_attributes (post_id, name, value) VALUES ({number}, 'title', 'Post number {number}'), ({number}, 'body', 'Words of post {number}')")
        for number in range(1, 4):
            site.sql(
                "INSERT INTO pages (id, title, body, public, show_in_list, list_order, clean, url, user_id, parent_id, created_at, updated_at) VALUES "
                f"({number}, 'Page {number}', 'Words of page {number}', 1, 1, {number}, 'page-{number}', 'page-{number}', 1, 0, '2026-04-{number:02} 10:00:00', '2026-04-{number:02} 10:00:00')"
            )


class CopiesInTables(Application):
    """The family of Drupal: tables `cache_*` hold what was made of others, with tokens that are drawn anew."""

    normal = r"\"theme_token\":\"[^\"]*\""

    def after(self, site):
        return [f"DELETE FROM {table}" for table in ("cache", "cache_page", "cache_block", "cache_field", "cache_entity_node", "cache_filter", "cache_views_data", "cache_layout_path") if site.columns(table)]


class Backdrop(CopiesInTables):
    source = Source("backdrop/backdrop")
    skip = r"user/|admin|\?destination|comment/reply|search"

    def install(self, site):
        php(
            site, "core/scripts/install.sh", f"--db-url=mysql://{site.database.user}:{site.database.password}@{site.address}/{site.database.name}",
            "--account-name=admin", f"--account-pass={PASSWORD}", f"--root={site.root}", f"--url=http://{site.host}", "--site-name=Backdrop",
        )  # fmt: skip

    def seed(self, site):
        seed_nodes(site, "post", "backdrop")


class Drupal7(CopiesInTables):
    """Without `has_blocklist`, its settings say that no address is blocked, as they explain: no page looks the visitor's address up."""

    source = Source("pantheon-systems/drops-7")
    has_sqlite = has_postgres = True
    skip = r"user/|admin|\?destination|comment/reply|search|filter/tips"
    door = "xmlrpc.php"

    def __init__(self, has_blocklist=True):
        self.has_blocklist = has_blocklist

    def install(self, site):
        database = f"['driver' => 'sqlite', 'database' => '{self.sqlite_file(site)}', 'prefix' => '']"
        if site.database:
            kind, host = ("mysql", site.address) if site.is_mysql else ("pgsql", site.database.folder)
            database = (f"['driver' => '{kind}', 'host' => '{host}', 'port' => '', 'prefix' => '', 'username' => '{site.database.user}',"
                        f" 'password' => '{site.database.password}', 'database' => '{site.database.name}']")  # fmt: skip
        with open(os.path.join(site.root, "sites/default/default.settings.php"), encoding="utf-8") as file:
            text = file.read()
        # As its installer writes them.
        text = text.replace("$databases = array();", f"$databases = ['default' => ['default' => {database}]];", 1)
        text = text.replace("$drupal_hash_salt = '';", "$drupal_hash_salt = 'salt';")
        site.write("sites/default/settings.php", text + ("" if self.has_blocklist else "\n$conf['blocked_ips'] = array();\n"))
        script = site.workdir.write("drupal.php", f"""<?php
define('DRUPAL_ROOT', getcwd());
define('MAINTENANCE_MODE', 'install');
$_SERVER += ['HTTP_HOST' => '{site.host}', 'REMOTE_ADDR' => '127.0.0.1', 'REQUEST_METHOD' => 'GET', 'QUERY_STRING' => '', 'SERVER_SOFTWARE' => null, 'HTTP_USER_AGENT' => 'x'];
$_SERVER['SCRIPT_NAME'] = $_SERVER['PHP_SELF'] = '/install.php'; $_SERVER['REQUEST_URI'] = '/install.php';
require 'includes/install.core.inc';
$account = ['name' => 'admin', 'mail' => 'admin@example.test', 'pass' => ['pass1' => '{PASSWORD}', 'pass2' => '{PASSWORD}']];
install_drupal(['parameters' => ['profile' => 'standard', 'locale' => 'en'], 'forms' => [
    'install_configure_form' => ['site_name' => 'A site', 'site_mail' => 'admin@example.test', 'account' => $account, 'update_status_module' => [], 'clean_url' => true],
]]);
""")  # fmt: skip
        php(site, script)

    def sqlite_file(self, site):
        return f"{site.mkdir('data')}/site.db"

    def seed(self, site):
        seed_nodes(site, "article", "drupal")


def seed_nodes(site, kind, family):
    """Articles by the family's own functions, and comments."""
    root = "BACKDROP_ROOT" if family == "backdrop" else "DRUPAL_ROOT"
    core = "core/" if family == "backdrop" else ""
    make = "$node = entity_create('node', (array) $node);" if family == "backdrop" else ""
    script = site.workdir.write("seed.php", f"""<?php
define('{root}', getcwd());
$_SERVER += ['HTTP_HOST' => '{site.host}', 'REMOTE_ADDR' => '127.0.0.1', 'REQUEST_METHOD' => 'GET', 'SERVER_SOFTWARE' => null];
$_SERVER['SCRIPT_NAME'] = $_SERVER['PHP_SELF'] = '/index.php'; $_SERVER['REQUEST_URI'] = '/';
require '{core}includes/bootstrap.inc';
{family}_bootstrap({family.upper()}_BOOTSTRAP_FULL);
for ($number = 1; $number <= 15; $number++) {{
    $node = (object) ['type' => '{kind}', 'language' => 'und', 'langcode' => 'und', 'uid' => 1, 'status' => 1, 'promote' => 1, 'comment' => 2, 'title' => "Article $number",
        'created' => 1767000000 + $number * 86400, 'body' => ['und' => [['value' => "Words of article $number", 'summary' => '', 'format' => 'filtered_html']]]];
    if ('{family}' == 'drupal') {{ node_object_prepare($node); $node->status = $node->promote = 1; $node->comment = 2; }}
    {make}
    node_save($node);
}}
{family}_flush_all_caches();
""")  # fmt: skip
    php(site, script)


class MyBB(Application):
    source = Source("mybb/mybb")
    has_sqlite = has_postgres = True
    normal = r"[\d,]+ users active in the past|\(\d+ members?, [^)]*\)"
    skip = r"member\.php\?action|usercp|search|newreply|newthread|admin|private|calendar|sendthread|report|printthread|syndication|misc\.php|reputation|modcp|captcha|contact|task\.php|javascript"

    def install(self, site):
        shutil.move(os.path.join(site.root, "inc/config.default.php"), os.path.join(site.root, "inc/config.php"))
        site.touch("inc/settings.php")
        visitor = Visitor(site.plain, site.host)
        kind = "mysqli" if site.is_mysql else "pgsql" if site.database else "sqlite"
        host = site.address if site.is_mysql else getattr(site.database, "folder", "")
        login = {"dbhost": host, "dbuser": site.database.user, "dbpass": site.database.password, "dbname": site.database.name} if site.database else {"dbname": self.sqlite_file(site)}
        more = {f"config[{kind}][{name}]": value for name, value in {**login, "tableprefix": "mybb_", "encoding": "utf8mb4" if site.database else "utf8"}.items()}
        page = "/install/index.php"
        for form in (
            {"action": "create_tables", "dbengine": kind, **more}, {"action": "populate_tables"}, {"action": "templates"},
            {"action": "configuration"},
            {"action": "adminuser", "bbname": "A board", "bburl": f"http://{site.host}", "websitename": "A site", "websiteurl": f"http://{site.host}/",
             "cookiedomain": "", "cookiepath": "/", "contactemail": "admin@example.test", "pin": ""},
            {"action": "final", "adminuser": "admin", "adminpass": PASSWORD, "adminpass2": PASSWORD, "adminemail": "admin@example.test"},
        ):  # fmt: skip
            answer = visitor.post(page, form)
            if answer.status != 200:
                raise RuntimeError(f"{form['action']} answers {answer.status}: {words_of(answer.text)[-1500:]}")
        installed(answer, "successfully been installed")
        remove(site, "install")

    def sqlite_file(self, site):
        return f"{site.mkdir('data')}/site.db"

    def seed(self, site):
        site.sql("INSERT INTO mybb_forums (fid, name, description, linkto, type, pid, parentlist, disporder, active, open, threads, posts, password, rules, rulestitle) "
                 "VALUES (3, 'Second forum', 'On seconds', '', 'f', 1, '1,3', 2, 1, 1, 6, 6, '', '', '')" if False else "SELECT 1")  # fmt: skip
        columns = site.columns("mybb_threads"), site.columns("mybb_posts")
        for number in range(1, 15):
            time = 1767000000 + number
            thread = {"tid": number, "fid": 2, "subject": f"'Thread {number}'", "uid": 1, "username": "'admin'", "dateline": time, "firstpost": number,
                      "lastpost": time, "lastposter": "'admin'", "lastposteruid": 1, "visible": 1}  # fmt: skip
            post = {"pid": number, "tid": number, "fid": 2, "subject": f"'Thread {number}'", "uid": 1, "username": "'admin'", "dateline": time,
                    "message": f"'Words of thread {number}'", "visible": 1, "ipaddress": "''"}  # fmt: skip
            for table, names, values in (("mybb_threads", columns[0], thread), ("mybb_posts", columns[1], post)):
                texts = {name: site.empty(table, name) for name in names if name not in values}
                values = {**{name: value for name, value in texts.items() if value is not None}, **values}
                site.sql(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(str(value) for value in values.values())})")


APPLICATIONS = {
    "wordpress": WordPress(),
    "wordpress_redis": WordPress(has_redis=True),
    "classicpress": ClassicPress(),
    "mediawiki": MediaWiki(),
    "opencart": OpenCart(),
    "piwigo": Piwigo(),
    "textpattern": Textpattern(),
    "serendipity": Serendipity(),
    "typecho": Typecho(),
    "dotclear": Dotclear(),
    "question2answer": Question2Answer(),
    "chyrp": Chyrp(),
    "backdrop": Backdrop(),
    "drupal7": Drupal7(),
    "drupal7_no_blocklist": Drupal7(has_blocklist=False),
    "processwire": ProcessWire(),
    "mybb": MyBB(),
    "kirby": Kirby(),
    "getsimple": GetSimple(),
    "cmsimple_xh": CmsimpleXh(),
    "pluxml": PluXml(),
    "dokuwiki": DokuWiki(),
    "bludit": Bludit(),
}
