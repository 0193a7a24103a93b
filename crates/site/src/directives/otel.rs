//! Table of the directives about traces, which are those of nginx's `ngx_otel_module`.

use super::declaration::*;
use super::{Context, Directive};

const EXPORTER: &[Context] = &[Context::OtelExporter];

table! {
    BATCH_COUNT: Number = number("batch_count", EXPORTER).range(1, 1_024).default("4").text(
        "sets how many batches may wait", "batch_count 8;", "\
        Spans that come when as many wait are dropped and counted; the error log says so about once a minute. \
        Whatever the number is, waiting spans take 8 MB at most.");
    BATCH_SIZE: Number = number("batch_size", EXPORTER).range(1, 16_384).default("512").text(
        "sets how many spans are sent together at most", "batch_size 256;",
        "A batch is sent when it is full, or after `interval`.");
    _ = lines("endpoint", EXPORTER, (1, 1), "[http://|https://]HOST:PORT[/PATH]").text(
        "sets the collector that traces are sent to", "endpoint http://127.0.0.1:4318/v1/traces;", "\
        With a path, the collector is spoken to by OTLP over HTTP, with protobuf; the usual path is `/v1/traces`, \
        and the usual port 4318. Without a path it is OTLP over gRPC, as in nginx; the usual port is 4317.");
    _ = lines("header", EXPORTER, (2, 2), "NAME VALUE").repeats().text(
        "adds a field to what is sent to the collector", "header X-API-Token my-token;",
        "Services on the Internet want a key in such a field.");
    INTERVAL: Time = time("interval", EXPORTER).default("5s").text(
        "sets how long a span waits at most until its batch is sent", "interval 1s;",
        "Shorter intervals show traces sooner.");
    _ = lines("otel_exporter", HTTP, (0, 0), "").block().text(
        "says where traces are sent", "otel_exporter { endpoint http://127.0.0.1:4318/v1/traces; }", "\
        `endpoint` is required. [traces.md](traces.md) says what is sent. A collector that is slow or away slows no \
        visitor down: what it does not take in time is dropped and counted.");
    _ = lines("otel_resource_attr", HTTP, (2, 2), "NAME VALUE").repeats().text(
        "adds an attribute to what is said of this server", "otel_resource_attr deployment.environment.name production;",
        "It belongs to the resource of all spans.");
    _ = lines("otel_service_name", HTTP, (1, 1), "NAME").default("unknown_service:mayfly").text(
        "sets the name of this server in traces", "otel_service_name shop;",
        "It is the attribute `service.name` of the resource.");
    _ = lines("otel_span_attr", LEVELS, (2, 2), "NAME VALUE").inherited_as_a_whole().repeats().text(
        "adds an attribute to the spans of requests", "otel_span_attr shop.basket $cookie_basket;", "\
        The value may contain variables. It is cut after 2,048 bytes. An attribute whose name begins with \
        `http.request.header.` or `http.response.header.` is a list, as OpenTelemetry wants it. A level has 128 \
        attributes at most.");
    _ = lines("otel_span_name", LEVELS, (1, 1), "NAME").inherited().text(
        "sets the name of the spans of requests", r#"otel_span_name "$request_method $uri";"#,
        "The value may contain variables. Without it, the name of the location is used.");
    _ = lines("otel_trace", LEVELS, (1, 1), "on | off | $VARIABLE").default("off").inherited().text(
        "sets which requests are traced", "otel_trace on;", "\
        A variable turns it on where it is `on` or `1`. With `split_clients`, a share of the requests is traced; \
        with `$otel_parent_sampled`, those that the sender traces. Who sends a request can then have it traced: use \
        that behind a proxy that sets the field.\n\n\
        It needs an `otel_exporter`. The decision is made once for a request, in the first location whose \
        `otel_trace` is not `off`.");
    OTEL_TRACE_CONTEXT: Choice<(bool, bool)> = choice("otel_trace_context", LEVELS, "extract | inject | propagate | ignore", &[
        ("ignore", (false, false)), ("extract", (true, false)), ("inject", (false, true)), ("propagate", (true, true)),
    ])
        .default("ignore").text(
        "sets what becomes of the fields traceparent and tracestate", "otel_trace_context propagate;", "\
        - `extract`: the trace that the request is part of goes on.\n\
        - `inject`: the application is sent the fields for its own spans (PHP finds `HTTP_TRACEPARENT`), whatever \
        the client has sent. This holds for requests that are not traced as well; the fields then say so.\n\
        - `propagate`: both.\n\
        - `ignore`: the fields are of no interest to the server.\n\n\
        A request that the cache may store the answer of gets no part of the client's fields, but a trace of its \
        own, linked to the client's: [traces.md](traces.md) says why.");
    _ = lines("trusted_certificate", EXPORTER, (1, 1), "FILE").text(
        "sets the authorities that the collector's certificate is verified with", "trusted_certificate /etc/mayfly/collector-ca.pem;",
        "Without it, those of the system are used. The certificate is always verified.");
}
