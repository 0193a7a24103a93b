//! The facts of a request that may be looked up: where its response is stored, by which rules, and for
//! whom.

use std::net::Ipv4Addr;
use std::sync::Arc;

use http_cache::{CacheKey, JoinRequest, Millis, Reason, Stamp, Urgency, VarySpec, Zone};
use http_semantics::RequestHead;
use page_evidence::{OwnRun, PageName};
use shared_request::{LeftOut, TraitSet};
use site::CacheRules;

use crate::audience::Audience;
use crate::decision::{Action, Decision};
use crate::fields::Fields;

/// Why a request goes past the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastCache {
    /// The request itself is the reason: its response is no evidence about others.
    OwnRequest,
    /// The node has no lease, so that all requests do. Stored responses are not looked at, and there may
    /// be a stale copy that the fetch does not know of.
    NoLease,
}

/// Look up, and store the response.
pub struct Plan<'a> {
    pub zone: &'a Arc<Zone>,
    pub rules: &'a Arc<CacheRules>,
    pub key: CacheKey,
    pub audience: Audience,
    /// The decision for a request that goes past the cache.
    pub past: Option<Decision>,
    /// How often the key was asked for ([`Plan::count_use`]).
    pub uses: u32,
    /// The fields that responses for the key vary on, as the lookup found them, or else those of the
    /// site.
    pub varies_on: Option<Arc<VarySpec>>,
    /// The purge clock after the request's lookup. Older data than a purge before that is not for
    /// the request.
    pub came_at: Stamp,
    /// Whether a visitor waits for a page, or for a part of one.
    pub urgency: Urgency,
    /// The page, with `cache_shared`.
    pub shared: Option<Box<SharedPage>>,
    /// The request that the upstream is asked with, with `cache_shared`.
    pub role: FetchRole,
    /// Traits that the shared request copies from this visitor's.
    pub tried: TraitSet,
    /// The cookies of a session that a trial was given, where that is tried.
    pub tried_session: Option<Arc<[u8]>>,
    /// The address that the requests of a trial come from.
    pub tried_address: Option<Ipv4Addr>,
}

/// The request that the upstream is asked with if answers may be shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchRole {
    /// The shared one, whose answer is stored.
    Shared,
    /// The visitor's own, whose answer is compared.
    Own(Box<OwnRun>),
    /// The shared one with some traits of the visitor's, whose answer a trial reads.
    Trial,
}

/// A page that may be shared, and the parts of the visitor's request that the shared one leaves out.
#[derive(Clone, Copy, Debug)]
pub struct SharedPage {
    pub name: PageName,
    pub left_out: LeftOut,
    /// Traits that are in the key.
    pub keyed: TraitSet,
    /// The page is shared with the visitor, and the visitor's own answer is compared all the same.
    pub audit: Option<OwnRun>,
}

/// How often a key counts as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseCount {
    /// Once more, which is noted.
    Noted,
    /// The step is only foreseen, and not noted.
    Foreseen,
    /// Often enough: the server itself asks, so that the response is stored.
    Waived,
}

impl<'a> Plan<'a> {
    /// A plan for a request that asks for its key the first time.
    #[inline]
    pub fn new(
        (zone, rules): (&'a Arc<Zone>, &'a Arc<CacheRules>),
        key: CacheKey,
        audience: Audience,
        past: Option<Decision>,
    ) -> Plan<'a> {
        Plan {
            zone,
            rules,
            key,
            audience,
            past,
            uses: 1,
            varies_on: None,
            came_at: Stamp::default(),
            urgency: Urgency::Page,
            shared: None,
            role: FetchRole::Shared,
            tried: TraitSet::NONE,
            tried_session: None,
            tried_address: None,
        }
    }

    /// Returns why the request goes past the cache, where it does.
    #[must_use]
    pub fn past_cache(&self) -> Option<PastCache> {
        let past = self.past.as_ref()?;
        match past.reason {
            Some(Reason::NoLease) => Some(PastCache::NoLease),
            // The shared request that is made for such a visitor is for all.
            _ if matches!(past.action, Action::Prove) && self.role == FetchRole::Shared => None,
            _ => Some(PastCache::OwnRequest),
        }
    }

    /// Counts how often the key was asked for, where that matters (`*_cache_min_uses`).
    pub fn count_use(&mut self, count: UseCount, now: Millis) {
        let least = self.rules.min_uses;
        let key = self.key.as_ref();
        self.uses = match count {
            UseCount::Waived => least,
            _ if least <= 1 => 1,
            UseCount::Noted => self.zone.count_use(&key, now),
            UseCount::Foreseen => self.zone.uses(&key, now).saturating_add(1),
        };
    }

    /// The request as the table of fetches knows it, given its fields and its address.
    pub fn join_request<'r>(
        &'r self,
        fields: &'r Fields<'r>,
        address: &'r [u8],
        now: Millis,
    ) -> JoinRequest<'r> {
        JoinRequest {
            key: self.key.as_ref(),
            fields,
            now,
            lock_age: Some(self.rules.lock_age),
            group: self.audience.group(),
            address,
            came_at: self.came_at,
            may_have_tags: self.rules.tags.is_some(),
            urgency: self.urgency,
            expects: self.varies_on.as_ref(),
        }
    }

    /// Returns the fields by which the cache distinguishes variants.
    #[inline]
    pub fn fields<'r>(&'r self, head: &'r RequestHead) -> Fields<'r> {
        match self.audience.class() {
            None => Fields::Counted(head, &self.rules.ignored_cookies),
            Some(_) => Fields::Shared(head),
        }
    }
}
