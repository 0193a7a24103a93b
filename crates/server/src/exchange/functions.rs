//! What lower floors call of those above them: plain functions in tables that are put
//! together at the top of the crate and held by the configuration in force.

use std::pin::Pin;
use std::sync::Arc;

use http_cache::{MostWanted, Zone};

use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::handled::Handled;
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
    /// Fetches the most wanted of what a purge has hit in a zone.
    pub refill: fn(&Arc<ActiveConfiguration>, &Arc<Zone>, MostWanted),
    /// Writes the access log's lines about a request that has ended.
    pub log_access: fn(&mut Request),
}

/// Makes the response of a location, at once.
pub type ContentHandler = fn(&mut Request) -> Handled;

/// Makes a response, for as long as it takes; `None` where nothing is to be sent.
pub type Serve =
    for<'a> fn(&'a mut Request) -> Pin<Box<dyn Future<Output = Option<Box<Reply>>> + Send + 'a>>;
