//! A purge is answered once it holds on all nodes (`cache_nodes`). What was purged is gone here before, and goes on
//! being told to the others, whatever is answered.

use std::sync::Arc;
use std::time::Duration;

use control::Refusal;
use site::LogLevel;
use tokio::time::timeout;

use crate::exchange::active_configuration::ActiveConfiguration;
use crate::log::purge_log::PurgeInterface;

/// A program that purges waits no longer.
const WAIT_OF_PROGRAM: Duration = Duration::from_secs(5);
/// Nor does a visitor, whose request has changed something: longer than a dead node delays a purge.
const WAIT_OF_VISITOR: Duration = Duration::from_millis(2300);
/// Seconds after which a program may ask whether its purge holds by now.
const RETRY_AFTER: u32 = 5;

/// Waits until all that was purged so far holds on all nodes.
///
/// # Errors
/// It does not within the time that a program waits. A visitor's request is answered all the same, and the log
/// says so.
pub async fn confirmed(
    configuration: &Arc<ActiveConfiguration>,
    door: PurgeInterface,
) -> Result<(), Refusal> {
    let Some(nodes) = &configuration.live.nodes else {
        return Ok(());
    };
    let is_visitor = door == PurgeInterface::Response;
    let within = match is_visitor {
        true => WAIT_OF_VISITOR,
        false => WAIT_OF_PROGRAM,
    };
    if timeout(within, nodes.confirmed()).await.is_ok() {
        return Ok(());
    }
    let message = format_args!(
        "a purge holds here and is not confirmed by all nodes after {} ms; it goes on being tried",
        within.as_millis()
    );
    let logs = &configuration.site.process.error_logs;
    let error_logs = &configuration.live.error_logs;
    error_logs.write(logs, LogLevel::Warn, 0, message, "");
    match is_visitor {
        true => Ok(()),
        false => Err(Refusal {
            retry_after: Some(RETRY_AFTER),
            ..Refusal::new(
                503,
                "the purge holds on this node and is not confirmed by all others; it goes on being tried",
            )
        }),
    }
}
