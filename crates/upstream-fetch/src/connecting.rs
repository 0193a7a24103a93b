//! Connections to a server: one that served before, or a new one.

use std::io;
use std::time::Duration;

use site::LogLevel;
use system_error::SystemError;
use tls_client::ConnectError;
use upstream::{BindError, Lease, Outcome};

use super::context::FetchContext;
use super::error::{FailedRequest, Failure, FetchError};
use super::resend::Resend;
use super::spec::FetchSpec;
use super::upstream_request::UpstreamRequest;

/// How long a connection attempt to a PHP pool of our own is repeated: a
/// killed master is back within a second, so this is ample.
const OWN_POOL_ATTEMPTS_FOR: Duration = Duration::from_secs(10);
/// Between two attempts. Short, since the socket is on this machine.
const OWN_POOL_PAUSE: Duration = Duration::from_millis(20);

/// A connection that served before, if there is one to trust.
pub(super) fn take_kept(
    spec: &FetchSpec,
    lease: &mut Lease,
    resend: &Resend,
) -> Option<upstream::Connection> {
    if !spec.request.keeps_connection() {
        return None;
    }
    // PHP-FPM closes a connection right after its worker's last answer
    // (`pm.max_requests`): a request sent at that moment would be lost, where it may not be
    // sent again. The lease closes the kept connection in favour of the new one.
    if matches!(spec.request, UpstreamRequest::FastCgi { .. }) && !resend.is_allowed() {
        return None;
    }
    lease.take_idle(clock::recent(), resend.is_allowed())
}

/// A new connection to the server, encrypted where the upstream is `https://`.
pub(super) async fn connect_anew(
    spec: &FetchSpec,
    lease: &mut Lease,
) -> io::Result<upstream::Connection> {
    let limit = spec.context.pass.exchange.connect_timeout;
    let started = tokio::time::Instant::now();
    let give_up_at = started + limit.min(OWN_POOL_ATTEMPTS_FOR);
    loop {
        match lease.connect_anew(limit, clock::now()).await {
            Err(error)
                if spec.to.own_pool
                    && error.kind() != io::ErrorKind::TimedOut
                    && tokio::time::Instant::now() < give_up_at =>
            {
                tokio::time::sleep(OWN_POOL_PAUSE).await;
            }
            Ok(connection) => return encrypted(spec, connection, started + limit).await,
            failed => return failed,
        }
    }
}

/// The handshake of an `https://` upstream, within the time for connecting.
async fn encrypted(
    spec: &FetchSpec,
    mut connection: upstream::Connection,
    until: tokio::time::Instant,
) -> io::Result<upstream::Connection> {
    let Some((connector, name)) = &spec.to.tls else {
        return Ok(connection);
    };
    let shaken = tokio::time::timeout_at(until, connection.stream.encrypt(connector, name));
    connection.stream = match shaken.await {
        Ok(stream) => stream.map_err(io::Error::other)?,
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
    };
    Ok(connection)
}

/// Handles a failed connection attempt: logs the reason, and counts it against the server
/// if the fault is the server's.
pub(super) fn unconnected(context: &FetchContext, lease: Lease, error: &io::Error) -> Failure {
    let address: &str = &lease.address().clone();
    let of_bind = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<BindError>());
    if let Some(BindError {
        address: from,
        error,
    }) = of_bind
    {
        let message = format_args!(
            "bind({from}) failed ({}) while connecting to upstream",
            SystemError(error)
        );
        context.log.write(LogLevel::Crit, Some(address), message);
        context.trace.lock().end_try(Some(500));
        lease.report(Outcome::Neutral, clock::now());
        return Failure {
            error: FetchError::Local,
            request: FailedRequest::Unsent,
        };
    }
    let is_timeout = error.kind() == io::ErrorKind::TimedOut;
    let (kind, status) = match is_timeout {
        true => (FetchError::Timeout, 504),
        false => (FetchError::Error, 502),
    };
    let os = SystemError(error);
    let level = LogLevel::Error;
    let inner = error.get_ref();
    if let Some(error) = inner.and_then(|inner| inner.downcast_ref::<ConnectError>()) {
        let message = format_args!("{error} while SSL handshaking to upstream");
        context.log.write(level, Some(address), message);
    } else if is_timeout {
        let message = format_args!("upstream timed out ({os}) while connecting to upstream");
        context.log.write(level, Some(address), message);
    } else {
        let message =
            format_args!("connect() to {address} failed ({os}) while connecting to upstream");
        context.log.write(level, Some(address), message);
    }
    context.trace.lock().end_try(Some(status));
    lease.report(Outcome::Failure, clock::now());
    Failure {
        error: kind,
        request: FailedRequest::Unsent,
    }
}
