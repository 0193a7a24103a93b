//! The spans of a request, and their content.

use testkit::fake_http::{FakeHttp, Script as HttpScript};
use testkit::fake_php::{FakePhp, Script};

use super::*;

const ZONE: &str = "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;";

fn cached(php: &FakePhp, directives: &str) -> String {
    format!(
        "location / {{ otel_trace on; fastcgi_pass {}; fastcgi_param REQUEST_URI $request_uri;\n\
         fastcgi_param REQUEST_METHOD $request_method; fastcgi_cache zone; fastcgi_cache_valid 200 1h;\n\
         fastcgi_cache_key $request_uri; {directives} }}",
        php.address()
    )
}

async fn php() -> FakePhp {
    FakePhp::tcp(|_| Script::page("Content-Type: text/html\r\n", "the page")).await
}

#[tokio::test]
async fn a_miss_has_the_upstream_in_its_trace_and_a_hit_has_none() {
    let collector = Collector::start().await;
    let php = php().await;
    let directives = cached(
        &php,
        "otel_span_attr shop.user $arg_user; otel_span_attr http.request.header.accept $http_accept;",
    );
    let http = format!("otel_service_name shop; otel_resource_attr a b; {ZONE}");
    let server = traced(&collector, &http, &directives).await;
    let target = server.target();
    let fields = "User-Agent: test/1\r\nAccept: text/html\r\n";
    assert_eq!(target.get_with("/p?user=7", fields).await.status, 200);
    let spans = collector.wait_for(2).await;
    let request = named(&spans, "/");
    assert!(is_server(request));
    assert!(request.parent_span_id.is_empty());
    for (name, wanted) in [
        ("http.method", "GET"),
        ("http.target", "/p?user=7"),
        ("http.route", "/"),
        ("http.scheme", "http"),
        ("http.flavor", "1.1"),
        ("http.user_agent", "test/1"),
        ("http.request_content_length", "0"),
        ("http.status_code", "200"),
        ("net.host.name", "site.test"),
        ("mayfly.cache.status", "MISS"),
        ("mayfly.cache.zone", "zone"),
        ("shop.user", "7"),
        ("http.request.header.accept", "1"),
    ] {
        assert_eq!(attribute(request, name).as_deref(), Some(wanted), "{name}");
    }
    assert!(!is_error(request));
    let upstream = named(&spans, "upstream");
    assert_within(upstream, request);
    assert_eq!(upstream.kind(), SpanKind::Client);
    for (name, wanted) in [
        ("network.protocol.name", "fastcgi"),
        ("server.address", &*php.address()),
        ("http.status_code", "200"),
    ] {
        assert_eq!(attribute(upstream, name).as_deref(), Some(wanted), "{name}");
    }
    {
        let batches = collector.taken.batches.lock();
        let resource = batches[0].resource_spans[0].resource.as_ref();
        let resource = format!("{:?}", resource.expect("a resource").attributes);
        for text in ["service.name", "shop", "\"a\"", "\"b\""] {
            assert!(resource.contains(text), "{resource}");
        }
    }
    // The hit.
    assert_eq!(target.get("/p?user=7").await.status, 200);
    let spans = collector.wait_for(3).await;
    let hit = spans.last().expect("a span");
    assert_eq!(
        attribute(hit, "mayfly.cache.status").as_deref(),
        Some("HIT")
    );
    assert_eq!(attribute(hit, "mayfly.cache.age").as_deref(), Some("0"));
    assert_ne!(hit.trace_id, request.trace_id);
    assert_eq!(php.requests(), 1);
    assert_eq!(spans.len(), 3);
}

