//! The addresses to which MediaWiki sends its purges, as far as `LocalSettings.php` has them in plain words. Pure.
//!
//! A setting that is computed is not known, and neither is one in another file. Then nothing is expected, and pages are
//! kept for long only once a purge has arrived.

use std::net::IpAddr;

use super::options::ServeOptions;
use super::php_literals::without_comments;

/// The settings of MediaWiki about purges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurgeSettings {
    /// `$wgCdnServers` (`$wgSquidServers` before 1.34): `HOST:PORT` each.
    servers: Vec<String>,
    /// `$wgInternalServer`, or else `$wgServer`: how the purged URLs begin.
    url: Option<String>,
}

impl PurgeSettings {
    /// Reads the text of `LocalSettings.php`.
    pub fn of(settings: &str) -> PurgeSettings {
        let text = without_comments(settings);
        let servers = ["wgCdnServers", "wgSquidServers"];
        let servers = servers.iter().filter_map(|name| assigned(&text, name));
        let urls = ["wgInternalServer", "wgServer"];
        let mut urls = urls.iter().filter_map(|name| assigned(&text, name));
        PurgeSettings {
            servers: servers.flatten().collect(),
            url: urls.next().and_then(|values| values.into_iter().next()),
        }
    }

    /// Whether purges are sent to where a server with these options listens, in a way that it takes. PHP sends those of
    /// a URL with `https` through a tunnel, which no server in front of it offers; on a port for TLS the setting must
    /// have the scheme.
    pub fn reach(&self, options: &ServeOptions) -> bool {
        let is_tls = options.https.is_some() || options.local_certificate.is_some();
        let is_plain = match &self.url {
            Some(url) => url.starts_with("http://"),
            None => !is_tls,
        };
        let plain = options.https.iter().flat_map(|https| &https.listen_http);
        let listens: Vec<&String> = options.listen.iter().chain(plain).collect();
        let is_ours = |server: &String| listens.iter().any(|at| is_at(server, at));
        is_plain && self.servers.iter().any(is_ours)
    }
}

/// Whether `server` names a listener of this machine. `listen` is the argument of the directive.
fn is_at(server: &str, listen: &str) -> bool {
    let Some((host, port)) = server.rsplit_once(':') else {
        // PHP takes another port then than that of HTTP.
        return false;
    };
    let (listens_on, own_port) = listen.rsplit_once(':').unwrap_or(("*", listen));
    let is_any = matches!(listens_on, "*" | "0.0.0.0" | "[::]");
    let ip = |host: &str| host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
    let is_loopback = |host: &str| match host {
        "localhost" => true,
        host => ip(host).is_some_and(|ip| ip.is_loopback()),
    };
    let is_same = match (host, listens_on) {
        ("localhost", _) => is_loopback(listens_on),
        _ => ip(host).is_some() && ip(host) == ip(listens_on),
    };
    port == own_port && (is_same || is_any && is_loopback(host))
}

/// The strings of the last assignment to `$NAME`; empty without one, or where the value is computed.
fn assigned(text: &str, name: &str) -> Option<Vec<String>> {
    let name = format!("${name}");
    let mut found: Option<Option<Vec<String>>> = None;
    for (at, _) in text.match_indices(&name) {
        let rest = text.get(at + name.len()..)?.trim_start();
        let (is_added, rest) = match rest.strip_prefix("[]") {
            Some(rest) => (true, rest.trim_start()),
            None => (false, rest),
        };
        let Some(value) = rest.strip_prefix('=').filter(|rest| !rest.starts_with('=')) else {
            continue;
        };
        let strings = strings_of(value.split(';').next().unwrap_or_default());
        found = match (found, strings) {
            (Some(Some(all)), Some(added)) if is_added => Some(Some([all, added].concat())),
            (_, strings) => Some(strings),
        };
    }
    found.flatten()
}

