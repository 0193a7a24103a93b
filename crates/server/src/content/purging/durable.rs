//! A purge is answered once it holds through a crash: the zones that keep pages on disk have written it down.
//! In memory the purged pages are gone before that, whatever the disk does.

use std::sync::Arc;
use std::time::Duration;

use control::Refusal;
use http_cache::Zone;
use tokio::time::{Instant, timeout_at};

use super::unconfirmed;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::log::purge_log::PurgeInterface;

/// A visitor, whose request has changed something, waits for the disk no longer.
const WAIT_OF_VISITOR: Duration = Duration::from_millis(250);

/// Does one of the zones write purges down?
pub fn are_kept(zones: &[Arc<Zone>]) -> bool {
    zones.iter().any(|zone| zone.tier().is_some())
}

/// Waits until all that was purged so far is written down.
///
/// # Errors
/// The zones have not written it down within the time that a program waits. A visitor's request is answered all
/// the same, and the error is logged.
pub async fn confirmed(
    configuration: &Arc<ActiveConfiguration>,
    zones: &[Arc<Zone>],
    door: PurgeInterface,
) -> Result<(), Refusal> {
    if are_written_down(zones, unconfirmed::wait(door, WAIT_OF_VISITOR)).await {
        return Ok(());
    }
    let message = "a purge holds in memory and is not on the disk; it goes on being tried";
    unconfirmed::end(configuration, door, message)
}

async fn are_written_down(zones: &[Arc<Zone>], within: Duration) -> bool {
    let until = Instant::now() + within;
    for zone in zones {
        let Some(written) = zone.tier().and_then(|tier| tier.written_down()) else {
            continue;
        };
        if timeout_at(until, written).await != Ok(true) {
            return false;
        }
    }
    true
}
