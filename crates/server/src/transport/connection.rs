//! One client connection: heads are read, requests served one after another,
//! and the end is made so that the client gets what was sent.
//!
//! ```text
//! accept ─► [PROXY header] ─► head ─► request ─► response ─► head ... ─► linger ─► close
//!                              ▲ idle: no buffer is held, a graceful stop closes
//! ```

mod validate;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http1::{
    FieldSpan, Framing, HeadLimits, Parsed, RequestError, RequestHead, RequestLine, Span, Version,
};
use site::{HeadSettings, LingeringClose, ListenerId, LogLevel, Server, ServerId, Settings};
use tokio::time::Instant;

use crate::base::clock;
use crate::base::deadline::Deadline;
use crate::base::ready_or_pending::ReadyOrPending;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::request;
use crate::exchange::request::{HostName, Method, Request};
use crate::log::{access_log, error_log};
use crate::pipeline;
use crate::respond;
use crate::respond::{After, SendError};
use crate::transport::body::RequestBody;
use crate::transport::client::{ClientSide, WriteInformational};
use crate::transport::facts::{ConnectionFacts, LocalAddress};
use crate::transport::stream::{ClientStream, Phase};
use crate::transport::{informational, proxy_protocol, tunnel};
use crate::worker::Shared;
use crate::worker_loads::ConnectionSlot;

use validate::validate;

/// How long the close of a connection waits for the refresh that its last request
/// has begun; the response is out by then.
const REFRESH_PATIENCE: Duration = Duration::from_millis(100);

/// Serves a connection until it ends. What happens before the first wait happens
/// here, so that the future, which is most of what an idle connection holds, is
/// made of the connection alone.
pub fn serve(
    shared: Arc<Shared>,
    stream: ClientStream,
    peer: Option<std::net::SocketAddr>,
    local: LocalAddress,
    place: site::ListenAddress,
    seat: ConnectionSlot,
) -> impl Future<Output = ()> + Send {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed) + 1;
    let stats = &shared.glance().live.stats;
    stats.handled.fetch_add(1, Ordering::Relaxed);
    let facts = ConnectionFacts {
        serial,
        peer,
        local,
        scheme: "http",
        accepted_at: clock::now(),
        proxy: None,
    };
    let stream = Arc::new(stream);
    let registration = shared.register(&stream, seat);
    let mut connection = Connection {
        shared,
        client: ClientSide::new(stream.clone()),
        stream,
        facts: Arc::new(facts),
        place,
        found: None,
        host: HostName::default(),
        requests: 0,
        idle: Duration::from_secs(60),
        deadline: Deadline::default(),
    };
    let stream = connection.stream.clone();
    async move {
        let mut run = pin!(connection.run());
        poll_fn(|cx| {
            let polled = run.as_mut().poll(cx);
            if polled.is_pending() && stream.has_gathered() {
                // Whatever is waited for, answers that are ready do not wait with it.
                // An error is told to whoever writes next.
                let _ = stream.poll_flush(cx);
            }
            polled
        })
        .await;
        // What is left is what was gathered ahead of a request that was none.
        let _ = stream.try_flush();
        drop(registration);
    }
}

struct Connection {
    shared: Arc<Shared>,
    stream: Arc<ClientStream>,
    client: ClientSide,
    facts: Arc<ConnectionFacts>,
    place: site::ListenAddress,
    /// The listener's place in the configuration of this serial number.
    found: Option<(u64, ListenerId)>,
    /// What the last request named.
    host: HostName,
    requests: u64,
    /// How long the next request may let us wait.
    idle: Duration,
    deadline: Deadline,
}

/// What waiting for a request came to.
enum Awaited {
    /// Its first bytes, in the buffer.
    Bytes,
    /// The client closed, or a graceful stop did.
    Closed,
    TimedOut,
}

