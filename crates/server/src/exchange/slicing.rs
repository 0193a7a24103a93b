//! The slice that a request is for (`slice`).

/// The slice that a request is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Slicing {
    /// Nothing: the configuration does not ask for `$slice_range`.
    #[default]
    None,
    /// The slice that begins here is the first of a response.
    First(u64),
    /// A further slice for a response that has begun.
    Next(u64),
}
