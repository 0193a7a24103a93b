//! `add_header`, `add_trailer` and `expires`.

use crate::{site, site_with};

#[tokio::test]
async fn added_fields_with_line_breaks_are_sent_on_one_line() {
    let server = site("location / { add_header X-A \"one: $uri\ntwo\n\"; return 204; }").await;
    let reply = server.target().get("/a").await;
    assert_eq!(reply.field("x-a"), "one: /a two");
    let split = server.target().get("/a%0d%0aX-B:%20c").await;
    assert!(!split.has("x-b"), "{split:?}");
    assert_eq!(split.field("x-a"), "one: /a  X-B: c two");
}

/// Roots Trellis and h5bp decide how long browsers keep a response by its type: `expires` did not see the
/// value that a map made of the type, and no field was sent.
#[tokio::test]
async fn expires_and_charset_see_the_type_of_the_response() {
    let server = site_with(
        "map $sent_http_content_type $expires { default off; text/css 1h; ~image/ max; }\n\
         map $sent_http_content_type $charset { default off; text/plain utf-8; }",
        "expires $expires; charset $charset; charset_types text/plain text/css;\n\
         location /css { default_type text/css; return 200 a; }\n\
         location /image { default_type image/png; return 200 a; }\n\
         location /text { default_type text/plain; return 200 a; }\n\
         location /moved { charset utf-8; charset_types text/html; return 301 /text; }",
    )
    .await;
    for (path, cache_control, content_type) in [
        ("/css", "max-age=3600", "text/css"),
        ("/image", "max-age=315360000", "image/png"),
        ("/text", "", "text/plain; charset=utf-8"),
        ("/moved", "", "text/html"),
    ] {
        let reply = server.target().get(path).await;
        assert_eq!(
            reply.has("cache-control"),
            !cache_control.is_empty(),
            "{path}"
        );
        if reply.has("cache-control") {
            assert_eq!(reply.field("cache-control"), cache_control, "{path}");
        }
        assert_eq!(reply.field("content-type"), content_type, "{path}");
    }
}

#[tokio::test]
async fn added_fields_and_added_trailers_are_inherited_each_for_themselves() {
    let server = site(
        "add_header Before outer; add_trailer Behind outer;\n\
         location /field { add_header Own field; return 200 text; }\n\
         location /trailer { add_trailer Own trailer; return 200 text; }",
    )
    .await;
    let mut client = server.connect().await;
    for (path, head, behind) in [
        ("/field", "Own: field\r\n", "Behind: outer\r\n"),
        ("/trailer", "Before: outer\r\n", "Own: trailer\r\n"),
    ] {
        client
            .send(format!("GET {path} HTTP/1.1\r\nHost: site.test\r\n\r\n"))
            .await;
        let got = client.receive_until("text\r\n0\r\n").await;
        assert!(String::from_utf8_lossy(&got).contains(head), "{path}");
        let got = client.receive_until("\r\n\r\n").await;
        assert_eq!(got, format!("{behind}\r\n").as_bytes(), "{path}");
    }
}

#[tokio::test]
async fn add_header_inherit_merges_or_cuts_off_what_the_outer_levels_add() {
    let server = site(
        "add_header X-A server; add_header X-B server; add_trailer T server;\n\
         location /on { add_header X-A own; return 200; }\n\
         location /merge { add_header_inherit merge; add_header X-A own; return 200;\n\
             location /merge/in { add_header X-A inner; return 200; }\n\
             location /merge/cut { add_header_inherit on; add_header X-A inner; return 200; } }\n\
         location /off { add_header_inherit off; return 200; }\n\
         location /trailers { add_trailer_inherit merge; add_trailer U own; return 200 text; }",
    )
    .await;
    for (path, a, b) in [
        ("/on", &["own"][..], &[][..]),
        ("/merge", &["own", "server"], &["server"]),
        ("/merge/in", &["inner", "own", "server"], &["server"]),
        ("/merge/cut", &["inner"], &[]),
        ("/off", &[], &[]),
        ("/trailers", &["server"], &["server"]),
    ] {
        let reply = server.target().get(path).await;
        let values = |name: &str| -> Vec<&str> {
            let lines = reply.fields.iter().filter(|(field, _)| field == name);
            lines.map(|(_, value)| &**value).collect()
        };
        assert_eq!(values("x-a"), a, "{path}");
        assert_eq!(values("x-b"), b, "{path}");
    }
    let mut client = server.connect().await;
    client
        .send("GET /trailers HTTP/1.1\r\nHost: site.test\r\n\r\n")
        .await;
    client.receive_until("text\r\n0\r\n").await;
    let got = client.receive_until("\r\n\r\n").await;
    assert_eq!(String::from_utf8_lossy(&got), "U: own\r\nT: server\r\n\r\n");
}

