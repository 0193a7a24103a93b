//! The known floods, each sent until the connection ends: with ENHANCE_YOUR_CALM, a reason
//! for the log, and within its bound. Beside each stands the use of a well-behaved client,
//! which is served for as long as it likes.

use std::time::Duration;

use http2::{ConnectionError, ErrorCode, Flood, FrameKind, Settings};

use crate::client::{
    Client, GET, block, data, frame, get, headers, id, post, reset, settings, window_update,
};

fn expect(flooded: (u32, ConnectionError), flood: Flood, bound: u32) {
    let (times, error) = flooded;
    assert_eq!(error, ConnectionError::Flood(flood));
    assert_eq!(error.code(), ErrorCode::ENHANCE_YOUR_CALM);
    assert_eq!(times, bound, "{error}");
    assert!(
        error.to_string().starts_with("http2 flood detected: too "),
        "{error}"
    );
}

#[test]
fn rapid_reset() {
    let mut client = Client::new();
    let flooded = client.flood(10_000, |nth| {
        let stream = 2 * nth + 1;
        [get(stream), reset(stream)].concat()
    });
    expect(flooded, Flood::Resets, 256);
}

#[test]
fn a_client_that_takes_back_every_other_request_is_served() {
    let mut client = Client::new();
    for nth in 0..20_000 {
        let (served, cancelled) = (4 * nth + 1, 4 * nth + 3);
        client.send_ok(&[get(served), get(cancelled), reset(cancelled)].concat());
        client.answer(served, 10);
        client.sent();
        client.send_ok(&window_update(0, 10));
    }
}

#[test]
fn a_client_that_takes_back_all_its_requests_slowly_is_served() {
    let mut client = Client::new();
    for nth in 0..1000 {
        let stream = 2 * nth + 1;
        client.send_ok(&[get(stream), reset(stream)].concat());
        client.sent();
        client.pass(Duration::from_millis(100));
    }
}

/// CVE-2025-8671: the client makes the server reset its requests.
#[test]
fn made_you_reset() {
    type Break = fn(u32) -> Vec<u8>;
    let ways: [Break; 4] = [
        |stream| window_update(stream, 0),
        |stream| window_update(stream, 0x7fff_ffff),
        |stream| data(stream, b"behind the end", true),
        |stream| frame(FrameKind::Priority, 0, stream, b"wrong length"),
    ];
    for way in ways {
        let mut client = Client::new();
        let flooded = client.flood(10_000, |nth| {
            let stream = 2 * nth + 1;
            [get(stream), way(stream)].concat()
        });
        expect(flooded, Flood::StreamErrors, 100);
    }
}

#[test]
fn malformed_requests() {
    let mut client = Client::new();
    let flooded = client.flood(10_000, |nth| headers(2 * nth + 1, &GET[1..], true));
    expect(flooded, Flood::StreamErrors, 100);
    // Field blocks without anything in them.
    let mut client = Client::new();
    let flooded = client.flood(10_000, |nth| frame(FrameKind::Headers, 5, 2 * nth + 1, &[]));
    expect(flooded, Flood::StreamErrors, 100);
}

#[test]
fn refused_streams() {
    let mut client = Client::new();
    let flooded = client.flood(10_000, |nth| get(2 * nth + 1));
    expect(flooded, Flood::RefusedStreams, 128 + 256);
    assert_eq!(client.connection.open_streams(), 0);
}

/// CVE-2024-27316.
#[test]
fn continuation() {
    for fragment in [&b""[..], b"\0\x01a\x01b", &[0; 100]] {
        let mut client = Client::new();
        client.send_ok(&frame(FrameKind::Headers, 1, 1, b""));
        let flooded = client.flood(10_000, |_| frame(FrameKind::Continuation, 0, 1, fragment));
        expect(flooded, Flood::Continuations, 31);
    }
}

#[test]
fn ping() {
    let mut client = Client::new();
    let flooded = client.flood(10_000, |_| frame(FrameKind::Ping, 0, 0, b"12345678"));
    expect(flooded, Flood::Pings, 500);
}

#[test]
fn a_client_that_pings_while_it_downloads_is_served() {
    let mut client = Client::new();
    client.send_ok(&settings(&[(4, 1 << 30)]));
    client.send_ok(&get(1));
    client.answer(1, 100 << 20);
    client.sent();
    for _ in 0..20_000 {
        // A ping for each 4 KB, and windows opened for each 4 KB.
        client.send_ok(&frame(FrameKind::Ping, 0, 0, b"12345678"));
        client.send_ok(&[window_update(0, 4096), window_update(1, 4096)].concat());
        client.sent();
    }
}

#[test]
fn settings_frames() {
    let mut client = Client::new();
    // The first of a connection counts too.
    let flooded = client.flood(10_000, |nth| settings(&[(4, nth)]));
    expect(flooded, Flood::Settings, 99);
}

#[test]
fn empty_data() {
    for length in [0, 1, 63] {
        let mut client = Client::new();
        client.send_ok(&headers(1, &post(&[]), false));
        let (times, error) = {
            let mut nth = 0;
            loop {
                match client.send(&data(1, &vec![b'x'; length], false)) {
                    Ok(_) => client.connection.release(id(1), length),
                    Err(error) => break (nth, error),
                }
                client.sent();
                nth += 1;
            }
        };
        assert_eq!(error, ConnectionError::Flood(Flood::TinyData));
        // Some is earned by the bytes that do come.
        assert!((2000..2200).contains(&times), "{times}");
    }
    // With padding they look larger.
    let mut client = Client::new();
    client.send_ok(&headers(1, &post(&[]), false));
    let padded = [&[200][..], &[0; 200]].concat();
    let flooded = client.flood(10_000, |_| frame(FrameKind::Data, 8, 1, &padded));
    expect(flooded, Flood::TinyData, 2000);
}

