//! Bodies rewritten from one charset to another (`charset_map`): short ones where they
//! are, longer ones as they are sent.

use crate::exchange::reply::{Body, Reply, Segment};
use recoding::Transcoder;

/// Bodies at hand up to this size are rewritten in memory, which leaves their
/// length known and their ranges available; longer ones as they are sent.
const MAX_BYTES_AT_HAND: u64 = 1 << 20;

/// Rewrites a short body that is at hand. The transcoder comes back where the
/// body must be rewritten as it is sent; then its length is unknown.
pub fn apply(mut transcoder: Transcoder, reply: &mut Reply) -> Option<Transcoder> {
    if matches!(reply.body, Body::Empty) {
        return None;
    }
    if let Some(bytes) = at_hand(&reply.body) {
        let mut text = transcoder.push(&bytes);
        text.extend_from_slice(transcoder.finish());
        reply.head.content_length = Some(text.len() as u64);
        reply.body = Body::bytes(text);
        return None;
    }
    reply.head.content_length = None;
    reply.head.form.accepts_ranges = false;
    Some(transcoder)
}

/// A short body in one piece.
fn at_hand(body: &Body) -> Option<Vec<u8>> {
    let segments = match body {
        Body::Stored { start, end, .. } if end - start <= MAX_BYTES_AT_HAND => {
            body.part(0, end - start)
        }
        Body::Segments(segments) => {
            let length: u64 = segments.iter().map(Segment::length).sum();
            if length > MAX_BYTES_AT_HAND {
                return None;
            }
            body.part(0, length)
        }
        _ => return None,
    };
    let mut bytes = Vec::new();
    for segment in segments {
        match segment {
            Segment::Memory(piece) => bytes.extend_from_slice(&piece),
            Segment::File {
                file,
                offset,
                length,
            } => {
                let start = bytes.len();
                bytes.resize(start + usize::try_from(length).ok()?, 0);
                file.read_exact_at(bytes.get_mut(start..)?, offset).ok()?;
            }
        }
    }
    Some(bytes)
}

/// The charset that a Content-Type names.
pub fn of_content_type(content_type: &[u8]) -> Option<&[u8]> {
    content_type
        .split(|&byte| byte == b';')
        .skip(1)
        .find_map(|parameter| {
            let (name, value) = parameter.trim_ascii().split_at_checked(b"charset=".len())?;
            name.eq_ignore_ascii_case(b"charset=").then(|| {
                let bare = value
                    .strip_prefix(b"\"")
                    .and_then(|value| value.strip_suffix(b"\""));
                bare.unwrap_or(value)
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_charset_of_a_content_type_is_found() {
        for (content_type, wanted) in [
            ("text/html", None),
            ("text/html; charset=utf-8", Some("utf-8")),
            ("text/html;a=b; CHARSET=\"koi8-r\"", Some("koi8-r")),
            ("text/html; charse", None),
        ] {
            let found = of_content_type(content_type.as_bytes());
            assert_eq!(found, wanted.map(str::as_bytes), "{content_type}");
        }
    }
}
