//! States of the connection and of streams (RFC 9113 §3.4, §5.1, §6): what may come when.

use std::time::Duration;

use http2::{ConnectionError, ErrorCode, FrameKind, PREFACE, Settings};

use crate::client::{
    Client, GET, block, data, frame, get, headers, id, post, reset, settings, window_update,
};

/// The code of the GOAWAY that these bytes lead to.
fn fails(client: &mut Client, bytes: &[u8]) -> ErrorCode {
    let error = client.send(bytes).expect_err("an error of the connection");
    let sent = client.sent_text();
    let goaway = sent.last().unwrap();
    assert!(goaway.ends_with(&error.code().to_string()), "{goaway}");
    assert!(goaway.starts_with("GOAWAY"), "{goaway}");
    assert_eq!(client.send(&get(101)), Err(error), "it stays as it is");
    assert_eq!(client.connection.open_streams(), 0);
    error.code()
}

#[test]
fn the_server_begins_with_its_settings_and_a_larger_window() {
    let mut client = Client::without_preface(Settings::default());
    let sent = client.sent();
    assert_eq!(sent[0].kind, FrameKind::Settings);
    let expected = [
        &[0, 3, 0, 0, 0, 128][..],
        &[0, 4, 0, 1, 0, 0],
        &[0, 6, 0, 0, 0x80, 0],
        &[0, 9, 0, 0, 0, 1],
    ];
    assert_eq!(sent[0].payload, expected.concat());
    assert_eq!((sent[1].kind, sent[1].stream), (FrameKind::WindowUpdate, 0));
    assert_eq!(sent[1].payload, (1024 * 1024 - 65_535u32).to_be_bytes());
    assert_eq!(sent.len(), 2);
}

#[test]
fn settings_may_follow_the_preface_or_stay_out() {
    let settings = settings(&[(4, 70_000)]);
    let mut client = Client::without_preface(Settings::default());
    client.sent();
    assert_eq!(client.send(&[PREFACE, &settings].concat()), Ok(vec![]));
    assert_eq!(client.sent_text(), ["SETTINGS ack"]);

    for wrong in [
        b"GET / HTTP/1.1\r\n".as_slice(),
        b"PRI * HTTP/2.0\r\n\r\nxx",
    ] {
        let mut client = Client::without_preface(Settings::default());
        assert_eq!(client.send(wrong), Err(ConnectionError::InvalidPreface));
    }
    let ack = frame(FrameKind::Settings, 1, 0, &[]);
    for first in [get(1), ack, frame(FrameKind::Ping, 0, 0, &[0; 8])] {
        let mut client = Client::without_preface(Settings::default());
        let bytes = [PREFACE, &first].concat();
        client.send(&bytes).expect("it is served all the same");
    }
}

#[test]
fn settings_are_acknowledged_unless_they_are_wrong() {
    let mut client = Client::new();
    client.send_ok(&settings(&[(1, 0), (3, 1), (6, 10), (0xabcd, 7)]));
    assert_eq!(client.sent_text(), ["SETTINGS ack"]);
    client.send(&settings(&[(4, 42), (5, 42)])).unwrap_err();
    assert_eq!(client.sent_text(), ["GOAWAY 0 PROTOCOL_ERROR"]);
    let mut client = Client::new();
    let too_large = settings(&[(4, 1 << 31)]);
    assert_eq!(
        fails(&mut client, &too_large),
        ErrorCode::FLOW_CONTROL_ERROR
    );
}

#[test]
fn pings_come_back() {
    let mut client = Client::new();
    client.send_ok(&frame(FrameKind::Ping, 0, 0, b"SEE-THIS"));
    let sent = client.sent();
    assert_eq!((sent[0].flags, &sent[0].payload[..]), (1, &b"SEE-THIS"[..]));
    client.send_ok(&frame(FrameKind::Ping, 1, 0, b"whatever"));
    assert_eq!(client.sent(), []);
}

#[test]
fn unknown_frames_and_old_priorities_are_ignored() {
    let mut client = Client::new();
    client.send_ok(&frame(FrameKind::Unknown(0xbb), 0xff, 7, b"payload"));
    client.send_ok(&frame(FrameKind::Priority, 0, 3, b"\0\0\0\x01\x10"));
    let with_priority = [&b"\x80\0\0\x07\xff"[..], &block(GET)].concat();
    let head = frame(FrameKind::Headers, 0x25, 9, &with_priority);
    assert_eq!(
        client.send_ok(&head),
        ["9 GET / HTTP/2.0, host=example.org end"]
    );
    assert_eq!(client.sent(), []);
}

