"""A blog on WordPress with something of each kind: authors, posts, pages, categories, comments, two themes, and plug-ins with
tables of their own. The runs that change it differ in who keeps its pages."""

import os
import shutil

from . import wordpress
from .wordpress_changes import PLUGIN as DEPLOYED_PLUGIN
from .wordpress_editor import code_of, evaluate

ADMIN = wordpress.User("root1", "Ada Admin", "administrator")
AUTHORS = [wordpress.User("mary", "Mary Mason", "author"), wordpress.User("paul", "Paul Parker", "author")]
# A cookie that keeps a request from memory, and that WordPress does not know.
PAST_MEMORY = {"wordpress_no_cache": "1"}
# Of files/wordpress_plugin_tables.php; the others are different each time.
OWN_PAGES = ("poll", "events", "banner", "offer", "offer_until", "links", "people", "popular", "colours", "term_colour", "form")


def block_theme():
    """The theme that Debian has, in this release; none in some."""
    folder = f"{wordpress.CONTENT}/themes"
    # Not the themes of other runs, which are links to what they change.
    names = [name for name in os.listdir(folder) if "-mayfly-" not in name] if os.path.isdir(folder) else []
    return next((name for name in sorted(names) if os.path.isfile(f"{folder}/{name}/theme.json")), None)


def put_themes(workdir, original):
    """Two themes and a plug-in, whose files are the run's own; their names."""
    folders = {
        "block_theme": ("blocks", "themes", f"{wordpress.CONTENT}/themes/{original}"),
        "theme": ("theme", "themes", os.path.join(wordpress.FILES, "classic_theme")),
        "plugin": ("plugin", "plugins", None),
    }
    names = {}
    for what, (folder, kind, source) in folders.items():
        if source:
            shutil.copytree(source, workdir.join(folder), dirs_exist_ok=True)
        else:
            os.makedirs(workdir.join(folder, "parts"))
        names[what] = f"{folder}-{os.path.basename(workdir.path)}"
        workdir.link_for_the_run(workdir.join(folder), f"{wordpress.CONTENT}/{kind}/{names[what]}")
    workdir.write("plugin/plugin.php", DEPLOYED_PLUGIN % ("Three", ""))
    names["plugin"] += "/plugin.php"
    return names


def install(site, subject, names):
    """Returns what it has, by name. `names` are those of its themes."""
    site.install(subject, ADMIN)
    site.seed([ADMIN, *AUTHORS], [])
    authors = {user.login: user.id for user in AUTHORS}
    given = {"theme": names["block_theme"], "authors": authors}
    made = evaluate(site, code_of("wordpress_plugin_seed.php"), given)
    made.update(names)
    made["authors"] = authors
    made["archives"] = evaluate(
        site,
        "global $wpdb; $paths = []; foreach ($wpdb->get_col(\"SELECT DISTINCT DATE_FORMAT(post_date, '%Y/%m') FROM "
        "$wpdb->posts WHERE post_type = 'post' AND post_status = 'publish'\") as $month) { $paths[] = \"/$month/\";"
        " $paths[] = '/' . substr($month, 0, 4) . '/'; } return array_values(array_unique($paths));",
    )
    return made


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
    pages += [f"/own-{name}/" for name in OWN_PAGES]
    pages += ["/wp-json/tables/v1/events", "/wp-json/wp/v2/types", "/wp-json/wp/v2/taxonomies", "/feed/rdf/", "/category/sport/feed/"]
    pages += [f"/wp-json/wp/v2/{name}?post={posts['article-4']}" for name in ("categories", "tags", "comments")]
    pages += [f"/wp-json/wp/v2/comments?post={posts['article-19']}", f"/wp-json/wp/v2/media?parent={posts['article-5']}"]
    pages += [f"/wp-json/wp/v2/media/{made['image']}", f"/wp-json/wp/v2/categories/{made['categories']['sport']}"]
    pages += [f"/wp-json/wp/v2/posts/{made['draft']}?_envelope=1", f"/wp-json/wp/v2/posts?categories={made['categories']['arts']}"]
    pages += ["/wp-json/wp/v2/posts?orderby=title&order=asc", "/kept-back/", "/2025/"]
    pages += [f"/article-4/?unapproved={made['held']}&moderation-hash={made['moderation_hash']}"]
    return list(dict.fromkeys(pages))
