//! Work after a response has been sent, or could not be: the log line, and tasks that wait for it.

use site::LogLevel;
use tokio::task::JoinHandle;
use transport::outbound::SendError;
use transport::service::Ending;

use super::{Memory, counting};
use crate::content::mirror;
use crate::exchange::request::Request;
use crate::log::{access_log, error_log, traces};

/// Gives a refresh that the connection waits for before it closes.
#[inline]
pub fn end(
    request: &mut Request,
    memory: &mut Memory,
    ending: &Result<Ending, SendError>,
) -> Option<JoinHandle<()>> {
    if let Err(error) = ending {
        log_send_error(request, error);
    }
    if let Some(values) = request.values.given() {
        values.limits.guards.clear();
        if values.tracing.is_some() {
            traces::end(request);
        }
    }
    counting::count(request);
    access_log::log(request);
    if !matches!(ending, Ok(Ending::KeepAlive)) {
        // A client that sees the connection end finds the line in the log.
        access_log::flush_thread();
    }
    memory.host = request.received.hand_on_host();
    let values = request.values.given()?;
    let refresh = values.later.refresh.take();
    if values.later.has_post_action {
        mirror::begin_post_action(request);
    }
    refresh.filter(|_| matches!(ending, Ok(Ending::Close)))
}

fn log_send_error(request: &Request, error: &SendError) {
    match error {
        SendError::Client(error) => error_log::request(
            request,
            LogLevel::Info,
            format_args!("client closed connection while sending response ({error})"),
        ),
        SendError::TimedOut => error_log::request(
            request,
            LogLevel::Info,
            format_args!("client timed out (110: Connection timed out) while sending response"),
        ),
        SendError::GaveWay => error_log::request(
            request,
            LogLevel::Info,
            format_args!("client took nothing while too many others waited for theirs"),
        ),
        // The upstream's side has logged the cause.
        SendError::Truncated => {}
    }
}
