//! Which fields a head may have: one bit for each of its names, so that asking
//! for a field that is not there (most questions) costs a test of a bit and no
//! walk through the list. Two names may share a bit; a set bit means "look".

/// Noted while a head is parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    once: u64,
    again: u64,
}

impl Presence {
    /// That of one field for each of `names`.
    pub const fn of(names: &[&[u8]]) -> Presence {
        let mut once = 0;
        let mut at = 0;
        while at < names.len() {
            once |= bit(names[at]);
            at += 1;
        }
        Presence { once, again: 0 }
    }

    /// Notes a field called `name`.
    #[inline]
    pub fn note(&mut self, name: &[u8]) {
        let bit = bit(name);
        self.again |= self.once & bit;
        self.once |= bit;
    }

    /// False if no field of this name was noted, in whatever case.
    #[inline]
    pub fn may_have(self, name: &[u8]) -> bool {
        self.once & bit(name) != 0
    }

    /// False if each field of `other` was noted once at most.
    #[inline]
    pub fn may_repeat(self, other: Presence) -> bool {
        self.again & other.once != 0
    }
}

/// Told by length, first and last letter, which hardly two of the usual names
/// have in common.
#[inline]
const fn bit(name: &[u8]) -> u64 {
    let index = name.len() + letter(name.first()) * 5 + letter(name.last()) * 11;
    1 << (index % 64)
}

#[inline]
const fn letter(byte: Option<&u8>) -> usize {
    match byte {
        Some(byte) => (*byte | 0x20) as usize,
        None => 0x20,
    }
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

    #[test]
    fn a_name_that_comes_again_is_noticed() {
        const HOST: Presence = Presence::of(&[b"expect", b"host"]);
        let mut presence = Presence::default();
        presence.note(b"Host");
        presence.note(b"Accept");
        presence.note(b"accept");
        assert!(!presence.may_repeat(HOST));
        presence.note(b"HOST");
        assert!(presence.may_repeat(HOST));
    }
}
