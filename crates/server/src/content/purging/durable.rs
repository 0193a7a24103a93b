//! A purge is answered once it holds through a crash: the zones that keep pages on disk have written it down.
//! What was purged is gone from memory before, whatever the disk does.

use std::sync::Arc;
use std::time::Duration;

use control::Refusal;
use http_cache::Zone;
use site::LogLevel;
use tokio::time::{Instant, timeout_at};

use crate::exchange::active_configuration::ActiveConfiguration;
use crate::log::purge_log::PurgeInterface;

/// A program that purges waits for the disk no longer.
const WAIT_OF_PROGRAM: Duration = Duration::from_secs(5);
/// Nor does a visitor, whose request has changed something.
const WAIT_OF_VISITOR: Duration = Duration::from_millis(250);
/// Seconds after which a program may ask whether its purge holds by now.
const RETRY_AFTER: u32 = 5;

/// Does one of the zones write purges down?
pub fn are_kept(zones: &[Arc<Zone>]) -> bool {
    zones.iter().any(|zone| zone.tier().is_some())
}

/// Waits until all that was purged so far is written down.
///
/// # Errors
/// It is not within the time that a program waits. A visitor's request is answered all the same, and the log
/// says so.
pub async fn confirmed(
    configuration: &Arc<ActiveConfiguration>,
    zones: &[Arc<Zone>],
    door: PurgeInterface,
) -> Result<(), Refusal> {
    let is_visitor = door == PurgeInterface::Response;
    let within = match is_visitor {
        true => WAIT_OF_VISITOR,
        false => WAIT_OF_PROGRAM,
    };
    if are_written_down(zones, within).await {
        return Ok(());
    }
    let message = "a purge holds in memory and is not on the disk; it goes on being tried";
    let logs = &configuration.site.process.error_logs;
    let error_logs = &configuration.live.error_logs;
    error_logs.write(logs, LogLevel::Warn, 0, format_args!("{message}"), "");
    match is_visitor {
        true => Ok(()),
        false => Err(Refusal {
            retry_after: Some(RETRY_AFTER),
            ..Refusal::new(503, message)
        }),
    }
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
