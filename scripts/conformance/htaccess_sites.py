"""Six applications as folders: files that tell which one it is, the rules that it documents for Apache, and what is asked.

The rules are those that each application documents or ships, without comments and in our own order. Every script is
the same: it prints how it was called. Every other file holds its own path. `known` are patterns of what `mayfly serve`
answers differently, with the reason, and `known_converted` of what a server made by `mayfly convert` does.
"""

import os

SITES_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../crates/apache-conf/tests/sites")

PHP = """<?php
header('Content-Type: text/plain');
$root = rtrim($_SERVER['DOCUMENT_ROOT'], '/');
$script = realpath($_SERVER['SCRIPT_FILENAME']);
echo json_encode([substr($script, strlen(realpath($root))), $_SERVER['PATH_INFO'] ?? '', $_SERVER['QUERY_STRING'] ?? '']);
"""

CLOSED = "Require all denied\n"
NO_PHP = "<FilesMatch \"\\.(?i:php)$\">\nRequire all denied\n</FilesMatch>\n"


def documented(name):
    """The .htaccess of the document root, which tests of apache-conf read as well."""
    with open(os.path.join(SITES_FOLDER, f"{name}.htaccess"), encoding="utf-8") as file:
        return file.read()


WORDPRESS = {
    "rules": {
        ".htaccess": documented("wordpress"),
        "wp-content/uploads/.htaccess": NO_PHP,
        "wp-content/cache/.htaccess": CLOSED,
    },
    "scripts": "index.php wp-load.php wp-login.php wp-cron.php wp-config.php xmlrpc.php wp-admin/index.php"
    " wp-admin/admin-ajax.php wp-content/uploads/evil.php wp-includes/version.php wp-content/plugins/a/a.php",
    "files": "wp-content/uploads/a.jpg wp-content/uploads/2024/01/b.png wp-content/themes/t/style.css"
    " wp-includes/js/jquery.js wp-content/cache/page.html robots.txt favicon.ico wp-admin/css/common.css",
    "paths": "/ /hello-world/ /2024/01/hello/ /category/a/ /?p=1 /feed/ /page/2/ /wp-json/wp/v2/posts /sitemap.xml"
    " /wp-login.php /wp-admin/ /wp-admin /xmlrpc.php /wp-cron.php /index.php /index.php/a/b /wp-config.php"
    " /wp-content/uploads/a.jpg /wp-content/uploads/2024/01/b.png /wp-content/uploads/evil.php /wp-content/uploads/none.php"
    " /wp-content/themes/t/style.css /wp-content/themes/t/none.css /wp-includes/js/jquery.js /wp-content/cache/page.html"
    " /wp-content/cache/none.html /robots.txt /favicon.ico /.htaccess /wp-content/uploads/.htaccess /old-page /old-page/x"
    " /old-pages /tag-old/x /tag-old/x/y /wp-admin/admin-ajax.php /wp-admin/css/common.css /a.b.c/ /wp-content",
}

DRUPAL = {
    "rules": {
        ".htaccess": documented("drupal"),
        "sites/default/files/.htaccess": NO_PHP,
        "sites/default/private/.htaccess": CLOSED,
        "vendor/.htaccess": CLOSED,
    },
    "known": {"^/none/(?:install|rebuild)": "What a later rule refuses is refused before redirects."},
    "scripts": "index.php update.php autoload.php core/lib/Drupal.php core/install.php core/rebuild.php"
    " sites/default/files/evil.php modules/contrib/a/a.php vendor/autoload.php core/modules/statistics/statistics.php",
    "files": "core/misc/drupal.js core/themes/olivero/css/base.css sites/default/files/a.jpg sites/default/private/a.txt"
    " robots.txt modules/contrib/a/a.module modules/contrib/a/a.info.yml composer.json web.config themes/t/t.twig"
    " sites/default/files/styles/large/b.webp modules/contrib/a/a.inc",
    "paths": "/ /node/1 /user/login /admin/content /?q=node/1 /index.php /index.php/node/1 /update.php /install.php"
    " /rebuild.php /core/install.php /core/rebuild.php /autoload.php /vendor/autoload.php /modules/contrib/a/a.php"
    " /sites/default/files/evil.php /core/lib/Drupal.php /core/misc/drupal.js /core/themes/olivero/css/base.css"
    " /sites/default/files/a.jpg /sites/default/private/a.txt /robots.txt /modules/contrib/a/a.module"
    " /modules/contrib/a/a.info.yml /composer.json /web.config /themes/t/t.twig /sites/default/files/styles/large/b.webp"
    " /sites/default/files/styles/large/none.webp /favicon.ico /.htaccess /.git/HEAD /.well-known/security.txt"
    " /sites/default/files/ /core/modules/statistics/statistics.php /modules/contrib/a/a.inc /a.sql /x/.env /none.module",
}

