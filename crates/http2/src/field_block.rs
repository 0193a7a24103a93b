//! The fields of a response or of trailers, encoded for HTTP/2. A block depends on no
//! connection: it can be kept beside a stored response, and sent together with others.
//!
//! Nothing can be smuggled into a response here: a name or value that HTTP/2 does not allow
//! is not written, and the caller gets an error.

use crate::hpack;

/// Encoded fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldBlock {
    bytes: Vec<u8>,
}

/// A field that cannot be sent. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The name is no field name (RFC 9110 §5.1), or the value has CR, LF or NUL in it.
    #[error("response field with a line break, NUL or an invalid name")]
    Invalid,
    /// A field that speaks of a connection of HTTP/1, such as `Connection` (RFC 9113
    /// §8.2.2). A proxy removes such fields from a response.
    #[error("response field that HTTP/2 does not have")]
    ConnectionSpecific,
}

/// Field names are short; a longer one is lowered in memory of its own.
const NAME_BYTES: usize = 64;

impl FieldBlock {
    /// Creates a block without fields.
    pub const fn new() -> Self {
        FieldBlock { bytes: Vec::new() }
    }

    /// Adds a field; its name may be in any case. White space around the value is left out
    /// (RFC 9113 §8.2.1).
    ///
    /// # Errors
    /// [`FieldError`]; then nothing was added.
    pub fn put(
        &mut self,
        name: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<(), FieldError> {
        with_sendable(name.as_ref(), value.as_ref(), |name, value| {
            hpack::put_field(&mut self.bytes, name, value);
        })
    }

    /// Adds fields that are encoded already.
    pub(crate) fn append(&mut self, encoded: &[u8]) {
        self.bytes.extend_from_slice(encoded);
    }

    /// Takes all fields out, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Returns how many bytes it has on the wire.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether it has no fields.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the encoded bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Passes a field to `put` in the form of HTTP/2 and HTTP/3, its name in lower case and without
/// white space around its value, if they may carry the field.
///
/// # Errors
/// [`FieldError`]; then `put` was not called.
pub fn with_sendable(
    name: &[u8],
    value: &[u8],
    put: impl FnOnce(&[u8], &[u8]),
) -> Result<(), FieldError> {
    let value = value.trim_ascii();
    if memchr::memchr3(b'\r', b'\n', 0, value).is_some() {
        return Err(FieldError::Invalid);
    }
    let mut short = [0; NAME_BYTES];
    let long;
    let name = match short.get_mut(..name.len()) {
        Some(lower) => {
            lower.copy_from_slice(name);
            lower.make_ascii_lowercase();
            &*lower
        }
        None => {
            long = name.to_ascii_lowercase();
            &long
        }
    };
    if name.is_empty() || !name.iter().all(|&byte| is_name_byte(byte)) {
        return Err(FieldError::Invalid);
    }
    if is_connection_specific(name) {
        return Err(FieldError::ConnectionSpecific);
    }
    put(name, value);
    Ok(())
}

/// RFC 9113 §8.2.1; a colon only begins pseudo-fields.
fn is_name_byte(byte: u8) -> bool {
    matches!(byte, b'!'..=b'9' | b';'..=b'@' | b'['..=b'~')
}

/// RFC 9113 §8.2.2. The name is in lower case.
pub(crate) fn is_connection_specific(name: &[u8]) -> bool {
    matches!(
        name,
        b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_never_breaks_the_response() {
        let mut block = FieldBlock::new();
        for (name, value) in [
            ("Location", "/a\r\nSet-Cookie: b"),
            ("Location", "/a\nb"),
            ("Location", "/a\rb"),
            ("Location", "/a\0b"),
            ("A\r\nB", "c"),
            (":status", "200"),
            ("a:b", "c"),
            ("a b", "c"),
            ("\u{e9}", "c"),
            ("", "c"),
        ] {
            assert_eq!(
                block.put(name, value),
                Err(FieldError::Invalid),
                "{name:?} {value:?}"
            );
        }
        for name in ["Connection", "TRANSFER-ENCODING", "keep-alive", "Upgrade"] {
            assert_eq!(
                block.put(name, "x"),
                Err(FieldError::ConnectionSpecific),
                "{name}"
            );
        }
        assert!(block.is_empty());
    }

    #[test]
    fn names_are_lowered_and_values_trimmed() {
        let mut lower = FieldBlock::new();
        let long = "x".repeat(NAME_BYTES + 1);
        lower.put("x-cache", "HIT").unwrap();
        lower.put(&long, "").unwrap();
        let mut upper = FieldBlock::new();
        upper.put("X-Cache", " HIT\t").unwrap();
        upper.put(long.to_uppercase(), " ").unwrap();
        assert_eq!(lower, upper);
        assert_eq!(lower.len(), lower.as_bytes().len());
    }
}