/// What reading a head came to.
enum HeadRead {
    Head(RequestLine, Vec<FieldSpan>),
    /// The client closed or stayed silent in the middle of it.
    Abandoned(&'static str, u16),
    Refused(RequestError),
}

/// What is to be done after a request.
enum Next {
    Request,
    Close,
    /// Close, but read what the client still sends, so that it gets the response.
    Linger(Arc<Settings>),
}

impl Connection {
    async fn run(&mut self) {
        let configuration = self.shared.configuration();
        let Some(listener) = self.listener(&configuration) else {
            return;
        };
        let listener = &configuration.site.http.listeners[listener.0];
        let server = &configuration.site.http.servers[listener.default_server.0];
        self.idle = server.head.timeout;
        if listener.options.proxy_protocol {
            let Some(input) = self.client.input() else {
                return;
            };
            match Box::pin(proxy_protocol::read(input, server.head.timeout)).await {
                Ok(proxy) => {
                    if let Some(facts) = Arc::get_mut(&mut self.facts) {
                        facts.proxy = proxy;
                    }
                }
                Err(reason) => {
                    let logs = &server.settings(Server::ROOT).error_logs;
                    configuration.live.error_logs.write(
                        logs,
                        LogLevel::Error,
                        self.facts.serial,
                        format_args!("{reason} while reading PROXY protocol"),
                        "",
                    );
                    return;
                }
            }
        }
        drop(configuration);
        loop {
            match self.next_request().await {
                Next::Request => {}
                Next::Close => return,
                Next::Linger(settings) => {
                    self.linger(&settings).await;
                    return;
                }
            }
        }
    }

    /// The listener this connection came by, in the configuration now in force.
    fn listener(&mut self, configuration: &ActiveConfiguration) -> Option<ListenerId> {
        match self.found {
            Some((serial, listener)) if serial == configuration.serial => Some(listener),
            _ => {
                let listeners = &configuration.site.http.listeners;
                let index = position_of(listeners, &self.facts.local, &self.place)?;
                let (_, listener) = self.found.insert((configuration.serial, ListenerId(index)));
                Some(*listener)
            }
        }
    }

    async fn next_request(&mut self) -> Next {
        let Some(input) = self.client.input() else {
            return Next::Close;
        };
        let pipelined = self.requests > 0 && !input.buffer.is_empty();
        let awaited = match is_between_requests(&input.buffer) {
            true => self.await_request().await,
            false => Awaited::Bytes,
        };
        if matches!(awaited, Awaited::Closed) {
            return Next::Close;
        }
        let started_at = clock::recent();
        let configuration = self.shared.configuration_of_thread();
        // A reload may have taken the listener away while we waited.
        let Some(listener) = self.listener(&configuration) else {
            return Next::Close;
        };
        let server = configuration.site.http.listeners[listener.0].default_server;
        let read = match awaited {
            Awaited::Bytes => {
                let settings = &configuration.site.http.servers[server.0].head;
                self.read_head(&head_limits(settings), settings.timeout)
                    .await
            }
            _ if self.requests > 0 => return Next::Close,
            _ => HeadRead::Abandoned("client timed out", 408),
        };
        match read {
            HeadRead::Abandoned(what, status) => {
                self.log_abandoned(configuration, server, what, status, started_at);
                Next::Close
            }
            HeadRead::Refused(error) => {
                Box::pin(self.refuse(configuration, server, error, started_at)).await
            }
            HeadRead::Head(line, fields) => {
                let Some(input) = self.client.input() else {
                    return Next::Close;
                };
                let bytes = take_head(&mut input.buffer, line.head_len);
                let head = RequestHead {
                    bytes,
                    line,
                    fields,
                };
                self.count(&configuration);
                let mut request = self.begin(configuration, server, head, started_at);
                request.pipelined = pipelined;
                let (framing, refused) = match validate(listener, &mut request, &mut self.host) {
                    Ok(framing) => (framing, None),
                    Err(error) => (Framing::None, Some(error)),
                };
                self.answer(request, framing, refused).await
            }
        }
    }

    /// Waits for the first bytes of a request. Nothing of the configuration is
    /// held meanwhile, and no buffer.
    async fn await_request(&mut self) -> Awaited {
        // For all that comes before a request: line ends do not prolong it.
        let until = clock::recent_instant() + self.idle;
        loop {
            self.stream.set_phase(Phase::Idle);
            if self.shared.is_stopping() && self.requests > 0 {
                return Awaited::Closed;
            }
            let read = self.fill(until).await;
            self.stream.set_phase(Phase::Busy);
            match read {
                Ok(Some(0)) | Err(_) => return Awaited::Closed,
                Ok(None) => return Awaited::TimedOut,
                Ok(Some(_)) => {}
            }
            match self.client.input() {
                Some(input) if is_between_requests(&input.buffer) => input.buffer.clear(),
                Some(_) => return Awaited::Bytes,
                None => return Awaited::Closed,
            }
        }
    }

