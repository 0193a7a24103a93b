//! Spans, made when everything is over: of the request itself, and of its waits. The times are those
//! of the access log and of `$upstream_*`, in milliseconds.

use std::net::SocketAddr;

use site::{CacheZoneChoice, Content, Settings};
use traces::{Attribute, Link, Span, SpanKind, TraceContext, TraceState, Value, bounded};

use crate::exchange::cache_facts::CacheNotes;
use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::request::Request;
use crate::exchange::tracing::{FetchSpan, Tracing, WaitSpan, new_span_id};
use crate::exchange::variable;
use upstream_fetch::Try;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// A client that went away before its answer is no fault of the upstream.
const CLIENT_GONE: u16 = 499;

/// The span that others are parts of.
pub struct ParentSpan {
    pub context: TraceContext,
    /// Its own parent; without one it is the root of the fetch's trace.
    pub parent: Option<TraceContext>,
    /// Nothing in it began before that (milliseconds of the steady clock).
    pub earliest: u64,
}

/// The unix time in nanoseconds of a moment of the steady clock.
fn nanos(steady_ms: u64) -> u64 {
    clock::wall(steady_ms).saturating_mul(NANOS_PER_MILLI)
}

fn span(context: TraceContext, name: String, kind: SpanKind, times: (u64, u64)) -> Span {
    Span {
        context: TraceContext {
            is_sampled: true,
            ..context
        },
        state: TraceState::default(),
        parent: None,
        is_parent_remote: false,
        name,
        kind,
        started_at: nanos(times.0),
        ended_at: nanos(times.1.max(times.0)),
        attributes: Vec::new(),
        links: Vec::new(),
        error: None,
    }
}

/// The span of the request itself.
pub fn of_request(request: &Request, tracing: &Tracing) -> Span {
    let times = (request.received.started_at(), clock::now());
    let name = name(request);
    let mut made = span(tracing.context, name, SpanKind::Server, times);
    if let Some(parent) = &tracing.parent {
        made.parent = Some(parent.context.span_id);
        made.is_parent_remote = true;
        made.state = parent.state.clone();
    }
    made.attributes = attributes(request);
    if request.delivery.status >= 500 {
        made.error = Some(String::new());
    }
    let background = tracing.fetches.iter().filter(|fetch| fetch.in_background);
    made.links = background
        .filter_map(|fetch| fetch.own_trace)
        .map(link)
        .collect();
    made
}

fn link(context: TraceContext) -> Link {
    Link {
        context,
        attributes: Vec::new(),
    }
}

/// `otel_span_name`, or the name of the location.
fn name(request: &Request) -> String {
    let otel = request.settings().otel.as_ref();
    let template = otel.and_then(|otel| otel.span_name.as_ref());
    if let Some(template) = template {
        return bounded(&variable::evaluate(request, template));
    }
    match &*request.location().name {
        // A server's own level has no name.
        "" => bounded(request.method_name()),
        name => name.to_owned(),
    }
}

/// Returns the attributes for method, target and host of a request.
pub fn subject(request: &Request) -> Vec<Attribute> {
    let host = match &*request.server().name {
        "" => bounded(request.received.host()),
        name => name.to_owned(),
    };
    vec![
        Attribute::text("http.method", bounded(request.method_name())),
        Attribute::text("http.target", bounded(request.received.target())),
        Attribute::text("net.host.name", host),
    ]
}

/// Collects the attributes of nginx's module (the conventions of OpenTelemetry 1.16 for HTTP), those
/// of the cache, and those of `otel_span_attr`.
fn attributes(request: &Request) -> Vec<Attribute> {
    let mut found = subject(request);
    put_http(request, &mut found);
    put_addresses(&request.received, &mut found);
    put_cache(request, &mut found);
    let otel = &request.settings().otel;
    for (name, template) in otel.iter().flat_map(|otel| &otel.span_attributes) {
        let value = bounded(&variable::evaluate(request, template));
        let is_list =
            name.starts_with("http.request.header.") || name.starts_with("http.response.header.");
        found.push(Attribute {
            name: name.clone(),
            value: match is_list {
                true => Value::List(value),
                false => Value::Text(value),
            },
        });
    }
    found
}

