//! Traces of requests (`otel_*`): when a trace begins, which trace fields the application receives, and
//! which spans are sent when the request has ended (`spans`).
//!
//! ```text
//!   request ──────────────────────────────────────────── server span (parent: the visitor's)
//!     ├─ cache wait ── another request's fetch (link)
//!     ├─ queue ─── upstream ──────────────────────────── client span (fetch for this visitor)
//!   fetch for the cache that carries trace fields to the application, or in the background:
//!     upstream ── a trace of its own (link to the request that caused it)
//! ```
//!
//! Rules for sharing: an application may write the trace fields that it receives into a page, and a
//! stored page is shown to every visitor. So a fetch for the cache gets a trace of its own, with random
//! identifiers. Nothing of a visitor's traceparent, tracestate or baggage goes there, and whether it is
//! recorded is decided for the fetch itself ([`begin_fetch`]). Links connect the two traces; only the
//! collector sees them.
//!
//! Nothing here runs for a request whose location has no `otel_*`: stages that such a request goes
//! through do not ask.

mod fetch_trace;
mod spans;

use std::sync::Arc;

use http_cache::Zone;
use site::{Builtin as B, OtelTrace, Pass, PassTarget, Protocol};
use traces::{Parent, TraceContext};

use crate::exchange::request::Request;
use crate::exchange::request_values::RequestValues;
use crate::exchange::tracing::{FetchSpan, TraceFields, Tracing, WaitSpan, new_span_id};
use crate::exchange::value::put;
use crate::exchange::variable;
use crate::exchange::variable_table::Value::Request as Of;
use crate::exchange::variable_table::Variables;

pub use fetch_trace::FetchTrace;
pub use live_state::traces::FetchKey;

pub const VARIABLES: Variables = &[
    (
        B::OtelParentId,
        Of(|request, out| {
            let parent = parent_of(request);
            let id = parent.map(|parent| parent.span_id.to_string());
            put(id.as_deref().map(str::as_bytes), out)
        }),
    ),
    (
        B::OtelParentSampled,
        Of(|request, out| {
            let is_sampled = parent_of(request).is_some_and(|parent| parent.is_sampled);
            put(Some(if is_sampled { b"1" } else { b"0" }), out)
        }),
    ),
    (
        B::OtelSpanId,
        Of(|request, out| {
            let id = with_tracing(request, |tracing| tracing.context.span_id.to_string());
            put(Some(id.as_bytes()), out)
        }),
    ),
    (
        B::OtelTraceId,
        Of(|request, out| {
            let id = with_tracing(request, |tracing| tracing.context.trace_id.to_string());
            put(Some(id.as_bytes()), out)
        }),
    ),
];

/// Calls `work` with the trace of `request`, after beginning one by the location's settings if the
/// request has none.
fn with_tracing<T>(request: &Request, work: impl FnOnce(&mut Tracing) -> T) -> T {
    request.values.write(|values| {
        let new = || Box::new(Tracing::new(extracted(request)));
        work(values.tracing.get_or_insert_with(new))
    })
}

fn parent_of(request: &Request) -> Option<TraceContext> {
    with_tracing(request, |tracing| {
        tracing.parent.as_ref().map(|parent| parent.context)
    })
}

/// The span that the request comes from, where the location wants to know.
fn extracted(request: &Request) -> Option<Parent> {
    let otel = request.settings().otel.as_ref();
    otel.filter(|otel| otel.extracts)?;
    let head = request.received.head();
    Parent::read(
        head.field_all(b"traceparent"),
        head.field_all(b"tracestate"),
    )
}

/// The name of the group that a fetch goes to, where an operator has given it one.
fn group_name(request: &Request, target: &PassTarget) -> Option<String> {
    match target {
        PassTarget::Group(id) => {
            let group = request.configuration.site.http.groups.get(id.0)?;
            Some(group.name.clone())
        }
        PassTarget::Variable(_) => None,
    }
}

/// A request has come to a location: begins its trace, where the location wants one and none was
/// begun.
#[cold]
pub fn begin(request: &Request) {
    let Some(otel) = &request.settings().otel else {
        return;
    };
    // Parts of a request belong to its trace.
    if !otel.begins_traces() || request.route.is_subrequest() || request.is_own_visit() {
        return;
    }
    if with_tracing(request, |tracing| tracing.is_decided) || otel.trace == OtelTrace::Off {
        return;
    }
    let is_sampled = is_on(request, &otel.trace);
    with_tracing(request, |tracing| {
        tracing.is_decided = true;
        tracing.context.is_sampled = is_sampled;
    });
}