#[test]
fn a_stream_that_depends_on_itself_is_reset() {
    let mut client = Client::new();
    client.send_ok(&frame(FrameKind::Priority, 0, 3, b"\0\0\0\x03\x10"));
    assert_eq!(client.sent_text(), ["3 RST_STREAM PROTOCOL_ERROR"]);
    let with_priority = [&b"\0\0\0\x05\x10"[..], &block(GET)].concat();
    client.send_ok(&frame(FrameKind::Headers, 0x25, 5, &with_priority));
    assert_eq!(client.sent_text(), ["5 RST_STREAM PROTOCOL_ERROR"]);
    assert_eq!(client.connection.open_streams(), 0);
    assert_eq!(client.send_ok(&get(7)).len(), 1);
}

#[test]
fn streams_are_odd_and_rise() {
    for (before, stream) in [(None, 2), (Some(5), 3), (Some(5), 4)] {
        let mut client = Client::new();
        if let Some(before) = before {
            client.send_ok(&get(before));
        }
        assert_eq!(
            fails(&mut client, &get(stream)),
            ErrorCode::PROTOCOL_ERROR,
            "{stream}"
        );
    }
}

#[test]
fn frames_for_idle_streams_end_the_connection() {
    for bytes in [
        data(1, b"x", true),
        reset(1),
        window_update(1, 1),
        reset(2),
        data(2, b"", true),
    ] {
        let mut client = Client::new();
        assert_eq!(fails(&mut client, &bytes), ErrorCode::PROTOCOL_ERROR);
    }
    let mut client = Client::new();
    let push = frame(FrameKind::PushPromise, 4, 1, b"\0\0\0\x02");
    assert_eq!(fails(&mut client, &push), ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn nothing_but_updates_may_follow_the_end_of_a_request() {
    for bytes in [data(1, b"x", true), headers(1, GET, true)] {
        let mut client = Client::new();
        client.send_ok(&get(1));
        let seen = client.send_ok(&bytes);
        assert_eq!(seen.len(), 1);
        assert!(seen[0].starts_with("1 reset: client sent "), "{seen:?}");
        assert_eq!(client.sent_text(), ["1 RST_STREAM STREAM_CLOSED"]);
        assert_eq!(client.send_ok(&get(3)).len(), 1);
    }
    let mut client = Client::new();
    client.send_ok(&get(1));
    assert_eq!(client.send_ok(&window_update(1, 5)), [""; 0]);
    assert_eq!(client.send_ok(&reset(1)), ["1 reset by client: CANCEL"]);
}

#[test]
fn frames_for_streams_that_the_client_closed_are_errors() {
    let mut client = Client::new();
    client.send_ok(&headers(1, &post(&[]), false));
    client.send_ok(&reset(1));
    client.send_ok(&data(1, b"x", true));
    assert_eq!(client.sent_text(), ["1 RST_STREAM STREAM_CLOSED"]);

    for is_answered in [false, true] {
        let mut client = Client::new();
        client.send_ok(&get(1));
        match is_answered {
            true => client.answer(1, 10),
            false => drop(client.send_ok(&reset(1))),
        }
        client.sent();
        client.send_ok(&window_update(1, 5));
        client.send_ok(&reset(1));
        assert_eq!(client.sent(), []);
        assert_eq!(fails(&mut client, &get(1)), ErrorCode::STREAM_CLOSED);
    }
}

#[test]
fn frames_for_streams_that_we_reset_were_under_way() {
    let mut client = Client::new();
    client.send_ok(&headers(1, &post(&[]), false));
    client.connection.reset(id(1), ErrorCode::INTERNAL_ERROR);
    assert_eq!(client.sent_text(), ["1 RST_STREAM INTERNAL_ERROR"]);
    for bytes in [
        data(1, &[b'x'; 100], false),
        window_update(1, 5),
        headers(1, &[("x", "y")], true),
        reset(1),
    ] {
        assert_eq!(client.send_ok(&bytes), [""; 0]);
    }
    assert_eq!(client.sent(), []);
}

/// A client whose request on stream 1 is answered before it has ended.
fn answered_early(request: &[(&str, &str)]) -> Client {
    let mut client = Client::new();
    client.send_ok(&headers(1, request, false));
    client.answer(1, 2);
    assert_eq!(
        client.sent_text(),
        ["1 HEADERS :status=200", "1 DATA \"xx\" end"]
    );
    assert_eq!(client.connection.open_streams(), 0);
    client
}

#[test]
fn a_client_that_breaks_a_rule_behind_an_early_answer_sees_its_error() {
    let trailers = |list, end| headers(1, list, end);
    let grow = window_update(1, 0x7fff_ffff);
    for (frames, error) in [
        (trailers(&[("x-sum", "1")], false), "PROTOCOL_ERROR"),
        (trailers(&[(":method", "GET")], true), "PROTOCOL_ERROR"),
        (data(1, b"body", true), "PROTOCOL_ERROR"),
        (data(1, b"body", false), "PROTOCOL_ERROR"),
        (data(1, b"", true), "PROTOCOL_ERROR"),
        (window_update(1, 0), "PROTOCOL_ERROR"),
        ([grow.clone(), grow].concat(), "FLOW_CONTROL_ERROR"),
        ([reset(1), data(1, b"x", true)].concat(), "STREAM_CLOSED"),
        (
            [data(1, b"x", true), data(1, b"x", true)].concat(),
            "STREAM_CLOSED",
        ),
    ] {
        let mut client = answered_early(&post(&[("content-length", "1")]));
        assert_eq!(client.send_ok(&frames), [""; 0], "the request is over");
        assert_eq!(client.sent_text(), [format!("1 RST_STREAM {error}")]);
    }
    let mut client = answered_early(&post(&[]));
    let again = [reset(1), headers(1, GET, true)].concat();
    assert_eq!(fails(&mut client, &again), ErrorCode::STREAM_CLOSED);
}

#[test]
fn the_rest_of_a_request_that_was_answered_early_is_dropped() {
    for rest in [
        vec![data(1, &[b'x'; 1000], false), data(1, b"more", true)],
        vec![data(1, b"x", false), headers(1, &[("x-sum", "1")], true)],
        vec![data(1, b"", true)],
    ] {
        let mut client = answered_early(&post(&[]));
        for bytes in &rest {
            assert_eq!(client.send_ok(bytes), [""; 0]);
        }
        assert_eq!(client.sent(), []);
        // It has ended.
        client.pass(Duration::from_secs(3600));
        let now = client.now;
        client.connection.abort_unended(Duration::ZERO, now);
        assert_eq!(client.sent(), []);
    }
}

#[test]
fn a_client_is_asked_to_send_no_more_where_it_would_need_a_larger_window() {
    // Half of the window, in all.
    for (before, behind) in [(2, 0), (1, 1), (0, 2)] {
        let piece = data(1, &[b'x'; 16_384], false);
        let mut client = Client::new();
        client.send_ok(&headers(1, &post(&[]), false));
        (0..before).for_each(|_| drop(client.send_ok(&piece)));
        client.answer(1, 2);
        let mut sent = client.sent_text();
        (0..behind).for_each(|_| drop(client.send_ok(&piece)));
        sent.extend(client.sent_text());
        assert_eq!(
            sent,
            [
                "1 HEADERS :status=200",
                "1 DATA \"xx\" end",
                "1 RST_STREAM NO_ERROR"
            ],
            "{before}"
        );
        assert_eq!(client.send_ok(&data(1, b"more", true)), [""; 0]);
        assert_eq!(client.sent(), []);
    }
}

#[test]
fn a_client_is_asked_to_send_no_more_after_a_time() {
    let mut client = answered_early(&post(&[]));
    let since = client.connection.unended_since().expect("it has not ended");
    assert_eq!(since, client.now);
    let timeout = Duration::from_secs(5);
    client.pass(timeout - Duration::from_millis(1));
    let now = client.now;
    client.connection.abort_unended(timeout, now);
    assert_eq!(client.sent(), []);
    client
        .connection
        .abort_unended(timeout, now + Duration::from_millis(1));
    assert_eq!(client.sent_text(), ["1 RST_STREAM NO_ERROR"]);
    assert_eq!(client.connection.unended_since(), None);
}

#[test]
fn requests_that_were_answered_early_count_among_the_streams_there_may_be() {
    let limit = Settings {
        max_concurrent_streams: 1,
        ..Settings::default()
    };
    let mut client = Client::with(limit);
    client.send_ok(&headers(1, &post(&[]), false));
    client.answer(1, 1);
    client.sent();
    client.send_ok(&get(3));
    assert_eq!(client.sent_text(), ["3 RST_STREAM REFUSED_STREAM"]);
    client.send_ok(&data(1, b"", true));
    assert_eq!(client.send_ok(&get(5)).len(), 1);
    // Nor do they hold up the end of the connection.
    client.send_ok(&reset(5));
    client.send_ok(&headers(7, &post(&[]), false));
    client.answer(7, 1);
    client.sent();
    client.connection.finish_shutdown();
    assert!(client.connection.is_finished());
}

#[test]
fn a_window_update_by_nothing_is_an_error_on_a_closed_stream_too() {
    let mut client = Client::new();
    client.send_ok(&get(1));
    client.answer(1, 1);
    client.sent();
    client.send_ok(&window_update(1, 1));
    assert_eq!(client.sent(), []);
    client.send_ok(&window_update(1, 0));
    assert_eq!(client.sent_text(), ["1 RST_STREAM PROTOCOL_ERROR"]);
}

#[test]
fn streams_above_the_limit_are_refused_and_can_be_tried_again() {
    let limit = Settings {
        max_concurrent_streams: 2,
        ..Settings::default()
    };
    let mut client = Client::with(limit);
    client.send_ok(&[get(1), get(3)].concat());
    // Its block changes the table all the same.
    let indexed = [&block(GET)[..], &[0x40, 1, b'a', 1, b'b']].concat();
    assert_eq!(
        client.send_ok(&frame(FrameKind::Headers, 5, 5, &indexed)),
        [""; 0]
    );
    assert_eq!(client.sent_text(), ["5 RST_STREAM REFUSED_STREAM"]);
    assert_eq!(client.send_ok(&data(5, b"under way", true)), [""; 0]);
    client.answer(1, 1);
    client.sent();
    let again = [&block(GET)[..], &[0xbe]].concat();
    let seen = client.send_ok(&frame(FrameKind::Headers, 5, 7, &again));
    assert_eq!(seen, ["7 GET / HTTP/2.0, host=example.org, a=b end"]);
}

#[test]
fn frames_too_large_or_misplaced_end_the_connection() {
    use ErrorCode as E;
    for (bytes, code) in [
        (
            frame(FrameKind::Data, 0, 1, &[0; 16_385]),
            E::FRAME_SIZE_ERROR,
        ),
        (
            frame(FrameKind::Headers, 5, 1, &[0; 16_385]),
            E::FRAME_SIZE_ERROR,
        ),
        (
            frame(FrameKind::Unknown(99), 0, 0, &[0; 16_385]),
            E::FRAME_SIZE_ERROR,
        ),
        (
            frame(FrameKind::Settings, 0, 0, &[0; 5]),
            E::FRAME_SIZE_ERROR,
        ),
        (frame(FrameKind::Ping, 0, 0, &[0; 7]), E::FRAME_SIZE_ERROR),
        (frame(FrameKind::Ping, 0, 1, &[0; 8]), E::PROTOCOL_ERROR),
        (
            frame(FrameKind::WindowUpdate, 0, 0, &[0; 4]),
            E::PROTOCOL_ERROR,
        ),
        (window_update(0, 0x7fff_ffff), E::FLOW_CONTROL_ERROR),
        (
            frame(FrameKind::PriorityUpdate, 0, 0, b"\0\0\0\x02u=1"),
            E::PROTOCOL_ERROR,
        ),
        (
            frame(FrameKind::PriorityUpdate, 0, 0, b"\0\0\0\0u=1"),
            E::PROTOCOL_ERROR,
        ),
        (
            frame(FrameKind::Headers, 5, 1, &[0x80]),
            E::COMPRESSION_ERROR,
        ),
        (
            frame(FrameKind::Headers, 5, 1, &[0xff]),
            E::COMPRESSION_ERROR,
        ),
    ] {
        let mut client = Client::new();
        assert_eq!(fails(&mut client, &bytes), code, "{:?}", &bytes[..9]);
    }
}

#[test]
fn a_goaway_of_the_client_is_told() {
    let mut client = Client::new();
    client.send_ok(&get(1));
    let goaway = frame(FrameKind::GoAway, 0, 0, b"\0\0\0\0\0\0\0\x05foobar");
    assert_eq!(client.send_ok(&goaway), ["goaway STREAM_CLOSED"]);
    client.answer(1, 3);
    assert_eq!(client.sent_text()[1], "1 DATA \"xxx\" end");
}

#[test]
fn the_goaway_names_the_stream_whose_block_was_wrong() {
    let mut client = Client::new();
    client.send_ok(&get(1));
    client
        .send(&frame(FrameKind::Headers, 5, 3, &[0xbe]))
        .unwrap_err();
    assert_eq!(client.sent_text(), ["GOAWAY 3 COMPRESSION_ERROR"]);
}
