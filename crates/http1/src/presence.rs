//! Which fields a head may have: one bit for each of its names, so that asking
//! for a field that is not there (most questions) costs a test of a bit and no
//! walk through the list. Two names may share a bit; a set bit says "look".

/// Noted while a head is parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Presence(u64);

impl Presence {
    /// Notes a field called `name`.
    #[inline]
    pub fn note(&mut self, name: &[u8]) {
        self.0 |= bit(name);
    }

    /// False where no field of this name was noted, in whatever case.
    #[inline]
    pub fn may_have(self, name: &[u8]) -> bool {
        self.0 & bit(name) != 0
    }
}

/// Told by length, first and last letter, which hardly two of the usual names
/// have in common.
#[inline]
fn bit(name: &[u8]) -> u64 {
    let letter = |byte: Option<&u8>| usize::from(byte.copied().unwrap_or(0) | 0x20);
    let place = name.len() + letter(name.first()) * 5 + letter(name.last()) * 11;
    1 << (place % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_any_case_and_most_others_are_not() {
        let mut presence = Presence::default();
        for name in ["Host", "user-agent", "ACCEPT", ""] {
            presence.note(name.as_bytes());
        }
        for (name, wanted) in [
            ("host", true),
            ("HOST", true),
            ("User-Agent", true),
            ("accept", true),
            ("", true),
            ("cookie", false),
            ("range", false),
            ("if-none-match", false),
            ("authorization", false),
        ] {
            assert_eq!(presence.may_have(name.as_bytes()), wanted, "{name}");
        }
    }
}
