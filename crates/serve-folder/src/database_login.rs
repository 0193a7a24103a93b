//! The account by which an application uses its database, as far as its settings name it in literals: `--learn` asks
//! the database by it when tables were written. Pure over [`Files`]; the password is shown nowhere.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use super::account_error::{AccountError, HostError};
use super::account_places::{AccountPlace, MEDIAWIKI_ON_POSTGRES, PLACES};
use super::account_settings::AccountSettingsFile;
use super::detect::DetectedSite;
use super::kind::SiteKind;
use super::options::DatabaseLogin;
use super::php_literals::PhpSettings;
use super::site_files::Files;

/// Sockets at which PHP finds a database on its own machine, unless its settings name another place.
const SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/run/mysql/mysql.sock",
    "/tmp/mysql.sock",
];

const PORT: u16 = 3306;

/// The folder in which PHP finds a PostgreSQL on its own machine, and its port.
const POSTGRES_FOLDER: &str = "/var/run/postgresql";
const POSTGRES_PORT: u16 = 5432;

/// Reads it. `is_socket` knows where sockets are.
///
/// # Errors
/// The reason why it is not known.
pub fn database_login(
    files: &dyn Files,
    found: &DetectedSite,
    is_socket: &dyn Fn(&str) -> bool,
) -> Result<DatabaseLogin, AccountError> {
    let in_root = |name: &str| {
        let path = Path::new(found.document_root).join(name);
        path.to_string_lossy().into_owned()
    };
    match found.kind {
        SiteKind::WordPress => {
            let mut file = in_root("wp-config.php");
            // WordPress looks there as well.
            let above = in_root("../wp-config.php");
            if !files.is_file(&file) && !files.is_file(&in_root("../wp-settings.php")) {
                file = above;
            }
            login(files, &file, "wp-config.php", is_socket, |settings| {
                Ok([
                    ("DB_HOST", settings.constant("DB_HOST")),
                    ("DB_USER", settings.constant("DB_USER")),
                    ("DB_PASSWORD", settings.constant("DB_PASSWORD")),
                ])
            })
        }
        SiteKind::MediaWiki => {
            let file = in_root("LocalSettings.php");
            let text = files.text(&file).unwrap_or_default();
            if PhpSettings::of(&text).variable("wgDBtype").as_deref() == Some("postgres")
                && let Some(login) = by_place(files, &MEDIAWIKI_ON_POSTGRES, &in_root, is_socket)
            {
                return login;
            }
            login(files, &file, "LocalSettings.php", is_socket, |settings| {
                let several = ["wgDBservers", "wgLBFactoryConf"];
                if several.iter().any(|name| settings.mentions(name)) {
                    return Err(AccountError::SeveralServers);
                }
                let is_mysql = settings.variable("wgDBtype").as_deref() == Some("mysql");
                if settings.mentions("wgDBtype") && !is_mysql {
                    return Err(AccountError::OtherMediaWikiDatabase);
                }
                Ok([
                    ("$wgDBserver", settings.variable("wgDBserver")),
                    ("$wgDBuser", settings.variable("wgDBuser")),
                    ("$wgDBpassword", settings.variable("wgDBpassword")),
                ])
            })
        }
        _ => by_places(files, found, &in_root, is_socket).unwrap_or(Err(AccountError::NotNamed)),
    }
}

/// Returns the account of the first file that has one. `None`: no file has.
fn by_places(
    files: &dyn Files,
    found: &DetectedSite,
    in_root: &dyn Fn(&str) -> String,
    is_socket: &dyn Fn(&str) -> bool,
) -> Option<Result<DatabaseLogin, AccountError>> {
    // Beside a folder that is no project's document root, the file would be another site's.
    let has_project = !found.document_root.is_empty()
        || matches!(
            found.kind,
            SiteKind::Laravel | SiteKind::Symfony | SiteKind::FrontController
        );
    let places = PLACES.iter();
    let mut places = places.filter(|place| has_project || !place.file.starts_with("../"));
    places.find_map(|place| by_place(files, place, in_root, is_socket))
}

