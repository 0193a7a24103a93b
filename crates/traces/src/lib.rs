//! OpenTelemetry traces: the trace fields of a visitor's request (W3C Trace Context), spans, and
//! the exporter that sends them to a collector by OTLP, over HTTP or gRPC.
//!
//! ```text
//! finished spans ─► Exporter::send ─► Queue ─► thread "traces": batch ─► collector
//!                                       │full                       │refused, away
//!                                       └──────► counted, dropped ◄──┘
//! ```
//!
//! [`Exporter::send`] never waits: the queue is bounded in spans and in bytes, and a span that does
//! not fit is counted and dropped. A thread of its own encodes and sends, so that requests do not
//! wait for the collector. It is started with the first span.
//!
//! This crate knows no request, no configuration file and no log: its user makes the spans, and
//! gives the settings and a [`Report`] for errors.

mod bounded_text;
mod client;
mod context;
mod endpoint;
mod exporter;
mod message;
mod queue;
mod retry;
mod sending;
mod settings;
mod span;

pub use bounded_text::{MAX_VALUE_BYTES, bounded};
pub use context::{Parent, SpanId, TraceContext, TraceId, TraceState, fuzz_parent};
pub use endpoint::{Endpoint, Protocol};
pub use exporter::Exporter;
pub use queue::Counts;
pub use sending::Report;
pub use settings::{Settings, TrustedPem};
pub use span::{Attribute, Link, Span, SpanKind, Value};
