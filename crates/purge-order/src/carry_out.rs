//! An order, done: each target in each zone.

use std::sync::Arc;

use control::{PurgeReport, TargetReport, ZoneReport};
use http_cache::{Millis, MostWanted, PurgeMode, PurgeTarget, Zone};

use crate::order::Order;

/// Pages that are fetched again after a purge. Their keys and addresses are kept for as long: some
/// 200 bytes each.
const MAX_REFILLED: usize = 1000;

/// The facts of a purge in a zone that are needed to fetch its pages again.
pub struct Refill<'a> {
    pub zone: &'a Arc<Zone>,
    /// The pages that the purge removed from the zone.
    pub removed: MostWanted,
    pub is_hit: bool,
}

impl<'a> Refill<'a> {
    /// Makes a refill before any page is purged.
    pub fn of(zone: &'a Arc<Zone>) -> Refill<'a> {
        Refill {
            zone,
            removed: MostWanted::new(MAX_REFILLED),
            is_hit: false,
        }
    }
}

/// Purges, or counts where that is all. `refills` are for the same zones, if pages are fetched
/// again. The caller measures the time.
pub fn carry_out(
    zones: &[Arc<Zone>],
    order: &Order,
    mut refills: Option<&mut [Refill<'_>]>,
    now: Millis,
) -> PurgeReport {
    let mode = match order.soft {
        true => PurgeMode::Soft,
        false => PurgeMode::Hard,
    };
    let mut purge = |target: PurgeTarget<'_>| -> usize {
        let one = |(at, zone): (usize, &Arc<Zone>)| {
            if order.dry_run {
                return zone.count(target);
            }
            let mut refill = refills.as_mut().and_then(|refills| refills.get_mut(at));
            if let Some(refill) = &mut refill {
                zone.add_wanted(target, &mut refill.removed, now);
            }
            let count = zone.purge(target, mode, now).responses;
            if let Some(refill) = refill {
                refill.is_hit |= count > 0;
            }
            count
        };
        zones.iter().enumerate().map(one).sum()
    };
    let targets = order.targets.iter().map(|target| TargetReport {
        kind: target.kind,
        text: target.text.clone(),
        responses: target
            .names
            .iter()
            .map(|it| purge(it.as_target()))
            .sum::<usize>() as u64,
    });
    let targets = targets.collect();
    let zones = zones.iter().map(|zone| ZoneReport {
        name: zone.config().name.clone(),
        stamp: zone.stamp().number(),
    });
    PurgeReport {
        soft: order.soft,
        dry_run: order.dry_run,
        targets,
        zones: zones.collect(),
        milliseconds: 0.0,
    }
}
