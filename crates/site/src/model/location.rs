//! The locations of a server, and the tree in which a path finds one.

use std::sync::Arc;

use super::byte_map::ByteMap;
use super::ids::LocationId;
use super::pattern::Pattern;
use super::rewrite::RewriteOp;
use super::settings::Settings;

/// A `location`, an `if` block inside one, or the server's own level.
#[derive(Debug)]
pub struct Location {
    /// The text after `location`, for messages; empty for the server's level.
    pub name: String,
    pub rewrite: Vec<RewriteOp>,
    pub settings: Arc<Settings>,
    /// `limit_except`: the location for other methods.
    pub limit_except: Option<LimitExcept>,
    /// Locations nested in this one.
    pub inner: Locations,
    /// Length of the matched prefix, which `alias` replaces. `None` for pattern and named
    /// locations.
    pub prefix_bytes: Option<usize>,
    /// `internal`.
    pub internal: bool,
    /// `location @name`.
    pub named: bool,
    /// A prefix location ending in `/` with a handler that passes requests on:
    /// the same path without the slash is redirected to it (nginx's auto_redirect).
    pub auto_redirect: bool,
    /// `alias` is in a location with a pattern, so that its value is the whole path.
    pub is_pattern: bool,
}

/// `limit_except METHOD ... { }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitExcept {
    /// The methods that are not limited; GET includes HEAD.
    pub methods: Vec<&'static str>,
    /// A location of its own for all other methods.
    pub location: LocationId,
}

/// One level of the tree. nginx's order: exact, then the longest prefix, then
/// (unless that prefix forbids it) patterns in order of appearance.
#[derive(Debug, Default)]
pub struct Locations {
    pub exact: ByteMap<LocationId>,
    /// Sorted by length, longest first.
    pub prefixes: Vec<PrefixLocation>,
    pub patterns: Vec<(Arc<Pattern>, LocationId)>,
    /// Only at a server's top level; names with their `@`.
    pub named: ByteMap<LocationId>,
}

impl Locations {
    /// Is there no location that a path could match?
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty() && self.patterns.is_empty()
    }
}

#[derive(Debug)]
pub struct PrefixLocation {
    pub prefix: Box<[u8]>,
    /// `^~`: no pattern is tried once this is the longest prefix.
    pub skips_patterns: bool,
    pub location: LocationId,
}
