//! The reasons why a name has no address, in nginx's words.

use std::fmt;

/// The reason why a lookup failed. The first five are RFC 1035's response codes
/// (§4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server could not read the question.
    FormatError,
    /// The server could not find out.
    ServerFailure,
    /// There is no such name, or it has no address.
    HostNotFound,
    /// The server does not know this kind of question.
    Unimplemented,
    /// The server does not answer us.
    Refused,
    /// No server answered in time.
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

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FormatError => "1: Format error",
            Self::ServerFailure => "2: Server failure",
            Self::HostNotFound => "3: Host not found",
            Self::Unimplemented => "4: Unimplemented",
            Self::Refused => "5: Operation refused",
            Self::TimedOut => "110: Operation timed out",
        })
    }
}

/// A name that could not be resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveError {
    /// The name as the caller wrote it.
    pub name: String,
    /// Why.
    pub fault: Fault,
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} could not be resolved ({})", self.name, self.fault)
    }
}

impl std::error::Error for ResolveError {}
