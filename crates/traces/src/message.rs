//! Batches in the terms of OTLP: the messages of opentelemetry-proto 1.x that traces need
//! (`opentelemetry/proto/collector/trace/v1/trace_service.proto` and the messages in it), with the
//! numbers of fields that are written or read here. A test reads them with the project's own.

use prost::Message;

use crate::span::{Attribute, Span, SpanKind, Value};

/// The maker of the spans (`InstrumentationScope`).
const SCOPE: &str = "mayfly";

/// Bits 8 and 9 of `flags`: it is known whether the parent is remote, and it is.
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

const STATUS_ERROR: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct ExportTraceServiceRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ExportTraceServiceResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected_spans: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<SpanMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct SpanMessage {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "13")]
    links: Vec<LinkMessage>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    flags: u32,
}

#[derive(Clone, PartialEq, Message)]
struct LinkMessage {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(message, repeated, tag = "4")]
    attributes: Vec<KeyValue>,
    #[prost(fixed32, tag = "6")]
    flags: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "AnyValueKind", tags = "1, 2, 3, 5")]
    value: Option<AnyValueKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum AnyValueKind {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Flag(bool),
    #[prost(int64, tag = "3")]
    Number(i64),
    #[prost(message, tag = "5")]
    List(ArrayValue),
}

#[derive(Clone, PartialEq, Message)]
struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    values: Vec<AnyValue>,
}

/// A batch as an `ExportTraceServiceRequest`.
pub fn encode(resource: &[Attribute], version: &str, spans: Vec<Span>) -> Vec<u8> {
    let message = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: attributes(resource.to_vec()),
            }),
            scope_spans: vec![ScopeSpans {
                scope: Some(Scope {
                    name: SCOPE.to_owned(),
                    version: version.to_owned(),
                }),
                spans: spans.into_iter().map(span).collect(),
            }],
        }],
    };
    message.encode_to_vec()
}

/// Reads from an `ExportTraceServiceResponse` how many spans of an accepted batch the collector
/// has rejected, and why. Returns `None` if it cannot be read.
pub fn rejected(response: &[u8]) -> Option<(u64, String)> {
    let response = ExportTraceServiceResponse::decode(response).ok()?;
    let partial = response.partial_success?;
    let rejected = u64::try_from(partial.rejected_spans).ok()?;
    (rejected > 0).then_some((rejected, partial.error_message))
}

fn span(span: Span) -> SpanMessage {
    let remote = match (span.parent, span.is_parent_remote) {
        (None, _) => 0,
        (Some(_), false) => HAS_IS_REMOTE,
        (Some(_), true) => HAS_IS_REMOTE | IS_REMOTE,
    };
    SpanMessage {
        trace_id: span.context.trace_id.as_bytes().to_vec(),
        span_id: span.context.span_id.as_bytes().to_vec(),
        trace_state: span.state.as_str().to_owned(),
        parent_span_id: span
            .parent
            .map_or_else(Vec::new, |id| id.as_bytes().to_vec()),
        name: span.name,
        kind: match span.kind {
            SpanKind::Internal => 1,
            SpanKind::Server => 2,
            SpanKind::Client => 3,
        },
        start_time_unix_nano: span.started_at,
        end_time_unix_nano: span.ended_at.max(span.started_at),
        attributes: attributes(span.attributes),
        links: span
            .links
            .into_iter()
            .map(|link| LinkMessage {
                trace_id: link.context.trace_id.as_bytes().to_vec(),
                span_id: link.context.span_id.as_bytes().to_vec(),
                attributes: attributes(link.attributes),
                flags: u32::from(link.context.is_sampled) | HAS_IS_REMOTE,
            })
            .collect(),
        status: span.error.map(|message| Status {
            message,
            code: STATUS_ERROR,
        }),
        flags: u32::from(span.context.is_sampled) | remote,
    }
}

fn attributes(attributes: Vec<Attribute>) -> Vec<KeyValue> {
    let attributes = attributes.into_iter().map(|attribute| KeyValue {
        key: attribute.name,
        value: Some(any_value(attribute.value)),
    });
    attributes.collect()
}

