//! Forms of a request head: the cases of nginx's public test suite and those in
//! which nginx was asked over a socket.

use http_semantics::expects_continue;
use http_semantics::{RequestHead, RequestView, Target, TargetError, Version, request_host};
use http1::{
    Framing, HeadLimits, ParsedHead, RequestError, body_framing, parse_head, parse_request,
    wants_keep_alive, worth_parsing,
};

fn parse(text: &str) -> Result<RequestHead, RequestError> {
    parse_head(text.to_owned(), &HeadLimits::default())
}

/// The status a server would answer from the head alone; 200 if none.
fn verdict(text: &str, limits: &HeadLimits) -> u16 {
    let judge = || -> Result<(), RequestError> {
        let head = parse_head(text.to_owned(), limits)?;
        let target = Target::parse(head.line.target.of(&head.bytes), true)?;
        request_host(&head, &target)?;
        if head.version() > Version::Http09 {
            body_framing(&head)?;
        }
        Ok(())
    };
    judge().map_or_else(|error| error.status(), |()| 200)
}

#[test]
fn request_lines_are_judged_as_nginx_does() {
    for (line, status) in [
        ("GET / HTTP/1.1", 200),
        ("GET / HTTP/1.0", 200),
        ("GET / HTTP/1.12", 200),
        ("GET / HTTP/1.1  ", 200),
        ("GET  /  HTTP/1.1", 200),
        ("G-_T / HTTP/1.1", 200),
        ("PURGE /a HTTP/1.1", 200),
        ("OPTIONS * HTTP/1.1", 200),
        ("GET http://a.b?x#y HTTP/1.1", 200),
        ("GET /a%zz?b HTTP/1.1", 400),
        ("GET /a#b%zz|\"<> HTTP/1.1", 200),
        ("GET /\u{e9}\u{fffd} HTTP/1.1", 200),
        ("GET / / HTTP/1.1", 400),
        ("GET /\x02 HTTP/1.1", 400),
        ("GET /\x7f HTTP/1.1", 400),
        ("GET\t/ HTTP/1.1", 400),
        ("GET /\tHTTP/1.1", 400),
        ("GET /\x0bHTTP/1.1", 400),
        ("GET /a\rb HTTP/1.1", 400),
        ("GET /\0 HTTP/1.1", 400),
        ("get / HTTP/1.1", 400),
        ("G3T / HTTP/1.1", 400),
        (" GET / HTTP/1.1", 400),
        ("GET", 400),
        ("GET ", 400),
        ("GET * HTTP/1.1", 400),
        ("OPTIONS *a HTTP/1.1", 400),
        ("GET example.com HTTP/1.1", 400),
        ("GET ?a HTTP/1.1", 400),
        ("GET mailto:x HTTP/1.1", 400),
        ("GET / HTTP/2.0", 505),
        ("GET / HTTP/10.1", 505),
        ("GET / HTTP/0.9", 400),
        ("GET / HTTP/1", 400),
        ("GET / HTTP/1.", 400),
        ("GET / HTTP/1.x", 400),
        ("GET / HTTP/1.100", 400),
        ("GET / HTTP/01.1", 400),
        ("GET / HTTP/1.1x", 400),
        ("GET / HTTP/1.1 x", 400),
        ("GET / http/1.1", 400),
        ("GET / HTTPS/1.1", 400),
        ("GET / FTP/1.1", 400),
        ("TRACE / HTTP/1.1", 405),
        ("CONNECT localhost:8080 HTTP/1.1", 405),
        ("CONNECT / HTTP/1.1", 400),
        ("CONNECT localhost HTTP/1.1", 400),
    ] {
        for end in ["\r\n", "\n"] {
            let text = format!("{line}{end}Host: localhost{end}{end}");
            assert_eq!(verdict(&text, &HeadLimits::default()), status, "{line:?}");
        }
    }
}

#[test]
fn http_09_is_a_get_and_a_target() {
    for text in ["GET /\n", "GET /\r\n", "GET / \r\n", "\r\nGET /\n"] {
        let head = parse(text).unwrap();
        assert_eq!(head.version(), Version::Http09);
        assert_eq!(head.target(), b"/");
        assert_eq!(head.bytes.len(), text.len());
        assert!(!wants_keep_alive(&head));
    }
    assert_eq!(
        parse("POST /\n").unwrap_err(),
        RequestError::InvalidMethodIn09
    );
}

