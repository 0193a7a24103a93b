//! Directives of servers: names, folders, logs and TLS.

use htaccess::item::Item;

use crate::outcome::LineOutcome;
use crate::proxy;
use crate::virtual_host::{PlaceKind, Server, ServerPlace};
use crate::words::argument;

/// TLS directives of Apache, and their equivalents in nginx's syntax.
const TLS: [(&str, &str); 6] = [
    ("sslcertificatefile", "ssl_certificate"),
    ("sslcertificatekeyfile", "ssl_certificate_key"),
    ("sslcacertificatefile", "ssl_client_certificate"),
    ("sslverifydepth", "ssl_verify_depth"),
    ("sslopensslconfcmd_dhparam", "ssl_dhparam"),
    ("sslcarevocationfile", "ssl_crl"),
];

/// A directive that stands in a server.
pub fn directive(server: &mut Server, item: &Item, is_of_server: bool) -> LineOutcome {
    let value = item.args.first().map_or("", String::as_str).to_owned();
    let name = item.name.as_str();
    if !is_of_server {
        return LineOutcome::Rule;
    }
    if let Some((_, line)) = TLS.iter().find(|it| it.0 == name) {
        return plain(server, &format!("{line} {};", argument(&value)), &value);
    }
    match name {
        "servername" => match host(&value) {
            Some(host) => {
                server.address.names.insert(0, host);
                LineOutcome::Taken
            }
            None => LineOutcome::Not("it is no name of a host".to_owned()),
        },
        "serveralias" => {
            let names: Option<Vec<String>> = item.args.iter().map(|it| host(it)).collect();
            match names {
                Some(names) => {
                    server.address.names.extend(names);
                    LineOutcome::Taken
                }
                None => LineOutcome::Not(
                    "a name has other placeholders than a leading *.; write a regular expression"
                        .to_owned(),
                ),
            }
        }
        "documentroot" => {
            server.root = Some(value);
            LineOutcome::Taken
        }
        "alias" => alias(server, item),
        "scriptalias" | "scriptaliasmatch" => {
            LineOutcome::Not("CGI has no counterpart; run the script by FastCGI".to_owned())
        }
        "aliasmatch" => LineOutcome::Not("write a location by pattern with alias".to_owned()),
        "loglevel" => log_level(server, item),
        "errorlog" | "customlog" | "transferlog" => log(server, item, &value),
        "protocols" => {
            server.address.has_http2 = item.all_lower().iter().any(|it| it == "h2");
            LineOutcome::Taken
        }
        "sslengine" => {
            server.address.is_tls = ["on", "optional"].contains(&item.lower(0).as_str());
            LineOutcome::Taken
        }
        "sslprotocol" => tls_protocols(server, item),
        "sslciphersuite" => match &item.args[..] {
            [ciphers] if !ciphers.starts_with("PROFILE=") && !ciphers.contains('$') => {
                let line = format!("ssl_ciphers {};", argument(ciphers));
                plain(server, &line, ciphers)
            }
            _ => LineOutcome::LeftOut(
                "the ciphers that are set without it are those of today".to_owned(),
            ),
        },
        "sslhonorcipherorder" | "sslsessiontickets" | "sslusestapling" => {
            let line = match name {
                "sslhonorcipherorder" => "ssl_prefer_server_ciphers",
                "sslsessiontickets" => "ssl_session_tickets",
                _ => "ssl_stapling",
            };
            let is_on = if item.lower(0) == "on" { "on" } else { "off" };
            plain(server, &format!("{line} {is_on};"), &value)
        }
        "sslverifyclient" => match item.lower(0).as_str() {
            "none" => {
                LineOutcome::LeftOut("clients are not asked for certificates anyway".to_owned())
            }
            "require" => plain(server, "ssl_verify_client on;", &value),
            "optional" => plain(server, "ssl_verify_client optional;", &value),
            _ => plain(server, "ssl_verify_client optional_no_ca;", &value),
        },
        "ssloptions" => LineOutcome::LeftOut(
            "what of TLS applications need is passed on by fastcgi_param".to_owned(),
        ),
        "sslcertificatechainfile" => LineOutcome::Not(
            "append this file to the one of ssl_certificate, which holds the whole chain"
                .to_owned(),
        ),
        "proxypreservehost" => {
            server.address.passes_host = item.lower(0) == "on";
            LineOutcome::Taken
        }
        "proxypassreverse" | "proxypassreversecookiedomain" | "proxypassreversecookiepath" => {
            proxy::reverse(item)
        }
        "proxyrequests" if item.lower(0) == "off" => {
            LineOutcome::LeftOut("it is so here anyway".to_owned())
        }
        "proxytimeout" => match value.parse::<u64>() {
            Ok(seconds) => plain(server, &format!("proxy_read_timeout {seconds}s;"), &value),
            Err(_) => LineOutcome::Not("a number of seconds was expected".to_owned()),
        },
        "proxyvia"
        | "proxyaddheaders"
        | "proxybadheader"
        | "proxyiobuffersize"
        | "proxyreceivebuffersize"
        | "proxyfcgibackendtype"
        | "proxyfcgisetenvif"
        | "proxyset" => LineOutcome::LeftOut("other servers are asked without it".to_owned()),
        "define" | "undefine" => LineOutcome::Taken,
        _ => LineOutcome::Rule,
    }
}

