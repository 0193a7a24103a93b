//! Integers and strings of the protocol, taken from the front of a payload.
//!
//! Each function takes what it reads from `bytes`, or returns `None` where the payload ends too
//! early.

pub(crate) fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

pub(crate) fn integer<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    take(bytes, N)?.try_into().ok()
}

pub(crate) fn u8(bytes: &mut &[u8]) -> Option<u8> {
    integer::<1>(bytes).map(|[byte]| byte)
}

pub(crate) fn u16(bytes: &mut &[u8]) -> Option<u16> {
    integer(bytes).map(u16::from_le_bytes)
}

pub(crate) fn u32(bytes: &mut &[u8]) -> Option<u32> {
    integer(bytes).map(u32::from_le_bytes)
}

/// An integer of one to nine bytes. `None` also for the bytes that stand for NULL and for an error.
pub(crate) fn length(bytes: &mut &[u8]) -> Option<u64> {
    match u8(bytes)? {
        small @ 0..=0xfa => Some(u64::from(small)),
        0xfc => u16(bytes).map(u64::from),
        0xfd => integer::<3>(bytes).map(|[a, b, c]| u64::from(u32::from_le_bytes([a, b, c, 0]))),
        0xfe => integer(bytes).map(u64::from_le_bytes),
        _ => None,
    }
}

pub(crate) fn string<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let count = length(bytes)?;
    take(bytes, usize::try_from(count).ok()?)
}

/// A string up to its zero byte.
pub(crate) fn zero_ended<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = take(bytes, end)?;
    take(bytes, 1)?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_one_to_nine_bytes() {
        for (bytes, value) in [
            (&[0xfa][..], Some(0xfa)),
            (&[0xfb], None),
            (&[0xfc, 1, 2], Some(0x0201)),
            (&[0xfd, 1, 2, 3], Some(0x03_0201)),
            (&[0xfe, 1, 0, 0, 0, 0, 0, 0, 1], Some(0x0100_0000_0000_0001)),
            (&[0xfe, 1, 0, 0], None),
            (&[0xff], None),
            (&[], None),
        ] {
            assert_eq!(length(&mut &bytes[..]), value, "{bytes:?}");
        }
    }

    #[test]
    fn strings_end_with_their_length_or_a_zero() {
        let mut bytes = &b"\x03abcde\0f"[..];
        assert_eq!(string(&mut bytes), Some(&b"abc"[..]));
        assert_eq!(zero_ended(&mut bytes), Some(&b"de"[..]));
        assert_eq!((string(&mut bytes), zero_ended(&mut bytes)), (None, None));
    }
}
