//! The request to warm one page, and the report.

use serde::{Deserialize, Serialize};

/// The page to request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmRequest {
    /// An absolute URL of a site that the server serves.
    pub url: String,
}

/// The most bytes of a page that is read: a sitemap may have as many
/// (<https://www.sitemaps.org/protocol.html>).
pub const MAX_PAGE_BYTES: usize = 52_428_800;

/// The result of warming a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarmResult {
    /// It was stored already, and fresh.
    Fresh,
    /// It was fetched, and is stored now.
    Stored,
    /// It was answered, but is not stored.
    NotStored,
    /// Visitors come first: try it again.
    Busy,
    /// It is no page of this server.
    Refused,
}

impl WarmResult {
    /// The words for it, for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            WarmResult::Fresh => "fresh",
            WarmResult::Stored => "stored",
            WarmResult::NotStored => "not stored",
            WarmResult::Busy => "busy",
            WarmResult::Refused => "refused",
        }
    }
}

/// The result of warming a page, and how long it took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WarmReport {
    /// The URL as the request has it.
    pub url: String,
    pub result: WarmResult,
    /// The status that visitors get; `None` if no request was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The reason why it is not stored: a word, or a sentence if it was
    /// refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long it took, in milliseconds, waiting for visitors included.
    pub milliseconds: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_the_same_after_a_way_through_json() {
        let report = WarmReport {
            url: "https://example.org/".to_owned(),
            result: WarmResult::NotStored,
            status: Some(200),
            reason: Some("set-cookie".to_owned()),
            milliseconds: 1.5,
        };
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(
            json,
            "{\"url\":\"https://example.org/\",\"result\":\"not_stored\",\"status\":200,\
             \"reason\":\"set-cookie\",\"milliseconds\":1.5}"
        );
        assert_eq!(serde_json::from_str::<WarmReport>(&json).unwrap(), report);
        let short = r#"{"url":"a","result":"busy","milliseconds":0.0,"later":1}"#;
        assert_eq!(
            serde_json::from_str::<WarmReport>(short).unwrap().status,
            None
        );
    }
}
