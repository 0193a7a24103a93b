//! Pages that the server asks itself for, in the name of no visitor, so that those who come next find them
//! stored. Such a request goes through all stages like that of a visitor who has never been here, but for
//! the limits on requests, and asks no upstream if the response would not be stored.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http_cache::{Reason, WantedResponse};

/// Why the server asks itself, and why no upstream was asked, if so.
pub struct OwnVisit {
    pub purpose: Purpose,
    pub not_asked: OnceLock<NotAsked>,
    /// The foreseen decisions of limits, for an explanation.
    pub limits: OnceLock<Vec<ForeseenLimit>>,
}

/// The decision that `limit_conn` or `limit_req` would make about a request at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeseenLimit {
    pub directive: &'static str,
    pub zone: String,
    pub says: LimitVerdict,
    /// It is only tried.
    pub is_dry_run: bool,
}

/// The verdict of a limit about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitVerdict {
    Pass,
    Delay(Duration),
    /// With this status.
    Refuse(u16),
}

/// The purpose of a request that the server makes itself.
#[derive(Clone)]
pub enum Purpose {
    /// Store the page.
    Warm,
    /// Store again a page that a purge has hit. Nothing else is fetched.
    Refill(Arc<WantedResponse>),
    /// Read the content of the page, whether or not it can be stored.
    Read,
    /// Make a stored page again, past the stored copy, to compare its learned inputs (`cache_learn`).
    Audit,
    /// Explain the request; no upstream is asked.
    Explain,
    /// Explain the request, and ask the upstream as for a visitor.
    Ask,
    /// Find out the page's dependencies: the upstream is asked with the request as it is, past the cache.
    Try,
}

/// Why no upstream was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAsked {
    /// Visitors need the servers, or the page is being fetched already.
    Busy,
    /// The answer would not be stored, and why.
    NotKept(Reason),
    /// No content was wanted.
    Dry,
    /// It would be stored, but not in the place of the purged page; or purged pages are not fetched again
    /// here.
    OtherPage,
}

impl OwnVisit {
    /// Is it forbidden to ask an upstream, for whatever purpose?
    pub fn is_dry(&self) -> bool {
        matches!(self.purpose, Purpose::Explain)
    }

    pub fn new(purpose: Purpose) -> OwnVisit {
        OwnVisit {
            purpose,
            not_asked: OnceLock::new(),
            limits: OnceLock::new(),
        }
    }
}
