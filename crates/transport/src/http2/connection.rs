//! The task of a connection: reads frames, begins requests, writes frames, and ends the
//! connection so that the client knows which of its requests were served.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use clock::Deadline;
use http_semantics::{RequestHead, Version};
use http2::{ErrorCode, Event, HeadBuffer, Notice, Output, StreamId};
use parking_lot::Mutex;
use tokio::time::Instant;
use transport_settings::{ConnectionSettings, LingeringClose};

use super::request::{ReceivedRequest, RequestContext};
use super::shared::{SharedCodec, Stream, StreamEnd};
use crate::facts::ConnectionFacts;
use crate::service::{BodyLength, Exchange, ReceivedHead, Refusal, Service, Terms};
use crate::stream::{ClientStream, Phase};

/// Slices of one write: the frames of a turn.
const WRITE_SLICES: usize = 64;
/// Written in one turn of the task, beyond which others have theirs: a client that reads as
/// fast as we write would keep the thread for as long as a response is.
const TURN_BYTES: usize = 1024 * 1024;
/// After a connection error we read and discard the client's data for this time and up to this
/// length, so that the client receives our GOAWAY. A client that stops then has no more than that on
/// its way; reading the rest of a flood would be the most expensive part of it.
const FAILED_LINGER: Duration = Duration::from_secs(1);
const FAILED_LINGER_BYTES: usize = 256 * 1024;
/// Bytes read in one turn of the task, before others have theirs: the frames in them may cost
/// milliseconds.
const TURN_READ_BYTES: usize = 64 * 1024;
/// How long a client may take to learn that the connection ends, before a second GOAWAY names the
/// last request.
const SHUTDOWN_PAUSE: Duration = Duration::from_secs(1);

/// Serves a connection, of which `buffer` was read already, until it ends. `guard` lives as
/// long.
pub async fn serve<S: Service>(
    service: Arc<S>,
    stream: Arc<ClientStream>,
    facts: ConnectionFacts,
    mut memory: S::Memory,
    buffer: BytesMut,
    guard: impl Send + 'static,
) {
    let Some(terms) = service.terms(&facts, &mut memory) else {
        return;
    };
    let codec = http2::Connection::new(terms.http2(), std::time::Instant::now());
    let mut connection = Connection {
        patience: Patience {
            idle: terms.head().timeout,
            head_timeout: terms.head().timeout,
            send_timeout: terms.head().timeout,
            linger: Linger::default(),
            resets_timed_out: false,
        },
        max_streams: terms.http2().max_concurrent_streams as usize,
        stopping: Some(Box::pin(service.stopping())),
        answering: RequestContext {
            service,
            memory: Arc::new(Mutex::new(memory)),
            shared: Arc::new(SharedCodec::new(codec)),
        },
        stream,
        facts: Arc::new(facts),
        input: buffer,
        head: HeadBuffer::new(),
        output: Output::new(),
        waiting: Vec::new(),
        requests: 0,
        request_bytes: 0,
        times: ConnectionTimes {
            quiet_since: clock::recent_instant(),
            partial_since: None,
            blocked_since: None,
            shutdown_at: None,
            deadline: Deadline::default(),
        },
        is_over: false,
        ended: EndedBy::Us,
    };
    drop(terms);
    if connection.run().await == EndedBy::Us {
        connection.linger().await;
    }
    connection.stream.end();
    drop(guard);
}

/// The side that ended a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndedBy {
    /// The client may still be sending: a reset would discard bytes that it has not read.
    Us,
    Client,
    /// It takes nothing: no frame reaches it either.
    Timeout,
}

/// How long the client's remaining bytes are read when the connection is over.
struct Linger {
    /// `lingering_time`; zero if it is off.
    time: Duration,
    /// `lingering_timeout`
    timeout: Duration,
    /// How much of it is read at most.
    bytes: usize,
}

impl Default for Linger {
    /// The default before there was a request, whose location sets it.
    fn default() -> Linger {
        Linger {
            time: Duration::from_secs(5),
            timeout: Duration::from_secs(5),
            bytes: usize::MAX,
        }
    }
}

