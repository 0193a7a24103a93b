//! Lowers `proxy_pass` and the directives that only HTTP upstreams have: the URL, the request
//! that is sent, and the fields of responses that are changed.

use std::sync::Arc;

use nginx_conf::Word;

use super::Lowering;
use super::cache_purge::PurgeDirective;
use super::exchange::{DirectivePrefix, NEXT_UPSTREAM};
use super::level::Level;
use super::location::{LocationMatcher, MatchKind};
use super::location_tree::BlockKind;
use super::template::has_variables;
use super::values::bytes;
use crate::directives::constants::*;
use crate::model::*;

pub(crate) const PROXY: DirectivePrefix = DirectivePrefix {
    prefix: "proxy",
    hidden: &[
        "date",
        "server",
        "x-pad",
        "x-accel-expires",
        "x-accel-redirect",
        "x-accel-limit-rate",
        "x-accel-buffering",
        "x-accel-charset",
    ],
    failures: NEXT_UPSTREAM,
};

/// Fields that only the server sets, because they must agree with the body that is sent.
const FRAMING_FIELDS: [&str; 2] = ["content-length", "transfer-encoding"];

/// Fields of the client's request that concern the client's connection only.
const NOT_PASSED: [&str; 4] = ["te", "keep-alive", "expect", "upgrade"];

/// The message of nginx.
const URI_OF_UNKNOWN_PREFIX: &str = "\"proxy_pass\" cannot have URI part in location given by regular expression, or inside named location, or inside \"if\" statement, or inside \"limit_except\" block";
/// The message of nginx.
const REDIRECT_OF_VARIABLES: &str =
    "\"proxy_redirect default\" cannot be used with \"proxy_pass\" directive with variables";

/// The URL of `proxy_pass`, divided into its parts.
struct PassUrl {
    is_tls: bool,
    target: PassTarget,
    uri: Option<String>,
    host: String,
    port: String,
}

impl PassUrl {
    /// The URL of a location that asks no upstream.
    fn nowhere() -> PassUrl {
        PassUrl {
            is_tls: false,
            target: PassTarget::Variable(Template::default()),
            uri: None,
            host: String::new(),
            port: String::new(),
        }
    }
}

