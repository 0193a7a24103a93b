//! Connects the modules of the server: fills the tables of functions that lower modules call
//! without depending on the modules that implement them.

use std::sync::Arc;

use site::Site;

use crate::access::{auth_basic, limit_conn, limit_req, referer, secure_link};
use crate::content::{fastcgi, files, proxy, slice, stub_status, through_cache};
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::functions::{self, Functions, StoreFunctions};
use crate::exchange::variable_table::VariableTable;
use crate::exchange::variables;
use crate::explain;
use crate::log::{access_log, times, traces};
use crate::pipeline;
use crate::respond::user_id;
use crate::route::tables;
use crate::warming::refill;
use live_state::{BuildError, Resources};
use upstream_fetch::trace;

static FUNCTIONS: Functions = Functions {
    variables: VariableTable::new(
        &[
            variables::connection::VARIABLES,
            variables::files::VARIABLES,
            variables::process::VARIABLES,
            variables::received::VARIABLES,
            variables::sent::VARIABLES,
            variables::tls::VARIABLES,
            times::VARIABLES,
            traces::VARIABLES,
            auth_basic::VARIABLES,
            limit_conn::VARIABLES,
            limit_req::VARIABLES,
            referer::VARIABLES,
            secure_link::VARIABLES,
            fastcgi::VARIABLES,
            files::VARIABLES,
            proxy::VARIABLES,
            slice::range::VARIABLES,
            user_id::VARIABLES,
            stub_status::VARIABLES,
            through_cache::VARIABLES,
        ],
        trace::VARIABLES,
        tables::TABLES,
    ),
    serve: |request| Box::pin(pipeline::serve_internal(request)),
    looking: StoreFunctions {
        search: |configuration, request| Box::pin(explain::search(configuration, request)),
        entry: explain::entry,
        stored: explain::stored,
    },
    refill: refill::begin,
    log_access: access_log::log,
};

/// Makes a site ready to serve, carrying over unchanged parts from `previous`.
///
/// # Errors
/// The site cannot be served.
pub fn configuration(
    site: Site,
    resources: Resources,
    previous: Option<&ActiveConfiguration>,
) -> Result<Arc<ActiveConfiguration>, BuildError> {
    functions::set_table(&FUNCTIONS);
    ActiveConfiguration::build(site, resources, previous)
}