#[test]
fn a_head_ends_where_the_body_begins() {
    let text = b"\r\n\nPOST /a HTTP/1.1\r\nHost: x\nContent-Length: 3\r\n\nabc";
    let mut fields = Vec::new();
    let Ok(ParsedHead::Complete(line)) = parse_request(text, &HeadLimits::default(), &mut fields)
    else {
        panic!("a whole head");
    };
    assert_eq!(&text[line.head_len..], b"abc");
    let view = RequestView {
        bytes: text,
        line: &line,
        fields: &fields,
    };
    assert_eq!(view.request_line(), b"POST /a HTTP/1.1");
    assert_eq!(view.method(), b"POST");
    assert_eq!(view.field("content-LENGTH"), Some(&b"3"[..]));
    assert_eq!(body_framing(view), Ok(Framing::Length(3)));
}

#[test]
fn fields_lose_the_space_around_them_and_keep_their_spelling() {
    let head = parse(
        "GET / HTTP/1.1\r\nHost:x\r\nFoO: \t a b \t \r\nE:\r\nE2: \r\nfoo:c:d\r\nCtl: a\x01b\r\n\r\n",
    )
    .unwrap();
    let fields: Vec<_> = head
        .fields()
        .map(|(name, value)| {
            (
                std::str::from_utf8(name).unwrap(),
                std::str::from_utf8(value).unwrap(),
            )
        })
        .collect();
    assert_eq!(
        fields,
        [
            ("Host", "x"),
            ("FoO", "a b"),
            ("E", ""),
            ("E2", ""),
            ("foo", "c:d"),
            ("Ctl", "a\x01b")
        ]
    );
    assert_eq!(head.field_all(b"foo").count(), 2);
    assert_eq!(head.field("fo"), None);
}

#[test]
fn repeated_fields_join_as_nginx_variables_do() {
    let head = parse(
        "GET / HTTP/1.0\r\nFoo: a\r\nCookie: b\r\nfoo: c\r\ncookie: d\r\nFOO:\r\nX: y\r\n\r\n",
    )
    .unwrap();
    for (name, value) in [
        ("foo", Some("a, c, ")),
        ("cookie", Some("b; d")),
        ("x", Some("y")),
        ("z", None),
    ] {
        let joined = head.field_joined(name.as_bytes());
        assert_eq!(joined.as_deref(), value.map(str::as_bytes), "{name}");
    }
}

#[test]
fn odd_field_names_are_left_out_kept_or_refused() {
    let names = |text: &str, ignore: bool, underscores: bool| {
        let limits = HeadLimits {
            ignore_invalid_fields: ignore,
            underscores,
            ..HeadLimits::default()
        };
        let text = format!("GET / HTTP/1.0\r\n{text}: x-bar\r\n\r\n");
        parse_head(text, &limits)
            .map(|head| (head.fields.len(), head.line.ignored_fields))
            .ok()
    };
    for (name, by_default, ignore_off, underscores_on) in [
        ("x-foo", Some((1, 0)), Some((1, 0)), Some((1, 0))),
        ("x_foo", Some((0, 1)), Some((1, 0)), Some((1, 0))),
        ("_foo", Some((0, 1)), Some((1, 0)), Some((1, 0))),
        ("x.foo", Some((0, 1)), Some((1, 0)), Some((0, 1))),
        (".foo", Some((0, 1)), Some((1, 0)), Some((0, 1))),
        ("</kie>", Some((0, 1)), Some((1, 0)), Some((0, 1))),
        (":foo", None, None, None),
        (" foo", None, None, None),
        ("foo ", None, None, None),
        ("foo\t", None, None, None),
        ("fo o", None, None, None),
        ("foo\x02", None, None, None),
        ("foo\x7f", None, None, None),
        ("foo\0", None, None, None),
        ("fo\ro", None, None, None),
    ] {
        assert_eq!(names(name, true, false), by_default, "{name:?}");
        assert_eq!(names(name, false, false), ignore_off, "{name:?}");
        assert_eq!(names(name, true, true), underscores_on, "{name:?}");
    }
}

