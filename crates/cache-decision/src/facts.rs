//! The facts of a request and of its upstream that a decision needs. A method is called only where
//! its answer counts, so that no variable is evaluated in vain.

use http_cache::Reason;
use http_semantics::Method;
use page_evidence::Standing;
use site::Template;

use crate::audience::Audience;

/// The facts of a request before the lookup.
pub trait RequestFacts {
    /// Its method, which an internal redirect may have changed.
    fn method(&self) -> Method;

    /// Returns where its body is.
    fn body(&self) -> BodyPlace;

    /// Is the value of one of the templates neither empty nor `0`?
    fn is_any_true(&mut self, conditions: &[Template]) -> bool;

    /// Does one of the conditions of a purge hold? As [`RequestFacts::is_any_true`], and `off` does not: a `map` of methods to `on` and
    /// `off` would let each request purge its page.
    fn asks_to_purge(&mut self, conditions: &[Template]) -> bool;

    /// Was it made on this machine, for no other?
    fn is_made_here(&self) -> bool;

    /// Returns which pages it may purge, if any.
    fn purge_reach(&self) -> Option<PurgeReach>;

    /// Is the application sent its body (`*_pass_request_body`)?
    fn passes_body(&self) -> bool;

    /// Does it ask for another protocol, and is that sent on?
    fn passes_upgrade(&mut self) -> bool;

    /// Makes its key, and returns who may be shown its response.
    ///
    /// # Errors
    /// The reason why the response is for one visitor.
    fn audience(&mut self) -> Result<Audience, Reason>;

    /// With `cache_shared`: may its visitor be shown the shared answer, as far as was seen? Asked after
    /// [`RequestFacts::audience`], which has made the key.
    fn standing(&mut self) -> Standing;

    /// Has its visitor written something a moment ago (`cache_read_your_writes`)?
    fn is_writer(&self) -> bool;

    /// Returns how stored responses may be used: are the purges of other nodes known?
    fn stored_use(&mut self) -> StoredUse;

    /// The value of its field `Range`.
    fn range(&self) -> Option<&[u8]>;
}

/// The permitted use of stored responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredUse {
    /// Use them.
    Allowed,
    /// Use them, and say that a purge of another node may be missing (`cache_nodes_lost`).
    WithoutPromise,
    /// Use none, nor a fetch that has begun.
    Forbidden,
}

/// The place of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyPlace {
    /// It has none, or one of no bytes.
    None,
    /// It was read, and a key can be made of it.
    Memory,
    /// In a file, or on its way.
    Elsewhere,
}

/// The pages that a client of `*_cache_purge` may purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeReach {
    Zone,
    /// Pages stored for the host of the request: no `server_name` names it. An application behind
    /// `server_name _` purges its own pages so.
    OwnHost,
}

/// The facts of the upstream after a lookup that found a stale response.
pub trait UpstreamFacts {
    /// Returns how many requests wait for it.
    fn queue_length(&self) -> usize;

    /// Does a crawler ask while visitors wait? It gets a stored response, if that is not too old.
    fn is_crawler_in_the_way(&self) -> bool;

    /// Has it no room for another refresh? That is so in a crowd at a large store: the next
    /// visitor's request may find room.
    fn leaves_out_refresh(&self) -> bool;
}
