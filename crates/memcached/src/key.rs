//! Keys: bytes that must not stand in a command line are escaped as in a URI,
//! so that no key can hold a second command.

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// The key as nginx escapes it: control characters, spaces and `%` become
/// `%XX`. Applications that fill memcached for nginx escape the same.
pub fn escape_key(key: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(key.len());
    for &byte in key {
        if byte <= b' ' || byte == b'%' {
            escaped.push(b'%');
            escaped.push(HEX[usize::from(byte >> 4)]);
            escaped.push(HEX[usize::from(byte & 15)]);
        } else {
            escaped.push(byte);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_end_or_split_a_command_is_escaped() {
        for (key, wanted) in [
            (&b"/page?a=b"[..], &b"/page?a=b"[..]),
            (b"/a b", b"/a%20b"),
            (b"/50%", b"/50%25"),
            (b"a\r\nset b 0 0 1\r\n", b"a%0D%0Aset%20b%200%200%201%0D%0A"),
            (b"\0\x1f\x7f\xff", b"%00%1F\x7f\xff"),
            (b"", b""),
        ] {
            assert_eq!(escape_key(key), wanted);
        }
    }
}
