//! A purge that holds here and is not confirmed in time, by the disk ([`super::durable`]) or by the other nodes
//! ([`super::on_nodes`]): the error is logged, and a program is asked to try again.

use std::time::Duration;

use control::Refusal;
use site::LogLevel;

use crate::exchange::active_configuration::ActiveConfiguration;
use crate::log::purge_log::PurgeInterface;

/// A program that purges waits no longer for a confirmation.
const WAIT_OF_PROGRAM: Duration = Duration::from_secs(5);
/// Seconds after which a program may ask whether its purge holds by now.
const RETRY_AFTER: u32 = 5;

/// Returns how long a purge by `door` is waited for, with `of_visitor` for a visitor's.
pub fn wait(door: PurgeInterface, of_visitor: Duration) -> Duration {
    match door {
        PurgeInterface::Response => of_visitor,
        _ => WAIT_OF_PROGRAM,
    }
}

/// Ends a purge whose time is over, with `message` for both the log and the program.
///
/// The purge was ordered by a program. A visitor's request is answered all the same.
pub fn end(
    configuration: &ActiveConfiguration,
    door: PurgeInterface,
    message: &str,
) -> Result<(), Refusal> {
    let logs = &configuration.site.process.error_logs;
    let error_logs = &configuration.live.error_logs;
    error_logs.write(logs, LogLevel::Warn, 0, format_args!("{message}"), "");
    if door == PurgeInterface::Response {
        return Ok(());
    }
    Err(Refusal {
        retry_after: Some(RETRY_AFTER),
        ..Refusal::new(503, message)
    })
}
