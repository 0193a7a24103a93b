//! One file of settings, and the account of a database that it names. Pure.

use super::account_error::AccountError;
use super::account_places::AccountNames;
use super::php_literals::{literal, without_comments};
use super::php_values::PhpValues;

/// An account as a file names it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NamedAccount {
    /// With a port, where there is one.
    pub(super) host: String,
    pub(super) socket: Option<String>,
    pub(super) user: String,
    pub(super) password: String,
    /// The database of a PostgreSQL.
    pub(super) postgres: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Driver {
    MySql,
    Postgres,
}

impl Driver {
    /// The database by its name, or that of the user, where it is a PostgreSQL.
    fn database(self, name: Option<String>, user: &str) -> Option<String> {
        let name = name.filter(|name| !name.is_empty());
        (self == Self::Postgres).then(|| name.unwrap_or_else(|| user.to_owned()))
    }
}

pub(super) enum AccountSettingsFile {
    Php(PhpValues, String),
    /// Names and values of `.env` or `.ini`; a section stands before a name, with a slash.
    Lines(Vec<(String, Option<String>)>),
}

impl AccountSettingsFile {
    pub(super) fn of(name: &str, text: &str) -> AccountSettingsFile {
        match name.ends_with(".php") && !name.ends_with(".ini.php") {
            true => AccountSettingsFile::Php(PhpValues::of(text), without_comments(text)),
            false => AccountSettingsFile::Lines(lines(text)),
        }
    }

    /// `None`: it names none. `Some(Err)`: it names one that cannot be used, and why.
    pub(super) fn account(
        &self,
        names: &AccountNames,
    ) -> Option<Result<NamedAccount, AccountError>> {
        match *names {
            AccountNames::Parts {
                host,
                port,
                socket,
                user,
                password,
                driver,
                database,
            } => {
                if !self.has(host) && !self.has(user) {
                    return None;
                }
                Some(self.parts([host, port, socket], [user, password], [driver, database]))
            }
            AccountNames::Url(name) => {
                let url = self.has(name).then(|| self.literal(name))?;
                Some(match url {
                    Some(url) => by_url(&url),
                    None => Err(not_literal(name)),
                })
            }
            AccountNames::Call => match self {
                AccountSettingsFile::Php(_, text) => by_call(text),
                AccountSettingsFile::Lines(_) => None,
            },
        }
    }

    fn parts(
        &self,
        [host, port, socket]: [&str; 3],
        [user, password]: [&str; 2],
        [driver, database]: [&str; 2],
    ) -> Result<NamedAccount, AccountError> {
        let given = |name: &str| match self.has(name) {
            true => self
                .literal(name)
                .map(Some)
                .ok_or_else(|| not_literal(name)),
            false => Ok(None),
        };
        let driver = given(driver)?.map_or(Ok(Driver::MySql), |it| driver_of(&it))?;
        let needed = |name: &str| given(name)?.ok_or_else(|| not_literal(name));
        let unset = |value: &String| !matches!(&value[..], "" | "null" | "NULL" | "false" | "0");
        let port = given(port)?.filter(unset);
        let host = given(host)?.filter(unset).unwrap_or_default();
        let user = needed(user)?;
        Ok(NamedAccount {
            host: match port {
                Some(port) if !host.contains(':') => format!("{host}:{port}"),
                _ => host,
            },
            socket: given(socket)?.filter(unset),
            postgres: driver.database(given(database)?, &user),
            user,
            password: given(password)?.unwrap_or_default(),
        })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        !name.is_empty()
            && match self {
                AccountSettingsFile::Php(values, _) => values.has(name),
                AccountSettingsFile::Lines(lines) => lines.iter().any(|(it, _)| it == name),
            }
    }