MEDIAWIKI = {
    "rules": {
        ".htaccess": documented("mediawiki"),
        "images/.htaccess": "<IfModule rewrite_module>\nRewriteEngine On\nRewriteCond %{QUERY_STRING} \\.[^\\\\/:*?\\x22<>|%]+(#|\\?|$) [nocase]\n"
        "RewriteRule . - [forbidden]\n</IfModule>\n" + NO_PHP,
        **{
            f"{folder}/.htaccess": CLOSED
            for folder in ("cache", "includes", "languages", "maintenance", "vendor", "images/deleted")
        },
    },
    "known": {
        r"Picture\.png\?x=a\.b": "Conditions on the query count in the document root only; this one is for Internet Explorer 6.",
    },
    "scripts": "index.php load.php api.php img_auth.php opensearch_desc.php rest.php thumb.php includes/WebStart.php"
    " maintenance/update.php vendor/autoload.php images/evil.php mw-config/index.php",
    "files": "resources/assets/logo.png skins/Vector/a.css images/a/ab/Picture.png images/deleted/x.png cache/a.cdb"
    " includes/a.json languages/i18n/en.json extensions/A/a.js robots.txt favicon.ico",
    "paths": "/ /wiki/Main_Page /wiki/A/B /wiki /wiki/ /index.php /index.php/Main_Page /index.php?title=A /load.php?modules=a"
    " /api.php?action=query /rest.php/v1/page/A /img_auth.php/a.png /opensearch_desc.php /thumb.php?f=a"
    " /resources/assets/logo.png /skins/Vector/a.css /images/a/ab/Picture.png /images/a/ab/None.png /images/deleted/x.png"
    " /images/evil.php /cache/a.cdb /includes/WebStart.php /includes/a.json /languages/i18n/en.json /maintenance/update.php"
    " /vendor/autoload.php /extensions/A/a.js /robots.txt /favicon.ico /.htaccess /images/.htaccess /mw-config/"
    " /mw-config/index.php /none /none.php /none.png /wiki/A.B /wiki/%C3%84 /images/a/ab/Picture.png?x=a.b /includes",
}

LARAVEL = {
    "root": "public",
    "rules": {
        "public/.htaccess": documented("laravel"),
    },
    "known": {"%3F": "A path with a question mark is not rewritten; Apache refuses it."},
    "known_converted": {"%3F": "Apache refuses to rewrite a path with a question mark."},
    "scripts": "public/index.php artisan.php",
    "files": "artisan public/css/app.css public/js/app.js public/favicon.ico public/robots.txt public/build/manifest.json"
    " public/images/a.svg storage/logs/laravel.log public/build/assets/a-1.js",
    "paths": "/ /login /login/ /users/1 /users/1/ /api/users /api/users/ /api/users?page=2 /index.php /index.php/users"
    " /css/app.css /css/app.css/ /css /css/ /js/app.js /js/none.js /js/none.js/ /favicon.ico /robots.txt"
    " /build/manifest.json /build/assets/a-1.js /images/a.svg /storage/logs/laravel.log /.env /.htaccess /artisan"
    " /a/b/c/d/ /a/b/c/d /?x=/ /x/?a=b /users.json /a.b/ /css/none /build/ /build /Login/ /%61/ /a%20b/ /index.php/",
}

