//! Which heads are requests (RFC 9113 §8.2, §8.3), and what is answered to the others.

use http2::{HeadLimits, Settings};

use crate::client::{Client, GET, block, data, frame, headers, post, raw_block};
use http2::FrameKind;

/// Returns the server's view of one request.
fn see(list: &[(&str, &str)]) -> String {
    see_with(Settings::default(), list)
}

fn see_with(settings: Settings, list: &[(&str, &str)]) -> String {
    let mut client = Client::with(settings);
    let seen = client.send_ok(&headers(1, list, true));
    assert_eq!(seen.len(), 1, "{seen:?}");
    let seen = seen.into_iter().next().unwrap();
    if seen.contains(" 400 ") {
        // A malformed request may be answered, and is reset behind that.
        client
            .connection
            .send_response(crate::client::id(1), 400, &[], true)
            .unwrap();
        assert_eq!(
            client.sent_text(),
            ["1 HEADERS :status=400 end", "1 RST_STREAM PROTOCOL_ERROR"]
        );
    }
    seen
}

fn with(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    [GET, more].concat()
}

#[test]
fn a_request_is_seen_in_the_terms_of_http1() {
    assert_eq!(see(GET), "1 GET / HTTP/2.0, host=example.org end");
    let list = [
        (":path", "/a?b=c"),
        (":method", "PURGE"),
        (":authority", "Example.org:8443"),
        (":scheme", "https"),
        ("accept", "*/*"),
        ("te", "trailers"),
        ("x-empty", ""),
    ];
    assert_eq!(
        see(&list),
        "1 PURGE /a?b=c HTTP/2.0, host=Example.org:8443, accept=*/*, te=trailers, x-empty= end"
    );
    let list = [
        (":method", "OPTIONS"),
        (":scheme", "http"),
        (":path", "*"),
        ("host", "a"),
    ];
    assert_eq!(see(&list), "1 OPTIONS * HTTP/2.0, host=a end");
}

#[test]
fn pseudo_fields_come_once_and_first() {
    for (list, expected) in [
        (&GET[1..], "client sent no :method header"),
        (&[GET[0], GET[2], GET[3]], "client sent no :scheme header"),
        (&GET[..3], "client sent no :path header"),
        (&[], "client sent no :method header"),
        (
            &with(&[(":path", "/")]),
            "client sent duplicate :path header",
        ),
        (
            &with(&[(":method", "GET")]),
            "client sent duplicate :method header",
        ),
        (
            &with(&[(":status", "200")]),
            "client sent unknown pseudo-header \":status\"",
        ),
        (
            &with(&[(":protocol", "websocket")]),
            "client sent unknown pseudo-header \":protocol\"",
        ),
        (
            &with(&[(":", "")]),
            "client sent unknown pseudo-header \":\"",
        ),
        (
            &[GET[0], GET[1], GET[2], ("accept", "*/*"), GET[3]],
            "client sent out of order pseudo-header \":path\"",
        ),
    ] {
        assert_eq!(see(list), format!("1 400 {expected}"));
    }
}

#[test]
fn the_parts_of_a_target_are_checked() {
    #[rustfmt::skip]
    let cases = [
        (0, &["", "get", "GE T", "GET\t", "G\u{e9}T"][..], "client sent invalid method"),
        (1, &["", "1http", "ht tp", "http:"], "client sent invalid :scheme header"),
        (
            3, &["", "t1.html", "/a b", "/a\tb", "/\x02", "/\x7f", "*", "http://a/", "/ HTTP/1.1\r\nx: y"],
            "client sent invalid :path header",
        ),
        (2, &["", "a b", "user@a", "a/b", "a,b\u{e9}", "a:b", "[::1", "a\r\nb"], "client sent invalid host header"),
    ];
    for (at, values, expected) in cases {
        for value in values {
            let mut list = GET.to_vec();
            list[at].1 = value;
            assert_eq!(see(&list), format!("1 400 {expected}"), "{value:?}");
        }
    }
}

#[test]
fn there_is_one_host() {
    let without: Vec<_> = [&GET[..2], &GET[3..]].concat();
    let both =
        |authority, host| [&without[..], &[(":authority", authority), ("host", host)]].concat();
    let neither = "1 400 client sent neither \":authority\" nor \"Host\" header";
    assert_eq!(see(&without), neither);
    let only_host = [&without[..], &[("host", "a:1")]].concat();
    assert_eq!(see(&only_host), "1 GET / HTTP/2.0, host=a:1 end");
    for (authority, host) in [
        ("a", "a"),
        ("a", "A."),
        ("a:443", "a"),
        ("[::1]:8", "[::1]:8"),
    ] {
        let expected = format!("1 GET / HTTP/2.0, host={host} end");
        assert_eq!(see(&both(authority, host)), expected);
    }
    for (authority, host) in [("a", "b"), ("a:1", "a:2"), ("a:80", "a"), ("a", "a:80")] {
        let expected = "1 400 client sent \":authority\" and \"Host\" that differ";
        assert_eq!(see(&both(authority, host)), expected, "{authority} {host}");
    }
    for (authority, host) in [("a", ""), ("", "a"), ("a", "a b")] {
        assert_eq!(
            see(&both(authority, host)),
            "1 400 client sent invalid host header"
        );
    }
    let twice = [&without[..], &[("host", "a"), ("host", "a")]].concat();
    assert_eq!(
        see(&twice),
        "1 400 client sent duplicate header line: \"host\""
    );
}

