//! UpstreamRequest an upstream: choose a server, send the request, read the response
//! head, try the next server where `*_next_upstream` says so. What comes back
//! is a head and a body that is read on demand; who reads it (one client, or
//! the cache for everybody) is not decided here.

mod arriving;
mod exchange;
pub mod trace;

use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_cache::{Millis, Progress};
use http1::same_name;
use parking_lot::Mutex;
use site::{LogLevel, Pass, Settings};
use tls_client::ConnectError;
use tokio::time::timeout;
use upstream::{
    AcquireError, Admission, BindError, Class, Group, Lease, LocalEnd, Outcome, PickKey, Ticket,
    TriedSet,
};

use crate::base::clock;
use crate::base::deadline::SharedDeadline;
use crate::content::early_hints::Hints;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::live::error_log;
use crate::live::error_log::origin::Origin;
use crate::transport::body::{ClientFault, OutgoingBody, RequestBody};
use crate::upstreams::naming::Lookup;

pub use arriving::{Truncated, UpstreamBody};
pub use exchange::{Event, HttpRequest, MemcachedRequest, UpstreamRequest};
pub use trace::{Trace, Try};

use exchange::{Exchange, Head};

/// How long a connection attempt to a PHP pool of our own is repeated: a
/// killed master is back within a second, so this is ample.
const OWN_POOL_PATIENCE: Duration = Duration::from_secs(10);
/// Between two attempts. Short, since the socket is on this machine.
const OWN_POOL_PAUSE: Duration = Duration::from_millis(20);

/// Everything that a fetch needs of its request; owns what it holds, so that
/// it outlives the client.
pub struct FetchSpec {
    pub context: Arc<FetchContext>,
    pub group: Arc<Group>,
    /// The group has no servers before its name is looked up.
    pub lookup: Option<Lookup>,
    pub asking: UpstreamRequest,
    pub is_head: bool,
    pub is_idempotent: bool,
    pub body: RequestBody,
    /// The body while it arrives; then there is only one try.
    pub streaming: Option<OutgoingBody>,
    pub hash_key: Option<Vec<u8>>,
    /// Who waits for it.
    pub class: Class,
    /// Encrypted, with a server of this name.
    pub tls: Option<(tls_client::Connector, String)>,
    pub client: Option<IpAddr>,
    /// `*_bind`, `*_socket_keepalive`
    pub local: LocalEnd,
    /// The timer of whoever waits.
    pub deadline: SharedDeadline,
    /// The group's servers are PHP pools of our own, restarted when they die.
    pub own_pool: bool,
    /// `*_limit_rate`: bytes of the response read in a second; 0: no limit.
    pub rate: u64,
    /// Where an upstream's 103s go; without it they are dropped.
    pub hints: Option<Hints>,
    /// Others wait for this fetch, and are told when its turn has come.
    pub progress: Option<Progress>,
}

impl FetchSpec {
    /// May the request be sent again once a server may have begun with it?
    fn may_repeat(&self) -> bool {
        self.is_idempotent || self.context.pass.exchange.next_non_idempotent
    }
}

/// What a fetch and the body that it leads to have in common: by what settings
/// they go, where their doings are noted, and what error log lines say of the
/// request.
pub struct FetchContext {
    pub configuration: ConfigurationHandle,
    pub pass: Arc<Pass>,
    pub trace: Arc<Mutex<Trace>>,
    pub settings: Arc<Settings>,
    pub connection: u64,
    pub origin: Origin,
    /// What stands before and behind an upstream's address.
    pub scheme: &'static str,
    pub target: Bytes,
}

impl FetchContext {
    /// Writes a line about the request.
    pub fn note(&self, level: LogLevel, message: std::fmt::Arguments<'_>) {
        let logs = &self.settings.error_logs;
        if error_log::are_told(logs, level) {
            let context = self.origin.text();
            let error_logs = &self.configuration.live.error_logs;
            error_logs.write(logs, level, self.connection, message, &context);
        }
    }

    /// Writes a line about the upstream at `address`.
    fn log(&self, level: LogLevel, message: std::fmt::Arguments<'_>, address: &str) {
        let logs = &self.settings.error_logs;
        if !error_log::are_told(logs, level) {
            return;
        }
        let colon = match address.starts_with("unix:") && !self.target.is_empty() {
            true => ":",
            false => "",
        };
        let context = format!(
            "{}, upstream: \"{}://{address}{colon}{}\"",
            self.origin.text(),
            self.scheme,
            String::from_utf8_lossy(&self.target)
        );
        let error_logs = &self.configuration.live.error_logs;
        error_logs.write(logs, level, self.connection, message, &context);
    }
}