impl Linger {
    fn of(settings: &ConnectionSettings) -> Linger {
        Linger {
            time: match settings.lingering_close {
                LingeringClose::Off => Duration::ZERO,
                LingeringClose::On | LingeringClose::Always => settings.lingering_time,
            },
            timeout: settings.lingering_timeout,
            bytes: usize::MAX,
        }
    }

    /// Returns how long the rest of a request is read whose response has ended.
    fn silence(&self) -> Duration {
        self.time.min(self.timeout)
    }
}

/// A request that has come and has not begun.
struct WaitingRequest {
    id: StreamId,
    head: RequestHead,
    length: BodyLength,
    /// Bytes of its field block.
    block_bytes: u64,
}

/// The timeouts of the connection, from the location of its last request.
struct Patience {
    /// How long the connection may be without a request.
    idle: Duration,
    /// How long a frame, or a head in several of them, may take to be whole.
    head_timeout: Duration,
    send_timeout: Duration,
    linger: Linger,
    /// `reset_timedout_connection`
    resets_timed_out: bool,
}

/// The event that the connection waits for, and since when.
struct ConnectionTimes {
    /// When a stream was last begun or ended.
    quiet_since: Instant,
    /// The time since which a part of a frame or of a head is there.
    partial_since: Option<Instant>,
    /// The time since which the socket takes nothing.
    blocked_since: Option<Instant>,
    /// When the GOAWAY was sent that announces the end of the connection.
    shutdown_at: Option<Instant>,
    deadline: Deadline,
}

struct Connection<S: Service> {
    answering: RequestContext<S>,
    stream: Arc<ClientStream>,
    facts: Arc<ConnectionFacts>,
    /// Bytes read that are no whole frame yet.
    input: BytesMut,
    head: HeadBuffer,
    output: Output,
    /// Requests that came and have not begun; none between two turns.
    waiting: Vec<WaitingRequest>,
    requests: u64,
    /// Bytes of the field block of the request that begins.
    request_bytes: u64,
    patience: Patience,
    /// How many requests may be worked on.
    max_streams: usize,
    /// Resolves with the graceful stop; `None` once it has.
    stopping: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    times: ConnectionTimes,
    /// Nothing more is read: the rest of the output is written, and the connection closes.
    is_over: bool,
    ended: EndedBy,
}

impl<S: Service> Connection<S> {
    async fn run(&mut self) -> EndedBy {
        if !self.input.is_empty() {
            self.take_frames();
        }
        poll_fn(|cx| self.poll(cx)).await;
        // Tasks that still work for a stream learn that their client has gone.
        let streams: Vec<StreamId> = {
            let mut state = self.answering.shared.lock();
            state.codec.abort(ErrorCode::NO_ERROR);
            state.streams.keys().copied().collect()
        };
        for id in streams {
            self.close(id, 0, false);
        }
        self.ended
    }

    /// Says that nothing more will come, and reads until the client agrees.
    async fn linger(&mut self) {
        let Linger {
            time,
            timeout,
            bytes: mut left,
        } = self.patience.linger;
        if time.is_zero() {
            return;
        }
        self.stream.shutdown_write();
        let end = Instant::now() + time;
        loop {
            self.input = BytesMut::new();
            let (stream, input) = (&self.stream, &mut self.input);
            let reading = poll_fn(|cx| stream.poll_receive(cx, input, false));
            let until = end.min(Instant::now() + timeout);
            match tokio::time::timeout_at(until, reading).await {
                // A client may send faster than this is read: then nothing waits for the end.
                Ok(Ok(read)) if (1..left).contains(&read) && Instant::now() < end => left -= read,
                _ => return,
            }
        }
    }