fn is_on(request: &Request, trace: &OtelTrace) -> bool {
    match trace {
        OtelTrace::Off => false,
        OtelTrace::On => true,
        OtelTrace::When(template) => {
            matches!(&*variable::evaluate(request, template), b"on" | b"1")
        }
    }
}

/// A request has ended: its spans are sent, where it is recorded.
#[cold]
pub fn end(request: &Request) {
    let Some(tracing) = recorded(request) else {
        return;
    };
    let Some(exporter) = &request.configuration.live.traces else {
        return;
    };
    let mut sent = vec![spans::of_request(request, &tracing)];
    spans::put_children(request, &tracing, &mut sent);
    exporter.send(sent);
}

/// Ends the trace of a subrequest, which has no span of its own.
pub fn end_part(request: &Request) {
    let Some(tracing) = recorded(request) else {
        return;
    };
    let mut sent = Vec::new();
    spans::put_children(request, &tracing, &mut sent);
    if let Some(exporter) = &request.configuration.live.traces {
        exporter.send(sent);
    }
}

/// Returns the trace of a request that is recorded.
fn recorded(request: &Request) -> Option<Tracing> {
    request.values.read(|values| {
        let tracing = values.tracing.as_deref();
        tracing
            .filter(|tracing| tracing.context.is_sampled)
            .cloned()
    })
}

/// A fetch for one visitor, before its request is put together.
pub enum DirectFetch {
    Untraced,
    OfVisitor(Option<TraceFields>),
    /// It is kept as a file (`*_store`), which others are shown. The request is sent in the visitor's place.
    Stored(CacheFetch, Box<Request>, Option<TraceFields>),
}

/// An upstream is asked for this visitor.
pub fn begin_direct(request: &Request, pass: &Pass) -> DirectFetch {
    if request.values.read(|values| values.tracing.is_none()) {
        return DirectFetch::Untraced;
    }
    if pass.exchange.file_copy.is_some()
        && let Some(mut fetch) = begin_fetch(request, pass)
    {
        let sent = request.again();
        let fields = fetch.enter(&sent);
        return DirectFetch::Stored(fetch, sent, fields);
    }
    let span = fetch_span(request, pass);
    let injects = injects(request);
    with_tracing(request, |tracing| {
        let context = TraceContext {
            span_id: span.span_id,
            ..tracing.context
        };
        tracing.fetches.push(span);
        let state = tracing.state();
        DirectFetch::OfVisitor(injects.then(|| TraceFields::new(&context, state)))
    })
}

impl DirectFetch {
    /// The trace fields that are sent to the application.
    pub fn fields(&self) -> Option<&TraceFields> {
        match self {
            DirectFetch::OfVisitor(fields) | DirectFetch::Stored(_, _, fields) => fields.as_ref(),
            DirectFetch::Untraced => None,
        }
    }

    /// The request that is sent for `request`.
    pub fn sent<'r>(&'r self, request: &'r Request) -> &'r Request {
        match self {
            DirectFetch::Stored(_, sent, _) => sent,
            DirectFetch::Untraced | DirectFetch::OfVisitor(_) => request,
        }
    }

    /// The request is put together, if that was possible. To be kept as long as the fetch lasts.
    pub fn begun(self, request: &Request, is_possible: bool) -> Option<Box<FetchTrace>> {
        match self {
            DirectFetch::Stored(fetch, ..) if is_possible => fetch.begun(request, None),
            _ => None,
        }
    }
}

fn injects(request: &Request) -> bool {
    let otel = request.settings().otel.as_ref();
    otel.is_some_and(|otel| otel.injects)
}

fn fetch_span(request: &Request, pass: &Pass) -> FetchSpan {
    let tries = request.trace.get();
    FetchSpan {
        span_id: new_span_id(),
        first_try: tries.map_or(0, |trace| trace.lock().tries.len()),
        protocol: match pass.protocol {
            Protocol::FastCgi(_) => "fastcgi",
            Protocol::Http(_) => "http",
            Protocol::Memcached(_) => "memcached",
        },
        group: group_name(request, &pass.target),
        own_trace: None,
        in_background: false,
    }
}

