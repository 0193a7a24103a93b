//! Functions that lower modules call in modules above them: plain functions in tables
//! that are put together at the top of the crate. A process has one of each.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use control::{Entry, EntryRequest, FoundEntries, Refusal, SearchRequest};
use http_cache::{MostWanted, Zone};

use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;
use crate::exchange::variable_table::VariableTable;

/// The functions of the server.
pub struct Functions {
    pub variables: VariableTable,
    /// Serves a request that the server makes itself.
    pub serve: Serve,
    /// Shows stored responses.
    pub looking: StoreFunctions,
    /// Fetches the most wanted of the pages that a purge has hit in a zone.
    pub refill: fn(&Arc<ActiveConfiguration>, &Arc<Zone>, MostWanted),
    /// Writes the access log's lines about a request that has ended.
    pub log_access: fn(&Request),
}

static TABLE: OnceLock<&'static Functions> = OnceLock::new();

/// The functions of the program.
#[inline]
pub fn table() -> &'static Functions {
    let table = TABLE.get();
    table.expect("the table is there before the first configuration")
}

/// Makes this the functions of the program.
pub fn set_table(table: &'static Functions) {
    TABLE.get_or_init(|| table);
}

/// Functions that look into the store, in the terms of the control socket.
pub struct StoreFunctions {
    pub search: Search,
    pub entry: fn(&ActiveConfiguration, &EntryRequest) -> Result<Entry, Refusal>,
    /// Returns the identity of the response stored under this id.
    pub stored: fn(&ActiveConfiguration, &EntryRequest) -> Result<StoredIdentity, Refusal>,
}

/// The identity by which a stored response is purged.
pub struct StoredIdentity {
    /// The name of its zone.
    pub zone: String,
    pub key: Box<[u8]>,
    /// Host, path and arguments, as they are; `None` if it has none.
    pub address: Option<Vec<u8>>,
    /// Host, path and arguments, as people are shown them.
    pub shown: String,
}

/// Searches the zones, a piece at a time.
pub type Search = for<'a> fn(Arc<ActiveConfiguration>, &'a SearchRequest) -> SearchFuture<'a>;

/// A search under way.
pub type SearchFuture<'a> =
    Pin<Box<dyn Future<Output = Result<FoundEntries, Refusal>> + Send + 'a>>;

/// Makes a response, for as long as it takes; `None`: nothing is sent.
pub type Serve =
    for<'a> fn(&'a mut Request) -> Pin<Box<dyn Future<Output = Option<Box<Reply>>> + Send + 'a>>;