#[test]
fn window_updates() {
    for stream in [0, 1] {
        let mut client = Client::new();
        client.send_ok(&get(1));
        let flooded = client.flood(10_000, |_| window_update(stream, 1));
        expect(flooded, Flood::WindowUpdates, 2000);
    }
}

/// CVE-2019-9511: a large response, and windows of one byte.
#[test]
fn tiny_windows() {
    let mut client = Client::new();
    client.send_ok(&settings(&[(4, 0)]));
    client.send_ok(&get(1));
    client.answer(1, 1 << 20);
    let mut times = 0;
    let mut output = http2::Output::new();
    let error = loop {
        client.send_ok(&window_update(1, 1));
        match client.connection.take_output(&mut output, client.now) {
            Ok(()) => times += 1,
            Err(error) => break error,
        }
        output.advance(output.len());
    };
    expect((times, error), Flood::TinyWindows, 1000);
    assert!(
        output
            .slices()
            .any(|slice| slice.ends_with(b"\0\0\0\x01\0\0\0\x0b"))
    );
}

/// CVE-2019-9513.
#[test]
fn priorities() {
    let mut client = Client::new();
    let flooded = client.flood(10_000, |nth| {
        let depends_on = (2 * nth + 3).to_be_bytes();
        frame(
            FrameKind::Priority,
            0,
            2 * nth + 1,
            &[&depends_on[..], &[7]].concat(),
        )
    });
    expect(flooded, Flood::Priorities, 500);
    let mut client = Client::new();
    client.send_ok(&get(1));
    let flooded = client.flood(10_000, |nth| {
        let value = if nth % 2 == 0 {
            b"\0\0\0\x01u=0"
        } else {
            b"\0\0\0\x01u=7"
        };
        frame(FrameKind::PriorityUpdate, 0, 0, value)
    });
    expect(flooded, Flood::Priorities, 500);
    let mut client = Client::new();
    let flooded = client.flood(10_000, |nth| {
        let stream = (2 * nth + 1).to_be_bytes();
        frame(
            FrameKind::PriorityUpdate,
            0,
            0,
            &[&stream[..], b"u=1"].concat(),
        )
    });
    expect(flooded, Flood::Priorities, 500);
}

#[test]
fn frames_to_ignore() {
    let mut client = Client::new();
    let flooded = client.flood(10_000, |_| frame(FrameKind::Unknown(0x42), 0, 0, b""));
    expect(flooded, Flood::IgnoredFrames, 1000);
    let mut client = Client::new();
    let flooded = client.flood(10_000, |_| frame(FrameKind::GoAway, 0, 0, &[0; 8]));
    expect(flooded, Flood::IgnoredFrames, 1000);

    let mut client = Client::new();
    client.send_ok(&headers(1, &post(&[]), false));
    client.connection.reset(id(1), ErrorCode::CANCEL);
    let flooded = client.flood(10_000, |_| data(1, &[b'x'; 100], false));
    expect(flooded, Flood::IgnoredFrames, 1000);
}

/// One byte of a block can stand for 4 KB.
#[test]
fn hpack_bomb() {
    let mut client = Client::new();
    let value = [b'v'; 4000];
    let first = [&[0x40, 1, b'a'][..], &[127, 0xa1, 0x1e], &value].concat();
    let first = [block(GET), first].concat();
    let seen = client.send_ok(&frame(FrameKind::Headers, 5, 1, &first));
    assert!(seen[0].starts_with("1 GET /"));
    // A head above the limit is answered.
    let some = [block(GET), vec![0xbe; 10]].concat();
    let seen = client.send_ok(&frame(FrameKind::Headers, 5, 3, &some));
    assert_eq!(seen, ["3 494 client sent too large request"]);
    // One far above it is not, and is not decoded to its end.
    let bomb = [block(GET), vec![0xbe; 16_000]].concat();
    let error = client.send(&frame(FrameKind::Headers, 5, 5, &bomb));
    assert_eq!(error, Err(ConnectionError::FieldBlockTooLarge));
    assert_eq!(error.unwrap_err().code(), ErrorCode::ENHANCE_YOUR_CALM);
}

/// Fields that cost one byte each and are short: their number is bounded too.
#[test]
fn many_small_fields() {
    let block = |count| [block(GET), vec![0x90; count]].concat();
    let mut client = Client::new();
    let seen = client.send_ok(&frame(FrameKind::Headers, 5, 1, &block(1001)));
    assert_eq!(seen, ["1 494 client sent too many header lines"]);
    let error = client.send(&frame(FrameKind::Headers, 5, 3, &block(16_000)));
    assert_eq!(error, Err(ConnectionError::FieldBlockTooLarge));
}

#[test]
fn a_client_that_does_not_read_is_noticed() {
    let mut client = Client::with(Settings {
        max_concurrent_streams: 1000,
        ..Settings::default()
    });
    let large = crate::client::fields(&[("x", &"y".repeat(2000))]);
    let mut stream = 1;
    while !client.connection.is_congested() {
        client.send_ok(&get(stream));
        client
            .connection
            .send_response(id(stream), 200, &[&large], true)
            .unwrap();
        stream += 2;
    }
    assert!((30 * 2..50 * 2).contains(&stream), "{stream}");
    client.sent();
    assert!(!client.connection.is_congested());
}