/// A response head and the body behind it.
pub struct Fetched {
    pub status: u16,
    pub reason: Bytes,
    pub fields: Vec<(Bytes, Bytes)>,
    pub content_length: Option<u64>,
    /// The connection is a tunnel from here on.
    pub is_upgrade: bool,
    pub body: Box<UpstreamBody>,
}

/// Why there is no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchError {
    /// Could not be reached, or broke off.
    Error,
    Timeout,
    InvalidHeader,
    /// All servers are down or full.
    NoLiveUpstreams,
    /// The queue is full or the wait in it too long.
    Overloaded,
    /// Nobody waits for it, and the servers are busy: it was not sent.
    LeftOut,
    /// The last of several answered with a status that `*_next_upstream` names.
    Status(u16),
    /// The address that connections are to come from cannot be had.
    Local,
    /// The client's body was at fault; it gets this status.
    Client(u16),
}

impl FetchError {
    pub fn status(self) -> u16 {
        match self {
            FetchError::Error | FetchError::InvalidHeader | FetchError::NoLiveUpstreams => 502,
            FetchError::Timeout => 504,
            FetchError::Local => 500,
            FetchError::Overloaded | FetchError::LeftOut => 503,
            FetchError::Status(status) | FetchError::Client(status) => status,
        }
    }
}

/// Asks until there is a response to pass on or nobody is left to ask.
pub async fn fetch(spec: &mut FetchSpec) -> Result<Fetched, FetchError> {
    if let Some(lookup) = spec.lookup.take() {
        Box::pin(look_up(spec, lookup)).await?;
    }
    let exchange = &spec.context.pass.exchange;
    let (next, next_timeout) = (exchange.next_upstream, exchange.next_timeout);
    let may_repeat = spec.may_repeat();
    let max_tries = match exchange.next_tries {
        0 => spec.group.tries(),
        tries => tries.min(spec.group.tries()),
    };
    let started = clock::recent();
    let mut tried = TriedSet::new();
    let mut resend = Resend::allowed_by(spec);
    let mut last = FetchError::NoLiveUpstreams;
    for attempt in 1.. {
        let queued_at = clock::recent();
        let key = PickKey {
            client_addr: spec.client,
            hash_key: spec.hash_key.as_deref(),
            // `keepalive ... local` keeps to the location, whose pass this is.
            location: Arc::as_ptr(&spec.context.pass).addr() as u64,
            security: 0,
            local: spec.local,
        };
        let taken = {
            let turn = pin!(take_turn(spec, key, &tried, queued_at));
            report_long_wait(spec, turn).await
        };
        let lease = match taken {
            Ok(lease) => lease,
            Err(error) => return Err(refused(spec, error, last)),
        };
        let queued = clock::recent().saturating_sub(queued_at);
        let server = lease.server();
        let failure = match attempt_once(spec, lease, queued, &mut resend).await {
            Ok(mut fetched) => {
                let failed = next.has_status(fetched.status);
                let may_go_on = attempt < max_tries && spec.streaming.is_none();
                if !failed || !may_go_on || !may_repeat {
                    fetched.body.take_at_hand();
                    return Ok(fetched);
                }
                // What is not there, or not allowed, is no fault of the server's.
                let outcome = match fetched.status {
                    403 | 404 => Outcome::Neutral,
                    _ => Outcome::Failure,
                };
                let status = fetched.status;
                fetched.body.give_up(outcome);
                Failure {
                    error: FetchError::Status(status),
                    sent: true,
                    retry_own: false,
                    is_named: true,
                }
            }
            Err(failure) => failure,
        };
        last = failure.error;
        if spec.own_pool && failure.retry_own && resend.take() {
            continue;
        }
        let named = failure.is_named
            || match failure.error {
                FetchError::Error => next.error,
                FetchError::Timeout => next.timeout,
                FetchError::InvalidHeader => next.invalid_header,
                _ => false,
            };
        let repeatable = !failure.sent || may_repeat;
        let in_time = next_timeout.is_zero()
            || clock::recent().saturating_sub(started)
                < u64::try_from(next_timeout.as_millis()).unwrap_or(u64::MAX);
        let body_is_there = spec.streaming.is_none() && !matches!(spec.body, RequestBody::Streamed);
        if !(named && repeatable && in_time && body_is_there && attempt < max_tries) {
            break;
        }
        tried.insert(server);
    }
    Err(last)
}