impl Lowering<'_> {
    /// The proxy settings, if this level passes requests on. The values of this level are read in
    /// any case, so that mistakes are reported.
    pub fn proxy(
        &mut self,
        level: &Level<'_>,
        block: BlockKind,
        matcher: &LocationMatcher,
    ) -> Option<Pass> {
        if level.only_inherits(PROXY.prefix) {
            return None;
        }
        let node = level.own("proxy_pass").first().copied();
        let url = node.and_then(|node| self.pass_url(node.arg(0)));
        if let Some(PassUrl {
            target: PassTarget::Group(group),
            ..
        }) = &url
        {
            self.keep_connections(*group);
        }
        let purge = self.cache_purge(level, &PROXY);
        let exchange = self.exchange(level, &PROXY);
        let is_handled = url.is_some() && block != BlockKind::Http;
        let cache = self.cache_rules(level, &PROXY, &exchange, &purge, is_handled);
        let version = self.value(level, PROXY_HTTP_VERSION);
        let fields = self.set_fields(level, version);
        let method = self.optional_template(level, "proxy_method");
        let body = self.optional_template(level, "proxy_set_body");
        let redirects = self.redirects(level, node.map(|node| node.arg(0)), url.as_ref(), matcher);
        let cookie_domains = self.replacements(level, "proxy_cookie_domain", true);
        let cookie_paths = self.replacements(level, "proxy_cookie_path", false);
        let cookie_flags = self.cookie_flags(level);
        let tls = self.upstream_tls(level, url.as_ref().is_some_and(|url| url.is_tls));
        let tls_name = self
            .optional_template(level, "proxy_ssl_name")
            .unwrap_or_else(proxy_host);
        let pass_trailers = self.value(level, PROXY_PASS_TRAILERS);
        let url = match (url, &purge) {
            (Some(url), _) => url,
            // A location that only purges asks no upstream.
            (None, PurgeDirective::Handler { .. }) if block == BlockKind::Location => {
                PassUrl::nowhere()
            }
            _ => return None,
        };
        let uri = self.proxy_uri(&url, node.map(|node| node.arg(0)), block, matcher);
        Some(Pass {
            target: url.target,
            exchange,
            cache: cache.map(Arc::new),
            protocol: Protocol::Http(Box::new(Proxy {
                is_tls: url.is_tls,
                tls,
                tls_name,
                version,
                uri,
                host: bytes(&url.host),
                port: bytes(&url.port),
                fields,
                method,
                body,
                redirects,
                cookie_domains,
                cookie_paths,
                cookie_flags,
                pass_trailers,
            })),
        })
    }

    /// Returns how the path of the request is changed. If there is no fixed prefix to replace,
    /// `proxy_pass` must have no path of its own.
    fn proxy_uri(
        &mut self,
        url: &PassUrl,
        word: Option<&Word>,
        block: BlockKind,
        matcher: &LocationMatcher,
    ) -> ProxyUri {
        let uri = match (&url.target, &url.uri) {
            (PassTarget::Variable(_), _) if word.is_some() => return ProxyUri::OfTarget,
            (_, None) => return ProxyUri::Kept,
            (_, Some(uri)) => bytes(uri),
        };
        let is_clear = block == BlockKind::Location
            && !matches!(matcher.kind, MatchKind::Pattern | MatchKind::Named);
        if let Some(word) = word.filter(|_| !is_clear) {
            self.refuse(
                word.span,
                URI_OF_UNKNOWN_PREFIX,
                "there is no fixed prefix that this path could replace",
            );
        }
        ProxyUri::Replaces {
            uri,
            prefix_bytes: matcher.text.len(),
        }
    }

    /// `http://HOST[:PORT][URI]`, `http://unix:PATH[:URI]`, or either with variables.
    fn pass_url(&mut self, word: &Word) -> Option<PassUrl> {
        if has_variables(word) {
            return Some(PassUrl {
                is_tls: word.to_ascii_lowercase().starts_with("https://"),
                target: PassTarget::Variable(self.template(word)),
                uri: None,
                host: String::new(),
                port: String::new(),
            });
        }
        let lower = word.to_ascii_lowercase();
        let (is_tls, start) = if lower.starts_with("http://") {
            (false, "http://".len())
        } else if lower.starts_with("https://") {
            (true, "https://".len())
        } else {
            self.refuse(
                word.span,
                "invalid URL prefix",
                "expected http:// or https://",
            );
            return None;
        };
        let rest = word.get(start..).unwrap_or_default();
        let (address, uri) = split_uri(rest);
        let uri = uri.map(|uri| match uri.starts_with('?') {
            true => format!("/{uri}"),
            false => uri.to_owned(),
        });
        let named = |text: String| Word {
            text,
            ..word.clone()
        };
        if address.starts_with("unix:") {
            let group = self.group_of(&named(address.to_owned()))?;
            return Some(PassUrl {
                is_tls,
                target: PassTarget::Group(group),
                uri,
                host: "localhost".to_owned(),
                port: String::new(),
            });
        }
        let default_port = if is_tls { "443" } else { "80" };
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (address, None),
        };
        let group = if self.group_names.contains_key(address) {
            self.group_of(&named(address.to_owned()))?
        } else {
            let port = port.unwrap_or(default_port);
            self.group_of(&named(format!("{host}:{port}")))?
        };
        let shown = match port {
            Some(port) if port != default_port => address.to_owned(),
            _ => host.to_owned(),
        };
        Some(PassUrl {
            is_tls,
            target: PassTarget::Group(group),
            uri,
            host: shown,
            port: port.unwrap_or(default_port).to_owned(),
        })
    }

    /// The fields of `proxy_set_header`, and the defaults that it does not name.
    fn set_fields(&mut self, level: &Level<'_>, version: ProxyVersion) -> Vec<SetField> {
        let mut fields: Vec<SetField> = Vec::new();
        for node in level.all("proxy_set_header").to_vec() {
            let name = node.arg(0);
            let value = self.template(node.arg(1));
            if FRAMING_FIELDS.contains(&name.to_ascii_lowercase().as_str()) {
                continue;
            }
            fields.push(SetField {
                name: bytes(name),
                value,
            });
        }
        let is_named = |fields: &[SetField], name: &str| {
            fields
                .iter()
                .any(|field| field.name.eq_ignore_ascii_case(name.as_bytes()))
        };
        let add = |fields: &mut Vec<SetField>, name: &str, value: Template| {
            if !is_named(fields, name) {
                fields.push(SetField {
                    name: bytes(name),
                    value,
                });
            }
        };
        add(&mut fields, "Host", proxy_host());
        let connection = match version {
            ProxyVersion::Http10 => Template::literal("close"),
            // In HTTP/1.1 connections are kept without this field (RFC 9112 §9.3).
            ProxyVersion::Http11 => Template::default(),
        };
        add(&mut fields, "Connection", connection);
        for name in NOT_PASSED.iter().chain(&FRAMING_FIELDS) {
            add(&mut fields, name, Template::default());
        }
        fields
    }

    /// The lines of `proxy_redirect`. Without any, `default` holds.
    fn redirects(
        &mut self,
        level: &Level<'_>,
        pass: Option<&Word>,
        url: Option<&PassUrl>,
        matcher: &LocationMatcher,
    ) -> Vec<Replacement> {
        let nodes = level.all("proxy_redirect").to_vec();
        let default = default_redirect(pass, url, matcher);
        if nodes.is_empty() {
            return default.into_iter().collect();
        }
        let has_variables = url.is_some_and(|url| matches!(url.target, PassTarget::Variable(_)));
        let mut redirects = Vec::new();
        for node in nodes {
            match node.args() {
                [word] if word.text == "off" => return Vec::new(),
                [word] if word.text == "default" => {
                    if has_variables && !level.own("proxy_redirect").is_empty() {
                        self.refuse(
                            node.span(),
                            REDIRECT_OF_VARIABLES,
                            "the text to replace is not known before the request",
                        );
                    }
                    redirects.extend(default.clone());
                }
                [from, to] => redirects.extend(self.replacement(from, to, false)),
                _ => self.refuse(
                    node.span(),
                    "invalid \"proxy_redirect\"",
                    "expected default, off, or what to replace and its replacement",
                ),
            }
        }
        redirects
    }

    /// `proxy_cookie_domain` and `proxy_cookie_path`.
    fn replacements(&mut self, level: &Level<'_>, name: &str, is_domain: bool) -> Vec<Replacement> {
        let mut replacements = Vec::new();
        for node in level.all(name).to_vec() {
            match node.args() {
                [word] if word.text == "off" => return Vec::new(),
                [from, to] => replacements.extend(self.replacement(from, to, is_domain)),
                _ => self.refuse(
                    node.span(),
                    format!("invalid \"{name}\""),
                    "expected off, or what to replace and its replacement",
                ),
            }
        }
        replacements
    }

    fn replacement(&mut self, from: &Word, to: &Word, is_domain: bool) -> Option<Replacement> {
        let matching = self.matching(from, is_domain)?;
        let undotted = |word: &Word| Word {
            text: word.strip_prefix('.').unwrap_or(word).to_owned(),
            ..word.clone()
        };
        let replacement = match (&matching, is_domain) {
            (Matching::Text(_), true) => self.template(&undotted(to)),
            _ => self.template(to),
        };
        Some(Replacement {
            matching,
            replacement,
        })
    }

    /// A text, `~PATTERN` or `~*PATTERN`. In domains, case and a dot at the beginning do not
    /// count.
    fn matching(&mut self, word: &Word, is_domain: bool) -> Option<Matching> {
        if let Some(text) = word.strip_prefix("~*") {
            return self.pattern(word, text, true).map(Matching::Pattern);
        }
        if let Some(text) = word.strip_prefix('~') {
            return self.pattern(word, text, is_domain).map(Matching::Pattern);
        }
        let text = match is_domain {
            true => word.strip_prefix('.').unwrap_or(word),
            false => word.text.as_str(),
        };
        Some(Matching::Text(self.template_in(
            word,
            word.text.len() - text.len(),
            text,
        )))
    }

    fn cookie_flags(&mut self, level: &Level<'_>) -> Vec<CookieFlags> {
        let mut all = Vec::new();
        for node in level.all("proxy_cookie_flags").to_vec() {
            let Some((cookie, flags)) = node.args().split_first() else {
                continue;
            };
            if cookie.text == "off" && flags.is_empty() {
                return Vec::new();
            }
            for word in flags.iter().filter(|word| !has_variables(word)) {
                self.choice_of(
                    word,
                    &[
                        ("secure", ()),
                        ("nosecure", ()),
                        ("httponly", ()),
                        ("nohttponly", ()),
                        ("samesite", ()),
                        ("samesite=strict", ()),
                        ("samesite=lax", ()),
                        ("samesite=none", ()),
                        ("nosamesite", ()),
                    ],
                );
            }
            // Names of cookies are compared without case, patterns too.
            let Some(cookie) = self.matching(cookie, true) else {
                continue;
            };
            let flags = flags.iter().map(|word| self.template(word)).collect();
            all.push(CookieFlags { cookie, flags });
        }
        all
    }
}