    pub(super) fn literal(&self, name: &str) -> Option<String> {
        match self {
            AccountSettingsFile::Php(values, _) => values.literal(name),
            AccountSettingsFile::Lines(lines) => {
                let mut found = lines.iter().filter(|(it, _)| it == name);
                let (_, value) = found.next()?;
                // Programs differ in which of two holds.
                value.clone().filter(|_| found.next().is_none())
            }
        }
    }
}

fn not_literal(name: &str) -> AccountError {
    AccountError::NotLiteral(name.to_owned())
}

fn driver_of(driver: &str) -> Result<Driver, AccountError> {
    let driver = driver.to_ascii_lowercase();
    match () {
        () if driver.contains("mysql") || driver.contains("mariadb") => Ok(Driver::MySql),
        () if driver.contains("pgsql") || driver.contains("postgres") => Ok(Driver::Postgres),
        () if driver.contains("sqlite") => Err(AccountError::Sqlite),
        () => Err(AccountError::OtherDatabase(driver)),
    }
}

/// Returns the names and values of `NAME=value` and `name = "value"`, below `[section]`.
fn lines(text: &str) -> Vec<(String, Option<String>)> {
    let mut section = String::new();
    let mut all = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            section = format!("{name}/");
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let is_comment = line.starts_with([';', '#', '<']);
        if let Some((name, value)) = line.split_once('=').filter(|_| !is_comment) {
            all.push((format!("{section}{}", name.trim()), plain(value.trim())));
        }
    }
    all
}

/// A value without its quotes. `None`: it is computed.
fn plain(value: &str) -> Option<String> {
    let quote = value.chars().next().filter(|it| ['\'', '"'].contains(it));
    let Some(quote) = quote else {
        let (value, _) = value.split_once(" #").unwrap_or((value, ""));
        let is_plain = !value.contains(['$', '"', '\'']);
        return is_plain.then(|| value.trim_end().to_owned());
    };
    let (inner, rest) = value.get(1..)?.split_once(quote)?;
    let is_end = rest.trim_start().is_empty() || rest.trim_start().starts_with(['#', ';']);
    let is_plain = quote == '\'' || !inner.contains(['$', '\\']);
    (is_end && is_plain).then(|| inner.to_owned())
}

/// `mysql://user:password@host:port/database?unix_socket=path`
fn by_url(url: &str) -> Result<NamedAccount, AccountError> {
    let why = || AccountError::IncompleteUrl;
    let (scheme, rest) = url.split_once("://").ok_or_else(why)?;
    let driver = driver_of(scheme)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (login, place) = rest.rsplit_once('@').ok_or_else(why)?;
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let (host, database) = place.split_once('/').unwrap_or((place, ""));
    let argument = |name: &str| {
        let mut arguments = query.split('&').filter_map(|it| it.split_once('='));
        arguments
            .find(|(it, _)| *it == name)
            .map(|(_, value)| value)
    };
    let decoded = |text: &str| decoded(text).ok_or_else(why);
    let user = decoded(user)?;
    let folder = argument("host").filter(|_| driver == Driver::Postgres);
    Ok(NamedAccount {
        host: decoded(folder.unwrap_or(host))?,
        socket: argument("unix_socket").map(decoded).transpose()?,
        postgres: driver.database(Some(decoded(database)?), &user),
        user,
        password: decoded(password)?,
    })
}

/// Without percent encoding.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// The literals of the one call that connects.
fn by_call(text: &str) -> Option<Result<NamedAccount, AccountError>> {
    let begins = [
        "mysqli_connect",
        "new mysqli",
        "pg_connect",
        "pg_pconnect",
        "new PDO",
        "new \\PDO",
    ];
    let mut calls = begins.iter().flat_map(|begin| text.match_indices(begin));
    let (at, begin) = calls.next()?;
    let why = || AccountError::NotOneCall;
    if calls.next().is_some() {
        return Some(Err(why()));
    }
    let rest = text.get(at + begin.len()..).unwrap_or_default();
    if begin.starts_with("pg_") {
        return Some(by_connection_string(rest).ok_or_else(why));
    }
    let Some([first, user, password]) = arguments(rest) else {
        return Some(Err(why()));
    };
    if !begin.ends_with("PDO") {
        return Some(Ok(NamedAccount {
            host: first,
            socket: None,
            user,
            password,
            postgres: None,
        }));
    }
    Some(by_dsn(&first, user, password))
}

