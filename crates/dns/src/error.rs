//! The reasons why a name has no address, in nginx's words.

/// The reason why a lookup failed. The first five are RFC 1035's response codes
/// (§4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The server could not read the question.
    #[error("1: Format error")]
    FormatError,
    /// The server could not find out.
    #[error("2: Server failure")]
    ServerFailure,
    /// There is no such name, or it has no address.
    #[error("3: Host not found")]
    HostNotFound,
    /// The server does not know this kind of question.
    #[error("4: Unimplemented")]
    Unimplemented,
    /// The server does not answer us.
    #[error("5: Operation refused")]
    Refused,
    /// No server answered in time.
    #[error("110: Operation timed out")]
    TimedOut,
}

impl Fault {
    /// From a response code; `None` for those that nginx passes over.
    pub(crate) fn from_code(code: u16) -> Option<Self> {
        Some(match code {
            1 => Self::FormatError,
            2 => Self::ServerFailure,
            3 => Self::HostNotFound,
            4 => Self::Unimplemented,
            5 => Self::Refused,
            _ => return None,
        })
    }
}

/// A name that could not be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} could not be resolved ({fault})")]
pub struct ResolveError {
    /// The name as the caller wrote it.
    pub name: String,
    /// Why.
    pub fault: Fault,
}
