//! The trace that a request belongs to. Only requests that are traced, or whose trace fields go to the
//! application, have it.

use traces::{Parent, SpanId, TraceContext, TraceId, TraceState};

use server_base::random;

/// The trace of one request.
#[derive(Debug, Clone)]
pub struct Tracing {
    /// The request's own span, and whether it is recorded.
    pub context: TraceContext,
    /// The span that it comes from, where that is extracted.
    pub parent: Option<Parent>,
    /// Whether it is recorded was decided.
    pub is_decided: bool,
    /// The fetches from upstreams, in order.
    pub fetches: Vec<FetchSpan>,
    /// The waits for other requests' fetches.
    pub waits: Vec<WaitSpan>,
}

/// One fetch that the request has begun.
#[derive(Debug, Clone)]
pub struct FetchSpan {
    pub span_id: SpanId,
    /// Its first try among those of the request's [`Trace`](upstream_fetch::Trace).
    pub first_try: usize,
    pub protocol: &'static str,
    /// The group, where it has a name of its own.
    pub group: Option<String>,
    /// The fetch's own trace.
    pub own_trace: Option<TraceContext>,
    /// The request does not wait for it.
    pub in_background: bool,
}

/// A time that the request waited for the fetch of another.
#[derive(Debug, Clone)]
pub struct WaitSpan {
    /// Milliseconds of the steady clock.
    pub began_at: u64,
    pub ended_at: u64,
    /// The fetch, if it is recorded.
    pub of: Option<TraceContext>,
}

/// The trace fields that an application receives with a fetch.
#[derive(Debug, Clone)]
pub struct TraceFields {
    pub traceparent: String,
    /// Empty: none.
    pub tracestate: String,
}

impl TraceFields {
    pub fn new(context: &TraceContext, state: Option<&TraceState>) -> TraceFields {
        TraceFields {
            traceparent: context.traceparent(),
            tracestate: state.map_or_else(String::new, |state| state.as_str().to_owned()),
        }
    }
}

impl Tracing {
    /// A trace that goes on from `parent`, or a new one.
    pub fn new(parent: Option<Parent>) -> Tracing {
        let trace_id = parent.as_ref().map(|parent| parent.context.trace_id);
        Tracing {
            context: TraceContext {
                trace_id: trace_id.unwrap_or_else(new_trace_id),
                span_id: new_span_id(),
                is_sampled: false,
            },
            parent,
            is_decided: false,
            fetches: Vec::new(),
            waits: Vec::new(),
        }
    }

    /// Returns the tracing of a part of the request: its fetches belong to the request's own span.
    pub fn of_part(&self) -> Tracing {
        Tracing {
            fetches: Vec::new(),
            waits: Vec::new(),
            ..self.clone()
        }
    }

    pub fn state(&self) -> Option<&TraceState> {
        self.parent.as_ref().map(|parent| &parent.state)
    }
}

pub fn new_trace_id() -> TraceId {
    // Once in 2^128 it is all zero.
    std::iter::repeat_with(|| TraceId::new(random::bytes16()))
        .find_map(|id| id)
        .unwrap_or_else(new_trace_id)
}

pub fn new_span_id() -> SpanId {
    let half = |bytes: [u8; 16]| bytes.first_chunk::<8>().and_then(|half| SpanId::new(*half));
    std::iter::repeat_with(|| half(random::bytes16()))
        .find_map(|id| id)
        .unwrap_or_else(new_span_id)
}
