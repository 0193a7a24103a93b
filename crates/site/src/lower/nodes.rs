//! Lowers `cache_nodes`: where the engine is by which several machines share purges.

use std::path::PathBuf;
use std::time::Duration;

use nginx_conf::{Diagnostic, Word};

use super::Lowering;
use super::level::Level;
use super::values::parameter;
use crate::directives::constants::*;
use crate::model::{CacheNodes, NodesEngine};

/// The default ports of Redis and of Sentinels.
const ENGINE_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

const FORMS: &str = "write redis://HOST:PORT, rediss://HOST:PORT for TLS, unix:/PATH, or \
                     sentinel://HOST:PORT,HOST:PORT,HOST:PORT/MASTER";

impl Lowering<'_> {
    /// `cache_nodes ADDRESS [name=NAME] [trusted=FILE] [key=FILE] | off`
    pub fn cache_nodes(&mut self, level: &Level<'_>) -> Option<CacheNodes> {
        let node = level.unless_off("cache_nodes")?;
        let word = node.arg(0);
        let mut nodes = match address(&word.text) {
            Ok(nodes) => nodes,
            Err(why) => {
                let error = Diagnostic::error(word.span, "invalid address of an engine");
                self.report(error.label(why).hint(FORMS));
                return None;
            }
        };
        for word in node.args().iter().skip(1) {
            self.nodes_parameter(word, &mut nodes);
        }
        Some(nodes)
    }

    /// `cache_nodes_lost stale=TIME | off`
    pub fn cache_nodes_lost(&mut self, level: &Level<'_>) -> Option<Duration> {
        let node = level.unless_off("cache_nodes_lost")?;
        let word = node.arg(0);
        match parameter(word, "stale") {
            Some(time) => self.duration_in(word, time),
            None => {
                self.unknown_parameter(word, word, "cache_nodes_lost", "stale");
                None
            }
        }
    }

    /// `cache_nodes_pages on | off`
    pub fn shares_pages(&mut self, level: &Level<'_>) -> bool {
        if !self.value(level, CACHE_NODES_PAGES) {
            return false;
        }
        let nodes = level.find("cache_nodes");
        let has_key = nodes.is_some_and(|node| {
            node.args()
                .iter()
                .any(|word| parameter(word, "key").is_some())
        });
        if !has_key && let Some(node) = level.find("cache_nodes_pages") {
            let warning = Diagnostic::warning(
                node.arg(0).span,
                "pages are not shared: cache_nodes names no key to seal them with",
            );
            self.report(
                warning.hint(
                    "name a file with 32 random bytes or more: cache_nodes ADDRESS key=FILE;",
                ),
            );
        }
        has_key
    }

    fn nodes_parameter(&mut self, word: &Word, nodes: &mut CacheNodes) {
        if let Some(name) = parameter(word, "name") {
            let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            match !name.is_empty() && name.bytes().all(is_name_byte) {
                true => name.clone_into(&mut nodes.name),
                false => self.invalid(word, "name", "expected letters, digits, - _ and ."),
            }
        } else if let Some(path) = parameter(word, "trusted") {
            if !nodes.is_tls {
                self.invalid(
                    word,
                    "parameter",
                    "it is for TLS: rediss:// or sentinels://",
                );
            }
            nodes.trusted = Some(self.path_beside_main_file(&Word {
                text: path.to_owned(),
                ..word.clone()
            }));
        } else if let Some(path) = parameter(word, "key") {
            nodes.page_key = Some(self.path_beside_main_file(&Word {
                text: path.to_owned(),
                ..word.clone()
            }));
        } else {
            self.unknown_parameter(word, word, "cache_nodes", "name trusted key");
        }
    }
}

