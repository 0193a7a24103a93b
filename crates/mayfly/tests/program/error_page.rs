//! `error_page` and `recursive_error_pages`.

use testkit::fake_php::{FakePhp, Script};

use crate::site;

#[tokio::test]
async fn an_error_page_can_read_a_body_that_php_was_streamed() {
    let php = FakePhp::tcp(|_| Script::page("Status: 404 Not Found\r\n", "none")).await;
    let server = site(&format!(
        "location / {{ fastcgi_request_buffering off; fastcgi_pass {}; fastcgi_intercept_errors on;\n\
         error_page 404 /404; }}\nlocation /404 {{ return 200 \"[$request_body]\"; }}",
        php.address()
    ))
    .await;
    for (fields, body) in [
        ("Content-Length: 5", "hello"),
        (
            "Transfer-Encoding: chunked",
            "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        ),
    ] {
        let mut client = server.connect().await;
        client
            .send(format!(
                "POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n{body}"
            ))
            .await;
        let reply = client.receive(false).await.expect("a response");
        assert_eq!((reply.status, reply.text().as_str()), (404, "[hello]"));
    }
}

#[tokio::test]
async fn pages_of_statuses_have_the_words_of_nginx() {
    let server = site(
        "location /302 { return 302; } location /401 { return 401; } location /404 { return 404; }\n\
         location /494 { return 494; }",
    )
    .await;
    for (path, words) in [
        (
            "/302",
            "<title>302 Found</title></head>\r\n<body>\r\n<center><h1>302 Found</h1></center>\r\n<hr>",
        ),
        (
            "/401",
            "<center><h1>401 Authorization Required</h1></center>\r\n<hr>",
        ),
        ("/404", "<center><h1>404 Not Found</h1></center>\r\n<hr>"),
        (
            "/494",
            "<center><h1>400 Bad Request</h1></center>\r\n<center>Request Header Or Cookie Too Large</center>\r\n<hr>",
        ),
    ] {
        let text = server.target().get(path).await.text();
        assert!(text.contains(words), "{path}: {text}");
    }
}

#[tokio::test]
async fn an_error_or_a_redirect_in_the_place_of_an_error_page_counts() {
    let server = site(
        "location /missing { error_page 404 =200 /nothing; return 404; }\n\
         location /refused { error_page 404 /none; return 404; } location /none { return 405; }\n\
         location /text { error_page 405 /said; return 405; } location /said { return 200 text; }\n\
         location /empty { error_page 405 /void; return 405; } location /void { return 204; }\n\
         location /folder { error_page 405 /sub; return 405; }\n\
         location /moved { error_page 405 /there; return 405; } location /there { return 301 /x; }\n\
         location /rewritten { error_page 405 /r; return 405; } location /r { rewrite ^ http://a.test/; }\n\
         location /loop { error_page 404 =200 /loops; return 404; }\n\
         location /loops { try_files /none /loops; }",
    )
    .await;
    std::fs::create_dir(server.path("sub")).expect("a folder");
    for (path, status, location) in [
        ("/missing", 404, ""),
        ("/refused", 405, ""),
        ("/text", 405, ""),
        ("/empty", 405, ""),
        ("/folder", 301, "http://site.test/sub/"),
        ("/moved", 301, "http://site.test/x"),
        ("/rewritten", 302, "http://a.test/"),
        ("/loop", 500, ""),
    ] {
        let reply = server.target().get(path).await;
        assert_eq!(
            (reply.status, reply.field("location")),
            (status, location),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_redirect_has_a_page_too_and_one_place_to_go() {
    let server = site(
        "error_page 302 /again; location = / { return 302 first; }\n\
         location /again { return 302 http://a.test/; }\n\
         location /away { error_page 302 http://b.test/; return 302 first; }\n\
         location /text { error_page 302 /said; return 302 first; } location /said { return 200 text; }\n\
         location /deep { recursive_error_pages on; error_page 301 /deeper; return 301 first; }\n\
         location /deeper { recursive_error_pages on; error_page 302 /deepest; return 302 second; }\n\
         location /deepest { return 200 text; }",
    )
    .await;
    for (path, status, location) in [
        ("/", 302, "http://a.test/"),
        ("/away", 302, "http://b.test/"),
        ("/text", 302, "first"),
        ("/deep", 302, "second"),
    ] {
        let reply = server.target().get(path).await;
        let locations = reply.fields.iter().filter(|(name, _)| name == "location");
        let locations: Vec<&str> = locations.map(|(_, value)| value.as_str()).collect();
        assert_eq!(
            (reply.status, locations),
            (status, vec![location]),
            "{path}"
        );
    }
}

#[tokio::test]
async fn msie_refresh_leads_on_with_a_page() {
    let server = site(
        "msie_refresh on; location / { return 301 /to?a='b'; }\n\
         location /page { error_page 404 https://other.test/\\\"x; return 404; }\n\
         location /off { msie_refresh off; return 302 /to; } location /other { return 307 /to; }",
    )
    .await;
    let agent = "User-Agent: Mozilla/4.0 (compatible; MSIE 6.0)\r\n";
    for (path, status, url) in [
        ("/", 200, "/to?a=%27b%27\""),
        ("/page", 200, "URL=https://other.test/%22x\""),
        ("/off", 302, ""),
        ("/other", 307, ""),
    ] {
        let reply = server.target().get_with(path, agent).await;
        assert_eq!(
            (reply.status, reply.has("location")),
            (status, url.is_empty()),
            "{path}"
        );
        assert!(reply.text().contains(url), "{path}: {}", reply.text());
    }
    assert_eq!(server.target().get("/").await.status, 301);
}

/// In nginx, `recursive_error_pages` counts at the first error's place, which the manual of TYPO3's static file
/// cache relies on.
#[tokio::test]
async fn recursive_error_pages_of_the_first_location_lets_the_second_have_a_page() {
    let server = site(
        "location = /first { recursive_error_pages on; error_page 405 = @page; return 405; }\n\
         location = /second { error_page 405 = @recursive; return 405; }\n\
         location @page { error_page 405 = @last; return 405; }\n\
         location @recursive { recursive_error_pages on; error_page 405 = @last; return 405; }\n\
         location @last { return 200 last; }",
    )
    .await;
    for (path, status) in [("/first", 200), ("/second", 405)] {
        assert_eq!(server.target().get(path).await.status, status, "{path}");
    }
}
