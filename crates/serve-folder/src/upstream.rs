//! `mayfly serve URL`: an HTTP server in the place of a folder. Takes its URL and
//! returns configuration text; pure. The caution is that for PHP of an unknown
//! application: a visitor with cookies of their own, an action, or an address that
//! looks personal goes past the cache, and the application's `Cache-Control` goes
//! before any lifetime of ours.

use super::applications::rules;
use super::cache_rules::{Spelling, cache_rules, cache_zone, max_valid};
use super::conf_text::{CannotWrite, Conf, word};
use super::dashboard::dashboard;
use super::http_settings::{compression, included, log, process, trusted_proxies};
use super::https;
use super::kind::SiteKind;
use super::options::ServeOptions;

const PROXY: Spelling = Spelling {
    prefix: "proxy",
    maker: "the upstream",
    failures: "error timeout invalid_header http_500 http_502 http_503 http_504",
};

/// Idle connections kept to the upstream.
const KEPT_CONNECTIONS: usize = 32;

/// `http://HOST[:PORT]` or `http://unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamUrl {
    /// The address as an argument of `server` in an upstream group.
    pub address: String,
    /// The URL as typed, without a slash at its end.
    pub text: String,
}

impl UpstreamUrl {
    /// Whether `text` is meant as a URL rather than a folder.
    pub fn is_one(text: &str) -> bool {
        text.starts_with("http://") || text.starts_with("https://")
    }

    /// # Errors
    /// The reason why it cannot be served.
    pub fn parse(text: &str) -> Result<UpstreamUrl, String> {
        let Some(rest) = text.strip_prefix("http://") else {
            return Err(format!(
                "{text}: encrypted upstreams need a configuration of their own; \
                 begin with what mayfly serve --print-config http://... prints"
            ));
        };
        if let Some(path) = rest.strip_prefix("unix:") {
            if !path.starts_with('/') {
                return Err(format!("{text}: the path of a socket begins with /"));
            }
            return Ok(UpstreamUrl {
                address: rest.to_owned(),
                text: text.to_owned(),
            });
        }
        let place = rest.strip_suffix('/').unwrap_or(rest);
        if place.is_empty() || place.contains(['/', '?', '#']) {
            return Err(format!(
                "{text}: name the server only, as in http://127.0.0.1:8081; \
                 paths stay as visitors ask for them"
            ));
        }
        if place.contains(['@', ' ']) {
            return Err(format!("{text} is no address of a server"));
        }
        Ok(UpstreamUrl {
            address: place.to_owned(),
            text: format!("http://{place}"),
        })
    }

    /// Would a server on `listen` be its own upstream?
    pub fn is_at(&self, listen: &str) -> bool {
        let port = listen.rsplit(':').next();
        let names = ["127.0.0.1", "localhost", "[::1]"];
        names.iter().any(|name| {
            let own = self.address.strip_prefix(name);
            own.and_then(|rest| rest.strip_prefix(':')) == port
        })
    }
}

/// Returns the configuration for a site behind `upstream`.
///
/// # Errors
/// A word that the syntax cannot carry.
pub fn write_upstream_config(
    upstream: &UpstreamUrl,
    options: &ServeOptions,
) -> Result<String, CannotWrite> {
    let mut conf = Conf::default();
    let rules = rules(SiteKind::PlainPhp).filter(|_| !options.ttl.is_zero());
    conf.note(&format!("Written by `mayfly serve`: {}.", upstream.text));
    process(&mut conf, options);
    conf.open("http");
    log(&mut conf, options)?;
    compression(&mut conf);
    if rules.is_some() {
        cache_zone(&mut conf, PROXY, upstream.text.as_bytes(), options)?;
    }
    conf.note("WebSocket goes through; other connections are kept.");
    conf.map(
        "$http_upgrade $websocket",
        &[("default", "''"), ("websocket", "websocket")],
    );
    conf.map(
        "$websocket $to_upstream",
        &[("default", "''"), ("websocket", "upgrade")],
    );
    conf.open("upstream site");
    conf.line(&format!("server {};", word(&upstream.address)?));
    conf.line(&format!("keepalive {KEPT_CONNECTIONS};"));
    conf.close();
    conf.gap();
    https::issuer(&mut conf, options)?;
    conf.open("server");
    https::listen(&mut conf, options)?;
    trusted_proxies(&mut conf, options)?;
    conf.line("client_max_body_size 64m;");
    https::remembered(&mut conf, options);
    conf.gap();
    for (name, value) in FIELDS {
        conf.line(&format!("proxy_set_header {name} {value};"));
    }
    conf.line("proxy_http_version 1.1;");
    conf.line("proxy_read_timeout 300s;");
    conf.line("proxy_buffers 16 16k;");
    conf.line("proxy_buffer_size 32k;");
    if let Some(rules) = &rules {
        cache_rules(&mut conf, PROXY, rules, options);
        max_valid(&mut conf, options);
    }
    conf.gap();
    conf.open("location /");
    conf.line("proxy_pass http://site;");
    conf.close();
    conf.close();
    https::redirects(&mut conf, options, false)?;
    dashboard(&mut conf, options)?;
    included(&mut conf, options);
    conf.close();
    Ok(conf.text)
}

