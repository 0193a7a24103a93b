//! Small promises of nginx's that its own public suite checks, each pinned here
//! by a test of ours.

use testkit::client::Target;
use testkit::fake_php::{FakePhp, Script};
use testkit::running::Running;

use crate::program;

/// One server with these directives.
async fn site(directives: &str) -> Running {
    site_with("", directives).await
}

async fn site_with(http: &str, directives: &str) -> Running {
    let server =
        format!("{http}\nserver {{ listen unix:%%/http; server_name site.test;\n{directives}\n}}");
    Running::start(program(), "", &server).await
}

fn folder(server: &Running, name: &str, content: impl AsRef<[u8]>) {
    std::fs::write(server.path(name), content).expect("a file");
}

fn gzip(text: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}

#[tokio::test]
async fn added_fields_with_line_breaks_are_sent_on_one_line() {
    let server = site("location / { add_header X-A \"one: $uri\ntwo\n\"; return 204; }").await;
    let reply = server.target().get("/a").await;
    assert_eq!(reply.field("x-a"), "one: /a two");
    let split = server.target().get("/a%0d%0aX-B:%20c").await;
    assert!(!split.has("x-b"), "{split:?}");
    assert_eq!(split.field("x-a"), "one: /a  X-B: c two");
}

#[tokio::test]
async fn geo_is_looked_up_once_for_a_request_unless_volatile() {
    let server = site_with(
        "geo $arg_ip $kept { 192.0.2.1 /kept; 192.0.2.2 later; }\n\
         geo $arg_ip $anew { volatile; 192.0.2.1 /anew; 192.0.2.2 later; }",
        "location /1/ { index $kept; } location /2/ { index $anew; }\n\
         location /kept { set $args ip=192.0.2.2; add_header X $kept always; return 200; }\n\
         location /anew { set $args ip=192.0.2.2; add_header X $anew always; return 200; }",
    )
    .await;
    std::fs::create_dir(server.path("1")).expect("a folder");
    std::fs::create_dir(server.path("2")).expect("a folder");
    assert_eq!(
        server.target().get("/1/?ip=192.0.2.1").await.field("x"),
        "/kept"
    );
    assert_eq!(
        server.target().get("/2/?ip=192.0.2.1").await.field("x"),
        "later"
    );
}

#[tokio::test]
async fn an_address_between_the_ranges_of_geo_has_the_default() {
    let server = site_with(
        "geo $arg_ip $found { ranges; default none; 10.0.0.0-10.0.0.5 low; 10.0.0.7-10.0.0.7 one; 192.0.2.0-192.0.2.255 high; }",
        "location / { return 200 $found; }",
    )
    .await;
    for (ip, wanted) in [
        ("9.255.255.255", "none"),
        ("10.0.0.0", "low"),
        ("10.0.0.5", "low"),
        ("10.0.0.6", "none"),
        ("10.0.0.7", "one"),
        ("192.0.2.255", "high"),
        ("192.0.3.0", "none"),
    ] {
        assert_eq!(
            server.target().get(&format!("/?ip={ip}")).await.text(),
            wanted,
            "{ip}"
        );
    }
}

#[tokio::test]
async fn a_redirect_may_come_whole_from_an_argument() {
    let server = site("location / { rewrite ^ $arg_to? redirect; }").await;
    for (to, location) in [
        ("http%3A%2F%2Fa.test%2F%3Fx", "http://a.test/?x"),
        (
            "http%3A%2F%2Fa.test%0D%0ASet-Cookie:x",
            "http://a.test%0D%0ASet-Cookie:x",
        ),
    ] {
        let reply = server.target().get(&format!("/?to={to}")).await;
        assert_eq!((reply.status, reply.field("location")), (302, location));
    }
}

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
async fn a_user_file_from_a_variable_begins_in_the_configurations_folder() {
    let server =
        site("location /open { auth_basic on; auth_basic_user_file $arg_f; try_files /in =404; }")
            .await;
    folder(&server, "users", "anna:{PLAIN}secret\n");
    folder(&server, "in", "in");
    let anna = "Authorization: Basic YW5uYTpzZWNyZXQ=\r\n";
    assert_eq!(
        server.target().get_with("/open?f=users", anna).await.text(),
        "in"
    );
    assert_eq!(
        server
            .target()
            .get_with("/open?f=nobody", anna)
            .await
            .status,
        403
    );
}

/// What a proxy says about 192.0.2.1:123, with extras behind it.
fn proxy_header(extras: &[u8]) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11".to_vec();
    header.extend(
        u16::try_from(12 + extras.len())
            .expect("short")
            .to_be_bytes(),
    );
    header.extend([192, 0, 2, 1, 192, 0, 2, 2, 0, 123, 0, 80]);
    header.extend_from_slice(extras);
    header
}

