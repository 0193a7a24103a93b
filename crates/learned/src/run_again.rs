//! How a statement of a page is run again, to see whether it still returns the same.

use crate::value::Value;

/// Bytes of one statement that is run again, with its values. A longer one is not.
const MAX_BYTES: usize = 16 * 1024;

/// The session in which a statement can be run again, and how it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunIn {
    /// The caller's number of the session in which it read.
    pub session: u32,
    /// It was prepared: the server returned rows in binary form.
    pub is_prepared: bool,
}

/// One statement that is run again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunText {
    pub text: Box<str>,
    /// The values of a prepared statement. `None`: it is sent as text.
    pub values: Option<Box<[Value]>>,
}

/// The text of a statement, and of the `SELECT FOUND_ROWS()` that followed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunAgain {
    /// The caller's number of the session in which it read.
    pub session: u32,
    /// To be run one after the other, with nothing in between.
    pub texts: Vec<RunText>,
}

impl RunAgain {
    /// `None`: a text with bytes that are no characters may be read otherwise by the server, and a value that is not known
    /// cannot be sent.
    pub fn of(text: &[u8], values: &[Value], run_in: RunIn) -> Option<Self> {
        let text = str::from_utf8(text).ok()?;
        let values = run_in.is_prepared.then(|| values.into());
        let text = RunText {
            text: text.into(),
            values,
        };
        let is_known = !text.values.iter().flatten().any(|it| *it == Value::Other);
        (is_known && text.bytes() <= MAX_BYTES).then(|| Self {
            session: run_in.session,
            texts: vec![text],
        })
    }

    pub(crate) fn followed_by(
        mut self,
        text: &[u8],
        values: &[Value],
        run_in: Option<RunIn>,
    ) -> Option<Self> {
        let run_in = run_in.filter(|it| it.session == self.session)?;
        let next = Self::of(text, values, run_in)?;
        self.texts.extend(next.texts);
        Some(self)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.texts.iter().map(RunText::bytes).sum()
    }

    /// The hash of what all its texts returned, of the hashes of each; `None`: not all are there.
    pub fn result(&self, results: &[u64]) -> Option<u64> {
        let is_each = results.len() == self.texts.len();
        let joined = results.iter().copied().reduce(joined);
        joined.filter(|_| is_each)
    }
}

impl RunText {
    fn bytes(&self) -> usize {
        let values = self.values.iter().flatten().map(|value| match value {
            Value::Text(text) => size_of::<Value>() + text.len(),
            _ => size_of::<Value>(),
        });
        self.text.len() + values.sum::<usize>()
    }
}

/// Combines the hashes of two results.
pub(crate) const fn joined(first: u64, second: u64) -> u64 {
    (first.rotate_left(5) ^ second).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
