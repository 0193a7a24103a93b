//! The properties of a request that its fetch needs.

use std::net::IpAddr;
use std::sync::Arc;

use clock::SharedDeadline;
use fair_queue::Turn;
use http_cache::Progress;
use transport::request_body::RequestBody;
use upstream::{Class, Group, LocalEnd};

use super::context::FetchContext;
use super::hint_sender::HintSender;
use super::outgoing_body::StreamedBody;
use super::upstream_request::UpstreamRequest;
use crate::naming::Lookup;

/// Everything that a fetch needs of its request; owns its parts, so that it
/// outlives the client.
pub struct FetchSpec {
    pub context: Arc<FetchContext>,
    pub to: FetchTarget,
    pub request: UpstreamRequest,
    pub is_head: bool,
    pub is_idempotent: bool,
    pub body: RequestBody,
    /// The body while it arrives; then there is only one try.
    pub streaming: Option<StreamedBody>,
    /// The class of the requests that wait for it.
    pub class: Class,
    /// The timer of the task that waits.
    pub deadline: SharedDeadline,
    /// `*_limit_rate`: bytes of the response read in a second; 0: no limit.
    pub rate: u64,
    /// The channel for an upstream's 103s; without it they are dropped.
    pub hints: Option<HintSender>,
    /// Messages of the error stream that begin with this name tags.
    pub tag_mark: Option<Box<str>>,
    /// The progress of the fetch for others that wait for it; they learn when
    /// its turn has come.
    pub progress: Option<Progress>,
}

/// The destination of a fetch.
pub struct FetchTarget {
    pub group: Arc<Group>,
    /// The group has no servers before its name is looked up.
    pub lookup: Option<Lookup>,
    /// The group's servers are PHP pools of our own, restarted when they die.
    pub own_pool: bool,
    pub hash_key: Option<Vec<u8>>,
    pub client: Option<IpAddr>,
    /// The turn of the request, if the group distinguishes turns.
    pub turn: Option<Turn>,
    /// Encrypted, with a server of this name.
    pub tls: Option<(tls_client::Connector, String)>,
    /// `*_bind`, `*_socket_keepalive`
    pub local: LocalEnd,
}

impl FetchSpec {
    /// Whether the request may be sent again once a server may have begun with
    /// it.
    pub(super) fn may_repeat(&self) -> bool {
        self.is_idempotent || self.context.pass.exchange.next_upstream.non_idempotent
    }
}
