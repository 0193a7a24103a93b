//! The request of a visitor whose answer may not be the shared one: its part, its end, and the trial that may follow.

use shared_request::{LeftOut, TraitSet};

use crate::page_name::PageName;

/// The action for a visitor's request whose answer may not be the shared one.
#[derive(Debug)]
pub enum Part {
    /// It may be, meanwhile.
    Shared,
    /// The visitor's own request is made. With `compared`, its end is to be reported
    /// ([`crate::Evidence::own_ended`]); without, nothing is learned of it. With `shared`, the shared request is made
    /// beside it.
    Own {
        compared: Option<OwnRun>,
        shared: bool,
    },
    /// Others' answers will say whether the shared one is the visitor's. With `shared`, this visitor is the
    /// second one: the shared request is made now.
    Wait { shared: bool },
}

impl Part {
    /// The visitor's own request, of which nothing is learned.
    pub(crate) const ALONE: Part = Part::Own {
        compared: None,
        shared: false,
    };
}

/// A visitor's own request whose answer is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnRun {
    pub page: PageName,
    pub left_out: LeftOut,
    pub(crate) number: u64,
    /// Stands for the visitor.
    pub(crate) who: u32,
    /// The answer has another coding than the shared one: its bytes say nothing of the page.
    pub is_coded: bool,
    /// Its page is under trial, or it has waited in vain: it is compared, and begins no trial.
    pub is_beside_trial: bool,
    /// The visitor's earlier answer agreed with none that others are shown, for a reason that no trial has found yet.
    pub is_in_doubt: bool,
}

/// How a visitor's own request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnEnd {
    /// It could have been stored; this is its digest.
    Storable(u64),
    /// It could have been but for the session that it begins.
    OfSession(u64),
    /// It could not.
    NotStorable,
    /// It could not, and is a guest's.
    Personal,
    /// The application failed.
    Failed,
    /// Its visitor left before it was asked, or the answer broke off: others take its place.
    Left,
}

/// A trial that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialOrder {
    pub page: PageName,
    pub left_out: LeftOut,
    pub traits: TraitSet,
    /// The page begins a session.
    pub of_session: bool,
    /// Visitors wait for the result.
    pub is_awaited: bool,
    /// Stands for the visitor.
    pub(crate) who: u32,
    /// The digest of the visitor's own answer, where it may be compared with those of the trial.
    pub own: Option<u64>,
}
