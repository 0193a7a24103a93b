//! Excerpts of a peer's bytes, for error messages.

use std::fmt;

/// A short piece of the bytes sent, for the log. Shown with control characters, quotes
/// and bytes above 0x7E escaped, so that a peer cannot write log lines.
#[derive(Clone, PartialEq, Eq)]
pub struct Excerpt(Box<[u8]>);

/// Enough to recognise a line or a name; log lines stay short.
const EXCERPT_BYTES: usize = 64;

impl Excerpt {
    /// The beginning of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        let end = bytes.len().min(EXCERPT_BYTES);
        Excerpt(bytes.get(..end).unwrap_or_default().into())
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in &self.0 {
            match byte {
                b'"' | b'\\' | 0..=0x1f | 0x7f.. => write!(f, "\\x{byte:02X}")?,
                _ => write!(f, "{}", byte as char)?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_short_and_writes_no_log_lines() {
        for (bytes, shown) in [
            (&b"X-A: b"[..], "X-A: b"),
            (b"a\"b\\c", r"a\x22b\x5Cc"),
            (b"a\r\nb\0", r"a\x0D\x0Ab\x00"),
            (b"\x7f\xc3\xa9", r"\x7F\xC3\xA9"),
            (b"", ""),
        ] {
            assert_eq!(Excerpt::of(bytes).to_string(), shown);
            assert_eq!(format!("{:?}", Excerpt::of(bytes)), format!("\"{shown}\""));
        }
        let long = Excerpt::of(&[b'x'; 1000]);
        assert_eq!(long.to_string(), "x".repeat(EXCERPT_BYTES));
    }
}
