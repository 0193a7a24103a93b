//! What is known of a request that may be looked up: where its response is stored, by which rules,
//! and for whom.

use std::sync::Arc;

use http_cache::{CacheKey, JoinRequest, Millis, Reason, Stamp, Urgency, VarySpec, Zone};
use http_semantics::RequestHead;
use shared_request::Class;
use site::CacheRules;

use crate::fields::Fields;
use crate::with_cookies::WithCookies;

/// Who may be shown the response to a request.
#[derive(Clone)]
pub enum Audience {
    /// All whose requests have the same key.
    Everybody,
    /// With `cache_private`: one session, and the group that its copies count against.
    Session(u64),
    /// With `cache_shared`: the visitors of a class, or those of one session with `cache_private`.
    /// The request is written anew.
    Class(Class, Option<u64>),
    /// With `cache_litespeed`: visitors with cookies, as far as the application has said who share
    /// the page. The request is written anew, with the cookies.
    WithCookies(Class, Arc<WithCookies>),
}

impl Audience {
    /// The class of visitors, where the request is written anew.
    #[must_use]
    #[inline]
    pub fn class(&self) -> Option<Class> {
        match self {
            Audience::Everybody | Audience::Session(_) => None,
            Audience::Class(class, _) | Audience::WithCookies(class, _) => Some(*class),
        }
    }

    /// The group that a private copy counts against.
    #[must_use]
    pub fn group(&self) -> Option<u64> {
        match self {
            Audience::Everybody => None,
            Audience::Session(group) => Some(*group),
            Audience::Class(_, group) => *group,
            Audience::WithCookies(_, with) => with.group,
        }
    }

    /// What the application has said of visitors with cookies.
    #[must_use]
    pub fn cookies(&self) -> Option<&Arc<WithCookies>> {
        match self {
            Audience::WithCookies(_, with) => Some(with),
            _ => None,
        }
    }
}

/// Look up, and store what comes.
pub struct Plan<'a> {
    pub zone: &'a Arc<Zone>,
    pub rules: &'a Arc<CacheRules>,
    pub key: CacheKey,
    pub audience: Audience,
    /// Go past what is stored, and why.
    pub bypass: Option<Reason>,
    /// Do not store, whatever the response says.
    pub never_store: bool,
    /// How often the key was asked for; counted only where that matters.
    pub uses: u32,
    /// What responses for the key vary on, as the lookup found it, or else those of the site.
    pub varies_on: Option<Arc<VarySpec>>,
    /// The purge clock after the request's lookup. Older data than a purge before that is not for
    /// the request.
    pub came_at: Stamp,
    /// Whether a visitor waits for a page, or for a part of one.
    pub urgency: Urgency,
}

impl Plan<'_> {
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

    /// The fields by which the cache tells variants apart.
    #[inline]
    pub fn fields<'r>(&'r self, head: &'r RequestHead) -> Fields<'r> {
        match self.audience.class() {
            None => Fields::Counted(head, &self.rules.ignored_cookies),
            Some(_) => Fields::Shared(head),
        }
    }
}
