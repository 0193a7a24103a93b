//! Files in the folders of real applications: the public ones, and the private
//! ones.

/// A real application's files, as far as they matter.
pub struct Layout {
    pub name: &'static str,
    /// The files by which the application is recognized.
    pub signs: &'static [&'static str],
    /// The document root within the folder.
    pub root: &'static str,
    pub secret: &'static [&'static str],
    pub public: &'static [&'static str],
}

#[rustfmt::skip]
pub const LAYOUTS: &[Layout] = &[
    Layout {
        name: "WordPress", signs: &["index.php", "wp-load.php", "wp-includes/version.php"], root: "",
        secret: &[
            "/wp-config.php~", "/wp-config.php.bak", "/wp-config.php.1", "/wp-config.PHP", "/wp-config.txt",
            "/backup.zip", "/example.com.tar.gz", "/wp-content/debug.log", "/.well-known/dump.sql",
            "/wp-content/updraft/backup_2026-db.gz", "/wp-content/ai1wm-backups/site.wpress",
            "/wp-content/uploads/2026/11/dump.sql", "/wp-content/uploads/2026/11/backup.zip",
            "/wp-content/uploads/backwpup-1/site.zip", "/wp-content/uploads/2026/11/shell.php",
            "/wp-content/database/.ht.sqlite", "/wp-content/plugins/a/config.yaml",
            "/wp-content/plugins/a/vendor/a/composer.json",
            "/wp-content/plugins/a/vendor/phpunit/phpunit/src/Util/PHP/eval-stdin.php",
            "/wp-admin/includes/file.php", "/error_log", "/wp-admin/error_log", "/core",
        ],
        public: &[
            "/wp-includes/js/jquery/jquery.min.js", "/wp-includes/css/dashicons.min.css",
            "/wp-includes/fonts/dashicons.woff2", "/wp-includes/js/dist/a.js.map",
            "/wp-includes/wlwmanifest.xml", "/wp-content/themes/a/style.css", "/wp-content/themes/a/theme.json",
            "/wp-content/plugins/wordpress-seo/css/main-sitemap.xsl", "/wp-content/uploads/2026/11/a.jpg",
            "/wp-content/uploads/2026/11/a.WEBP", "/wp-content/uploads/2026/11/functions.php_.png",
            "/wp-content/uploads/2026/11/prices.xlsx", "/wp-content/uploads/2026/11/report.docx",
            "/wp-content/uploads/2026/11/data.csv", "/wp-content/uploads/2026/11/pictures.zip",
            "/wp-content/uploads/2026/11/film.mp4", "/wp-content/uploads/2026/11/paper.pdf", "/robots.txt",
            "/ads.txt", "/favicon.ico", "/sitemap_index.xml", "/googlea1b2c3.html", "/.well-known/security.txt",
            "/.well-known/acme-challenge/a_b-c", "/.well-known/pki-validation/file.xyz",
        ],
    },
    Layout {
        name: "MediaWiki", signs: &["index.php", "load.php", "includes/WebStart.php"], root: "",
        secret: &[
            "/LocalSettings.php", "/LocalSettings.php.old", "/LocalSettings.php_", "/images/deleted/a/b/c.png",
            "/images/a/ab/evil.php", "/images/a/ab/evil.html", "/cache/l10n_cache-en.cdb",
            "/maintenance/tables.json", "/data/my_wiki.sqlite", "/vendor/autoload.php", "/wiki.sql.gz",
            "/extensions/A/composer.lock", "/extensions/A/a.sql", "/COPYING",
        ],
        public: &[
            "/resources/assets/licenses/cc-0.png", "/resources/src/a.js", "/skins/Vector/a.svg",
            "/extensions/A/a.css", "/extensions/CodeEditor/modules/ace/snippets/makefile.js",
            "/images/a/ab/A.jpg", "/images/thumb/a/ab/A.jpg/120px-A.jpg", "/images/a/ab/Paper.pdf",
            "/images/a/ab/Table.ods", "/favicon.ico", "/robots.txt",
        ],
    },
    Layout {
        name: "DokuWiki", signs: &["index.php", "doku.php", "inc/init.php"], root: "",
        secret: &[
            "/data/pages/start.txt", "/data/media/a.png", "/conf/users.auth.php", "/conf/local.php.bak",
            "/inc/lang/en/lang.php", "/bin/dwpage.php", "/vendor/composer/installed.json",
            "/lib/plugins/a/conf/secret.ini", "/lib/plugins/a/plugin.info.txt", "/lib/tpl/a/style.ini",
            "/VERSION", "/wiki.tgz",
        ],
        public: &[
            "/lib/tpl/dokuwiki/images/logo.png", "/lib/scripts/jquery/jquery.min.js",
            "/lib/images/smileys/a.svg", "/lib/plugins/a/images/a.gif",
        ],
    },
    Layout {
        name: "Drupal", signs: &["composer.json", "web/index.php", "web/core/lib/Drupal.php"], root: "web",
        secret: &[
            "/sites/default/settings.php", "/sites/default/settings.php.dpkg-old",
            "/sites/default/services.yml", "/sites/default/private/a.txt", "/sites/default/files/.ht.sqlite",
            "/sites/default/files/config_abc/sync/user.role.yml", "/sites/default/files/evil.php",
            "/sites/default/files/backup.sql.gz", "/core/lib/Drupal.php", "/core/core.services.yml",
            "/core/INSTALL.sqlite.txt", "/modules/a/a.module", "/modules/a/a.info.yml",
            "/modules/a/composer.json", "/themes/a/page.html.twig", "/web.config", "/vendor/autoload.php",
        ],
        public: &[
            "/core/misc/drupal.js", "/core/themes/olivero/fonts/a.woff2",
            "/sites/default/files/css/css_abc.css", "/sites/default/files/2026-11/a.png",
            "/sites/default/files/2026-11/report.docx", "/modules/a/js/a.js", "/robots.txt",
        ],
    },
    Layout {
        name: "Laravel", signs: &["artisan", "public/index.php", "storage/logs/laravel.log"], root: "public",
        secret: &[
            "/index.php.save", "/web.config", "/hot", "/storage/dump.sql", "/storage/backup.tar.gz",
            "/database.sqlite-wal", "/adminer.php", "/laravel.log", "/oauth-private.key",
        ],
        public: &[
            "/build/manifest.json", "/build/assets/app-1a2b.css", "/build/assets/app-1a2b.js",
            "/vendor/livewire/livewire.js", "/storage/avatars/1.png", "/storage/invoices/1.pdf",
            "/storage/exports/a.xlsx", "/favicon.ico", "/robots.txt",
        ],
    },
    Layout {
        name: "Symfony", signs: &["config/bundles.php", "public/index.php"], root: "public",
        secret: &["/check.php", "/app_dev.php", "/index.php.orig", "/var.zip", "/config.yaml"],
        public: &["/bundles/easyadmin/app.css", "/assets/app-abc.js", "/uploads/a.png", "/uploads/paper.odt"],
    },
    Layout {
        name: "Joomla",
        signs: &["index.php", "administrator/index.php", "includes/framework.php", "configuration.php"],
        root: "",
        secret: &[
            "/configuration.php-dist", "/configuration.php.txt", "/htaccess.txt", "/web.config.txt",
            "/libraries/src/a.php", "/libraries/vendor/composer/installed.json", "/logs/error.php",
            "/tmp/install_1/a.xml", "/cli/joomla.php", "/administrator/logs/error.php",
            "/administrator/cache/autoload_psr4.php", "/images/evil.php", "/backup.jpa",
            "/administrator/components/com_a/sql/install.mysql.utf8.sql",
        ],
        public: &[
            "/media/system/js/core.js", "/media/templates/site/cassiopeia/css/template.css",
            "/images/joomla_black.png", "/images/report.pdf", "/templates/a/html/index.html",
        ],
    },
    Layout {
        name: "phpMyAdmin", signs: &["index.php", "libraries/config.default.php"], root: "",
        secret: &[
            "/config.inc.php", "/config.inc.php~", "/config.sample.inc.php.bak", "/templates/login/form.twig",
            "/sql/create_tables.sql", "/setup/lib/a.php", "/vendor/autoload.php", "/tmp/twig/a.php",
            "/composer.json", "/package.json", "/yarn.lock", "/RELEASE-DATE-5.2.1",
        ],
        public: &[
            "/js/dist/common.js", "/js/vendor/jquery/jquery.min.js", "/themes/pmahomme/css/theme.css",
            "/themes/pmahomme/img/logo_left.png", "/favicon.ico",
        ],
    },
    Layout {
        name: "Roundcube", signs: &["index.php", "program/include/iniset.php"], root: "",
        secret: &[
            "/config/config.inc.php", "/config/defaults.inc.php", "/config/config.inc.php.sample",
            "/logs/errors.log", "/logs/errors", "/temp/RCMTEMPattmnt1", "/temp/a.png", "/SQL/mysql.initial.sql",
            "/bin/update.sh", "/program/lib/Roundcube/rcube.php", "/plugins/password/config.inc.php",
            "/plugins/password/config.inc.php.dist", "/skins/elastic/templates/login.html", "/CHANGELOG.md",
            "/composer.json-dist",
        ],
        public: &[
            "/program/js/app.min.js", "/program/resources/blank.gif", "/skins/elastic/styles/styles.min.css",
            "/skins/elastic/images/logo.svg", "/skins/elastic/fonts/roboto.woff2",
            "/plugins/zipdownload/zipdownload.js",
        ],
    },
    Layout {
        name: "Nextcloud", signs: &["index.php", "occ", "remote.php", "status.php"], root: "",
        secret: &[
            "/config/config.php", "/data/admin/files/photo.jpg", "/data/nextcloud.log", "/data/owncloud.db",
            "/data/owncloud.db-shm", "/lib/private/a.php", "/3rdparty/autoload.php", "/console.php",
            "/apps/files/lib/App.php", "/apps/files/appinfo/info.xml.bak", "/core/templates/layout.user.php",
        ],
        public: &[
            "/core/js/main.js", "/core/css/server.css", "/core/img/logo/logo.svg", "/apps/files/js/a.mjs",
            "/dist/core-main.js", "/apps/viewer/a.wasm", "/robots.txt",
        ],
    },
    Layout {
        name: "Grav", signs: &["index.php", "bin/grav", "system/defines.php"], root: "",
        secret: &[
            "/user/accounts/admin.yaml", "/user/config/site.yaml", "/user/data/contact/a.txt",
            "/user/pages/01.home/default.md", "/user/plugins/a/a.php", "/logs/grav.log", "/backup/site.zip",
            "/cache/a.php", "/system/config/system.yaml", "/vendor/autoload.php", "/composer.lock",
        ],
        public: &[
            "/user/pages/01.home/a.jpg", "/user/themes/quark/css/theme.css", "/user/plugins/a/assets/a.js",
            "/system/assets/jquery/jquery.min.js", "/assets/a1b2.css", "/images/a/b/c.png",
        ],
    },
    Layout {
        name: "Kirby", signs: &["index.php", "kirby/bootstrap.php"], root: "",
        secret: &[
            "/content/home/home.txt", "/content/home/a.jpg", "/site/accounts/a/index.php",
            "/site/accounts/a/.htpasswd", "/site/config/config.php", "/kirby/config/setup.php",
        ],
        public: &["/media/pages/home/1-2/a.jpg", "/assets/css/index.css"],
    },
    Layout {
        name: "PrestaShop", signs: &["index.php", "init.php", "config/defines.inc.php"], root: "",
        secret: &[
            "/app/config/parameters.php", "/app/config/parameters.yml", "/config/settings.inc.php",
            "/var/logs/prod.log", "/translations/en/admin.php", "/modules/a/vendor/phpunit/a.php",
            "/modules/a/views/a.tpl", "/img/evil.php", "/upload/evil.php",
            "/themes/classic/templates/index.tpl",
        ],
        public: &[
            "/themes/classic/assets/css/theme.css", "/themes/classic/assets/cache/bottom-1.js",
            "/modules/a/views/js/a.js", "/img/p/1/1.jpg", "/js/jquery/jquery.min.js",
        ],
    },
    Layout {
        name: "PHP scripts", signs: &["index.php", "about.php"], root: "",
        secret: &[
            "/inc/db.inc", "/index.php.1", "/site.zip", "/data.db-journal", "/dump", "/install/site.sql",
            "/install/config.ini", "/cache/page.html",
        ],
        public: &[
            "/style.css", "/page.html",
            // Installers and their tests fetch what they have brought.
            "/install/test/index.html", "/tests/page.html", "/includes/help.html", "/downloads/program-1.2.zip",
            "/data/points.json", "/feed.xml", "/notes.txt", "/files/table.xlsx",
        ],
    },
];
