//! Lines of the error log about a request: in the logs of its location, with the
//! client, the server and the request line behind the message.

use std::fmt;

use site::{ErrorLog, LogLevel};

use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::page_budget::{Bound, LogLine, PageBudget};
use crate::exchange::request::Request;

pub use live_state::error_log::origin::Origin;
pub use live_state::error_log::{are_logged, push_text};

/// Is a line of this level about `request` written? None is about a request that is only explained: `explain` asks each
/// server of the machine whether a URL is one of its own.
fn is_logged(request: &Request, level: LogLevel) -> bool {
    !request.is_dry() && are_logged(&request.settings().error_logs, level)
}

/// Writes a line about `request`; about a page of fragments and its parts, a bounded number.
pub fn request(request: &Request, level: LogLevel, message: fmt::Arguments<'_>) {
    if !is_logged(request, level) {
        return;
    }
    match request.page_budget() {
        None => write(request, level, message),
        Some(page) => page_line(page, message, |message| write(request, level, message)),
    }
}

fn write(request: &Request, level: LogLevel, message: fmt::Arguments<'_>) {
    let logs = &request.settings().error_logs;
    let connection = request.received.connection().serial;
    let error_logs = &request.configuration.live.error_logs;
    error_logs.write(logs, level, connection, message, &context(request));
}

/// Has a line about a page of fragments written, if it may have another.
pub fn page_line(
    page: &PageBudget,
    message: fmt::Arguments<'_>,
    write: impl FnOnce(fmt::Arguments<'_>),
) {
    match page.take_line() {
        LogLine::Written => write(message),
        LogLine::Last => write(format_args!(
            "{message} (further lines about this page are left out)"
        )),
        LogLine::LeftOut => {}
    }
}

/// Logs, once for a page, that it has met a bound of its fragments' budget.
pub fn beyond_budget(request: &Request, bound: Bound) {
    let page = request.page_budget();
    if let Some(message) = page.and_then(|page| page.take_message(bound))
        && is_logged(request, LogLevel::Error)
    {
        write(request, LogLevel::Error, format_args!("{message}"));
    }
}

/// Counts an answer to `request` that was not stored for `reason` and `took` some milliseconds, and
/// writes a line when such answers keep the upstream busy.
pub fn not_stored(request: &Request, reason: &'static str, took: u64) {
    let counted = &request.configuration.live.error_logs.not_stored;
    let Some(flood) = counted.count(reason, took, clock::now()) else {
        return;
    };
    self::request(
        request,
        LogLevel::Warn,
        format_args!(
            "answers that are not stored keep the upstream busy: {} in the last {} s took {} s, \
             {} of them for the reason \"{}\", this request for \"{reason}\"",
            flood.answers, flood.seconds, flood.took_seconds, flood.of_reason, flood.reason
        ),
    );
}

/// Writes a line about a `request` that was refused. Any client can cause such lines: a flood of them
/// is cut, and the next line reports how many were left out.
pub fn refusal(request: &Request, level: LogLevel, message: fmt::Arguments<'_>) {
    if !is_logged(request, level) {
        return;
    }
    let budget = &request.configuration.live.error_logs.refusals;
    match budget.take(clock::now()) {
        None => {}
        Some(0) => self::request(request, level, message),
        Some(left_out) => self::request(
            request,
            level,
            format_args!("{message} ({left_out} more refusals were not logged)"),
        ),
    }
}

/// Writes a line about the connection of this number, which was ended because of its client's data. A
/// flood of them is cut as with [`refusal`].
pub fn broken_connection(
    configuration: &ActiveConfiguration,
    logs: &[ErrorLog],
    connection: u64,
    reason: &str,
) {
    let error_logs = &configuration.live.error_logs;
    let write = |message| error_logs.write(logs, LogLevel::Error, connection, message, "");
    match error_logs.broken_connections.take(clock::now()) {
        None => {}
        Some(0) => write(format_args!("{reason}")),
        Some(left_out) => write(format_args!(
            "{reason} ({left_out} more connections that ended so were not logged)"
        )),
    }
}

/// May a line be written about an event that any client can cause? See [`refusal`].
pub fn may_tell_refusal(configuration: &ActiveConfiguration) -> bool {
    configuration
        .live
        .error_logs
        .refusals
        .take(clock::now())
        .is_some()
}

/// Logs an event that keeps the server from doing its work, in the log of the main context.
pub fn emergency(configuration: &ActiveConfiguration, message: fmt::Arguments<'_>) {
    let logs = &configuration.site.process.error_logs;
    let error_logs = &configuration.live.error_logs;
    error_logs.write(logs, LogLevel::Alert, 0, message, "");
}

/// Copies the details of `request` that a log line ends with, for lines written after the request is
/// gone.
pub fn origin(request: &Request) -> Origin {
    Origin::new(
        request.received.head(),
        request.received.client_ip(),
        &request.server().name,
        request
            .route
            .is_subrequest()
            .then_some(&request.route.path[..]),
    )
}

/// Formats the details of [`origin`] as text.
pub fn context(request: &Request) -> String {
    origin(request).text()
}
