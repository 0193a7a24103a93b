//! The request for an explanation, and the answer: how the server would answer a request, and why.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::entries::Entry;

/// The most fields that a request to be explained may have.
pub const MAX_FIELDS: usize = 64;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainRequest {
    /// An absolute URL of a site that the server serves.
    pub url: String,
    /// `None`: GET.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Names and values, beside those that a browser sends that has never been here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, String)>,
    /// The request is really made, so that the upstream answers it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ask: bool,
    /// The address of the client; `None`: an unassigned address, to which no rule gives rights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
    /// The page is made several times with one thing altered, to find the parts of a request that it depends
    /// on.
    #[serde(default, rename = "try", skip_serializing_if = "std::ops::Not::not")]
    pub tries: bool,
}

/// How the server would answer a request, and why.
// Large: each is a member of the JSON that commands and the dashboard show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The URL as the caller gave it.
    pub url: String,
    pub method: String,
    /// The address that it comes in by.
    pub listen: String,
    /// The name of the server block; empty if it has none.
    pub server: String,
    /// The location as written after `location`; empty for the server's own level.
    pub location: String,
    pub plan: Plan,
    /// The client's address, where one was given: behind a trusted proxy the one that the proxy names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<IpAddr>,
    /// The verdicts of `limit_conn` and `limit_req` on the client at this moment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    /// The cache's part; none if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CachePart>,
    pub outcome: Outcome,
    /// Whether a response to this very request is stored.
    pub is_stored: bool,
    /// The reason why the cache has no part in the response, or could not keep the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ExplainedReason>,
    /// The stored response for the request, fresh or stale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Entry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variants: Option<Variants>,
    /// The statements and files that the page was made of; `None` without `cache_learn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned: Option<LearnedPart>,
    /// The evidence about the page with `cache_shared`; `None` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidencePart>,
    /// The parts of a request on which the page was found to depend, if that was tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trial: Vec<TriedAlteration>,
    /// The effect of each part of the request on the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Changes that would let the response be stored, or more visitors share it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
    /// The answer, if the request was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedResponse>,
}

/// The evidence from the answers that the page gave to visitors' own requests and to the shared one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidencePart {
    pub standing: Standing,
    /// The parts of this request that the shared one leaves out: `language`, `user-agent`, `referer`,
    /// `cookies`, `hints`, `network`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Since when something is known of the page, in milliseconds; none: nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_for_milliseconds: Option<u64>,
    /// Pairs of answers that were compared, and trials that found a reason.
    pub comparisons: u32,
    /// Values of this page that were seen not to matter.
    pub immaterial: usize,
    /// Traits of which a value was seen to matter, and those of them that are in the key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_key: Vec<String>,
    /// The last answer to a visitor's own request could not have been stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_refused: bool,
    /// The page differs each time it is made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub differs_each_time: bool,
    /// Why a page that begins no session is not shareable.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub refusal: String,
    /// The answers of two visitors differed by something that is not compared: the page is not shared for now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unexplained: bool,
    /// With `cache_guest_sessions`: the facts about the session that the page begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionPart>,
}

/// The state of the session that a page begins for each visitor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionPart {
    /// Guests share the page, and places of it differ for each: times, counts and durations, and tokens.
    Shared { numbers: usize, tokens: usize },
    /// It was not found out yet whether the page depends on it.
    Unproven,
    /// Guests do not share the page; why.
    Refused { why: String },
    /// Guests do not share the page, and who has seen it is a guest still.
    Left { why: String },
}

/// Whether the visitor of the request may be shown the shared answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Yes: nothing that is left out matters, as far as was seen.
    Shared,
    /// There is no evidence yet: the visitor's own request is made, and its answer compared.
    Unproven,
    /// No: a trial has found no answer that visitors can share.
    NotShareable,
    /// No: something that is left out matters.
    Depends,
}

/// The page as it was made for a request with one thing altered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriedAlteration {
    /// The altered part, such as `Accept-Language: de`.
    pub altered: String,
    pub status: u16,
    pub effect: TriedEffect,
    /// The first part of the page that differs, as it was and as it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub was: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub became: String,
}

/// The effect of an alteration on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TriedEffect {
    /// The page is the same, or differs in no more than it does each time.
    Same,
    Differs,
    /// There was no whole answer, or the server had no time.
    NoAnswer,
}

/// The maker of the response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub kind: PlanKind,
    /// The upstream, the file, or the directive.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub to: String,
    /// The status, where the server itself answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The request's turn, if the upstream distinguishes turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnPart>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanKind {
    /// A file, as it is.
    File,
    Fastcgi,
    Http,
    Memcached,
    /// A directive such as `empty_gif`.
    Handler,
    /// `cache_purge_api`
    PurgeApi,
    /// A redirect, a refusal, or a `return`.
    Answer,
    /// The connection is closed without an answer.
    Nothing,
}

/// The verdict of one limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// `limit_conn` or `limit_req`
    pub directive: String,
    pub zone: String,
    pub says: LimitVerdict,
    /// It is only tried (`limit_req_dry_run`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dry_run: bool,
}

