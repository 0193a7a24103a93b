//! Bytes that are read before the kernel takes them.
#![forbid(unsafe_code)]

/// The length of what was read ahead: PHP sends again what the kernel did not take.
#[derive(Default)]
pub(crate) struct SentBytes(usize);

impl SentBytes {
    /// Returns those of the bytes which PHP is about to send that were not read yet.
    pub(crate) fn new_of<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let new = bytes.get(self.0..).unwrap_or(&[]);
        self.0 = self.0.max(bytes.len());
        new
    }

    /// The kernel took this number of them.
    pub(crate) fn are_taken(&mut self, count: usize) {
        self.0 = self.0.saturating_sub(count);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == 0
    }
}
