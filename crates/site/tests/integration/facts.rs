//! Shows a `Site` as text for golden files: one line for each fact that differs from an empty
//! server, and for a location, from its server.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use site::{Content, Location, Locations, Pass, Protocol, Server, Settings, Site};

/// Texts instead of bytes, templates as they are written.
fn readable(debug: &str) -> String {
    flags(&templates(&byte_texts(debug)))
}

/// Shows structs of flags by the flags that are set.
fn flags(debug: &str) -> String {
    let mut out = debug.to_owned();
    for name in [
        "Failures",
        "IgnoredFields",
        "CacheMethods",
        "GzipProxied",
        "ListenOptions",
    ] {
        let open = format!("{name} {{ ");
        let mut from = 0;
        while let Some(at) = out[from..].find(&open).map(|at| at + from) {
            let start = at + open.len();
            let Some(end) = out[start..].find(" }").map(|end| end + start) else {
                break;
            };
            let set: Vec<&str> = out[start..end]
                .split(", ")
                .filter(|it| !it.ends_with(": false") && !it.ends_with(": None"))
                .map(|it| it.trim_end_matches(": true"))
                .collect();
            let shown = format!("{name}({})", set.join(", "));
            out.replace_range(at..end + 2, &shown);
            from = at + shown.len();
        }
    }
    out
}

/// `[47, 97]` is `"/a"` where all are printable.
fn byte_texts(debug: &str) -> String {
    let mut out = String::new();
    let mut rest = debug;
    while let Some(open) = rest.find('[') {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        let inner = from[1..].split(']').next().unwrap_or_default();
        let bytes: Option<Vec<u8>> = inner.split(", ").map(|it| it.parse().ok()).collect();
        match bytes.filter(|bytes| bytes.iter().all(|it| (32..127).contains(it))) {
            Some(bytes) => {
                write!(out, "{:?}", String::from_utf8_lossy(&bytes)).unwrap();
                rest = &from[inner.len() + 2..];
            }
            None => {
                out.push('[');
                rest = &from[1..];
            }
        }
    }
    out + rest
}

/// `Template { parts: [Literal("/"), Variable(Builtin(Uri))] }` is `</$Uri>`.
fn templates(debug: &str) -> String {
    const OPEN: &str = "Template { parts: [";
    let mut out = String::new();
    let mut rest = debug;
    while let Some(at) = rest.find(OPEN) {
        out.push_str(&rest[..at]);
        rest = &rest[at + OPEN.len()..];
        let end = rest.find("] }").unwrap_or(rest.len());
        out.push('<');
        for part in rest[..end].split("), ") {
            let part = part.trim_end_matches(')');
            match (
                part.strip_prefix("Literal(\""),
                part.strip_prefix("Variable("),
            ) {
                (Some(text), _) => {
                    let text = text.strip_suffix('"').unwrap_or(text);
                    out.push_str(&text.replace("\\\"", "\""));
                }
                (_, Some(name)) => write!(out, "${{{}}}", name.replace('(', " ")).unwrap(),
                _ => out.push_str(part),
            }
        }
        out.push('>');
        rest = rest.get(end + 3..).unwrap_or_default();
    }
    out + rest
}

macro_rules! fields {
    ($of:expr, $path:ident: $($name:ident),*) => {
        vec![$((
            concat!(stringify!($path), ".", stringify!($name)).to_owned(),
            readable(&format!("{:?}", $of.$path.$name)),
        )),*]
    };
    ($of:expr; $($name:ident),*) => {
        vec![$((stringify!($name).to_owned(), readable(&format!("{:?}", $of.$name)))),*]
    };
}

fn facts_of(settings: &Settings) -> Vec<(String, String)> {
    let mut facts = match &settings.content {
        Content::Pass(pass) => pass_facts(pass),
        other => vec![("content".to_owned(), format!("{other:?}"))],
    };
    facts.extend(
        fields!(settings; access, auth, satisfy, early_hints, error_pages,
        recursive_error_pages, access_logs, open_log_file_cache, error_logs, log_not_found,
        log_subrequests, limit_rate, limit_rate_after, real_ip, names, valid_referers,
        auth_request, mirror, otel, slice_bytes),
    );
    facts.extend(
        fields!(settings, files: root, index, try_files, default_type, etag,
        if_modified_since, max_ranges, autoindex, open_file_cache, sendfile, disable_symlinks),
    );
    let types: BTreeMap<String, String> = settings
        .files
        .types
        .iter()
        .map(|(key, value)| (text(key), text(value)))
        .collect();
    facts.push(("files.types".to_owned(), format!("{types:?}")));
    facts.extend(
        fields!(settings, body: max_bytes, buffer_bytes, timeout, temp_path,
        in_file_only),
    );
    facts.extend(
        fields!(settings, connection: keepalive_timeout, keepalive_min_timeout, keepalive_header,
        keepalive_requests, keepalive_time, disable_msie6, disable_safari, send_timeout,
        lingering_close, lingering_time, lingering_timeout, http2_chunk_bytes, reset_timedout,
        chunked_transfer_encoding),
    );
    facts.extend(
        fields!(settings, headers: edits, add, trailers, expires, server_tokens, cache_status),
    );
    facts.extend(
        fields!(settings, limits: requests, on_requests, connections, on_connections,
        auth_delay),
    );
    facts.extend(fields!(settings, redirects: absolute, port, server_name));
    facts.extend(
        fields!(settings, compression: brotli, zstd, gzip, gzip_http_minor, gzip_vary,
        gzip_proxied, gzip_disable, gunzip),
    );
    facts.extend(fields!(settings, charset: charset, overrides, types));
    facts
}