fn by_dsn(dsn: &str, user: String, password: String) -> Result<NamedAccount, AccountError> {
    let (driver, rest) = dsn.split_once(':').unwrap_or((dsn, ""));
    let driver = driver_of(driver)?;
    let part = |name: &str| {
        let mut parts = rest.split(';').filter_map(|it| it.split_once('='));
        let found = parts.find(|(it, _)| it.trim() == name);
        found.map(|(_, value)| value.trim().to_owned())
    };
    let host = part("host").unwrap_or_default();
    Ok(NamedAccount {
        host: match part("port") {
            Some(port) => format!("{host}:{port}"),
            None => host,
        },
        socket: part("unix_socket"),
        postgres: driver.database(part("dbname"), &user),
        user,
        password,
    })
}

/// The one literal of `pg_connect('host=... dbname=... user=...')`.
fn by_connection_string(text: &str) -> Option<NamedAccount> {
    let rest = text.trim_start().strip_prefix('(')?.trim_start();
    let (all, rest) = literal(rest)?;
    // A backslash may stand before a quote.
    if !rest.trim_start().starts_with([',', ')']) || all.contains('\\') {
        return None;
    }
    let mut parts = Vec::new();
    let mut rest = all.trim_start();
    while !rest.is_empty() {
        let (name, behind) = rest.split_once('=')?;
        let behind = behind.trim_start();
        let (value, behind) = match behind.strip_prefix('\'') {
            Some(inner) => inner.split_once('\'')?,
            None => behind
                .split_once(char::is_whitespace)
                .unwrap_or((behind, "")),
        };
        parts.push((name.trim(), value.to_owned()));
        rest = behind.trim_start();
    }
    let part = |name: &str| {
        let mut found = parts.iter().filter(|(it, _)| *it == name);
        found.next().map(|(_, value)| value.clone())
    };
    let user = part("user")?;
    let host = part("hostaddr").or(part("host")).unwrap_or_default();
    Some(NamedAccount {
        host: match part("port") {
            Some(port) => format!("{host}:{port}"),
            None => host,
        },
        socket: None,
        postgres: Driver::Postgres.database(part("dbname"), &user),
        user,
        password: part("password").unwrap_or_default(),
    })
}

fn arguments(text: &str) -> Option<[String; 3]> {
    let rest = text.trim_start().strip_prefix('(')?.trim_start();
    let (first, rest) = literal(rest)?;
    let (second, rest) = literal(rest.trim_start().strip_prefix(',')?.trim_start())?;
    let (third, rest) = literal(rest.trim_start().strip_prefix(',')?.trim_start())?;
    rest.trim_start()
        .starts_with([',', ')'])
        .then_some([first, second, third])
}

#[cfg(test)]
mod tests {
    use super::super::account_places::PLACES;
    use super::*;

    fn account(file: &str, text: &str) -> Option<Result<NamedAccount, String>> {
        let settings = AccountSettingsFile::of(file, text);
        let mut places = PLACES.iter().filter(|place| place.file == file);
        let account = places.find_map(|place| settings.account(&place.names))?;
        Some(account.map_err(|error| error.to_string()))
    }

