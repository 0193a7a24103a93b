//! A purge is answered once it holds on all nodes (`cache_nodes`). The purged pages are gone here before that, and
//! the purge goes on being sent to the other nodes, whatever is answered.

use std::sync::Arc;
use std::time::Duration;

use control::Refusal;
use tokio::time::timeout;

use super::unconfirmed;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::log::purge_log::PurgeInterface;

/// A visitor, whose request has changed something, waits no longer; a dead node delays a purge for less.
const WAIT_OF_VISITOR: Duration = Duration::from_millis(2300);

/// Waits until all that was purged so far holds on all nodes.
///
/// # Errors
/// The other nodes have not confirmed it within the time that a program waits. A visitor's request is answered all
/// the same, and the error is logged.
pub async fn confirmed(
    configuration: &Arc<ActiveConfiguration>,
    door: PurgeInterface,
) -> Result<(), Refusal> {
    let Some(nodes) = &configuration.live.nodes else {
        return Ok(());
    };
    let within = unconfirmed::wait(door, WAIT_OF_VISITOR);
    if timeout(within, nodes.confirmed()).await.is_ok() {
        return Ok(());
    }
    let message = format!(
        "a purge holds here and is not confirmed by all nodes after {} ms; it goes on being tried",
        within.as_millis()
    );
    unconfirmed::end(configuration, door, &message)
}
