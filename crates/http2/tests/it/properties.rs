//! The fuzz entries on generated input: pieces of real connections shuffled, which get
//! further than random bytes do.

use http2::FrameKind;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::client::{GET, block, frame, raw_block, settings, window_update};

/// A frame that makes sense on its own.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let stream = prop_oneof![8 => (0..12u32).prop_map(|nth| 2 * nth + 1), 1 => 0..30u32];
    let payload = prop_oneof![
        4 => Just(block(GET)),
        2 => Just(block(&[GET, &[("content-length", "5"), ("priority", "u=1, i")]].concat())),
        1 => Just(block(&[("x-sum", "1")])),
        1 => Just(raw_block([(&b"x"[..], &b"a\r\nb"[..])])),
        2 => vec(any::<u8>(), 0..40),
        1 => Just(vec![0x82, 0x84, 0x86, 0x41, 1, b'a', 0x40, 1, b'b', 1, b'c', 0xbe]),
    ];
    prop_oneof![
        6 => (stream.clone(), payload.clone(), 0..64u8)
            .prop_map(|(stream, payload, flags)| {
                let flags = if flags < 48 { flags & 0x1 | 0x4 } else { flags };
                frame(FrameKind::Headers, flags, stream, &payload)
            }),
        2 => (stream.clone(), payload.clone(), any::<bool>())
            .prop_map(|(stream, payload, end)| {
                frame(FrameKind::Continuation, u8::from(end) * 4, stream, &payload)
            }),
        4 => (stream.clone(), 0..300usize, 0..10u8)
            .prop_map(|(stream, length, flags)| {
                let flags = if flags == 9 { 0x8 } else { flags & 1 };
                frame(FrameKind::Data, flags, stream, &vec![5; length])
            }),
        2 => (stream.clone(), prop_oneof![0..5000u32, any::<u32>()])
            .prop_map(|(stream, increment)| window_update(stream, increment)),
        2 => (stream.clone(), any::<u32>())
            .prop_map(|(stream, code)| frame(FrameKind::ResetStream, 0, stream, &code.to_be_bytes())),
        1 => (prop_oneof![0..5000u32, any::<u32>()], 1..8u16)
            .prop_map(|(value, identifier)| settings(&[(identifier, value)])),
        1 => (0..20u8, any::<u8>(), stream, payload)
            .prop_map(|(kind, flags, stream, payload)| {
                frame(FrameKind::from_number(kind), flags, stream, &payload)
            }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn connections_go_the_same_however_they_are_cut(frames in vec(any_frame(), 0..30), piece in any::<u8>()) {
        let bytes = [vec![piece], frames.concat()].concat();
        http2::fuzz_connection(&bytes);
    }

    #[test]
    fn frames_are_read_or_refused(frames in vec(any_frame(), 0..30)) {
        http2::fuzz_frames(&frames.concat());
    }

    #[test]
    fn blocks_are_decoded_within_bounds(bytes in vec(any::<u8>(), 0..300)) {
        http2::fuzz_hpack(&bytes);
        http2::fuzz_hpack(&[&(bytes.len() as u16).to_be_bytes()[..], &bytes].concat());
    }
}
