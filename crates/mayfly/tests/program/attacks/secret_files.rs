//! Files that lie in a document root and are for nobody: copies, databases, keys, logs,
//! archives, and folders that a `.htaccess` closes. Each application's folder is made
//! from a table; its private files say SECRET, its public ones PUBLIC.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use testkit::serving::Serving;

/// A real application's files, as far as they matter.
struct Layout {
    name: &'static str,
    /// What tells the application.
    signs: &'static [&'static str],
    /// The document root within the folder.
    root: &'static str,
    secret: &'static [&'static str],
    public: &'static [&'static str],
}

const DENIES: &str = "Order deny,allow\nDeny from all\n";

/// What an index script says.
const PAGE: &str = "<?php echo 'PAGE';";

fn write(root: &Path, path: &str, text: &str) {
    let file = root.join(path.trim_start_matches('/'));
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    // A table may name a file twice, and a probe may be another's folder.
    if !file.is_dir() {
        std::fs::write(file, text).expect("a file");
    }
}

fn folder_of(layout: &Layout) -> tempfile::TempDir {
    let folder = Serving::folder();
    for sign in layout.signs {
        let text = if sign.ends_with("index.php") || sign.ends_with("doku.php") {
            PAGE
        } else {
            ""
        };
        write(folder.path(), sign, text);
    }
    let root = folder.path().join(layout.root);
    for path in layout.secret {
        write(&root, path, "SECRET");
    }
    for path in layout.public {
        write(&root, path, "PUBLIC");
    }
    folder
}

async fn serve(folder: &Path) -> Serving {
    let shown = folder.to_str().expect("a name");
    Serving::start(crate::program(), shown, &["--ttl", "0"]).await
}

/// Spellings of the same path, and paths behind it.
fn spellings(path: &str) -> Vec<String> {
    let encoded: String = path
        .bytes()
        .map(|byte| match byte {
            b'/' => "/".to_owned(),
            other => format!("%{other:02X}"),
        })
        .collect();
    vec![
        path.to_owned(),
        path.replace('.', "%2e"),
        encoded,
        path.replace('/', "//"),
        format!("/x/..{path}"),
        format!("/./{}", path.trim_start_matches('/')),
        format!("{path}/x.css"),
        format!("{path}/.well-known/"),
        format!("{path}?x.css"),
    ]
}