#[test]
fn fields_that_could_split_a_request_are_refused() {
    for name in [
        "Accept", "a b", "a:b", "a\r\nb", "a\0", "\u{e9}", "", "a\x7f",
    ] {
        let seen = see(&with(&[(name, "c")]));
        assert!(
            seen.starts_with("1 400 client sent invalid header name: "),
            "{name:?} {seen}"
        );
    }
    for value in [
        "a\r\nreferer:b",
        "a\nb",
        "a\rb",
        "a\0b",
        " a",
        "a ",
        "\ta",
        "a\t",
        " ",
    ] {
        let expected = "1 400 client sent header \"x-foo\" with invalid value";
        assert_eq!(see(&with(&[("x-foo", value)])), expected, "{value:?}");
    }
}

#[test]
fn fields_of_a_connection_are_refused() {
    for (name, value) in [
        ("connection", "keep-alive"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "websocket"),
        ("te", "gzip"),
        ("te", "trailers, gzip"),
        ("te", ""),
    ] {
        let expected = format!("1 400 client sent connection-specific header \"{name}\"");
        assert_eq!(see(&with(&[(name, value)])), expected);
    }
}

#[test]
fn odd_names_are_left_out_or_kept_as_configured() {
    let list = with(&[("x_a", "1"), ("x\"b", "2"), ("x-c", "3")]);
    let head = |ignore_invalid_fields, underscores| Settings {
        head: HeadLimits {
            ignore_invalid_fields,
            underscores,
            ..HeadLimits::default()
        },
        ..Settings::default()
    };
    for (settings, kept) in [
        (head(true, false), "x-c=3"),
        (head(true, true), "x_a=1, x-c=3"),
        (head(false, false), "x_a=1, x\"b=2, x-c=3"),
    ] {
        let expected = format!("1 GET / HTTP/2.0, host=example.org, {kept} end");
        assert_eq!(see_with(settings, &list), expected);
    }
}

#[test]
fn cookies_become_one_field() {
    let list = with(&[
        ("cookie", "a=b"),
        ("accept", "*/*"),
        ("cookie", "c=d"),
        ("cookie", "e=f"),
    ]);
    assert_eq!(
        see(&list),
        "1 GET / HTTP/2.0, host=example.org, cookie=a=b; c=d; e=f, accept=*/* end"
    );
}

#[test]
fn methods_that_are_not_offered_are_answered() {
    let mut list = GET.to_vec();
    list[0].1 = "TRACE";
    assert_eq!(see(&list), "1 405 client sent TRACE method");
    list[0].1 = "CONNECT";
    assert_eq!(see(&list), "1 405 client sent CONNECT method");
    let connect = [(":method", "CONNECT"), (":authority", "a:443")];
    assert_eq!(see(&connect), "1 405 client sent CONNECT method");
}

#[test]
fn heads_are_limited_and_the_connection_goes_on() {
    let limits = HeadLimits {
        max_field_bytes: 512,
        max_list_bytes: 600,
        max_fields: 5,
        ..HeadLimits::default()
    };
    let settings = Settings {
        head: limits,
        ..Settings::default()
    };
    let long = |bytes: usize| -> &'static str { "x".repeat(bytes).leak() };
    let too_long = "1 494 client sent too long header field";
    // The pseudo-fields have 49 bytes.
    assert!(see_with(settings.clone(), &with(&[("a", long(512))])).ends_with(" end"));
    assert_eq!(
        see_with(settings.clone(), &with(&[("a", long(513))])),
        too_long
    );
    assert_eq!(
        see_with(settings.clone(), &with(&[(long(513), "")])),
        too_long
    );
    let total = |bytes| with(&[("a", long(500)), ("b", long(bytes))]);
    assert!(see_with(settings.clone(), &total(49)).ends_with(" end"));
    let too_large = "1 494 client sent too large request";
    assert_eq!(see_with(settings.clone(), &total(50)), too_large);
    let many = |count: usize| [GET, &[("x_", "y")].repeat(count)].concat();
    assert!(see_with(settings.clone(), &many(5)).ends_with(" end"));
    let too_many = "1 494 client sent too many header lines";
    assert_eq!(see_with(settings.clone(), &many(6)), too_many);

    let mut client = Client::with(settings);
    client.send_ok(&headers(1, &many(6), true));
    client
        .connection
        .send_response(crate::client::id(1), 494, &[], true)
        .unwrap();
    assert_eq!(client.sent_text(), ["1 HEADERS :status=494 end"]);
    assert_eq!(client.send_ok(&headers(3, GET, true)).len(), 1);
}

