//! The decision about a request, made by [`crate::decide`].

use std::sync::Arc;

use http_cache::{Forward, Reason, ServedFrom, StoredResponse};

use crate::facts::PurgeReach;

/// The decision about a request, and its reason.
#[derive(Clone, Debug)]
pub struct Decision {
    pub action: Action,
    /// `fwd` of Cache-Status (RFC 9211 §2.2); `None`: the cache adds no field, or answers.
    pub forward: Option<Forward>,
    /// Why the cache has no part in the response or will not keep it, as far as that is known
    /// before the response is there.
    pub reason: Option<Reason>,
}

/// The action for a request.
#[derive(Clone, Debug)]
pub enum Action {
    /// The cache has no part in it.
    Off,
    /// It removes stored responses.
    Purge(PurgeReach),
    /// It may not purge, although `*_cache_purge` admits its client.
    RefusePurge,
    /// It changes something: responses stored for the same target go once the origin server agreed to it
    /// (RFC 9111 §4.4).
    Invalidate,
    /// Fetch for this client. Nothing is stored.
    Direct,
    /// Fetch without waiting for others. The response is stored if it may be.
    Alone,
    /// Fetch with the visitor's own request, and compare the answer with the shared one; or wait until
    /// others' answers were compared.
    Prove,
    /// Ask whether this stored response is still right, for this client: it is validated on each use.
    Validate(Arc<StoredResponse>),
    /// Fetch for all who ask, or wait for the fetch that is under way.
    Collapse,
    /// Fetch for all who ask, or wait for a fetch that begins later than the request came: nothing that is stored or
    /// under way may be used.
    CollapseLater,
    /// The stored response is fresh, and is the answer.
    Hit,
    /// This stale response is the answer. No fetch begins.
    ShowStale(Arc<StoredResponse>, ServedFrom),
    /// This stale response is the answer, and a fetch begins unless one is under way.
    Refresh(Arc<StoredResponse>),
}

impl Decision {
    /// A fresh response is stored.
    pub const HIT: Decision = Decision::unsaid(Action::Hit, None);
    /// No cache is configured.
    pub const OFF: Decision = Decision::unsaid(Action::Off, Some(Reason::Off));

    /// The name of the zone comes from variables, and there is no zone of this name.
    pub const NO_ZONE: Decision = Decision::unsaid(Action::Off, None);

    /// Creates a decision without `fwd`: the cache adds nothing to Cache-Status, or answers.
    pub(crate) const fn unsaid(action: Action, reason: Option<Reason>) -> Decision {
        Decision {
            action,
            forward: None,
            reason,
        }
    }

    /// The request is forwarded.
    pub(crate) const fn forwarded(
        action: Action,
        forward: Forward,
        reason: Option<Reason>,
    ) -> Decision {
        Decision {
            action,
            forward: Some(forward),
            reason,
        }
    }

    /// Returns why the next visitor would not be shown the response, as far as that is known beforehand. A
    /// response that makes another variant leave is stored.
    #[must_use]
    pub fn why_not_kept(&self) -> Option<Reason> {
        self.reason.filter(|why| *why != Reason::TooManyVariants)
    }
}
