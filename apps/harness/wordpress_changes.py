"""The changes of the scenario wordpress_plugin, each with its name, whether visitors see anything of it, and
what makes it. `None`: what is made anew without being different (lists of users) is no fault.
"""

import re
import time

from . import wordpress
from .client import Client
from .wordpress_editor import code_of, evaluate


# Changes equal in kind to those by which learning was designed (docs/design/2026-11-26-replay.md): of what editors and visitors write, and of
# what all pages show. A theme with blocks or without takes any of them.
CONTENT_CHANGES = (
    "a post is published", "the text of a post", "the title of a post", "the address of a post", "the date of a post",
    "the author of a post", "the categories of a post", "the tags of a post", "a featured image", "a post is made sticky",
    "a draft is written", "a draft is published", "an autosave", "a post becomes a draft", "a post becomes private",
    "a password for a post", "a post is trashed", "a post is deleted", "a page is published", "quick edit",
    "a script writes meta data", "a visitor comments", "a comment waits for moderation", "a comment is approved", "a comment is edited",
    "a comment is spam", "a category is made", "a category is renamed", "a tag is deleted", "the name of an author",
    "the biography of an author", "a login", "a transient",
)  # fmt: skip
SITE_CHANGES = (
    "a widget is added", "a setting of the theme", "the settings for reading", "the order of comments", "the tagline",
    "the form of dates", "the blog's name",
)  # fmt: skip


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
        current = editor.rest("GET", f"templates/{editor.made['block_theme']}//single?context=edit")["content"]["raw"]
        editor.rest("POST", f"templates/{editor.made['block_theme']}//single", content=f"{current}<p>Below each article.</p>")

    def template_again(editor):
        current = editor.rest("GET", f"templates/{editor.made['block_theme']}//single?context=edit")["content"]["raw"]
        editor.rest("POST", f"templates/{editor.made['block_theme']}//single", content=current.replace("Below", "Under"))

    def template_part(editor):
        editor.rest("POST", f"template-parts/{editor.made['block_theme']}//footer", content="<!-- wp:paragraph --><p>A foot.</p><!-- /wp:paragraph -->")

    def navigation(editor):
        made["navigation"] = editor.rest(
            "POST", "navigation", title="Ways", status="publish",
            content='<!-- wp:navigation-link {"label":"Away","url":"https://example.test/away"} /-->',
        )["id"]  # fmt: skip

    def another_theme(editor):
        editor.php("switch_theme($given['theme']);", theme=editor.made["theme"])
        # With the next request, WordPress moves the widgets to where it thinks they belong.
        editor.visit("/wp-login.php")
        evaluate(editor.site, code_of("wordpress_plugin_widgets.php"), editor.made)

    def styles(editor):
        number = editor.php("return WP_Theme_JSON_Resolver::get_user_global_styles_post_id();")
        editor.rest("POST", f"global-styles/{number}", styles={"color": {"background": "#fafaf0"}})

    return [
        # Its author sees it for ten minutes.
        ("a comment that waits is deleted", True, php("wp_delete_comment($given['id'], true);", id=lambda e: e.made["held"])),
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
        *with_blocks(),
        *data(),
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
        *without_blocks(),
    ]  # fmt: skip


def php(code, **names):
    """A change by a script of the command line. `names` are functions of the editor that give its values."""
    return lambda editor: editor.php(code, **{name: value(editor) for name, value in names.items()})


