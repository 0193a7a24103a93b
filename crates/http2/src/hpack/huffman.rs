//! The Huffman code of RFC 7541 appendix B, both ways.
//!
//! The code is canonical: codes of one length follow each other in the order of their
//! symbols, and each length goes on where the one before it ended. So the lengths say
//! everything, and all tables are computed from them when this is compiled.
//!
//! Decoding looks at `LOOKUP_BITS` bits at once and finds one symbol or two, which is
//! all there is in usual text. Longer codes are found by their length.

use super::HpackError;

/// The length of each symbol's code in bits.
#[rustfmt::skip]
static LENGTHS: [u8; 256] = LENGTH_TABLE;
#[rustfmt::skip]
const LENGTH_TABLE: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

/// The longest code, and that of the end of a string, which is all ones.
const MAX_BITS: u32 = 30;
/// Looked at together: enough for two symbols of the shortest codes.
const LOOKUP_BITS: u32 = 10;

/// A symbol's code, in the low bits.
static CODES: [u32; 256] = CODE_TABLE.0;
/// The symbols in the order of their codes.
static SYMBOLS: [u8; 256] = CODE_TABLE.1;

const CODE_TABLE: ([u32; 256], [u8; 256]) = {
    let mut codes = [0; 256];
    let mut symbols = [0; 256];
    let (mut length, mut code, mut rank) = (1, 0, 0);
    while length <= MAX_BITS {
        let mut symbol = 0;
        while symbol < 256 {
            if LENGTH_TABLE[symbol] as u32 == length {
                codes[symbol] = code;
                symbols[rank] = symbol as u8;
                code += 1;
                rank += 1;
            }
            symbol += 1;
        }
        code <<= 1;
        length += 1;
    }
    (codes, symbols)
};

/// Codes of one length: where they end, in the [`MAX_BITS`] bits at the front of the input,
/// and the number to add to a code to find its place in [`SYMBOLS`].
#[derive(Clone, Copy)]
struct LengthClass {
    end: u32,
    rank: i32,
}

static CLASSES: [LengthClass; MAX_BITS as usize + 1] = {
    let mut classes = [LengthClass { end: 0, rank: 0 }; MAX_BITS as usize + 1];
    let (mut length, mut code, mut rank) = (1, 0u32, 0i32);
    while length <= MAX_BITS {
        let first = code;
        let first_rank = rank;
        let mut symbol = 0;
        while symbol < 256 {
            if LENGTH_TABLE[symbol] as u32 == length {
                code += 1;
                rank += 1;
            }
            symbol += 1;
        }
        classes[length as usize] = LengthClass {
            end: code << (MAX_BITS - length),
            rank: first_rank - first as i32,
        };
        code <<= 1;
        length += 1;
    }
    classes
};

/// The symbols that some bits at the front of the input begin with: one or two, or none if
/// the code is longer.
#[derive(Clone, Copy)]
struct Lookup {
    symbols: [u8; 2],
    count: u8,
    bits: u8,
}

static LOOKUPS: [Lookup; 1 << LOOKUP_BITS] = {
    let none = Lookup {
        symbols: [0; 2],
        count: 0,
        bits: 0,
    };
    let mut table = [none; 1 << LOOKUP_BITS];
    let mut first = 0;
    while first < 256 {
        let first_bits = LENGTH_TABLE[first] as u32;
        if first_bits <= LOOKUP_BITS {
            let prefix = CODE_TABLE.0[first] << (LOOKUP_BITS - first_bits);
            let one = Lookup {
                symbols: [first as u8, 0],
                count: 1,
                bits: first_bits as u8,
            };
            fill(&mut table, prefix, LOOKUP_BITS - first_bits, one);
            let mut second = 0;
            while second < 256 {
                let bits = first_bits + LENGTH_TABLE[second] as u32;
                if bits <= LOOKUP_BITS {
                    let two = Lookup {
                        symbols: [first as u8, second as u8],
                        count: 2,
                        bits: bits as u8,
                    };
                    let prefix = prefix | CODE_TABLE.0[second] << (LOOKUP_BITS - bits);
                    fill(&mut table, prefix, LOOKUP_BITS - bits, two);
                }
                second += 1;
            }
        }
        first += 1;
    }
    table
};

/// Sets all places that begin with `prefix`, whatever their last `free_bits` are.
const fn fill(table: &mut [Lookup], prefix: u32, free_bits: u32, lookup: Lookup) {
    let mut at = prefix as usize;
    let end = at + (1 << free_bits);
    while at < end {
        table[at] = lookup;
        at += 1;
    }
}

/// The input, of which up to 64 bits are in a word, the next one on top.
struct Bits<'a> {
    rest: &'a [u8],
    word: u64,
    count: u32,
}