#[test]
fn content_length_is_one_number() {
    for value in ["", "-1", "+1", "1 2", "0x1", "1,1", "18446744073709551616"] {
        let seen = see(&with(&[("content-length", value)]));
        assert_eq!(
            seen, "1 400 client sent invalid \"Content-Length\" header",
            "{value:?}"
        );
    }
    let twice = with(&[("content-length", "0"), ("content-length", "0")]);
    assert_eq!(
        see(&twice),
        "1 400 client sent duplicate header line: \"content-length\""
    );
    let none = with(&[("content-length", "5")]);
    let expected = "1 400 client sent a body of other length than \"Content-Length\"";
    assert_eq!(see(&none), expected);
}

#[test]
fn the_body_is_as_long_as_content_length() {
    let wrong = "1 400 client sent a body of other length than \"Content-Length\"";
    let trailers = headers(1, &[("x", "y")], true);
    for (frames, expected) in [
        (
            vec![data(1, b"12", false), data(1, b"345", true)],
            &["1 data 2", "1 data 3 end"][..],
        ),
        (
            vec![data(1, b"12345", false), data(1, b"", true)],
            &["1 data 5", "1 data 0 end"],
        ),
        (
            vec![data(1, b"12345", false), trailers.clone()],
            &["1 data 5", "1 trailers x=y"],
        ),
        (vec![data(1, b"1234", true)], &[wrong]),
        (
            vec![data(1, b"1234", false), data(1, b"56", true)],
            &["1 data 4", wrong],
        ),
        // Nothing more comes of it.
        (
            vec![data(1, b"123456", false), data(1, b"7", true)],
            &[wrong],
        ),
        (
            vec![data(1, b"1234", false), trailers],
            &["1 data 4", wrong],
        ),
    ] {
        let mut client = Client::new();
        let list = post(&[("content-length", "5")]);
        let head = "1 POST / HTTP/2.0, host=example.org, content-length=5";
        assert_eq!(client.send_ok(&headers(1, &list, false)), [head]);
        assert_eq!(client.send_ok(&frames.concat()), expected);
        let answered = client
            .connection
            .send_response(crate::client::id(1), 200, &[], true);
        assert_eq!(answered, Ok(()));
        let is_wrong = expected.contains(&wrong);
        let sent = client.sent_text();
        assert_eq!(
            sent.contains(&"1 RST_STREAM PROTOCOL_ERROR".into()),
            is_wrong,
            "{sent:?}"
        );
    }
}

#[test]
fn a_body_that_turns_out_wrong_behind_the_answer_resets_the_stream() {
    let mut client = Client::new();
    client.send_ok(&headers(1, &post(&[("content-length", "5")]), false));
    client
        .connection
        .send_response(crate::client::id(1), 200, &[], false)
        .unwrap();
    let seen = client.send_ok(&data(1, b"123456", true));
    assert_eq!(seen, ["1 reset: client sent a malformed request"]);
    let sent = client.sent_text();
    assert_eq!(sent[1], "1 RST_STREAM PROTOCOL_ERROR");
    assert_eq!(client.connection.open_streams(), 0);
}

#[test]
fn trailers_are_fields_at_the_end() {
    for (list, end_stream, expected) in [
        (
            &[("x-sum", "1"), ("x_left", "out")][..],
            true,
            "1 trailers x-sum=1",
        ),
        (&[], true, "1 trailers "),
        (
            &[("x", "1")],
            false,
            "1 400 client sent trailers without END_STREAM flag",
        ),
        (
            &[(":path", "/")],
            true,
            "1 400 client sent out of order pseudo-header \":path\"",
        ),
        (
            &[("X", "1")],
            true,
            "1 400 client sent invalid header name: \"X\"",
        ),
        (
            &[("transfer-encoding", "chunked")],
            true,
            "1 400 client sent connection-specific header \"transfer-encoding\"",
        ),
    ] {
        let mut client = Client::new();
        client.send_ok(&headers(1, &post(&[]), false));
        client.send_ok(&data(1, b"body", false));
        assert_eq!(client.send_ok(&headers(1, list, end_stream)), [expected]);
    }
}

#[test]
fn bytes_that_are_no_text_are_kept_as_they_are() {
    let mut client = Client::new();
    let list = GET
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let list = list.chain([(&b"x"[..], &b"\xff\x01\x80"[..])]);
    let head = frame(FrameKind::Headers, 5, 1, &raw_block(list));
    assert_eq!(
        client.send_ok(&head),
        ["1 GET / HTTP/2.0, host=example.org, x=\u{fffd}\x01\u{fffd} end"]
    );
    assert!(!block(GET).is_empty());
}
