//! One client connection: heads are read, requests served one after another,
//! and the end is made so that the client gets what was sent.
//!
//! ```text
//! accept ─► [PROXY header] ─► head ─► request ─► response ─► head ... ─► linger ─► close
//!                              ▲ idle: no buffer is held, a graceful stop closes
//! ```

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http1::{
    FieldSpan, Framing, HeadLimits, Parsed, RequestError, RequestHead, RequestLine, Span, Target,
    TargetForm, Version,
};
use site::{HeadSettings, LingeringClose, ListenerId, LogLevel, Server, ServerId, Settings};
use tokio::time::Instant;

use crate::body::{ClientInput, RequestBody};
use crate::client::ClientSide;
use crate::patience::Patience;
use crate::request::{ConnectionFacts, LocalAddress, Method, Request};
use crate::respond::{self, After, SendError};
use crate::runtime::Runtime;
use crate::stream::ClientStream;
use crate::worker::Shared;
use crate::{access, access_log, clock, error_log, pipeline, proxy_protocol, route, tunnel};

/// How much is read at once while waiting for a head.
const READ_BYTES: usize = 8 * 1024;
/// Read buffers kept per thread for whichever connection has bytes next.
const KEPT_BUFFERS: usize = 32;

/// How long the close of a connection waits for the refresh that its last request
/// has begun; the response is out by then.
const REFRESH_PATIENCE: Duration = Duration::from_millis(100);

/// Serves a connection until it ends.
pub async fn serve(
    shared: Arc<Shared>,
    stream: ClientStream,
    peer: Option<std::net::SocketAddr>,
    local: LocalAddress,
    place: site::ListenAddress,
) {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let runtime = shared.runtime();
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed) + 1;
    let stats = runtime.stats.clone();
    stats.handled.fetch_add(1, Ordering::Relaxed);
    let facts = ConnectionFacts {
        serial,
        peer,
        local,
        accepted_at: clock::now(),
        proxy: None,
    };
    let stream = Arc::new(stream);
    let registration = shared.register(&stream);
    let mut connection = Connection {
        shared,
        input: ClientInput::new(stream.clone()),
        stream,
        facts: Arc::new(facts),
        place,
        spans: Vec::new(),
        requests: 0,
        keepalive: Duration::from_secs(60),
        patience: Patience::default(),
    };
    drop(runtime);
    connection.run().await;
    drop(registration);
}

struct Connection {
    shared: Arc<Shared>,
    stream: Arc<ClientStream>,
    input: ClientInput,
    facts: Arc<ConnectionFacts>,
    place: site::ListenAddress,
    spans: Vec<FieldSpan>,
    requests: u64,
    keepalive: Duration,
    patience: Patience,
}