    /// Makes all progress that is possible; ready when the connection is over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Frames given meanwhile are written here: no task has to be woken for them.
        self.answering.shared.lock().forget_writer();
        let (mut read, mut written) = (0, 0);
        loop {
            self.announce_end(cx);
            let received = self.read(cx);
            let has_read = received.is_some();
            read += received.unwrap_or(0);
            if !has_read {
                self.begin_waiting();
            }
            let wrote = match self.write(cx) {
                Ok(wrote) => wrote,
                Err(_) => {
                    self.ended = EndedBy::Client;
                    return Poll::Ready(());
                }
            };
            if self.is_finished() {
                return Poll::Ready(());
            }
            written += wrote;
            if written >= TURN_BYTES || read >= TURN_READ_BYTES {
                self.begin_waiting();
                self.answering.shared.lock().set_writer(cx);
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if has_read || wrote > 0 {
                continue;
            }
            self.set_phase();
            if self.answering.shared.lock().set_writer(cx) && self.output.is_empty() {
                // It was given since.
                continue;
            }
            if self.wait(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Announces a graceful stop to the client.
    fn announce_end(&mut self, cx: &mut Context<'_>) {
        let Some(stopping) = &mut self.stopping else {
            return;
        };
        if stopping.as_mut().poll(cx).is_ready() {
            self.stopping = None;
            self.shut_down();
        }
    }

    fn shut_down(&mut self) {
        if self.times.shutdown_at.is_none() {
            self.answering.shared.lock().codec.shut_down();
            self.times.shutdown_at = Some(Instant::now());
        }
    }

    /// Is all done that there was to do?
    fn is_finished(&self) -> bool {
        if self.ended == EndedBy::Timeout {
            return true;
        }
        if !self.output.is_empty() {
            return false;
        }
        let state = self.answering.shared.lock();
        !state.codec.has_output() && (self.is_over || state.codec.is_finished())
    }

    /// Reads the available bytes and returns their number, zero for the end. `None`: nothing came.
    fn read(&mut self, cx: &mut Context<'_>) -> Option<usize> {
        if self.is_over || self.answering.shared.lock().codec.is_congested() {
            return None;
        }
        match self.stream.poll_receive(cx, &mut self.input, false) {
            Poll::Pending => None,
            Poll::Ready(Ok(read)) if read > 0 => {
                self.take_frames();
                Some(read)
            }
            // The client sends nothing more. The responses to its requests are still sent.
            Poll::Ready(_) => {
                self.begin_waiting();
                self.is_over = true;
                self.ended = EndedBy::Client;
                self.answering.shared.lock().codec.finish_shutdown();
                Some(0)
            }
        }
    }

    /// Takes all whole frames from the input. Requests wait: they begin when nothing more is there
    /// to be read ([`Connection::begin_waiting`]), and one that a frame behind it takes back costs
    /// nothing but its frames.
    fn take_frames(&mut self) {
        let mut input = std::mem::take(&mut self.input);
        let mut head = std::mem::take(&mut self.head);
        let mut consumed = 0;
        loop {
            let rest = input.get(consumed..).unwrap_or_default();
            let now = std::time::Instant::now();
            let received = {
                let mut state = self.answering.shared.lock();
                state.codec.receive(rest, &mut head, now)
            };
            match received {
                Ok(received) => {
                    consumed += received.consumed;
                    match received.event {
                        Some(event) => self.handle(event),
                        None => break,
                    }
                }
                Err(error) => {
                    // Earlier requests are served, and decide how a connection ends that has not
                    // failed.
                    self.begin_waiting();
                    self.fail(&error.to_string());
                    break;
                }
            }
        }
        input.advance(consumed);
        let is_in_head = self.answering.shared.lock().codec.is_in_head();
        // A body has its own time (`client_body_timeout`).
        let is_partial = is_in_head || (!input.is_empty() && input.get(3) != Some(&0));
        // Further bytes of the head do not prolong its time.
        let goes_on = is_in_head || consumed == 0;
        let since = self.times.partial_since.filter(|_| goes_on);
        self.times.partial_since = is_partial.then(|| since.unwrap_or_else(Instant::now));
        if input.is_empty() {
            // Between two reads no memory is held.
            input = BytesMut::new();
        }
        self.input = input;
        self.head = head;
    }

    fn handle(&mut self, event: Event<'_>) {
        if let Event::Reset { stream, .. } = event
            && let Some(at) = self.waiting.iter().rposition(|it| it.id == stream)
        {
            // It never was a request.
            self.waiting.remove(at);
            return;
        }
        if !matches!(event, Event::Request { .. } | Event::Reset { .. }) {
            // The frames that follow may be about one of them.
            self.begin_waiting();
        }
        match event {
            Event::Request {
                stream,
                head,
                block_bytes,
                content_length,
                end_stream,
                ..
            } => {
                let length = match (end_stream, content_length) {
                    (true, _) => BodyLength::None,
                    (false, Some(length)) => BodyLength::Known(length),
                    (false, None) => BodyLength::Unknown,
                };
                self.waiting.push(WaitingRequest {
                    id: stream,
                    head: http2::to_owned_head(head),
                    length,
                    block_bytes: block_bytes as u64,
                });
            }
            Event::BadRequest { stream, error } => {
                self.request_bytes = 0;
                if !self.break_off(stream) {
                    let refusal = Refusal::new(error.status(), &error);
                    self.begin_refused(stream, refusal);
                }
            }
            Event::Data {
                stream,
                data,
                end_stream,
            } => self.receive_body(stream, data, end_stream),
            Event::Trailers { stream, .. } => self.receive_body(stream, &[], true),
            Event::Reset {
                stream, sent_bytes, ..
            } => self.close(stream, sent_bytes, false),
            // It opens no further stream: the connection ends behind those that are open.
            Event::GoAway { .. } => self.answering.shared.lock().codec.finish_shutdown(),
        }
    }

    /// The body of a request turned out malformed. Its reader answers with an error,
    /// behind which the codec resets the stream (RFC 9113 §8.1.1). False if no request was
    /// begun.
    fn break_off(&mut self, id: StreamId) -> bool {
        let mut state = self.answering.shared.lock();
        let Some(stream) = state.streams.get_mut(&id) else {
            return false;
        };
        stream.break_body();
        true
    }

    fn receive_body(&mut self, id: StreamId, data: &[u8], end_stream: bool) {
        let mut state = self.answering.shared.lock();
        match state.streams.get_mut(&id) {
            Some(stream) => stream.receive(data, end_stream),
            // Its stream has ended.
            None => state.codec.release(id, data.len()),
        }
    }

    /// Begins the requests that have come.
    fn begin_waiting(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for request in waiting.drain(..) {
            self.request_bytes = request.block_bytes;
            self.begin(request.id, request.head, request.length);
        }
        self.waiting = waiting;
    }

    /// A request begins. Its answer is made here, as far as that goes without waiting.
    fn begin(&mut self, id: StreamId, head: RequestHead, length: BodyLength) {
        if self.is_overloaded() {
            return self.answering.shared.reset(id, ErrorCode::REFUSED_STREAM);
        }
        let Some((terms, received)) = self.received(id, head) else {
            return;
        };
        let mut memory = self.answering.memory.lock();
        let (exchange, body) =
            self.answering
                .service
                .receive(terms, &mut memory, received, |_, _| Ok(length));
        drop(memory);
        let (body, refused) = match body {
            Ok(body) => (body, None),
            Err(refusal) => (BodyLength::None, Some(refusal)),
        };
        let content_length = match length {
            BodyLength::Known(length) => Some(length),
            _ => None,
        };
        let stream = Stream::new(content_length, length == BodyLength::None);
        self.answer(
            stream,
            ReceivedRequest {
                id,
                exchange,
                body,
                refused,
            },
        );
    }

    /// Are more requests worked on than may be open? They are those that the client has reset
    /// and whose work goes on all the same, for a cache or by `*_ignore_client_abort`: it may
    /// not have any number of these.
    fn is_overloaded(&self) -> bool {
        self.answering.shared.lock().streams.len() >= 2 * self.max_streams.max(1)
    }

    /// Answers a refused request with an error.
    fn begin_refused(&mut self, id: StreamId, refusal: Box<Refusal>) {
        let head = RequestHead::unreadable(Version::Http2);
        let Some((terms, received)) = self.received(id, head) else {
            return;
        };
        let exchange = self.answering.service.receive_unreadable(terms, received);
        let request = ReceivedRequest {
            id,
            exchange,
            body: BodyLength::None,
            refused: Some(refusal),
        };
        self.answer(Stream::new(None, true), request);
    }

    fn received(&mut self, id: StreamId, head: RequestHead) -> Option<(S::Terms, ReceivedHead)> {
        self.requests += 1;
        self.times.quiet_since = clock::recent_instant();
        let terms = {
            let mut memory = self.answering.memory.lock();
            self.answering.service.terms(&self.facts, &mut memory)
        };
        let Some(terms) = terms else {
            // A reload has taken the listener away.
            let shared = &self.answering.shared;
            shared.reset(id, ErrorCode::REFUSED_STREAM);
            self.shut_down();
            return None;
        };
        let received = ReceivedHead {
            head,
            connection: self.facts.clone(),
            started_at: clock::recent(),
            nth_on_connection: self.requests,
            is_pipelined: false,
            is_early: self.stream.is_early(),
            bytes: self.request_bytes,
        };
        Some((terms, received))
    }

    fn answer(&mut self, stream: Stream<S::Exchange>, received: ReceivedRequest<S>) {
        let settings = received.exchange.connection_settings();
        self.patience.idle = settings.keepalive_timeout;
        self.patience.send_timeout = settings.send_timeout;
        self.patience.linger = Linger::of(settings);
        self.patience.resets_timed_out = settings.reset_timedout;
        let age = received
            .exchange
            .now()
            .saturating_sub(self.facts.accepted_at);
        let is_last = self.requests >= settings.keepalive_requests
            || u128::from(age) >= settings.keepalive_time.as_millis();
        if is_last {
            self.shut_down();
        }
        self.answering
            .shared
            .lock()
            .streams
            .insert(received.id, stream);
        let mut answer = Box::pin(self.answering.clone().answer(received));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        // A pending answer is polled anew by its own task, which is then the one that is woken.
        if answer.as_mut().poll(&mut cx).is_pending() {
            tokio::spawn(answer);
        }
    }

    /// Writes as much as the socket takes, at most a turn's share, and returns the number of bytes.
    fn write(&mut self, cx: &mut Context<'_>) -> io::Result<usize> {
        let mut sent = 0;
        while sent < TURN_BYTES {
            if self.output.is_empty() {
                self.take_output();
            }
            if self.output.is_empty() {
                self.times.blocked_since = None;
                return Ok(sent);
            }
            let mut slices = [IoSlice::new(&[]); WRITE_SLICES];
            let mut count = 0;
            for (place, slice) in slices.iter_mut().zip(self.output.slices()) {
                *place = IoSlice::new(slice);
                count += 1;
            }
            match self.stream.try_write_vectored(&slices[..count]) {
                Ok(written) => {
                    self.output.advance(written);
                    self.times.blocked_since = None;
                    sent += written;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match self.stream.poll_write_ready(cx) {
                        Poll::Ready(ready) => ready?,
                        Poll::Pending => {
                            self.times.blocked_since.get_or_insert_with(Instant::now);
                            return Ok(sent);
                        }
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    /// Moves frames from the codec to the output, and informs the streams of their progress.
    fn take_output(&mut self) {
        let mut state = self.answering.shared.lock();
        if !state.codec.has_output() {
            return state.wake_senders();
        }
        let taken = state
            .codec
            .take_output(&mut self.output, std::time::Instant::now());
        let mut over = Vec::new();
        while let Some(notice) = state.codec.next_notice() {
            match notice {
                // Who waits for room is woken for all that makes some.
                Notice::Drained(_) => {}
                Notice::Sent(id, bytes) => over.push((id, bytes)),
            }
        }
        state.wake_senders();
        drop(state);
        for (id, bytes) in over {
            self.close(id, bytes, true);
        }
        if let Err(error) = taken {
            self.fail(&error.to_string());
        }
    }

    /// A stream has ended on the wire.
    fn close(&mut self, id: StreamId, bytes: u64, is_whole: bool) {
        self.times.quiet_since = clock::recent_instant();
        let mut state = self.answering.shared.lock();
        let Some(stream) = state.streams.get_mut(&id) else {
            return;
        };
        if matches!(stream.end, StreamEnd::Closed { .. }) {
            return;
        }
        // Otherwise the task that answers it takes it out.
        if let Some(given) = stream.close(bytes, is_whole) {
            state.streams.remove(&id);
            drop(state);
            self.answering.over(given, bytes, is_whole);
        }
    }

    fn set_phase(&self) {
        let is_idle = self.answering.shared.lock().codec.open_streams() == 0;
        self.stream.set_phase(match is_idle {
            true if self.requests > 0 => Phase::Quiet,
            true => Phase::Reading,
            false => Phase::Busy,
        });
    }

    /// Nothing can be done now. Ready when a time has passed, and something was done about it.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let until = self.next_deadline();
        self.times.deadline.until(until);
        std::task::ready!(self.times.deadline.poll(cx));
        let now = Instant::now();
        if self
            .times
            .shutdown_at
            .is_some_and(|at| now >= at + SHUTDOWN_PAUSE)
        {
            self.answering.shared.lock().codec.finish_shutdown();
        }
        let is_blocked = self.times.blocked_since;
        if is_blocked.is_some_and(|since| now >= since + self.patience.send_timeout) {
            self.is_over = true;
            self.ended = EndedBy::Timeout;
            if self.patience.resets_timed_out {
                self.stream.reset_on_close();
            }
            return Poll::Ready(());
        }
        let stalled = {
            let mut state = self.answering.shared.lock();
            state
                .codec
                .reset_stalled(self.patience.send_timeout, now.into_std())
        };
        for id in stalled {
            self.close(id, 0, false);
        }
        {
            let mut state = self.answering.shared.lock();
            state
                .codec
                .abort_unended(self.patience.linger.silence(), now.into_std());
        }
        if self
            .times
            .partial_since
            .is_some_and(|since| now >= since + self.patience.head_timeout)
        {
            self.times.partial_since = None;
            self.report("client timed out");
            let late = {
                let mut state = self.answering.shared.lock();
                state.codec.reset_late_head(&self.input)
            };
            match late {
                Some(stream) => self.close(stream, 0, false),
                // It is no head, or one that goes on after its stream has ended.
                None => {
                    let mut state = self.answering.shared.lock();
                    state.codec.abort(ErrorCode::PROTOCOL_ERROR);
                    self.is_over = true;
                }
            }
            return Poll::Ready(());
        }
        let is_quiet = !self.is_over && self.answering.shared.lock().codec.open_streams() == 0;
        if is_quiet && now >= self.times.quiet_since + self.patience.idle {
            self.answering.shared.lock().codec.finish_shutdown();
            self.is_over = true;
        }
        Poll::Ready(())
    }

    /// Returns when something has to be done at the latest.
    fn next_deadline(&self) -> Instant {
        let state = self.answering.shared.lock();
        let mut until = match state.codec.open_streams() {
            0 if !self.is_over => self.times.quiet_since + self.patience.idle,
            _ => clock::recent_instant() + self.patience.send_timeout,
        };
        if let Some(since) = state.codec.stalled_since() {
            until = until.min(Instant::from_std(since) + self.patience.send_timeout);
        }
        if let Some(since) = state.codec.unended_since() {
            until = until.min(Instant::from_std(since) + self.patience.linger.silence());
        }
        if let Some(since) = self.times.partial_since {
            until = until.min(since + self.patience.head_timeout);
        }
        if let Some(since) = self.times.blocked_since {
            until = until.min(since + self.patience.send_timeout);
        }
        if let Some(at) = self.times.shutdown_at
            && !state.codec.is_shutdown_final()
        {
            until = until.min(at + SHUTDOWN_PAUSE);
        }
        until
    }

    /// Ends a connection whose client broke the rules, with a GOAWAY frame.
    fn fail(&mut self, reason: &str) {
        self.report(reason);
        self.is_over = true;
        // The server does not listen for long to a client that floods it.
        self.patience.linger.time = self.patience.linger.time.min(FAILED_LINGER);
        self.patience.linger.bytes = FAILED_LINGER_BYTES;
    }

    fn report(&self, reason: &str) {
        let mut memory = self.answering.memory.lock();
        if let Some(terms) = self.answering.service.terms(&self.facts, &mut memory) {
            let service = &self.answering.service;
            service.report_broken_connection(&terms, &self.facts, reason);
        }
    }
}
