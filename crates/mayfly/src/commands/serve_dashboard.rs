//! `serve --dashboard`: the address of the dashboard, and the token that lets the operator purge in it.
//!
//! The token is made when everything listens, so that a start that fails changes nothing of a server that has the
//! place already. A file holds its hash, for the account that serves, and is removed at the end. The token itself is
//! printed once, and only if no one else reads the output.

use std::collections::HashSet;
use std::io::{self, IsTerminal, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd;

use purge_order::token;
use rustix::fs::FileType;
use serve_folder::Dashboard;
use site::ListenAddress;

use crate::commands::run_file::RunFile;
use crate::processes::account::Account;
use crate::processes::control_socket;
use crate::processes::socket_holder;
use system_error::SystemError;

/// The default address: beside the usual ports of sites (8080, 8081, 8443).
pub const PLACE: &str = "127.0.0.1:8090";
/// The name of the token in the log of purges.
const NAME: &str = "dashboard";
/// Tokens of former programs that stay valid over upgrades.
const MAX_FORMER: usize = 16;
/// For the account that serves.
const FILE_MODE: u32 = 0o600;

/// Returns the place of the dashboard for a site that listens at `listen`.
///
/// # Errors
/// It cannot be there, or the network would reach it.
pub fn prepare(typed: &str, listen: &[String]) -> Result<Dashboard, String> {
    let place = place(typed)?;
    if let Some(taken) = listen.iter().find(|listen| meets(listen, place)) {
        return Err(format!(
            "--dashboard: the site itself listens on {taken}; --dashboard={} would be free",
            next(place)
        ));
    }
    let name = format!(
        "{NAME}-{}.tokens",
        control_socket::plain(&place.to_string())
    );
    let folder = control_socket::serve_folder().map_err(|error| format!("--dashboard: {error}"))?;
    Ok(Dashboard {
        place,
        tokens: folder.join(name),
    })
}

/// Checks that the place is free, or `inherited` from the server whose place is taken. The error comes before
/// anything starts, and names a way out.
///
/// # Errors
/// The place is taken; the message names the process that listens there.
pub fn expect_free(
    dashboard: &Dashboard,
    inherited: &HashSet<ListenAddress>,
) -> Result<(), String> {
    let place = dashboard.place;
    if inherited.contains(&ListenAddress::Tcp(place)) {
        return Ok(());
    }
    match TcpListener::bind(place) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let holder = socket_holder::holder(&ListenAddress::Tcp(place));
            let holder = holder.unwrap_or_else(|| "another program".to_owned());
            Err(format!(
                "--dashboard: {holder} already listens on {place}; try --dashboard={}",
                next(place)
            ))
        }
        Err(error) => Err(format!(
            "--dashboard: cannot listen on {place} ({})",
            SystemError(&error)
        )),
    }
}

