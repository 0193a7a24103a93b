//! A shared page is not shaped by the trace of one visitor: an application that writes the trace
//! fields of its request into its pages writes nothing of a visitor's.

use testkit::fake_php::{FakePhp, Script};

use super::*;

/// Answers with all fields that it got.
async fn php() -> FakePhp {
    FakePhp::tcp(|request| {
        let told = [
            "HTTP_TRACEPARENT",
            "HTTP_TRACESTATE",
            "HTTP_BAGGAGE",
            "ID",
            "MAPPED",
        ];
        let told: Vec<&str> = told.iter().map(|name| request.param(name)).collect();
        Script::page("Content-Type: text/plain\r\n", told.join("|"))
    })
    .await
}

/// Returns the page stored for the visitor's request, with the spans.
async fn stored(rules: &str) -> (String, Vec<Span>, String) {
    let collector = Collector::start().await;
    let php = php().await;
    let http = "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
                map $otel_trace_id $mapped { default $otel_trace_id; }\n\
                map $otel_parent_sampled $sampled { default $otel_parent_sampled; }";
    let server = traced(
        &collector,
        http,
        &format!(
            "location / {{ otel_trace_context propagate; fastcgi_pass {};\n\
             fastcgi_param ID $otel_trace_id$otel_parent_id; fastcgi_param MAPPED $mapped;\n\
             fastcgi_cache zone; fastcgi_cache_key $request_uri; fastcgi_cache_valid 200 1h;\n\
             add_header X-Mine $mapped; {rules} }}",
            php.address()
        ),
    )
    .await;
    let target = server.target();
    let fields = format!("{PARENT}tracestate: a=b\r\nbaggage: c=d\r\n");
    let first = target.get_with("/", &fields).await;
    assert_eq!(first.field("x-mine"), PARENT_TRACE, "{first:?}");
    let spans = collector.wait_for(3).await;
    assert_eq!(target.get("/").await.text(), first.text());
    assert_eq!(php.requests(), 1);
    let log = server.error_log();
    (first.text(), spans, log)
}

#[tokio::test]
async fn a_fetch_for_the_cache_is_told_of_a_trace_of_its_own() {
    for rules in [
        "otel_trace on; cache_shared on;",
        "otel_trace on;",
        "otel_trace on; cache_ignore_args utm_source;",
    ] {
        let (page, spans, _) = stored(rules).await;
        let request = spans.iter().find(|span| is_server(span)).expect("a span");
        assert_eq!(hex(&request.trace_id), PARENT_TRACE, "{rules}");
        // In the visitor's trace there is the time that was waited, and a link.
        let waited = spans
            .iter()
            .find(|it| it.name == "upstream" && it.trace_id == request.trace_id)
            .expect("a span in the visitor's trace");
        assert_within(waited, request);
        let fetch = spans
            .iter()
            .find(|it| it.trace_id != request.trace_id)
            .expect("a trace of its own");
        assert_eq!(waited.links[0].span_id, fetch.span_id);
        assert_eq!(fetch.links[0].span_id, request.span_id);
        let (id, span) = (hex(&fetch.trace_id), hex(&fetch.span_id));
        assert_eq!(page, format!("00-{id}-{span}-01|||{id}|{id}"), "{rules}");
        assert!(!page.contains(PARENT_TRACE));
    }
}

#[tokio::test]
async fn whether_a_shared_fetch_is_said_to_be_recorded_is_no_choice_of_the_visitor() {
    for rules in [
        "otel_trace $otel_parent_sampled; cache_shared on;",
        "otel_trace $otel_parent_sampled;",
        "otel_trace $sampled;",
    ] {
        let (page, spans, _) = stored(rules).await;
        // It is recorded, because the visitor's request is.
        assert_eq!(spans.len(), 3, "{rules}");
        let told = page.split('|').next().expect("a field");
        assert!(told.ends_with("-00"), "{rules}: {page}");
    }
}

#[tokio::test]
async fn what_is_kept_as_a_file_is_told_of_a_trace_of_its_own() {
    let collector = Collector::start().await;
    let php = php().await;
    let server = traced(
        &collector,
        "map $otel_trace_id $mapped { default $otel_trace_id; }",
        &format!(
            "location / {{ otel_trace on; otel_trace_context propagate; fastcgi_pass {};\n\
             fastcgi_param ID $otel_trace_id; fastcgi_param MAPPED $mapped;\n\
             fastcgi_store %%/kept; }}",
            php.address()
        ),
    )
    .await;
    let fields = format!("{PARENT}tracestate: a=b\r\nbaggage: c=d\r\n");
    let page = server.target().get_with("/", &fields).await.text();
    assert!(
        !page.contains(PARENT_TRACE) && !page.contains("a=b"),
        "{page}"
    );
    assert!(!page.contains("c=d"), "{page}");
    let spans = collector.wait_for(3).await;
    assert!(spans.iter().any(|span| hex(&span.trace_id) == PARENT_TRACE));
}