    /// Reads until a whole head is there.
    async fn read_head(&mut self, limits: &HeadLimits, timeout: Duration) -> HeadRead {
        let mut parsed_len = 0;
        let mut deadline = None;
        let mut fields = request::spare_fields();
        loop {
            let Some(input) = self.client.input() else {
                return HeadRead::Abandoned("client prematurely closed connection", 400);
            };
            if http1::worth_parsing(&input.buffer, parsed_len, limits) {
                match http1::parse_request(&input.buffer, limits, &mut fields) {
                    Ok(Parsed::Complete(line)) => return HeadRead::Head(line, fields),
                    Ok(Parsed::Partial) => {}
                    Err(error) => return HeadRead::Refused(error),
                }
            }
            parsed_len = input.buffer.len();
            let until = *deadline.get_or_insert_with(|| clock::recent_instant() + timeout);
            self.stream.set_phase(Phase::Reading);
            let read = self.fill(until).await;
            self.stream.set_phase(Phase::Busy);
            match read {
                Ok(Some(0)) | Err(_) => {
                    return HeadRead::Abandoned("client prematurely closed connection", 400);
                }
                Ok(None) => return HeadRead::Abandoned("client timed out", 408),
                Ok(Some(_)) => {}
            }
        }
    }

    /// Reads some bytes; `None` when `until` passed first. While nothing has
    /// come, the connection holds no buffer.
    async fn fill(&mut self, until: Instant) -> io::Result<Option<usize>> {
        let stream = &self.stream;
        let Some(input) = self.client.input() else {
            return Ok(Some(0));
        };
        let buffer = &mut input.buffer;
        let deadline = &mut self.deadline;
        deadline.until(until);
        let mut is_woken = false;
        poll_fn(|cx| {
            let was_woken = std::mem::replace(&mut is_woken, true);
            match stream.poll_receive(cx, buffer, was_woken) {
                Poll::Ready(read) => Poll::Ready(read.map(Some)),
                Poll::Pending => deadline.poll(cx).map(|()| Ok(None)),
            }
        })
        .await
    }

    /// The request that `head` is of, with the connection's part of it.
    fn begin(
        &self,
        configuration: ConfigurationHandle,
        server: ServerId,
        head: RequestHead,
        started_at: u64,
    ) -> Box<Request> {
        let now = clock::recent();
        let mut request = Request::new(configuration, self.facts.clone(), head, server, now);
        request.started_at = started_at;
        request.nth_on_connection = self.requests;
        request.received_bytes = request.head.line.head_len as u64;
        request
    }

    fn count(&mut self, configuration: &ActiveConfiguration) {
        self.requests += 1;
        configuration.live.stats.requests.add_one();
    }