fn by_place(
    files: &dyn Files,
    place: &AccountPlace,
    in_root: &dyn Fn(&str) -> String,
    is_socket: &dyn Fn(&str) -> bool,
) -> Option<Result<DatabaseLogin, AccountError>> {
    let text = files.text(&in_root(place.file))?;
    let settings = AccountSettingsFile::of(place.file, &text);
    let account = settings.account(&place.names)?;
    let host = |reason| AccountError::Host("its host", reason);
    let login = account.and_then(|account| {
        let server = match (account.socket, &account.postgres) {
            (_, Some(database)) => {
                postgres_server(&account.host, database, is_socket).map_err(host)?
            }
            (Some(path), None) => format!("unix:{path}"),
            (None, None) => server(&account.host, is_socket).map_err(host)?,
        };
        let database = account.postgres.unwrap_or_default();
        if database.contains('/') {
            return Err(AccountError::SlashInName);
        }
        is_plain([&server, &account.user, &account.password])?;
        Ok(DatabaseLogin {
            server,
            user: account.user,
            password: Some(account.password),
            settings: place.file.to_owned(),
        })
    });
    Some(login.map_err(|error| error.at(format!("{} ({})", place.file, place.application))))
}

/// Reads an account that people have written: the server, the user and the password in one line.
///
/// # Errors
/// The number of the line and what is expected there.
pub fn account_of_file(text: &str) -> Result<DatabaseLogin, AccountError> {
    let lines = text.lines().map(str::trim).zip(1..);
    let mut lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let first = lines.next();
    let (line, number) = first.ok_or_else(|| AccountError::OtherLine.at("1"))?;
    if let Some((_, other)) = lines.next() {
        return Err(AccountError::SecondAccount.at(other.to_string()));
    }
    let (address, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim_start();
    let (user, password) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let of_postgres = address
        .strip_prefix("postgres:")
        .map(|rest| rest.rsplit_once('/'));
    let place = of_postgres.map_or(address, |parts| parts.map_or("", |(place, _)| place));
    let is_server = place.starts_with("unix:/") || place.parse::<SocketAddr>().is_ok();
    if !is_server || user.is_empty() {
        return Err(AccountError::OtherLine.at(number.to_string()));
    }
    is_plain([address, user, password]).map_err(|error| error.at(number.to_string()))?;
    Ok(DatabaseLogin {
        server: address.to_owned(),
        user: user.to_owned(),
        password: Some(password.trim_start().to_owned()),
        settings: "--learn-account".to_owned(),
    })
}

/// Whether the configuration can have them. A letter that was not UTF-8 is not known any more.
pub(super) fn is_plain<'a>(
    values: impl IntoIterator<Item: AsRef<str> + 'a>,
) -> Result<(), AccountError> {
    let is_odd = |it: char| it.is_control() || it == char::REPLACEMENT_CHARACTER;
    let mut values = values.into_iter();
    match values.any(|value| value.as_ref().contains(is_odd)) {
        true => Err(AccountError::OddLetter("a value")),
        false => Ok(()),
    }
}

/// The settings of the file: the host, the user and the password with the names of their settings.
type AccountSettings = [(&'static str, Option<String>); 3];

fn login(
    files: &dyn Files,
    path: &str,
    settings: &'static str,
    is_socket: &dyn Fn(&str) -> bool,
    read: impl Fn(&PhpSettings) -> Result<AccountSettings, AccountError>,
) -> Result<DatabaseLogin, AccountError> {
    let login = || {
        let text = files.text(path).ok_or(AccountError::Unreadable)?;
        let [host, user, password] = read(&PhpSettings::of(&text))?;
        let setting = host.0;
        let checked = |(name, value): (&'static str, Option<String>)| {
            let value = value.ok_or(AccountError::NotQuoted(name))?;
            // Text that was not UTF-8 is lost by now.
            is_plain([&value]).map_err(|_| AccountError::OddLetter(name))?;
            Ok::<_, AccountError>(value)
        };
        let (host, user, password) = (checked(host)?, checked(user)?, checked(password)?);
        let server = server(&host, is_socket);
        Ok(DatabaseLogin {
            server: server.map_err(|reason| AccountError::Host(setting, reason))?,
            user,
            password: Some(password),
            settings: settings.to_owned(),
        })
    };
    login().map_err(|error: AccountError| error.at(settings))
}

/// The server that PHP reaches under the name `host`, as WordPress and MediaWiki read it.
fn server(host: &str, is_socket: &dyn Fn(&str) -> bool) -> Result<String, HostError> {
    if let Some((before, path)) = host.split_once(":/")
        && is_this_machine(before)
    {
        return Ok(format!("unix:/{path}"));
    }
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, "")) => (name, None),
            Some((name, port)) => (name, port.strip_prefix(':')),
            None => (host, None),
        },
        // More than one colon: an address of version 6 without a port.
        None => match host.split_once(':') {
            Some((name, port)) if !port.contains(':') => (name, Some(port)),
            _ => (host, None),
        },
    };
    if is_this_machine(name) {
        let socket = SOCKETS.iter().find(|path| is_socket(path));
        return socket
            .map(|path| format!("unix:{path}"))
            .ok_or_else(|| HostError::NoSocket(SOCKETS.join(", ")));
    }
    let ip: Option<IpAddr> = name.parse().ok();
    let port = port.map_or(Ok(PORT), str::parse);
    match (ip, port) {
        (Some(ip), Ok(port)) => Ok(SocketAddr::from((ip, port)).to_string()),
        (None, Ok(_)) => Err(HostError::Name("the IP address".to_owned())),
        (_, Err(_)) => Err(HostError::InvalidPort),
    }
}