/// Whether a request is sent once more to the server that closed its connection before a
/// byte of the answer. The server may have begun with it: whether a worker died of the
/// request or closed a connection that it was done with looks the same from here. So it
/// is done once at most, for methods that may be repeated (RFC 9110 §9.2.2), and where
/// `*_next_upstream` names `error`. This is no try of `*_next_upstream_tries`.
struct Resend {
    is_allowed: bool,
}

impl Resend {
    fn allowed_by(spec: &FetchSpec) -> Resend {
        // A body that is still arriving cannot be sent twice.
        let has_body = spec.streaming.is_none() && !matches!(spec.body, RequestBody::Streamed);
        let named = spec.context.pass.exchange.next_upstream.error;
        Resend {
            is_allowed: named && has_body && spec.may_repeat(),
        }
    }

    /// Uses it up; was it there?
    fn take(&mut self) -> bool {
        std::mem::take(&mut self.is_allowed)
    }
}

/// A request that waits longer than this for a worker of an own pool is worth a line.
const BUSY_AFTER: Duration = Duration::from_secs(1);

/// Says so when all workers of an own pool are busy for long.
async fn report_long_wait<T>(spec: &FetchSpec, mut turn: Pin<&mut impl Future<Output = T>>) -> T {
    if spec.own_pool {
        match timeout(BUSY_AFTER, turn.as_mut()).await {
            Ok(taken) => return taken,
            Err(_) => tell_busy(spec),
        }
    }
    turn.await
}

/// One line a minute, with what to do.
fn tell_busy(spec: &FetchSpec) {
    let now = clock::now();
    let budget = &spec.context.configuration.live.error_logs.busy_workers;
    if budget.take(now).is_none() {
        return;
    }
    let servers = spec.group.snapshot(now);
    let workers: usize = servers.iter().filter_map(|server| server.max_conns).sum();
    let waiting = spec.group.queue_length();
    spec.context.note(
        LogLevel::Warn,
        format_args!(
            "all {workers} PHP workers of \"{}\" are busy, {waiting} requests wait: more \
             \"workers\" help where memory allows, and \"slow_log\" of the pool tells what takes long",
            spec.group.name()
        ),
    );
}

/// Waits for the request's turn, and tells those who wait for its response
/// where it has to stand in line.
async fn take_turn(
    spec: &FetchSpec,
    key: PickKey<'_>,
    tried: &TriedSet,
    now: u64,
) -> Result<Lease, AcquireError> {
    let progress = spec.progress.as_ref();
    let is_awaited = progress.is_some_and(Progress::is_awaited);
    let class = match spec.class.is_background() && is_awaited {
        true => Class::StaleVisitor,
        false => spec.class,
    };
    let ticket = match spec.group.enter(key, tried, class, now)? {
        Admission::Granted(lease) => return Ok(lease),
        Admission::InLine(ticket) => ticket,
    };
    // Whoever waits pays for a future of its own.
    Box::pin(wait_in_line(ticket, progress)).await
}

async fn wait_in_line(
    mut ticket: Ticket,
    progress: Option<&Progress>,
) -> Result<Lease, AcquireError> {
    let Some(progress) = progress else {
        return ticket.wait().await;
    };
    progress.in_line();
    let granted = tokio::select! {
        biased;
        granted = ticket.wait() => Some(granted),
        () = progress.awaited() => None,
    };
    let granted = match granted {
        Some(granted) => granted,
        None => {
            ticket.raise();
            ticket.wait().await
        }
    };
    progress.under_way(Millis(clock::now()));
    granted
}

/// Finds the servers of a group that a variable named.
async fn look_up(spec: &FetchSpec, lookup: Lookup) -> Result<(), FetchError> {
    let Err(error) = lookup.fill(&spec.group).await else {
        return Ok(());
    };
    let (context, name) = (&spec.context, spec.group.name());
    context.log(LogLevel::Error, format_args!("{error}"), name);
    // A try without an address: none was found.
    context.trace.lock().tries.push(Try {
        status: Some(502),
        ..Try::default()
    });
    Err(FetchError::NoLiveUpstreams)
}