fn put_http(request: &Request, found: &mut Vec<Attribute>) {
    let location = &request.location().name;
    if !location.is_empty() {
        found.push(Attribute::text("http.route", location.to_string()));
    }
    found.push(Attribute::text("http.scheme", request.received.scheme()));
    let version = request.received.head().version().as_str();
    let version = version.strip_prefix("HTTP/").unwrap_or(version);
    found.push(Attribute::text("http.flavor", version));
    if let Some(agent) = request.received.head().field("user-agent") {
        found.push(Attribute::text("http.user_agent", bounded(agent)));
    }
    let length = request.received.head().field("content-length");
    let length = length.and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
    found.extend([
        Attribute::number("http.request_content_length", length.unwrap_or(0u64)),
        Attribute::number(
            "http.response_content_length",
            request.delivery.body_bytes_sent(),
        ),
    ]);
    if request.delivery.status > 0 {
        found.push(Attribute::number(
            "http.status_code",
            request.delivery.status,
        ));
    }
}

fn put_addresses(received: &ReceivedRequest, found: &mut Vec<Attribute>) {
    let default = if received.connection().scheme == "https" {
        443
    } else {
        80
    };
    let port = received.connection().local.port();
    if let Some(port) = port.filter(|port| *port != default) {
        found.push(Attribute::number("net.host.port", port));
    }
    if let Some(client) = received.client() {
        found.push(Attribute::text(
            "net.sock.peer.addr",
            client.ip().to_canonical().to_string(),
        ));
        found.push(Attribute::number(
            "net.sock.peer.port",
            SocketAddr::port(&client),
        ));
    }
}

/// Adds the cache's attributes, in the words of `$upstream_cache_status` and `$cache_reason`.
fn put_cache(request: &Request, found: &mut Vec<Attribute>) {
    request.cache.read(|notes| put_notes(request, notes, found));
}

fn put_notes(request: &Request, notes: &CacheNotes, found: &mut Vec<Attribute>) {
    let Some(outcome) = &notes.outcome else {
        return;
    };
    if let Some(status) = outcome.upstream_cache_status() {
        found.push(Attribute::text("mayfly.cache.status", status.as_str()));
    }
    if let Some(reason) = notes.reason {
        found.push(Attribute::text("mayfly.cache.reason", reason.word()));
    }
    if let Some(zone) = zone_name(request, request.settings()) {
        found.push(Attribute::text("mayfly.cache.zone", zone));
    }
    if let Some(age) = notes.age {
        found.push(Attribute::number("mayfly.cache.age", age));
    }
    if outcome.collapsed {
        found.push(Attribute::flag("mayfly.cache.collapsed", true));
    }
}

fn zone_name<'a>(request: &'a Request, settings: &Settings) -> Option<&'a str> {
    let Content::Pass(pass) = &settings.content else {
        return None;
    };
    let CacheZoneChoice::Zone(zone) = pass.cache.as_ref()?.zone else {
        return None;
    };
    let zone = request.configuration.site.http.cache_zones.get(zone.0)?;
    Some(&zone.name)
}

/// Adds a span for each wait of the request.
pub fn put_children(request: &Request, tracing: &Tracing, out: &mut Vec<Span>) {
    let waits = tracing.waits.iter();
    out.extend(waits.map(|wait| of_wait(tracing, wait)));
    let Some(trace) = request.trace.get() else {
        return;
    };
    let tries = trace.lock().tries.clone();
    for (at, fetch) in tracing.fetches.iter().enumerate() {
        let end = match tracing.fetches.get(at + 1) {
            Some(next) => next.first_try,
            None => tries.len(),
        };
        let Some(own) = tries.get(fetch.first_try..end) else {
            continue;
        };
        if fetch.in_background {
            continue;
        }
        let within = ParentSpan {
            context: TraceContext {
                span_id: fetch.span_id,
                ..tracing.context
            },
            parent: Some(tracing.context),
            earliest: request.received.started_at(),
        };
        let first = out.len();
        put_fetch(&within, fetch, own, out);
        if let Some(made) = out.get_mut(first) {
            made.links.extend(fetch.own_trace.map(link));
        }
    }
}