/// What waiting for a head came to.
enum HeadRead {
    Head(RequestLine),
    /// The client closed between requests, or never sent one.
    Closed,
    /// It closed or stayed silent in the middle of a head.
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
        let runtime = self.shared.runtime();
        let Some((_, listener)) = self.listener(&runtime) else {
            return;
        };
        if listener.options.proxy_protocol {
            let settings = &runtime.site.http.servers[listener.default_server.0];
            match proxy_protocol::read(&mut self.input, settings.head.timeout).await {
                Ok(proxy) => {
                    if let Some(facts) = Arc::get_mut(&mut self.facts) {
                        facts.proxy = proxy;
                    }
                }
                Err(reason) => {
                    let logs = &settings.settings(Server::ROOT).error_logs;
                    error_log::write(
                        &runtime,
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
        drop(runtime);
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
    fn listener<'r>(&self, runtime: &'r Runtime) -> Option<(ListenerId, &'r site::Listener)> {
        let listeners = &runtime.site.http.listeners;
        let index = position_of(listeners, &self.facts.local, &self.place)?;
        Some((ListenerId(index), &listeners[index]))
    }

    async fn next_request(&mut self) -> Next {
        let runtime = self.shared.glance();
        // A reload may have taken the listener away while we waited.
        let Some((_, listener)) = self.listener(&runtime) else {
            return Next::Close;
        };
        let default_server = listener.default_server;
        let head_settings = &runtime.site.http.servers[default_server.0].head;
        let limits = head_limits(head_settings);
        let pipelined = self.requests > 0 && !self.input.buffer.is_empty();
        let timeout = head_settings.timeout;
        let idle = if self.requests == 0 {
            timeout
        } else {
            self.keepalive
        };
        drop(runtime);
        let (read, started_at) = self.read_head(&limits, idle, timeout).await;
        // The configuration may have changed while we waited for the head.
        let runtime = self.shared.runtime();
        let Some((_, listener)) = self.listener(&runtime) else {
            return Next::Close;
        };
        let default_server = listener.default_server;
        match read {
            HeadRead::Closed => Next::Close,
            HeadRead::Abandoned(what, status) => {
                self.log_abandoned(&runtime, default_server, what, status, started_at);
                Next::Close
            }
            HeadRead::Refused(error) => {
                self.refuse(&runtime, default_server, error, started_at)
                    .await
            }
            HeadRead::Head(line) => {
                self.requests += 1;
                runtime.stats.requests.fetch_add(1, Ordering::Relaxed);
                let bytes = self.input.buffer.split_to(line.head_len).freeze();
                let head = RequestHead {
                    bytes,
                    line,
                    fields: std::mem::take(&mut self.spans),
                };
                self.serve_head(runtime.clone(), default_server, head, started_at, pipelined)
                    .await
            }
        }
    }

    /// Reads until a whole head is there. Gives the time its first byte was seen.
    async fn read_head(
        &mut self,
        limits: &HeadLimits,
        idle: Duration,
        timeout: Duration,
    ) -> (HeadRead, u64) {
        let mut parsed_len = 0;
        let mut started_at = clock::now();
        let mut deadline: Option<Instant> = None;
        loop {
            let buffered = self.input.buffer.len();
            if buffered > parsed_len || (buffered > 0 && parsed_len == 0) {
                if http1::worth_parsing(&self.input.buffer, parsed_len, limits) {
                    match http1::parse_request(&self.input.buffer, limits, &mut self.spans) {
                        Ok(Parsed::Complete(line)) => return (HeadRead::Head(line), started_at),
                        Ok(Parsed::Partial) => {}
                        Err(error) => return (HeadRead::Refused(error), started_at),
                    }
                }
                parsed_len = buffered;
                // Only line ends so far: the client is between requests.
                let begun = self
                    .input
                    .buffer
                    .iter()
                    .any(|&byte| byte != b'\r' && byte != b'\n');
                if begun && deadline.is_none() {
                    deadline = Some(Instant::now() + timeout);
                }
            }
            let is_idle = deadline.is_none();
            self.stream.set_idle(is_idle);
            if is_idle && self.shared.is_stopping() && self.requests > 0 {
                return (HeadRead::Closed, started_at);
            }
            let until = deadline.unwrap_or_else(|| Instant::now() + idle);
            let read = self.fill(until).await;
            self.stream.set_idle(false);
            match read {
                Ok(Some(0)) | Err(_) if is_idle => return (HeadRead::Closed, started_at),
                Ok(Some(0)) | Err(_) => {
                    return (
                        HeadRead::Abandoned("client prematurely closed connection", 400),
                        started_at,
                    );
                }
                Ok(None) if is_idle => {
                    if self.requests == 0 {
                        return (HeadRead::Abandoned("client timed out", 408), started_at);
                    }
                    return (HeadRead::Closed, started_at);
                }
                Ok(None) => return (HeadRead::Abandoned("client timed out", 408), started_at),
                Ok(Some(_)) => {
                    if is_idle {
                        started_at = clock::now();
                    }
                }
            }
        }
    }

    /// Reads some bytes; `None` when `until` passed first. While nothing has
    /// come, the connection holds no buffer.
    async fn fill(&mut self, until: Instant) -> io::Result<Option<usize>> {
        let stream = &self.stream;
        let buffer = &mut self.input.buffer;
        let patience = &mut self.patience;
        patience.until(until);
        poll_fn(|cx| {
            if buffer.capacity() - buffer.len() < READ_BYTES / 4 {
                if buffer.is_empty() {
                    *buffer = take_buffer();
                }
                buffer.reserve(READ_BYTES);
            }
            let polled = stream.poll_read(cx, buffer);
            if polled.is_pending() && buffer.is_empty() {
                give_buffer(std::mem::take(buffer));
            }
            match polled {
                Poll::Ready(read) => Poll::Ready(read.map(Some)),
                Poll::Pending => patience.poll(cx).map(|()| Ok(None)),
            }
        })
        .await
    }

    async fn serve_head(
        &mut self,
        runtime: Arc<Runtime>,
        default_server: ServerId,
        head: RequestHead,
        started_at: u64,
        pipelined: bool,
    ) -> Next {
        let now = clock::now();
        let mut request = Request::new(
            runtime.clone(),
            self.facts.clone(),
            head,
            default_server,
            now,
        );
        request.started_at = started_at;
        request.nth_on_connection = self.requests;
        request.pipelined = pipelined;
        request.received_bytes = request.head.line.head_len as u64;
        let framing = match self.understand(&runtime, &mut request) {
            Ok(framing) => framing,
            Err(error) => {
                let message = error.to_string();
                error_log::request(&request, LogLevel::Info, format_args!("{message}"));
                return self
                    .answer(request, Framing::None, Some(error.status()))
                    .await;
            }
        };
        self.answer(request, framing, None).await
    }

    /// Host, target, framing: what must be beyond doubt before anything else.
    fn understand(
        &self,
        runtime: &Runtime,
        request: &mut Request,
    ) -> Result<Framing, RequestError> {
        let Some((_, listener)) = self.listener(runtime) else {
            return Ok(Framing::None);
        };
        let merge = runtime.site.http.servers[request.server.0].merge_slashes;
        let is_09 = request.head.version() == Version::Http09;
        let framing = {
            let head = request.head.view();
            let target = Target::parse(head.target(), merge)?;
            if let Some(host) = http1::request_host(head, &target)? {
                request.host = host.name.into_owned();
                request.host_port = host.port;
            }
            let framing = if is_09 {
                Framing::None
            } else {
                http1::body_framing(head)?
            };
            if target.form == TargetForm::Asterisk {
                return Err(RequestError::InvalidRequestLine);
            }
            request.path = target.path.into_owned();
            request.args = target.query.unwrap_or_default().to_vec();
            framing
        };
        let server = route::server_for(listener, &request.host);
        if server != request.server {
            request.server = server;
            request.enter(Server::ROOT);
        }
        let own_merge = runtime.site.http.servers[server.0].merge_slashes;
        if own_merge != merge {
            let target = Target::parse(request.head.target(), own_merge)?;
            request.path = target.path.into_owned();
        }
        route::capture_server_name(request, listener);
        access::apply_real_ip(request);
        Ok(framing)
    }

    /// Serves the request, sends the response, writes the log.
    async fn answer(
        &mut self,
        mut request: Box<Request>,
        framing: Framing,
        refused: Option<u16>,
    ) -> Next {
        self.input.begin(framing);
        if framing != Framing::None {
            request.body = RequestBody::Unread;
        }
        let placeholder = ClientInput::new(self.stream.clone());
        let input = std::mem::replace(&mut self.input, placeholder);
        let mut client = ClientSide::new(input);
        client.expects_continue =
            framing != Framing::None && http1::expects_continue(&request.head);
        let reply = match refused {
            Some(status) => pipeline::refuse(&mut request, &mut client, status).await,
            None => pipeline::serve(&mut request, &mut client).await,
        };
        let settings = request.settings.clone();
        let may_keep_alive = refused.is_none()
            && self.may_keep_alive(&request, &settings)
            && !client.expects_continue;
        let mut tunnel = None;
        let mut after = match reply {
            Some(mut reply) => {
                let stream = self.stream.clone();
                tunnel = reply.take_tunnel();
                respond::send(&mut request, reply, &stream, may_keep_alive).await
            }
            None => Ok(After::Close),
        };
        if let Some(input) = client.into_input() {
            self.input = input;
        }
        if let (Some(upstream), Ok(_)) = (tunnel, &after) {
            let ahead = std::mem::take(&mut self.input.buffer);
            let until = self.shared.outlived(request.runtime.clone());
            let moved = Box::pin(tunnel::run(&self.stream, ahead, *upstream, until)).await;
            request.bytes_sent += moved.to_client;
            request.received_bytes += moved.to_upstream;
            after = Ok(After::Close);
        }
        if let Err(error) = &after {
            self.log_send_error(&request, error);
        }
        request.limit_guards.clear();
        access_log::log(&mut request);
        if !matches!(after, Ok(After::KeepAlive)) {
            // Whoever sees the connection end finds the line in the log.
            access_log::flush_thread();
        }
        if let (Some(refresh), Ok(After::Close)) = (request.refresh.take(), &after) {
            // Whoever comes back at once shall find what it has caused.
            let _ = tokio::time::timeout(REFRESH_PATIENCE, refresh).await;
        }
        self.spans = std::mem::take(&mut request.head.fields);
        self.keepalive = settings.connection.keepalive_timeout;
        let gone = request.status == 499 || request.status == 444;
        match after {
            Ok(After::KeepAlive) => {
                if self.discard_body(&settings).await {
                    Next::Request
                } else {
                    Next::Linger(settings)
                }
            }
            Ok(After::Close) if gone => Next::Close,
            Ok(After::Close) => self.farewell(settings),
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
    fn farewell(&self, settings: Arc<Settings>) -> Next {
        match settings.connection.lingering_close {
            LingeringClose::Always => Next::Linger(settings),
            LingeringClose::On if !self.input.is_done() || !self.input.buffer.is_empty() => {
                Next::Linger(settings)
            }
            _ => Next::Close,
        }
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
        if connection.disable_msie6 || connection.disable_safari {
            let agent = request.head.field("user-agent").unwrap_or_default();
            if connection.disable_msie6
                && request.method == Method::Post
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
        if self.input.is_done() {
            return true;
        }
        self.input.limit(&settings.body);
        let limit = Instant::now() + settings.connection.lingering_time;
        loop {
            match tokio::time::timeout_at(limit, self.input.next_body()).await {
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
        let patience = settings.connection.lingering_timeout;
        self.input.buffer.clear();
        loop {
            let until = end.min(Instant::now() + patience);
            match self.fill(until).await {
                Ok(Some(read)) if read > 0 => self.input.buffer.clear(),
                _ => return,
            }
        }
    }

    /// A head that could not be read: its error page, then the end.
    async fn refuse(
        &mut self,
        runtime: &Arc<Runtime>,
        server: ServerId,
        error: RequestError,
        started_at: u64,
    ) -> Next {
        self.requests += 1;
        runtime.stats.requests.fetch_add(1, Ordering::Relaxed);
        let head = unreadable_head(&self.input.buffer);
        let mut request = Request::new(
            runtime.clone(),
            self.facts.clone(),
            head,
            server,
            clock::now(),
        );
        request.started_at = started_at;
        request.received_bytes = self.input.buffer.len() as u64;
        request.path = b"/".to_vec();
        error_log::request(&request, LogLevel::Info, format_args!("{error}"));
        self.answer(request, Framing::None, Some(error.status()))
            .await
    }

    fn log_abandoned(
        &self,
        runtime: &Arc<Runtime>,
        server: ServerId,
        what: &str,
        status: u16,
        started_at: u64,
    ) {
        let head = unreadable_head(&self.input.buffer);
        let mut request = Request::new(
            runtime.clone(),
            self.facts.clone(),
            head,
            server,
            clock::now(),
        );
        request.started_at = started_at;
        request.received_bytes = self.input.buffer.len() as u64;
        request.status = status;
        error_log::request(
            &request,
            LogLevel::Info,
            format_args!("{what} while reading client request headers"),
        );
        if !self.input.buffer.is_empty() {
            access_log::log(&mut request);
        }
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
            SendError::BrokenOff => {}
        }
    }
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
        },
        bytes,
        fields: Vec::new(),
    }
}

thread_local! {
    static BUFFERS: std::cell::RefCell<Vec<BytesMut>> = const { std::cell::RefCell::new(Vec::new()) };
}

fn take_buffer() -> BytesMut {
    BUFFERS.with_borrow_mut(Vec::pop).unwrap_or_default()
}

fn give_buffer(buffer: BytesMut) {
    BUFFERS.with_borrow_mut(|buffers| {
        if buffers.len() < KEPT_BUFFERS && buffer.capacity() > 0 {
            buffers.push(buffer);
        }
    });
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
