//! The files in which applications keep the account of their database, with the names of its parts. Read by
//! [`super::database_login()`].

/// The names of the parts of an account in one file. An empty name: the file has none.
#[derive(Clone, Copy)]
pub(super) enum AccountNames {
    Parts {
        host: &'static str,
        port: &'static str,
        socket: &'static str,
        user: &'static str,
        password: &'static str,
        /// The kind of the database.
        driver: &'static str,
        /// Its name, which a PostgreSQL is known with.
        database: &'static str,
    },
    /// All in one: `mysql://user:password@host/database`.
    Url(&'static str),
    /// The first arguments of `mysqli_connect`, `new mysqli`, `pg_connect` or `new PDO`.
    Call,
}

pub(super) struct AccountPlace {
    pub(super) application: &'static str,
    /// Relative to the document root; with `../` before it, beside the document root.
    pub(super) file: &'static str,
    pub(super) names: AccountNames,
}

const fn place(
    application: &'static str,
    file: &'static str,
    [host, port, socket, user, password, driver, database]: [&'static str; 7],
) -> AccountPlace {
    AccountPlace {
        application,
        file,
        names: AccountNames::Parts {
            host,
            port,
            socket,
            user,
            password,
            driver,
            database,
        },
    }
}

const fn url(application: &'static str, file: &'static str, name: &'static str) -> AccountPlace {
    AccountPlace {
        application,
        file,
        names: AccountNames::Url(name),
    }
}

const fn call(file: &'static str) -> AccountPlace {
    AccountPlace {
        application: "a script",
        file,
        names: AccountNames::Call,
    }
}

#[rustfmt::skip]
const LARAVEL: [&str; 7] = [
    "DB_HOST", "DB_PORT", "DB_SOCKET", "DB_USERNAME", "DB_PASSWORD", "DB_CONNECTION", "DB_DATABASE",
];

#[rustfmt::skip]
const CODEIGNITER: [&str; 7] = [
    "database.default.hostname", "database.default.port", "", "database.default.username",
    "database.default.password", "database.default.DBDriver", "",
];

#[rustfmt::skip]
const TYPO3: [&str; 7] = [
    "DB/Connections/Default/host", "DB/Connections/Default/port", "DB/Connections/Default/unix_socket",
    "DB/Connections/Default/user", "DB/Connections/Default/password", "DB/Connections/Default/driver",
    "DB/Connections/Default/dbname",
];

#[rustfmt::skip]
const MAGENTO: [&str; 7] = [
    "db/connection/default/host", "", "", "db/connection/default/username", "db/connection/default/password",
    "", "",
];

#[rustfmt::skip]
const CAKEPHP: [&str; 7] = [
    "Datasources/default/host", "Datasources/default/port", "", "Datasources/default/username",
    "Datasources/default/password", "", "",
];

#[rustfmt::skip]
pub(super) const MEDIAWIKI_ON_POSTGRES: AccountPlace = place(
    "MediaWiki", "LocalSettings.php",
    ["wgDBserver", "wgDBport", "", "wgDBuser", "wgDBpassword", "wgDBtype", "wgDBname"],
);

/// In this order. A file that has no host, user or URL by these names is another application's.
#[rustfmt::skip]
pub(super) const PLACES: [AccountPlace; 59] = [
    place("Drupal", "sites/default/settings.php", [
        "databases/default/default/host", "databases/default/default/port", "databases/default/default/unix_socket",
        "databases/default/default/username", "databases/default/default/password",
        "databases/default/default/driver", "databases/default/default/database",
    ]),
    url("Backdrop", "settings.php", "database"),
    place("Joomla", "configuration.php", ["host", "", "", "user", "password", "dbtype", "db"]),
    place("phpBB", "config.php", ["dbhost", "dbport", "", "dbuser", "dbpasswd", "dbms", "dbname"]),
    place("SMF", "Settings.php", ["db_server", "db_port", "", "db_user", "db_passwd", "db_type", ""]),
    place("MyBB", "inc/config.php", [
        "config/database/hostname", "", "", "config/database/username", "config/database/password",
        "config/database/type", "",
    ]),
    place("OpenCart", "config.php", ["DB_HOSTNAME", "DB_PORT", "", "DB_USERNAME", "DB_PASSWORD", "DB_DRIVER", ""]),
    place("PrestaShop", "app/config/parameters.php", [
        "parameters/database_host", "parameters/database_port", "", "parameters/database_user",
        "parameters/database_password", "", "",
    ]),
    place("Magento", "app/etc/env.php", MAGENTO),
    place("Magento", "../app/etc/env.php", MAGENTO),
    place("Nextcloud", "config/config.php", [
        "CONFIG/dbhost", "CONFIG/dbport", "", "CONFIG/dbuser", "CONFIG/dbpassword", "CONFIG/dbtype",
        "CONFIG/dbname",
    ]),
    place("Moodle", "config.php", ["CFG/dbhost", "", "", "CFG/dbuser", "CFG/dbpass", "CFG/dbtype", "CFG/dbname"]),
    place("TYPO3", "../config/system/settings.php", TYPO3),
    place("TYPO3", "typo3conf/system/settings.php", TYPO3),
    place("TYPO3", "typo3conf/LocalConfiguration.php", TYPO3),
    place("Textpattern", "textpattern/config.php", ["txpcfg/host", "", "", "txpcfg/user", "txpcfg/pass", "", ""]),
    place("Piwigo", "local/config/database.inc.php", [
        "conf/db_host", "", "", "conf/db_user", "conf/db_password", "conf/dblayer", "",
    ]),
    place("e107", "e107_config.php", ["mySQLserver", "", "", "mySQLuser", "mySQLpassword", "", ""]),
    place("e107", "e107_config.php", ["database/server", "", "", "database/user", "database/password", "", ""]),
    place("Matomo", "config/config.ini.php", [
        "database/host", "database/port", "database/unix_socket", "database/username", "database/password",
        "database/adapter", "",
    ]),
    url("Roundcube", "config/config.inc.php", "config/db_dsnw"),
    url("Roundcube", "../config/config.inc.php", "config/db_dsnw"),
    place("CodeIgniter", "application/config/database.php", [
        "db/default/hostname", "db/default/port", "", "db/default/username", "db/default/password",
        "db/default/dbdriver", "",
    ]),
    place("CodeIgniter", ".env", CODEIGNITER),
    place("CodeIgniter", "../.env", CODEIGNITER),
    place("CakePHP", "../config/app_local.php", CAKEPHP),
    place("CakePHP", "config/app_local.php", CAKEPHP),
    url("Symfony", "../.env.local", "DATABASE_URL"),
    url("Symfony", "../.env", "DATABASE_URL"),
    place("Laravel", "../.env", LARAVEL),
    place("Laravel", ".env", LARAVEL),
    place("Kanboard", "config.php", [
        "DB_HOSTNAME", "DB_PORT", "", "DB_USERNAME", "DB_PASSWORD", "DB_DRIVER", "DB_NAME",
    ]),
    place("Tiny Tiny RSS", "config.php", ["DB_HOST", "DB_PORT", "", "DB_USER", "DB_PASS", "DB_TYPE", "DB_NAME"]),
    place("Serendipity", "serendipity_config_local.inc.php", [
        "serendipity/dbHost", "", "", "serendipity/dbUser", "serendipity/dbPass", "serendipity/dbType", "",
    ]),
    place("Dotclear", "inc/config.php", [
        "DC_DBHOST", "", "", "DC_DBUSER", "DC_DBPASSWORD", "DC_DBDRIVER", "DC_DBNAME",
    ]),
    place("Question2Answer", "qa-config.php", [
        "QA_MYSQL_HOSTNAME", "QA_MYSQL_PORT", "", "QA_MYSQL_USERNAME", "QA_MYSQL_PASSWORD", "", "",
    ]),
    place("LiteCart", "includes/config.inc.php", ["DB_SERVER", "", "", "DB_USERNAME", "DB_PASSWORD", "", ""]),
    place("Zen Cart", "includes/configure.php", [
        "DB_SERVER", "", "", "DB_SERVER_USERNAME", "DB_SERVER_PASSWORD", "DB_TYPE", "",
    ]),
    place("AbanteCart", "system/config.php", [
        "DB_HOSTNAME", "DB_PORT", "", "DB_USERNAME", "DB_PASSWORD", "DB_DRIVER", "",
    ]),
    place("FluxBB", "config.php", ["db_host", "", "", "db_username", "db_password", "db_type", ""]),
    place("Coppermine", "include/config.inc.php", [
        "CONFIG/dbserver", "", "", "CONFIG/dbuser", "CONFIG/dbpass", "CONFIG/dbtype", "",
    ]),
    place("Zenphoto", "zp-data/zenphoto.cfg.php", [
        "conf/mysql_host", "conf/mysql_port", "conf/mysql_socket", "conf/mysql_user", "conf/mysql_pass",
        "conf/db_software", "",
    ]),
    place("CubeCart", "includes/global.inc.php", [
        "glob/dbhost", "glob/dbport", "glob/dbsocket", "glob/dbusername", "glob/dbpassword", "", "",
    ]),
    place("ProcessWire", "site/config.php", [
        "config/dbHost", "config/dbPort", "config/dbSocket", "config/dbUser", "config/dbPass", "", "",
    ]),
    place("FreshRSS", "../data/config.php", ["db/host", "", "", "db/user", "db/password", "db/type", ""]),
    place("YOURLS", "user/config.php", ["YOURLS_DB_HOST", "", "", "YOURLS_DB_USER", "YOURLS_DB_PASS", "", ""]),
    call("index.php"),
    call("config.php"),
    call("db.php"),
    call("database.php"),
    call("connect.php"),
    call("connection.php"),
    call("conn.php"),
    call("inc/config.php"),
    call("inc/db.php"),
    call("includes/config.php"),
    call("includes/db.php"),
    call("config/database.php"),
    call("config/config.php"),
];
