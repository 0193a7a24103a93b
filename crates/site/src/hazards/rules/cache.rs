//! Rules about stored responses and their keys.

use nginx_conf::{Directive, Word};

use super::super::hazard::HazardSink;
use super::super::tree::Block;
use super::super::values::{PREFIXES, names_any, variables};

/// The cache that holds in this block, by its prefix, if the block itself asks an upstream.
fn cache_of(block: Block<'_, '_>) -> Option<&'static str> {
    let passes = |prefix: &&&str| block.has(&format!("{prefix}_pass"));
    let prefix = PREFIXES.iter().find(passes)?;
    let zone = block.value(&format!("{prefix}_cache"))?;
    (zone.text != "off" && !block.value_is("cache_shared", "on")).then_some(*prefix)
}

/// Is something of the request, such as a cookie, a reason not to store?
fn has_no_cache(block: Block<'_, '_>, prefix: &str) -> bool {
    let conditions = block.effective(&format!("{prefix}_no_cache"));
    conditions
        .iter()
        .any(|it| it.args.iter().any(|word| word.contains('$')))
}

fn ignored<'a>(block: Block<'_, 'a>, prefix: &str, field: &str) -> Option<&'a Word> {
    let lines = block.effective(&format!("{prefix}_ignore_headers"));
    let mut words = lines.into_iter().flat_map(|line| &line.args);
    words.find(|word| word.eq_ignore_ascii_case(field))
}

pub(super) fn cache_stores_cookies(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let Some(prefix) = cache_of(block) else {
        return;
    };
    let Some(word) = ignored(block, prefix, "Set-Cookie") else {
        return;
    };
    let hidden = block.effective(&format!("{prefix}_hide_header"));
    let is_hidden = hidden.iter().any(|it| {
        it.args
            .iter()
            .any(|word| word.eq_ignore_ascii_case("set-cookie"))
    });
    if !has_no_cache(block, prefix) && !is_hidden {
        sink.say(
            word.span,
            format!("{prefix}_ignore_headers Set-Cookie, and no cookie is a reason not to store"),
            "cache_shared on; and leave Set-Cookie out of this line, or a *_no_cache for the cookies of those who log in",
        );
    }
}

pub(super) fn cache_stores_private(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let Some(prefix) = cache_of(block) else {
        return;
    };
    if let Some(word) = ignored(block, prefix, "Cache-Control")
        && !has_no_cache(block, prefix)
    {
        sink.say(
            word.span,
            format!(
                "{prefix}_ignore_headers Cache-Control, and no cookie is a reason not to store"
            ),
            "cache_shared on;  requests with personal cookies then bypass the cache",
        );
    }
}

/// Variables that say who asks.
fn is_of_visitor(name: &str) -> bool {
    let families = ["cookie_", "ssl_client_"];
    let names = ["http_cookie", "http_authorization", "remote_user"];
    families.iter().any(|family| name.starts_with(family)) || names.contains(&name)
}

/// How many directives that set a variable are followed.
const MAX_SETS: usize = 3;

/// Does the value depend on who asks: by itself, by `map` and `set`, or by an `if` around a `set`?
fn depends_on_visitor(block: Block<'_, '_>, text: &str) -> bool {
    let mut whole = text.to_owned();
    for _ in 0..MAX_SETS {
        if variables(&whole).any(is_of_visitor) {
            return true;
        }
        let mut next = with_sets(block, &whole);
        let levels = block.outwards().flat_map(|level| level.lines());
        for line in levels.filter(|line| line.name.text == "if") {
            let sets = line.block.iter().flatten().any(|inner| {
                let name = inner.args.first().map(|name| name.trim_start_matches('$'));
                inner.name.text == "set" && variables(&whole).any(|it| Some(it) == name)
            });
            if sets {
                next.extend(line.args.iter().map(|word| &*word.text));
            }
        }
        whole = next;
    }
    variables(&whole).any(is_of_visitor)
}

pub(super) fn leak(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let Some(prefix) = cache_of(block) else {
        return;
    };
    if block.value_is("cache_store_bypassed", "on") {
        return;
    }
    let no_cache = format!("{prefix}_no_cache");
    let kept = block.effective(&no_cache);
    let is_kept = |word: &Word| {
        kept.iter()
            .any(|it| it.args.iter().any(|kept| kept.text == word.text))
    };
    for line in block.effective(&format!("{prefix}_cache_bypass")) {
        for word in &line.args {
            if !is_kept(word) && depends_on_visitor(block, word) {
                sink.say(
                    word.span,
                    format!("{prefix}_cache_bypass {word} lets one visitor past the cache, and {no_cache} does not name it"),
                    format!("{no_cache} {word};  beside it"),
                );
            }
        }
    }
}

