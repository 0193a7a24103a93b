//! Requests that an upstream answers, whatever is spoken to it: `fastcgi_pass`, `proxy_pass`,
//! `memcached_pass`; through the cache where there is one.
//!
//! ```text
//! pass ─► through_cache ─► storing ─┐
//!   └───► direct ───────────────────┴► fetch_spec ─► fastcgi, proxy, memcached
//!                                    └► response
//! ```

pub mod direct;
pub mod early_hints;
pub mod fetch_log;
pub mod fetch_purpose;
pub mod fetch_spec;
mod file_copy;
pub mod response;
mod tunnel;

use std::sync::Arc;

use http_cache::Millis;
use site::{LogLevel, Pass, Protocol};

use crate::base::clock;
use crate::content::through_cache::policy;
use crate::content::through_cache::policy::CachePlan;
use crate::content::through_cache::purge::purge;
use crate::content::{proxy, through_cache};
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::handled::Handled;
use crate::exchange::request::{Method, Request};
use crate::log::error_log;
use crate::route::pattern;
use crate::transport::client::ClientSide;

use direct::direct;
use response::of_cache;

pub use fetch_spec::take_body;

/// What can be said without waiting for anybody.
pub enum AtOnce<'a> {
    Handled(Handled),
    /// Somebody has to be purpose.
    Must(CachePlan<'a>),
}

/// Plans, and answers if memory has a fresh answer.
pub fn at_once<'a>(
    request: &mut Request,
    configuration: &'a ActiveConfiguration,
    pass: &'a Pass,
) -> AtOnce<'a> {
    match &pass.protocol {
        Protocol::Http(proxy) => proxy::settle_url(request, &pass.target, proxy),
        Protocol::Memcached(_) if !matches!(request.method, Method::Get | Method::Head) => {
            return AtOnce::Handled(Handled::Status(405));
        }
        Protocol::Memcached(_) | Protocol::FastCgi(_) => {}
    }
    let plan = policy::plan(request, configuration, pass);
    if pattern::has_failed(request) {
        return AtOnce::Handled(Handled::Status(500));
    }
    match plan {
        CachePlan::Purge { zone, keys } => AtOnce::Handled(purge(request, zone, &keys)),
        CachePlan::UnknownZone(name) => {
            let message = format_args!("cache \"{name}\" not found");
            error_log::request(request, LogLevel::Error, message);
            AtOnce::Handled(Handled::Status(500))
        }
        CachePlan::Use(plan) => match through_cache::fresh(request, &plan) {
            Some(reply) => {
                request.cache.key = plan.key;
                AtOnce::Handled(of_cache(request, pass, reply))
            }
            None => AtOnce::Must(CachePlan::Use(plan)),
        },
        plan => AtOnce::Must(plan),
    }
}

/// Answers with what the upstream says, through the cache where there is one.
pub async fn serve(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: CachePlan<'_>,
    client: &mut ClientSide,
) -> Handled {
    match plan {
        CachePlan::Off => direct(request, pass, client).await,
        CachePlan::UnknownZone(_) => Handled::Status(500),
        CachePlan::Purge { zone, keys } => purge(request, zone, &keys),
        CachePlan::Invalidate(invalidation) => {
            let handled = direct(request, pass, client).await;
            if let Handled::Reply(reply) = &handled
                && (200..400).contains(&reply.head.status)
            {
                invalidation.carry_out(Millis(clock::now()));
            }
            handled
        }
        CachePlan::Use(plan) => {
            request.cache.key.clone_from(&plan.key);
            let began = clock::now();
            let handled = Box::pin(through_cache::serve(request, pass, plan, client)).await;
            if let Some(reason) = request.cache.reason {
                let took = clock::now().saturating_sub(began);
                error_log::not_stored(request, reason, took);
            }
            match handled {
                Handled::Reply(reply) => of_cache(request, pass, reply),
                handled => handled,
            }
        }
    }
}