const LAYOUTS: &[Layout] = &[
    Layout {
        name: "WordPress",
        signs: &["index.php", "wp-load.php", "wp-includes/version.php"],
        root: "",
        secret: &[
            "/wp-config.php~",
            "/wp-config.php.bak",
            "/wp-config.php.1",
            "/wp-config.PHP",
            "/wp-config.txt",
            "/backup.zip",
            "/example.com.tar.gz",
            "/wp-content/debug.log",
            "/.well-known/dump.sql",
            "/wp-content/updraft/backup_2026-db.gz",
            "/wp-content/ai1wm-backups/site.wpress",
            "/wp-content/uploads/2026/11/dump.sql",
            "/wp-content/uploads/2026/11/backup.zip",
            "/wp-content/uploads/backwpup-1/site.zip",
            "/wp-content/uploads/2026/11/shell.php",
            "/wp-content/database/.ht.sqlite",
            "/wp-content/plugins/a/config.yaml",
            "/wp-content/plugins/a/vendor/a/composer.json",
            "/wp-content/plugins/a/vendor/phpunit/phpunit/src/Util/PHP/eval-stdin.php",
            "/wp-admin/includes/file.php",
            "/error_log",
            "/wp-admin/error_log",
            "/core",
        ],
        public: &[
            "/wp-includes/js/jquery/jquery.min.js",
            "/wp-includes/css/dashicons.min.css",
            "/wp-includes/fonts/dashicons.woff2",
            "/wp-includes/js/dist/a.js.map",
            "/wp-includes/wlwmanifest.xml",
            "/wp-content/themes/a/style.css",
            "/wp-content/themes/a/theme.json",
            "/wp-content/plugins/wordpress-seo/css/main-sitemap.xsl",
            "/wp-content/uploads/2026/11/a.jpg",
            "/wp-content/uploads/2026/11/a.WEBP",
            "/wp-content/uploads/2026/11/functions.php_.png",
            "/wp-content/uploads/2026/11/prices.xlsx",
            "/wp-content/uploads/2026/11/report.docx",
            "/wp-content/uploads/2026/11/data.csv",
            "/wp-content/uploads/2026/11/pictures.zip",
            "/wp-content/uploads/2026/11/film.mp4",
            "/wp-content/uploads/2026/11/paper.pdf",
            "/robots.txt",
            "/ads.txt",
            "/favicon.ico",
            "/sitemap_index.xml",
            "/googlea1b2c3.html",
            "/.well-known/security.txt",
            "/.well-known/acme-challenge/a_b-c",
            "/.well-known/pki-validation/file.xyz",
        ],
    },
    Layout {
        name: "MediaWiki",
        signs: &["index.php", "load.php", "includes/WebStart.php"],
        root: "",
        secret: &[
            "/LocalSettings.php",
            "/LocalSettings.php.old",
            "/LocalSettings.php_",
            "/images/deleted/a/b/c.png",
            "/images/a/ab/evil.php",
            "/images/a/ab/evil.html",
            "/cache/l10n_cache-en.cdb",
            "/maintenance/tables.json",
            "/data/my_wiki.sqlite",
            "/vendor/autoload.php",
            "/wiki.sql.gz",
            "/extensions/A/composer.lock",
            "/extensions/A/a.sql",
            "/COPYING",
        ],
        public: &[
            "/resources/assets/licenses/cc-0.png",
            "/resources/src/a.js",
            "/skins/Vector/a.svg",
            "/extensions/A/a.css",
            "/extensions/CodeEditor/modules/ace/snippets/makefile.js",
            "/images/a/ab/A.jpg",
            "/images/thumb/a/ab/A.jpg/120px-A.jpg",
            "/images/a/ab/Paper.pdf",
            "/images/a/ab/Table.ods",
            "/favicon.ico",
            "/robots.txt",
        ],
    },
    Layout {
        name: "DokuWiki",
        signs: &["index.php", "doku.php", "inc/init.php"],
        root: "",
        secret: &[
            "/data/pages/start.txt",
            "/data/media/a.png",
            "/conf/users.auth.php",
            "/conf/local.php.bak",
            "/inc/lang/en/lang.php",
            "/bin/dwpage.php",
            "/vendor/composer/installed.json",
            "/lib/plugins/a/conf/secret.ini",
            "/lib/plugins/a/plugin.info.txt",
            "/lib/tpl/a/style.ini",
            "/VERSION",
            "/wiki.tgz",
        ],
        public: &[
            "/lib/tpl/dokuwiki/images/logo.png",
            "/lib/scripts/jquery/jquery.min.js",
            "/lib/images/smileys/a.svg",
            "/lib/plugins/a/images/a.gif",
        ],
    },
    Layout {
        name: "Drupal",
        signs: &["composer.json", "web/index.php", "web/core/lib/Drupal.php"],
        root: "web",
        secret: &[
            "/sites/default/settings.php",
            "/sites/default/settings.php.dpkg-old",
            "/sites/default/services.yml",
            "/sites/default/private/a.txt",
            "/sites/default/files/.ht.sqlite",
            "/sites/default/files/config_abc/sync/user.role.yml",
            "/sites/default/files/evil.php",
            "/sites/default/files/backup.sql.gz",
            "/core/lib/Drupal.php",
            "/core/core.services.yml",
            "/core/INSTALL.sqlite.txt",
            "/modules/a/a.module",
            "/modules/a/a.info.yml",
            "/modules/a/composer.json",
            "/themes/a/page.html.twig",
            "/web.config",
            "/vendor/autoload.php",
        ],
        public: &[
            "/core/misc/drupal.js",
            "/core/themes/olivero/fonts/a.woff2",
            "/sites/default/files/css/css_abc.css",
            "/sites/default/files/2026-11/a.png",
            "/sites/default/files/2026-11/report.docx",
            "/modules/a/js/a.js",
            "/robots.txt",
        ],
    },
    Layout {
        name: "Laravel",
        signs: &["artisan", "public/index.php", "storage/logs/laravel.log"],
        root: "public",
        secret: &[
            "/index.php.save",
            "/web.config",
            "/hot",
            "/storage/dump.sql",
            "/storage/backup.tar.gz",
            "/database.sqlite-wal",
            "/adminer.php",
            "/laravel.log",
            "/oauth-private.key",
        ],
        public: &[
            "/build/manifest.json",
            "/build/assets/app-1a2b.css",
            "/build/assets/app-1a2b.js",
            "/vendor/livewire/livewire.js",
            "/storage/avatars/1.png",
            "/storage/invoices/1.pdf",
            "/storage/exports/a.xlsx",
            "/favicon.ico",
            "/robots.txt",
        ],
    },
    Layout {
        name: "Symfony",
        signs: &["config/bundles.php", "public/index.php"],
        root: "public",
        secret: &[
            "/check.php",
            "/app_dev.php",
            "/index.php.orig",
            "/var.zip",
            "/config.yaml",
        ],
        public: &[
            "/bundles/easyadmin/app.css",
            "/assets/app-abc.js",
            "/uploads/a.png",
            "/uploads/paper.odt",
        ],
    },
    Layout {
        name: "Joomla",
        signs: &[
            "index.php",
            "administrator/index.php",
            "includes/framework.php",
            "configuration.php",
        ],
        root: "",
        secret: &[
            "/configuration.php-dist",
            "/configuration.php.txt",
            "/htaccess.txt",
            "/web.config.txt",
            "/libraries/src/a.php",
            "/libraries/vendor/composer/installed.json",
            "/logs/error.php",
            "/tmp/install_1/a.xml",
            "/cli/joomla.php",
            "/administrator/logs/error.php",
            "/administrator/cache/autoload_psr4.php",
            "/images/evil.php",
            "/backup.jpa",
            "/administrator/components/com_a/sql/install.mysql.utf8.sql",
        ],
        public: &[
            "/media/system/js/core.js",
            "/media/templates/site/cassiopeia/css/template.css",
            "/images/joomla_black.png",
            "/images/report.pdf",
            "/templates/a/html/index.html",
        ],
    },
    Layout {
        name: "phpMyAdmin",
        signs: &["index.php", "libraries/config.default.php"],
        root: "",
        secret: &[
            "/config.inc.php",
            "/config.inc.php~",
            "/config.sample.inc.php.bak",
            "/templates/login/form.twig",
            "/sql/create_tables.sql",
            "/setup/lib/a.php",
            "/vendor/autoload.php",
            "/tmp/twig/a.php",
            "/composer.json",
            "/package.json",
            "/yarn.lock",
            "/RELEASE-DATE-5.2.1",
        ],
        public: &[
            "/js/dist/common.js",
            "/js/vendor/jquery/jquery.min.js",
            "/themes/pmahomme/css/theme.css",
            "/themes/pmahomme/img/logo_left.png",
            "/favicon.ico",
        ],
    },
    Layout {
        name: "Roundcube",
        signs: &["index.php", "program/include/iniset.php"],
        root: "",
        secret: &[
            "/config/config.inc.php",
            "/config/defaults.inc.php",
            "/config/config.inc.php.sample",
            "/logs/errors.log",
            "/logs/errors",
            "/temp/RCMTEMPattmnt1",
            "/temp/a.png",
            "/SQL/mysql.initial.sql",
            "/bin/update.sh",
            "/program/lib/Roundcube/rcube.php",
            "/plugins/password/config.inc.php",
            "/plugins/password/config.inc.php.dist",
            "/skins/elastic/templates/login.html",
            "/CHANGELOG.md",
            "/composer.json-dist",
        ],
        public: &[
            "/program/js/app.min.js",
            "/program/resources/blank.gif",
            "/skins/elastic/styles/styles.min.css",
            "/skins/elastic/images/logo.svg",
            "/skins/elastic/fonts/roboto.woff2",
            "/plugins/zipdownload/zipdownload.js",
        ],
    },
    Layout {
        name: "Nextcloud",
        signs: &["index.php", "occ", "remote.php", "status.php"],
        root: "",
        secret: &[
            "/config/config.php",
            "/data/admin/files/photo.jpg",
            "/data/nextcloud.log",
            "/data/owncloud.db",
            "/data/owncloud.db-shm",
            "/lib/private/a.php",
            "/3rdparty/autoload.php",
            "/console.php",
            "/apps/files/lib/App.php",
            "/apps/files/appinfo/info.xml.bak",
            "/core/templates/layout.user.php",
        ],
        public: &[
            "/core/js/main.js",
            "/core/css/server.css",
            "/core/img/logo/logo.svg",
            "/apps/files/js/a.mjs",
            "/dist/core-main.js",
            "/apps/viewer/a.wasm",
            "/robots.txt",
        ],
    },
    Layout {
        name: "Grav",
        signs: &["index.php", "bin/grav", "system/defines.php"],
        root: "",
        secret: &[
            "/user/accounts/admin.yaml",
            "/user/config/site.yaml",
            "/user/data/contact/a.txt",
            "/user/pages/01.home/default.md",
            "/user/plugins/a/a.php",
            "/logs/grav.log",
            "/backup/site.zip",
            "/cache/a.php",
            "/system/config/system.yaml",
            "/vendor/autoload.php",
            "/composer.lock",
        ],
        public: &[
            "/user/pages/01.home/a.jpg",
            "/user/themes/quark/css/theme.css",
            "/user/plugins/a/assets/a.js",
            "/system/assets/jquery/jquery.min.js",
            "/assets/a1b2.css",
            "/images/a/b/c.png",
        ],
    },
    Layout {
        name: "Kirby",
        signs: &["index.php", "kirby/bootstrap.php"],
        root: "",
        secret: &[
            "/content/home/home.txt",
            "/content/home/a.jpg",
            "/site/accounts/a/index.php",
            "/site/accounts/a/.htpasswd",
            "/site/config/config.php",
            "/kirby/config/setup.php",
        ],
        public: &["/media/pages/home/1-2/a.jpg", "/assets/css/index.css"],
    },
    Layout {
        name: "PrestaShop",
        signs: &["index.php", "init.php", "config/defines.inc.php"],
        root: "",
        secret: &[
            "/app/config/parameters.php",
            "/app/config/parameters.yml",
            "/config/settings.inc.php",
            "/var/logs/prod.log",
            "/translations/en/admin.php",
            "/modules/a/vendor/phpunit/a.php",
            "/modules/a/views/a.tpl",
            "/img/evil.php",
            "/upload/evil.php",
            "/themes/classic/templates/index.tpl",
        ],
        public: &[
            "/themes/classic/assets/css/theme.css",
            "/themes/classic/assets/cache/bottom-1.js",
            "/modules/a/views/js/a.js",
            "/img/p/1/1.jpg",
            "/js/jquery/jquery.min.js",
        ],
    },
    Layout {
        name: "PHP scripts",
        signs: &["index.php", "about.php"],
        root: "",
        secret: &[
            "/inc/db.inc",
            "/index.php.1",
            "/site.zip",
            "/data.db-journal",
            "/dump",
        ],
        public: &[
            "/style.css",
            "/page.html",
            "/downloads/program-1.2.zip",
            "/data/points.json",
            "/feed.xml",
            "/notes.txt",
            "/files/table.xlsx",
        ],
    },
];

