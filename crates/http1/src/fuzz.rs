//! Entries for fuzzing: each takes any bytes and asserts the properties that
//! hold for them. A failed assertion is the finding; the targets that call
//! these are one line each.

use http_semantics::{RequestView, Target, request_host};

use crate::chunked::{ChunkedDecoder, ChunkedError, DecodedChunk};
use crate::framing::{body_framing, response_framing, wants_keep_alive};
use crate::limits::HeadLimits;
use crate::request::{ParsedHead, parse_request};
use crate::response::parse_response;

/// Spans lie in bounds; pieces of a head are waited for or refused, never read
/// as something else; questions about a head do not fail.
#[doc(hidden)]
pub fn fuzz_request_head(data: &[u8]) {
    let limits = HeadLimits {
        first_buffer_bytes: 64,
        large_buffers: 3,
        large_buffer_bytes: 128,
        max_fields: 16,
        ..HeadLimits::default()
    };
    let mut fields = Vec::new();
    let whole = parse_request(data, &limits, &mut fields);
    let head_len = match &whole {
        Ok(ParsedHead::Complete(line)) => {
            assert!(line.head_len <= data.len());
            assert!(line.head_len <= limits.max_head_bytes());
            let view = RequestView {
                bytes: data.get(..line.head_len).expect("in bounds"),
                line,
                fields: &fields,
            };
            check_view(view);
            line.head_len
        }
        Ok(ParsedHead::Partial) | Err(_) => data.len(),
    };
    for end in 0..head_len.min(512) {
        let piece = data.get(..end).expect("in bounds");
        match parse_request(piece, &limits, &mut fields) {
            Ok(ParsedHead::Partial) => {}
            Ok(ParsedHead::Complete(_)) => panic!("a piece of {end} bytes is a whole head"),
            Err(_) => assert!(whole.is_err(), "refused at {end}, but the whole is good"),
        }
    }
}

fn check_view(view: RequestView<'_>) {
    assert!(!view.method().is_empty());
    assert!(!view.target().is_empty());
    for (span, (name, value)) in view.fields.iter().zip(view.fields()) {
        assert_eq!(span.name.len(), name.len());
        assert_eq!(span.value.len(), value.len());
        assert!(!name.is_empty());
        assert!(!value.iter().any(|byte| b"\r\n\0".contains(byte)));
    }
    let _ = body_framing(view);
    let _ = wants_keep_alive(view);
    if let Ok(target) = Target::parse(view.target(), true) {
        if let Ok(Some(host)) = request_host(view, &target) {
            assert!(!host.name.is_empty());
            assert!(!host.name.iter().any(|byte| b"/\\ \t".contains(byte)));
        }
        assert!(!target.path.contains(&0));
        assert!(!target.path.windows(4).any(|part| part == b"/../"));
        assert!(!target.path.ends_with(b"/.."));
    }
}

/// The body is the same in one piece and byte by byte.
#[doc(hidden)]
pub fn fuzz_chunked(data: &[u8]) {
    assert_eq!(decode(data, data.len().max(1)), decode(data, 1));
}

/// The body so far and where it ended, or the error.
fn decode(data: &[u8], step: usize) -> Result<(Vec<u8>, Option<usize>), ChunkedError> {
    let mut decoder = ChunkedDecoder::keeping_trailers();
    let (mut body, mut at) = (Vec::new(), 0);
    while at < data.len() {
        let end = data.len().min(at.saturating_add(step));
        let piece = data.get(at..end).expect("in bounds");
        match decoder.decode(piece)? {
            DecodedChunk::Data {
                consumed,
                data: range,
            } => {
                assert!(!range.is_empty() && range.end == consumed);
                body.extend_from_slice(piece.get(range).expect("in bounds"));
                at += consumed;
            }
            DecodedChunk::NeedMore => at = end,
            DecodedChunk::Done { consumed } => return Ok((body, Some(at + consumed))),
        }
    }
    Ok((body, None))
}

/// A response head is the same when more follows, and its pieces are waited for
/// or refused.
#[doc(hidden)]
pub fn fuzz_response_head(data: &[u8]) {
    let whole = parse_response(data);
    let head_len = match &whole {
        Ok(Some((head, head_len))) => {
            assert!(*head_len <= data.len());
            for (name, value) in head.fields.iter() {
                assert!(!name.is_empty());
                assert!(!value.iter().any(|byte| b"\r\n\0".contains(byte)));
            }
            let _ = response_framing(head, b"GET");
            *head_len
        }
        Ok(None) | Err(_) => data.len(),
    };
    for end in 0..head_len.min(512) {
        match parse_response(data.get(..end).expect("in bounds")) {
            Ok(None) => {}
            Ok(Some(_)) => panic!("a piece of {end} bytes is a whole head"),
            Err(_) => assert!(whole.is_err(), "refused at {end}, but the whole is good"),
        }
    }
}
