//! Responses: heads, bodies, trailers, informational ones, and what is out of order.

use http2::{ErrorCode, FieldBlock, Notice, SendError};

use crate::client::{Client, data, fields, get, headers, id, post, reset};

#[test]
fn a_response_has_the_fields_of_all_blocks() {
    let mut client = Client::new();
    client.send_ok(&get(1));
    let stored = fields(&[("Content-Type", "text/html"), ("Set-Cookie", "a=b")]);
    let more = fields(&[("Age", "7"), ("X-Cache", "HIT")]);
    client
        .connection
        .send_response(id(1), 200, &[&stored, &more], false)
        .unwrap();
    client
        .connection
        .send_body(id(1), "<p>".into(), false)
        .unwrap();
    client
        .connection
        .send_body(id(1), "</p>".into(), true)
        .unwrap();
    assert_eq!(
        client.sent_text(),
        [
            "1 HEADERS :status=200, content-type=text/html, set-cookie=a=b, age=7, x-cache=HIT",
            // Pieces that are there together share a frame.
            "1 DATA \"<p></p>\" end",
        ]
    );
    assert_eq!(client.connection.open_streams(), 0);
}

#[test]
fn a_response_without_a_body_is_one_frame() {
    let mut client = Client::new();
    client.send_ok(&get(1));
    client
        .connection
        .send_response(id(1), 304, &[&fields(&[("etag", "x")])], true)
        .unwrap();
    assert_eq!(client.sent_text(), ["1 HEADERS :status=304, etag=x end"]);
    assert!(matches!(
        client.connection.next_notice(),
        Some(Notice::Sent(_, _))
    ));
}

#[test]
fn hints_come_before_the_response() {
    let mut client = Client::new();
    client.send_ok(&get(1));
    let link = fields(&[("link", "</a.css>; rel=preload")]);
    for _ in 0..2 {
        client
            .connection
            .send_informational(id(1), 103, &[&link])
            .unwrap();
    }
    for status in [101, 200, 99] {
        let refused = client.connection.send_informational(id(1), status, &[]);
        assert_eq!(refused, Err(SendError::OutOfOrder), "{status}");
    }
    client
        .connection
        .send_response(id(1), 200, &[], true)
        .unwrap();
    let hint = "1 HEADERS :status=103, link=</a.css>; rel=preload";
    assert_eq!(
        client.sent_text(),
        [hint, hint, "1 HEADERS :status=200 end"]
    );
}

#[test]
fn trailers_end_a_response() {
    for body in ["", "abc"] {
        let mut client = Client::new();
        client.send_ok(&get(1));
        client
            .connection
            .send_response(id(1), 200, &[], false)
            .unwrap();
        client
            .connection
            .send_body(id(1), body.into(), false)
            .unwrap();
        let trailers = fields(&[("x-sum", "1")]);
        client.connection.send_trailers(id(1), &trailers).unwrap();
        let late = client.connection.send_trailers(id(1), &trailers);
        assert!(late.is_err());
        let sent = client.sent_text();
        assert_eq!(sent.first().unwrap(), "1 HEADERS :status=200");
        assert_eq!(sent.last().unwrap(), "1 HEADERS x-sum=1 end");
        assert_eq!(sent.len(), if body.is_empty() { 2 } else { 3 });
        assert_eq!(client.connection.open_streams(), 0);
    }
}

#[test]
fn parts_out_of_order_are_refused() {
    let mut client = Client::new();
    client.send_ok(&get(1));
    let connection = &mut client.connection;
    let empty = FieldBlock::new();
    let out_of_order = Err(SendError::OutOfOrder);
    assert_eq!(connection.send_body(id(1), "x".into(), true), out_of_order);
    assert_eq!(connection.send_trailers(id(1), &empty), out_of_order);
    assert_eq!(
        connection.send_response(id(1), 103, &[], false),
        out_of_order
    );
    assert_eq!(
        connection.send_response(id(1), 1000, &[], false),
        out_of_order
    );
    assert!(!connection.has_answer(id(1)));
    assert_eq!(connection.send_response(id(1), 200, &[], false), Ok(()));
    assert!(connection.has_answer(id(1)));
    assert_eq!(
        connection.send_response(id(1), 200, &[], false),
        out_of_order
    );
    assert_eq!(connection.send_informational(id(1), 103, &[]), out_of_order);
    assert_eq!(connection.send_body(id(1), "x".into(), true), Ok(()));
    assert_eq!(connection.send_body(id(1), "x".into(), true), out_of_order);
    assert_eq!(
        client.sent_text(),
        ["1 HEADERS :status=200", "1 DATA \"x\" end"]
    );
    let closed = client.connection.send_body(id(1), "x".into(), true);
    assert_eq!(closed, Err(SendError::Closed));
    assert_eq!(
        client.connection.send_response(id(3), 200, &[], true),
        Err(SendError::Closed)
    );
}

#[test]
fn a_stream_that_the_client_resets_takes_nothing_more() {
    let mut client = Client::new();
    client.send_ok(&get(1));
    client.answer(1, 100_000);
    client.sent();
    assert_eq!(client.send_ok(&reset(1)), ["1 reset by client: CANCEL"]);
    let late = client.connection.send_body(id(1), "x".into(), true);
    assert_eq!(late, Err(SendError::Closed));
    client.connection.reset(id(1), ErrorCode::CANCEL);
    client.connection.release(id(1), 5);
    assert_eq!(client.sent(), []);
}

#[test]
fn a_body_can_come_while_the_response_goes() {
    let mut client = Client::new();
    client.send_ok(&headers(1, &post(&[]), false));
    client
        .connection
        .send_response(id(1), 200, &[], false)
        .unwrap();
    for nth in 0..3u8 {
        let is_last = nth == 2;
        let seen = client.send_ok(&data(1, &[nth], is_last));
        assert_eq!(seen.len(), 1);
        client
            .connection
            .send_body(id(1), vec![b'0' + nth].into(), is_last)
            .unwrap();
        let sent = client.sent_text();
        let end = if is_last { " end" } else { "" };
        assert_eq!(sent.last(), Some(&format!("1 DATA \"{nth}\"{end}")));
    }
}