#[tokio::test]
async fn each_application_hands_out_what_pages_load_and_nothing_else() {
    let mut wrong = Vec::new();
    for layout in LAYOUTS {
        let folder = folder_of(layout);
        let server = serve(folder.path()).await;
        let target = server.target();
        for path in layout.secret.iter().flat_map(|path| spellings(path)) {
            let reply = target.get(&path).await;
            if reply.text().contains("SECRET") {
                wrong.push(format!("{}: {path} is handed out", layout.name));
            }
        }
        for path in layout.public {
            let reply = target.get(path).await;
            if (reply.status, &*reply.text()) != (200, "PUBLIC") {
                wrong.push(format!("{}: {path} is not: {}", layout.name, reply.status));
            }
        }
        let page = target.get("/").await;
        if page.text() != "PAGE" {
            wrong.push(format!("{}: no page: {}", layout.name, page.status));
        }
    }
    assert_eq!(wrong, [""; 0], "{}", wrong.join("\n"));
}

/// What programs that look for mistakes ask every site for.
const PROBES: &[&str] = &[
    ".env",
    ".env.local",
    ".env.production",
    ".env.bak",
    ".env~",
    ".git/config",
    ".git/HEAD",
    ".git/index",
    ".gitignore",
    ".gitlab-ci.yml",
    ".svn/entries",
    ".svn/wc.db",
    ".hg/hgrc",
    ".bzr/README",
    "CVS/Root",
    "CVS/Entries",
    ".DS_Store",
    ".htaccess",
    ".htpasswd",
    ".htpasswd.bak",
    ".bash_history",
    ".bashrc",
    ".ssh/id_rsa",
    ".ssh/authorized_keys",
    ".aws/credentials",
    ".docker/config.json",
    ".dockercfg",
    ".npmrc",
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".mysql_history",
    ".psql_history",
    ".vscode/sftp.json",
    ".vscode/settings.json",
    ".idea/workspace.xml",
    ".idea/dataSources.xml",
    ".user.ini",
    ".ftpconfig",
    ".ftpquota",
    ".remote-sync.json",
    ".travis.yml",
    ".circleci/config.yml",
    ".kube/config",
    ".viminfo",
    ".index.php.swp",
    ".config.php.swp",
    "wp-config.php~",
    "wp-config.php.bak",
    "wp-config.php.old",
    "wp-config.php.save",
    "wp-config.php.swp",
    "wp-config.php.orig",
    "wp-config.php.txt",
    "wp-config.php_bak",
    "wp-config.php-bak",
    "wp-config.php.1",
    "wp-config.php.2",
    "wp-config.php.dist",
    "wp-config.php.copy",
    "wp-config.php.bk",
    "wp-config.php.dpkg-old",
    "wp-config.php.zip",
    "wp-config.php-",
    "wp-config.php_",
    "wp-config.bak",
    "wp-config.old",
    "config.php~",
    "config.php.bak",
    "config.php.old",
    "config.PHP",
    "config.pHp",
    "config.php5",
    "config.php7",
    "config.phps",
    "config.phtml",
    "config.pht",
    "config.phar",
    "config.inc",
    "config.inc.php.bak",
    "config.ini",
    "config.yml",
    "config.yaml",
    "config.toml",
    "config.cfg",
    "config.conf",
    "config.xml.bak",
    "configuration.php.bak",
    "configuration.php-dist",
    "settings.php.bak",
    "settings.py",
    "local_settings.py",
    "database.yml",
    "database.sql",
    "database.sqlite",
    "database.sqlite3",
    "database.db",
    "data.db",
    "data.sqlite-wal",
    "data.sqlite-shm",
    "data.sqlite-journal",
    "data.db-wal",
    "data.db-shm",
    "data.db-journal",
    "data.db3",
    "data.mdb",
    "db.sql",
    "db.sql.gz",
    "db.sql.zip",
    "db.sql.bz2",
    "db.zip",
    "db.tar.gz",
    "db_backup.sql",
    "dump.sql",
    "dump.sql.gz",
    "dump.sql.xz",
    "dump.rdb",
    "dump.tar",
    "backup.sql",
    "backup.sql.1",
    "backup.zip",
    "backup.tar",
    "backup.tar.gz",
    "backup.tgz",
    "backup.rar",
    "backup.7z",
    "backup/db.sql",
    "backups/site.zip",
    "backups/2026.tar.gz",
    "bak.zip",
    "old.zip",
    "site.zip",
    "site.tar.gz",
    "www.zip",
    "www.tar.gz",
    "www.rar",
    "wwwroot.zip",
    "html.zip",
    "public_html.zip",
    "htdocs.tar.gz",
    "website.zip",
    "web.zip",
    "wordpress.zip",
    "source.zip",
    "src.tar.gz",
    "example.com.zip",
    "mysql.sql",
    "users.sql",
    "localhost.sql",
    "test.sql",
    "auth.json",
    "secrets.json",
    "secret.json",
    "secrets.yml",
    "credentials.json",
    "credentials",
    "credentials.csv",
    "client_secret.json",
    "client_secrets.json",
    "service-account.json",
    "serviceAccountKey.json",
    "firebase-adminsdk.json",
    "appsettings.json",
    "appsettings.Production.json",
    "sftp-config.json",
    "sftp.json",
    "ftpsync.json",
    "passwords.txt",
    "password.txt",
    "passwd",
    "shadow",
    "logins.json",
    "WS_FTP.LOG",
    "ws_ftp.ini",
    "filezilla.xml",
    "sitemanager.xml",
    "recentservers.xml",
    "id_rsa",
    "id_rsa.pub",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "server.key",
    "private.key",
    "privatekey.key",
    "key.pem",
    "cert.pem",
    "server.pem",
    "server.crt",
    "server.cer",
    "server.csr",
    "server.pfx",
    "server.p12",
    "putty.ppk",
    "keystore.jks",
    "passwords.kdbx",
    "vpn.ovpn",
    "secring.gpg",
    "private.asc",
    "htpasswd",
    "htpasswd.txt",
    "htpasswd.bak",
    "passwd.htpasswd",
    "htaccess.bak",
    "error_log",
    "error.log",
    "errors.log",
    "error.log.1",
    "error.log.2.gz",
    "access.log",
    "access_log",
    "debug.log",
    "php_error.log",
    "php_errors.log",
    "php_error_log",
    "php-errors.log",
    "mail.log",
    "app.log",
    "laravel.log",
    "npm-debug.log",
    "yarn-error.log",
    "logs/error.log",
    "logs/access",
    "log/production.log",
    "storage/logs/laravel.log",
    "var/log/prod.log",
    "core",
    "core.1234",
    "core.31337",
    "nohup.out",
    "cachegrind.out.123",
    "java_pid1.hprof",
    "composer.json",
    "composer.lock",
    "composer.phar",
    "package.json",
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bower.json",
    "Gruntfile.js",
    "gulpfile.js",
    "webpack.config.js",
    "Gemfile",
    "Gemfile.lock",
    "Makefile",
    "Dockerfile",
    "docker-compose.yml",
    "docker-compose.override.yaml",
    "Vagrantfile",
    "Jenkinsfile",
    "Procfile",
    "phpunit.xml",
    "phpunit.xml.dist",
    "phpcs.xml",
    "web.config",
    "web.config.bak",
    "artisan",
    "deploy.sh",
    "backup.sh",
    "install.bat",
    "run.ps1",
    "app.py",
    "main.pyc",
    "app.rb",
    "test.pl",
    "test.cgi",
    "index.php~",
    "index.php.bak",
    "index.php.old",
    "index.php.swp",
    "index.php.1",
    "index.PHP",
    "index.php.",
    "index.bak",
    "index.old",
    "#index.php#",
    "terraform.tfstate",
    "terraform.tfstate.backup",
    "terraform.tfvars",
    "wallet.dat",
    "kubeconfig",
    "kubeconfig.yml",
    "values.yaml",
    "WEB-INF/web.xml",
    "META-INF/context.xml",
    "nbproject/project.properties",
    "application.properties",
    "application.yml",
    "site.wpress",
    "site.jpa",
    "site.daf",
    "disk.vmdk",
    "disk.qcow2",
];