fn of_wait(tracing: &Tracing, wait: &WaitSpan) -> Span {
    let context = TraceContext {
        span_id: new_span_id(),
        ..tracing.context
    };
    let times = (wait.began_at, wait.ended_at);
    let mut made = span(context, "cache wait".to_owned(), SpanKind::Internal, times);
    made.parent = Some(tracing.context.span_id);
    made.links = wait.of.map(link).into_iter().collect();
    made
}

/// Returns when a try began to stand in line, and when it ended.
fn times_of(attempt: &Try, earliest: u64) -> (u64, u64) {
    let queued = attempt.queue_ms.or(attempt.refused_after_ms).unwrap_or(0);
    let began = attempt.started_at.saturating_sub(queued).max(earliest);
    let ended = match (attempt.refused_after_ms, attempt.response_ms) {
        (Some(_), _) => attempt.started_at,
        (None, Some(took)) => attempt.started_at.saturating_add(took),
        // Its body still arrives, or one side has left.
        (None, None) => clock::now(),
    };
    (began, ended.max(began))
}

/// The span of a fetch first, then those of its time in line, and of its tries where there were
/// several. Nothing where no upstream was asked.
pub fn put_fetch(within: &ParentSpan, fetch: &FetchSpan, tries: &[Try], out: &mut Vec<Span>) {
    let tries: Vec<&Try> = tries.iter().filter(|it| it.started_at > 0).collect();
    let (Some(first), Some(last)) = (tries.first(), tries.last()) else {
        return;
    };
    let began = times_of(first, within.earliest).0;
    let ended = times_of(last, within.earliest).1;
    let mut made = span(
        within.context,
        "upstream".to_owned(),
        SpanKind::Client,
        (began, ended),
    );
    made.parent = within.parent.map(|parent| parent.span_id);
    made.attributes
        .push(Attribute::text("network.protocol.name", fetch.protocol));
    if let Some(group) = &fetch.group {
        made.attributes.push(Attribute::text(
            "mayfly.upstream.name",
            bounded(group.as_bytes()),
        ));
    }
    put_try(last, &mut made);
    out.push(made);
    let child = |name: &str, kind, times| {
        let context = TraceContext {
            span_id: new_span_id(),
            ..within.context
        };
        let mut made = span(context, name.to_owned(), kind, times);
        made.parent = Some(within.context.span_id);
        made
    };
    for attempt in &tries {
        let (began, ended) = times_of(attempt, within.earliest);
        let granted = attempt.started_at.max(began);
        if granted > began {
            let mut queue = child("queue", SpanKind::Internal, (began, granted));
            if attempt.refused_after_ms.is_some() {
                queue.error = Some("no server had room in time".to_owned());
            }
            out.push(queue);
        }
        if tries.len() > 1 && attempt.refused_after_ms.is_none() {
            let mut made = child("try", SpanKind::Client, (granted, ended));
            put_try(attempt, &mut made);
            out.push(made);
        }
    }
}

/// Adds the attributes of one try at an upstream: server, status, times and sizes.
fn put_try(attempt: &Try, made: &mut Span) {
    let found = &mut made.attributes;
    found.push(Attribute::text("server.address", &*attempt.address));
    for (name, number) in [
        ("http.status_code", attempt.status.map(u64::from)),
        ("mayfly.upstream.connect_ms", attempt.connect_ms),
        ("mayfly.upstream.head_ms", attempt.head_ms),
        ("http.request_content_length", attempt.sent_bytes),
        ("http.response_content_length", attempt.body_bytes),
    ] {
        found.extend(number.map(|number| Attribute::number(name, number)));
    }
    // Without a head, the status is derived from the failure.
    match (attempt.status, attempt.head_ms) {
        (Some(CLIENT_GONE), None) => {}
        (Some(status), _) if status < 500 => {}
        (_, Some(_)) => made.error = Some(String::new()),
        (_, None) => made.error = Some("no response".to_owned()),
    }
}
