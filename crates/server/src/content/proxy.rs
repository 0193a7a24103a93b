//! Requests in HTTP's terms: their server, request line, fields and framing, following
//! `proxy_*`; and the response fields that are rewritten on their way back
//! (`proxy_redirect`, `proxy_cookie_*`).
//!
//! Whatever a client or a variable brings, a head is one request: line breaks
//! become spaces, and the framing fields are those of the body that is sent.

mod rewriting;

use bytes::Bytes;
use cache_decision::litespeed;
use http_client::BodyFraming;
use http_semantics::{Version, escape, has_member, same_name};
use site::{Builtin as B, Exchange, LogLevel, PassTarget, Proxy, ProxyUri, ProxyVersion};
use transport::request_body::RequestBody;

use crate::content::pass::fetch_purpose::{ESI_CAPABILITY, FetchPurpose};
use crate::content::pass::loop_detection;
use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::request::Request;
use crate::exchange::request_fields::put_field as put_request_field;
use crate::exchange::request_route::ProxyUrl;
use crate::exchange::request_route::{RequestRoute, TargetOrigin};
use crate::exchange::tracing::TraceFields;
use crate::exchange::value::put_address;
use crate::exchange::variable;
use crate::exchange::variable_table::Value::Request as Of;
use crate::exchange::variable_table::Variables;
use crate::log::error_log;
use upstream_fetch::HttpRequest;

pub use rewriting::rewrite_fields;

pub const VARIABLES: Variables = &[
    (B::ProxyAddXForwardedFor, Of(put_forwarded_for)),
    (
        B::ProxyHost,
        Of(|request, out| put_host(request, false, out)),
    ),
    (
        B::ProxyPort,
        Of(|request, out| put_host(request, true, out)),
    ),
];

/// Returns the URL that a `proxy_pass` with variables stands for. Asked once, before anything asks for
/// `$proxy_host`.
pub fn url(request: &Request, target: &PassTarget, proxy: &Proxy) -> Option<Box<ProxyUrl>> {
    let PassTarget::Variable(template) = target else {
        return None;
    };
    let text = variable::evaluate(request, template);
    let text = String::from_utf8_lossy(&text).into_owned();
    let Some(mut url) = parse_url(&text, proxy.is_tls) else {
        let message = format_args!("invalid URL prefix in \"{text}\"");
        error_log::request(request, LogLevel::Error, message);
        return None;
    };
    let has_group = |name: &str| request.configuration.live.groups.named(name).is_some();
    // A group is named without a port; an address needs one.
    if !url.group.starts_with("unix:") && !has_group(&url.group) && !names_port(&url.group) {
        url.group = format!("{}:{}", url.group, String::from_utf8_lossy(&url.port));
    }
    Some(Box::new(url))
}

fn names_port(address: &str) -> bool {
    address
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.contains(']'))
}

fn parse_url(text: &str, is_tls: bool) -> Option<ProxyUrl> {
    let scheme = if is_tls { "https://" } else { "http://" };
    let (start, rest) = text.split_at_checked(scheme.len())?;
    if !start.eq_ignore_ascii_case(scheme) {
        return None;
    }
    let default_port = if is_tls { "443" } else { "80" };
    if let Some(path) = rest.strip_prefix("unix:") {
        let (path, uri) = match path.split_once(':') {
            Some((path, uri)) => (path, Some(uri).filter(|uri| !uri.is_empty())),
            None => (path, None),
        };
        return Some(ProxyUrl {
            group: format!("unix:{path}"),
            host: b"localhost".to_vec(),
            port: Vec::new(),
            uri: uri.map(rooted),
        });
    }
    let (address, uri) = match rest.find(['/', '?']) {
        Some(at) => (rest.get(..at)?, rest.get(at..)),
        None => (rest, None),
    };
    if address.is_empty() {
        return None;
    }
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if names_port(address) => (host, port),
        _ => (address, default_port),
    };
    let shown = if port == default_port { host } else { address };
    Some(ProxyUrl {
        group: address.to_owned(),
        host: shown.as_bytes().to_vec(),
        port: port.as_bytes().to_vec(),
        uri: uri.map(rooted),
    })
}