/// Those that even a folder of static files may hold by mistake only.
fn is_for_static(probe: &str) -> bool {
    let name = probe
        .rsplit('/')
        .next()
        .expect("a name")
        .to_ascii_lowercase();
    probe.starts_with('.')
        || name.contains(".php")
        || [
            ".key", ".p12", ".pfx", ".ppk", ".jks", ".kdbx", ".log", ".sqlite", "-wal", "-shm",
        ]
        .iter()
        .any(|end| name.ends_with(end))
        || [
            "id_rsa",
            "htpasswd",
            "error_log",
            "core",
            "auth.json",
            "secrets.json",
        ]
        .contains(&&*name)
}

#[tokio::test]
async fn nothing_that_scanners_look_for_is_handed_out() {
    assert!(PROBES.len() >= 150);
    let mut wrong = Vec::new();
    let static_files = Layout {
        name: "static files",
        signs: &["index.html"],
        root: "",
        secret: &[],
        public: &[],
    };
    for layout in LAYOUTS.iter().chain([&static_files]) {
        let folder = folder_of(layout);
        let root = folder.path().join(layout.root);
        let probes = PROBES
            .iter()
            .filter(|probe| layout.name != static_files.name || is_for_static(probe));
        let probes: Vec<&&str> = probes.collect();
        for probe in &probes {
            write(&root, probe, "SECRET");
        }
        let server = serve(folder.path()).await;
        for probe in probes {
            let path = format!("/{}", probe.replace('#', "%23"));
            let reply = server.target().get(&path).await;
            if reply.text().contains("SECRET") {
                wrong.push(format!("{}: {path}", layout.name));
            }
        }
    }
    assert_eq!(wrong, [""; 0], "{}", wrong.join("\n"));
}

