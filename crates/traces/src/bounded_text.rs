//! Text of a bounded length: a client's bytes may be long and need not be text.

/// Longer values are cut. Targets and user agents of real visitors fit.
pub const MAX_VALUE_BYTES: usize = 2048;

/// `bytes` as text of at most [`MAX_VALUE_BYTES`]; bytes that are no UTF-8 become U+FFFD, as
/// strings of protobuf must be text.
pub fn bounded(bytes: &[u8]) -> String {
    let bytes = bytes.get(..MAX_VALUE_BYTES).unwrap_or(bytes);
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        if text.len() >= MAX_VALUE_BYTES {
            break;
        }
    }
    let mut end = MAX_VALUE_BYTES.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_sent_becomes_text_of_a_bounded_length() {
        for (bytes, wanted) in [
            (&b""[..], String::new()),
            (b"/a?b=c", "/a?b=c".to_owned()),
            ("é".as_bytes(), "é".to_owned()),
            (b"a\xFFb", "a\u{FFFD}b".to_owned()),
            (&[b'x'; 9000], "x".repeat(MAX_VALUE_BYTES)),
        ] {
            assert_eq!(bounded(bytes), wanted);
        }
        // Each of these bytes becomes three.
        assert!(bounded(&[0xFF; 9000]).len() <= MAX_VALUE_BYTES);
        assert!(bounded("é".repeat(5000).as_bytes()).len() <= MAX_VALUE_BYTES);
    }
}