    /// The lines with which each application's own installer writes an account.
    #[test]
    fn accounts_are_read_where_applications_keep_them() {
        for (file, text) in [
            (
                "sites/default/settings.php",
                "<?php $databases = []; $databases['default']['default'] = array ( 'database' => 'd', 'username' => 'ada',
                 'password' => 'word', 'prefix' => '', 'host' => 'localhost', 'port' => '', 'driver' => 'mysql',
                 'isolation_level' => 'READ COMMITTED', );",
            ),
            ("settings.php", "<?php $database = 'mysql://ada:word@localhost/d'; $database_prefix = '';"),
            (
                "configuration.php",
                "<?php class JConfig { public $offline = false; public $dbtype = 'mysqli'; public $host = 'localhost';
                 public $user = 'ada'; public $password = 'word'; public $db = 'd'; }",
            ),
            (
                "config.php",
                "<?php // phpBB\n$dbms = 'phpbb\\\\db\\\\driver\\\\mysqli'; $dbhost = 'localhost'; $dbport = '';
                 $dbname = 'd'; $dbuser = 'ada'; $dbpasswd = 'word'; @define('PHPBB_INSTALLED', true);",
            ),
            (
                "Settings.php",
                "<?php $db_type = 'mysql'; $db_port = 0; $db_server = 'localhost'; $db_name = 'd'; $db_user = 'ada';
                 $db_passwd = 'word'; if (file_exists(dirname(__FILE__) . '/db_last_error.php')) { $a = 1; }",
            ),
            (
                "inc/config.php",
                "<?php $config['database']['type'] = 'mysqli'; $config['database']['hostname'] = 'localhost';
                 $config['database']['username'] = 'ada'; $config['database']['password'] = 'word';",
            ),
            (
                "config.php",
                "<?php define('DB_DRIVER', 'mysqli'); define('DB_HOSTNAME', 'localhost'); define('DB_USERNAME', 'ada');
                 define('DB_PASSWORD', 'word'); define('DB_DATABASE', 'd');",
            ),
            (
                "app/config/parameters.php",
                "<?php return array ( 'parameters' => array ( 'database_host' => 'localhost', 'database_port' => '',
                 'database_user' => 'ada', 'database_password' => 'word', 'mailer_host' => '127.0.0.1', ), );",
            ),
            (
                "app/etc/env.php",
                "<?php return [ 'session' => [ 'host' => 'x' ], 'db' => [ 'table_prefix' => '', 'connection' => [ 'default' => [
                 'host' => 'localhost', 'dbname' => 'd', 'username' => 'ada', 'password' => 'word', 'active' => '1' ] ] ] ];",
            ),
            (
                "config/config.php",
                "<?php $CONFIG = array ( 'dbtype' => 'mysql', 'dbhost' => 'localhost', 'dbport' => '', 'dbuser' => 'ada',
                 'dbpassword' => 'word', 'trusted_domains' => array ( 0 => 'localhost', ), );",
            ),
            (
                "config.php",
                "<?php  // Moodle\nunset($CFG); global $CFG; $CFG = new stdClass(); $CFG->dbtype = 'mariadb';
                 $CFG->dbhost = 'localhost'; $CFG->dbuser = 'ada'; $CFG->dbpass = 'word';
                 $CFG->dboptions = array ( 'dbport' => '', ); require_once(__DIR__ . '/lib/setup.php');",
            ),
            (
                "../config/system/settings.php",
                "<?php return [ 'DB' => [ 'Connections' => [ 'Default' => [ 'driver' => 'mysqli', 'host' => 'localhost',
                 'user' => 'ada', 'password' => 'word', ], ], ], ];",
            ),
            (
                "textpattern/config.php",
                "<?php $txpcfg['db'] = 'd'; $txpcfg['user'] = 'ada'; $txpcfg['pass'] = 'word'; $txpcfg['host'] = 'localhost';",
            ),
            (
                "local/config/database.inc.php",
                "<?php $conf['dblayer'] = 'mysqli'; $conf['db_host'] = 'localhost'; $conf['db_user'] = 'ada';
                 $conf['db_password'] = 'word'; define('PHPWG_INSTALLED', true);",
            ),
            (
                "e107_config.php",
                "<?php $mySQLserver = 'localhost'; $mySQLuser = 'ada'; $mySQLpassword = 'word';",
            ),
            (
                "config/config.ini.php",
                "; <?php exit; ?> DO NOT REMOVE\n[database]\nhost = \"localhost\"\nusername = \"ada\"\npassword = \"word\"\nadapter = PDO\\MYSQL\n",
            ),
            ("config/config.inc.php", "<?php $config = []; $config['db_dsnw'] = 'mysql://ada:word@localhost/d';"),
            (
                "application/config/database.php",
                "<?php $active_group = 'default'; $db['default'] = array( 'dsn' => '', 'hostname' => 'localhost',
                 'username' => 'ada', 'password' => 'word', 'dbdriver' => 'mysqli', 'db_debug' => (ENVIRONMENT !== 'production') );",
            ),
            (
                ".env",
                "database.default.hostname = localhost\ndatabase.default.username = ada\ndatabase.default.password = word\ndatabase.default.DBDriver = MySQLi",
            ),
            (
                "config/app_local.php",
                "<?php return [ 'debug' => filter_var(env('DEBUG', false)), 'Datasources' => [ 'default' => [ 'host' => 'localhost',
                 'username' => 'ada', 'password' => 'word', 'url' => env('DATABASE_URL', null), ], ], ];",
            ),
            ("../.env.local", "DATABASE_URL=\"mysql://ada:w%6Frd@localhost/d?serverVersion=8.0\"\n"),
            (
                "../.env",
                "APP_NAME=Laravel\nDB_CONNECTION=mysql\nDB_HOST=localhost\nDB_PORT=\nDB_DATABASE=d\nDB_USERNAME=ada\nDB_PASSWORD='word' # secret\n",
            ),
            (
                "serendipity_config_local.inc.php",
                "<?php $serendipity['dbName'] = 'd'; $serendipity['dbHost'] = 'localhost'; $serendipity['dbUser'] = 'ada';
                 $serendipity['dbPass'] = 'word'; $serendipity['dbType'] = 'mysqli';",
            ),
            (
                "inc/config.php",
                "<?php define('DC_DBDRIVER', 'mysqlimb4'); define('DC_DBHOST', 'localhost'); define('DC_DBUSER', 'ada');
                 define('DC_DBPASSWORD', 'word'); define('DC_DBNAME', 'd'); define('DC_DBPREFIX', 'dc_');",
            ),
            (
                "qa-config.php",
                "<?php define('QA_MYSQL_HOSTNAME', 'localhost'); define('QA_MYSQL_USERNAME', 'ada'); define('QA_MYSQL_PASSWORD', 'word');",
            ),
            (
                "includes/config.inc.php",
                "<?php define('DB_TYPE', 'mysql'); define('DB_SERVER', 'localhost'); define('DB_USERNAME', 'ada'); define('DB_PASSWORD', 'word');",
            ),
            (
                "includes/configure.php",
                "<?php define('DB_TYPE', 'mysql'); define('DB_SERVER', 'localhost'); define('DB_SERVER_USERNAME', 'ada');
                 define('DB_SERVER_PASSWORD', 'word');",
            ),
            (
                "system/config.php",
                "<?php define('DB_DRIVER', 'amysqli'); define('DB_HOSTNAME', 'localhost'); define('DB_USERNAME', 'ada'); define('DB_PASSWORD', 'word');",
            ),
            (
                "config.php",
                "<?php $db_type = 'mysqli_innodb'; $db_host = 'localhost'; $db_name = 'd'; $db_username = 'ada'; $db_password = 'word';
                 $db_prefix = ''; define('PUN', 1);",
            ),
            (
                "include/config.inc.php",
                "<?php $CONFIG['dbtype'] = 'pdo:mysql'; $CONFIG['dbserver'] = 'localhost'; $CONFIG['dbuser'] = 'ada'; $CONFIG['dbpass'] = 'word';",
            ),
            (
                "zp-data/zenphoto.cfg.php",
                "<?php $conf['db_software'] = 'PDO_MySQL'; $conf['mysql_user'] = 'ada'; $conf['mysql_pass'] = 'word'; $conf['mysql_host'] = 'localhost';",
            ),
            (
                "includes/global.inc.php",
                "<?php $glob['dbhost'] = 'localhost'; $glob['dbusername'] = 'ada'; $glob['dbpassword'] = 'word'; $glob['installed'] = '1';",
            ),
            (
                "site/config.php",
                "<?php $config->dbHost = 'localhost'; $config->dbUser = 'ada'; $config->dbPass = 'word'; $config->dbPort = '';",
            ),
            (
                "../data/config.php",
                "<?php return array ( 'salt' => 'x', 'db' => array ( 'type' => 'mysql', 'host' => 'localhost', 'user' => 'ada', 'password' => 'word', ), );",
            ),
            (
                "user/config.php",
                "<?php define( 'YOURLS_DB_USER', 'ada' ); define( 'YOURLS_DB_PASS', 'word' ); define( 'YOURLS_DB_HOST', 'localhost' );",
            ),
            ("db.php", "<?php $link = mysqli_connect('localhost', 'ada', 'word', 'd') or die();"),
            ("db.php", "<?php $link = new mysqli(\"localhost\", \"ada\", \"word\");"),
            ("index.php", "<?php $pdo = new PDO('mysql:host=localhost;dbname=d', 'ada', 'word', [1 => 2]);"),
        ] {
            let expected = NamedAccount {
                host: "localhost".to_owned(),
                socket: None,
                user: "ada".to_owned(),
                password: "word".to_owned(),
                postgres: None,
            };
            assert_eq!(account(file, text), Some(Ok(expected)), "{file}: {text}");
        }
    }

    #[test]
    fn accounts_of_postgres_are_read_with_their_database() {
        for (file, text, host) in [
            (
                "sites/default/settings.php",
                "<?php $databases['default']['default'] = array ( 'database' => 'd', 'username' => 'ada', 'password' => 'word',
                 'host' => 'localhost', 'port' => '5433', 'driver' => 'pgsql', );",
                "localhost:5433",
            ),
            (
                "config/config.php",
                "<?php $CONFIG = array ( 'dbtype' => 'pgsql', 'dbname' => 'd', 'dbhost' => '/run/postgresql', 'dbuser' => 'ada',
                 'dbpassword' => 'word', );",
                "/run/postgresql",
            ),
            (
                "config.php",
                "<?php $CFG = new stdClass(); $CFG->dbtype = 'pgsql'; $CFG->dbhost = '127.0.0.1'; $CFG->dbname = 'd';
                 $CFG->dbuser = 'ada'; $CFG->dbpass = 'word';",
                "127.0.0.1",
            ),
            (
                "config.php",
                "<?php define('DB_TYPE', 'pgsql'); define('DB_HOST', '127.0.0.1'); define('DB_USER', 'ada');
                 define('DB_NAME', 'd'); define('DB_PASS', 'word'); define('DB_PORT', '5432');",
                "127.0.0.1:5432",
            ),
            (
                "../.env",
                "DB_CONNECTION=pgsql\nDB_HOST=127.0.0.1\nDB_PORT=5432\nDB_DATABASE=d\nDB_USERNAME=ada\nDB_PASSWORD=word\n",
                "127.0.0.1:5432",
            ),
            (
                "../.env",
                "DATABASE_URL=\"postgresql://ada:w%6Frd@127.0.0.1:5432/d?serverVersion=16&charset=utf8\"",
                "127.0.0.1:5432",
            ),
            (
                "../.env",
                "DATABASE_URL=postgres://ada:word@localhost/d?host=%2Frun%2Fpostgresql",
                "/run/postgresql",
            ),
            (
                "db.php",
                "<?php $c = pg_connect(\"host=/run/postgresql dbname=d user=ada password='word'\");",
                "/run/postgresql",
            ),
            ("db.php", "<?php new PDO('pgsql:host=::1;dbname=d', 'ada', 'word');", "::1"),
        ] {
            let expected = NamedAccount {
                host: host.to_owned(),
                socket: None,
                user: "ada".to_owned(),
                password: "word".to_owned(),
                postgres: Some("d".to_owned()),
            };
            assert_eq!(account(file, text), Some(Ok(expected)), "{file}: {text}");
        }
        for text in [
            "<?php pg_connect('host=a user=ada password=w0rd' . $more);",
            "<?php pg_connect('host=a password=w0rd');",
            "<?php pg_connect('user=ada password=\'w0\\\\\\\'rd\'');",
        ] {
            let why = account("db.php", text).unwrap().unwrap_err();
            assert!(
                why.contains("one call") && !why.contains("w0"),
                "{text}: {why}"
            );
        }
    }

    #[test]
    fn account_that_is_computed_or_of_another_database_is_named() {
        #[rustfmt::skip]
        let cases = [
            ("../.env", "DB_CONNECTION=sqlite\nDB_HOST=x\nDB_USERNAME=y", "SQLite"),
            ("../.env", "DB_CONNECTION=sqlsrv\nDB_HOST=x\nDB_USERNAME=y", "sqlsrv"),
            ("../.env", "DB_HOST=x\nDB_USERNAME=${USER}\nDB_PASSWORD=w0rd", "DB_USERNAME"),
            ("../.env", "DB_HOST=x\nDB_USERNAME=a\nDB_PASSWORD=w0rd\nDB_PASSWORD=w0rd2", "DB_PASSWORD"),
            ("../.env", "DATABASE_URL=mongodb://a:w0rd@h/d", "mongodb"),
            ("../.env", "DATABASE_URL=mysql://h/d", "no user"),
            ("../.env", "DATABASE_URL=mysql://a%zz@h/d", "no user"),
            ("config.php", "<?php $dbhost = 'h'; $dbuser = getenv('U'); $dbpasswd = 'w0rd';", "dbuser"),
            ("db.php", "<?php mysqli_connect(HOST, 'a', 'w0rd');", "one call"),
            ("db.php", "<?php new PDO('sqlite:x', 'a', 'w0rd');", "SQLite"),
            ("db.php", "<?php new mysqli('h', 'a', 'b'); new mysqli('h', 'a', 'w0rd');", "one call"),
        ];
        for (file, text, part) in cases {
            let why = account(file, text).unwrap().unwrap_err();
            assert!(why.contains(part) && !why.contains("w0rd"), "{text}: {why}");
        }
        for (file, text) in [
            ("config.php", "<?php $title = 'x';"),
            ("../.env", "APP_ENV=prod\n"),
            ("index.php", "<?php require 'app.php';"),
        ] {
            assert_eq!(account(file, text), None, "{file}");
        }
    }

    #[test]
    fn ports_and_sockets_are_those_of_the_file() {
        #[rustfmt::skip]
        let cases = [
            ("../.env", "DB_HOST=127.0.0.1\nDB_PORT=3307\nDB_USERNAME=a", "127.0.0.1:3307", None),
            ("../.env", "DB_HOST=localhost\nDB_SOCKET=/run/s\nDB_USERNAME=a", "localhost", Some("/run/s")),
            ("../.env", "DATABASE_URL=mysql://a@10.0.0.7:3307/d", "10.0.0.7:3307", None),
            ("../.env", "DATABASE_URL=mysql://a@localhost/d?unix_socket=%2Frun%2Fs", "localhost", Some("/run/s")),
            ("db.php", "<?php new PDO('mysql:unix_socket=/run/s', 'a', '');", "", Some("/run/s")),
            ("db.php", "<?php new PDO('mysql:host=127.0.0.1;port=3307', 'a', '');", "127.0.0.1:3307", None),
        ];
        for (file, text, host, socket) in cases {
            let found = account(file, text).unwrap().unwrap();
            assert_eq!(
                (&found.host[..], found.socket.as_deref()),
                (host, socket),
                "{text}"
            );
        }
    }
}