#[tokio::test]
async fn trailers_can_be_read_when_the_body_is_out() {
    use testkit::fake_http;
    let upstream = fake_http::FakeHttp::start(|_| {
        fake_http::Script::new().raw(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
             2\r\nhi\r\n0\r\nX-Sum: 7\r\nX-Sum: 8\r\n\r\n",
        )
    })
    .await;
    let server = site_with(
        "log_format trailers '$sent_trailer_foo $sent_trailer_x_sum $upstream_trailer_x_sum';",
        &format!(
            "access_log %%/log trailers; add_trailer Foo one; add_trailer Foo two;\n\
             add_trailer Seen $sent_trailer_foo;\n\
             location /passed {{ proxy_pass http://{address}; proxy_pass_trailers on; }}\n\
             location /kept {{ proxy_pass http://{address}; }}\n\
             location /own {{ return 200 text; }}",
            address = upstream.address()
        ),
    )
    .await;
    for (path, logged) in [
        ("/passed", "one, two 7, 8 7, 8"),
        ("/kept", "one, two - 7, 8"),
        ("/own", "one, two - -"),
    ] {
        let mut client = server.connect().await;
        client
            .send(format!(
                "GET {path} HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n"
            ))
            .await;
        let all = String::from_utf8_lossy(&client.receive_all().await).into_owned();
        assert!(
            all.contains("0\r\nFoo: one\r\nFoo: two\r\nSeen: one, two\r\n"),
            "{all}"
        );
        assert_eq!(all.contains("X-Sum: 8\r\n\r\n"), path == "/passed", "{all}");
        let log = || std::fs::read_to_string(server.path("log")).unwrap_or_default();
        let begun = std::time::Instant::now();
        while !log().lines().any(|line| line == logged) {
            assert!(
                begun.elapsed() < testkit::wait::TIMEOUT,
                "{path}: {}",
                log()
            );
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    }
}

#[tokio::test]
async fn an_expires_beyond_the_year_9999_is_the_last_date_that_http_can_say() {
    let server = site(
        "location /by_visitor { expires $arg_for; return 200 text; }\n\
         location /fixed { expires 9000y; return 200 text; }",
    )
    .await;
    let last = "Fri, 31 Dec 9999 23:59:59 GMT";
    for target in [
        "/by_visitor?for=400000000000",
        "/by_visitor?for=9223372036854775807",
        "/fixed",
    ] {
        let reply = server.target().get(target).await;
        assert_eq!(reply.field("expires"), last, "{target}");
    }
    let reply = server
        .target()
        .get("/by_visitor?for=@9223372036854775807")
        .await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn more_set_headers_replaces_and_more_clear_headers_removes_fields_of_any_response() {
    use testkit::fake_http;
    let upstream = fake_http::FakeHttp::start(|_| {
        fake_http::Script::new().raw(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nCache-Control: max-age=60\r\n\
             X-A: upstream\r\nX-A: again\r\nX-Debug-Id: 1\r\nX-Debug-Time: 2\r\nX-Powered-By: PHP\r\n\r\nhi",
        )
    })
    .await;
    let pass = format!("proxy_pass http://{};", upstream.address());
    let server = site_with(
        "proxy_cache_path %%/cache keys_zone=z:1m; more_set_headers 'X-A: outer $uri' 'Server: shop';",
        &format!(
            "location /plain {{ {pass} }}\n\
             location /kept {{ proxy_cache z; more_set_headers 'Cache-Control: no-store'; {pass} }}\n\
             location /own {{ more_set_headers \"X-A: own\nX-B: split\"; add_header X-A added; {pass} }}\n\
             location /clear {{ more_clear_headers X-A X-Powered-By 'X-Debug-*' Server; {pass} }}\n\
             location /css {{ more_set_headers -t 'text/css text/plain' 'X-A: style'; {pass} }}\n\
             location /page {{ more_set_headers -s '200 404' -t text/html 'X-A: page'; {pass} }}\n\
             location /none {{ more_set_headers -s '404 500' 'X-A: none'; return 404; }}"
        ),
    )
    .await;
    for (path, a, other) in [
        ("/plain", "outer /plain", "x-powered-by: PHP"),
        ("/kept", "outer /kept", "cache-control: no-store"),
        ("/kept", "outer /kept", "cache-control: no-store"),
        ("/own", "own X-B: split, added", "x-debug-id: 1"),
        ("/clear", "", "content-type: text/html"),
        ("/css", "outer /css", "server: shop"),
        ("/page", "page", "server: shop"),
        ("/none", "none", "server: shop"),
    ] {
        let reply = server.target().get(path).await;
        let fields = reply.fields.iter();
        let lines: Vec<String> = fields
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        let values = lines.iter().filter_map(|line| line.strip_prefix("x-a: "));
        assert_eq!(values.collect::<Vec<_>>().join(", "), a, "{path}");
        assert!(lines.iter().any(|line| line == other), "{path}: {lines:?}");
        assert_eq!(reply.has("server"), path != "/clear", "{path}");
        if path == "/clear" {
            let gone = ["x-powered-by", "x-debug-id", "x-debug-time"];
            assert!(gone.iter().all(|name| !reply.has(name)), "{lines:?}");
        }
    }
}

#[tokio::test]
async fn server_tokens_with_an_empty_text_sends_no_field() {
    let server = site(
        "server_tokens ''; location /none { return 200; }\n\
         location /of_variable { server_tokens $arg_name; return 200; }",
    )
    .await;
    for (path, name) in [
        ("/none", None),
        ("/of_variable", None),
        ("/of_variable?name=a", Some("a")),
    ] {
        let reply = server.target().get(path).await;
        assert_eq!(
            reply.has("server").then(|| reply.field("server")),
            name,
            "{path}"
        );
    }
}

#[tokio::test]
async fn filters_that_change_a_body_remove_validators_that_were_added() {
    let added = "add_header Last-Modified 'Wed, 01 Jan 2020 00:00:00 GMT'; add_header ETag '\"1\"'; default_type text/html;";
    let server = site(&format!(
        "{added} location /plain {{ return 200 a; }}\n\
         location /ssi {{ ssi on; return 200 a; }}\n\
         location /kept {{ ssi on; ssi_last_modified on; return 200 a; }}\n\
         location /sub {{ sub_filter a b; return 200 a; }}\n\
         location /modified {{ ssi on; expires modified 1h; return 200 a; }}"
    ))
    .await;
    for (path, is_kept) in [
        ("/plain", true),
        ("/ssi", false),
        ("/kept", true),
        ("/sub", false),
    ] {
        let reply = server.target().get(path).await;
        assert_eq!(reply.has("last-modified"), is_kept, "{path}: {reply:?}");
    }
    assert!(!server.target().get("/ssi").await.has("etag"));
}

/// A space ends the name as a colon does, like in headers-more.
#[tokio::test]
async fn more_set_headers_needs_no_colon() {
    let server = site(
        "set $robots noindex; more_set_headers \"X-Robots-Tag $robots\" 'X-A: a';\n\
         location / { return 200; } location /cleared { more_clear_headers \"X-A X-Robots-Tag\"; return 200; }",
    )
    .await;
    let reply = server.target().get("/").await;
    assert_eq!(reply.field("x-robots-tag"), "noindex");
    let cleared = server.target().get("/cleared").await;
    assert!(
        !cleared.has("x-a") && cleared.has("x-robots-tag"),
        "{cleared:?}"
    );
}
