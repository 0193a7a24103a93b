//! Comparing field names, which are the same in any case (RFC 9110 §5.1). Each
//! request asks for a dozen names, so this goes by eight bytes at a time.

/// Whether two names are the same but for the case of ASCII letters.
///
/// ```
/// assert!(http1::same_name(b"Content-Length", b"content-length"));
/// assert!(!http1::same_name(b"Content-Length", b"content_length"));
/// ```
#[inline]
pub fn same_name(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && same_of_length(one, other)
}

fn same_of_length(one: &[u8], other: &[u8]) -> bool {
    let (Some(one_end), Some(other_end)) = (one.last_chunk::<8>(), other.last_chunk::<8>()) else {
        return one.eq_ignore_ascii_case(other);
    };
    // The last word may have bytes of the one before it again.
    let words = one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0);
    same_word(one_end, other_end) && words.into_iter().all(|(one, other)| same_word(one, other))
}

#[inline]
fn same_word(one: &[u8; 8], other: &[u8; 8]) -> bool {
    lower(u64::from_le_bytes(*one)) == lower(u64::from_le_bytes(*other))
}

/// Eight bytes with their ASCII capitals made small.
#[inline]
fn lower(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // The highest bit of each byte says: at least `A`, more than `Z`, no ASCII.
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