/// `$proxy_host`
fn proxy_host() -> Template {
    Template {
        parts: vec![Part::Variable(Variable::Builtin(Builtin::ProxyHost))],
    }
}

/// The meaning of `proxy_redirect default`: the URL of `proxy_pass` is replaced by the path of the
/// location; `None` if the URL has variables.
fn default_redirect(
    pass: Option<&Word>,
    url: Option<&PassUrl>,
    matcher: &LocationMatcher,
) -> Option<Replacement> {
    let (word, url) = (pass?, url?);
    if matches!(url.target, PassTarget::Variable(_)) {
        return None;
    }
    let (from, to) = match url.uri {
        Some(_) => (word.text.clone(), matcher.text.as_str()),
        None => (format!("{word}/"), "/"),
    };
    Some(Replacement {
        matching: Matching::Text(Template::literal(&from)),
        replacement: Template::literal(to),
    })
}

/// Host and port, and the URI after them.
pub(crate) fn split_uri(rest: &str) -> (&str, Option<&str>) {
    if let Some(path) = rest.strip_prefix("unix:") {
        return match path.find(':') {
            Some(colon) => {
                let (address, uri) = rest.split_at("unix:".len() + colon);
                (address, uri.get(1..).filter(|uri| !uri.is_empty()))
            }
            None => (rest, None),
        };
    }
    match rest.find(['/', '?']) {
        Some(at) => {
            let (address, uri) = rest.split_at(at);
            (address, Some(uri))
        }
        None => (rest, None),
    }
}
