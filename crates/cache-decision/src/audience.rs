//! Who may be shown a response.

use std::sync::Arc;

use shared_request::Class;

use crate::with_cookies::WithCookies;

/// The visitors who may be shown the response to a request.
#[derive(Clone)]
pub enum Audience {
    /// All whose requests have the same key.
    Everybody,
    /// With `cache_private`: one session, and the group that its copies count against.
    Session(u64),
    /// With `cache_private` and `cache_learn`: one visitor. All that the request says is in the key.
    Visitor(u64),
    /// With `cache_shared`: the visitors of a class, or those of one session with `cache_private`.
    /// The request is written anew.
    Class(Class, Option<u64>),
    /// With `cache_litespeed`: visitors with cookies, if the application has set who shares the
    /// page. The request is written anew, with the cookies.
    WithCookies(Class, Arc<WithCookies>),
}

impl Audience {
    /// The class of visitors, where the request is written anew.
    #[must_use]
    #[inline]
    pub fn class(&self) -> Option<Class> {
        match self {
            Audience::Everybody | Audience::Session(_) | Audience::Visitor(_) => None,
            Audience::Class(class, _) | Audience::WithCookies(class, _) => Some(*class),
        }
    }

    /// The group that a private copy counts against.
    #[must_use]
    pub fn group(&self) -> Option<u64> {
        match self {
            Audience::Everybody => None,
            Audience::Session(group) | Audience::Visitor(group) => Some(*group),
            Audience::Class(_, group) => *group,
            Audience::WithCookies(_, with) => with.group,
        }
    }

    /// Returns whether each request has a run of the application to itself, also while another is under way.
    #[must_use]
    pub fn is_one_request(&self) -> bool {
        matches!(self, Audience::Visitor(_))
    }

    /// Returns the application's sharing rule for visitors with cookies.
    #[must_use]
    pub fn cookies(&self) -> Option<&Arc<WithCookies>> {
        match self {
            Audience::WithCookies(_, with) => Some(with),
            _ => None,
        }
    }
}