fn any_value(value: Value) -> AnyValue {
    AnyValue {
        value: Some(match value {
            Value::Text(text) => AnyValueKind::Text(text),
            Value::Number(number) => AnyValueKind::Number(number),
            Value::Flag(flag) => AnyValueKind::Flag(flag),
            Value::List(text) => AnyValueKind::List(ArrayValue {
                values: vec![any_value(Value::Text(text))],
            }),
        }),
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1 as official;
    use opentelemetry_proto::tonic::common::v1::any_value::Value as OfficialValue;
    use opentelemetry_proto::tonic::trace::v1::span::SpanKind as OfficialKind;
    use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
    use prost::Message;

    use super::*;
    use crate::context::{SpanId, TraceContext, TraceId, TraceState};
    use crate::span::Link;

    fn context(last: u8) -> TraceContext {
        TraceContext {
            trace_id: TraceId::new([last; 16]).expect("an id"),
            span_id: SpanId::new([last; 8]).expect("an id"),
            is_sampled: true,
        }
    }

    #[test]
    fn the_messages_of_opentelemetry_read_what_is_written() {
        let span = Span {
            context: context(1),
            state: TraceState::default(),
            parent: Some(context(2).span_id),
            is_parent_remote: true,
            name: "/page".to_owned(),
            kind: SpanKind::Server,
            started_at: 5_000_000,
            ended_at: 7_000_000,
            attributes: vec![
                Attribute::text("a", "text"),
                Attribute::number("b", 7),
                Attribute::flag("c", true),
                Attribute {
                    name: "d".to_owned(),
                    value: Value::List("one".to_owned()),
                },
            ],
            links: vec![Link {
                context: context(3),
                attributes: vec![Attribute::text("e", "f")],
            }],
            error: Some("why".to_owned()),
        };
        let resource = [Attribute::text("service.name", "site")];
        let bytes = encode(&resource, "1.2", vec![span]);
        let read = official::ExportTraceServiceRequest::decode(&*bytes).expect("a request");
        let of_resource = &read.resource_spans[0];
        let text = |value: &Option<opentelemetry_proto::tonic::common::v1::AnyValue>| {
            value.clone().and_then(|value| value.value)
        };
        let resource = of_resource.resource.as_ref().expect("a resource");
        assert_eq!(resource.attributes[0].key, "service.name");
        let scope = &of_resource.scope_spans[0];
        let name = scope
            .scope
            .as_ref()
            .map(|scope| (&*scope.name, &*scope.version));
        assert_eq!(name, Some(("mayfly", "1.2")));
        let span = &scope.spans[0];
        assert_eq!(span.trace_id, [1; 16]);
        assert_eq!(span.span_id, [1; 8]);
        assert_eq!(span.parent_span_id, [2; 8]);
        assert_eq!(span.name, "/page");
        assert_eq!(span.kind(), OfficialKind::Server);
        assert_eq!(
            (span.start_time_unix_nano, span.end_time_unix_nano),
            (5_000_000, 7_000_000)
        );
        assert_eq!(span.flags, 0x301);
        let values: Vec<_> = span.attributes.iter().map(|it| text(&it.value)).collect();
        assert_eq!(
            values[0],
            Some(OfficialValue::StringValue("text".to_owned()))
        );
        assert_eq!(values[1], Some(OfficialValue::IntValue(7)));
        assert_eq!(values[2], Some(OfficialValue::BoolValue(true)));
        assert!(
            matches!(&values[3], Some(OfficialValue::ArrayValue(list)) if list.values.len() == 1)
        );
        assert_eq!(span.links[0].trace_id, [3; 16]);
        assert_eq!(span.links[0].span_id, [3; 8]);
        assert_eq!(span.links[0].attributes[0].key, "e");
        let status = span.status.as_ref().expect("a status");
        assert_eq!(
            (status.code(), &*status.message),
            (StatusCode::Error, "why")
        );
    }

    #[test]
    fn a_collector_may_reject_some_spans_of_a_batch() {
        let response = official::ExportTraceServiceResponse {
            partial_success: Some(official::ExportTracePartialSuccess {
                rejected_spans: 3,
                error_message: "too old".to_owned(),
            }),
        };
        let bytes = response.encode_to_vec();
        assert_eq!(rejected(&bytes), Some((3, "too old".to_owned())));
        for nothing in [&b""[..], b"\xFF\xFF\xFF", b"<html>"] {
            assert_eq!(rejected(nothing), None);
        }
    }
}
