//! Flow control in both directions (RFC 9113 §5.2, §6.9), and the order of responses
//! (RFC 9218).

use std::time::Duration;

use http2::{ErrorCode, FrameKind, Notice, Settings};

use crate::client::{Client, GET, data, frame, get, headers, id, post, settings, window_update};

/// How many bytes of DATA each stream got.
fn sent_bytes(client: &mut Client) -> Vec<(u32, usize)> {
    let mut streams: Vec<(u32, usize)> = Vec::new();
    for frame in client.sent() {
        if frame.kind == FrameKind::Data {
            match streams.last_mut() {
                Some((stream, bytes)) if *stream == frame.stream => *bytes += frame.payload.len(),
                _ => streams.push((frame.stream, frame.payload.len())),
            }
        }
    }
    streams
}

#[test]
fn a_response_stays_in_the_windows() {
    let mut client = Client::new();
    client.send_ok(&get(1));
    client.answer(1, 70_000);
    assert_eq!(sent_bytes(&mut client), [(1, 65_535)]);
    assert!(!client.connection.has_output());
    client.send_ok(&window_update(1, 100_000));
    assert_eq!(sent_bytes(&mut client), []);
    client.send_ok(&window_update(0, 1000));
    assert_eq!(sent_bytes(&mut client), [(1, 1000)]);
    client.send_ok(&window_update(0, 100_000));
    assert_eq!(sent_bytes(&mut client), [(1, 3465)]);
    assert_eq!(client.connection.open_streams(), 0);
}

#[test]
fn a_new_initial_window_counts_for_open_streams() {
    let mut client = Client::new();
    client.send_ok(&window_update(0, 1 << 20));
    client.send_ok(&settings(&[(4, 100)]));
    client.send_ok(&[get(1), get(3)].concat());
    client.answer(1, 1000);
    client.answer(3, 1000);
    assert_eq!(sent_bytes(&mut client), [(1, 100), (3, 100)]);
    client.send_ok(&settings(&[(4, 150)]));
    assert_eq!(sent_bytes(&mut client), [(1, 50), (3, 50)]);
    // Below zero, from where it has to be opened first.
    client.send_ok(&settings(&[(4, 0)]));
    client.send_ok(&window_update(1, 150));
    assert_eq!(sent_bytes(&mut client), []);
    client.send_ok(&window_update(1, 1));
    assert_eq!(sent_bytes(&mut client), [(1, 1)]);
    client.send_ok(&settings(&[(4, 1 << 20)]));
    assert_eq!(sent_bytes(&mut client), [(1, 849), (3, 850)]);
}

#[test]
fn windows_above_the_maximum_are_errors() {
    let mut client = Client::new();
    client.send_ok(&get(1));
    let seen = client.send_ok(&window_update(1, 0x7fff_ffff));
    assert_eq!(
        seen,
        ["1 reset: client grew the window of a stream above its maximum"]
    );
    assert_eq!(client.sent_text(), ["1 RST_STREAM FLOW_CONTROL_ERROR"]);
    client.send_ok(&get(3));
    let seen = client.send_ok(&frame(FrameKind::WindowUpdate, 0, 3, &[0; 4]));
    assert_eq!(seen.len(), 1);
    assert_eq!(client.sent_text(), ["3 RST_STREAM PROTOCOL_ERROR"]);
    client.send_ok(&get(5));
    client.send_ok(&window_update(5, 1));
    let error = client.send(&settings(&[(4, 0x7fff_ffff)])).unwrap_err();
    assert_eq!(error.code(), ErrorCode::FLOW_CONTROL_ERROR);
}

#[test]
fn what_is_consumed_may_be_sent_again() {
    let settings = Settings {
        stream_window_bytes: 70_000,
        connection_window_bytes: 100_000,
        ..Settings::default()
    };
    let mut client = Client::with(settings);
    client.send_ok(&headers(1, &post(&[]), false));
    for _ in 0..4 {
        client.send_ok(&data(1, &[b'x'; 10_000], false));
    }
    assert_eq!(client.sent(), []);
    client.connection.release(id(1), 34_999);
    assert_eq!(client.sent(), []);
    client.connection.release(id(1), 1);
    assert_eq!(client.sent_text(), ["1 WINDOW_UPDATE 35000"]);
    client.send_ok(&data(1, &[b'x'; 15_000], true));
    // The request has ended: only the window of the connection matters.
    client.connection.release(id(1), 20_000);
    assert_eq!(client.sent_text(), ["0 WINDOW_UPDATE 55000"]);
}

