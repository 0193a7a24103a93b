//! Content that takes waiting: for a request's body, or for an upstream.

use std::sync::Arc;

use site::{Dashboard, Pass, PurgeApi};
use transport::client::ClientSide;
use transport::ready_or_pending::made_in_box;

use crate::content::dashboard;
use crate::content::pass::ask::ask;
use crate::content::pass::{self, PassDecision, UpstreamPlan};
use crate::content::purging::api;
use crate::content::purging::by_request::LocationPurge;
use crate::content::slice;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::handled::StageEnd;
use crate::exchange::request::Request;

/// Content that takes waiting.
pub enum PendingContent<'a> {
    /// The key may be made of the request's body, which has to be read first.
    Body(&'a Arc<Pass>),
    /// An upstream has to be asked.
    Upstream(&'a Arc<Pass>, Box<UpstreamPlan<'a>>),
    /// `cache_purge_api`
    PurgeApi(&'a PurgeApi),
    /// `dashboard`
    Dashboard(&'a Dashboard),
    /// A purge that takes longer than others may wait for.
    Purge(Box<LocationPurge>),
}

impl PendingContent<'_> {
    /// Makes the content. To ask an upstream takes a large future, which only requests that do so
    /// pay for.
    pub async fn end(
        self,
        request: &mut Request,
        client: &mut ClientSide,
        configuration: &ActiveConfiguration,
    ) -> StageEnd {
        let handled = match self {
            PendingContent::PurgeApi(api) => Box::pin(api::answer(request, client, api)).await,
            PendingContent::Dashboard(of) => Box::pin(dashboard::answer(request, of)).await,
            PendingContent::Purge(purge) => Box::pin(purge.carry_out(request)).await,
            PendingContent::Body(pass) => {
                if pass::wants_body(request, pass) {
                    let taken = Box::pin(pass::take_body(request, pass, client)).await;
                    if let Err(status) = request.set_body(taken) {
                        return StageEnd::Status(status);
                    }
                }
                match pass::decide(request, configuration, pass) {
                    PassDecision::Handled(handled) => handled,
                    PassDecision::PurgeNeeded(purge) => Box::pin(purge.carry_out(request)).await,
                    PassDecision::UpstreamNeeded(plan) => {
                        made_in_box(|| ask(request, pass, plan, client)).await
                    }
                }
            }
            PendingContent::Upstream(pass, plan) => {
                made_in_box(|| ask(request, pass, *plan, client)).await
            }
        };
        slice::in_slices(request, handled)
    }
}