/// A folder's name is a site's own and may hold anything but a slash.
#[tokio::test]
async fn a_folder_that_its_htaccess_closes_is_closed() {
    let folder = Serving::folder();
    let root = folder.path();
    write(root, "index.php", PAGE);
    write(root, "about.php", PAGE);
    // The administrator's own folder: whoever serves it wants it served.
    write(root, ".htaccess", DENIES);
    let names: [(&[u8], &str); 8] = [
        (b"private", "private"),
        (b"two words", "two%20words"),
        (b"quote\"d", "quote%22d"),
        (b"back\\slash", "back%5Cslash"),
        (b"${money};{}", "$%7Bmoney%7D;%7B%7D"),
        (b"line\nbreak", "line%0Abreak"),
        (b"caf\xe9(.*)", "caf%E9(.*)"),
        ("caf\u{e9}".as_bytes(), "caf%C3%A9"),
    ];
    for (name, _) in names {
        let inner = root.join(std::ffi::OsStr::from_bytes(name)).join("a/b");
        std::fs::create_dir_all(&inner).expect("a folder");
        let closed = inner.parent().and_then(Path::parent).expect("the folder");
        std::fs::write(closed.join(".htaccess"), DENIES).expect("a file");
        for file in ["a.css", "index.html", "x.php"] {
            std::fs::write(inner.join(file), "SECRET").expect("a file");
            std::fs::write(closed.join(file), "SECRET").expect("a file");
        }
    }
    write(
        root,
        "akismet/.htaccess",
        "Require all denied\n<FilesMatch \"^a\\.css$\">\nRequire all granted\n</FilesMatch>\n",
    );
    write(root, "akismet/a.css", "PUBLIC");
    write(root, "akismet/notes.txt", "SECRET");
    write(root, "akismet/x.php", "SECRET");
    write(root, "privateer/a.css", "PUBLIC");
    let server = serve(root).await;
    let said = std::fs::read_to_string(server.path("stdout")).expect("what it said");
    let target = server.target();
    for (_, name) in names {
        for file in [
            "a.css",
            "x.php",
            "x.php/y.css",
            "",
            "a/b/a.css",
            "a/b/",
            "a/../a.css",
        ] {
            let reply = target.get(&format!("/{name}/{file}")).await;
            assert_eq!(reply.status, 403, "/{name}/{file}: {}", reply.text());
        }
        let reply = target.get(&format!("/{name}")).await;
        assert!(!reply.text().contains("SECRET"), "/{name}");
    }
    for path in [
        "/akismet/notes.txt",
        "/akismet/x.php",
        "/akismet/x.php/a.css",
    ] {
        assert_eq!(target.get(path).await.status, 403, "{path}");
    }
    for path in ["/akismet/a.css", "/privateer/a.css"] {
        assert_eq!(target.get(path).await.text(), "PUBLIC", "{path}");
    }
    assert!(
        said.contains("9 folders are closed by their .htaccess"),
        "{said}"
    );
}