#[test]
fn padding_and_what_nobody_reads_is_given_back() {
    let settings = Settings {
        connection_window_bytes: 65_535,
        ..Settings::default()
    };
    let mut client = Client::with(settings);
    client.send_ok(&headers(1, &post(&[]), false));
    let padded = [&[200][..], &[0; 200]].concat();
    // 201 bytes each, of which none is data; half a window is given back at once.
    let frames = frame(FrameKind::Data, 8, 1, &padded).repeat(164);
    assert_eq!(client.send_ok(&frames), [""; 0]);
    let sent = client.sent_text();
    assert_eq!(sent, ["1 WINDOW_UPDATE 32964", "0 WINDOW_UPDATE 32964"]);
    client.send_ok(&data(1, &[b'x'; 16_000], false).repeat(3));
    client.connection.reset(id(1), ErrorCode::CANCEL);
    let sent = client.sent_text();
    assert_eq!(sent, ["0 WINDOW_UPDATE 48000", "1 RST_STREAM CANCEL"]);
    client.connection.release(id(1), 48_000);
    assert_eq!(client.sent(), [], "not twice");
}

#[test]
fn what_a_request_that_was_answered_early_held_is_given_back_to_the_connection() {
    let settings = Settings {
        connection_window_bytes: 65_535,
        ..Settings::default()
    };
    let mut client = Client::with(settings);
    client.send_ok(&headers(1, &post(&[]), false));
    client.send_ok(&data(1, &[b'x'; 16_000], false));
    client.answer(1, 2);
    client.send_ok(&headers(3, &post(&[]), false));
    client.send_ok(&data(3, &[b'x'; 8_500], false).repeat(2));
    client.sent();
    client.connection.release(id(3), 17_000);
    // Neither is half of the window for itself.
    assert_eq!(client.sent_text(), ["0 WINDOW_UPDATE 33000"]);
}

#[test]
fn more_than_the_window_is_an_error() {
    let mut client = Client::new();
    client.send_ok(&headers(1, &post(&[]), false));
    let most = data(1, &[b'x'; 16_384], false).repeat(4);
    assert_eq!(client.send_ok(&most).len(), 4);
    let seen = client.send_ok(&data(1, b"x", false));
    assert_eq!(seen, ["1 reset: client violated flow control of a stream"]);
    assert_eq!(client.sent_text(), ["1 RST_STREAM FLOW_CONTROL_ERROR"]);

    let settings = Settings {
        connection_window_bytes: 0,
        ..Settings::default()
    };
    let mut client = Client::with(settings);
    client.send_ok(&headers(1, &post(&[]), false));
    client.send_ok(&data(1, &[b'x'; 16_384], false).repeat(3));
    client.send_ok(&data(1, &[b'x'; 16_383], false));
    let error = client.send(&data(1, b"x", false)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::FLOW_CONTROL_ERROR);
}

#[test]
fn until_our_settings_are_known_the_default_window_counts() {
    let settings = Settings {
        stream_window_bytes: 1000,
        ..Settings::default()
    };
    let mut client = Client::without_preface(settings);
    let opening = [http2::PREFACE, &frame(FrameKind::Settings, 0, 0, &[])].concat();
    client.send_ok(&opening);
    client.send_ok(&headers(1, &post(&[]), false));
    client.send_ok(&data(1, &[b'x'; 16_000], false));
    client.send_ok(&frame(FrameKind::Settings, 1, 0, &[]));
    client.sent();
    client.send_ok(&headers(3, &post(&[]), false));
    assert_eq!(
        client.send_ok(&data(3, &[b'x'; 1000], false)),
        ["3 data 1000"]
    );
    let seen = client.send_ok(&data(3, b"x", false));
    assert_eq!(seen, ["3 reset: client violated flow control of a stream"]);
    // The other stream has to be read first.
    let seen = client.send_ok(&data(1, b"x", false));
    assert_eq!(seen, ["1 reset: client violated flow control of a stream"]);
}

