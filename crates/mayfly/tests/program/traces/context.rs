//! `otel_trace_context` and `otel_trace`: whose trace goes on, and the fields that the
//! application gets.

use testkit::fake_http::FakeHttp;
use testkit::fake_php::{FakePhp, Script};

use super::*;

/// Answers with the trace fields that it got.
async fn php() -> FakePhp {
    FakePhp::tcp(|request| {
        let told = format!(
            "{}|{}|{}",
            request.param("HTTP_TRACEPARENT"),
            request.param("HTTP_TRACESTATE"),
            request.param("HTTP_BAGGAGE")
        );
        Script::page("Content-Type: text/plain\r\n", told)
    })
    .await
}

#[tokio::test]
async fn traces_are_extracted_and_the_application_is_told() {
    let collector = Collector::start().await;
    let php = php().await;
    let location = |name: &str, context: &str| {
        format!(
            "location /{name} {{ otel_trace on; otel_trace_context {context}; fastcgi_pass {}; }}\n",
            php.address()
        )
    };
    let directives: String = ["extract", "inject", "propagate", "ignore"]
        .iter()
        .map(|it| location(it, it))
        .collect();
    let server = traced(&collector, "", &directives).await;
    let target = server.target();
    let fields = format!("{PARENT}tracestate: a=b\r\ntracestate: c=d\r\nbaggage: e=f\r\n");
    let sent = PARENT.trim().trim_start_matches("traceparent: ");
    for (at, path) in ["extract", "inject", "propagate", "ignore"]
        .iter()
        .enumerate()
    {
        let reply = target.get_with(&format!("/{path}"), &fields).await;
        let spans = collector.wait_for(2 * (at + 1)).await;
        let own = &spans[2 * at..];
        let request = own.iter().find(|span| is_server(span)).expect("a span");
        let upstream = named(own, "upstream");
        assert_within(upstream, request);
        let told = format!(
            "00-{}-{}-01",
            hex(&upstream.trace_id),
            hex(&upstream.span_id)
        );
        // Without `inject`, fields go as they came.
        let wanted = match *path {
            "inject" => format!("{told}||e=f"),
            "propagate" => format!("{told}|a=b,c=d|e=f"),
            _ => format!("{sent}|a=b, c=d|e=f"),
        };
        assert_eq!(reply.text(), wanted, "{path}");
        let extracts = matches!(*path, "extract" | "propagate");
        assert_eq!(hex(&request.trace_id) == PARENT_TRACE, extracts, "{path}");
        let parent = if extracts { "b7ad6b7169203331" } else { "" };
        assert_eq!(hex(&request.parent_span_id), parent, "{path}");
        assert_eq!(request.trace_state, if extracts { "a=b,c=d" } else { "" });
    }
}

#[tokio::test]
async fn a_traceparent_that_is_none_begins_a_new_trace() {
    let collector = Collector::start().await;
    let server = traced(
        &collector,
        "",
        "otel_trace on; otel_trace_context extract; location / { return 200 $otel_parent_id; }",
    )
    .await;
    let target = server.target();
    let invalid = [
        "traceparent: 00-00000000000000000000000000000000-b7ad6b7169203331-01\r\n".to_owned(),
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01\r\n".to_owned(),
        "traceparent: 00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01\r\n".to_owned(),
        "traceparent: ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n".to_owned(),
        format!("{PARENT}{PARENT}"),
        "traceparent: x\r\n".to_owned(),
    ];
    for (at, fields) in invalid.iter().enumerate() {
        assert_eq!(target.get_with("/", fields).await.text(), "", "{fields}");
        let spans = collector.wait_for(at + 1).await;
        assert_ne!(hex(&spans[at].trace_id), PARENT_TRACE, "{fields}");
        assert!(spans[at].parent_span_id.is_empty());
    }
    assert_eq!(
        target.get_with("/", PARENT).await.text(),
        "b7ad6b7169203331"
    );
}

#[tokio::test]
async fn variables_decide_what_is_traced_and_say_so() {
    let collector = Collector::start().await;
    let server = traced(
        &collector,
        "split_clients $otel_trace_id $all { 100% on; }\n\
         split_clients $otel_trace_id $none { 0.01% on; * off; }\n\
         map $arg_t $asked { default 0; yes 1; }",
        "otel_trace_context extract;\n\
         location /all { otel_trace $all; return 200 $otel_trace_id/$otel_span_id; }\n\
         location /map { otel_trace $asked; return 200; }\n\
         location /parent { otel_trace $otel_parent_sampled; return 200 $otel_parent_sampled; }\n\
         location /untraced { otel_trace off; return 200 $otel_parent_sampled$otel_trace_id; }",
    )
    .await;
    let target = server.target();
    let text = target.get("/all").await.text();
    let spans = collector.wait_for(1).await;
    assert_eq!(
        text,
        format!("{}/{}", hex(&spans[0].trace_id), hex(&spans[0].span_id))
    );
    assert_eq!(target.get_with("/parent", PARENT).await.text(), "1");
    collector.wait_for(2).await;
    let unsampled = PARENT.replace("-01\r\n", "-00\r\n");
    assert_eq!(target.get_with("/parent", &unsampled).await.text(), "0");
    assert_eq!(target.get("/parent").await.text(), "0");
    assert_eq!(target.get("/map?t=no").await.status, 200);
    assert_eq!(
        target.get_with("/untraced", PARENT).await.text(),
        format!("1{PARENT_TRACE}")
    );
    assert_eq!(target.get("/map?t=yes").await.status, 200);
    let spans = collector.wait_for(3).await;
    assert_eq!(spans[2].name, "/map");
    assert_eq!(spans.len(), 3);
}

#[tokio::test]
async fn http_upstreams_are_told_once_whatever_the_client_sends() {
    let collector = Collector::start().await;
    let origin = FakeHttp::showing_requests("").await;
    let server = traced(
        &collector,
        "",
        &format!(
            "otel_trace_context propagate;\n\
             location /on {{ otel_trace on; proxy_pass {0}; }}\n\
             location /off {{ proxy_pass {0}; }}\n\
             location /own {{ otel_trace on; proxy_set_header Traceparent mine; proxy_pass {0}; }}",
            origin.url()
        ),
    )
    .await;
    let target = server.target();
    let told = async |path: &str| {
        let head = target
            .get_with(path, &format!("{PARENT}TraceState: a=b\r\n"))
            .await
            .text();
        let lines = head
            .lines()
            .filter(|it| it.to_ascii_lowercase().starts_with("trace"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let on = told("/on").await;
    let spans = collector.wait_for(2).await;
    let upstream = named(&spans, "upstream");
    assert_eq!(
        on,
        [
            format!(
                "traceparent: 00-{PARENT_TRACE}-{}-01",
                hex(&upstream.span_id)
            ),
            "tracestate: a=b".to_owned()
        ]
    );
    // An application without a trace gets a field for that.
    let off = told("/off").await;
    assert!(
        off[0].starts_with(&format!("traceparent: 00-{PARENT_TRACE}-")),
        "{off:?}"
    );
    assert!(off[0].ends_with("-00"), "{off:?}");
    let own = told("/own").await;
    assert_eq!(own, ["Traceparent: mine", "tracestate: a=b"]);
}