JOOMLA = {
    "rules": {
        ".htaccess": documented("joomla"),
        "images/.htaccess": NO_PHP,
        "tmp/.htaccess": CLOSED,
    },
    "scripts": "index.php configuration.php administrator/index.php api/index.php images/evil.php includes/app.php"
    " libraries/src/Version.php tmp/a.php components/com_a/a.php",
    "files": "media/a.css media/b.js images/a.jpg robots.txt htaccess.txt templates/t/css/t.css tmp/a.zip"
    " administrator/manifests/files/joomla.xml language/en-GB/a.ini images/sampledata/b.png",
    "paths": "/ /about /about/ /blog/1-a /index.php /index.php/about /index.php?option=com_content&id=1 /administrator/"
    " /administrator /administrator/index.php /api/index.php/v1/content /api/ /media/a.css /media/b.js /media/none.css"
    " /images/a.jpg /images/none.jpg /images/evil.php /robots.txt /templates/t/css/t.css /tmp/a.zip /tmp/none /tmp/a.php"
    " /?a=base64_encode(x) /about?x=%3Cscript%3E /?GLOBALS=1 /about?_REQUEST[a]=1 /?q=globals /.htaccess /images/.htaccess"
    " /configuration.php /media /media/ /component/a.b /a.html /a/b.feed /images/sampledata/b.png /none.php",
}

NEXTCLOUD = {
    "rules": {
        ".htaccess": documented("nextcloud"),
        "data/.htaccess": CLOSED,
        "config/.htaccess": CLOSED,
    },
    "known": {
        "^/(?:remote|%72emote)/dav": "A rewrite to another script than the front controller has no effect; the start says so.",
        "version\\.php": "Every script at the top that is not private runs.",
    },
    "scripts": "index.php remote.php public.php cron.php status.php ocs/v1.php ocs/v2.php version.php console.php"
    " lib/base.php config/config.php core/ajax/update.php updater/index.php",
    "files": "core/css/server.css core/js/main.js core/img/logo.svg core/img/favicon.ico robots.txt data/admin/files/a.txt"
    " config/a.json lib/a.json 3rdparty/a.css apps/files/js/files.js apps/files/img/a.png occ tests/a.css dist/a.mjs",
    "paths": "/ /login /apps/files/ /apps/files /s/abc /index.php /index.php/apps/files /remote.php/dav/files/a /remote.php/webdav/"
    " /remote/dav /status.php /public.php /cron.php /ocs/v1.php/cloud /ocs/v2.php /.well-known/carddav /.well-known/caldav"
    " /.well-known/webfinger /.well-known/acme-challenge/x /ocm-provider/ /ocm-provider /core/css/server.css /core/js/main.js"
    " /core/js/none.js /core/js/oc.js /core/img/logo.svg /core/img/favicon.ico /robots.txt /data/admin/files/a.txt"
    " /config/config.php /config/a.json /lib/base.php /lib/a.json /3rdparty/a.css /tests/a.css /occ /console.php /autotest.sh"
    " /.htaccess /.git/HEAD /apps/files/js/files.js /apps/files/img/a.png /updater/ /core/ajax/update.php /dist/a.mjs"
    " /version.php /data/ /none.png",
}

SITES = {
    "wordpress": WORDPRESS,
    "drupal": DRUPAL,
    "mediawiki": MEDIAWIKI,
    "laravel": LARAVEL,
    "joomla": JOOMLA,
    "nextcloud": NEXTCLOUD,
}

REQUESTS = 200


def requests(site):
    """The requests of a site: its paths, then the same in other spellings, up to a number that is the same for all."""
    paths = site["paths"].split()
    spellings = [
        lambda path: path,
        lambda path: path + ("&" if "?" in path else "?") + "a=b%20c",
        lambda path: path if "?" in path or path == "/" else (path[:-1] if path.endswith("/") else path + "/"),
        lambda path: "/none" + path,
        lambda path: path if path == "/" else f"/%{ord(path[1]):02X}{path[2:]}",
        lambda path: "/" + path,
        lambda path: path.split("?")[0] + "~",
        lambda path: "/x/.." + path,
        lambda path: path.split("?")[0].upper(),
    ]
    asked = dict.fromkeys(spelling(path) for spelling in spellings for path in paths)
    return list(asked)[:REQUESTS]
