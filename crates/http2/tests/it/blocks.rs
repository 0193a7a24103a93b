//! Field blocks in several frames (RFC 9113 §4.3, §6.10).

use http2::{ConnectionError, ErrorCode, FrameKind, Settings};

use crate::client::{Client, GET, block, data, fields, frame, get, headers, id, post};

const END_HEADERS: u8 = 4;
const END_STREAM: u8 = 1;

/// A request whose block is cut at these places.
fn cut(stream: u32, block: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let (mut kind, mut flags, mut from) = (FrameKind::Headers, END_STREAM, 0);
    for &cut in cuts {
        frames.push(frame(kind, flags, stream, &block[from..cut]));
        (kind, flags, from) = (FrameKind::Continuation, 0, cut);
    }
    frames.push(frame(kind, flags | END_HEADERS, stream, &block[from..]));
    frames
}

#[test]
fn a_block_may_be_cut_anywhere() {
    let whole = block(GET);
    let expected = ["1 GET / HTTP/2.0, host=example.org end"];
    for at in 0..=whole.len() {
        let mut client = Client::new();
        assert_eq!(client.send_ok(&cut(1, &whole, &[at]).concat()), expected);
        let mut client = Client::new();
        let frames = cut(1, &whole, &[at / 2, at, at]);
        assert_eq!(client.send_ok(&frames.concat()), expected);
    }
}

#[test]
fn padding_and_priority_are_no_part_of_it() {
    let whole = block(GET);
    let (first, rest) = whole.split_at(10);
    let padded = [&[3][..], b"\0\0\0\0\x10", first, &[0; 3]].concat();
    let frames = [
        frame(FrameKind::Headers, END_STREAM | 0x8 | 0x20, 1, &padded),
        frame(FrameKind::Continuation, END_HEADERS, 1, rest),
    ];
    let mut client = Client::new();
    assert_eq!(
        client.send_ok(&frames.concat()),
        ["1 GET / HTTP/2.0, host=example.org end"]
    );
}

#[test]
fn nothing_may_come_in_between() {
    let whole = block(GET);
    for between in [
        get(3),
        data(1, b"x", true),
        frame(FrameKind::Ping, 0, 0, &[0; 8]),
        frame(FrameKind::Unknown(77), 0, 1, b""),
        frame(FrameKind::Continuation, END_HEADERS, 3, b""),
    ] {
        let mut client = Client::new();
        client.send_ok(&cut(1, &whole, &[10])[0]);
        let error = client.send(&between).unwrap_err();
        assert_eq!(error.code(), ErrorCode::PROTOCOL_ERROR);
        assert!(matches!(error, ConnectionError::ExpectedContinuation(_)));
    }
    for before in [vec![], get(1)] {
        let mut client = Client::new();
        client.send_ok(&before);
        let error = client.send(&frame(FrameKind::Continuation, END_HEADERS, 1, b""));
        assert_eq!(error.unwrap_err().code(), ErrorCode::PROTOCOL_ERROR);
    }
}

/// A literal that is added to the dynamic table (RFC 7541 §6.2.1).
const ADDED: &[u8] = b"\x40\x03x-a\x01b";
/// The field that was added to the dynamic table last.
const LAST_ADDED: u8 = 0x80 | 62;

#[test]
fn a_late_head_costs_its_stream_alone() {
    let late = [&block(GET)[..], ADDED].concat();
    // In two frames, and in one of which a part is there.
    let two = cut(3, &late, &[10]);
    let whole = cut(3, &late, &[])[0].clone();
    let nothing = &[][..];
    for (taken, unfinished, rest) in [
        (&two[0][..], nothing, &two[1]),
        (nothing, &whole[..30], &whole),
    ] {
        let mut client = Client::new();
        client.send_ok(&get(1));
        client.send_ok(taken);
        assert_eq!(client.connection.reset_late_head(unfinished), Some(id(3)));
        assert_eq!(client.sent_text(), ["3 RST_STREAM PROTOCOL_ERROR"]);
        // It was reported already.
        assert_eq!(client.connection.reset_late_head(unfinished), None);
        assert_eq!(client.send_ok(rest), Vec::<String>::new());
        // The field that it added to the table is there.
        let next = [&block(GET)[..], &[LAST_ADDED]].concat();
        assert_eq!(
            client.send_ok(&cut(5, &next, &[])[0]),
            ["5 GET / HTTP/2.0, host=example.org, x-a=b end"]
        );
        assert_eq!(client.connection.open_streams(), 2);
    }
}

