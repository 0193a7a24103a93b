//! Purges by order: one function does them, wherever the order comes from ([`purge`]).
//!
//! ```text
//! api      POST of cache_purge_api ─┐
//! doors    PURGE, BAN, ... of        ├─► order ─► carry_out: all zones that are alive ─► report, log
//!          other software           │
//! socket   mayfly purge ────────────┤
//! folder   left while none ran ─────┘
//! ```
//!
//! A purge that compares all addresses runs on a thread of its own: an event loop goes on meanwhile.
//! A bounded number of such purges may wait, and further ones are refused with 429, to be tried again.

pub mod address_rules;
pub mod again;
pub mod api;
pub mod bearer;
pub mod by_request;
pub mod by_response;
pub mod doors;
pub mod durable;
pub mod edits;
pub mod left_behind;
pub mod on_nodes;
pub mod spellings;
mod unconfirmed;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use control::{PurgeReport, PurgeRequest, Refusal};
use http_cache::{Millis, Zone};
use parking_lot::Mutex;
use purge_order::carry_out::{self, Refill};
use purge_order::{MAX_SHORT_TARGETS, Order};

use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::functions;
use crate::log::purge_log::{self, PurgeInterface, Source};

/// Long purges that run or wait at the same time.
const MAX_PENDING: usize = 16;
/// After this time a refused client may come back, in seconds.
const RETRY_AFTER: u32 = 1;

/// A purge as it was requested.
#[derive(Clone)]
pub enum PurgeCall {
    /// By a program, in the terms of the interface.
    Program(PurgeRequest),
    /// By a request of other software.
    Order(Order),
}

/// The zones in which pages are purged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// In all zones.
    All,
    /// In the zones of this name: a purge location serves its own zone only.
    Zone(String),
}

/// Purges. When it returns, no answer that is begun afterwards shows a page that was stored or under way
/// before, not even after a crash. Other nodes, if there are any, keep that promise too.
///
/// # Errors
/// The reason why nothing was purged; or it is not confirmed that the purge is on the disk, or holds on
/// all nodes.
pub async fn purge(
    configuration: Arc<ActiveConfiguration>,
    asked: PurgeCall,
    scope: Scope,
    source: Source,
) -> Result<PurgeReport, Refusal> {
    let zones = zones(&configuration, &scope);
    let door = source.door;
    let repeated = again::after(&configuration).map(|time| (time, asked.clone(), source.clone()));
    let purged = purge_in_time(configuration.clone(), asked, scope.clone(), source).await;
    if let (Some((time, asked, source)), Ok(report)) = (repeated, &purged)
        && !report.dry_run
    {
        let configuration = configuration.clone();
        again::spawn(time, async move {
            // The first run has reported any error of the order.
            let _ = purge_in_time(configuration, asked, scope, source).await;
        });
    }
    let report = purged?;
    if !report.dry_run {
        let on_disk = durable::confirmed(&configuration, &zones, door).await;
        // A visitor waits once, whatever a response purges.
        if door != PurgeInterface::Response {
            on_nodes::confirmed(&configuration, door).await?;
        }
        on_disk?;
    }
    Ok(report)
}

/// Purges in memory, on a thread of its own where that takes long.
async fn purge_in_time(
    configuration: Arc<ActiveConfiguration>,
    asked: PurgeCall,
    scope: Scope,
    source: Source,
) -> Result<PurgeReport, Refusal> {
    if !asked.is_long() {
        return purge_now(&configuration, asked, &scope, &source);
    }
    let pending = PendingPurge::begin()?;
    let work = move || {
        // One after the other: together they would only take each other's time.
        static WALKING: Mutex<()> = Mutex::new(());
        let _alone = WALKING.lock();
        let purged = purge_now(&configuration, asked, &scope, &source);
        drop(pending);
        purged
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(purged) => purged,
        Err(_) => Err(Refusal::new(500, "the purge did not end as it should")),
    }
}