#[tokio::test]
async fn who_waits_for_the_fetch_of_another_links_to_it() {
    let collector = Collector::start().await;
    let (php, gate) =
        FakePhp::gated("Content-Type: text/html\r\n\r\nfirst half,", " second half").await;
    let server = traced(&collector, ZONE, &cached(&php, "")).await;
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = server.connect().await;
        client
            .send("GET /hot HTTP/1.0\r\nHost: site.test\r\n\r\n")
            .await;
        client.receive_until("first half,").await;
        clients.push(client);
    }
    gate.add_permits(1);
    for client in &mut clients {
        assert_eq!(client.receive_all().await, b" second half");
    }
    assert_eq!(php.requests(), 1);
    let spans = collector.wait_for(4).await;
    let wait = named(&spans, "cache wait");
    let upstream = named(&spans, "upstream");
    let of = |id: &[u8]| {
        spans
            .iter()
            .find(|span| span.span_id == id)
            .expect("a span")
    };
    let (leader, follower) = (of(&upstream.parent_span_id), of(&wait.parent_span_id));
    assert_within(upstream, leader);
    assert_within(wait, follower);
    assert_ne!(leader.trace_id, follower.trace_id);
    assert_eq!(wait.links.len(), 1);
    assert_eq!(wait.links[0].trace_id, upstream.trace_id);
    assert_eq!(wait.links[0].span_id, upstream.span_id);
    assert_eq!(
        attribute(follower, "mayfly.cache.collapsed").as_deref(),
        Some("true")
    );
}

#[tokio::test]
async fn a_refresh_in_the_background_is_a_trace_of_its_own_with_a_link_to_its_cause() {
    let collector = Collector::start().await;
    let php = php().await;
    let stale = "fastcgi_cache_valid 200 1ms; fastcgi_cache_use_stale updating; fastcgi_cache_background_update on;";
    let directives = cached(&php, stale).replace("fastcgi_cache_valid 200 1h;", "");
    let server = traced(&collector, ZONE, &directives).await;
    let target = server.target();
    assert_eq!(target.get("/").await.status, 200);
    collector.wait_for(2).await;
    let mut asked = 1;
    // The lifetime is over in a millisecond: within a few requests one is stale.
    while php.requests() < 2 {
        target.get("/").await;
        asked += 1;
    }
    let spans = collector.wait_for(asked + 2).await;
    let refresh = spans
        .iter()
        .find(|span| !span.links.is_empty() && !is_server(span));
    let refresh = refresh.expect("a refresh");
    let request = spans
        .iter()
        .find(|span| span.span_id == refresh.links[0].span_id);
    let request = request.expect("its cause");
    let status = attribute(request, "mayfly.cache.status");
    assert!(
        matches!(status.as_deref(), Some("STALE" | "UPDATING")),
        "{status:?}"
    );
    assert_ne!(refresh.trace_id, request.trace_id);
    assert!(refresh.parent_span_id.is_empty());
    assert_eq!(refresh.links[0].trace_id, request.trace_id);
    assert_eq!(refresh.links[0].span_id, request.span_id);
    assert_eq!(
        attribute(refresh, "mayfly.background").as_deref(),
        Some("true")
    );
    assert_eq!(request.links[0].trace_id, refresh.trace_id);
    assert_eq!(request.links[0].span_id, refresh.span_id);
}

#[tokio::test]
async fn time_in_line_is_a_span_of_its_own() {
    let collector = Collector::start().await;
    let (php, gate) = FakePhp::gated("", "X: y\r\n\r\npage").await;
    let http = format!(
        "upstream php {{ server {} max_conns=1; queue 10 timeout=30s; }}",
        php.address()
    );
    let server = traced(
        &collector,
        &http,
        "location / { otel_trace on; fastcgi_pass php; } location = /metrics { metrics; }",
    )
    .await;
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = server.connect().await;
        client
            .send("GET / HTTP/1.1\r\nHost: site.test\r\n\r\n")
            .await;
        clients.push(client);
    }
    let waits = "mayfly_upstream_queued{upstream=\"php\"} 1";
    while !server.target().get("/metrics").await.text().contains(waits) {}
    // It has waited for longer than the clock's unit.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    gate.add_permits(2);
    for client in &mut clients {
        assert_eq!(client.receive(false).await.expect("an answer").status, 200);
    }
    let spans = collector.wait_for(5).await;
    let queue = named(&spans, "queue");
    let upstream = spans
        .iter()
        .find(|span| span.span_id == queue.parent_span_id);
    let upstream = upstream.expect("the upstream's span");
    assert_within(queue, upstream);
    assert_eq!(
        attribute(upstream, "mayfly.upstream.name").as_deref(),
        Some("php")
    );
    let took = queue.end_time_unix_nano - queue.start_time_unix_nano;
    assert!(took >= 10_000_000, "{took}");
}

