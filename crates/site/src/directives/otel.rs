//! Table of the directives about traces, which are those of nginx's `ngx_otel_module`.

use super::{Context, Directive};

const EXPORTER: &[Context] = &[Context::OtelExporter];
const LEVELS: &[Context] = &[Context::Http, Context::Server, Context::Location];

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("batch_count", EXPORTER)
        .takes(1, 1, "NUMBER")
        .default("4")
        .short("sets how many batches may wait")
        .long("\
            Spans that come when as many wait are dropped and counted; the error log says so about once a \
            minute. Whatever the number is, waiting spans take 8 MB at most.")
        .example("batch_count 8;"),
    Directive::new("batch_size", EXPORTER)
        .takes(1, 1, "NUMBER")
        .default("512")
        .short("sets how many spans are sent together at most")
        .long("A batch is sent when it is full, or after `interval`.")
        .example("batch_size 256;"),
    Directive::new("endpoint", EXPORTER)
        .takes(1, 1, "[http://|https://]HOST:PORT[/PATH]")
        .short("sets the collector that traces are sent to")
        .long("\
            With a path, the collector is spoken to by OTLP over HTTP, with protobuf; the usual path is \
            `/v1/traces`, and the usual port 4318. Without a path it is OTLP over gRPC, as in nginx; the \
            usual port is 4317.")
        .example("endpoint http://127.0.0.1:4318/v1/traces;"),
    Directive::new("header", EXPORTER)
        .takes(2, 2, "NAME VALUE").repeats()
        .short("adds a field to what is sent to the collector")
        .long("Services on the Internet want a key in such a field.")
        .example("header X-API-Token my-token;"),
    Directive::new("interval", EXPORTER)
        .takes(1, 1, "TIME")
        .default("5s")
        .short("sets how long a span waits at most until its batch is sent")
        .long("Shorter intervals show traces sooner.")
        .example("interval 1s;"),
    Directive::new("otel_exporter", &[Context::Http])
        .takes(0, 0, "").block()
        .short("says where traces are sent")
        .long("\
            `endpoint` is required. [traces.md](traces.md) says what is sent. A collector that is slow or \
            away slows no visitor down: what it does not take in time is dropped and counted.")
        .example("otel_exporter { endpoint http://127.0.0.1:4318/v1/traces; }"),
    Directive::new("otel_resource_attr", &[Context::Http])
        .takes(2, 2, "NAME VALUE").repeats()
        .short("adds an attribute to what is said of this server")
        .long("It belongs to the resource of all spans.")
        .example("otel_resource_attr deployment.environment.name production;"),
    Directive::new("otel_service_name", &[Context::Http])
        .takes(1, 1, "NAME")
        .default("unknown_service:mayfly")
        .short("sets the name of this server in traces")
        .long("It is the attribute `service.name` of the resource.")
        .example("otel_service_name shop;"),
    Directive::new("otel_span_attr", LEVELS)
        .takes(2, 2, "NAME VALUE").inherited_as_a_whole().repeats()
        .short("adds an attribute to the spans of requests")
        .long("\
            The value may contain variables. It is cut after 2,048 bytes. An attribute whose name begins \
            with `http.request.header.` or `http.response.header.` is a list, as OpenTelemetry wants it. \
            A level has 128 attributes at most.")
        .example("otel_span_attr shop.basket $cookie_basket;"),
    Directive::new("otel_span_name", LEVELS)
        .takes(1, 1, "NAME").inherited()
        .short("sets the name of the spans of requests")
        .long("The value may contain variables. Without it, the name of the location is used.")
        .example(r#"otel_span_name "$request_method $uri";"#),
    Directive::new("otel_trace", LEVELS)
        .takes(1, 1, "on | off | $VARIABLE").inherited()
        .default("off")
        .short("sets which requests are traced")
        .long("\
            A variable turns it on where it is `on` or `1`. With `split_clients`, a share of the requests is \
            traced; with `$otel_parent_sampled`, those that the sender traces. Who sends a request can then \
            have it traced: use that behind a proxy that sets the field.\n\n\
            It needs an `otel_exporter`. The decision is made once for a request, in the first location \
            whose `otel_trace` is not `off`.")
        .example("otel_trace on;"),
    Directive::new("otel_trace_context", LEVELS)
        .takes(1, 1, "extract | inject | propagate | ignore").inherited()
        .default("ignore")
        .short("sets what becomes of the fields traceparent and tracestate")
        .long("\
            - `extract`: the trace that the request is part of goes on.\n\
            - `inject`: the application is sent the fields for its own spans (PHP finds `HTTP_TRACEPARENT`), \
              whatever the client has sent. This holds for requests that are not traced as well; the fields \
              then say so.\n\
            - `propagate`: both.\n\
            - `ignore`: the fields are of no interest to the server.\n\n\
            A request that the cache may store the answer of gets no part of the client's fields, but a \
            trace of its own, linked to the client's: [traces.md](traces.md) says why.")
        .example("otel_trace_context propagate;"),
    Directive::new("trusted_certificate", EXPORTER)
        .takes(1, 1, "FILE")
        .short("sets the authorities that the collector's certificate is verified with")
        .long("Without it, those of the system are used. The certificate is always verified.")
        .example("trusted_certificate /etc/mayfly/collector-ca.pem;"),
];