#[test]
fn urgent_responses_come_first_and_incremental_ones_take_turns() {
    let mut client = Client::new();
    client.send_ok(&window_update(0, 1 << 20));
    client.send_ok(&settings(&[(4, 1 << 20)]));
    let with = |priority| [GET, &[("priority", priority)]].concat();
    client.send_ok(&headers(1, &with("u=5"), true));
    client.send_ok(&headers(3, &with("i"), true));
    client.send_ok(&headers(5, &with("i"), true));
    client.send_ok(&headers(7, &with("u=0"), true));
    for stream in [1, 3, 5, 7] {
        client.answer(stream, 32_768);
    }
    // A frame with another urgency, before and behind the request.
    client.send_ok(&frame(FrameKind::PriorityUpdate, 0, 0, b"\0\0\0\x09u=1"));
    client.send_ok(&frame(FrameKind::PriorityUpdate, 0, 0, b"\0\0\0\x01u=2"));
    client.send_ok(&headers(9, &with("u=7"), true));
    client.answer(9, 10);
    let order: Vec<u32> = sent_bytes(&mut client)
        .into_iter()
        .map(|(stream, _)| stream)
        .collect();
    assert_eq!(order, [7, 9, 1, 3, 5, 3, 5]);
}

#[test]
fn a_waiting_response_that_becomes_less_urgent_lets_the_others_pass() {
    let mut client = Client::new();
    client.send_ok(&[get(1), get(3)].concat());
    client.answer(1, 10);
    client.answer(3, 10);
    client.send_ok(&frame(FrameKind::PriorityUpdate, 0, 0, b"\0\0\0\x01u=7"));
    assert_eq!(sent_bytes(&mut client), [(3, 10), (1, 10)]);
}

#[test]
fn frames_are_as_large_as_the_client_and_the_configuration_allow() {
    let lens = |chunk_bytes, max_frame_bytes, bytes| {
        let settings = Settings {
            chunk_bytes,
            ..Settings::default()
        };
        let mut client = Client::with(settings);
        client.send_ok(&crate::client::settings(&[(5, max_frame_bytes)]));
        client.send_ok(&get(1));
        client.answer(1, bytes);
        let sent = client.sent();
        let data = sent.iter().filter(|frame| frame.kind == FrameKind::Data);
        data.map(|frame| frame.payload.len()).collect::<Vec<_>>()
    };
    assert_eq!(lens(16_384, 16_384, 40_000), [16_384, 16_384, 7232]);
    assert_eq!(lens(65_536, 32_768, 40_000), [32_768, 7232]);
    assert_eq!(lens(16_384, 32_768, 20_000), [16_384, 3616]);
    assert_eq!(lens(1, 16_384, 4), [1; 4]);
    assert_eq!(lens(0, 16_384, 4), [1; 4]);
}

#[test]
fn a_body_is_asked_for_as_it_is_sent() {
    let mut client = Client::new();
    client.send_ok(&get(1));
    client
        .connection
        .send_response(id(1), 200, &[], false)
        .unwrap();
    client
        .connection
        .send_body(id(1), "abc".into(), false)
        .unwrap();
    assert_eq!(client.connection.queued_bytes(id(1)), 3);
    assert_eq!(client.connection.next_notice(), None);
    client.sent();
    assert_eq!(client.connection.queued_bytes(id(1)), 0);
    assert_eq!(
        client.connection.next_notice(),
        Some(Notice::Drained(id(1)))
    );
    client.connection.send_body(id(1), "".into(), true).unwrap();
    assert_eq!(client.sent_text(), ["1 DATA \"\" end"]);
    // 9 + 1 for the head, 9 + 3 and 9 for the body.
    assert_eq!(
        client.connection.next_notice(),
        Some(Notice::Sent(id(1), 31))
    );
    assert_eq!(client.connection.next_notice(), None);
}

