//! How a fetch differs from the client's own request. Each protocol's request is put
//! together accordingly.

use cache_decision::litespeed;
use clock::SharedDeadline;
use http_cache::StoredResponse;
use site::Exchange;

use crate::exchange::request::Request;
use crate::exchange::tracing::TraceFields;

/// The purpose of a fetch, which decides the fields that are sent.
#[derive(Default)]
pub struct FetchPurpose<'a> {
    /// The response is for the cache: the client's conditions and ranges are not sent.
    pub for_cache: bool,
    /// Validate this stored response.
    pub validating: Option<&'a StoredResponse>,
    /// The timer of the request that waits; otherwise the fetch has its own.
    pub deadline: Option<&'a SharedDeadline>,
    /// Messages of the error stream that begin with this name tags.
    pub tag_mark: Option<&'a str>,
    /// With `cache_litespeed`: the visitor's class that is sent to the application.
    pub vary_value: Option<&'static str>,
    /// With `otel_trace_context inject`: the trace fields that are sent to the application.
    pub trace: Option<&'a TraceFields>,
    /// The number under which PHP reports its reads, if the page is learned.
    pub learned_fetch: Option<u64>,
}

/// Fields of the client's request that would make the response one for this
/// client alone.
pub const NOT_FOR_CACHE: [&str; 6] = [
    "if-modified-since",
    "if-unmodified-since",
    "if-none-match",
    "if-match",
    "range",
    "if-range",
];

/// Fields for the client's capabilities that are not sent with `esi`: this server reads the
/// response itself, cannot run a compressed page, and sends its own capabilities.
const NOT_FOR_ESI: [&str; 2] = ["accept-encoding", "surrogate-capability"];

/// Fields that name the trace of the request, and its baggage (<https://www.w3.org/TR/baggage/>).
const OF_TRACE: [&str; 2] = ["traceparent", "tracestate"];
const BAGGAGE: [&str; 1] = ["baggage"];

/// The value of `Surrogate-Capability` with `esi` (<https://www.w3.org/TR/edge-arch/>, section
/// 2.2).
pub const ESI_CAPABILITY: &[u8] = b"mayfly=\"ESI/1.0\"";

impl FetchPurpose<'_> {
    /// Does a field of the client's that is called `name` stay away from the upstream?
    pub fn leaves_out(&self, request: &Request, exchange: &Exchange, name: &[u8]) -> bool {
        let is_one_of = |fields: &[&str]| {
            fields
                .iter()
                .any(|field| name.eq_ignore_ascii_case(field.as_bytes()))
        };
        (self.for_cache && is_one_of(&NOT_FOR_CACHE))
            || (request.settings().esi.is_on() && is_one_of(&NOT_FOR_ESI))
            || self.leaves_out_trace(request, exchange, is_one_of)
            || (exchange.litespeed && litespeed::is_of_protocol(name))
    }

    /// Are the trace fields of the visitor left out? A response for others must not be shaped by
    /// one visitor's trace, and an application that gets trace fields of ours gets no second
    /// set.
    fn leaves_out_trace(
        &self,
        request: &Request,
        exchange: &Exchange,
        is_one_of: impl Fn(&[&str]) -> bool,
    ) -> bool {
        let is_kept = self.for_cache || exchange.file_copy.is_some();
        let for_others = is_kept && request.settings().otel.is_some();
        (for_others || self.trace.is_some()) && is_one_of(&OF_TRACE)
            || for_others && is_one_of(&BAGGAGE)
    }
}