#[tokio::test]
async fn an_upstream_that_fails_is_an_error_and_each_try_is_told() {
    let collector = Collector::start().await;
    let good = FakeHttp::start(|_| HttpScript::page("", "good")).await;
    let bad = FakeHttp::start(|_| HttpScript::new().close()).await;
    let http = format!(
        "upstream both {{ server {} max_fails=0; server {} backup; }}",
        bad.address(),
        good.address()
    );
    let server = traced(
        &collector,
        &http,
        &format!(
            "otel_trace on; location /both {{ proxy_pass http://both; }}\n\
             location /bad {{ proxy_pass http://{}; }}\n\
             location /php {{ fastcgi_pass 127.0.0.1:1; }}",
            bad.address()
        ),
    )
    .await;
    let target = server.target();
    assert_eq!(target.get("/both").await.status, 200);
    let spans = collector.wait_for(4).await;
    let upstream = named(&spans, "upstream");
    assert_within(upstream, named(&spans, "/both"));
    assert!(!is_error(upstream));
    let tries: Vec<_> = spans.iter().filter(|span| span.name == "try").collect();
    assert_eq!(tries.len(), 2);
    tries.iter().for_each(|it| assert_within(it, upstream));
    assert!(is_error(tries[0]) && !is_error(tries[1]));
    assert_eq!(attribute(tries[0], "server.address"), Some(bad.address()));
    assert_eq!(attribute(tries[1], "server.address"), Some(good.address()));
    for (path, at) in [("/bad", 4), ("/php", 6)] {
        assert_eq!(target.get(path).await.status, 502);
        let spans = collector.wait_for(at + 2).await;
        let (request, upstream) = (named(&spans[at..], path), named(&spans[at..], "upstream"));
        assert!(is_error(request) && is_error(upstream));
        assert_within(upstream, request);
        assert_eq!(
            attribute(request, "http.status_code").as_deref(),
            Some("502")
        );
    }
}

#[tokio::test]
async fn what_clients_send_is_bounded_and_need_not_be_text() {
    let collector = Collector::start().await;
    let server = traced(
        &collector,
        "large_client_header_buffers 4 64k;",
        "location / { otel_trace on; otel_span_name $arg_name; return 200; }",
    )
    .await;
    let mut client = server.connect().await;
    let mut head = format!(
        "GET /?name=n&x={} HTTP/1.1\r\nHost: site.test\r\n",
        "x".repeat(20_000)
    )
    .into_bytes();
    head.extend_from_slice(b"User-Agent: \xff\xfe");
    head.extend(std::iter::repeat_n(0xE9, 20_000));
    head.extend_from_slice(b"\r\n\r\n");
    client.send(head).await;
    assert_eq!(client.receive(false).await.expect("an answer").status, 200);
    let spans = collector.wait_for(1).await;
    assert_eq!(spans[0].name, "n");
    for name in ["http.target", "http.user_agent"] {
        let value = attribute(&spans[0], name).expect(name);
        assert!((2000..=2048).contains(&value.len()), "{}", value.len());
    }
}

#[tokio::test]
async fn parts_of_a_page_belong_to_its_trace_and_redirects_keep_it() {
    let collector = Collector::start().await;
    let php = php().await;
    let server = traced(
        &collector,
        "",
        &format!(
            "location /guarded {{ otel_trace on; auth_request /auth; try_files /none /index; }}\n\
             location = /auth {{ fastcgi_pass {0}; }}\n\
             location /index {{ otel_trace off; fastcgi_pass {0}; }}\n\
             location /off {{ fastcgi_pass {0}; }}",
            php.address()
        ),
    )
    .await;
    let target = server.target();
    assert_eq!(target.get("/off").await.status, 200);
    assert_eq!(target.get("/guarded").await.status, 200);
    let spans = collector.wait_for(3).await;
    let request = spans.iter().find(|span| is_server(span)).expect("a span");
    // It has the name of the location in which it ended, as in nginx.
    assert_eq!(request.name, "/index");
    let parts: Vec<_> = spans
        .iter()
        .filter(|span| span.name == "upstream")
        .collect();
    assert_eq!(parts.len(), 2);
    parts.iter().for_each(|it| assert_within(it, request));
    assert_eq!(spans.len(), 3, "{spans:#?}");
}

