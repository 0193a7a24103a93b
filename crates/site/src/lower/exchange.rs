//! Lowers the settings that all protocols towards upstreams share: timeouts, buffers, retries,
//! fields.
//!
//! One function reads all prefixes: `fastcgi_read_timeout` and `proxy_read_timeout` are the
//! same setting.

use nginx_conf::Diagnostic;

use super::Lowering;
use super::cache_tags::{speaks_litespeed, tag_rules};
use super::level::Level;
use super::template::has_variables;
use super::values::{FlagWord, bytes, lower_bytes, to_usize};
use crate::check::Node;
use crate::directives::constants::*;
use crate::model::*;

/// A path that is asked for again and again is no longer, as in `X-Cache-Repeat`.
const MAX_REPEATED_BYTES: usize = 1024;

/// The prefix of a protocol's directives, and the response fields that it never sends on.
pub(crate) struct DirectivePrefix {
    pub prefix: &'static str,
    /// Response fields that are for the server only.
    pub hidden: &'static [&'static str],
    /// The words of its `*_next_upstream`.
    pub failures: &'static [FailureWord],
}

pub(crate) type FailureWord = FlagWord<Failures>;

/// The words of `*_ignore_headers`.
const IGNORED_FIELDS: [FlagWord<IgnoredFields>; 9] = [
    ("X-Accel-Redirect", |it| &mut it.x_accel_redirect),
    ("X-Accel-Expires", |it| &mut it.x_accel_expires),
    ("X-Accel-Limit-Rate", |it| &mut it.x_accel_limit_rate),
    ("X-Accel-Buffering", |it| &mut it.x_accel_buffering),
    ("X-Accel-Charset", |it| &mut it.x_accel_charset),
    ("Expires", |it| &mut it.expires),
    ("Cache-Control", |it| &mut it.cache_control),
    ("Set-Cookie", |it| &mut it.set_cookie),
    ("Vary", |it| &mut it.vary),
];

/// After these, another server is asked.
pub(crate) const NEXT_UPSTREAM: &[FailureWord] =
    &failure_words("non_idempotent", |it| &mut it.non_idempotent);
/// After these, or beside an update, a stale response is served.
pub(crate) const USE_STALE: &[FailureWord] = &failure_words("updating", |it| &mut it.updating);

/// Returns the words that both directives have, and one more.
const fn failure_words(
    more: &'static str,
    field: fn(&mut Failures) -> &mut bool,
) -> [FailureWord; 11] {
    [
        ("error", |it| &mut it.error),
        ("timeout", |it| &mut it.timeout),
        ("invalid_header", |it| &mut it.invalid_header),
        ("http_500", |it| &mut it.http_500),
        ("http_502", |it| &mut it.http_502),
        ("http_503", |it| &mut it.http_503),
        ("http_504", |it| &mut it.http_504),
        ("http_403", |it| &mut it.http_403),
        ("http_404", |it| &mut it.http_404),
        ("http_429", |it| &mut it.http_429),
        (more, field),
    ]
}

impl DirectivePrefix {
    /// The directive's whole name: `_cache_valid` is `fastcgi_cache_valid`.
    pub fn name(&self, rest: &str) -> String {
        format!("{}{rest}", self.prefix)
    }
}

