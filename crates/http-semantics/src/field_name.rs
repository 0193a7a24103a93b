//! Comparing field names, which are the same in any case (RFC 9110 §5.1). Each
//! request asks for a dozen names, so this goes by eight bytes at a time.

use byte_scan as scan;

/// Returns whether two names are the same but for the case of ASCII letters.
///
/// ```
/// assert!(http_semantics::same_name(b"Content-Length", b"content-length"));
/// assert!(!http_semantics::same_name(b"Content-Length", b"content_length"));
/// ```
#[inline]
pub fn same_name(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && same_of_length(one, other)
}

#[inline]
fn same_of_length(one: &[u8], other: &[u8]) -> bool {
    let (Some(one_end), Some(other_end)) = (one.last_chunk::<8>(), other.last_chunk::<8>()) else {
        return match (short_word(one), short_word(other)) {
            (Some(one), Some(other)) => same_word(one, other),
            _ => one.eq_ignore_ascii_case(other),
        };
    };
    let same = |one: &[u8; 8], other: &[u8; 8]| {
        same_word(u64::from_le_bytes(*one), u64::from_le_bytes(*other))
    };
    // The last word may have bytes of the one before it again.
    let words = one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0);
    same(one_end, other_end) && words.into_iter().all(|(one, other)| same(one, other))
}

/// Four to eight bytes in one word; some of them twice.
#[inline]
fn short_word(bytes: &[u8]) -> Option<u64> {
    let (first, last) = (bytes.first_chunk::<4>()?, bytes.last_chunk::<4>()?);
    Some(u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last)))
}

/// Returns whether `variable` (lower case, `_` for `-`) is how variables spell the name
/// `field`.
///
/// ```
/// assert!(http_semantics::is_spelt(b"content_length", b"Content-Length"));
/// assert!(http_semantics::is_spelt(b"content_length", b"content_length"));
/// assert!(!http_semantics::is_spelt(b"content-length", b"Content-Length"));
/// ```
#[inline]
pub fn is_spelt(variable: &[u8], field: &[u8]) -> bool {
    if variable.len() != field.len() {
        return false;
    }
    let (Some(variable_end), Some(field_end)) =
        (variable.last_chunk::<8>(), field.last_chunk::<8>())
    else {
        return match (short_word(variable), short_word(field)) {
            (Some(variable), Some(field)) => variable == spelling(field),
            _ => variable
                .iter()
                .zip(field)
                .all(|(&wanted, &byte)| u64::from(wanted) == spelling(u64::from(byte))),
        };
    };
    let same = |one: &[u8; 8], other: &[u8; 8]| {
        u64::from_le_bytes(*one) == spelling(u64::from_le_bytes(*other))
    };
    let (words, _) = variable.as_chunks::<8>();
    let mut words = words.iter().zip(field.as_chunks::<8>().0);
    same(variable_end, field_end) && words.all(|(one, other)| same(one, other))
}

/// Eight bytes of a name as a variable spells them.
#[inline]
fn spelling(word: u64) -> u64 {
    let dashes = scan::within::<b'-', b'-'>(word) & scan::MARKS;
    lower(word) ^ ((dashes >> 7) * u64::from(b'-' ^ b'_'))
}

/// Returns whether two words of names are the same: letters may differ in the bit for
/// capitals, and no other byte may differ.
#[inline]
fn same_word(one: u64, other: u64) -> bool {
    let different = one ^ other;
    different == 0 || different & !((scan::letter(one) & scan::MARKS) >> 2) == 0
}

/// Eight bytes with their ASCII capitals made small.
#[inline]
fn lower(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // The highest bit of each byte of these words means: at least `A`, more than `Z`, not
    // ASCII.
    let low = word & (0x7f * EACH);
    let at_least_a = low + (0x80 - b'A' as u64) * EACH;
    let above_z = low + (0x7f - b'Z' as u64) * EACH;
    let capitals = (at_least_a ^ above_z) & !word & (0x80 * EACH);
    word | (capitals >> 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_pair_of_bytes_is_compared_as_the_standard_library_does() {
        for one in 0..=255 {
            for other in 0..=255 {
                let (one, other): ([u8; 1], [u8; 1]) = ([one], [other]);
                let expected = one.eq_ignore_ascii_case(&other);
                assert_eq!(same_name(&one, &other), expected, "{one:?} {other:?}");
                // Within a word, between bytes that differ in nothing.
                let within = |byte: u8| [b'x', b'-', byte, 0xff, b'Z', 0, b'@', b'['];
                let within = (within(one[0]), within(other[0]));
                assert_eq!(same_name(&within.0, &within.1), expected);
            }
        }
    }

    proptest! {
        #[test]
        fn variables_spell_names_of_any_length(name in "[A-Za-z0-9_-]{0,24}", other in "[a-z_-]{0,24}") {
            let spelt = name.to_ascii_lowercase().replace('-', "_");
            prop_assert!(is_spelt(spelt.as_bytes(), name.as_bytes()));
            prop_assert_eq!(is_spelt(other.as_bytes(), name.as_bytes()), other == spelt);
        }

        #[test]
        fn names_of_any_length_are_compared_to_their_end(
            name in proptest::collection::vec(any::<u8>(), 0..40),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            other_case in any::<bool>(),
        ) {
            let mut changed = match other_case {
                true => name.to_ascii_uppercase(),
                false => name.clone(),
            };
            prop_assert!(same_name(&name, &changed));
            if !changed.is_empty() {
                let at = at.index(changed.len());
                changed[at] = byte;
            }
            prop_assert_eq!(same_name(&name, &changed), name.eq_ignore_ascii_case(&changed));
            changed.push(byte);
            prop_assert!(!same_name(&name, &changed));
        }
    }
}