fn address(text: &str) -> Result<CacheNodes, &'static str> {
    let nodes = |engine, is_tls| CacheNodes {
        engine,
        is_tls,
        trusted: None,
        page_key: None,
        user: None,
        password: None,
        database: 0,
        name: "mayfly".to_owned(),
    };
    if let Some(path) = text.strip_prefix("unix:") {
        return match path.starts_with('/') {
            true => Ok(nodes(NodesEngine::Unix(PathBuf::from(path)), false)),
            false => Err("expected the absolute path of a socket"),
        };
    }
    let (scheme, rest) = text.split_once("://").ok_or("expected redis://")?;
    let (login, rest) = match rest.rsplit_once('@') {
        Some((login, rest)) => (Some(login), rest),
        None => (None, rest),
    };
    let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut nodes = match scheme {
        "redis" | "rediss" => {
            let (host, port) = host(hosts, ENGINE_PORT)?;
            let mut nodes = nodes(NodesEngine::Tcp(host, port), scheme == "rediss");
            if !path.is_empty() {
                nodes.database = path
                    .parse()
                    .map_err(|_| "expected the number of a database")?;
            }
            nodes
        }
        "sentinel" | "sentinels" => {
            let sentinels = hosts.split(',').map(|text| host(text, SENTINEL_PORT));
            let sentinels = sentinels.collect::<Result<Vec<_>, _>>()?;
            if sentinels.len() < 3 {
                return Err(
                    "expected three Sentinels or more: two have no majority when one is lost",
                );
            }
            if path.is_empty() {
                return Err("expected the name of the master behind a /");
            }
            let engine = NodesEngine::Sentinel(path.to_owned(), sentinels);
            nodes(engine, scheme == "sentinels")
        }
        "redis-cluster" => {
            return Err(
                "a Redis Cluster keeps the log on one of its servers anyway, and no majority can be asked for it: expected one server, or Sentinels",
            );
        }
        _ => return Err("expected redis://, rediss://, unix:, sentinel:// or sentinels://"),
    };
    if let Some(login) = login {
        let (user, password) = login
            .split_once(':')
            .ok_or("expected USER:PASSWORD before the @")?;
        nodes.user = (!user.is_empty()).then(|| user.to_owned());
        nodes.password = Some(password.to_owned());
    }
    Ok(nodes)
}

fn host(text: &str, default_port: u16) -> Result<(String, u16), &'static str> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("expected ]")?;
            (host, rest.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err("expected [ ] around an IPv6 address");
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_host_byte) {
        return Err("expected a name or an address");
    }
    let port = match port {
        Some(port) => port
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or("expected a port")?,
        None => default_port,
    };
    Ok((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_an_engine_an_account_and_a_database() {
        let tcp = |host: &str, port| NodesEngine::Tcp(host.to_owned(), port);
        #[rustfmt::skip]
        let cases = [
            ("redis://cache", tcp("cache", 6379), false, None, None, 0),
            ("redis://10.0.0.1:6380/2", tcp("10.0.0.1", 6380), false, None, None, 2),
            ("rediss://[::1]:1", tcp("::1", 1), true, None, None, 0),
            ("redis://me:a@b@cache", tcp("cache", 6379), false, Some("me"), Some("a@b"), 0),
            ("redis://:word@cache", tcp("cache", 6379), false, None, Some("word"), 0),
            ("unix:/run/redis", NodesEngine::Unix("/run/redis".into()), false, None, None, 0),
        ];
        for (text, engine, is_tls, user, password, database) in cases {
            let nodes = address(text).expect(text);
            let login = (nodes.user.as_deref(), nodes.password.as_deref());
            assert_eq!((nodes.engine, nodes.is_tls), (engine, is_tls), "{text}");
            assert_eq!(
                (login, nodes.database),
                ((user, password), database),
                "{text}"
            );
        }
        let nodes = address("sentinel://a,b:1,c/mymaster").expect("three");
        let at = |host: &str, port| (host.to_owned(), port);
        let sentinels = vec![at("a", 26379), at("b", 1), at("c", 26379)];
        assert_eq!(
            nodes.engine,
            NodesEngine::Sentinel("mymaster".to_owned(), sentinels)
        );
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_was_expected() {
        for (text, why) in [
            ("cache", "expected redis://"),
            (
                "http://cache",
                "expected redis://, rediss://, unix:, sentinel:// or sentinels://",
            ),
            ("redis://cache/x", "expected the number of a database"),
            ("redis://cache:0", "expected a port"),
            ("redis://me@cache", "expected USER:PASSWORD before the @"),
            ("redis://::1", "expected [ ] around an IPv6 address"),
            ("redis://", "expected a name or an address"),
            ("unix:run", "expected the absolute path of a socket"),
            (
                "sentinel://a,b,c",
                "expected the name of the master behind a /",
            ),
        ] {
            assert_eq!(address(text), Err(why), "{text}");
        }
        assert!(address("sentinel://a,b/m").is_err_and(|why| why.contains("three")));
        assert!(address("redis-cluster://a").is_err_and(|why| why.contains("Cluster")));
    }
}