/// The turn that a request would have where PHP's time is shared fairly (`php_concurrency`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnPart {
    pub class: String,
    /// The owner of the turn.
    pub of: String,
    /// The limit in force, and why.
    pub limit: usize,
    pub limit_reason: String,
    /// Its client has used little lately, so that a place is kept for it.
    pub has_used_little: bool,
    /// How long it would wait at this moment behind all who wait before it.
    pub waits_milliseconds: u64,
}

/// The verdict of a limit on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitVerdict {
    Pass,
    /// It has to wait.
    Delay {
        milliseconds: u64,
    },
    Refuse {
        status: u16,
    },
}

/// The part of the cache in the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachePart {
    pub zone: String,
    /// The cache key; bytes that are no text are escaped. Empty if none is made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// The address by which it can be purged.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// Whether the zone's disk has something for the key, or why it does not serve; empty if the zone keeps
    /// nothing on disk.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub disk: String,
}

/// The outcome of the cache, in nginx's words as far as it has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It has no part in the response.
    Off,
    Hit,
    /// A stale response is there; whether it is shown depends on who else asks.
    Stale,
    /// There is no stored response for the key.
    Miss,
    /// Responses for the key are stored, none for these fields.
    VaryMiss,
    Bypass,
    Method,
    Purge,
}

/// A reason, and how it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedReason {
    /// The word of `$cache_reason`.
    pub word: String,
    pub sentence: String,
    pub known_by: KnownBy,
    /// How long ago it was seen, in milliseconds, and with which status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milliseconds_ago: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The lines of the configuration that decide it: `FILE:LINE: TEXT`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
}

/// How a reason is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnownBy {
    /// By the request and the configuration: it holds for each request like this.
    Request,
    /// By the content of the cache at this moment.
    Moment,
    /// By the last response for the key, perhaps to another visitor's request.
    LastResponse,
    /// By the response to this very request, which was made.
    Response,
}

/// The variants of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variants {
    /// How many are stored.
    pub stored: usize,
    /// How many are kept at most.
    pub most: usize,
    /// The request fields by which they differ.
    pub fields: Vec<String>,
}

/// The record of the statements and files that a page was made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedPart {
    pub state: LearnedState,
    /// The reason why the page is not learned, or not kept, in a word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    pub sentence: String,
    /// The statement, the file or the address that is the reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// How long ago the page was made, or its record refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milliseconds_ago: Option<u64>,
    /// How many statements it was made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statements: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Whether the binary log of the database is followed, for people; empty: it is not to be.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub log: String,
    /// Paths of SQLite databases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub databases: Vec<String>,
    /// How often it was made again while nothing had changed that Mayfly saw, and was the same, and was
    /// another.
    #[serde(default)]
    pub same: u32,
    #[serde(default)]
    pub changed: u32,
}

/// Whether a page would still be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LearnedState {
    /// No part that it was made of has changed.
    Fresh,
    /// A part that it was made of may have changed.
    Suspect,
    /// The page is not known.
    Unknown,
    NotLearned,
}

/// A part of a request, and its effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The part, such as `cookie lang`, `argument page` or `field Accept-Language`.
    pub name: String,
    pub effect: Effect,
    /// It is no part of the request that is explained, but might be one of others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_example: bool,
}

/// The effect of a part of the request on the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It is not in the cache key: requests with and without it share the stored response.
    Shares,
    /// It is in the cache key.
    InKey,
    /// It selects the variant (`Vary`).
    SelectsVariant,
    /// With it the request goes past the cache, or is answered in another way.
    PastCache,
    /// It chooses another server, another location or another answer.
    ChoosesWay,
}

impl Effect {
    /// For people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Effect::Shares => "not in the key: with and without it the copy is the same",
            Effect::InKey => "in the key",
            Effect::SelectsVariant => "selects the variant (Vary)",
            Effect::PastCache => "decides whether the cache is used",
            Effect::ChoosesWay => "chooses another way through the configuration",
        }
    }
}

/// The answer to the request that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedResponse {
    pub status: u16,
    /// The value of `$upstream_cache_status`; empty if the cache had no part.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cache_status: String,
    /// Bytes of the body.
    pub bytes: u64,
    /// The target of a redirect: the field Location as it is sent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub location: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_may_be_a_url_alone_and_has_no_unknown_fields() {
        let short: ExplainRequest = serde_json::from_str(r#"{"url":"http://a/"}"#).unwrap();
        assert_eq!((short.method, short.ask), (None, false));
        let long = ExplainRequest {
            url: "http://a/".to_owned(),
            method: Some("HEAD".to_owned()),
            fields: vec![("Cookie".to_owned(), "a=b".to_owned())],
            ask: true,
            from: Some("192.0.2.1".parse().unwrap()),
            tries: true,
        };
        let json = serde_json::to_string(&long).unwrap();
        assert_eq!(serde_json::from_str::<ExplainRequest>(&json).unwrap(), long);
        assert!(serde_json::from_str::<ExplainRequest>(r#"{"url":"a","x":1}"#).is_err());
    }
}
