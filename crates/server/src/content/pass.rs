//! Requests that an upstream answers, whatever is spoken to it: `fastcgi_pass`, `proxy_pass`,
//! `memcached_pass`; through the cache where there is one.
//!
//! ```text
//! decide ── answered from memory, or purged
//!   └ ask ─► through_cache ─► storing ─┐
//!      └───► direct ──────────────────┴► fetch_spec ─► fastcgi, proxy, memcached
//!                                     └► response
//! ```

pub mod ask;
pub mod direct;
pub mod early_hints;
pub mod fetch_log;
pub mod fetch_purpose;
pub mod fetch_spec;
mod file_copy;
mod guest_write;
pub mod learned;
pub mod loop_detection;
mod page_fetch;
mod passed_body;
pub mod response;
mod tunnel;
pub mod turn;

use std::sync::Arc;

use cache_decision::{Action, PurgeReach};
use http_cache::{Reason, Zone};
use site::{LogLevel, Pass, Protocol};

use crate::content::own_machine;
use crate::content::own_visit;
use crate::content::proxy;
use crate::content::purging::api::refused;
use crate::content::purging::by_request::{self, LocationPurge};
use crate::content::purging::spellings;
use crate::content::through_cache;
use crate::content::through_cache::CacheMiss;
use crate::content::through_cache::policy;
use crate::content::through_cache::policy::{CachePlan, Removal};
use crate::content::through_cache::purge_keys::Invalidation;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::handled::StageEnd;
use crate::exchange::own_visit::NotAsked;
use crate::exchange::request::{Method, Request};
use crate::exchange::request_route::ProxyUrl;
use crate::log::error_log;
use crate::route::pattern;
use purge_order::Target;

use response::of_cache;

pub use fetch_spec::{take_body, wants_body};

/// A decision about a request that is made without waiting.
pub enum PassDecision<'a> {
    Handled(StageEnd),
    UpstreamNeeded(UpstreamPlan<'a>),
    /// A purge that takes its time.
    PurgeNeeded(Box<LocationPurge>),
}

/// How the upstream is asked.
pub enum UpstreamPlan<'a> {
    /// The cache has no part in it.
    Direct,
    /// The request changes something: stored responses for the same target go once the upstream
    /// has agreed to it.
    Invalidate(Invalidation<'a>),
    ThroughCache(Box<CacheMiss<'a>>),
}

/// Decides what the cache may do, and answers if memory has a fresh answer.
pub fn decide<'a>(
    request: &mut Request,
    configuration: &'a ActiveConfiguration,
    pass: &'a Pass,
) -> PassDecision<'a> {
    match aim(request, pass) {
        Ok(url) => request.route.proxy_url = url,
        Err(handled) => return PassDecision::Handled(handled),
    }
    let plan = policy::plan(request, configuration, pass);
    if pattern::has_failed(request) {
        return PassDecision::Handled(StageEnd::Status(500));
    }
    match plan {
        CachePlan::Use(plan) => match through_cache::look_up(request, &plan) {
            Ok(reply) => {
                request.cache.key = plan.key.into_bytes();
                PassDecision::Handled(of_cache(request, pass, reply))
            }
            Err(found) => {
                let miss = CacheMiss::new(request, pass, plan, *found);
                upstream_needed(request, UpstreamPlan::ThroughCache(Box::new(miss)))
            }
        },
        CachePlan::NoLookup(
            _,
            Some(Removal::Purge {
                zone,
                targets,
                reach,
            }),
        ) => purge(request, pass, zone, (targets, reach)),
        CachePlan::NoLookup(_, Some(Removal::Invalidation(invalidation))) => {
            upstream_needed(request, UpstreamPlan::Invalidate(invalidation))
        }
        CachePlan::NoLookup(decision, None) => match decision.action {
            Action::RefusePurge => PassDecision::Handled(refuse_purge(request)),
            _ => upstream_needed(request, UpstreamPlan::Direct),
        },
        CachePlan::UnknownZone(name) => {
            let message = format_args!("cache \"{name}\" not found");
            error_log::request(request, LogLevel::Error, message);
            PassDecision::Handled(StageEnd::Status(500))
        }
    }
}

fn purge<'a>(
    request: &Request,
    pass: &Pass,
    zone: &Arc<Zone>,
    purged: (Vec<Target>, PurgeReach),
) -> PassDecision<'a> {
    // A sitemap names pages that the server asks for; it purges nothing.
    if request.is_own_visit() {
        own_visit::note(request, NotAsked::NotKept(Reason::Purge));
        return PassDecision::Handled(own_visit::NOT_ASKED);
    }
    if !request.is_clients_own() {
        return PassDecision::Handled(StageEnd::Status(403));
    }
    let (mut targets, reach) = purged;
    if let Some(rules) = &pass.cache {
        spellings::add(request, rules, &mut targets);
    }
    let purged = (targets, reach);
    match by_request::begin(request, pass, zone, purged) {
        Ok(handled) => PassDecision::Handled(handled),
        Err(purge) => PassDecision::PurgeNeeded(purge),
    }
}

/// The answer to a purge of a client that may not purge.
fn refuse_purge(request: &Request) -> StageEnd {
    match own_machine::purge_reach(request) {
        Err(stranger) => refused(&stranger.refusal(request)),
        Ok(_) => StageEnd::Status(403),
    }
}

/// Returns the URL where the request would go, if that has variables, or why it goes nowhere.
#[inline]
pub fn aim(request: &Request, pass: &Pass) -> Result<Option<Box<ProxyUrl>>, StageEnd> {
    match &pass.protocol {
        Protocol::Http(proxy) => Ok(proxy::url(request, &pass.target, proxy)),
        Protocol::Memcached(_) if !matches!(request.route.method, Method::Get | Method::Head) => {
            Err(StageEnd::Status(405))
        }
        Protocol::Memcached(_) | Protocol::FastCgi(_) => Ok(None),
    }
}

/// An upstream is asked, unless the server asks itself and has no use for the answer.
fn upstream_needed<'a>(request: &Request, plan: UpstreamPlan<'a>) -> PassDecision<'a> {
    let miss = match &plan {
        UpstreamPlan::ThroughCache(miss) => Some(&**miss),
        UpstreamPlan::Direct | UpstreamPlan::Invalidate(_) => None,
    };
    match own_visit::declines(request, miss) {
        true => PassDecision::Handled(own_visit::NOT_ASKED),
        false => PassDecision::UpstreamNeeded(plan),
    }
}