fn pass_facts(pass: &Pass) -> Vec<(String, String)> {
    let mut facts = fields!(pass; target);
    facts.extend(match &pass.protocol {
        Protocol::FastCgi(fastcgi) => {
            fields!(fastcgi; params, index, split_path_info, keep_conn, catch_stderr)
        }
        Protocol::Http(proxy) => {
            fields!(proxy; is_tls, tls, tls_name, version, uri, host, port, fields, method,
            body, redirects, cookie_domains, cookie_paths, cookie_flags, pass_trailers)
        }
        Protocol::Memcached(memcached) => fields!(memcached; key, gzip_flags),
    });
    facts.extend(
        fields!(pass, exchange: connect_timeout, send_timeout, read_timeout,
        buffering, head_bytes, buffer_bytes, max_temp_file_bytes, temp_path, request_buffering,
        ignore_client_abort, intercept_errors, pass_request_headers, pass_request_body,
        limit_rate, force_ranges, bind, socket_keepalive, next_upstream, next_tries, next_timeout,
        hidden_fields, ignored_fields, file_copy),
    );
    if let Some(cache) = &pass.cache {
        facts.extend(
            fields!(cache; zone, key, valid, methods, min_uses, bypass, no_cache, use_stale, lock,
                lock_timeout, lock_age, background_update, revalidation, max_range_offset,
                convert_head, purge, purges_everything, read_your_writes, private, ignored_arguments,
                ignored_cookies, stores_set_cookie, stores_authorized, queue_stale, stale)
            .into_iter()
            .map(|(name, value)| (format!("cache.{name}"), value)),
        );
    }
    facts
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the facts about a site that differ from a plain one.
pub fn facts(site: &Site, plain: &Site) -> String {
    let mut out = String::new();
    let process = fields!(site.process; daemon, user, workers, pid_file, control_socket, env, open_files_limit,
        error_logs, shutdown_timeout, php_pools);
    let unset = fields!(plain.process; daemon, user, workers, pid_file, control_socket, env, open_files_limit,
        error_logs, shutdown_timeout, php_pools);
    differing(&mut out, "", &process, &unset);
    let http = fields!(site.http; geos, split_clients, slots, groups, resolvers, matches,
        cache_zones, purge_again, limit_req_zones, limit_conn_zones, server_tls, otel_exporter, http2_receive_buffer_bytes);
    let unset = fields!(plain.http; geos, split_clients, slots, groups, resolvers, matches,
        cache_zones, purge_again, limit_req_zones, limit_conn_zones, server_tls, otel_exporter, http2_receive_buffer_bytes);
    differing(&mut out, "", &http, &unset);
    for check in &site.http.health_checks {
        let shown = fields!(check; group, interval, jitter, fails, passes, uri, mandatory,
            persistent, matching, port, keepalive_time);
        let shown: Vec<String> = shown
            .iter()
            .map(|(name, it)| format!("{name}: {it}"))
            .collect();
        line(&mut out, "", "health_check", &shown.join(", "));
    }
    shared_facts(&mut out, site);
    let defaults: Vec<_> = plain.http.servers[0]
        .locations
        .iter()
        .flat_map(|location| facts_of(&location.settings))
        .collect();
    for (index, server) in site.http.servers.iter().enumerate() {
        writeln!(out, "server {index} {:?}", server.name).unwrap();
        server_facts(&mut out, server, &plain.http.servers[0], &defaults);
    }
    out
}

fn shared_facts(out: &mut String, site: &Site) {
    for format in &site.http.log_formats[1..] {
        line(out, "", "log_format", &format!("{format:?}"));
    }
    for map in &site.http.maps {
        let exact: BTreeMap<_, _> = map
            .exact
            .iter()
            .map(|(key, value)| (text(key), value))
            .collect();
        let shown = format!(
            "source {:?} volatile {} exact {exact:?} leading {:?} trailing {:?} patterns {:?} default {:?}",
            map.source,
            map.volatile,
            map.leading_wildcard,
            map.trailing_wildcard,
            map.patterns,
            map.default
        );
        line(out, "", "map", &shown);
    }
    for listener in &site.http.listeners {
        let names = &listener.names;
        let exact: BTreeMap<_, _> = names
            .exact
            .iter()
            .map(|(key, id)| (text(key), id.0))
            .collect();
        let shown = format!(
            "{:?} default {} exact {exact:?} leading {:?} trailing {:?} patterns {:?} {:?}",
            listener.address,
            listener.default_server.0,
            names.leading_wildcard,
            names.trailing_wildcard,
            names.patterns,
            listener.options
        );
        line(out, "", "listener", &shown);
    }
}

fn server_facts(out: &mut String, server: &Server, plain: &Server, defaults: &[(String, String)]) {
    if server.head != plain.head {
        line(out, "  ", "head", &format!("{:?}", server.head));
    }
    if let Some(tls) = server.tls {
        line(out, "  ", "tls", &format!("{}", tls.0));
    }
    if server.http2 != plain.http2 {
        line(out, "  ", "http2", &format!("{:?}", server.http2));
    }
    if !server.merge_slashes {
        line(out, "  ", "merge_slashes", "false");
    }
    for op in &server.rewrite {
        line(out, "  ", "rewrite", &format!("{op:?}"));
    }
    tree(out, "  ", &server.top);
    let mut known = defaults.to_vec();
    for (id, location) in server.locations.iter().enumerate() {
        write!(out, "  location {id} {:?}", location.name).unwrap();
        let facts = location_facts(out, location, &known);
        if id == 0 {
            // A location shows only the settings that differ from its server's.
            known.splice(0..0, facts);
        }
    }
}

/// Shows a location without the `known` facts, and returns its facts.
fn location_facts(
    out: &mut String,
    location: &Location,
    known: &[(String, String)],
) -> Vec<(String, String)> {
    for (flag, word) in [
        (location.internal, "internal"),
        (location.named, "named"),
        (location.auto_redirect, "auto_redirect"),
        (location.is_pattern, "pattern"),
    ] {
        if flag {
            write!(out, " {word}").unwrap();
        }
    }
    writeln!(out, " prefix {:?}", location.prefix_bytes).unwrap();
    if let Some(limit) = &location.limit_except {
        line(out, "    ", "limit_except", &format!("{limit:?}"));
    }
    for op in &location.rewrite {
        line(out, "    ", "rewrite", &format!("{op:?}"));
    }
    tree(out, "    ", &location.inner);
    let facts = facts_of(&location.settings);
    differing(out, "    ", &facts, known);
    facts
}

fn tree(out: &mut String, indent: &str, level: &Locations) {
    let exact: BTreeMap<_, _> = level
        .exact
        .iter()
        .map(|(key, id)| (text(key), id.0))
        .collect();
    let named: BTreeMap<_, _> = level
        .named
        .iter()
        .map(|(key, id)| (text(key), id.0))
        .collect();
    let prefixes: Vec<_> = level
        .prefixes
        .iter()
        .map(|it| {
            format!(
                "{}{} {}",
                if it.skips_patterns { "^~ " } else { "" },
                text(&it.prefix),
                it.location.0
            )
        })
        .collect();
    let patterns: Vec<_> = level
        .patterns
        .iter()
        .map(|(pattern, id)| format!("{} {}", pattern.source, id.0))
        .collect();
    for (name, shown) in [
        ("exact", (!exact.is_empty()).then(|| format!("{exact:?}"))),
        (
            "prefixes",
            (!prefixes.is_empty()).then(|| prefixes.join(", ")),
        ),
        (
            "patterns",
            (!patterns.is_empty()).then(|| patterns.join(", ")),
        ),
        ("named", (!named.is_empty()).then(|| format!("{named:?}"))),
    ] {
        if let Some(shown) = shown {
            line(out, indent, name, &shown);
        }
    }
}

fn differing(
    out: &mut String,
    indent: &str,
    facts: &[(String, String)],
    plain: &[(String, String)],
) {
    for (name, value) in facts {
        let default = plain.iter().find(|(known, _)| known == name);
        if default.is_none_or(|(_, default)| value != default) {
            line(out, indent, name, value);
        }
    }
}

fn line(out: &mut String, indent: &str, name: &str, value: &str) {
    writeln!(out, "{indent}{name}: {}", readable(value)).unwrap();
}
