//! Numbers as decimal text. A head and a line of the log have a handful of short ones
//! each; these are written without a call, and without a branch on their length. Numbers go in,
//! and their digits come out at the end of a buffer.

/// Numbers below this have up to eight digits, one for each byte of a word.
const SHORT: u64 = 100_000_000;
const WORD_BYTES: usize = size_of::<u64>();

/// Appends `number`.
#[inline]
pub fn put(number: u64, out: &mut Vec<u8>) {
    if number >= SHORT {
        return put_long(number, out);
    }
    let (digits, zeros) = padded(number);
    // All bytes of the word, then without those that do not count: a length that the
    // compiler sees is copied without a call.
    out.extend_from_slice(&(digits >> (8 * zeros)).to_le_bytes());
    out.truncate(out.len() - zeros);
}

/// Appends `number` and the end of a line of HTTP/1.
#[inline]
pub fn put_line_end(number: u64, out: &mut Vec<u8>) {
    const LINE_END: [u8; 2] = *b"\r\n";
    if number >= SHORT {
        put_long(number, out);
        return out.extend_from_slice(&LINE_END);
    }
    let (digits, zeros) = padded(number);
    let line_end = u128::from(u16::from_le_bytes(LINE_END)) << u64::BITS;
    let text = (u128::from(digits) | line_end) >> (8 * zeros);
    let end = out.len() + WORD_BYTES + LINE_END.len() - zeros;
    out.extend_from_slice(&text.to_le_bytes());
    out.truncate(end);
}

/// Appends milliseconds as seconds: `1.234`.
pub fn put_seconds(milliseconds: u64, out: &mut Vec<u8>) {
    put(milliseconds / 1000, out);
    let thousandths = milliseconds % 1000;
    out.push(b'.');
    for divisor in [100, 10, 1] {
        out.push(b'0' + u8::try_from(thousandths / divisor % 10).unwrap_or(0));
    }
}

/// Eight digits of a short number as text, the first in the lowest byte, and how many of them
/// are zeros that are not shown.
#[inline]
fn padded(number: u64) -> (u64, usize) {
    let digits = digits(number);
    // The last digit is shown also where it is a zero.
    let zeros = (digits | (1 << 56)).trailing_zeros() as usize / 8;
    (digits | u64::from_le_bytes([b'0'; WORD_BYTES]), zeros)
}

#[cold]
fn put_long(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// The eight digits of a short number, the first in the lowest byte: divided in two, in
/// four and in eight at once, each time by multiplying with the rounded-up reciprocal.
#[inline]
fn digits(number: u64) -> u64 {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 5243) >> 19) & 0x0000_007f_0000_007f;
    let pairs = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((pairs - tens * 10) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: u64) -> String {
        let mut out = b"x".to_vec();
        put(number, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_written_as_the_standard_library_does() {
        let around_powers = (0..20).flat_map(|power| {
            let power = 10_u64.pow(power);
            [power - 1, power, power + 1]
        });
        let pairs = (0..10_000).flat_map(|half| [half, half * 10_000, half * 10_001]);
        for number in around_powers.chain(pairs).chain([u64::MAX]) {
            assert_eq!(text(number), format!("x{number}"));
            let mut line = b"x".to_vec();
            put_line_end(number, &mut line);
            assert_eq!(line, format!("x{number}\r\n").as_bytes());
        }
    }
}