    /// Serves the request, sends the response, writes the log.
    async fn answer(
        &mut self,
        mut request: Box<Request>,
        framing: Framing,
        refused: Option<RequestError>,
    ) -> Next {
        let expects = framing != Framing::None && http1::expects_continue(&request.head);
        let may_inform = request.head.version() >= Version::Http11;
        let informational = may_inform.then_some(informational::write as WriteInformational);
        self.client.begin(framing, expects, informational);
        if framing != Framing::None {
            request.body = RequestBody::Unread;
        }
        let is_refused = refused.is_some();
        let configuration = request.configuration.clone();
        let client = &mut self.client;
        let reply = match refused {
            Some(error) => {
                error_log::request(&request, LogLevel::Info, format_args!("{error}"));
                let status = error.status();
                Box::pin(pipeline::refuse(
                    &mut request,
                    client,
                    &configuration,
                    status,
                ))
                .await
            }
            // Not by `end`, here and below: a future more on the way of each hit.
            None => match pipeline::serve(&mut request, client, &configuration) {
                ReadyOrPending::Ready(reply) => reply,
                ReadyOrPending::Pending(rest) => rest.await,
            },
        };
        let may_keep_alive = !is_refused
            && self.may_keep_alive(&request, request.settings())
            && !self.client.expects_continue;
        let mut tunnel = None;
        let mut after = match reply {
            Some(mut reply) => {
                tunnel = reply.take_tunnel();
                let is_followed = self.is_followed();
                let stream = &self.stream;
                match respond::send(&mut request, reply, stream, may_keep_alive, is_followed) {
                    ReadyOrPending::Ready(after) => after,
                    ReadyOrPending::Pending(rest) => rest.await,
                }
            }
            None if self.stream.has_gathered() => {
                let flushed = Box::pin(respond::flush(&request, &self.stream)).await;
                flushed.map(|()| After::Close)
            }
            None => Ok(After::Close),
        };
        if let (Some(upstream), Ok(_)) = (tunnel, &after) {
            let ahead = match self.client.input() {
                Some(input) => std::mem::take(&mut input.buffer),
                None => BytesMut::new(),
            };
            let until = self.shared.outlived(request.configuration.shared().clone());
            let moved = Box::pin(tunnel::run(&self.stream, ahead, upstream, until)).await;
            request.bytes_sent += moved.to_client;
            request.received_bytes += moved.to_upstream;
            after = Ok(After::Close);
        }
        if let Err(error) = &after {
            self.log_send_error(&request, error);
        }
        if let Some(extra) = request.extras.given() {
            extra.limit_guards.clear();
        }
        access_log::log(&mut request);
        if !matches!(after, Ok(After::KeepAlive)) {
            // Whoever sees the connection end finds the line in the log.
            access_log::flush_thread();
        }
        let refresh = request
            .extras
            .given()
            .and_then(|extra| extra.refresh.take());
        if let (Some(refresh), Ok(After::Close)) = (refresh, &after) {
            // Whoever comes back at once shall find what it has caused.
            let _ = tokio::time::timeout(REFRESH_PATIENCE, refresh).await;
        }
        self.host = request.host.hand_on();
        let settings = request.settings();
        self.idle = settings.connection.keepalive_timeout;
        let gone = request.status == 499 || request.status == 444;
        match after {
            Ok(After::KeepAlive) => {
                if self.discard_body(settings).await {
                    Next::Request
                } else {
                    Next::Linger(request.settings_held())
                }
            }
            Ok(After::Close) if gone => Next::Close,
            Ok(After::Close) => self.farewell(&request),
            Err(SendError::TimedOut) => {
                if settings.connection.reset_timedout {
                    self.stream.reset_on_close();
                }
                Next::Close
            }
            Err(_) => Next::Close,
        }
    }

    /// Closes at once, or lingers where the client may still be sending: a
    /// reset would take the response from it.
    fn farewell(&mut self, request: &Request) -> Next {
        let mut is_sending = || {
            self.client
                .input()
                .is_none_or(|input| !input.is_done() || !input.buffer.is_empty())
        };
        match request.settings().connection.lingering_close {
            LingeringClose::Always => Next::Linger(request.settings_held()),
            LingeringClose::On if is_sending() => Next::Linger(request.settings_held()),
            _ => Next::Close,
        }
    }

    /// Is the next request here already, so that its response is about to be made?
    fn is_followed(&mut self) -> bool {
        let input = self.client.input();
        // Most clients wait for their answer: nothing is there.
        input.is_some_and(|input| {
            !input.buffer.is_empty() && input.is_done() && holds_head(&input.buffer)
        })
    }

    fn may_keep_alive(&self, request: &Request, settings: &Settings) -> bool {
        let connection = &settings.connection;
        if connection.keepalive_timeout.is_zero()
            || self.requests >= connection.keepalive_requests
            || self.shared.is_stopping()
        {
            return false;
        }
        let age = request.now.saturating_sub(self.facts.accepted_at);
        if u128::from(age) > connection.keepalive_time.as_millis() {
            return false;
        }
        let is_msie6_shy = connection.disable_msie6 && request.method == Method::Post;
        if is_msie6_shy || connection.disable_safari {
            let agent = request.head.field("user-agent").unwrap_or_default();
            if is_msie6_shy
                && memchr::memmem::find(agent, b"MSIE ").is_some_and(|at| {
                    agent
                        .get(at + 5)
                        .is_some_and(|digit| (b'4'..=b'6').contains(digit))
                        && agent.get(at + 6) == Some(&b'.')
                })
            {
                return false;
            }
            if connection.disable_safari
                && memchr::memmem::find(agent, b"Safari/").is_some()
                && memchr::memmem::find(agent, b"Mac OS X").is_some()
                && memchr::memmem::find(agent, b"Chrome").is_none()
            {
                return false;
            }
        }
        http1::wants_keep_alive(&request.head)
    }