#[test]
fn limits_are_those_of_nginx_buffers() {
    let limits = HeadLimits {
        first_buffer_bytes: 128,
        large_buffers: 5,
        large_buffer_bytes: 256,
        max_fields: 20,
        ..HeadLimits::default()
    };
    let long = "1234567890".repeat(20);
    let field = format!("X-Foo: {long}\r\n");
    let get = |target: &str, fields: &str| format!("GET {target} HTTP/1.0\r\n{fields}\r\n");
    let line_of = |bytes: usize| format!("A: {}\r\n", "x".repeat(bytes - 5));
    for (name, text, status) in [
        ("long header", get("/", &field), 200),
        ("long request line", get(&format!("/{long}"), &field), 200),
        (
            "request line as long as a buffer",
            get(&format!("/{}", "x".repeat(240)), ""),
            200,
        ),
        (
            "request line too long",
            get(&format!("/{}", "x".repeat(241)), ""),
            414,
        ),
        ("leading lines", "\r\n".repeat(200) + &get("/", ""), 414),
        ("field as long as a buffer", get("/", &line_of(256)), 200),
        ("field too long", get("/", &line_of(257)), 494),
        ("five large fields", get("/", &field.repeat(5)), 200),
        ("six large fields", get("/", &field.repeat(6)), 494),
        ("twenty fields", get("/", &"a: b\r\n".repeat(20)), 200),
        ("twenty-one fields", get("/", &"a: b\r\n".repeat(21)), 494),
        (
            "left out fields count",
            get("/", &"a_: b\r\n".repeat(21)),
            494,
        ),
    ] {
        assert_eq!(verdict(&text, &limits), status, "{name}");
    }
}

#[test]
fn a_full_buffer_is_never_just_partial() {
    let limits = HeadLimits {
        first_buffer_bytes: 64,
        large_buffers: 2,
        large_buffer_bytes: 64,
        ..HeadLimits::default()
    };
    let mut fields = Vec::new();
    for filler in ["x", "a: b\r\n", "\r\n", "GET / HTTP/1.1\r\na: b\r\n"] {
        let text = filler.repeat(200);
        let full = &text.as_bytes()[..limits.max_head_bytes()];
        assert_ne!(
            parse_request(full, &limits, &mut fields),
            Ok(ParsedHead::Partial),
            "{filler:?}"
        );
    }
    let exact = format!("GET / HTTP/1.1\r\n{:a<46}\r\n", "A: ") + &format!("{:a<62}\r\n", "A: ");
    let exact = exact + &format!("{:a<60}\r\n\r\n", "A: ");
    assert_eq!(exact.len(), limits.max_head_bytes());
    assert!(parse_head(exact, &limits).is_ok());
}

#[test]
fn nonsense_is_refused_before_its_first_line_ends() {
    let limits = HeadLimits::default();
    let mut fields = Vec::new();
    for text in [&b"\x16\x03\x01"[..], b"GET\0", b"get", b"GE/", b" "] {
        assert_eq!(
            parse_request(text, &limits, &mut fields),
            Err(RequestError::InvalidMethod),
            "{text:?}"
        );
    }
    for text in [&b""[..], b"\r", b"\r\n\n", b"GET", b"GET ", b"GET /%"] {
        assert_eq!(
            parse_request(text, &limits, &mut fields),
            Ok(ParsedHead::Partial),
            "{text:?}"
        );
    }
}

#[test]
fn a_head_sent_byte_by_byte_is_parsed_once_a_line() {
    let text = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let limits = HeadLimits::default();
    let mut parsed_len = 0;
    let mut parses = Vec::new();
    for end in 1..=text.len() {
        if worth_parsing(&text[..end], parsed_len, &limits) {
            parses.push(end);
            parsed_len = end;
        }
    }
    assert_eq!(parses, [1, 16, 25, 27]);
}