def data():
    """What plug-ins, scripts and links change: the same for every theme."""
    post = {"id": lambda e: e.post(2)}
    category = {"id": lambda e: e.made["categories"]["sport"]}
    return [
        # Tables of a plug-in's own (files/wordpress_plugin_tables.php).
        ("a poll is saved through REST", True, lambda e: e.visit("/wp-json/tables/v1/poll", {"question": "Milk?"})),
        ("an event by a script", True, php("global $wpdb; $wpdb->insert($wpdb->prefix . 'event', ['name' => 'Ball', 'venue' => 1]);")),
        ("a venue that events name", True, php("global $wpdb; $wpdb->query(\"UPDATE {$wpdb->prefix}venue SET town = 'Bonn'\");")),
        ("events are deleted", True, php("global $wpdb; $wpdb->query(\"DELETE FROM {$wpdb->prefix}event WHERE id > 1\");")),
        ("a table that no page reads", False, php(
            "global $wpdb; $wpdb->query(\"CREATE TABLE {$wpdb->prefix}unread (id int)\"); $wpdb->insert($wpdb->prefix . 'unread', ['id' => 1]);")),
        # WordPress's own tables, past its functions.
        ("a title by a statement", True, php("global $wpdb; $wpdb->update($wpdb->posts, ['post_title' => 'By statement'], ['ID' => $given['id']]);", **post)),
        ("titles by a statement for many", True, php(
            "global $wpdb; $wpdb->query(\"UPDATE $wpdb->posts SET post_title = CONCAT(post_title, '!') WHERE post_type = 'page' AND post_name IN ('contact', 'imprint')\");")),
        ("meta data by a statement", True, php(
            "global $wpdb; $wpdb->query(\"UPDATE $wpdb->postmeta SET meta_value = 'blue' WHERE meta_key = 'colour'\");")),
        ("an option by a statement", True, php(
            "update_option('tables_banner', 'one'); global $wpdb; $wpdb->query(\"UPDATE $wpdb->options SET option_value = 'two' WHERE option_name = 'tables_banner'\");")),
        # Options and transients.
        ("a transient that a page shows", True, php("set_transient('tables_offer', 'Soap');")),
        ("the same with an end", True, php("set_transient('tables_offer_until', 'Tea', 3600);")),
        ("a transient is deleted", True, php("delete_transient('tables_offer');")),
        ("an option of a plug-in", True, php("update_option('tables_banner', 'three');")),
        ("a visitor's link writes an option", True, lambda e: e.visit("/?banner=four")),
        ("an editor's link writes an option", True, lambda e: e.browser.get("/?banner=five")),
        ("an option that no page reads", False, php("update_option('tables_unread', microtime());")),
        # Meta data.
        ("meta data of all posts is deleted", True, php("delete_metadata('post', 0, 'colour', '', true);")),
        ("meta data of a term", True, php("update_term_meta($given['id'], 'colour', 'white');", **category)),
        ("meta data of all terms is deleted", True, php("delete_metadata('term', 0, 'colour', '', true);")),
        ("meta data that only editors see", False, php("update_post_meta($given['id'], '_edit_lock', time() . ':1');", **post)),
        ("the nickname of an author", None, php("update_user_meta($given['id'], 'nickname', 'Moll');", id=lambda e: e.made["authors"]["mary"])),
        ("the role of a user", None, php("get_user_by('id', $given['id'])->set_role('editor');", id=lambda e: e.made["authors"]["mary"])),
        ("a user registers", True, php("wp_insert_user(['user_login' => 'zoe', 'user_pass' => 'z0e-z0e', 'user_email' => 'zoe@example.test']);")),
        # Comments.
        ("comments need not wait", False, php("update_option('comment_moderation', '0');")),
        ("a comment is moved to another post", True, php(
            "wp_update_comment(['comment_ID' => $given['id'], 'comment_post_ID' => $given['to']]);", id=lambda e: e.made["comments"][2], to=lambda e: e.post(9))),
        ("a comment is trashed", True, php("wp_trash_comment($given['id']);", id=lambda e: e.made["comments"][3])),
        ("a comment comes back", True, php("wp_untrash_comment($given['id']);", id=lambda e: e.made["comments"][3])),
        ("a comment is deleted", True, php("wp_delete_comment($given['id'], true);", id=lambda e: e.made["comments"][4])),
        ("the threads of comments", None, php("update_option('thread_comments', get_option('thread_comments') ? '0' : '1');")),
        ("comments are closed", True, php("wp_update_post(['ID' => $given['id'], 'comment_status' => 'closed']);", id=lambda e: e.post(4))),
        # Posts and terms.
        ("a post with categories becomes private", True, php("wp_update_post(['ID' => $given['id'], 'post_status' => 'private']);", id=lambda e: e.post(4))),
        ("a draft of which REST knows is published", True, php("wp_publish_post($given['id']);", id=lambda e: e.made["draft"])),
        ("a password is removed", True, php("wp_update_post(['ID' => $given['id'], 'post_password' => '']);", id=lambda e: e.post(19))),
        ("a page gets another parent", True, php("wp_update_post(['ID' => $given['id'], 'post_parent' => 0]);", id=lambda e: e.made["pages"]["team"])),
        ("the order of pages", None, php("wp_update_post(['ID' => $given['id'], 'menu_order' => 3]);", id=lambda e: e.made["pages"]["contact"])),
        ("the excerpt of a post", True, php("wp_update_post(['ID' => $given['id'], 'post_excerpt' => 'In short.']);", id=lambda e: e.post(7))),
        ("an upload for a post", True, php(
            "wp_insert_attachment(['post_title' => 'Belongs', 'post_mime_type' => 'image/png', 'post_status' => 'inherit'], false, $given['id']);", id=lambda e: e.post(5))),
        ("the caption of an image", True, php("wp_update_post(['ID' => $given['id'], 'post_excerpt' => 'At dusk.']);", id=lambda e: e.made["image"])),
        ("a category gets a parent", None, php("wp_update_term($given['id'], 'category', ['parent' => $given['to']]);",
            id=lambda e: e.made["categories"]["arts"], to=lambda e: e.made["categories"]["news"])),
        ("a category is deleted", True, php("wp_delete_term($given['id'], 'category');", id=lambda e: e.made["categories"]["local"])),
        ("a link of the blogroll", True, php("wp_insert_link(['link_name' => 'Another', 'link_url' => 'https://another.example.test/']);")),
        ("a link of the blogroll is deleted", True, php("wp_delete_link($given['id']);", id=lambda e: e.made["link"])),
        # Settings.
        ("the tagline", None, php("update_option('blogdescription', 'All of it');")),
        ("the form of dates", True, php("update_option('date_format', 'd/m/Y');")),
        ("the posts of a feed", True, php("update_option('posts_per_rss', 4);")),
        # Of comments without an address, WordPress takes the avatar from one of three servers by chance.
        ("avatars", None, php("update_option('show_avatars', '1');")),
        ("no avatars", None, php("update_option('show_avatars', '0');")),
        # Deployments.
        ("a must-use plug-in is dropped in", True, lambda e: deployed(e, "mu-plugins/dropped.php", FOOT % "One")),
        ("it is edited", True, lambda e: deployed(e, "mu-plugins/dropped.php", FOOT % "Two")),
        ("it is replaced by another file", True, lambda e: deployed(e, "mu-plugins/dropped.php", FOOT % "Ten", by_renaming=True)),
        ("it is removed", True, lambda e: deployed(e, "mu-plugins/dropped.php", None)),
        ("a plug-in is activated", True, php("activate_plugin($given['name']);", name=lambda e: e.made["plugin"])),
        ("its file is deployed", True, lambda e: deployed(e, "plugin/plugin.php", PLUGIN % ("Four", ""), by_renaming=True)),
        ("a part of it is added", True, lambda e: deployed(
            e, "plugin/parts/more.php", "<?php return 'Five';", then=("plugin/plugin.php", PLUGIN % ("", "echo require __DIR__ . '/parts/more.php';")))),
        ("a part of it is edited", True, lambda e: deployed(e, "plugin/parts/more.php", "<?php return 'Six';")),
        ("a plug-in is deactivated", True, php("deactivate_plugins($given['name']);", name=lambda e: e.made["plugin"])),
    ]  # fmt: skip


