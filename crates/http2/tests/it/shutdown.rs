//! The graceful end of a connection (RFC 9113 §6.8), and the other one.

use http2::{ErrorCode, FrameKind};

use crate::client::{Client, data, frame, get, headers, id, post};

#[test]
fn requests_under_way_are_served_before_the_last_stream_is_named() {
    let mut client = Client::new();
    client.send_ok(&get(1));
    client.connection.shut_down();
    client.connection.shut_down();
    let sent = client.sent();
    assert_eq!(sent.len(), 2, "once");
    assert_eq!(sent[0].kind, FrameKind::GoAway);
    assert_eq!(sent[0].payload, b"\x7f\xff\xff\xff\0\0\0\0");
    assert_eq!((sent[1].kind, sent[1].flags), (FrameKind::Ping, 0));
    // Sent before the client knew.
    assert_eq!(client.send_ok(&get(3)).len(), 1);
    client.send_ok(&frame(FrameKind::Ping, 1, 0, &sent[1].payload));
    assert_eq!(client.sent_text(), ["GOAWAY 3 NO_ERROR"]);
    // Sent although it knew: not an error, but nothing comes of it.
    assert_eq!(client.send_ok(&headers(5, &post(&[]), false)), [""; 0]);
    assert_eq!(client.send_ok(&data(5, b"x", true)), [""; 0]);
    assert_eq!(client.sent(), []);
    assert!(!client.connection.is_finished());
    client.answer(1, 3);
    client.answer(3, 3);
    assert_eq!(client.sent().len(), 4);
    assert!(client.connection.is_finished());
}

#[test]
fn a_client_that_does_not_answer_is_not_waited_for() {
    let mut client = Client::new();
    client.connection.shut_down();
    client.sent();
    assert!(!client.connection.is_finished());
    client.connection.finish_shutdown();
    client.connection.finish_shutdown();
    assert_eq!(client.sent_text(), ["GOAWAY 0 NO_ERROR"]);
    assert!(client.connection.is_finished());
}

#[test]
fn the_last_stream_can_be_named_at_once() {
    let mut client = Client::new();
    client.send_ok(&get(1));
    client.connection.finish_shutdown();
    client.connection.shut_down();
    assert_eq!(client.sent_text(), ["GOAWAY 1 NO_ERROR"]);
}

#[test]
fn an_abort_ends_all_streams() {
    let mut client = Client::new();
    client.send_ok(&get(1));
    client.answer(1, 100_000);
    client.connection.abort(ErrorCode::INTERNAL_ERROR);
    let sent = client.sent_text();
    assert_eq!(sent.last().unwrap(), "GOAWAY 1 INTERNAL_ERROR");
    assert!(!sent.iter().any(|frame| frame.contains("DATA")));
    assert!(client.connection.is_finished());
    assert!(
        client
            .connection
            .send_response(id(1), 200, &[], true)
            .is_err()
    );
}
