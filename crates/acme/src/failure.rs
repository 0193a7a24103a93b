//! The errors of an issuance.

use std::fmt::Display;
use std::time::Duration;

use instant_acme::Error;

/// A failed attempt.
#[derive(Debug)]
pub struct Failure {
    /// For the log.
    pub message: String,
    /// The time for which the issuer wants no requests.
    pub retry_after: Option<Duration>,
}

impl Failure {
    pub fn new(message: impl Display) -> Failure {
        Failure {
            message: message.to_string(),
            retry_after: None,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::new(match &error {
            Error::Api(problem) => {
                let kind = problem.r#type.as_deref().unwrap_or("about:blank");
                let kind = kind.rsplit(':').next().unwrap_or(kind);
                let mut text = format!(
                    "{kind}: {}",
                    problem.detail.as_deref().unwrap_or("no detail")
                );
                for subproblem in &problem.subproblems {
                    text.push_str(&format!("; {subproblem}"));
                }
                printable(&text)
            }
            _ => printable(&error.to_string()),
        })
    }
}

/// Returns NAME of an error of the kind `urn:ietf:params:acme:error:NAME`.
pub fn kind(error: &Error) -> Option<&str> {
    match error {
        Error::Api(problem) => problem.r#type.as_deref()?.rsplit(':').next(),
        _ => None,
    }
}

/// Like [`kind`], for the error of a result.
pub fn kind_of<T>(result: &Result<T, Error>) -> Option<&str> {
    kind(result.as_ref().err()?)
}

/// Most of a message from outside that goes to the log.
const MAX_MESSAGE_CHARS: usize = 500;

/// A text from outside, fit for a line of a log.
fn printable(text: &str) -> String {
    let shown = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().take(MAX_MESSAGE_CHARS).map(shown).collect()
}