#[tokio::test]
async fn a_request_that_no_server_has_room_for_says_so() {
    let collector = Collector::start().await;
    let (php, gate) = FakePhp::gated("", "X: y\r\n\r\npage").await;
    let http = format!(
        "upstream php {{ server {} max_conns=1; queue 1 timeout=30ms; }}",
        php.address()
    );
    let server = traced(
        &collector,
        &http,
        "location / { fastcgi_pass php; } location /traced { otel_trace on; fastcgi_pass php; }",
    )
    .await;
    let mut first = server.connect().await;
    first
        .send("GET / HTTP/1.1\r\nHost: site.test\r\n\r\n")
        .await;
    testkit::wait::until("the first", || php.requests() == 1).await;
    assert!(server.target().get("/traced").await.status >= 502);
    let spans = collector.wait_for(3).await;
    let (upstream, queue) = (named(&spans, "upstream"), named(&spans, "queue"));
    assert_within(upstream, named(&spans, "/traced"));
    assert_within(queue, upstream);
    assert!(is_error(upstream) && is_error(queue));
    let took = queue.end_time_unix_nano - queue.start_time_unix_nano;
    assert!(took >= 20_000_000, "{took}");
    gate.add_permits(1);
}

#[tokio::test]
async fn what_ends_before_content_is_traced_as_well() {
    let collector = Collector::start().await;
    let server = traced(
        &collector,
        "",
        "otel_trace on;\n\
         location /moved { return 301 /else; }\n\
         location /denied { deny all; }\n\
         location /limited { limit_rate 1m; }",
    )
    .await;
    let target = server.target();
    for (at, (path, status, name)) in [
        ("/moved", 301, "/moved"),
        ("/denied", 403, "/denied"),
        ("/limited", 404, "/limited"),
        // No location: it has no name.
        ("/none", 404, "GET"),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(target.get(path).await.status, status);
        let spans = collector.wait_for(at + 1).await;
        assert_eq!(spans[at].name, name);
        let told = attribute(&spans[at], "http.status_code");
        assert_eq!(told, Some(status.to_string()));
        assert!(!is_error(&spans[at]));
    }
}

#[tokio::test]
async fn slices_belong_to_the_trace_of_the_response() {
    let collector = Collector::start().await;
    let origin = FakeHttp::start(|request| {
        let range = request.field("Range").trim_start_matches("bytes=");
        let (start, end) = range.split_once('-').expect("a range");
        let (start, end): (usize, usize) = (start.parse().expect("a"), end.parse().expect("b"));
        let body = &"0123456789"[start..=end.min(9)];
        HttpScript::new().raw(format!(
            "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nContent-Length: {}\r\n\
             Content-Range: bytes {start}-{}/10\r\n\r\n{body}",
            body.len(),
            end.min(9)
        ))
    })
    .await;
    let server = traced(
        &collector,
        "proxy_cache_path %%/cache keys_zone=zone:1m memory=8m;",
        &format!(
            "location / {{ otel_trace on; slice 4; proxy_set_header Range $slice_range;\n\
             proxy_cache zone; proxy_cache_key $uri$slice_range; proxy_cache_valid 206 1h;\n\
             proxy_pass {}; }}",
            origin.url()
        ),
    )
    .await;
    assert_eq!(server.target().get("/").await.text(), "0123456789");
    let spans = collector.wait_for(4).await;
    let request = named(&spans, "/");
    let parts: Vec<_> = spans.iter().filter(|it| it.name == "upstream").collect();
    assert_eq!(parts.len(), 3);
    parts.iter().for_each(|it| assert_within(it, request));
}