/// Arguments alone belong to the root.
fn rooted(uri: &str) -> Vec<u8> {
    match uri.starts_with('?') {
        true => format!("/{uri}").into_bytes(),
        false => uri.as_bytes().to_vec(),
    }
}

/// `$proxy_host` or `$proxy_port`.
fn put_host(request: &Request, wants_port: bool, out: &mut Vec<u8>) -> bool {
    if let Some(url) = &request.route.proxy_url {
        out.extend_from_slice(if wants_port { &url.port } else { &url.host });
        return true;
    }
    let site::Content::Pass(pass) = &request.settings().content else {
        return false;
    };
    let Some(proxy) = pass.proxy() else {
        return false;
    };
    out.extend_from_slice(if wants_port { &proxy.port } else { &proxy.host });
    true
}

/// X-Forwarded-For as the client sent it, with the client's address behind it.
fn put_forwarded_for(request: &Request, out: &mut Vec<u8>) -> bool {
    if put_request_field(request, b"x_forwarded_for", out) {
        out.extend_from_slice(b", ");
    }
    put_address(request.received.client(), out)
}

/// A rendered request, and the body where `proxy_set_body` gives one.
pub struct ProxiedRequest {
    pub request: HttpRequest,
    pub body: Option<Bytes>,
    pub is_head: bool,
}

/// Puts a request together.
pub fn render(
    request: &Request,
    proxy: &Proxy,
    exchange: &Exchange,
    purpose: &FetchPurpose<'_>,
) -> ProxiedRequest {
    let body = proxy
        .body
        .as_ref()
        .map(|body| Bytes::from(variable::evaluate(request, body)));
    let framing = match &body {
        Some(body) => BodyFraming::Length(body.len() as u64),
        None => framing(request, exchange),
    };
    let mut head = Vec::with_capacity(1024);
    put_method(request, proxy, &mut head);
    let is_head = head.eq_ignore_ascii_case(b"HEAD");
    head.push(b' ');
    let target_start = head.len();
    put_target(request, proxy, &mut head);
    keep_on_one_line(&mut head, target_start);
    let target = target_start..head.len();
    head.extend_from_slice(match proxy.version {
        ProxyVersion::Http10 => b" HTTP/1.0\r\n",
        ProxyVersion::Http11 => b" HTTP/1.1\r\n",
    });
    let options = put_set_fields(request, proxy, &mut head);
    put_framing(&request.received, framing, &mut head);
    if let Some(stored) = purpose.validating {
        if let Some(value) = stored.last_modified() {
            put_field(b"If-Modified-Since", value, &mut head);
        }
        if let Some(value) = stored.etag() {
            put_field(b"If-None-Match", value, &mut head);
        }
    }
    if exchange.litespeed {
        put_field(
            b"X-LSCACHE",
            litespeed::announcement(request.settings().esi.is_on()),
            &mut head,
        );
        if let Some(value) = purpose.vary_value {
            put_field(b"X-LSCACHE-VARY-VALUE", value.as_bytes(), &mut head);
        }
    }
    if let Some(trace) = purpose.trace {
        put_trace(proxy, trace, &mut head);
    }
    if loop_detection::is_to_be_named(request) {
        let name = loop_detection::own_name();
        put_field(loop_detection::FIELD.as_bytes(), name, &mut head);
    }
    if exchange.pass_request_headers {
        put_client_fields(request, proxy, (exchange, purpose), &mut head);
    }
    head.extend_from_slice(b"\r\n");
    let keep_alive = match proxy.version {
        ProxyVersion::Http10 => options.keep_alive,
        ProxyVersion::Http11 => !options.close,
    };
    ProxiedRequest {
        request: HttpRequest {
            head: head.into(),
            target,
            framing,
            keep_alive,
            allow_upgrade: options.upgrade && !purpose.for_cache && asks_upgrade(request),
        },
        body,
        is_head,
    }
}

