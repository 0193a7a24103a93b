//! Regular expressions (PCRE, as in nginx) with the slots their named groups fill.

use super::SlotId;

/// A compiled pattern.
pub struct Pattern {
    pub source: String,
    pub regex: pcre2::bytes::Regex,
    /// Named groups: group number and the slot it is written to.
    pub named: Vec<(usize, SlotId)>,
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pattern({:?})", self.source)
    }
}