FOOT = "<?php add_action('wp_footer', function () { echo '<p>Dropped %s</p>'; });\n"
PLUGIN = "<?php\n/**\n * Plugin Name: Deployed\n */\nadd_action('wp_footer', function () { echo '<p>Deployed %s</p>'; %s });\n"
DEPLOYED_SECONDS = 10


def deployed(editor, path, text, by_renaming=False, then=None):
    """Deploys a file, and waits until the server has seen it."""
    (editor.deploy_by_renaming if by_renaming else editor.deploy)(path, text)
    if then:
        editor.deploy(*then)
    until = time.monotonic() + DEPLOYED_SECONDS
    while editor.visit("/").is_hit and time.monotonic() < until:
        time.sleep(0.2)
    # What changes in the second of a look is looked at once more.
    time.sleep(4)


def with_blocks():
    """In a theme of blocks."""
    return [
        ("a part of the theme of blocks is edited", True, lambda e: deployed(
            e, "blocks/templates/page.html", e.file("blocks/templates/page.html") + "<p>Below each page.</p>")),
        ("a pattern of it is edited", True, lambda e: deployed(
            e, "blocks/patterns/hidden-404.php", e.file("blocks/patterns/hidden-404.php") + "<p>Not here.</p>")),
        ("a pattern of articles is edited", True, lambda e: deployed(
            e, "blocks/patterns/post-meta.php", e.file("blocks/patterns/post-meta.php") + "<p>Beside each article.</p>")),
        ("its settings are edited", True, lambda e: deployed(
            e, "blocks/theme.json", e.file("blocks/theme.json").replace('"wideSize"', '"wideSize" ', 1).replace("650px", "660px"))),
        ("its functions are added", True, lambda e: deployed(
            e, "blocks/functions.php", "<?php add_action('wp_footer', function () { echo '<p>With functions.</p>'; });")),
    ]  # fmt: skip


def without_blocks():
    """In the theme without blocks."""
    return [
        ("a file of the theme is edited", True, lambda e: deployed(e, "theme/index.php", e.file("theme/index.php").replace("<main>", "<main class='x'>"))),
        ("a template of the theme is added", True, lambda e: deployed(
            e, "theme/single.php", e.file("theme/index.php").replace("<main", "<main id='one'"))),
        ("a template of the theme is removed", True, lambda e: deployed(e, "theme/single.php", None)),
        ("a menu is renamed", None, lambda e: e.php(
            "wp_update_nav_menu_object($given['id'], ['menu-name' => 'Chief', 'slug' => 'main']);", id=e.made["menu"])),
        ("a menu gets an item", True, lambda e: e.php(
            "wp_update_nav_menu_item($given['id'], 0, ['menu-item-type' => 'custom', 'menu-item-title' => 'More', 'menu-item-url' => '/more',"
            " 'menu-item-status' => 'publish']);", id=e.made["menu"])),
        ("a setting of the theme", True, lambda e: e.php("set_theme_mod('colour', 'grey');")),
        ("a category is described for its archive", True, lambda e: e.php(
            "wp_update_term($given['id'], 'category', ['description' => 'Of runs.']);", id=e.made["categories"]["sport"])),
        ("a comment in a theme without blocks", True, lambda e: e.comment(e.post(12), "Here, too.")),
    ]  # fmt: skip