fn refused(spec: &FetchSpec, error: AcquireError, last: FetchError) -> FetchError {
    match error {
        AcquireError::Exhausted => return last,
        AcquireError::LeftOut => {
            note_left_out(
                &spec.context.configuration,
                &spec.context.settings,
                &spec.group,
            );
            return FetchError::LeftOut;
        }
        _ => {}
    }
    spec.context.log(
        LogLevel::Error,
        format_args!("{error} while connecting to upstream"),
        spec.group.name(),
    );
    spec.context.trace.lock().tries.push(Try {
        address: spec.group.name().into(),
        status: Some(if error.is_overload() { 503 } else { 502 }),
        ..Try::default()
    });
    if error.is_overload() {
        FetchError::Overloaded
    } else {
        FetchError::NoLiveUpstreams
    }
}

/// Counts a request that nobody waits for and that was not sent, and says now and then how
/// many there were.
pub fn note_left_out(configuration: &ActiveConfiguration, settings: &Settings, group: &Group) {
    let Some(count) = configuration.live.error_logs.left_out.count(clock::now()) else {
        return;
    };
    let message = format_args!(
        "upstream \"{}\" is busy: refreshes and mirrors left out since the last such line: {count} \
         (stored pages are shown as long as cache_stale allows; more workers would help)",
        group.name()
    );
    let error_logs = &configuration.live.error_logs;
    error_logs.write(&settings.error_logs, LogLevel::Warn, 0, message, "");
}

/// One server did not give a response.
struct Failure {
    error: FetchError,
    /// The request may have reached it.
    sent: bool,
    /// Worth asking the same pool of our own again, where that is allowed: its master may
    /// have been restarted.
    retry_own: bool,
    /// `*_next_upstream` named this very failure.
    is_named: bool,
}

impl Failure {
    fn new(error: FetchError, sent: bool) -> Failure {
        Failure {
            error,
            sent,
            retry_own: false,
            is_named: false,
        }
    }
}

async fn attempt_once(
    spec: &mut FetchSpec,
    mut lease: Lease,
    queued: u64,
    resend: &mut Resend,
) -> Result<Fetched, Failure> {
    let mut kept = take_kept(spec, &mut lease, resend);
    spec.context
        .trace
        .lock()
        .begin_try(lease.address().clone(), queued, kept.is_some());
    loop {
        let connection = match kept.take() {
            Some(connection) => connection,
            None => match Box::pin(connect_anew(spec, &mut lease)).await {
                Ok(connection) => {
                    spec.context.trace.lock().connected();
                    connection
                }
                Err(error) => return Err(unconnected(&spec.context, lease, &error)),
            },
        };
        let is_reused = connection.is_reused();
        let (requests, born) = (connection.requests, connection.born);
        let body = spec
            .streaming
            .take()
            .unwrap_or_else(|| OutgoingBody::replay(&spec.body));
        let is_streaming = matches!(body, OutgoingBody::Streaming { .. });
        if is_streaming {
            spec.body = RequestBody::Streamed;
        }
        let head_limit =
            usize::try_from(spec.context.pass.exchange.head_bytes).unwrap_or(usize::MAX);
        let exchange =
            spec.asking
                .start(connection.stream, is_reused, spec.is_head, head_limit, body);
        let body = UpstreamBody::new(spec, exchange, lease, (requests, born));
        let mut upstream = Box::new(body);
        match read_head(&mut upstream, is_streaming, spec.hints.as_ref()).await {
            Ok(mut head) => {
                keep_first(&mut head.fields, b"expires");
                note_head(&spec.context, &head);
                if let (UpstreamRequest::Memcached(asking), 404) = (&spec.asking, head.status) {
                    let key = String::from_utf8_lossy(&asking.key);
                    spec.context.log(
                        LogLevel::Info,
                        format_args!("key: \"{key}\" was not found by memcached"),
                        upstream.address(),
                    );
                    // Its end is here as well: the connection may serve again.
                    let _ = Box::pin(upstream.next()).await;
                }
                return Ok(Fetched {
                    status: head.status,
                    reason: head.reason,
                    fields: head.fields,
                    content_length: head.content_length,
                    is_upgrade: head.is_upgrade,
                    body: upstream,
                });
            }
            Err(HeadFailure::Exchange(error))
                if is_reused
                    && (error.before_first_byte() || error.is_leftover())
                    && resend.take() =>
            {
                // Most likely the server closed an idle connection as we took it, or sent
                // more on it than its last response.
                match upstream.lease.take() {
                    Some(back) => lease = back,
                    None => return Err(Failure::new(FetchError::Error, true)),
                }
            }
            Err(failure) => return Err(head_failed(&mut upstream, failure)),
        }
    }
}