/// The fields about the visitor that the upstream gets.
///
/// Fields that the visitor, or a proxy in front that is not trusted, sends about itself
/// are replaced.
const FIELDS: [(&str, &str); 19] = [
    ("Host", "$host$is_request_port$request_port"),
    ("X-Real-IP", "$remote_addr"),
    ("X-Forwarded-For", "$remote_addr"),
    ("X-Forwarded-Host", "$host$is_request_port$request_port"),
    ("X-Forwarded-Proto", "$scheme"),
    ("CF-Visitor", "''"),
    ("Forwarded", "''"),
    ("Front-End-Https", "''"),
    ("X-Forwarded", "''"),
    ("X-Forwarded-Port", "''"),
    ("X-Forwarded-Prefix", "''"),
    ("X-Forwarded-Protocol", "''"),
    ("X-Forwarded-Scheme", "''"),
    ("X-Forwarded-Server", "''"),
    ("X-Forwarded-Ssl", "''"),
    ("X-Host", "''"),
    ("X-URL-Scheme", "''"),
    ("Upgrade", "$websocket"),
    ("Connection", "$to_upstream"),
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn golden(name: &str, upstream: &str, options: &ServeOptions) {
        let upstream = UpstreamUrl::parse(upstream).unwrap();
        let text = write_upstream_config(&upstream, options).unwrap();
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("src/golden")
            .join(name);
        testkit::golden::assert_file(&path, &text);
    }

    #[test]
    fn configurations_for_upstreams_are_the_golden_ones() {
        let plain = ServeOptions::default();
        golden("upstream.conf", "http://127.0.0.1:8081", &plain);
        let uncached = ServeOptions {
            ttl: Duration::ZERO,
            ..plain
        };
        golden(
            "upstream_uncached.conf",
            "http://unix:/run/app.sock",
            &uncached,
        );
    }

    #[test]
    fn urls_name_a_server_and_nothing_else() {
        for (text, wanted) in [
            ("http://127.0.0.1:8081", Some("127.0.0.1:8081")),
            ("http://127.0.0.1:8081/", Some("127.0.0.1:8081")),
            ("http://[::1]:81/", Some("[::1]:81")),
            ("http://app.test", Some("app.test")),
            ("http://unix:/run/app.sock", Some("unix:/run/app.sock")),
            ("http://unix:app.sock", None),
            ("http://app.test/blog", None),
            ("http://app.test?x", None),
            ("http://user@app.test", None),
            ("http://", None),
            ("https://app.test", None),
        ] {
            let parsed = UpstreamUrl::parse(text).ok();
            assert_eq!(
                parsed.as_ref().map(|url| url.address.as_str()),
                wanted,
                "{text}"
            );
        }
    }

    #[test]
    fn an_upstream_is_not_looked_for_where_we_listen() {
        for (text, listen, wanted) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080", true),
            ("http://localhost:8080", "8080", true),
            ("http://127.0.0.1:8081", "127.0.0.1:8080", false),
            ("http://app.test:8080", "127.0.0.1:8080", false),
            ("http://unix:/run/a:8080", "127.0.0.1:8080", false),
        ] {
            let url = UpstreamUrl::parse(text).unwrap();
            assert_eq!(url.is_at(listen), wanted, "{text} {listen}");
        }
    }
}
