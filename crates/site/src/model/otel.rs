//! Settings of traces: `otel_*`.

use std::path::PathBuf;
use std::time::Duration;

use super::template::Template;

/// `otel_exporter`, with `otel_service_name` and `otel_resource_attr`.
#[derive(Debug, Clone, PartialEq)]
pub struct OtelExporter {
    pub endpoint: OtelEndpoint,
    pub interval: Duration,
    /// Spans in a batch.
    pub batch_size: usize,
    /// Batches that may wait.
    pub batch_count: usize,
    /// `trusted_certificate`; `None`: the authorities of the system.
    pub trusted: Option<PathBuf>,
    /// `header`: names in lower case, with their values.
    pub fields: Vec<(String, String)>,
    /// Attributes of the resource, `service.name` first.
    pub resource: Vec<(String, String)>,
}

/// `endpoint`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtelEndpoint {
    /// The host without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    pub is_tls: bool,
    /// The path: with one it is OTLP/HTTP, without one OTLP/gRPC.
    pub path: Option<String>,
}

/// The trace settings of a location. Locations that are not traced have no such settings.
#[derive(Debug, Clone, PartialEq)]
pub struct OtelSettings {
    pub trace: OtelTrace,
    /// `otel_trace_context extract` or `propagate`
    pub extracts: bool,
    /// `otel_trace_context inject` or `propagate`
    pub injects: bool,
    /// `otel_span_name`; `None`: the name of the location.
    pub span_name: Option<Template>,
    /// `otel_span_attr`
    pub span_attributes: Vec<(String, Template)>,
}

/// `otel_trace`
#[derive(Debug, Clone, PartialEq)]
pub enum OtelTrace {
    Off,
    On,
    /// Only requests for which the value is `on` or `1`.
    When(Template),
}

impl OtelSettings {
    /// Is something to be done for a request that comes here?
    pub fn begins_traces(&self) -> bool {
        self.trace != OtelTrace::Off || self.extracts || self.injects
    }
}
