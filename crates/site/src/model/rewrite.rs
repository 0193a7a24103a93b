//! The rewrite module's directives, in the order written.

use std::sync::Arc;

use super::{ByteMap, LocationId, Pattern, SlotId, Template, Variable};

/// One step of a level's rewrite program.
#[derive(Debug)]
pub enum RewriteOp {
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
        /// Text, or for redirects the location.
        value: Option<Template>,
    },
    Break,
    If {
        condition: Condition,
        then: Vec<RewriteOp>,
        /// The settings in force once the condition held; `None` at server level.
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

/// `map SOURCE $name { ... }`.
#[derive(Debug)]
pub struct Map {
    pub source: Template,
    /// Do not remember the result for the rest of the request.
    pub volatile: bool,
    /// Keys in lower case.
    pub exact: ByteMap<Template>,
    /// With `hostnames`: as in [`super::ServerNames`], longest first.
    pub leading_wildcard: Vec<(Box<[u8]>, Template)>,
    pub trailing_wildcard: Vec<(Box<[u8]>, Template)>,
    pub hostnames: bool,
    pub patterns: Vec<(Arc<Pattern>, Template)>,
    pub default: Template,
}

/// `geo [$address] $name { ... }`.
#[derive(Debug)]
pub struct Geo {
    /// Where the address comes from; `$remote_addr` by default.
    pub source: Variable,
    /// Networks, longest prefix first.
    pub networks: Vec<(super::Network, Box<[u8]>)>,
    /// `ranges`: first and last IPv4 address, sorted, not overlapping.
    pub ranges: Vec<(u32, u32, Box<[u8]>)>,
    pub default: Box<[u8]>,
    /// `proxy`, `proxy_recursive`.
    pub proxies: Vec<super::Network>,
    pub proxy_recursive: bool,
    pub volatile: bool,
}

/// `split_clients SOURCE $name { ... }`.
#[derive(Debug)]
pub struct SplitClients {
    pub source: Template,
    /// Upper bound of the hash for each part, and its value.
    pub parts: Vec<(u32, Template)>,
}
