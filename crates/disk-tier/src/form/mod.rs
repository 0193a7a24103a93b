//! The form on disk, as it could be written on paper: little-endian numbers at fixed places, no memory of the program.
//! Pure: bytes in, values out. Whatever the bytes are, reading them gives a value or nothing.

pub(crate) mod footer;
pub(crate) mod journal;
pub(crate) mod record;
pub(crate) mod segment;
#[cfg(test)]
mod tests;

/// The number of this form. Files of another form are skipped; each change of a layout takes the next number.
pub(crate) const FORM: u16 = 2;

/// Records, headers and units of the journal lie at multiples of this.
pub(crate) const UNIT: usize = 64;

/// Writes the check sum of all but the first four bytes into these.
pub(crate) fn seal(bytes: &mut [u8]) {
    if let Some((sum, rest)) = bytes.split_first_chunk_mut::<4>() {
        *sum = crc32fast::hash(rest).to_le_bytes();
    }
}

/// Whether the check sum in the first four bytes is that of the others.
pub(crate) fn is_sealed(bytes: &[u8]) -> bool {
    bytes
        .split_first_chunk::<4>()
        .is_some_and(|(sum, rest)| u32::from_le_bytes(*sum) == crc32fast::hash(rest))
}

/// Bytes up to the next multiple of [`UNIT`].
pub(crate) fn padded(len: usize) -> usize {
    len.next_multiple_of(UNIT)
}
