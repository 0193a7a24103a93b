//! A set of field names with a quick look-up: every field of every response is looked up in
//! one.

/// Names of fields. Most names that are looked up have a length that none of these has, so that
/// the length is compared first.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FieldNames {
    names: Vec<Box<[u8]>>,
    /// A bit for each length; lengths above 62 share the last.
    lengths: u64,
}

impl FieldNames {
    /// Is `name`, in any case, one of them?
    #[inline]
    pub fn has(&self, name: &[u8]) -> bool {
        self.lengths & length_bit(name) != 0
            && self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }
}

#[inline]
fn length_bit(name: &[u8]) -> u64 {
    1 << name.len().min(63)
}

impl FromIterator<Box<[u8]>> for FieldNames {
    fn from_iter<T: IntoIterator<Item = Box<[u8]>>>(names: T) -> Self {
        let names: Vec<Box<[u8]>> = names.into_iter().collect();
        FieldNames {
            lengths: names.iter().fold(0, |bits, name| bits | length_bit(name)),
            names,
        }
    }
}

impl std::fmt::Debug for FieldNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.names.fmt(f)
    }
}
