//! Integers with a prefix (RFC 7541 §5.1).

use super::HpackError;

/// Bytes behind the prefix, at most: 28 bits hold any index or length that could be right,
/// and nothing overflows.
const MAX_CONTINUATION_BYTES: usize = 4;

/// Reads the integer whose prefix is the low `prefix_bits` of `first`; `rest` begins behind
/// that byte, and moves on.
///
/// # Errors
/// [`HpackError::Truncated`], [`HpackError::IntegerTooLarge`]
#[inline]
pub fn read(first: u8, prefix_bits: u32, rest: &mut &[u8]) -> Result<u32, HpackError> {
    let mask = (1u32 << prefix_bits) - 1;
    let prefix = u32::from(first) & mask;
    if prefix < mask {
        return Ok(prefix);
    }
    let mut value = prefix;
    for nth in 0..MAX_CONTINUATION_BYTES {
        let (&byte, after) = rest.split_first().ok_or(HpackError::Truncated)?;
        *rest = after;
        value += u32::from(byte & 0x7f) << (7 * nth);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(HpackError::IntegerTooLarge)
}

/// Writes `value` with the bits of `pattern` above its prefix.
#[inline]
pub fn write(out: &mut Vec<u8>, pattern: u8, prefix_bits: u32, value: usize) {
    let mask = (1usize << prefix_bits) - 1;
    if value < mask {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | mask as u8);
    let mut left = value - mask;
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_whole(bytes: &[u8], prefix_bits: u32) -> Result<u32, HpackError> {
        let (first, mut rest) = bytes.split_first().unwrap();
        let value = read(*first, prefix_bits, &mut rest)?;
        assert!(rest.is_empty());
        Ok(value)
    }

    #[test]
    fn the_examples_of_the_standard_are_read_and_written() {
        // RFC 7541 C.1.
        for (value, prefix_bits, bytes) in [
            (10, 5, &[0b01010][..]),
            (1337, 5, &[0b11111, 0b10011010, 0b00001010]),
            (42, 8, &[42]),
        ] {
            assert_eq!(read_whole(bytes, prefix_bits), Ok(value));
            let mut out = Vec::new();
            write(&mut out, 0, prefix_bits, value as usize);
            assert_eq!(out, bytes);
        }
    }

    #[test]
    fn integers_are_bounded() {
        assert_eq!(read_whole(&[0x1f], 5), Err(HpackError::Truncated));
        assert_eq!(read_whole(&[0x1f, 0x80], 5), Err(HpackError::Truncated));
        let most = [0x1f, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(read_whole(&most, 5), Ok(31 + (1 << 28) - 1));
        let more = [0x1f, 0xff, 0xff, 0xff, 0xff, 0];
        let (first, mut rest) = more.split_first().unwrap();
        assert_eq!(read(*first, 5, &mut rest), Err(HpackError::IntegerTooLarge));
    }

    #[test]
    fn any_integer_is_read_as_it_was_written() {
        for prefix_bits in 4..=8 {
            for value in (0..2000).chain([16_383, 16_384, 65_536, 1 << 24, (1 << 28) - 1]) {
                let mut out = Vec::new();
                write(&mut out, 0, prefix_bits, value);
                assert_eq!(read_whole(&out, prefix_bits), Ok(value as u32));
            }
        }
    }
}