/// The strings of a value that is a string, or a list of some; none if it is anything else.
fn strings_of(value: &str) -> Option<Vec<String>> {
    let value = value.trim();
    let list = value
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let array = || value.strip_prefix("array(")?.strip_suffix(')');
    let items = list
        .or_else(array)
        .unwrap_or(value)
        .split(',')
        .map(str::trim);
    let items = items.filter(|item| !item.is_empty());
    let text = |item: &str| {
        let quoted = |quote: char| item.strip_prefix(quote)?.strip_suffix(quote);
        let text = quoted('\'').or_else(|| quoted('"'))?;
        (!text.contains(['\'', '"', '$', '\\'])).then(|| text.to_owned())
    };
    items.map(text).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::Https;

    fn options(listen: &str, is_tls: bool) -> ServeOptions {
        ServeOptions {
            listen: vec![listen.to_owned()],
            local_certificate: is_tls.then(|| "/certificate.pem".into()),
            ..ServeOptions::default()
        }
    }

    #[test]
    fn purges_reach_the_server_that_the_settings_name() {
        const HERE: &str = "127.0.0.1:8080";
        #[rustfmt::skip]
        let cases = [
            ("$wgCdnServers = [ '127.0.0.1:8080' ];", HERE, true),
            ("$wgCdnServers = array( 'a.test:80',\n \"127.0.0.1:8080\", );", HERE, true),
            ("$wgSquidServers = ['localhost:8080'];", HERE, true),
            ("$wgCdnServers[] = '127.0.0.1:8080';", HERE, true),
            ("$wgCdnServers = ['127.0.0.1:8080'];", "8080", true),
            ("$wgCdnServers = ['[::1]:8080'];", "[::]:8080", true),
            ("$wgCdnServers = ['192.0.2.7:8080'];", "192.0.2.7:8080", true),
            ("$wgCdnServers = ['127.0.0.1:8080']; $wgServer = 'http://a.test';", HERE, true),
            (
                "$wgServer = 'https://a.test'; $wgInternalServer = 'http://a.test';\n$wgCdnServers = ['127.0.0.1:8080'];",
                HERE, true,
            ),
            // Another server, or none.
            ("", HERE, false),
            ("$wgCdnServers = [];", HERE, false),
            ("$wgCdnServers = ['127.0.0.1:8081'];", HERE, false),
            ("$wgCdnServers = ['192.0.2.7:8080'];", HERE, false),
            ("$wgCdnServers = ['192.0.2.7:8080'];", "8080", false),
            ("$wgCdnServers = ['127.0.0.1'];", "80", false),
            ("# $wgCdnServers = ['127.0.0.1:8080'];", HERE, false),
            ("$wgCdnServers = ['10.0.0.1:80' /* '127.0.0.1:8080' */];", HERE, false),
            ("$wgCdnServers = ['127.0.0.1:8080'];\n$wgCdnServers = [];", HERE, false),
            ("$wgCdnServersNoPurge = ['127.0.0.1:8080'];", HERE, false),
            // Settings that are not plain words.
            ("$wgCdnServers = [ getenv('CDN') ];", HERE, false),
            ("$wgCdnServers = [ \"$host:8080\" ];", HERE, false),
            // A tunnel.
            ("$wgServer = 'https://a.test'; $wgCdnServers = ['127.0.0.1:8080'];", HERE, false),
        ];
        for (settings, listen, reaches) in cases {
            let reached = PurgeSettings::of(settings).reach(&options(listen, false));
            assert_eq!(reached, reaches, "{settings} {listen}");
        }
    }

    #[test]
    fn with_a_domain_purges_reach_the_port_without_tls_as_well() {
        let options = ServeOptions {
            listen: vec!["443".to_owned()],
            https: Some(Https {
                listen_http: vec!["80".to_owned(), "[::]:80".to_owned()],
                domains: vec!["a.test".to_owned()],
                issuer: String::new(),
                directory: String::new(),
                email: None,
                authorities: None,
                state: PathBuf::new(),
                is_trusted: false,
            }),
            ..ServeOptions::default()
        };
        for (port, reaches) in [(80, true), (443, true), (8080, false)] {
            let settings = format!(
                "$wgServer = 'https://a.test'; $wgInternalServer = 'http://a.test'; $wgCdnServers = ['127.0.0.1:{port}'];"
            );
            assert_eq!(
                PurgeSettings::of(&settings).reach(&options),
                reaches,
                "{port}"
            );
        }
    }

    #[test]
    fn with_tls_the_purged_urls_have_to_be_without() {
        for (server, reaches) in [
            ("", false),
            ("$wgServer = 'https://localhost:8443';", false),
            (
                "$wgServer = 'https://localhost:8443'; $wgInternalServer = 'http://localhost:8443';",
                true,
            ),
        ] {
            let settings = format!("{server} $wgCdnServers = ['127.0.0.1:8443'];");
            let reached = PurgeSettings::of(&settings).reach(&options("127.0.0.1:8443", true));
            assert_eq!(reached, reaches, "{settings}");
        }
    }
}