/// `127.0.0.1:8090`, `8090`, `localhost:8090`, `[::1]:8090`
fn place(typed: &str) -> Result<SocketAddr, String> {
    let port = typed.strip_prefix("localhost:").unwrap_or(typed);
    let place = match port.parse() {
        Ok(port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        Err(_) => typed.parse(),
    };
    match place {
        Ok(place) if place.port() == 0 => Err(format!("--dashboard {typed}: expected a port")),
        Ok(place) if !place.ip().is_loopback() => Err(format!(
            "--dashboard {typed}: the network reaches this address, and the dashboard is for this machine alone; \
             expected an address such as {PLACE}. From elsewhere, ssh -L 8090:{PLACE} HOST leads there"
        )),
        Ok(place) => Ok(place),
        Err(_) => Err(format!(
            "--dashboard {typed}: expected an address such as {PLACE}"
        )),
    }
}

/// Would a site that listens there have the place?
fn meets(listen: &str, place: SocketAddr) -> bool {
    let own = listen.replace("*:", "0.0.0.0:").parse::<SocketAddr>();
    match (own, listen.parse::<u16>()) {
        (Ok(own), _) => {
            own.port() == place.port() && (own.ip() == place.ip() || own.ip().is_unspecified())
        }
        (Err(_), port) => port == Ok(place.port()),
    }
}

fn next(place: SocketAddr) -> SocketAddr {
    SocketAddr::new(place.ip(), place.port().checked_add(1).unwrap_or(8090))
}

/// The token of a server that listens. Its file is removed when this is dropped.
pub struct Token {
    url: String,
    _file: RunFile,
}

impl Token {
    /// Makes a token, and writes the file that lets the server know it. `account` serves; `None`: this
    /// process. `takes_over`: it takes the place of a server, whose tokens stay valid.
    ///
    /// # Errors
    /// A message for the operator.
    pub fn make(
        dashboard: &Dashboard,
        account: Option<&Account>,
        takes_over: bool,
    ) -> Result<Token, String> {
        let path = &dashboard.tokens;
        let failed = |error: io::Error| {
            format!(
                "the dashboard cannot purge: {} cannot be written ({})",
                path.display(),
                SystemError(&error)
            )
        };
        let (token, line) = token::new(NAME).map_err(failed)?;
        let owner = account.map(|account| (account.uid, account.gid));
        let former = match takes_over {
            true => trusted_path::read_small(path).map_or_else(|_| String::new(), |(text, _)| text),
            false => String::new(),
        };
        let mut lines: Vec<&str> = former.lines().collect();
        lines.drain(..lines.len().saturating_sub(MAX_FORMER));
        lines.push(&line);
        let text = lines.join("\n") + "\n";
        let file = RunFile::write(path, text.as_bytes(), FILE_MODE, owner).map_err(failed)?;
        Ok(Token {
            url: format!("http://{}/#token={token}", dashboard.place),
            _file: file,
        })
    }
}

/// Prints the address of the dashboard: with the token if no one else reads it.
pub fn announce(dashboard: &Dashboard, token: &Result<Token, String>) {
    let stderr = io::stderr();
    let line = match token {
        Ok(token) if is_for_one_reader(&stderr) => format!(
            "Dashboard: {}\n  The token in this address allows purges until the server ends: keep it secret.\n",
            token.url
        ),
        Ok(_) => format!(
            "Dashboard: http://{}/\n  The token for purges is printed on terminals only, since others may read this output.\n",
            dashboard.place
        ),
        Err(message) => format!(
            "Dashboard: http://{}/\n  Note: {message}\n",
            dashboard.place
        ),
    };
    // The reader may be gone.
    let _ = stderr.lock().write_all(line.as_bytes());
}

/// Whether the operator alone reads the output. On a terminal that is so, and in a file of one's own. A pipe or a
/// socket may lead to a log, such as systemd's.
fn is_for_one_reader(output: &(impl IsTerminal + AsFd)) -> bool {
    let is_own_file = || {
        let facts = rustix::fs::fstat(output)?;
        let is_file = FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile;
        Ok::<_, rustix::io::Errno>(is_file && facts.st_mode & 0o077 == 0)
    };
    output.is_terminal() || is_own_file().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn the_network_does_not_reach_the_dashboard() {
        for (typed, expected) in [
            ("127.0.0.1:8090", Ok("127.0.0.1:8090")),
            ("127.9.8.7:81", Ok("127.9.8.7:81")),
            ("9000", Ok("127.0.0.1:9000")),
            ("localhost:9000", Ok("127.0.0.1:9000")),
            ("[::1]:9000", Ok("[::1]:9000")),
            ("0.0.0.0:8090", Err("the network reaches this address")),
            ("[::]:8090", Err("the network reaches this address")),
            ("192.0.2.1:8090", Err("the network reaches this address")),
            (
                "[::ffff:192.0.2.1]:8090",
                Err("the network reaches this address"),
            ),
            ("127.0.0.1", Err("expected an address")),
            ("example.org:80", Err("expected an address")),
            ("unix:/run/dashboard", Err("expected an address")),
            ("0", Err("expected a port")),
        ] {
            match (place(typed), expected) {
                (Ok(place), Ok(expected)) => assert_eq!(place.to_string(), expected, "{typed}"),
                (Err(said), Err(words)) => assert!(said.contains(words), "{typed}: {said}"),
                (other, _) => panic!("{typed}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_site_and_the_dashboard_are_at_different_places() {
        let place = PLACE.parse().unwrap();
        for (listen, expected) in [
            ("127.0.0.1:8080", false),
            ("127.0.0.1:8090", true),
            ("127.0.0.2:8090", false),
            ("8090", true),
            ("*:8090", true),
            ("0.0.0.0:8090", true),
            ("unix:/run/8090", false),
        ] {
            assert_eq!(meets(listen, place), expected, "{listen}");
        }
    }

    #[test]
    fn a_token_is_known_to_the_server_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let dashboard = Dashboard {
            place: PLACE.parse().unwrap(),
            tokens: folder.path().join("run/dashboard.tokens"),
        };
        let first = Token::make(&dashboard, None, false).unwrap();
        let token = |it: &Token| it.url.split_once("#token=").unwrap().1.to_owned();
        let known = |token: &str| {
            token::find(&dashboard.tokens, token.as_bytes())
                .ok()
                .flatten()
        };
        assert_eq!(known(&token(&first)).as_deref(), Some(NAME));
        let mode = fs::metadata(&dashboard.tokens).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o600);
        let second = Token::make(&dashboard, None, false).unwrap();
        assert_eq!(known(&token(&first)), None);
        let third = Token::make(&dashboard, None, true).unwrap();
        assert!(known(&token(&second)).is_some() && known(&token(&third)).is_some());
        let second = third;
        // The file is the last one's by now.
        drop(first);
        assert!(known(&token(&second)).is_some());
        drop(second);
        assert!(!dashboard.tokens.exists());
    }

    #[test]
    fn a_token_is_said_where_nobody_else_reads() {
        let folder = tempfile::tempdir().unwrap();
        let file = fs::File::create(folder.path().join("log")).unwrap();
        for (mode, expected) in [(0o600, true), (0o640, false), (0o644, false)] {
            file.set_permissions(PermissionsExt::from_mode(mode))
                .unwrap();
            assert_eq!(is_for_one_reader(&file), expected, "{mode:o}");
        }
        let (_, pipe) = io::pipe().unwrap();
        let pipe = fs::File::from(std::os::fd::OwnedFd::from(pipe));
        assert!(!is_for_one_reader(&pipe));
    }
}