/// A fetch for the cache, before its request is put together.
pub struct CacheFetch {
    span: FetchSpan,
    /// The visitor's request, if it is recorded.
    caused_by: Option<TraceContext>,
    injects: bool,
}

/// The cache asks an upstream, because of `request`.
pub fn begin_fetch(request: &Request, pass: &Pass) -> Option<CacheFetch> {
    let context = request
        .values
        .read(|values| values.tracing.as_ref().map(|tracing| tracing.context))?;
    Some(CacheFetch {
        span: fetch_span(request, pass),
        caused_by: context.is_sampled.then_some(context),
        injects: injects(request),
    })
}

impl CacheFetch {
    /// Puts a trace of the fetch's own into the request that is `sent` in the visitor's place. Variables see no other.
    pub fn enter(&mut self, sent: &Request) -> Option<TraceFields> {
        let own = Some(Box::new(Tracing::new(None)));
        sent.values.write(|values| values.tracing = own);
        let otel = sent.settings().otel.as_ref();
        let is_sampled = otel.is_some_and(|otel| is_on(sent, &otel.trace));
        let context = with_tracing(sent, |own| {
            own.is_decided = true;
            own.context.is_sampled = is_sampled;
            own.context
        });
        self.span.own_trace = Some(context);
        self.injects.then(|| TraceFields::new(&context, None))
    }

    /// The fetch has begun: notes it, and returns the trace to send when it has ended.
    pub fn begun(mut self, request: &Request, key: Option<FetchKey>) -> Option<Box<FetchTrace>> {
        let own = self.span.own_trace?;
        let is_recorded = own.is_sampled || self.caused_by.is_some();
        let exporter = request.configuration.live.traces.clone();
        let fetch = exporter.filter(|_| is_recorded).map(|exporter| {
            let trace = request.trace().clone();
            let own = TraceContext {
                is_sampled: true,
                ..own
            };
            let subject = spans::subject(request);
            let mut fetch = FetchTrace::new(exporter, own, (trace, self.span.clone()), subject);
            fetch.caused_by = self.caused_by;
            fetch.is_sent = self.injects || self.caused_by.is_none();
            // A fetch without trace fields appears in the trace of the visitor.
            let visitors = self.caused_by.map(|caused_by| TraceContext {
                span_id: self.span.span_id,
                ..caused_by
            });
            let shown = if fetch.is_sent { Some(own) } else { visitors };
            if let Some(key) = key {
                fetch.announce(key, shown.unwrap_or(own));
            }
            // The future that holds it stays small.
            Box::new(fetch)
        });
        self.span.own_trace = match &fetch {
            Some(fetch) if fetch.is_sent => Some(fetch.context()),
            _ => None,
        };
        with_tracing(request, |tracing| tracing.fetches.push(self.span));
        fetch
    }
}

/// Marks the last fetch that `request` has begun as one in the background.
pub fn in_background(values: &RequestValues, fetch: Option<&mut FetchTrace>) {
    values.write_given(|values| {
        let tracing = values.tracing.as_mut();
        if let Some(last) = tracing.and_then(|tracing| tracing.fetches.last_mut()) {
            last.in_background = true;
            last.own_trace = fetch.as_ref().map(|fetch| fetch.context());
        }
    });
    if let Some(fetch) = fetch {
        fetch.in_background();
    }
}

/// The request waits for the fetch of another.
pub fn begin_wait(request: &Request, zone: &Arc<Zone>, key: &[u8]) -> Option<WaitSpan> {
    recorded(request)?;
    let exporter = request.configuration.live.traces.as_ref()?;
    let now = clock::now();
    Some(WaitSpan {
        began_at: now,
        ended_at: now,
        of: exporter.under_way.find(&FetchKey::new(zone, key)),
    })
}

pub fn end_wait(request: &Request, wait: Option<WaitSpan>) {
    if let Some(wait) = wait {
        let ended_at = clock::now();
        let wait = WaitSpan { ended_at, ..wait };
        with_tracing(request, |tracing| tracing.waits.push(wait));
    }
}
