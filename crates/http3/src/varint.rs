//! Integers of variable length (RFC 9000 §16).

/// The largest one.
pub const MAX: u64 = (1 << 62) - 1;

/// Reads one from the front of `input`; also how many bytes it had. `None`: there are too few.
pub fn read(input: &[u8]) -> Option<(u64, usize)> {
    let first = *input.first()?;
    let length = 1 << (first >> 6);
    let bytes = input.get(..length)?;
    let start = u64::from(first & 0x3f);
    let fold = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
    Some((bytes[1..].iter().fold(start, fold), length))
}

/// Appends one, in as few bytes as it needs. Beyond [`MAX`] it is cut to that.
pub fn write(out: &mut Vec<u8>, value: u64) {
    let value = value.min(MAX);
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard_are_read() {
        // RFC 9000 §A.1.
        for (bytes, value) in [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            assert_eq!(read(bytes), Some((value, bytes.len())));
            assert_eq!(read(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn any_integer_is_read_as_it_was_written() {
        for value in [0, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, MAX] {
            let mut out = Vec::new();
            write(&mut out, value);
            assert_eq!(read(&out), Some((value, out.len())));
        }
    }
}