pub(super) fn purge_by_capture(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    for prefix in PREFIXES {
        for line in block.own(&format!("{prefix}_cache_purge")) {
            if let [zone, key] = line.args.as_slice()
                && variables(key).any(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
            {
                sink.say(
                    key.span,
                    format!("{prefix}_cache_purge {zone} {key}"),
                    "cache_purge_api;  it takes the URL of the page, and mayfly purge does",
                );
            }
        }
    }
}

pub(super) fn cache_ignores_vary(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let Some(prefix) = cache_of(block) else {
        return;
    };
    let key = block.value(&format!("{prefix}_cache_key"));
    if key.is_some_and(|key| key.contains("$http_")) {
        return;
    }
    if let Some(word) = ignored(block, prefix, "Vary") {
        let write = "leave Vary out of this line, or put what it names into the key";
        sink.say(word.span, format!("{prefix}_ignore_headers Vary"), write);
    }
}

/// The key that holds here, if it is written, with the values of `set` in it.
fn key_of<'a>(block: Block<'_, 'a>, prefix: &str) -> Option<(&'a Word, String)> {
    let key = block.value(&format!("{prefix}_cache_key"))?;
    Some((key, with_sets(block, &key.text)))
}

/// Returns the text with the values that `set` and the sources of maps of this configuration add to
/// its variables.
fn with_sets(block: Block<'_, '_>, text: &str) -> String {
    let mut whole = text.to_owned();
    for variable in variables(text) {
        for level in block.outwards() {
            for line in level.lines() {
                match (&*line.name.text, line.args.as_slice()) {
                    ("set", [name, value]) if name.trim_start_matches('$') == variable => {
                        whole.push_str(&value.text);
                    }
                    ("map", [source, name]) if name.trim_start_matches('$') == variable => {
                        whole.push_str(&source.text);
                    }
                    _ => {}
                }
            }
        }
    }
    whole
}

pub(super) fn key_without_host(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let Some(prefix) = cache_of(block) else {
        return;
    };
    let host = ["host", "http_host", "server_name", "ssl_server_name"];
    let sends_host = match prefix {
        "proxy" => block.effective("proxy_set_header").iter().any(|line| {
            matches!(line.args.as_slice(), [name, value]
                if name.eq_ignore_ascii_case("host") && names_any(value, &["host", "http_host"]))
        }),
        _ => !block.effective("fastcgi_param").iter().any(|line| {
            matches!(line.args.as_slice(), [name, value, ..]
                if name.text == "HTTP_HOST" && !value.contains('$'))
        }),
    };
    if !sends_host {
        return;
    }
    match key_of(block, prefix) {
        Some((word, key)) if !names_any(&key, &host) => sink.insert(
            word,
            0,
            "$host",
            format!("{prefix}_cache_key {word}"),
            format!("{prefix}_cache_key $host{word};"),
        ),
        // Nginx's default key names the upstream, not the host that the upstream is sent.
        None if prefix == "proxy" => {
            let pass = block
                .own("proxy_pass")
                .next()
                .and_then(|line| line.args.first());
            if let Some(word) = pass {
                sink.say(
                    word.span,
                    "proxy_cache without proxy_cache_key, and the upstream is told the visitor's host",
                    "proxy_cache_key $scheme$host$request_uri;",
                );
            }
        }
        _ => {}
    }
}

pub(super) fn key_without_scheme(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let Some(prefix) = cache_of(block) else {
        return;
    };
    let Some(server) = block.server() else { return };
    let is_tls = |line: &&Directive| {
        line.args
            .iter()
            .any(|word| ["ssl", "quic"].contains(&&*word.text))
    };
    let (tls, plain): (Vec<_>, Vec<_>) = server.own("listen").partition(is_tls);
    let scheme = ["scheme", "https", "server_port", "http_x_forwarded_proto"];
    if tls.is_empty() || plain.is_empty() {
        return;
    }
    if let Some((word, key)) = key_of(block, prefix)
        && !names_any(&key, &scheme)
    {
        sink.insert(
            word,
            0,
            "$scheme",
            format!("{prefix}_cache_key {word}, and the server listens with and without TLS"),
            format!("{prefix}_cache_key $scheme{word};"),
        );
    }
}

pub(super) fn key_without_method(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let Some(prefix) = cache_of(block) else {
        return;
    };
    let methods = block.effective(&format!("{prefix}_cache_methods"));
    let stores_post = methods
        .iter()
        .any(|it| it.args.iter().any(|word| word.text == "POST"));
    if !stores_post && !block.value_is(&format!("{prefix}_cache_convert_head"), "off") {
        return;
    }
    if let Some((word, key)) = key_of(block, prefix)
        && !names_any(&key, &["request_method", "request"])
    {
        let reason = if stores_post {
            "POST is stored"
        } else {
            "HEAD is passed on"
        };
        sink.insert(
            word,
            0,
            "$request_method",
            format!("{prefix}_cache_key {word}, and {reason}"),
            format!("{prefix}_cache_key $request_method{word};"),
        );
    }
}