/// Does the client ask for another protocol (RFC 9110 §7.8)? Without the connection option the
/// field was meant for a server before us, which has not taken it off.
fn asks_upgrade(request: &Request) -> bool {
    !request.route.is_subrequest()
        && request.received.head().version() >= Version::Http11
        && request.received.head().field("upgrade").is_some()
        && has_member(request.received.head().field_all(b"connection"), b"upgrade")
}

/// Does the client ask for another protocol, and will the upstream hear of it? What comes
/// of that is a tunnel for this client.
pub fn passes_upgrade(request: &Request, proxy: &Proxy) -> bool {
    asks_upgrade(request)
        && proxy.fields.iter().any(|field| {
            same_name(&field.name, b"upgrade")
                && !variable::evaluate(request, &field.value).is_empty()
        })
}

/// The connection options among the fields sent.
// Large: three options of one list, of which any may be there.
#[derive(Default)]
struct ConnectionOptions {
    close: bool,
    keep_alive: bool,
    upgrade: bool,
}

fn put_set_fields(request: &Request, proxy: &Proxy, head: &mut Vec<u8>) -> ConnectionOptions {
    let mut options = ConnectionOptions::default();
    for field in &proxy.fields {
        if field.value.is_empty() {
            continue;
        }
        let start = head.len();
        put_on_one_line(&field.name, head);
        head.extend_from_slice(b": ");
        let value_start = head.len();
        variable::append(request, &field.value, head);
        if head.len() == value_start {
            head.truncate(start);
            continue;
        }
        keep_on_one_line(head, value_start);
        let value = head.get(value_start..).unwrap_or_default();
        if same_name(&field.name, b"connection") {
            options.close |= has_member([value], b"close");
            options.keep_alive |= has_member([value], b"keep-alive");
        }
        options.upgrade |= same_name(&field.name, b"upgrade");
        head.extend_from_slice(b"\r\n");
    }
    options
}

/// Adds the trace fields to the request, unless the configuration sets fields of these
/// names.
fn put_trace(proxy: &Proxy, trace: &TraceFields, head: &mut Vec<u8>) {
    for (name, value) in [
        ("traceparent", &trace.traceparent),
        ("tracestate", &trace.tracestate),
    ] {
        let mut fields = proxy.fields.iter();
        let is_set = fields.any(|field| same_name(&field.name, name.as_bytes()));
        if !is_set && !value.is_empty() {
            put_field(name.as_bytes(), value.as_bytes(), head);
        }
    }
}