/// Notes what a head said, for variables.
fn note_head(context: &FetchContext, head: &Head) {
    let mut trace = context.trace.lock();
    trace.head(head.status);
    if context.configuration.site.http.uses_upstream_fields {
        trace.keep_fields(&head.fields);
    }
}

/// There is no connection: says why, and whether it is the server's fault.
fn unconnected(context: &FetchContext, lease: Lease, error: &io::Error) -> Failure {
    let address: &str = &lease.address().clone();
    let of_bind = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<BindError>());
    if let Some(BindError {
        address: from,
        error,
    }) = of_bind
    {
        context.log(
            LogLevel::Crit,
            format_args!(
                "bind({from}) failed ({}) while connecting to upstream",
                Os(error)
            ),
            address,
        );
        context.trace.lock().end_try(Some(500));
        lease.report(Outcome::Neutral, clock::now());
        return Failure::new(FetchError::Local, false);
    }
    let is_timeout = error.kind() == io::ErrorKind::TimedOut;
    let (kind, status) = match is_timeout {
        true => (FetchError::Timeout, 504),
        false => (FetchError::Error, 502),
    };
    let os = Os(error);
    let level = LogLevel::Error;
    let inner = error.get_ref();
    if let Some(error) = inner.and_then(|inner| inner.downcast_ref::<ConnectError>()) {
        let message = format_args!("{error} while SSL handshaking to upstream");
        context.log(level, message, address);
    } else if is_timeout {
        let message = format_args!("upstream timed out ({os}) while connecting to upstream");
        context.log(level, message, address);
    } else {
        let message =
            format_args!("connect() to {address} failed ({os}) while connecting to upstream");
        context.log(level, message, address);
    }
    context.trace.lock().end_try(Some(status));
    lease.report(Outcome::Failure, clock::now());
    Failure::new(kind, false)
}

/// Drops repetitions of a field that may stand only once: two answers to one
/// question, of which the first holds.
fn keep_first(fields: &mut Vec<(Bytes, Bytes)>, name: &[u8]) {
    let mut seen = false;
    fields.retain(|(field, _)| {
        let is_it = same_name(field, name);
        let is_repeated = seen && is_it;
        seen |= is_it;
        !is_repeated
    });
}

/// Shows an I/O error as nginx does: `111: Connection refused`.
struct Os<'a>(&'a io::Error);

impl std::fmt::Display for Os<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.0.to_string();
        let text = text.split(" (os error").next().unwrap_or(&text);
        match self.0.raw_os_error() {
            Some(code) => write!(f, "{code}: {text}"),
            None if self.0.kind() == io::ErrorKind::TimedOut => {
                f.write_str("110: Connection timed out")
            }
            None => f.write_str(text),
        }
    }
}

/// A connection that served before, if there is one to trust.
fn take_kept(spec: &FetchSpec, lease: &mut Lease, resend: &Resend) -> Option<upstream::Connection> {
    if !spec.asking.keeps_connection() {
        return None;
    }
    // PHP-FPM closes a connection right after its worker's last answer
    // (`pm.max_requests`): a request sent at that moment would be lost, where it may not be
    // sent again. The lease closes the kept connection in favour of the new one.
    if matches!(spec.asking, UpstreamRequest::FastCgi { .. }) && !resend.is_allowed {
        return None;
    }
    lease.take_idle(clock::recent(), resend.is_allowed)
}

