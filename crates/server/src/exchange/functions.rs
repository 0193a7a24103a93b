//! What lower floors call of those above them: plain functions in tables that are put
//! together at the top of the crate and held by the configuration in force.

use std::pin::Pin;
use std::sync::Arc;

use control::{Entry, EntryRequest, FoundEntries, Refusal, SearchRequest};
use http_cache::{MostWanted, Zone};

use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::handled::StageEnd;
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;
use crate::exchange::variable_table::VariableTable;

/// The functions of the server.
pub struct Functions {
    pub variables: VariableTable,
    /// The function of each directive that [`site::directives::content_handlers`] names.
    pub content_handlers: &'static [(&'static str, ContentHandler)],
    /// Serves a request that the server makes itself.
    pub serve: Serve,
    /// Shows what is stored.
    pub looking: StoreFunctions,
    /// Fetches the most wanted of what a purge has hit in a zone.
    pub refill: fn(&Arc<ActiveConfiguration>, &Arc<Zone>, MostWanted),
    /// Writes the access log's lines about a request that has ended.
    pub log_access: fn(&mut Request),
}

/// A look at what is stored, as the control socket gives it.
pub struct StoreFunctions {
    pub search: Search,
    pub entry: fn(&ActiveConfiguration, &EntryRequest) -> Result<Entry, Refusal>,
    /// What is stored under this id.
    pub stored: fn(&ActiveConfiguration, &EntryRequest) -> Result<StoredIdentity, Refusal>,
}

/// By what a stored response is purged.
pub struct StoredIdentity {
    /// The name of its zone.
    pub zone: String,
    pub key: Box<[u8]>,
    /// Host, path and arguments, as they are; `None` where it has none.
    pub address: Option<Vec<u8>>,
    /// The same as people are shown it.
    pub shown: String,
}

/// Searches the zones, a piece at a time.
pub type Search = for<'a> fn(Arc<ActiveConfiguration>, &'a SearchRequest) -> SearchFuture<'a>;

/// A search under way.
pub type SearchFuture<'a> =
    Pin<Box<dyn Future<Output = Result<FoundEntries, Refusal>> + Send + 'a>>;

/// Makes the response of a location, at once.
pub type ContentHandler = fn(&mut Request) -> StageEnd;

/// Makes a response, for as long as it takes; `None`: nothing is sent.
pub type Serve =
    for<'a> fn(&'a mut Request) -> Pin<Box<dyn Future<Output = Option<Box<Reply>>> + Send + 'a>>;