fn put_client_fields(
    request: &Request,
    proxy: &Proxy,
    (exchange, purpose): (&Exchange, &FetchPurpose<'_>),
    head: &mut Vec<u8>,
) {
    for (name, value) in request.received.head().fields() {
        let is_set = proxy
            .fields
            .iter()
            .any(|field| same_name(&field.name, name));
        if !is_set && !purpose.leaves_out(request, exchange, name) {
            put_field(name, value, head);
        }
    }
    if request.settings().esi.is_on() {
        put_field(b"Surrogate-Capability", ESI_CAPABILITY, head);
    }
}

fn put_framing(received: &ReceivedRequest, framing: BodyFraming, head: &mut Vec<u8>) {
    match framing {
        BodyFraming::Length(length) => {
            head.extend_from_slice(b"Content-Length: ");
            decimal::put(length, head);
            head.extend_from_slice(b"\r\n");
        }
        BodyFraming::Chunked => head.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        // An empty body that was announced is announced again (RFC 9110 §8.6).
        BodyFraming::None if received.head().field("content-length").is_some() => {
            head.extend_from_slice(b"Content-Length: 0\r\n");
        }
        BodyFraming::None => {}
    }
}

fn put_field(name: &[u8], value: &[u8], head: &mut Vec<u8>) {
    put_on_one_line(name, head);
    head.extend_from_slice(b": ");
    put_on_one_line(value, head);
    head.extend_from_slice(b"\r\n");
}

fn put_on_one_line(text: &[u8], head: &mut Vec<u8>) {
    let start = head.len();
    head.extend_from_slice(text);
    keep_on_one_line(head, start);
}

/// Line breaks and NUL would end the line early: from `start` on, they are sent as
/// spaces.
fn keep_on_one_line(head: &mut [u8], start: usize) {
    let text = head.get_mut(start..).unwrap_or_default();
    if memchr::memchr3(b'\r', b'\n', 0, text).is_none() {
        return;
    }
    for byte in text {
        if matches!(byte, b'\r' | b'\n' | 0) {
            *byte = b' ';
        }
    }
}

/// Returns how the body is framed that the request comes with.
fn framing(request: &Request, exchange: &Exchange) -> BodyFraming {
    if !exchange.pass_request_body {
        return BodyFraming::None;
    }
    match &request.body {
        RequestBody::Memory(_) | RequestBody::Spooled(_) => {
            BodyFraming::Length(request.body.length().unwrap_or(0))
        }
        RequestBody::Streamed(Some(length)) => BodyFraming::Length(*length),
        RequestBody::Streamed(None) => BodyFraming::Chunked,
        RequestBody::None | RequestBody::Unread => BodyFraming::None,
    }
}

/// Appends the method to an empty `head`.
fn put_method(request: &Request, proxy: &Proxy, head: &mut Vec<u8>) {
    if let Some(method) = &proxy.method {
        variable::append(request, method, head);
    }
    // One word: more would make another request line.
    let is_word = !head.is_empty() && head.iter().all(u8::is_ascii_graphic);
    if !is_word {
        head.clear();
        head.extend_from_slice(request.method_name());
    }
}

/// Appends the request target that the upstream sees.
fn put_target(request: &Request, proxy: &Proxy, head: &mut Vec<u8>) {
    let of_url = request
        .route
        .proxy_url
        .as_ref()
        .and_then(|url| url.uri.as_ref());
    match (&proxy.uri, of_url) {
        (ProxyUri::OfTarget, Some(uri)) => head.extend_from_slice(uri),
        (ProxyUri::Replaces { uri, prefix_bytes }, _) => {
            // A path that was changed in this location is sent whole.
            let (start, kept) = match request.route.is_rewritten() {
                true => (&[][..], request.route.path.as_slice()),
                false => (
                    &uri[..],
                    request.route.path.get(*prefix_bytes..).unwrap_or_default(),
                ),
            };
            head.extend_from_slice(start);
            head.extend_from_slice(&escape::escape_uri(kept));
            put_args(&request.route, head);
        }
        _ if request.route.origin == TargetOrigin::Received => {
            head.extend_from_slice(request.received.target())
        }
        _ => {
            head.extend_from_slice(&escape::escape_uri(&request.route.path));
            put_args(&request.route, head);
        }
    }
}

fn put_args(route: &RequestRoute, target: &mut Vec<u8>) {
    if !route.args.is_empty() {
        target.push(b'?');
        target.extend_from_slice(&route.args);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_made_of_variables_fall_into_their_parts() {
        for (text, group, host, port, uri) in [
            ("http://a", "a", "a", "80", None),
            ("http://a/", "a", "a", "80", Some("/")),
            ("http://a:80/x", "a:80", "a", "80", Some("/x")),
            ("HTTP://a:81?b", "a:81", "a:81", "81", Some("/?b")),
            ("http://[::1]/x", "[::1]", "[::1]", "80", Some("/x")),
            (
                "http://[::1]:8080",
                "[::1]:8080",
                "[::1]:8080",
                "8080",
                None,
            ),
            ("http://unix:/s", "unix:/s", "localhost", "", None),
            ("http://unix:/s:", "unix:/s", "localhost", "", None),
            ("http://unix:/s:/x", "unix:/s", "localhost", "", Some("/x")),
        ] {
            let url = parse_url(text, false).expect(text);
            assert_eq!(url.group, group, "{text}");
            assert_eq!(url.host, host.as_bytes(), "{text}");
            assert_eq!(url.port, port.as_bytes(), "{text}");
            assert_eq!(url.uri.as_deref(), uri.map(str::as_bytes), "{text}");
        }
        for text in ["", "http:/", "https://a", "http://", "http:///x", "ftp://a"] {
            assert!(parse_url(text, false).is_none(), "{text}");
        }
    }
}