fn plain(server: &mut Server, line: &str, value: &str) -> LineOutcome {
    if value.contains('$') || value.is_empty() {
        return LineOutcome::Not("its value is not known here".to_owned());
    }
    server.lines.push(line.to_owned());
    LineOutcome::Taken
}

/// A name of a server without the text around it.
fn host(text: &str) -> Option<String> {
    let name = text.rsplit_once("://").map_or(text, |it| it.1);
    let name = name
        .split(':')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let plain = name.strip_prefix("*.").unwrap_or(&name);
    let is_name = !plain.is_empty()
        && plain
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b".-_".contains(&it));
    is_name.then_some(name)
}

fn alias(server: &mut Server, item: &Item) -> LineOutcome {
    let [address, path] = &item.args[..] else {
        return LineOutcome::Not("an address and a path were expected".to_owned());
    };
    let is_plain = |it: &String| it.starts_with('/') && !it.contains(['$', '"', ';', '{', '}']);
    if !is_plain(address) || !is_plain(path) {
        return LineOutcome::Not("its paths are not known here".to_owned());
    }
    let last = path.rsplit('/').next().unwrap_or_default();
    if last.contains('.') && !address.ends_with('/') {
        server.put(ServerPlace {
            path: address.clone(),
            kind: PlaceKind::File,
            lines: vec![format!("alias {};", argument(path))],
        });
        return LineOutcome::Taken;
    }
    let address = format!("{}/", address.trim_end_matches('/'));
    let path = path.trim_end_matches('/');
    let (line, runs_scripts) = match path.strip_suffix(address.trim_end_matches('/')) {
        // Scripts find their files below a root.
        Some(root) if !root.is_empty() => (format!("root {};", argument(root)), true),
        _ => (format!("alias {};", argument(&format!("{path}/"))), false),
    };
    server.put(ServerPlace {
        path: address,
        kind: PlaceKind::Folder { runs_scripts },
        lines: vec![line],
    });
    LineOutcome::Taken
}

fn log_level(server: &mut Server, item: &Item) -> LineOutcome {
    let level = item
        .all_lower()
        .into_iter()
        .find(|it| !it.contains(':'))
        .unwrap_or_default();
    let level = if level.starts_with("trace") {
        "debug".to_owned()
    } else {
        level
    };
    let is_known = [
        "emerg", "alert", "crit", "error", "warn", "notice", "info", "debug",
    ]
    .contains(&level.as_str());
    if !is_known {
        return LineOutcome::LeftOut("the level of modules is not set one by one".to_owned());
    }
    server.log_level = Some(level);
    LineOutcome::Taken
}

fn log(server: &mut Server, item: &Item, path: &str) -> LineOutcome {
    if path.starts_with('|') || path.contains('$') {
        return LineOutcome::Not("logs are written to files and syslog servers only".to_owned());
    }
    let path = match path.strip_prefix("syslog") {
        Some(_) => {
            return LineOutcome::Not("write error_log syslog:server=unix:/dev/log".to_owned());
        }
        None if !path.starts_with('/') => {
            return LineOutcome::Not("write the whole path of the log".to_owned());
        }
        None => argument(path),
    };
    if item.name == "errorlog" {
        server.lines.push(format!("error_log {path} LEVEL;"));
        return LineOutcome::Taken;
    }
    let format = item.args.get(1).map_or("combined", String::as_str);
    let is_conditional = item
        .args
        .iter()
        .skip(2)
        .any(|it| it.starts_with("env=") || it.starts_with("expr="));
    if is_conditional || !["combined", "common", "vhost_combined", "vhost_common"].contains(&format)
    {
        return LineOutcome::Not("write a log_format, and access_log with its name".to_owned());
    }
    // It has the fields of `common`, and more.
    server.lines.push(format!("access_log {path} combined;"));
    LineOutcome::Taken
}

fn tls_protocols(server: &mut Server, item: &Item) -> LineOutcome {
    let mut versions = [("TLSv1.2", false), ("TLSv1.3", false)];
    for word in item.all_lower() {
        let (is_on, name) = match word.strip_prefix('-') {
            Some(name) => (false, name),
            None => (true, word.trim_start_matches('+')),
        };
        for version in &mut versions {
            if name == "all" || version.0.eq_ignore_ascii_case(name) {
                version.1 = is_on;
            }
        }
    }
    let chosen: Vec<&str> = versions.iter().filter(|it| it.1).map(|it| it.0).collect();
    match chosen.is_empty() {
        true => LineOutcome::Not("of the versions of TLS, 1.2 and 1.3 are left".to_owned()),
        false => plain(
            server,
            &format!("ssl_protocols {};", chosen.join(" ")),
            "known",
        ),
    }
}