impl Lowering<'_> {
    pub fn exchange(&mut self, level: &Level<'_>, protocol: &DirectivePrefix) -> Exchange {
        let name = |rest: &str| protocol.name(rest);
        let passed = passed_fields(level, protocol);
        let passes = |name: &str| passed.iter().any(|it| it.as_ref() == name.as_bytes());
        let (count, size) = self.buffers(level, BUFFERS.of(protocol.prefix));
        let failed = Failures {
            error: true,
            timeout: true,
            ..Failures::default()
        };
        let temp_path = level
            .word(&name("_temp_path"))
            .map(|word| word.text.clone());
        Exchange {
            bind: self.bind(level, &name("_bind")),
            socket_keepalive: self.value(level, SOCKET_KEEPALIVE.of(protocol.prefix)),
            connect_timeout: self.value(level, CONNECT_TIMEOUT.of(protocol.prefix)),
            send_timeout: self.value(level, UPSTREAM_SEND_TIMEOUT.of(protocol.prefix)),
            read_timeout: self.value(level, READ_TIMEOUT.of(protocol.prefix)),
            buffering: self.value(level, BUFFERING.of(protocol.prefix)),
            head_bytes: self.value(level, BUFFER_SIZE.of(protocol.prefix)),
            buffer_bytes: count.saturating_mul(size),
            max_temp_file_bytes: self.value(level, MAX_TEMP_FILE_SIZE.of(protocol.prefix)),
            temp_path: self
                .own_files
                .state
                .join(temp_path.unwrap_or_else(|| format!("{}_temp", protocol.prefix))),
            request_buffering: self.value(level, REQUEST_BUFFERING.of(protocol.prefix)),
            ignore_client_abort: self.value(level, IGNORE_CLIENT_ABORT.of(protocol.prefix)),
            intercept_errors: self.value(level, INTERCEPT_ERRORS.of(protocol.prefix)),
            pass_request_headers: self.value(level, PASS_REQUEST_HEADERS.of(protocol.prefix)),
            pass_request_body: self.value(level, PASS_REQUEST_BODY.of(protocol.prefix)),
            limit_rate: self
                .optional_template(level, &name("_limit_rate"))
                .unwrap_or_default(),
            force_ranges: self.value(level, FORCE_RANGES.of(protocol.prefix)),
            next_upstream: self
                .flags(level, &name("_next_upstream"), protocol.failures, true)
                .unwrap_or(failed),
            next_tries: to_usize(self.value(level, NEXT_UPSTREAM_TRIES.of(protocol.prefix))),
            next_timeout: self.value(level, NEXT_UPSTREAM_TIMEOUT.of(protocol.prefix)),
            passes_date: passes("date"),
            passes_server: passes("server"),
            hidden_fields: hidden_fields(level, protocol),
            purge_fields: match level.find("cache_purge_fields") {
                Some(node) => Some(node.arg(0).text == "on"),
                // Purges are a part of the protocol.
                None => speaks_litespeed(level).then_some(true),
            },
            repeat: self.repeat(level),
            litespeed: speaks_litespeed(level),
            ignored_fields: self
                .flags(level, &name("_ignore_headers"), &IGNORED_FIELDS, false)
                .unwrap_or_default(),
            file_copy: self.file_copy(level, protocol),
        }
    }

    /// `cache_repeat`
    fn repeat(&mut self, level: &Level<'_>) -> Option<RepeatedRequest> {
        let node = level.find("cache_repeat")?;
        let [target, every] = node.args() else {
            if node.arg(0).text != "off" {
                self.invalid(node.arg(0), "value", "a path and a time, or off");
            }
            return None;
        };
        if !target.text.starts_with('/') || target.text.len() > MAX_REPEATED_BYTES {
            self.invalid(
                target,
                "path",
                "it begins with / and has at most 1024 bytes",
            );
            return None;
        }
        Some(RepeatedRequest {
            target: target.text.clone(),
            every: self.duration_of(every)?,
        })
    }

    /// `*_bind`
    fn bind(&mut self, level: &Level<'_>, name: &str) -> Option<Bind> {
        let node = level.find(name)?;
        let word = node.arg(0);
        match node.args() {
            [word] if word.text == "off" => return None,
            [_, second, ..] if second.text == "transparent" => {
                self.report(
                    Diagnostic::error(second.span, format!("\"{name}\" cannot be transparent"))
                        .label("needs a privilege that workers do not have")
                        .hint("send the client's address to the upstream in a field, such as `X-Real-IP`"),
                );
                return None;
            }
            [_, second, ..] => {
                let message = format!("invalid parameter \"{second}\" of \"{name}\"");
                self.refuse(second.span, message, "expected the address alone");
                return None;
            }
            _ => {}
        }
        if has_variables(&word.text) {
            return Some(Bind::Named(self.template(word)));
        }
        let address = Bind::parse(&word.text);
        if address.is_none() {
            self.refuse(
                word.span,
                format!("invalid address \"{word}\""),
                "expected off, or an IP address with or without :PORT",
            );
        }
        address.map(Bind::To)
    }
}

/// Fields by which a response asks for a purge, or for requests.
const PURGE_FIELDS: [&str; 5] = [
    "x-cache-purge-tags",
    "x-litespeed-purge",
    "x-litespeed-purge2",
    "cache-group-invalidation",
    "x-cache-repeat",
];

/// Further response fields for LiteSpeed's cache.
const LITESPEED_FIELDS: [&str; 4] = [
    "x-litespeed-cache-control",
    "x-litespeed-tag",
    "x-litespeed-vary",
    "lsc-cookie",
];

fn is_date(node: &&Node<'_>) -> bool {
    node.arg(0).eq_ignore_ascii_case("date")
}

/// The fields that the protocol hides, with `*_hide_header`, without `*_pass_header`.
fn hidden_fields(level: &Level<'_>, protocol: &DirectivePrefix) -> FieldNames {
    let passed = passed_fields(level, protocol);
    let mut hidden: Vec<Box<[u8]>> = protocol.hidden.iter().map(|name| bytes(name)).collect();
    for node in level.all(&protocol.name("_hide_header")) {
        let name = lower_bytes(node.arg(0));
        if !hidden.contains(&name) {
            hidden.push(name);
        }
    }
    // Fields for the cache are hidden from clients, whether or not the cache obeys them.
    hidden.extend(PURGE_FIELDS.iter().map(|name| bytes(name)));
    if speaks_litespeed(level) {
        hidden.extend(LITESPEED_FIELDS.iter().map(|name| bytes(name)));
    }
    let is_cached = level
        .word(&protocol.name("_cache"))
        .is_some_and(|word| word.text != "off");
    if is_cached
        && !level
            .all(&protocol.name("_hide_header"))
            .iter()
            .any(is_date)
    {
        // RFC 9111 §5.1: the age of a response is counted from it.
        hidden.retain(|name| name.as_ref() != b"date");
    }
    if is_cached && let Some(tags) = tag_rules(level).filter(|tags| !tags.are_sent) {
        for field in &tags.fields {
            let name = bytes(&field.name);
            if !hidden.contains(&name) {
                hidden.push(name);
            }
        }
    }
    hidden.retain(|name| !passed.contains(name));
    hidden.into_iter().collect()
}

fn passed_fields(level: &Level<'_>, protocol: &DirectivePrefix) -> Vec<Box<[u8]>> {
    level
        .all(&protocol.name("_pass_header"))
        .iter()
        .map(|node| lower_bytes(node.arg(0)))
        .collect()
}
