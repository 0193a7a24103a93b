//! The body of every answer that reports a failure:
//!
//! ```json
//! {"error":{"field":"urls[3]","message":"expected an absolute URL such as https://example.org/news/5"}}
//! ```

use serde::{Deserialize, Serialize};

/// The reason why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the response, 4xx or 5xx.
    pub status: u16,
    /// The faulty field of the request, such as `urls[3]`; `None` if it is not one field.
    pub field: Option<String>,
    /// The mistake or the expected form, one sentence for people.
    pub message: String,
    /// When it may be tried again, in seconds (`Retry-After`).
    pub retry_after: Option<u32>,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    error: WireError,
}

#[derive(Serialize, Deserialize)]
struct WireError {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    message: String,
}

impl Refusal {
    /// A refusal that is about no single field.
    #[must_use]
    pub fn new(status: u16, message: impl Into<String>) -> Refusal {
        Refusal {
            status,
            field: None,
            message: message.into(),
            retry_after: None,
        }
    }

    /// The request is wrong in this field (400).
    #[must_use]
    pub fn field(field: impl Into<String>, message: impl Into<String>) -> Refusal {
        Refusal {
            field: Some(field.into()),
            ..Refusal::new(400, message)
        }
    }

    /// The body of the response.
    #[must_use]
    pub fn to_json(&self) -> String {
        let wire = Wire {
            error: WireError {
                field: self.field.clone(),
                message: self.message.clone(),
            },
        };
        // Two texts are always JSON.
        serde_json::to_string(&wire).unwrap_or_default()
    }

    /// The refusal that a response with this status and body is.
    #[must_use]
    pub fn from_json(status: u16, body: &[u8]) -> Refusal {
        match serde_json::from_slice::<Wire>(body) {
            Ok(Wire { error }) => Refusal {
                field: error.field,
                ..Refusal::new(status, error.message)
            },
            Err(_) => Refusal::new(status, format!("the server answered {status}")),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.field {
            Some(field) => write!(f, "{field}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_the_same_after_a_way_through_json() {
        for refusal in [
            Refusal::field("urls[3]", "expected \"quotes\"\n"),
            Refusal::new(429, "too many"),
        ] {
            let json = refusal.to_json();
            assert_eq!(
                Refusal::from_json(refusal.status, json.as_bytes()),
                refusal,
                "{json}"
            );
        }
        let other = Refusal::from_json(502, b"<html>");
        assert_eq!(other.message, "the server answered 502");
    }
}