#[tokio::test]
async fn a_refusal_is_logged_with_its_reason_and_a_flood_of_them_is_bounded() {
    let folder = Serving::folder();
    write(folder.path(), "index.php", PAGE);
    write(folder.path(), "dump.sql", "SECRET");
    write(folder.path(), "core", "SECRET");
    let server = serve(folder.path()).await;
    let target = server.target();
    for (path, line) in [
        (
            "/dump.sql",
            "access forbidden by rule: A database or a dump of one., client:",
        ),
        (
            "/core",
            "access forbidden by rule: Not a file that is handed out., client:",
        ),
        (
            "/.env",
            "access forbidden by rule: A name that begins with a dot., client:",
        ),
    ] {
        assert_eq!(target.get(path).await.status, 403, "{path}");
        let log = server.error_log();
        let lines: Vec<&str> = log.lines().filter(|logged| logged.contains(path)).collect();
        assert!(lines.len() == 1 && lines[0].contains(line), "{path}: {log}");
    }
    let begun = std::time::Instant::now();
    for _ in 0..1000 {
        assert_eq!(target.get("/dump.sql").await.status, 403);
    }
    // A hundred at once, then one a second.
    let bound = 102 + usize::try_from(begun.elapsed().as_secs()).expect("a few seconds");
    let lines = server.error_log().lines().count();
    assert!(lines <= bound, "{lines} lines, {bound} may be");
    // The next line that may be written says how many were not.
    while !server
        .error_log()
        .contains("more refusals were not logged)")
    {
        assert!(begun.elapsed().as_secs() < 20, "{}", server.error_log());
        target.get("/dump.sql").await;
    }
}

#[tokio::test]
async fn no_browser_guesses_what_a_response_is() {
    let folder = Serving::folder();
    let says = "<?php header('X-Content-Type-Options: nosniff'); echo 'PAGE';";
    write(folder.path(), "index.php", PAGE);
    write(folder.path(), "says.php", says);
    write(folder.path(), "a.css", "PUBLIC");
    let server = serve(folder.path()).await;
    for path in ["/", "/says.php", "/a.css", "/none", "/.env"] {
        let reply = server.target().get(path).await;
        let sent = reply
            .fields
            .iter()
            .filter(|(name, value)| name == "x-content-type-options" && value == "nosniff");
        assert_eq!(sent.count(), 1, "{path}");
    }
}