fn purge_now(
    configuration: &Arc<ActiveConfiguration>,
    asked: PurgeCall,
    scope: &Scope,
    source: &Source,
) -> Result<PurgeReport, Refusal> {
    let began = Instant::now();
    let order = match asked {
        PurgeCall::Program(request) => {
            Order::of_request(&request, &address_rules::of(configuration))?
        }
        PurgeCall::Order(order) => order,
    };
    let zones = zones(configuration, scope);
    let mut refills: Vec<Refill<'_>> = zones.iter().map(Refill::of).collect();
    let keeps = configuration.refills.then_some(&mut refills[..]);
    let mut report = carry_out::carry_out(&zones, &order, keeps, Millis(clock::now()));
    report.milliseconds = (began.elapsed().as_secs_f64() * 1e6).round() / 1e3;
    purge_log::write(configuration, source, &report);
    let is_followed = |refill: &Refill<'_>| refill.is_hit && !source.is_own_visit;
    for Refill { zone, removed, .. } in refills.into_iter().filter(is_followed) {
        (functions::table().refill)(configuration, zone, removed);
    }
    Ok(report)
}

/// Returns the zones of the scope, including zones of earlier configurations whose requests are not
/// over.
fn zones(configuration: &ActiveConfiguration, scope: &Scope) -> Vec<Arc<Zone>> {
    let mut zones = configuration.live.alive_zones.zones();
    if let Scope::Zone(name) = scope {
        zones.retain(|zone| zone.config().name == *name);
    }
    zones
}

impl PurgeCall {
    /// Like [`Order::is_long`].
    fn is_long(&self) -> bool {
        match self {
            PurgeCall::Program(request) => {
                let walks = [&request.prefixes, &request.patterns, &request.hosts];
                walks.iter().any(|list| !list.is_empty()) || request.targets() > MAX_SHORT_TARGETS
            }
            PurgeCall::Order(order) => order.is_long(),
        }
    }
}

/// A long purge that runs or waits.
struct PendingPurge;

static PENDING: AtomicUsize = AtomicUsize::new(0);

impl PendingPurge {
    fn begin() -> Result<PendingPurge, Refusal> {
        // Given back by the drop, also where it was one too many.
        let pending = PendingPurge;
        match PENDING.fetch_add(1, Ordering::Relaxed) {
            before if before < MAX_PENDING => Ok(pending),
            _ => Err(Refusal {
                retry_after: Some(RETRY_AFTER),
                ..Refusal::new(
                    429,
                    format!(
                        "{MAX_PENDING} purges by prefix, pattern or host are under way already"
                    ),
                )
            }),
        }
    }
}

impl Drop for PendingPurge {
    fn drop(&mut self) {
        PENDING.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_long_purges_wait_and_no_more() {
        let pending: Vec<PendingPurge> = (0..MAX_PENDING)
            .map(|_| PendingPurge::begin().unwrap())
            .collect();
        let refusal = PendingPurge::begin().err().unwrap();
        assert_eq!((refusal.status, refusal.retry_after), (429, Some(1)));
        drop(pending);
        assert!(PendingPurge::begin().is_ok());
    }

    #[test]
    fn only_walks_and_long_lists_leave_the_event_loop() {
        let asked =
            |json: &str| PurgeCall::Program(PurgeRequest::from_json(json.as_bytes()).unwrap());
        for (json, expected) in [
            (r#"{"urls":["https://a/"],"tags":["t"]}"#, false),
            (r#"{"everything":true}"#, false),
            (r#"{"prefixes":["https://a/"]}"#, true),
            (r#"{"patterns":["~a"]}"#, true),
            (r#"{"hosts":["a"]}"#, true),
        ] {
            assert_eq!(asked(json).is_long(), expected, "{json}");
        }
        let many = format!("{{\"tags\":[{}\"x\"]}}", "\"x\",".repeat(MAX_SHORT_TARGETS));
        assert!(asked(&many).is_long());
    }
}
