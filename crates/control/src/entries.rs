//! Requests and answers about stored responses: a search, and one stored response.
//!
//! They contain no values of cookies. Values of arguments are masked, unless `cache_show_args`
//! names the argument.

use serde::{Deserialize, Serialize};

/// The most stored responses that one answer names.
pub const MAX_FOUND: usize = 1000;
/// Found entries in an answer unless the request has another number.
pub const USUAL_FOUND: usize = 100;
/// The longest text that is searched for.
pub const MAX_SEARCH_BYTES: usize = 4096;

/// The terms of a search; with both, an entry must carry the tag and have the text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchRequest {
    /// A part of the address: host, path and arguments as the answer shows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A whole tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The name of a zone; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// How many at most; [`USUAL_FOUND`] unless given, and never more than [`MAX_FOUND`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// [`FoundEntries::next`] of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// The entries found, in no order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FoundEntries {
    pub entries: Vec<Entry>,
    /// The position at which the next request goes on; `None`: that is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How many stored responses were looked at.
    pub looked_at: u64,
}

/// The stored response to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryRequest {
    /// [`Entry::id`]
    pub id: String,
}

/// A stored response.
// Large: each is a member of the JSON that commands and the dashboard show.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// By which it is opened, for as long as it is stored.
    pub id: String,
    pub zone: String,
    /// Host, path and arguments.
    pub address: String,
    /// The cache key, where nothing of a visitor's cookies or fields can be in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub status: u16,
    /// Age in milliseconds (RFC 9111 §4.2.3).
    pub age_milliseconds: u64,
    /// Freshness lifetime in milliseconds, as it was decided when the response came.
    pub lifetime_milliseconds: u64,
    /// The remaining freshness; 0: stale.
    pub fresh_milliseconds: u64,
    /// The source of the lifetime: a field or a directive of one, or `rule`.
    pub lifetime_source: String,
    /// The source of the lifetime in words: the field, or the line of the configuration.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lifetime_by: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The request fields of `Vary`, with the values for which the response was made, as far as
    /// they are shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vary: Vec<(String, String)>,
    /// The stored fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, String)>,
    pub body_bytes: u64,
    /// Bytes that it takes of the zone's memory, all forms included.
    pub memory_bytes: u64,
    /// Forms of the body that are kept beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forms: Vec<Form>,
    /// When it was last asked for, in milliseconds before.
    pub used_milliseconds_ago: u64,
    /// In about how many seconds it was asked for, however often in each: this counts no hits. The
    /// longer ago the last one is, the less all of them count.
    pub seconds_used: u32,
    /// For one session alone (`cache_private`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_private: bool,
    /// A purge has removed it: clients do not get it, and its memory is freed later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_purged: bool,
}

/// A form of a stored body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// Its content coding, or its purpose.
    pub name: String,
    /// None: the coding saves nothing, so none is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}