#[tokio::test]
async fn what_a_proxy_says_is_told_and_trusted_location_by_location() {
    let http = "server { listen unix:%%/http proxy_protocol; set_real_ip_from unix:;\n\
         location / { return 200 \"$remote_addr $proxy_protocol_addr!$proxy_protocol_port $proxy_protocol_tlv_alpn-$proxy_protocol_tlv_0x2\"; }\n\
         location /real { real_ip_header proxy_protocol; try_files /real =404; location /real/denied { deny 192.0.2.1; } } }";
    let server = Running::start(program(), "", http).await;
    folder(&server, "real", "real");
    let ask = async |header: &[u8], path: &str| {
        let mut client = server.connect().await;
        client.send(header).await;
        client.send(format!("GET {path} HTTP/1.0\r\n\r\n")).await;
        client.receive(false).await.expect("a response")
    };
    let extras = b"\x01\x00\x02h2\x02\x00\x06a.test";
    assert_eq!(
        ask(&proxy_header(extras), "/").await.text(),
        "unix: 192.0.2.1!123 h2-a.test"
    );
    assert_eq!(ask(b"PROXY UNKNOWN\r\n", "/").await.text(), "unix: ! -");
    assert_eq!(ask(&proxy_header(b""), "/real").await.text(), "real");
    assert_eq!(ask(&proxy_header(b""), "/real/denied").await.status, 403);
}

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
async fn head_of_an_expanded_file_has_the_fields_of_get() {
    let server = site("location / { gunzip on; gzip_vary on; gzip_static always; }").await;
    folder(&server, "a.gz", gzip(b"the text"));
    let target: Target = server.target();
    let got = target.get("/a").await;
    assert_eq!(
        (got.text().as_str(), got.field("vary")),
        ("the text", "Accept-Encoding")
    );
    let head = target.ask("HEAD", "/a", "", "").await;
    assert_eq!((head.status, head.field("vary")), (200, "Accept-Encoding"));
    assert!(!head.has("content-encoding"));
}

#[tokio::test]
async fn vary_is_not_said_twice() {
    let php = FakePhp::tcp(|_| {
        Script::page(
            "Content-Type: text/html\r\nVary: Accept-Encoding\r\n",
            "x".repeat(1000),
        )
    })
    .await;
    let server = site(&format!(
        "location / {{ gzip on; gzip_vary on; fastcgi_pass {}; }}",
        php.address()
    ))
    .await;
    let reply = server
        .target()
        .get_with("/", "Accept-Encoding: gzip\r\n")
        .await;
    assert_eq!(reply.field("content-encoding"), "gzip");
    assert_eq!(
        reply
            .fields
            .iter()
            .filter(|(name, _)| name == "vary")
            .count(),
        1
    );
}

#[tokio::test]
async fn texts_are_converted_and_their_ranges_too() {
    let server = site_with(
        "charset_map one two { 58 59; } charset_map one utf-8 { A4 E282AC; }",
        "default_type text/plain; location /two { source_charset one; charset two; }\n\
         location /utf-8 { source_charset one; charset utf-8; }",
    )
    .await;
    folder(&server, "two", "aXbXc");
    folder(&server, "utf-8", b"5 \xa4");
    let target = server.target();
    let whole = target.get("/two").await;
    assert_eq!(
        (whole.text().as_str(), whole.field("content-type")),
        ("aYbYc", "text/plain; charset=two")
    );
    let parts = target
        .get_with("/two", "Range: bytes=1-1,3-3\r\n")
        .await
        .text();
    assert!(
        parts.contains("\r\n\r\nY\r\n--") && parts.contains("charset=two"),
        "{parts}"
    );
    let euro = target.get("/utf-8").await;
    assert_eq!(
        (euro.text().as_str(), euro.field("content-length")),
        ("5 €", "5")
    );
}

#[tokio::test]
async fn php_is_read_no_faster_than_the_limit() {
    // The first second's share comes at once; 2,500 bytes at 1,000 a second
    // take another second and a half.
    let php = FakePhp::tcp(|_| {
        let mut script = Script::new().stdout("Content-Type: text/html\r\n\r\n");
        for _ in 0..5 {
            script = script.stdout("x".repeat(500));
        }
        script
    })
    .await;
    let server = site(&format!(
        "location / {{ fastcgi_limit_rate 1000; fastcgi_pass {}; }}",
        php.address()
    ))
    .await;
    let begun = std::time::Instant::now();
    let reply = server.target().get("/").await;
    assert_eq!(reply.body.len(), 2500);
    assert!(begun.elapsed().as_millis() >= 900, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn files_are_sent_whole_with_and_without_sendfile() {
    let server = site("location / { sendfile on; } location /off { sendfile off; }").await;
    let content: Vec<u8> = (0..200_000u32).flat_map(|n| n.to_le_bytes()).collect();
    folder(&server, "on", &content);
    folder(&server, "off", &content);
    for path in ["/on", "/off"] {
        assert!(server.target().get(path).await.body == content, "{path}");
        let part = server
            .target()
            .get_with(path, "Range: bytes=70001-140000\r\n")
            .await;
        assert!(part.body == content[70_001..=140_000], "{path}");
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
async fn a_variable_of_a_family_may_lack_its_name() {
    let server = site("location / { return 200 [$arg_][$http_][$cookie_][$sent_http_]; }").await;
    let reply = server.target().get("/?=a&b=c").await;
    assert_eq!(reply.text(), "[][][][]");
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
                begun.elapsed() < testkit::client::PATIENCE,
                "{path}: {}",
                log()
            );
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
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
