//! Who makes the response: one file for each kind of content.

pub mod autoindex;
pub mod empty_gif;
pub mod fastcgi;
pub mod files;
mod filling_body;
pub mod memcached;
pub mod mirror;
pub mod pass;
pub mod proxy;
mod request_body;
pub mod returned;
pub mod slice;
pub mod stub_status;
pub mod through_cache;

use std::sync::Arc;

use site::{Content, Pass};

use crate::content::pass::{PassDecision, UpstreamPlan};
use crate::content::through_cache::policy;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::handled::Handled;
use crate::exchange::request::Request;
use crate::transport::client::ClientSide;

/// How far the content has been made.
pub enum ContentStep<'a> {
    Handled(Handled),
    Pending(PendingContent<'a>),
}

/// Content that somebody has to be waited for.
pub enum PendingContent<'a> {
    /// The key may be made of the request's body, which is to be taken first.
    Body(&'a Arc<Pass>),
    /// Somebody has to be asked.
    Upstream(&'a Arc<Pass>, Box<UpstreamPlan<'a>>),
}

/// Makes the response of the location that the request is in, as far as nobody has to be
/// waited for.
#[inline]
pub fn begin<'a>(request: &mut Request, configuration: &'a ActiveConfiguration) -> ContentStep<'a> {
    let location = configuration.locations.get(request.compiled_location_id());
    let handled = match &location.settings.content {
        Content::Files => files::serve(request),
        Content::Pass(pass) if policy::asks_by_body(request, pass) => {
            return ContentStep::Pending(PendingContent::Body(pass));
        }
        Content::Pass(pass) => match pass::decide(request, configuration, pass) {
            PassDecision::Handled(handled) => handled,
            PassDecision::UpstreamNeeded(plan) => {
                let plan = Box::new(plan);
                return ContentStep::Pending(PendingContent::Upstream(pass, plan));
            }
        },
        Content::Handler(_) => match location.content_handler {
            Some(handle) => handle(request),
            None => Handled::Status(500),
        },
    };
    ContentStep::Handled(in_slices(request, handled))
}

/// The same, for as long as it takes.
pub async fn make(request: &mut Request, client: &mut ClientSide) -> Handled {
    let configuration = request.configuration.clone();
    match begin(request, &configuration) {
        ContentStep::Handled(handled) => handled,
        ContentStep::Pending(pending) => pending.end(request, client, &configuration).await,
    }
}

impl PendingContent<'_> {
    /// The rest. To ask somebody is a large future, which only those who do pay for.
    pub async fn end(
        self,
        request: &mut Request,
        client: &mut ClientSide,
        configuration: &ActiveConfiguration,
    ) -> Handled {
        let handled = match self {
            PendingContent::Body(pass) => {
                if let Err(status) = Box::pin(pass::take_body(request, pass, client)).await {
                    return Handled::Status(status);
                }
                match pass::decide(request, configuration, pass) {
                    PassDecision::Handled(handled) => handled,
                    PassDecision::UpstreamNeeded(plan) => {
                        Box::pin(pass::serve(request, pass, plan, client)).await
                    }
                }
            }
            PendingContent::Upstream(pass, plan) => {
                Box::pin(pass::serve(request, pass, *plan, client)).await
            }
        };
        in_slices(request, handled)
    }
}

#[inline]
fn in_slices(request: &mut Request, handled: Handled) -> Handled {
    match request.settings().slice_bytes {
        0 => handled,
        _ => slice::gather(request, handled),
    }
}
