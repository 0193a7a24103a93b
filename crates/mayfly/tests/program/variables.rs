//! Variables with parts of the client's request.

use crate::site;

#[tokio::test]
async fn the_received_target_is_told_without_scheme_and_authority() {
    let server = site("location / { return 200 \"$request_uri $uri\"; }").await;
    for (target, wanted) in [
        ("/a%20b?c", "/a%20b?c /a b"),
        ("http://a.test/a%20b?c", "/a%20b?c /a b"),
        ("http://a.test:81//a", "//a /a"),
        ("http://a.test", "/ /"),
        // nginx has "?c" here; an empty path is "/" (RFC 9110 §4.2.3).
        ("http://a.test?c", "/?c /"),
    ] {
        let mut client = server.connect().await;
        client.send(format!("GET {target} HTTP/1.0\r\n\r\n")).await;
        let reply = client.receive(false).await.expect("a response");
        assert_eq!(reply.text(), wanted, "{target}");
    }
}

#[tokio::test]
async fn the_port_that_the_client_named_is_told() {
    let server = site("location / { return 200 \"$host$is_request_port$request_port\"; }").await;
    for (request, wanted) in [
        ("GET / HTTP/1.0\r\n\r\n", "site.test"),
        ("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n", "a.test"),
        ("GET / HTTP/1.0\r\nHost: a.test:81\r\n\r\n", "a.test:81"),
        (
            "GET http://b.test:82/ HTTP/1.0\r\nHost: a.test:81\r\n\r\n",
            "b.test:82",
        ),
    ] {
        let mut client = server.connect().await;
        client.send(request).await;
        assert_eq!(
            client.receive(false).await.expect("a response").text(),
            wanted
        );
    }
}

#[tokio::test]
async fn the_user_is_known_where_nobody_asked_for_a_name() {
    let server = site("location / { return 200 \"[$remote_user]\"; }").await;
    let target = server.target();
    assert_eq!(
        target
            .get_with("/", "Authorization: Basic YW5uYTpz\r\n")
            .await
            .text(),
        "[anna]"
    );
    assert_eq!(
        target
            .get_with("/", "Authorization: Bearer YW5uYTpz\r\n")
            .await
            .text(),
        "[]"
    );
    assert_eq!(target.get("/").await.text(), "[]");
}

#[tokio::test]
async fn a_variable_of_a_family_may_lack_its_name() {
    let server = site("location / { return 200 [$arg_][$http_][$cookie_][$sent_http_]; }").await;
    let reply = server.target().get("/?=a&b=c").await;
    assert_eq!(reply.text(), "[][][][]");
}

#[tokio::test]
async fn repeated_fields_are_joined() {
    let server =
        site("location / { return 200 \"$http_user_agent|$content_type|$http_cookie\"; }").await;
    let fields = "User-Agent: a\r\nUser-Agent: b\r\nContent-Type: c\r\nContent-Type: d\r\nCookie: e\r\nCookie: f\r\n";
    let reply = server.target().get_with("/", fields).await;
    assert_eq!(reply.text(), "a, b|c, d|e; f");
}

/// A page and its parts are one request to a reader of the logs.
#[tokio::test]
async fn parts_of_a_page_have_its_request_id() {
    let server = site(
        "default_type text/html;\n\
         location / { ssi on; add_header X-Id $request_id;\n\
           return 200 '<!--#include virtual=\"/id\" --> <!--#include virtual=\"/id\" -->'; }\n\
         location /id { return 200 $request_id; }",
    )
    .await;
    let reply = server.target().get("/").await;
    let id = reply.field("x-id");
    assert_eq!(id.len(), 32, "{id}");
    assert_eq!(reply.text(), format!("{id} {id}"));
}