/// The server that PHP's extensions for PostgreSQL reach under the name `host`, with the database.
fn postgres_server(
    host: &str,
    database: &str,
    is_socket: &dyn Fn(&str) -> bool,
) -> Result<String, HostError> {
    let is_port_alone = host.starts_with(':') && !host.starts_with("::");
    let is_folder = host.is_empty() || host.starts_with('/') || is_port_alone;
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if is_folder || !name.contains(':') => (name, Some(port)),
        _ => (host, None),
    };
    let port = port.map_or(Ok(POSTGRES_PORT), str::parse);
    let port = port.map_err(|_| HostError::InvalidPort)?;
    if is_folder {
        let folder = if name.is_empty() {
            POSTGRES_FOLDER
        } else {
            name
        };
        let path = format!("{}/.s.PGSQL.{port}", folder.trim_end_matches('/'));
        return match is_socket(&path) {
            true => Ok(format!("postgres:unix:{path}/{database}")),
            false => Err(HostError::NoSocket(path)),
        };
    }
    let instead = || format!("{POSTGRES_FOLDER} or the IP address");
    let ip: IpAddr = name.parse().map_err(|_| HostError::Name(instead()))?;
    Ok(format!(
        "postgres:{}/{database}",
        SocketAddr::from((ip, port))
    ))
}