#[test]
fn fields_that_may_come_once_are_refused_twice() {
    for name in [
        "Host",
        "If-Modified-Since",
        "If-Unmodified-Since",
        "If-Match",
        "If-None-Match",
        "Content-Length",
        "Content-Range",
        "If-Range",
        "Transfer-Encoding",
        "Expect",
        "Authorization",
    ] {
        let text = format!(
            "GET / HTTP/1.1\r\nhOST: x\r\n{name}: 0\r\n{}: 0\r\n\r\n",
            name.to_uppercase()
        );
        let error = body_framing(&parse(&text).unwrap()).unwrap_err();
        assert!(
            matches!(error, RequestError::DuplicateField(_)),
            "{name}: {error}"
        );
        assert_eq!(error.status(), 400);
    }
    let many = "GET / HTTP/1.1\r\nHost: x\r\nCookie: a\r\nCookie: b\r\nVia: a\r\nVia: b\r\n\r\n";
    assert_eq!(body_framing(&parse(many).unwrap()), Ok(Framing::None));
}

#[test]
fn the_host_is_the_targets_or_the_fields() {
    for (text, host) in [
        (
            "GET / HTTP/1.1\r\nHost: A.example.:80\r\n\r\n",
            Ok(Some("a.example")),
        ),
        (
            "GET http://B.example/ HTTP/1.1\r\nHost: a\r\n\r\n",
            Ok(Some("b.example")),
        ),
        (
            "GET http://b/ HTTP/1.1\r\nHost: a/b\r\n\r\n",
            Err(TargetError::InvalidHost),
        ),
        ("GET / HTTP/1.0\r\n\r\n", Ok(None)),
        (
            "GET / HTTP/1.0\r\nHost:\r\n\r\n",
            Err(TargetError::InvalidHost),
        ),
    ] {
        let head = parse(text).unwrap();
        let target = Target::parse(head.target(), true).unwrap();
        let found = request_host(&head, &target);
        let found = found.map(|host| host.map(|host| host.name.into_owned()));
        assert_eq!(
            found,
            host.map(|host| host.map(|host| host.as_bytes().to_vec())),
            "{text}"
        );
    }
}

#[test]
fn connections_persist_by_version_and_wish() {
    for (version, connection, keep) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: upgrade, CLOSE\r\n", false),
        (
            "1.1",
            "Connection: keep-alive\r\nConnection: close\r\n",
            false,
        ),
        ("1.1", "Connection: closed\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let head = parse(&format!(
            "GET / HTTP/{version}\r\nHost: x\r\n{connection}\r\n"
        ))
        .unwrap();
        assert_eq!(wants_keep_alive(&head), keep, "{version} {connection:?}");
    }
}

#[test]
fn continue_is_expected_by_http_11_only() {
    for (version, value, expected) in [
        ("1.1", "100-continue", true),
        ("1.1", "100-Continue", true),
        ("1.1", "200-ok", false),
        ("1.0", "100-continue", false),
    ] {
        let text = format!("POST / HTTP/{version}\r\nHost: x\r\nExpect: {value}\r\n\r\n");
        assert_eq!(
            expects_continue(&parse(&text).unwrap()),
            expected,
            "{version} {value}"
        );
    }
}

#[test]
fn log_sentences_are_nginx_words_and_one_line() {
    for (text, sentence) in [
        ("get /\n", "client sent invalid method"),
        (
            "GET / HTTP/1.1\r\nfoo : \"bar\"\n\n",
            "client sent invalid header line: \"foo : \\x22bar\\x22...\"",
        ),
        (
            "GET / HTTP/1.1\r\na\rb: c\n\n",
            "client sent invalid header line: \"a\\x0Db: c...\"",
        ),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), sentence);
    }
    let missing = body_framing(&parse("GET / HTTP/1.1\r\n\r\n").unwrap()).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "client sent HTTP/1.1 request without \"Host\" header"
    );
}

#[test]
fn host_and_target_of_a_head_can_be_replaced() {
    for fields in ["", "Host: a\r\n", "host: a\r\nX: y\r\nHOST: b\r\n"] {
        let text = format!("GET http://c:81?x=1 HTTP/1.1\r\n{fields}Accept: d\r\n\r\n");
        let mut head = parse_head(text, &HeadLimits::default()).unwrap();
        head.set_host(b"c:81");
        head.set_target(b"/?x=1");
        let hosts: Vec<_> = head.field_all(b"host").collect();
        assert_eq!(hosts, [b"c:81"], "{fields}");
        assert_eq!(head.field("accept"), Some(&b"d"[..]));
        assert_eq!(head.target(), b"/?x=1");
        assert_eq!(head.request_line(), b"GET http://c:81?x=1 HTTP/1.1");
    }
}
