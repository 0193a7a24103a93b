//! Traces: the spans that are sent to a collector (`otel_*`), and the fields that the application
//! gets. The spans are read with OpenTelemetry's own messages.

mod collector;
mod context;
mod sharing;
mod spans;
mod trouble;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use testkit::running::RunningServer;

use crate::start;
use collector::Collector;

/// A trace as a visitor may send it.
const PARENT: &str = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n";
const PARENT_TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// A server that sends traces to `collector` at once.
async fn traced(collector: &Collector, http: &str, directives: &str) -> RunningServer {
    start(&configuration(collector, http, directives)).await
}

fn configuration(collector: &Collector, http: &str, directives: &str) -> String {
    format!(
        "otel_exporter {{ endpoint {}; interval 20ms; }}\n{http}\n\
         server {{ listen unix:%%/http; server_name site.test;\n{directives}\n}}",
        collector.endpoint()
    )
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An attribute as text.
fn attribute(span: &Span, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|it| it.key == name)?;
    Some(match found.value.clone()?.value? {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        Value::BoolValue(flag) => flag.to_string(),
        Value::ArrayValue(list) => format!("{:?}", list.values.len()),
        other => format!("{other:?}"),
    })
}

/// The only one of `spans` of that name.
fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let mut found = spans.iter().filter(|span| span.name == name);
    let first = found
        .next()
        .unwrap_or_else(|| panic!("no {name} in {spans:#?}"));
    assert!(found.next().is_none(), "several {name} in {spans:#?}");
    first
}

/// `child` is a part of `parent`, and was in time.
fn assert_within(child: &Span, parent: &Span) {
    assert_eq!(hex(&child.trace_id), hex(&parent.trace_id));
    assert_eq!(hex(&child.parent_span_id), hex(&parent.span_id));
    assert!(child.start_time_unix_nano >= parent.start_time_unix_nano);
    assert!(child.end_time_unix_nano >= child.start_time_unix_nano);
    assert!(child.end_time_unix_nano <= parent.end_time_unix_nano);
}

fn is_server(span: &Span) -> bool {
    span.kind() == SpanKind::Server
}

fn is_error(span: &Span) -> bool {
    span.status.as_ref().is_some_and(|status| status.code == 2)
}