    /// Reads what the handler left of the body, so that the next head is found;
    /// false when that is more than it is worth.
    async fn discard_body(&mut self, settings: &Settings) -> bool {
        let Some(input) = self.client.input() else {
            return false;
        };
        if input.is_done() {
            return true;
        }
        input.limit(&settings.body);
        let limit = Instant::now() + settings.connection.lingering_time;
        loop {
            match tokio::time::timeout_at(limit, input.next_body()).await {
                Ok(Ok(Some(_))) => {}
                Ok(Ok(None)) => return true,
                Ok(Err(_)) | Err(_) => return false,
            }
        }
    }

    /// Says that nothing more will come, and reads until the client agrees.
    async fn linger(&mut self, settings: &Settings) {
        self.stream.shutdown_write();
        let end = Instant::now() + settings.connection.lingering_time;
        let deadline = settings.connection.lingering_timeout;
        loop {
            if let Some(input) = self.client.input() {
                input.buffer.clear();
            }
            let until = end.min(Instant::now() + deadline);
            match self.fill(until).await {
                Ok(Some(read)) if read > 0 => {}
                _ => return,
            }
        }
    }

    /// A head that could not be read: its error page, then the end.
    async fn refuse(
        &mut self,
        configuration: ConfigurationHandle,
        server: ServerId,
        error: RequestError,
        started_at: u64,
    ) -> Next {
        self.count(&configuration);
        let mut request = self.unreadable(configuration, server, started_at);
        if request.path.is_empty() {
            request.path.extend_from_slice(b"/");
        }
        self.answer(request, Framing::None, Some(error)).await
    }

    fn log_abandoned(
        &mut self,
        configuration: ConfigurationHandle,
        server: ServerId,
        what: &str,
        status: u16,
        started_at: u64,
    ) {
        let mut request = self.unreadable(configuration, server, started_at);
        request.status = status;
        error_log::request(
            &request,
            LogLevel::Info,
            format_args!("{what} while reading client request headers"),
        );
        if request.received_bytes > 0 {
            access_log::log(&mut request);
        }
    }

    /// What stands for a request whose head is none.
    fn unreadable(
        &mut self,
        configuration: ConfigurationHandle,
        server: ServerId,
        started_at: u64,
    ) -> Box<Request> {
        let buffer = match self.client.input() {
            Some(input) => &input.buffer[..],
            None => &[],
        };
        let (head, received) = (unreadable_head(buffer), buffer.len() as u64);
        let mut request = self.begin(configuration, server, head, started_at);
        request.received_bytes = received;
        if let Ok(target) = http1::Target::parse(request.head.target(), true) {
            request.path.extend_from_slice(&target.path);
            let query = target.query.unwrap_or_default();
            request.args.extend_from_slice(query);
        }
        request
    }

    fn log_send_error(&self, request: &Request, error: &SendError) {
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
            // The upstream's side has said why.
            SendError::Truncated => {}
        }
    }
}

/// The head at the start of `buffer`. Where nothing follows it, the memory goes
/// along, and the connection keeps none.
fn take_head(buffer: &mut BytesMut, head_len: usize) -> Bytes {
    match buffer.len() == head_len {
        true => std::mem::take(buffer).freeze(),
        false => buffer.split_to(head_len).freeze(),
    }
}

/// Is a whole head there, by the empty line behind it?
fn holds_head(buffer: &[u8]) -> bool {
    let start = buffer
        .iter()
        .position(|&byte| byte != b'\r' && byte != b'\n');
    start.is_some_and(|start| {
        let head = &buffer[start..];
        memchr::memmem::find(head, b"\n\r\n").is_some()
            || memchr::memmem::find(head, b"\n\n").is_some()
    })
}