#[test]
fn late_trailers_end_their_request() {
    let mut client = Client::new();
    client.send_ok(&headers(1, &post(&[]), false));
    let trailers = cut(1, &block(&[("x-sum", "1")]), &[4]);
    client.send_ok(&trailers[0]);
    assert_eq!(client.connection.reset_late_head(&[]), Some(id(1)));
    assert_eq!(client.sent_text(), ["1 RST_STREAM PROTOCOL_ERROR"]);
    assert_eq!(client.connection.open_streams(), 0);
    assert_eq!(client.send_ok(&trailers[1]), Vec::<String>::new());
}

#[test]
fn what_is_no_head_of_a_stream_is_not_reset_as_one() {
    let mut client = Client::new();
    client.send_ok(&get(3));
    for unfinished in [
        &[][..],
        &frame(FrameKind::Ping, 0, 0, &[0; 8])[..10],
        &get(5)[..8],
        // Streams that no head can open.
        &get(1)[..20],
        &get(4)[..20],
    ] {
        let late = client.connection.reset_late_head(unfinished);
        assert_eq!(late, None, "{unfinished:?}");
    }
    assert_eq!(client.sent_text(), Vec::<String>::new());
}

#[test]
fn a_response_head_is_cut_to_the_frames_that_the_client_takes() {
    let mut client = Client::new();
    client.send_ok(&get(1));
    // Without Huffman codes, so that its length is known.
    let long = "{".repeat(20_000);
    let block = fields(&[("x-long", &long), ("x-longer", &long)]);
    client
        .connection
        .send_response(id(1), 200, &[&block], true)
        .unwrap();
    let sent = client.sent();
    let shapes: Vec<_> = sent
        .iter()
        .map(|f| (f.kind, f.flags, f.payload.len()))
        .collect();
    assert_eq!(shapes[0], (FrameKind::Headers, END_STREAM, 16_384));
    assert_eq!(shapes[1], (FrameKind::Continuation, 0, 16_384));
    assert_eq!(
        (shapes[2].0, shapes[2].1),
        (FrameKind::Continuation, END_HEADERS)
    );
    assert_eq!(shapes.len(), 3);
    let payloads: Vec<_> = sent.into_iter().map(|frame| frame.payload).collect();
    let expected = [
        ":status=200".into(),
        format!("x-long={long}"),
        format!("x-longer={long}"),
    ];
    assert_eq!(client.decode(&payloads.concat()), expected);
}

#[test]
fn a_block_far_above_the_limit_ends_the_connection() {
    let settings = Settings::default();
    let most = settings.head.max_list_bytes * 2;
    let mut client = Client::with(settings);
    let piece = [0; 16_384];
    client.send_ok(&frame(FrameKind::Headers, 0, 1, &piece));
    for _ in 0..most / piece.len() - 1 {
        client.send_ok(&frame(FrameKind::Continuation, 0, 1, &piece));
    }
    let error = client.send(&frame(FrameKind::Continuation, 0, 1, &[0]));
    assert_eq!(error, Err(ConnectionError::FieldBlockTooLarge));
    assert_eq!(client.sent_text(), ["GOAWAY 0 ENHANCE_YOUR_CALM"]);
}

#[test]
fn a_table_that_the_client_made_smaller_is_given_up_once() {
    let mut client = Client::new();
    client.send_ok(&crate::client::settings(&[(1, 100)]));
    client.send_ok(&[get(1), get(3)].concat());
    client
        .connection
        .send_response(id(1), 204, &[], true)
        .unwrap();
    client
        .connection
        .send_response(id(3), 204, &[], true)
        .unwrap();
    let heads: Vec<_> = client
        .sent()
        .into_iter()
        .map(|frame| frame.payload)
        .collect();
    assert_eq!(heads[1..], [vec![0x20, 0x89], vec![0x89]]);
}
