//! How the application in a document root reaches its database: by its own settings. Only the kind of database
//! and its host are looked at.
//!
//! ```text
//! wp-config.php        DB_HOST                                 WordPress
//! .env, .env.local     DATABASE_URL, or DB_CONNECTION, DB_HOST Symfony, Laravel
//! LocalSettings.php    $wgDBtype, $wgDBserver                  MediaWiki
//! ```

use std::net::IpAddr;
use std::path::Path;

use crate::finding::Finding;
use crate::machine::Machine;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum System {
    MySql,
    PostgreSql,
}

/// The settings of a database server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Database {
    system: System,
    /// A name, an address, or the path of a socket or of its folder.
    host: String,
}

const MYSQL_SOCKETS: [&str; 3] = [
    "/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
];
/// Folders of PostgreSQL's sockets, which are called after the port.
const POSTGRESQL_FOLDERS: [&str; 2] = ["/run/postgresql", "/tmp"];
const POSTGRESQL_SOCKET: &str = ".s.PGSQL.";

impl System {
    /// By the words of Laravel, Symfony and MediaWiki.
    fn named(name: &str) -> Option<System> {
        match name.to_ascii_lowercase().as_str() {
            "mysql" | "mariadb" | "mysqli" | "mysql2" | "pdo-mysql" => Some(System::MySql),
            "pgsql" | "postgres" | "postgresql" | "pdo-pgsql" => Some(System::PostgreSql),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            System::MySql => "MySQL",
            System::PostgreSql => "PostgreSQL",
        }
    }

    /// Returns the path of an existing socket of the system.
    fn socket(self, machine: &Machine) -> Option<&'static str> {
        match self {
            System::MySql => MYSQL_SOCKETS.into_iter().find(|path| machine.exists(path)),
            System::PostgreSql => POSTGRESQL_FOLDERS
                .into_iter()
                .find(|folder| has_postgresql(machine, folder)),
        }
    }
}

pub fn check(machine: &Machine, root: &Path) -> Option<Finding> {
    let folders = [Some(root), root.parent()];
    let mut folders = folders.into_iter().flatten();
    let database = folders.find_map(|folder| Database::of(machine, folder))?;
    let Database { system, host } = &database;
    let (shown, name) = (root.display(), system.name());
    if database.lacks_socket(machine) {
        return Some(
            Finding::warning(
                "database-socket",
                format!("The application in {shown} asks its database over a socket that is not there."),
            )
            .because(match host.as_str() {
                "localhost" => {
                    "PHP takes localhost for the socket of MySQL: every page that needs the database fails, 100 % of them."
                        .to_owned()
                }
                path => format!("{name} does not listen at {path}: every page that needs the database fails, 100 % of them."),
            })
            .mended_by(match system {
                System::MySql => "systemctl start mariadb, or DB_HOST 127.0.0.1 for a database elsewhere",
                System::PostgreSql => "systemctl start postgresql, or 127.0.0.1 as the host for a database elsewhere",
            }),
        );
    }
    let socket = system.socket(machine)?;
    database.is_tcp_to_here(machine).then(|| {
        Finding::note(
            "database-socket",
            format!("The application in {shown} asks its database over TCP, at {host}."),
        )
        .because("Each query takes about 30 microseconds more than over the socket, and a page makes 50 of them.")
        .mended_by(match system {
            System::MySql => format!("DB_HOST localhost (PHP then uses {socket})"),
            System::PostgreSql => format!("{socket} as the host, instead of {host}"),
        })
    })
}

impl Database {
    /// Reads the settings below a folder.
    fn of(machine: &Machine, folder: &Path) -> Option<Database> {
        let read = |name: &str| machine.read(&folder.join(name).to_string_lossy());
        let of_wordpress = || read("wp-config.php").and_then(|text| of_wordpress(&text));
        let of_environment = || {
            let mut files = [".env.local", ".env"].into_iter();
            files.find_map(|name| of_environment(&read(name)?))
        };
        let of_mediawiki = || read("LocalSettings.php").and_then(|text| of_mediawiki(&text));
        of_wordpress().or_else(of_environment).or_else(of_mediawiki)
    }

