//! The steps of `rewrite`, `set`, `if`, `return` and `break`, in the order in which they are
//! written.

use std::sync::Arc;

use super::ids::{LocationId, SlotId};
use super::pattern::Pattern;
use super::template::{Template, Variable};

/// One step of a level.
#[derive(Debug)]
pub enum RewriteOp {
    /// Answers the challenge of an issuer of certificates (RFC 8555 §8.3). The server's first step,
    /// where some issuer uses HTTP-01.
    AcmeChallenge,
    Set {
        target: SetTarget,
        value: Template,
    },
    Rewrite {
        pattern: Arc<Pattern>,
        replacement: Template,
        then: RewriteThen,
        /// The replacement ends in `?`: the old arguments are not appended.
        drops_arguments: bool,
        /// The replacement begins with `http://`, `https://` or `$scheme`.
        is_redirect: bool,
    },
    Return {
        status: u16,
        /// The text, or the URL of a redirect.
        value: Option<Template>,
    },
    Break,
    If {
        condition: Condition,
        then: Vec<RewriteOp>,
        /// The location that holds if the condition is true; `None` at server level.
        location: Option<LocationId>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetTarget {
    Slot(SlotId),
    /// `set $args ...`
    Args,
    /// `set $limit_rate ...`
    LimitRate,
}

/// Flag of `rewrite`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewriteThen {
    Continue,
    Last,
    Break,
    Redirect,
    Permanent,
}

/// Condition of `if`.
#[derive(Debug)]
pub enum Condition {
    /// Not empty and not `0`.
    IsTrue(Variable),
    Equals {
        left: Variable,
        right: Template,
        negated: bool,
    },
    Matches {
        subject: Variable,
        pattern: Arc<Pattern>,
        negated: bool,
    },
    File {
        test: FileTest,
        path: Template,
        negated: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileTest {
    /// `-f`
    RegularFile,
    /// `-d`
    Directory,
    /// `-e`
    Exists,
    /// `-x`
    Executable,
}