/// Whether the name means this machine: PHP takes the socket then, whatever the port.
fn is_this_machine(name: &str) -> bool {
    matches!(name, "" | "localhost")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::detect;

    struct Texts(BTreeMap<&'static str, &'static str>);

    impl Files for Texts {
        fn is_file(&self, path: &str) -> bool {
            self.0.contains_key(path)
        }

        fn names(&self, _: &str) -> Vec<String> {
            Vec::new()
        }

        fn text(&self, path: &str) -> Option<String> {
            self.0.get(path).map(|&text| text.to_owned())
        }
    }

    fn read(files: &[(&'static str, &'static str)]) -> Result<DatabaseLogin, String> {
        let texts = Texts(files.iter().copied().collect());
        let is_socket = |path: &str| path == "/run/mysqld/mysqld.sock";
        database_login(&texts, &detect(&texts), &is_socket).map_err(|error| error.to_string())
    }

    const CORE: [(&str, &str); 3] = [
        ("wp-load.php", ""),
        ("wp-includes/version.php", ""),
        ("index.php", ""),
    ];

    fn wordpress(path: &'static str, config: &'static str) -> Result<DatabaseLogin, String> {
        read(&[&CORE[..], &[(path, config)]].concat())
    }

    #[test]
    fn the_account_of_wordpress_is_read_beside_its_files_or_above_them() {
        const CONFIG: &str = "<?php
            define( 'DB_NAME', 'blog' );
            define( 'DB_USER', 'ada' );
            define( 'DB_PASSWORD', 'pa$$ \"word\"' );
            define( 'DB_HOST', 'localhost' );
            require_once ABSPATH . 'wp-settings.php';";
        let expected = DatabaseLogin {
            server: "unix:/run/mysqld/mysqld.sock".to_owned(),
            user: "ada".to_owned(),
            password: Some("pa$$ \"word\"".to_owned()),
            settings: "wp-config.php".to_owned(),
        };
        assert_eq!(wordpress("wp-config.php", CONFIG), Ok(expected.clone()));
        assert_eq!(wordpress("../wp-config.php", CONFIG), Ok(expected.clone()));
        assert!(!format!("{expected:?}").contains("word"), "it is not shown");
        // The settings of another WordPress.
        let above = [("../wp-config.php", CONFIG), ("../wp-settings.php", "")];
        assert!(read(&[&CORE[..], &above].concat()).is_err());
    }

    #[test]
    fn the_account_of_mediawiki_is_read_where_it_has_one_server() {
        let wiki = |settings| {
            read(&[
                ("load.php", ""),
                ("includes/WebStart.php", ""),
                ("LocalSettings.php", settings),
            ])
        };
        const SETTINGS: &str = "<?php
            $wgDBtype = 'mysql'; $wgDBserver = '127.0.0.1'; $wgDBname = 'wiki';
            $wgDBuser = 'wiki'; $wgDBpassword = '';";
        let login = wiki(SETTINGS).unwrap();
        assert_eq!(login.server, "127.0.0.1:3306");
        assert_eq!(
            (login.user.as_str(), login.password.as_deref()),
            ("wiki", Some(""))
        );
        let postgres = wiki(
            "<?php $wgDBtype = 'postgres'; $wgDBserver = '127.0.0.1'; $wgDBport = '5433'; $wgDBname = 'wiki';
             $wgDBuser = 'wiki'; $wgDBpassword = 'word';",
        );
        assert_eq!(postgres.unwrap().server, "postgres:127.0.0.1:5433/wiki");
        let sqlite = wiki(
            "<?php $wgDBtype = 'sqlite'; $wgDBserver = ''; $wgDBuser = ''; $wgDBpassword = '';",
        );
        assert!(sqlite.unwrap_err().contains("$wgDBtype"));
        let several = wiki("<?php $wgDBservers = [ [ 'host' => '10.0.0.1' ] ];");
        assert!(several.unwrap_err().contains("several"));
    }

    #[test]
    fn what_is_missing_is_named_and_no_value_is() {
        for (config, expected) in [
            ("<?php", "DB_HOST"),
            (
                "<?php define('DB_HOST', 'localhost'); define('DB_USER', getenv('U')); define('DB_PASSWORD', 'secret');",
                "DB_USER",
            ),
            (
                "<?php define('DB_HOST', 'localhost'); define('DB_USER', 'a'); define('DB_PASSWORD', 'sec\nret');",
                "DB_PASSWORD",
            ),
            (
                "<?php define('DB_HOST', 'db'); define('DB_USER', 'a'); define('DB_PASSWORD', 'secret');",
                "DB_HOST is a name",
            ),
        ] {
            let why = wordpress("wp-config.php", config).unwrap_err();
            assert!(
                why.starts_with("wp-config.php: ") && why.contains(expected),
                "{why}"
            );
            assert!(!why.contains("secret"), "{why}");
        }
        assert!(read(&CORE).unwrap_err().contains("cannot be read"));
        let plain = read(&[("index.php", ""), ("page.php", "")]).unwrap_err();
        assert!(plain.contains("no file names"), "{plain}");
    }

    #[test]
    fn the_account_of_other_applications_is_read_from_their_files() {
        let drupal = [
            ("index.php", ""),
            ("core/lib/Drupal.php", ""),
            (
                "sites/default/settings.php",
                "<?php $databases['default']['default'] = [ 'host' => '127.0.0.1', 'username' => 'ada', 'password' => 'x' ];",
            ),
        ];
        let login = read(&drupal).unwrap();
        let expected = ("127.0.0.1:3306", "ada", "sites/default/settings.php");
        assert_eq!(
            (&login.server[..], &login.user[..], &login.settings[..]),
            expected
        );
        let env = "DB_CONNECTION=mysql\nDB_HOST=localhost\nDB_USERNAME=ada\nDB_PASSWORD=secret";
        let laravel = [
            ("public/index.php", ""),
            ("artisan", ""),
            ("public/../.env", env),
        ];
        let login = read(&laravel).unwrap();
        assert_eq!(
            (&login.server[..], &login.user[..]),
            ("unix:/run/mysqld/mysqld.sock", "ada")
        );
        let another = read(&[("index.php", ""), ("page.php", ""), ("../.env", env)]);
        assert!(
            another.unwrap_err().contains("no file"),
            "it is another site's"
        );
        let name = [
            ("index.php", ""),
            ("db.php", "<?php mysqli_connect('db', 'ada', 'secret');"),
        ];
        let why = read(&name).unwrap_err();
        assert!(
            why.contains("db.php") && why.contains("is a name") && !why.contains("secret"),
            "{why}"
        );
    }

    #[test]
    fn a_postgres_is_reached_by_its_folder_or_an_ip_address() {
        let is_socket = |path: &str| {
            ["/var/run/postgresql/.s.PGSQL.5432", "/srv/.s.PGSQL.5433"].contains(&path)
        };
        for (host, expected) in [
            ("", "postgres:unix:/var/run/postgresql/.s.PGSQL.5432/blog"),
            (
                "/var/run/postgresql/",
                "postgres:unix:/var/run/postgresql/.s.PGSQL.5432/blog",
            ),
            ("/srv:5433", "postgres:unix:/srv/.s.PGSQL.5433/blog"),
            ("127.0.0.1", "postgres:127.0.0.1:5432/blog"),
            ("10.0.0.7:5433", "postgres:10.0.0.7:5433/blog"),
            ("::1", "postgres:[::1]:5432/blog"),
        ] {
            let server = postgres_server(host, "blog", &is_socket);
            assert_eq!(server.as_deref(), Ok(expected), "{host}");
        }
        for (host, part) in [
            ("localhost", "is a name"),
            ("/srv", "no socket at /srv/.s.PGSQL.5432"),
            ("10.0.0.7:x", "no port"),
        ] {
            let why = postgres_server(host, "blog", &is_socket)
                .unwrap_err()
                .to_string();
            assert!(why.contains(part), "{host}: {why}");
        }
        let login =
            account_of_file("postgres:unix:/run/postgresql/.s.PGSQL.5432/blog ada word").unwrap();
        assert_eq!(
            login.server,
            "postgres:unix:/run/postgresql/.s.PGSQL.5432/blog"
        );
        assert!(account_of_file("postgres:/run ada word").is_err());
    }

    #[test]
    fn account_that_people_write_is_one_line() {
        let text = "# for the shop\n\n unix:/run/mysqld/mysqld.sock  shop  a word \n";
        let login = account_of_file(text).unwrap();
        assert_eq!(login.password.as_deref(), Some("a word"));
        assert_eq!(
            (&login.server[..], &login.user[..]),
            ("unix:/run/mysqld/mysqld.sock", "shop")
        );
        assert_eq!(
            account_of_file("[::1]:3306 shop")
                .unwrap()
                .password
                .as_deref(),
            Some("")
        );
        for (text, line) in [
            ("", "1: expected"),
            ("\nlocalhost shop secret", "2: expected"),
            ("unix:/s", "1: expected"),
            (
                "unix:/s shop secret\n127.0.0.1:3306 shop secret",
                "2: a second",
            ),
            ("unix:/s shop sec\u{7}ret", "1: a value"),
        ] {
            let why = account_of_file(text).unwrap_err().to_string();
            assert!(why.starts_with(line) && !why.contains("secret"), "{why}");
        }
    }

    #[test]
    fn hosts_lead_to_servers_as_php_reaches_them() {
        for (host, expected) in [
            ("localhost", Some("unix:/run/mysqld/mysqld.sock")),
            ("", Some("unix:/run/mysqld/mysqld.sock")),
            ("localhost:3307", Some("unix:/run/mysqld/mysqld.sock")),
            ("localhost:/srv/sql.sock", Some("unix:/srv/sql.sock")),
            (":/srv/sql.sock", Some("unix:/srv/sql.sock")),
            ("127.0.0.1", Some("127.0.0.1:3306")),
            ("10.0.0.7:3307", Some("10.0.0.7:3307")),
            ("::1", Some("[::1]:3306")),
            ("[::1]", Some("[::1]:3306")),
            ("[::1]:3307", Some("[::1]:3307")),
            ("db.example.org", None),
            ("10.0.0.7:", None),
            ("10.0.0.7:/srv/sql.sock", None),
            ("[::1", None),
        ] {
            let is_socket = |path: &str| path == "/run/mysqld/mysqld.sock";
            let found = server(host, &is_socket);
            assert_eq!(found.ok().as_deref(), expected, "{host}");
        }
        assert!(
            server("localhost", &|_| false)
                .unwrap_err()
                .to_string()
                .contains("no socket")
        );
    }
}
