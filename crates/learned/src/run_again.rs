//! How a statement of a page is run again, to see whether it still returns the same.

/// Bytes of one statement that is run again. A longer one is not.
const MOST_BYTES: usize = 16 * 1024;

/// The text of a statement, and of the `SELECT FOUND_ROWS()` that followed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunAgain {
    /// The caller's number of the session in which it read.
    pub session: u32,
    /// To be run one after the other, with nothing in between.
    pub texts: Vec<Box<str>>,
}

impl RunAgain {
    /// `None`: a text with bytes that are no characters may be read otherwise by the server.
    pub(crate) fn of(text: &[u8], session: u32) -> Option<Self> {
        let text = str::from_utf8(text).ok();
        let text = text.filter(|text| text.len() <= MOST_BYTES)?;
        Some(Self {
            session,
            texts: vec![text.into()],
        })
    }

    pub(crate) fn followed_by(mut self, text: &[u8], session: Option<u32>) -> Option<Self> {
        let next = Self::of(text, session.filter(|it| *it == self.session)?)?;
        self.texts.extend(next.texts);
        Some(self)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.texts.iter().map(|text| text.len()).sum()
    }

    /// The hash of what all its texts returned, of the hashes of each; `None`: not all are there.
    pub fn result(&self, results: &[u64]) -> Option<u64> {
        let is_each = results.len() == self.texts.len();
        let joined = results.iter().copied().reduce(joined);
        joined.filter(|_| is_each)
    }
}

/// Of two results one.
pub(crate) const fn joined(first: u64, second: u64) -> u64 {
    (first.rotate_left(5) ^ second).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