    /// Whether the settings name a socket that is not there.
    fn lacks_socket(&self, machine: &Machine) -> bool {
        match (self.system, self.host.as_str()) {
            (System::MySql, "localhost") => self.system.socket(machine).is_none(),
            (System::MySql, path) if path.starts_with('/') => !machine.exists(path),
            (System::PostgreSql, path) if path.starts_with('/') => !has_postgresql(machine, path),
            _ => false,
        }
    }

    /// PHP's MySQL takes `localhost` for the socket, PostgreSQL does not.
    fn is_tcp_to_here(&self, machine: &Machine) -> bool {
        let host = self.host.trim_matches(['[', ']']);
        match (self.system, host.parse::<IpAddr>()) {
            (_, Ok(address)) => address.is_loopback() || is_own(machine, address),
            (System::PostgreSql, Err(_)) => host == "localhost",
            (System::MySql, Err(_)) => false,
        }
    }
}

fn has_postgresql(machine: &Machine, folder: &str) -> bool {
    let names = machine.names(folder);
    names.iter().any(|name| {
        let port = name.strip_prefix(POSTGRESQL_SOCKET);
        port.is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

fn is_own(machine: &Machine, address: IpAddr) -> bool {
    match address {
        // `|-- 10.0.0.5` and then `/32 host LOCAL`
        IpAddr::V4(address) => {
            let text = machine.read("proc/net/fib_trie").unwrap_or_default();
            let leaf = format!("|-- {address}");
            let pairs = text.lines().zip(text.lines().skip(1));
            let mut pairs = pairs.map(|(line, next)| (line.trim(), next.trim()));
            pairs.any(|(line, next)| line == leaf && next == "/32 host LOCAL")
        }
        IpAddr::V6(address) => {
            let text = machine.read("proc/net/if_inet6").unwrap_or_default();
            let hex: String = address
                .octets()
                .iter()
                .map(|it| format!("{it:02x}"))
                .collect();
            text.lines().any(|line| line.starts_with(&hex))
        }
    }
}

/// `define( 'DB_HOST', 'localhost' );`, also with a port or a socket behind it.
fn of_wordpress(text: &str) -> Option<Database> {
    let line = text.lines().find(|line| {
        let line = line.trim_start();
        line.starts_with("define") && line.contains("DB_HOST")
    })?;
    let behind = line.split_once("DB_HOST")?.1.split_once(',')?.1;
    let value = quoted(behind)?.trim();
    let host = match value.split_once(":/") {
        Some((_, socket)) => format!("/{socket}"),
        None => without_port(value),
    };
    Some(Database {
        system: System::MySql,
        host,
    })
}

fn of_environment(text: &str) -> Option<Database> {
    let value = |name: &str| {
        let mut lines = text.lines().rev().map(str::trim);
        let value = lines.find_map(|line| {
            let line = line.strip_prefix("export ").unwrap_or(line);
            line.strip_prefix(name)?.strip_prefix('=')
        })?;
        Some(value.trim().trim_matches(['"', '\'']))
    };
    if let Some(database) = value("DATABASE_URL").and_then(of_url) {
        return Some(database);
    }
    let system = value("DB_CONNECTION").map_or(Some(System::MySql), System::named)?;
    let socket = value("DB_SOCKET").filter(|socket| socket.starts_with('/'));
    let host = match socket {
        Some(socket) => socket.to_owned(),
        None => without_port(value("DB_HOST")?),
    };
    Some(Database { system, host })
}

/// `postgresql://app:secret@127.0.0.1:5432/app?host=/run/postgresql`
fn of_url(url: &str) -> Option<Database> {
    let (scheme, rest) = url.split_once("://")?;
    let system = System::named(scheme)?;
    let (rest, arguments) = rest.split_once('?').unwrap_or((rest, ""));
    let socket = arguments.split('&').find_map(|argument| {
        let (name, value) = argument.split_once('=')?;
        let is_socket = matches!(name, "host" | "unix_socket") && !value.is_empty();
        is_socket.then(|| value.replace("%2F", "/").replace("%2f", "/"))
    });
    let place = rest.split('/').next()?.rsplit('@').next()?;
    Some(Database {
        system,
        host: socket
            .unwrap_or_else(|| without_port(&place.replace("%2F", "/").replace("%2f", "/"))),
    })
}

/// `$wgDBtype = "postgres"; $wgDBserver = "127.0.0.1";`
fn of_mediawiki(text: &str) -> Option<Database> {
    let value = |name: &str| {
        let mut lines = text.lines().map(str::trim);
        lines.find_map(|line| quoted(line.strip_prefix(name)?.trim_start().strip_prefix('=')?))
    };
    let system = System::named(value("$wgDBtype")?)?;
    let server = value("$wgDBserver")?;
    let host = match server.split_once(":/") {
        Some((_, socket)) => format!("/{socket}"),
        None => without_port(server),
    };
    Some(Database { system, host })
}

/// The first text in quotes.
fn quoted(text: &str) -> Option<&str> {
    let begins = text.find(['\'', '"'])?;
    let quote = text.get(begins..)?.chars().next()?;
    text.get(begins + 1..)?.split(quote).next()
}

fn without_port(text: &str) -> String {
    let text = text.trim();
    match text.rsplit_once(':') {
        Some((host, port))
            if (!host.contains(':') || host.ends_with(']'))
                && port.bytes().all(|it| it.is_ascii_digit()) =>
        {
            host.to_owned()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_applications_are_read() {
        use System::{MySql, PostgreSql};
        type Reader = fn(&str) -> Option<Database>;
        type ExpectedDatabase = Option<(System, &'static str)>;
        #[rustfmt::skip]
        let cases: [(Reader, &str, ExpectedDatabase); 19] = [
            (of_wordpress, "define( 'DB_HOST', 'localhost' );", Some((MySql, "localhost"))),
            (of_wordpress, "define(\"DB_HOST\", \"127.0.0.1:3306\");", Some((MySql, "127.0.0.1"))),
            (of_wordpress, "define('DB_HOST', 'localhost:/run/x.sock');", Some((MySql, "/run/x.sock"))),
            (of_wordpress, "define('DB_HOST', getenv('X'));", Some((MySql, "X"))),
            (of_wordpress, "define('DB_HOST', $host);", None),
            (of_wordpress, "// define('DB_HOST', 'a');", None),
            (of_environment, "DB_HOST=127.0.0.1\n", Some((MySql, "127.0.0.1"))),
            (of_environment, "DB_CONNECTION=pgsql\nDB_HOST=\"127.0.0.1\"", Some((PostgreSql, "127.0.0.1"))),
            (of_environment, "DB_CONNECTION=sqlite\nDB_HOST=127.0.0.1", None),
            (of_environment, "DB_CONNECTION=mysql\nDB_SOCKET=/run/x.sock\nDB_HOST=a", Some((MySql, "/run/x.sock"))),
            (
                of_environment, "#DATABASE_URL=mysql://a/b\nexport DATABASE_URL='pgsql://u:p@w@[::1]:5432/d'",
                Some((PostgreSql, "[::1]")),
            ),
            (
                of_url, "postgresql://app:!ChangeMe!@127.0.0.1:5432/app?serverVersion=16",
                Some((PostgreSql, "127.0.0.1")),
            ),
            (of_url, "postgresql://app@%2Frun%2Fpostgresql/app", Some((PostgreSql, "/run/postgresql"))),
            (of_url, "mysql://app@localhost/app?unix_socket=/run/x.sock", Some((MySql, "/run/x.sock"))),
            (of_url, "sqlite:///%kernel.project_dir%/var/data.db", None),
            (
                of_mediawiki, "$wgDBtype = \"postgres\";\n$wgDBserver = \"localhost\";",
                Some((PostgreSql, "localhost")),
            ),
            (
                of_mediawiki, "$wgDBtype = 'mysql';\n$wgDBserver = 'localhost:/run/x.sock';",
                Some((MySql, "/run/x.sock")),
            ),
            (of_mediawiki, "$wgDBtype = \"sqlite\";", None),
            (of_mediawiki, "", None),
        ];
        for (read, text, expected) in cases {
            let expected = expected.map(|(system, host)| Database {
                system,
                host: host.to_owned(),
            });
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
