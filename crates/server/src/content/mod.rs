//! Who makes the response: one file for each kind of content.

pub mod autoindex;
pub mod dashboard;
pub mod empty_gif;
pub mod fastcgi;
pub mod files;
mod filling_body;
pub mod memcached;
pub mod metrics;
pub mod mirror;
pub mod own_machine;
pub mod own_visit;
pub mod pass;
mod pending;
pub mod proxy;
pub mod purging;
pub mod request_body;
pub mod returned;
pub mod robots;
pub mod slice;
pub mod stub_status;
pub mod through_cache;

use site::Content;
use transport::client::ClientSide;

use crate::content::pass::PassDecision;
use crate::content::through_cache::policy;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::handled::StageEnd;
use crate::exchange::request::Request;

pub use pending::PendingContent;

/// How far the content has been made.
pub enum ContentStep<'a> {
    Handled(StageEnd),
    Pending(PendingContent<'a>),
}

/// Makes the response of the location that the request is in, as far as that needs no waiting.
#[inline]
pub fn begin<'a>(request: &mut Request, configuration: &'a ActiveConfiguration) -> ContentStep<'a> {
    let location = configuration.locations.get(request.compiled_location_id());
    let handled = match &location.settings.content {
        Content::Files => files::serve(request),
        Content::Pass(pass) if policy::asks_by_body(&request.route, pass) => {
            return ContentStep::Pending(PendingContent::Body(pass));
        }
        Content::Pass(pass) => match pass::decide(request, configuration, pass) {
            PassDecision::Handled(handled) => handled,
            PassDecision::PurgeNeeded(purge) => {
                return ContentStep::Pending(PendingContent::Purge(purge));
            }
            PassDecision::UpstreamNeeded(plan) => {
                let plan = Box::new(plan);
                return ContentStep::Pending(PendingContent::Upstream(pass, plan));
            }
        },
        Content::PurgeApi(_)
        | Content::Dashboard(_)
        | Content::Handler("metrics" | "stub_status")
            if !request.is_clients_own() =>
        {
            StageEnd::Status(403)
        }
        Content::PurgeApi(api) => {
            return ContentStep::Pending(PendingContent::PurgeApi(api));
        }
        Content::Dashboard(dashboard) => {
            return ContentStep::Pending(PendingContent::Dashboard(dashboard));
        }
        Content::Handler(name) => match handler(name) {
            Some(handle) => handle(request),
            None => StageEnd::Status(500),
        },
    };
    ContentStep::Handled(slice::in_slices(request, handled))
}

/// The function of a directive whose presence alone decides who makes the response.
fn handler(directive: &str) -> Option<fn(&Request) -> StageEnd> {
    match directive {
        "empty_gif" => Some(empty_gif::handle),
        "metrics" => Some(metrics::handle),
        "stub_status" => Some(stub_status::handle),
        _ => None,
    }
}

/// Makes the response, waiting for an upstream or the disk if need be.
pub async fn make(request: &mut Request, client: &mut ClientSide) -> StageEnd {
    let configuration = request.configuration.clone();
    match begin(request, &configuration) {
        ContentStep::Handled(handled) => handled,
        ContentStep::Pending(pending) => pending.end(request, client, &configuration).await,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_content_handler_of_the_directive_table_has_a_function() {
        for directive in site::directives::content_handlers() {
            assert!(super::handler(directive).is_some(), "{directive}");
        }
    }
}