impl Bits<'_> {
    /// Fills the word, as far as there is input.
    #[inline(always)]
    fn refill(&mut self) {
        if let Some(next) = self.rest.first_chunk::<8>() {
            // Bits that are there already are written again, as they are.
            self.word |= u64::from_be_bytes(*next) >> self.count;
            let bytes = (63 - self.count) / 8;
            self.rest = self.rest.get(bytes as usize..).unwrap_or_default();
            self.count += bytes * 8;
        } else {
            self.refill_slowly();
        }
    }

    fn refill_slowly(&mut self) {
        // Bits that the fast way wrote beyond `count` would be counted twice.
        self.word &= !(u64::MAX.checked_shr(self.count).unwrap_or(0));
        while self.count <= 56
            && let Some((&byte, rest)) = self.rest.split_first()
        {
            self.word |= u64::from(byte) << (56 - self.count);
            self.count += 8;
            self.rest = rest;
        }
    }

    #[inline(always)]
    fn drop(&mut self, bits: u32) {
        self.word <<= bits;
        self.count -= bits;
    }

    /// One symbol, which must be whole.
    fn take_symbol(&mut self) -> Option<u8> {
        let front = (self.word >> (64 - MAX_BITS)) as u32;
        let mut lengths = CLASSES.iter().zip(0u32..).skip(1);
        let (class, length) = lengths.find(|(class, _)| front < class.end)?;
        if length > self.count {
            return None;
        }
        self.drop(length);
        let code = front >> (MAX_BITS - length);
        let rank = i64::from(code) + i64::from(class.rank);
        SYMBOLS.get(usize::try_from(rank).ok()?).copied()
    }

    /// Returns whether the rest is padding: less than a byte, all ones.
    fn is_padding(&self) -> bool {
        self.count < 8 && self.word.leading_ones() >= self.count
    }
}

/// Decodes `input` and appends the text to `out`: at most eight bytes for five.
///
/// # Errors
/// [`HpackError::InvalidHuffman`]
pub fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    out.reserve(input.len() * 8 / 5 + 1);
    let mut bits = Bits {
        rest: input,
        word: 0,
        count: 0,
    };
    loop {
        bits.refill();
        if bits.count < MAX_BITS {
            break;
        }
        while bits.count >= LOOKUP_BITS {
            let lookup = &LOOKUPS[(bits.word >> (64 - LOOKUP_BITS)) as usize];
            match lookup.count {
                2 => out.extend_from_slice(&lookup.symbols),
                1 => out.push(lookup.symbols[0]),
                _ if bits.count < MAX_BITS => break,
                _ => out.push(bits.take_symbol().ok_or(HpackError::InvalidHuffman)?),
            }
            bits.drop(u32::from(lookup.bits));
        }
    }
    // The last bits, of which the padding may look like the beginning of a code.
    while !bits.is_padding() {
        out.push(bits.take_symbol().ok_or(HpackError::InvalidHuffman)?);
    }
    Ok(())
}

/// Returns how many bytes `text` has when it is encoded.
#[inline]
pub fn encoded_len(text: &[u8]) -> usize {
    let bits = |&byte: &u8| usize::from(LENGTHS[usize::from(byte)]);
    text.iter().map(bits).sum::<usize>().div_ceil(8)
}

