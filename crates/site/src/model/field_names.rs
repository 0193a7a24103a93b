//! A set of field names with a quick look-up: every field of every response is looked up in
//! one.

/// Names of fields. Most names that are looked up differ from all of these in length and first letter, so that
/// these are compared first.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FieldNames {
    names: Vec<Box<[u8]>>,
    /// A bit for each name, see [`bit`]; several may share one.
    bits: u64,
}

impl FieldNames {
    /// Is `name`, in any case, one of them?
    #[inline]
    pub fn has(&self, name: &[u8]) -> bool {
        self.bits & bit(name) != 0 && self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }
}

/// A bit for the length and the first letter of a name, whatever its case.
#[inline]
fn bit(name: &[u8]) -> u64 {
    let first = name.first().map_or(0, |letter| usize::from(letter | 0x20));
    1 << (name.len().wrapping_mul(17).wrapping_add(first) % 64)
}

impl FromIterator<Box<[u8]>> for FieldNames {
    fn from_iter<T: IntoIterator<Item = Box<[u8]>>>(names: T) -> Self {
        let names: Vec<Box<[u8]>> = names.into_iter().collect();
        FieldNames {
            bits: names.iter().fold(0, |bits, name| bits | bit(name)),
            names,
        }
    }
}

impl std::fmt::Debug for FieldNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.names.fmt(f)
    }
}