/// Nothing but line ends, which clients may send between requests (RFC 9112 §2.2).
fn is_between_requests(buffer: &[u8]) -> bool {
    buffer.iter().all(|&byte| byte == b'\r' || byte == b'\n')
}

/// The listener for a connection that came to `local` by the socket of `place`:
/// a wildcard's socket also takes what comes to addresses of its port that have
/// a `listen` of their own.
fn position_of(
    listeners: &[site::Listener],
    local: &LocalAddress,
    place: &site::ListenAddress,
) -> Option<usize> {
    let is_wildcard =
        matches!(place, site::ListenAddress::Tcp(address) if address.ip().is_unspecified());
    if is_wildcard && let LocalAddress::Tcp(local) = local {
        let local = std::net::SocketAddr::new(local.ip().to_canonical(), local.port());
        let own = listeners
            .iter()
            .position(|listener| listener.address == site::ListenAddress::Tcp(local));
        if own.is_some() {
            return own;
        }
    }
    listeners
        .iter()
        .position(|listener| listener.address == *place)
}

fn head_limits(settings: &HeadSettings) -> HeadLimits {
    let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
    HeadLimits {
        first_buffer_bytes: bytes(settings.buffer_bytes),
        large_buffers: settings.large_buffers,
        large_buffer_bytes: bytes(settings.large_buffer_bytes),
        max_fields: settings.max_fields,
        ignore_invalid_fields: settings.ignore_invalid,
        underscores: settings.underscores,
    }
}

/// What stands for a head that was none: its first line, for the log.
fn unreadable_head(buffer: &[u8]) -> RequestHead {
    let end = buffer
        .iter()
        .position(|&byte| byte == b'\n' || byte == b'\r')
        .unwrap_or(buffer.len());
    // Its line may be sound, and the log says then what was asked for.
    let alone = [&buffer[..end], b"\r\n\r\n"].concat();
    let mut fields = Vec::new();
    if let Ok(Parsed::Complete(line)) =
        http1::parse_request(&alone, &HeadLimits::default(), &mut fields)
    {
        return RequestHead {
            bytes: alone.into(),
            line,
            fields,
        };
    }
    let bytes = Bytes::copy_from_slice(&buffer[..end]);
    let nothing = Span::new(0, 0);
    RequestHead {
        line: RequestLine {
            head_len: end,
            method: nothing,
            target: nothing,
            line: Span::new(0, end),
            version: Version::Http10,
            ignored_fields: 0,
            presence: http1::Presence::default(),
        },
        bytes,
        fields: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_socket_serves_the_listeners_of_its_addresses() {
        let tcp = |text: &str| site::ListenAddress::Tcp(text.parse().unwrap());
        let listener = |text| site::Listener {
            address: tcp(text),
            options: site::ListenOptions::default(),
            default_server: ServerId(0),
            names: site::ServerNames::default(),
        };
        let listeners = [
            "0.0.0.0:80",
            "10.0.0.1:80",
            "[::]:80",
            "[::1]:80",
            "10.0.0.1:81",
        ]
        .map(listener);
        for (local, place, wanted) in [
            ("10.0.0.1:80", "0.0.0.0:80", Some("10.0.0.1:80")),
            ("10.0.0.2:80", "0.0.0.0:80", Some("0.0.0.0:80")),
            ("[::1]:80", "[::]:80", Some("[::1]:80")),
            // ipv6only=off
            ("[::ffff:10.0.0.1]:80", "[::]:80", Some("10.0.0.1:80")),
            ("[::2]:80", "[::]:80", Some("[::]:80")),
            ("10.0.0.1:81", "10.0.0.1:81", Some("10.0.0.1:81")),
            // Taken away by a reload.
            ("10.0.0.3:82", "10.0.0.3:82", None),
        ] {
            let local = LocalAddress::Tcp(local.parse().unwrap());
            let found = position_of(&listeners, &local, &tcp(place));
            assert_eq!(
                found.map(|index| listeners[index].address.clone()),
                wanted.map(tcp),
                "{local:?}"
            );
        }
    }
}
