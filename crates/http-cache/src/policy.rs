//! The operator's rules for storing: methods, lifetimes by status, response fields that are ignored.
//! Plain data, made once per location; the decision itself is in `storability.rs` and
//! `freshness.rs`.

use std::time::Duration;

/// Methods whose responses may be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Methods {
    /// `GET` and `HEAD`.
    pub get_head: bool,
    /// `POST`; the key should then hold the request's body, or no bodies matter.
    pub post: bool,
}

impl Methods {
    /// Returns whether `method` is among them. No other method is ever stored.
    #[must_use]
    pub fn contains(self, method: &[u8]) -> bool {
        match method {
            b"GET" | b"HEAD" => self.get_head,
            b"POST" => self.post,
            _ => false,
        }
    }
}

/// The operator's rules for storing. Plain data; made once per location.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Methods whose responses may be stored. Default: GET and HEAD.
    pub methods: Methods,
    /// Response fields that are not to be obeyed (as `fastcgi_ignore_headers`).
    pub ignore: IgnoreFields,
    /// Lifetimes by status, for responses whose fields say nothing.
    pub valid: Vec<ValidRule>,
    /// The longest that a response is fresh here, whatever gives its lifetime. Default: no bound.
    pub max_fresh: Option<Duration>,
    /// How long answers about missing pages (404, 410) are fresh, in place of their fields and of
    /// `max_fresh`. Only for requests without an identity in their key. Default: as other answers.
    pub not_found: Option<Duration>,
    /// Store answers to requests with `Authorization` although the response does not allow it.
    pub store_authorized: bool,
    /// Store a 206 as if it were whole: the key contains its range. Default: no.
    pub stores_partial: bool,
    /// Obey `CDN-Cache-Control` (RFC 9213). Default: yes.
    pub targeted: bool,
    /// Share of the time since `Last-Modified` to use as lifetime, in percent, and its bound
    /// (RFC 9111 §4.2.2). Default: none.
    pub heuristic: Option<(u32, Duration)>,
    /// Store responses with `no-cache` that can be validated, which each use of them asks for
    /// (RFC 9111 §5.2.2.4). Default: no.
    pub stores_no_cache: bool,
    /// Requests for a key before it is stored. Default: 1.
    pub min_uses: u32,
    /// The largest body to store, in bytes. The zone has its own bound beside this one.
    pub max_response_bytes: u64,
    /// `stale-while-revalidate` for responses that do not say.
    pub stale_while_revalidate: Duration,
    /// `stale-if-error` for responses that do not say.
    pub stale_if_error: Duration,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            methods: Methods {
                get_head: true,
                post: false,
            },
            ignore: IgnoreFields::default(),
            valid: Vec::new(),
            max_fresh: None,
            not_found: None,
            store_authorized: false,
            stores_partial: false,
            targeted: true,
            heuristic: None,
            stores_no_cache: false,
            min_uses: 1,
            max_response_bytes: u64::MAX,
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: Duration::ZERO,
        }
    }
}

/// Response fields not to be obeyed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoreFields {
    /// `X-Accel-Expires`.
    pub accel_expires: bool,
    /// `Cache-Control` and `CDN-Cache-Control`.
    pub cache_control: bool,
    /// `Expires`.
    pub expires: bool,
    /// `Set-Cookie`: store the response although it sets a cookie.
    pub set_cookie: bool,
    /// `Vary`.
    pub vary: bool,
}

/// The statuses a rule is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusSet {
    /// Every status.
    Any,
    /// These.
    Of(Vec<u16>),
}

/// A lifetime for responses whose fields say nothing (as `fastcgi_cache_valid`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidRule {
    /// The statuses of the rule. The first rule that matches counts.
    pub statuses: StatusSet,
    /// The lifetime; zero: not stored.
    pub lifetime: Duration,
}
