//! A purge is answered once it holds through a crash: the zones that keep pages on disk have written it down.
//! What was purged is gone from memory before, whatever the disk does.

use std::sync::Arc;
use std::time::Duration;

use http_cache::Zone;
use tokio::time::{Instant, timeout_at};

use crate::log::purge_log::PurgeInterface;

/// A program that purges waits for the disk no longer.
const WAIT_OF_PROGRAM: Duration = Duration::from_secs(5);
/// Nor does a visitor, whose request has changed something.
const WAIT_OF_VISITOR: Duration = Duration::from_millis(250);

/// How long who has asked for a purge waits for the disk.
pub fn longest_wait(interface: PurgeInterface) -> Duration {
    match interface {
        PurgeInterface::Response => WAIT_OF_VISITOR,
        _ => WAIT_OF_PROGRAM,
    }
}

/// Does one of the zones write purges down?
pub fn are_kept(zones: &[Arc<Zone>]) -> bool {
    zones.iter().any(|zone| zone.tier().is_some())
}

/// Waits until all that was purged so far is written down. `false`: the disk is too slow, and goes on.
pub async fn written_down(zones: &[Arc<Zone>], within: Duration) -> bool {
    let until = Instant::now() + within;
    for zone in zones {
        let Some(written) = zone.tier().and_then(|tier| tier.written_down()) else {
            continue;
        };
        if timeout_at(until, written).await.is_err() {
            return false;
        }
    }
    true
}

/// The same for a visitor whose request has changed something.
pub async fn written_down_for_visitor(zone: &Arc<Zone>) -> bool {
    written_down(std::slice::from_ref(zone), WAIT_OF_VISITOR).await
}
