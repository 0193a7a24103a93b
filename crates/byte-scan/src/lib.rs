//! Finding the end of a run of bytes, eight at a time. The runs of a message head are
//! short: a vectorised search would hardly have begun when it ends.
//!
//! A caller describes the wanted bytes by a function that marks bytes of a word: the highest
//! bit of a wanted byte is set. The functions below make such marks.

/// The highest bit of each byte of a word, which is set if the byte is wanted.
pub const MARKS: u64 = 0x80 * EACH;
const EACH: u64 = 0x0101_0101_0101_0101;

/// Returns the position of the first byte at or after `from` for which `marks` is true. Marks
/// above the first one in a word may be wrong, those below it must be right.
#[inline(always)]
pub fn find(bytes: &[u8], from: usize, mut marks: impl FnMut(u64) -> u64) -> Option<usize> {
    let mut rest = bytes.get(from..)?;
    while let Some((word, after)) = rest.split_first_chunk::<8>() {
        if let Some(at) = find_in(*word, &mut marks) {
            return Some(bytes.len() - rest.len() + at);
        }
        rest = after;
    }
    let len = rest.len();
    if len == 0 {
        return None;
    }
    // The last word may have bytes from before it; those are shifted out.
    let last = match bytes.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last) >> (64 - 8 * len),
        None => short_word(rest),
    };
    let at = first_of(marks(last) & MARKS);
    (at < len).then_some(bytes.len() - len + at)
}

/// Returns the position of the first marked byte within the whole words at the start.
#[inline(always)]
pub fn find_in_words(bytes: &[u8], marks: impl Fn(u64) -> u64) -> Option<usize> {
    let mut words = bytes.as_chunks::<8>().0.iter().enumerate();
    words.find_map(|(nth, word)| find_in(*word, &marks).map(|at| nth * 8 + at))
}

#[inline(always)]
fn find_in(word: [u8; 8], mut marks: impl FnMut(u64) -> u64) -> Option<usize> {
    let found = marks(u64::from_le_bytes(word)) & MARKS;
    (found != 0).then(|| first_of(found))
}

/// Returns the position of the first marked byte of a word; 8 if none is.
#[inline(always)]
fn first_of(marked: u64) -> usize {
    marked.trailing_zeros() as usize / 8
}

/// One to seven bytes as a word, with zeros above them. Pieces that overlap agree where
/// they do.
#[cold]
fn short_word(bytes: &[u8]) -> u64 {
    let placed = |at: usize, piece: u64| piece << (8 * at);
    let len = bytes.len();
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            let piece = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
            piece(first) | placed(len - 4, piece(last))
        }
        _ => {
            let byte = |at: usize| placed(at, u64::from(bytes[at]));
            byte(0) | byte(len / 2) | byte(len - 1)
        }
    }
}

/// Like [`find`], for texts that are often long: `is` decides about single bytes as `marks`
/// does about words.
#[inline(always)]
pub fn find_far(
    bytes: &[u8],
    mut from: usize,
    is: impl Fn(u8) -> bool,
    marks: impl Fn(u64) -> u64,
) -> Option<usize> {
    const MANY: usize = 32;
    let mut rest = bytes.get(from..)?;
    while let Some((chunk, after)) = rest.split_first_chunk::<MANY>() {
        // Without a way out of the inner loop, all bytes of a chunk are looked at together.
        if chunk.iter().fold(false, |found, &byte| found | is(byte)) {
            return find_in_words(chunk, marks).map(|at| from + at);
        }
        from += MANY;
        rest = after;
    }
    find(bytes, from, marks)
}

/// Marks bytes that are less than `LIMIT`, which is ASCII.
#[inline]
pub fn below<const LIMIT: u8>(word: u64) -> u64 {
    word.wrapping_sub(EACH * LIMIT as u64) & !word
}

/// Marks bytes that are `BYTE`.
#[inline]
pub fn equal<const BYTE: u8>(word: u64) -> u64 {
    below::<1>(word ^ (EACH * BYTE as u64))
}

/// Marks bytes that are `/` or `.` behind a `/`. `after` holds the mark of a `/` at the end
/// of the word before.
#[inline]
pub fn dotted(word: u64, after: &mut u64) -> u64 {
    // The two differ in their lowest bit; without it no byte beside one is taken for one.
    let either = equal::<b'/'>(word | EACH) & MARKS;
    let slashes = either & (word << 7);
    let behind = slashes << 8 | *after;
    *after = slashes >> 56;
    either & behind
}

/// Marks bytes that are ASCII letters, exactly.
#[inline]
pub fn letter(word: u64) -> u64 {
    within::<b'a', b'z'>(word | (0x20 * EACH))
}

/// Marks bytes from `FIRST` to `LAST`, which are ASCII, exactly.
#[inline]
pub fn within<const FIRST: u8, const LAST: u8>(word: u64) -> u64 {
    let low = word & !MARKS;
    let at_least_first = low + EACH * (0x80 - FIRST as u64);
    let above_last = low + EACH * (0x7f - LAST as u64);
    at_least_first & !above_last & !word
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn exact_marks_are_right_for_every_byte_beside_every_other() {
        for one in 0..=255u8 {
            for other in 0..=255u8 {
                let bytes = [one, other, b'x', other, one, 0, 0xff, one];
                let word = u64::from_le_bytes(bytes);
                let expected = |is: fn(&u8) -> bool| bytes.map(|byte| is(&byte));
                let marked = |marks: u64| marks.to_le_bytes().map(|byte| byte & 0x80 != 0);
                assert_eq!(
                    marked(letter(word)),
                    expected(u8::is_ascii_alphabetic),
                    "{bytes:?}"
                );
                assert_eq!(
                    marked(within::<b'-', b'9'>(word)),
                    expected(|byte| (b'-'..=b'9').contains(byte)),
                    "{bytes:?}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn the_first_byte_is_found_wherever_it_is(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let first = |is: fn(u8) -> bool| bytes.iter().position(|&byte| is(byte));
            prop_assert_eq!(find(&bytes, 0, below::<0x21>), first(|byte| byte <= b' '));
            prop_assert_eq!(
                find_far(&bytes, 0, |byte| byte == 3, equal::<3>),
                first(|byte| byte == 3)
            );
            prop_assert_eq!(find(&bytes, 0, equal::<0x7f>), first(|byte| byte == 0x7f));
            prop_assert_eq!(find(&bytes, 0, |word| !letter(word)), first(|byte| !byte.is_ascii_alphabetic()));
        }
    }
}
