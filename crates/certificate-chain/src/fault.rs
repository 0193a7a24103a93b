//! The reasons to refuse a certificate.

use std::fmt;

/// The fault of a certificate. Shown with OpenSSL's number and words, which operators
/// know from nginx's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerifyFault {
    NoCrl,
    BadSignature,
    NotYetValid,
    Expired,
    CrlExpired,
    SelfSigned,
    UnknownIssuer,
    ChainTooLong,
    Revoked,
    InvalidCa,
    WrongPurpose,
    /// Anything else, in the words of the library.
    Other(String),
}

impl VerifyFault {
    /// OpenSSL's words, without the number.
    pub fn words(&self) -> &str {
        self.number_and_words().1
    }

    fn number_and_words(&self) -> (u16, &str) {
        match self {
            VerifyFault::NoCrl => (3, "unable to get certificate CRL"),
            VerifyFault::BadSignature => (7, "certificate signature failure"),
            VerifyFault::NotYetValid => (9, "certificate is not yet valid"),
            VerifyFault::Expired => (10, "certificate has expired"),
            VerifyFault::CrlExpired => (12, "CRL has expired"),
            VerifyFault::SelfSigned => (18, "self-signed certificate"),
            VerifyFault::UnknownIssuer => (20, "unable to get local issuer certificate"),
            VerifyFault::ChainTooLong => (22, "certificate chain too long"),
            VerifyFault::Revoked => (23, "certificate revoked"),
            VerifyFault::InvalidCa => (24, "invalid CA certificate"),
            VerifyFault::WrongPurpose => (26, "unsupported certificate purpose"),
            VerifyFault::Other(words) => (1, words),
        }
    }
}

impl fmt::Display for VerifyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, words) = self.number_and_words();
        write!(f, "{number}:{words}")
    }
}

impl std::error::Error for VerifyFault {}