#[test]
fn streams_that_stand_still_are_reset() {
    let mut client = Client::new();
    client.send_ok(&settings(&[(4, 10)]));
    client.send_ok(&[get(1), get(3), get(5)].concat());
    client.sent();
    assert_eq!(client.connection.stalled_since(), None);
    client.answer(1, 100_000);
    client.answer(3, 10);
    let start = client.now;
    client.sent();
    assert_eq!(client.connection.stalled_since(), Some(start));
    client.pass(Duration::from_secs(30));
    client.send_ok(&window_update(1, 5000));
    client.sent();
    client.answer(5, 100_000);
    client.sent();
    client.pass(Duration::from_secs(31));
    let minute = Duration::from_secs(60);
    assert_eq!(client.connection.reset_stalled(minute, client.now), []);
    assert_eq!(
        client.connection.stalled_since(),
        Some(start + Duration::from_secs(30))
    );
    client.send_ok(&window_update(5, 5000));
    client.sent();
    client.pass(Duration::from_secs(30));
    assert_eq!(client.connection.reset_stalled(minute, client.now), [id(1)]);
    assert_eq!(client.sent_text(), ["1 RST_STREAM CANCEL"]);
    client.pass(minute);
    assert_eq!(client.connection.reset_stalled(minute, client.now), [id(5)]);
}

#[test]
fn a_few_bytes_do_not_keep_a_stream() {
    let mut client = Client::new();
    client.send_ok(&settings(&[(4, 10)]));
    client.send_ok(&get(1));
    client.answer(1, 100_000);
    client.sent();
    let minute = Duration::from_secs(60);
    for (stream, seconds) in [(1, 20), (1, 20), (0, 19)] {
        client.pass(Duration::from_secs(seconds));
        client.send_ok(&window_update(stream, 1));
        client.sent();
        assert_eq!(client.connection.reset_stalled(minute, client.now), []);
    }
    client.pass(Duration::from_secs(1));
    assert_eq!(client.connection.reset_stalled(minute, client.now), [id(1)]);
}

#[test]
fn there_is_room_for_what_the_windows_and_the_queue_let_out() {
    let mut client = Client::new();
    client.send_ok(&settings(&[(4, 1 << 30)]));
    client.send_ok(&[get(1), get(3), get(5), get(7), get(9), get(11)].concat());
    let room = |client: &Client, stream| client.connection.room(id(stream));
    assert_eq!(room(&client, 1), 65_535, "the window of the connection");
    client.send_ok(&window_update(0, 1 << 20));
    for stream in [1, 3, 5, 7] {
        assert_eq!(room(&client, stream), 64 << 10);
        client.answer(stream, 64 << 10);
        assert_eq!(room(&client, stream), 0);
    }
    assert_eq!(room(&client, 9), 0, "the queue of the connection");
    assert!(client.connection.window(id(9)) > 0);
    client.sent();
    assert!(client.connection.take_room_change());
    assert!(!client.connection.take_room_change());
    assert_eq!(room(&client, 9), 64 << 10);
    // Bytes taken back make room as well.
    client.send_ok(&settings(&[(4, 0)]));
    assert_eq!(room(&client, 9), 0);
    client.send_ok(&window_update(9, 5));
    assert_eq!(room(&client, 9), 5);
}

#[test]
fn a_stream_that_waits_for_its_turn_does_not_stand_still() {
    let mut client = Client::new();
    client.send_ok(&settings(&[(4, 1 << 30)]));
    client.send_ok(&[get(1), get(3)].concat());
    client.answer(1, 200_000);
    client.answer(3, 10);
    client.sent();
    let minute = Duration::from_secs(60);
    for _ in 0..3 {
        client.pass(minute / 2);
        assert_eq!(client.connection.reset_stalled(minute, client.now), []);
        client.send_ok(&window_update(0, 5000));
        client.sent();
    }
    client.pass(minute);
    assert_eq!(
        client.connection.reset_stalled(minute, client.now),
        [id(1), id(3)]
    );
}