/// Appends `text`, encoded.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    // Fewer than 32 bits wait in `word` before a code is added, so that 30 more fit.
    let (mut word, mut count) = (0u64, 0u32);
    for &byte in text {
        let length = u32::from(LENGTHS[usize::from(byte)]);
        word = word << length | u64::from(CODES[usize::from(byte)]);
        count += length;
        if count >= 32 {
            count -= 32;
            out.extend_from_slice(&((word >> count) as u32).to_be_bytes());
        }
    }
    while count >= 8 {
        count -= 8;
        out.push((word >> count) as u8);
    }
    if count > 0 {
        let padding = 0xff >> count;
        out.push((word << (8 - count)) as u8 | padding);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(input: &[u8]) -> Result<Vec<u8>, HpackError> {
        let mut out = Vec::new();
        decode(input, &mut out).map(|()| out)
    }

    #[test]
    fn codes_are_those_of_the_standard() {
        // A sample of each length of appendix B; the order of the rest follows.
        for (symbol, code, length) in [
            (b'0', 0x0, 5),
            (b't', 0x9, 5),
            (b' ', 0x14, 6),
            (b'u', 0x2d, 6),
            (b':', 0x5c, 7),
            (b'z', 0x7b, 7),
            (b'&', 0xf8, 8),
            (b'Z', 0xfd, 8),
            (b'!', 0x3f8, 10),
            (b'?', 0x3fc, 10),
            (b'\'', 0x7fa, 11),
            (b'#', 0xffa, 12),
            (0, 0x1ff8, 13),
            (b'~', 0x1ffd, 13),
            (b'^', 0x3ffc, 14),
            (b'{', 0x7ffe, 15),
            (b'\\', 0x7fff0, 19),
            (128, 0xfffe6, 20),
            (153, 0x1fffdc, 21),
            (129, 0x3fffd2, 22),
            (1, 0x7fffd8, 23),
            (9, 0xffffea, 24),
            (199, 0x1ffffec, 25),
            (192, 0x3ffffe0, 26),
            (203, 0x7ffffde, 27),
            (2, 0xfffffe2, 28),
            (249, 0xffffffe, 28),
            (b'\n', 0x3ffffffc, 30),
            (22, 0x3ffffffe, 30),
        ] {
            let at = usize::from(symbol);
            assert_eq!((CODES[at], LENGTHS[at]), (code, length), "{symbol}");
        }
        // With the end of a string, which is all ones, the code has no gap.
        let used: u64 = LENGTHS.iter().map(|&length| 1 << (30 - length)).sum();
        assert_eq!(used + 1, 1 << 30);
    }

    #[test]
    fn the_examples_of_the_standard_are_read_and_written() {
        // RFC 7541 C.4 and C.6.
        for (text, code) in [
            ("www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"),
            ("no-cache", "a8eb10649cbf"),
            ("custom-key", "25a849e95ba97d7f"),
            ("custom-value", "25a849e95bb8e8b4bf"),
            ("302", "6402"),
            ("private", "aec3771a4b"),
            (
                "Mon, 21 Oct 2013 20:13:21 GMT",
                "d07abe941054d444a8200595040b8166e082a62d1bff",
            ),
            (
                "https://www.example.com",
                "9d29ad171863c78f0b97c8e9ae82ae43d3",
            ),
            (
                "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
                "94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
            ),
        ] {
            let code: Vec<u8> = (0..code.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&code[at..at + 2], 16).unwrap())
                .collect();
            let mut out = Vec::new();
            encode(text.as_bytes(), &mut out);
            assert_eq!(out, code, "{text}");
            assert_eq!(encoded_len(text.as_bytes()), code.len());
            assert_eq!(decoded(&code), Ok(text.as_bytes().to_vec()));
        }
    }

    #[test]
    fn wrong_ends_are_refused() {
        for (input, what) in [
            (&[0x00, 0x00][..], "a symbol, then zeros as padding"),
            (&[0x07, 0xff], "eight bits and more of padding"),
            (&[0xff], "nothing but a byte of padding"),
            (&[0xff, 0xff, 0xff, 0xff], "the end of a string"),
            (
                &[0x07, 0xff, 0xff, 0xff, 0xff, 0xff],
                "that within a string",
            ),
            (&[0xfe], "a code that is not whole"),
            (&[0xff, 0xff, 0xff, 0xfe], "a long one that is not whole"),
        ] {
            assert_eq!(decoded(input), Err(HpackError::InvalidHuffman), "{what}");
        }
        assert_eq!(decoded(&[0x07]), Ok(b"0".to_vec()));
        assert_eq!(decoded(&[]), Ok(Vec::new()));
    }

    /// Bit by bit, as the standard describes it.
    fn decode_slowly(input: &[u8]) -> Result<Vec<u8>, HpackError> {
        let (mut out, mut code, mut length) = (Vec::new(), 0u32, 0u8);
        for bit in input
            .iter()
            .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1))
        {
            code = code << 1 | u32::from(bit);
            length += 1;
            let found = (0..256).find(|&symbol| (CODES[symbol], LENGTHS[symbol]) == (code, length));
            if let Some(symbol) = found {
                out.push(symbol as u8);
                (code, length) = (0, 0);
            }
            if length == 30 {
                return Err(HpackError::InvalidHuffman);
            }
        }
        let is_padding = length < 8 && code == (1 << length) - 1;
        is_padding.then_some(out).ok_or(HpackError::InvalidHuffman)
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_it_was_written(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut out = Vec::new();
            encode(&text, &mut out);
            prop_assert_eq!(encoded_len(&text), out.len());
            prop_assert_eq!(decoded(&out), Ok(text));
        }

        #[test]
        fn any_bytes_are_read_as_the_standard_says(input in proptest::collection::vec(
            prop_oneof![any::<u8>(), Just(0xffu8)], 0..40)) {
            prop_assert_eq!(decoded(&input), decode_slowly(&input));
        }

        #[test]
        fn usual_text_is_read_as_the_standard_says(text in "[ -~]{0,60}", cut in 0..50usize) {
            let mut out = Vec::new();
            encode(text.as_bytes(), &mut out);
            out.truncate(cut);
            prop_assert_eq!(decoded(&out), decode_slowly(&out));
        }
    }
}