async fn connect_anew(spec: &FetchSpec, lease: &mut Lease) -> io::Result<upstream::Connection> {
    let limit = spec.context.pass.exchange.connect_timeout;
    let started = tokio::time::Instant::now();
    let give_up_at = started + limit.min(OWN_POOL_PATIENCE);
    loop {
        match lease.connect_anew(limit, clock::now()).await {
            Err(error)
                if spec.own_pool
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
    let Some((connector, name)) = &spec.tls else {
        return Ok(connection);
    };
    let shaken = tokio::time::timeout_at(until, connection.stream.encrypt(connector, name));
    connection.stream = match shaken.await {
        Ok(stream) => stream.map_err(io::Error::other)?,
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
    };
    Ok(connection)
}

enum HeadFailure {
    Exchange(exchange::Error),
    /// It ended where a head should have been.
    Closed,
    Timeout {
        sent: bool,
    },
    /// stderr held one of `fastcgi_catch_stderr`'s texts.
    CaughtStderr,
}

async fn read_head(
    upstream: &mut UpstreamBody,
    is_streaming: bool,
    hints: Option<&Hints>,
) -> Result<Head, HeadFailure> {
    let mut hinted_bytes = 0;
    loop {
        let Some(exchange) = &mut upstream.exchange else {
            return Err(HeadFailure::Closed);
        };
        let settings = &upstream.context.pass.exchange;
        let limit = |exchange: &Exchange| match exchange.is_request_sent() {
            true => settings.read_timeout,
            // A body that is still arriving has the client's own timeout too.
            false if is_streaming => settings.send_timeout.max(settings.read_timeout),
            false => settings.send_timeout,
        };
        let Some(event) = exchange.next_within(&upstream.deadline, limit).await else {
            return Err(HeadFailure::Timeout {
                sent: exchange.is_request_sent(),
            });
        };
        match event.map_err(HeadFailure::Exchange)? {
            Some(Event::Head(head)) => return Ok(head),
            Some(Event::Interim(head)) if head.status == 103 => {
                if let Some(hints) = hints {
                    hint(upstream, hints, head, &mut hinted_bytes);
                }
            }
            Some(Event::Interim(_)) => {}
            Some(Event::Stderr(text)) => {
                upstream.log_stderr(&text, "reading response header from upstream");
                let caught = upstream.context.pass.fastcgi().is_some_and(|fastcgi| {
                    fastcgi
                        .catch_stderr
                        .iter()
                        .any(|caught| contains(&text, caught))
                });
                if caught {
                    return Err(HeadFailure::CaughtStderr);
                }
            }
            Some(Event::Data(_) | Event::Trailers(_) | Event::End(_)) | None => {
                return Err(HeadFailure::Closed);
            }
        }
    }
}

/// Sends a 103 on its way. As with nginx, all of a try together have as much room as
/// a response head.
fn hint(upstream: &UpstreamBody, hints: &Hints, head: Head, hinted_bytes: &mut u64) {
    let lengths = head
        .fields
        .iter()
        .map(|(name, value)| name.len() + value.len());
    *hinted_bytes += lengths.sum::<usize>() as u64;
    if *hinted_bytes > upstream.settings().head_bytes {
        let message = format_args!("upstream sent too big early hints");
        return upstream.report(LogLevel::Info, message);
    }
    hints.send(head.fields);
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    memchr::memmem::find(text, wanted).is_some()
}

fn head_failed(upstream: &mut UpstreamBody, failure: HeadFailure) -> Failure {
    let (error, sent, status, retry_own) = match failure {
        HeadFailure::CaughtStderr => (FetchError::InvalidHeader, true, 502, false),
        HeadFailure::Timeout { sent } => {
            upstream.report(
                LogLevel::Error,
                if sent {
                    format_args!("upstream timed out (110: Connection timed out) while reading response header from upstream")
                } else {
                    format_args!("upstream timed out (110: Connection timed out) while sending request to upstream")
                },
            );
            (FetchError::Timeout, true, 504, false)
        }
        HeadFailure::Closed => (FetchError::Error, true, 502, false),
        HeadFailure::Exchange(error) => {
            if let Some(error) = error.of_request_body() {
                let status = client_status(error);
                upstream.report(LogLevel::Info, format_args!("{error}"));
                upstream.abandon(Outcome::Neutral, Some(status));
                return Failure::new(FetchError::Client(status), true);
            }
            let kind = match error.is_invalid_head() {
                true => FetchError::InvalidHeader,
                false => FetchError::Error,
            };
            let retry_own = error.before_first_byte() && kind == FetchError::Error;
            upstream.report(
                LogLevel::Error,
                format_args!("{error} while reading response header from upstream"),
            );
            (kind, true, 502, retry_own)
        }
    };
    upstream.abandon(Outcome::Failure, Some(status));
    Failure {
        error,
        sent,
        retry_own,
        is_named: false,
    }
}

fn client_status(error: &io::Error) -> u16 {
    error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<ClientFault>())
        .map_or(400, |fault| fault.0.status())
}
