//! `ProxyPass` and its relatives.

use htaccess::item::Item;

use crate::outcome::{LineOutcome, Place};
use crate::php::fastcgi_address;
use crate::virtual_host::{PlaceKind, Server, ServerPlace};
use crate::words::argument;

/// Parameters of other servers that need no counterpart.
#[rustfmt::skip]
const LEFT_OUT: [&str; 16] = [
    "retry", "keepalive", "disablereuse", "enablereuse", "max", "smax", "min", "ttl", "acquire", "flushpackets",
    "flushwait", "iobuffersize", "ping", "nocanon", "upgrade", "lbset",
];

/// `ProxyPass /path http://host/path`, or with the address alone in a `<Location>`.
pub fn pass(server: &mut Server, item: &Item, place: Place<'_>) -> LineOutcome {
    let is_path = item.args.first().is_some_and(|it| it.starts_with('/'));
    let (path, rest) = match (&item.args[..], place) {
        ([path, rest @ ..], _) if is_path => (path.clone(), rest),
        (rest, Place::Location(path)) if path.starts_with('/') => (path.to_owned(), rest),
        _ => return LineOutcome::Not("a path and an address were expected".to_owned()),
    };
    let [to, params @ ..] = rest else {
        return LineOutcome::Not("an address was expected".to_owned());
    };
    if path.contains(['$', '"', ';', '{', '}']) {
        return LineOutcome::Not("its path is not known here".to_owned());
    }
    let folder = format!("{}/", path.trim_end_matches('/'));
    if to == "!" {
        server.put(ServerPlace {
            path: folder,
            kind: PlaceKind::Folder { runs_scripts: true },
            lines: vec!["# Not for the server behind this one.".to_owned()],
        });
        return LineOutcome::Taken;
    }
    let (is_websocket, address) = match to.strip_prefix("ws") {
        Some(rest) if rest.starts_with("://") || rest.starts_with("s://") => {
            (true, format!("http{rest}"))
        }
        _ => (false, to.clone()),
    };
    let address = match unix(&address) {
        Some(address) => address,
        None if address.starts_with("http://") || address.starts_with("https://") => address,
        None => return LineOutcome::Not("of other servers, those of http:// and https:// are asked here; for balancer: write an upstream".to_owned()),
    };
    if address.contains(['$', '"', ';', '{', '}', ' ']) {
        return LineOutcome::Not("its address is not known here".to_owned());
    }
    let mut lines = Vec::new();
    let mut has_upgrade = is_websocket;
    for param in params {
        let (name, value) = param.split_once('=').unwrap_or((param, ""));
        match (name.to_ascii_lowercase().as_str(), value.parse::<u64>()) {
            ("timeout", Ok(seconds)) => lines.push(format!("proxy_read_timeout {seconds}s;")),
            ("connectiontimeout", Ok(seconds)) => {
                lines.push(format!("proxy_connect_timeout {seconds}s;"))
            }
            ("upgrade", _) => has_upgrade = true,
            (name, _) if LEFT_OUT.contains(&name) => {}
            (name, _) => {
                return LineOutcome::Not(format!(
                    "the parameter {name} has no counterpart; write an upstream"
                ));
            }
        }
    }
    // The address of a path that ends with a slash ends with one.
    let has_path = address.splitn(4, '/').nth(3).is_some();
    let address = match (folder.as_str(), has_path) {
        ("/", false) => address,
        (_, _) if path.ends_with('/') => address,
        _ => format!("{}/", address.trim_end_matches('/')),
    };
    let asked = server.address.asked_host;
    let host = if server.address.passes_host {
        asked
    } else {
        "$proxy_host"
    };
    let mut all = vec![
        format!("proxy_pass {};", argument(&address)),
        format!("proxy_set_header Host {host};"),
        "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;".to_owned(),
        format!("proxy_set_header X-Forwarded-Host {asked};"),
        "proxy_set_header X-Forwarded-Server $server_name;".to_owned(),
    ];
    if has_upgrade {
        all.push("proxy_http_version 1.1;".to_owned());
        all.push("proxy_set_header Upgrade $http_upgrade;".to_owned());
        all.push("proxy_set_header Connection \"upgrade\";".to_owned());
    }
    all.extend(lines);
    server.put(ServerPlace {
        kind: PlaceKind::OtherServer {
            is_exact: !path.ends_with('/'),
        },
        path: folder,
        lines: all,
    });
    LineOutcome::Taken
}

/// `unix:/path|http://localhost/path`
fn unix(address: &str) -> Option<String> {
    let (socket, to) = address.strip_prefix("unix:")?.split_once('|')?;
    let to = to.strip_prefix("http://")?;
    let path = to.split_once('/').map_or("", |it| it.1);
    Some(match path {
        "" => format!("http://unix:{socket}"),
        path => format!("http://unix:{socket}:/{path}"),
    })
}

/// `ProxyPassMatch ^/(.*\.php)$ fcgi://127.0.0.1:9000/srv/www/$1`: PHP.
pub fn pass_match(server: &mut Server, item: &Item) -> LineOutcome {
    let [pattern, to, ..] = &item.args[..] else {
        return LineOutcome::Not("a pattern and an address were expected".to_owned());
    };
    match fastcgi_address(to) {
        Some(address) if pattern.contains("\\.php") => {
            server.php = Some(address);
            LineOutcome::Taken
        }
        _ => LineOutcome::Not("write a location by pattern with proxy_pass".to_owned()),
    }
}

/// `ProxyPassReverse`
pub fn reverse(item: &Item) -> LineOutcome {
    match item.name.as_str() {
        "proxypassreverse" => {
            LineOutcome::LeftOut("addresses in responses are changed as proxy_pass says".to_owned())
        }
        "proxypassreversecookiedomain" => {
            LineOutcome::Not("write proxy_cookie_domain into the location".to_owned())
        }
        _ => LineOutcome::Not("write proxy_cookie_path into the location".to_owned()),
    }
}
