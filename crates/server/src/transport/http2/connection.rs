//! The task of a connection: reads frames, begins requests, writes frames, and ends the
//! connection so that the client knows which of its requests were served.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use http_semantics::RequestHead;
use http2::{ErrorCode, Event, HeadBuffer, Notice, Output, StreamId};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::request::{Answering, ReceivedRequest};
use super::shared::{Shared, Stream, StreamEnd};
use crate::base::clock;
use crate::base::deadline::Deadline;
use crate::transport::facts::ConnectionFacts;
use crate::transport::service::{BodyLength, Exchange, Received, Refusal, Service, Terms};
use crate::transport::stream::{ClientStream, Phase};

/// Slices of one write: the frames of a turn.
const WRITE_SLICES: usize = 64;
/// How long a client may take to learn that the connection ends, before it is told which
/// request is the last.
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
        idle: terms.head().timeout,
        send_timeout: terms.head().timeout,
        answering: Answering {
            service,
            memory: Arc::new(Mutex::new(memory)),
            shared: Arc::new(Shared::new(codec)),
        },
        stream,
        facts: Arc::new(facts),
        input: buffer,
        head: HeadBuffer::new(),
        output: Output::new(),
        requests: 0,
        quiet_since: clock::recent_instant(),
        blocked_since: None,
        shutdown_at: None,
        is_over: false,
        deadline: Deadline::default(),
    };
    drop(terms);
    connection.run().await;
    connection.stream.end();
    drop(guard);
}

struct Connection<S: Service> {
    answering: Answering<S>,
    stream: Arc<ClientStream>,
    facts: Arc<ConnectionFacts>,
    /// What was read and is no whole frame yet.
    input: BytesMut,
    head: HeadBuffer,
    output: Output,
    requests: u64,
    /// How long the connection may be without a request.
    idle: Duration,
    send_timeout: Duration,
    /// When a stream was last begun or ended.
    quiet_since: Instant,
    /// Since when the socket takes nothing.
    blocked_since: Option<Instant>,
    /// When the client was told that the connection ends.
    shutdown_at: Option<Instant>,
    /// Nothing more is read: the rest of the output is written, and the connection closes.
    is_over: bool,
    deadline: Deadline,
}

impl<S: Service> Connection<S> {
    async fn run(&mut self) {
        if !self.input.is_empty() {
            self.take_frames();
        }
        poll_fn(|cx| self.poll(cx)).await;
        // Whoever still works for a stream learns that nobody waits.
        let streams: Vec<StreamId> = {
            let mut state = self.answering.shared.lock();
            state.codec.abort(ErrorCode::NO_ERROR);
            state.streams.keys().copied().collect()
        };
        for id in streams {
            self.close(id, 0, false);
        }
    }

    /// Does what can be done; ready when the connection is over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // What is given meanwhile is written here: nobody has to be woken for it.
        self.answering.shared.lock().forget_writer();
        loop {
            self.announce_end();
            let has_read = self.read(cx);
            let has_written = match self.write(cx) {
                Ok(has_written) => has_written,
                Err(_) => return Poll::Ready(()),
            };
            if self.is_finished() {
                return Poll::Ready(());
            }
            if has_read || has_written {
                continue;
            }
            self.set_phase();
            self.answering.shared.lock().set_writer(cx);
            if self.wait(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Tells the client of a graceful stop.
    fn announce_end(&mut self) {
        if self.shutdown_at.is_none() && self.answering.service.is_stopping() {
            self.shut_down();
        }
    }

    fn shut_down(&mut self) {
        self.answering.shared.lock().codec.shut_down();
        self.shutdown_at = Some(Instant::now());
    }

    /// Is all done that there was to do?
    fn is_finished(&self) -> bool {
        if !self.output.is_empty() {
            return false;
        }
        let state = self.answering.shared.lock();
        !state.codec.has_output() && (self.is_over || state.codec.is_finished())
    }

    /// Reads what there is; says whether something came.
    fn read(&mut self, cx: &mut Context<'_>) -> bool {
        if self.is_over || self.answering.shared.lock().codec.is_congested() {
            return false;
        }
        match self.stream.poll_receive(cx, &mut self.input, false) {
            Poll::Pending => false,
            Poll::Ready(Ok(read)) if read > 0 => {
                self.take_frames();
                true
            }
            // The client sends nothing more. What it asked for is still sent.
            Poll::Ready(_) => {
                self.is_over = true;
                self.answering.shared.lock().codec.finish_shutdown();
                true
            }
        }
    }

    /// Takes all whole frames from the input.
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
                    self.report(&error.to_string());
                    self.is_over = true;
                    break;
                }
            }
        }
        input.advance(consumed);
        if input.is_empty() {
            // Between two reads no memory is held.
            input = BytesMut::new();
        }
        self.input = input;
        self.head = head;
    }

    fn handle(&mut self, event: Event<'_>) {
        match event {
            Event::Request {
                stream,
                head,
                content_length,
                end_stream,
                ..
            } => {
                let length = match (end_stream, content_length) {
                    (true, _) => BodyLength::None,
                    (false, Some(length)) => BodyLength::Known(length),
                    (false, None) => BodyLength::Unknown,
                };
                self.begin(stream, http2::to_owned_head(head), length);
            }
            Event::BadRequest { stream, error } => {
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
            Event::GoAway { .. } => {}
        }
    }

    /// Ends a stream whose request turned out malformed while it is answered (RFC 9113
    /// §8.1.1); false where no request was begun.
    fn break_off(&mut self, id: StreamId) -> bool {
        let mut state = self.answering.shared.lock();
        let Some(stream) = state.streams.get_mut(&id) else {
            return false;
        };
        stream.break_body();
        state.codec.reset(id, ErrorCode::PROTOCOL_ERROR);
        drop(state);
        self.close(id, 0, false);
        true
    }

    fn receive_body(&mut self, id: StreamId, data: &[u8], end_stream: bool) {
        let mut state = self.answering.shared.lock();
        match state.streams.get_mut(&id) {
            Some(stream) => stream.receive(data, end_stream),
            // Nobody wants it.
            None => state.codec.release(id, data.len()),
        }
    }

    /// A request begins. Its answer is made here, as far as nobody has to be waited for.
    fn begin(&mut self, id: StreamId, head: RequestHead, length: BodyLength) {
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

    /// What was to be a request is answered with an error.
    fn begin_refused(&mut self, id: StreamId, refusal: Box<Refusal>) {
        let head = RequestHead::of("", "", std::iter::empty::<(&str, &str)>());
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

    fn received(&mut self, id: StreamId, head: RequestHead) -> Option<(S::Terms, Received)> {
        self.requests += 1;
        self.quiet_since = clock::recent_instant();
        let terms = {
            let mut memory = self.answering.memory.lock();
            self.answering.service.terms(&self.facts, &mut memory)
        };
        let Some(terms) = terms else {
            // A reload has taken the listener away.
            let shared = &self.answering.shared;
            shared.reset(id, ErrorCode::REFUSED_STREAM);
            shared.lock().codec.shut_down();
            return None;
        };
        let bytes = head.bytes.len() as u64;
        let received = Received {
            head,
            connection: self.facts.clone(),
            started_at: clock::recent(),
            nth_on_connection: self.requests,
            is_pipelined: false,
            bytes,
        };
        Some((terms, received))
    }

    fn answer(&mut self, stream: Stream<S::Exchange>, received: ReceivedRequest<S>) {
        let settings = &received.exchange.settings().connection;
        self.idle = settings.keepalive_timeout;
        self.send_timeout = settings.send_timeout;
        let age = received
            .exchange
            .now()
            .saturating_sub(self.facts.accepted_at);
        let is_last = self.requests >= settings.keepalive_requests
            || u128::from(age) >= settings.keepalive_time.as_millis();
        if is_last && self.shutdown_at.is_none() {
            self.shut_down();
        }
        self.answering
            .shared
            .lock()
            .streams
            .insert(received.id, stream);
        let mut answer = Box::pin(self.answering.clone().answer(received));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        // What waits is polled anew by its own task, which is then the one that is woken.
        if answer.as_mut().poll(&mut cx).is_pending() {
            tokio::spawn(answer);
        }
    }

    /// Writes what the socket takes; says whether that was something.
    fn write(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut has_written = false;
        loop {
            if self.output.is_empty() {
                self.take_output();
            }
            if self.output.is_empty() {
                self.blocked_since = None;
                return Ok(has_written);
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
                    self.blocked_since = None;
                    has_written = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match self.stream.poll_write_ready(cx) {
                        Poll::Ready(ready) => ready?,
                        Poll::Pending => {
                            self.blocked_since.get_or_insert_with(Instant::now);
                            return Ok(has_written);
                        }
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves frames from the codec to the output, and tells the streams how far they are.
    fn take_output(&mut self) {
        let mut state = self.answering.shared.lock();
        if !state.codec.has_output() {
            return;
        }
        let taken = state
            .codec
            .take_output(&mut self.output, std::time::Instant::now());
        let mut over = Vec::new();
        while let Some(notice) = state.codec.next_notice() {
            match notice {
                Notice::Drained(id) => {
                    if let Some(stream) = state.streams.get_mut(&id) {
                        stream.wake_sender();
                    }
                }
                Notice::Sent(id, bytes) => over.push((id, bytes)),
            }
        }
        drop(state);
        for (id, bytes) in over {
            self.close(id, bytes, true);
        }
        if let Err(error) = taken {
            self.report(&error.to_string());
            self.is_over = true;
        }
    }

    /// A stream has ended on the wire.
    fn close(&mut self, id: StreamId, bytes: u64, is_whole: bool) {
        self.quiet_since = clock::recent_instant();
        let mut state = self.answering.shared.lock();
        let Some(stream) = state.streams.get_mut(&id) else {
            return;
        };
        if matches!(stream.end, StreamEnd::Closed { .. }) {
            return;
        }
        // Otherwise whoever answers it takes it out.
        if let Some(given) = stream.close(bytes, is_whole) {
            state.streams.remove(&id);
            drop(state);
            self.answering.over(given, bytes, is_whole);
        }
    }

    fn set_phase(&self) {
        let is_idle = self.answering.shared.lock().codec.open_streams() == 0;
        self.stream.set_phase(match is_idle {
            true if self.requests > 0 => Phase::Idle,
            true => Phase::Reading,
            false => Phase::Busy,
        });
    }

    /// Nothing can be done now. Ready when a time has passed, and something was done about it.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let until = self.next_deadline();
        self.deadline.until(until);
        std::task::ready!(self.deadline.poll(cx));
        let now = Instant::now();
        if self
            .shutdown_at
            .is_some_and(|at| now >= at + SHUTDOWN_PAUSE)
        {
            self.answering.shared.lock().codec.finish_shutdown();
        }
        let is_blocked = self.blocked_since;
        if is_blocked.is_some_and(|since| now >= since + self.send_timeout) {
            // It takes nothing at all: no frame reaches it either.
            self.is_over = true;
            self.output = Output::new();
            self.answering
                .shared
                .lock()
                .codec
                .abort(ErrorCode::NO_ERROR);
            return Poll::Ready(());
        }
        let stalled = {
            let mut state = self.answering.shared.lock();
            state.codec.reset_stalled(self.send_timeout, now.into_std())
        };
        for id in stalled {
            self.close(id, 0, false);
        }
        let is_quiet = self.answering.shared.lock().codec.open_streams() == 0;
        if is_quiet && now >= self.quiet_since + self.idle {
            self.answering.shared.lock().codec.finish_shutdown();
            self.is_over = true;
        }
        Poll::Ready(())
    }

    /// When something has to be done at the latest.
    fn next_deadline(&self) -> Instant {
        let state = self.answering.shared.lock();
        let mut until = match state.codec.open_streams() {
            0 => self.quiet_since + self.idle,
            _ => clock::recent_instant() + self.send_timeout,
        };
        if let Some(since) = state.codec.stalled_since() {
            until = until.min(Instant::from_std(since) + self.send_timeout);
        }
        if let Some(since) = self.blocked_since {
            until = until.min(since + self.send_timeout);
        }
        if let Some(at) = self.shutdown_at
            && !state.codec.is_shutdown_final()
        {
            until = until.min(at + SHUTDOWN_PAUSE);
        }
        until
    }

    fn report(&self, reason: &str) {
        let mut memory = self.answering.memory.lock();
        if let Some(terms) = self.answering.service.terms(&self.facts, &mut memory) {
            let service = &self.answering.service;
            service.report_broken_connection(&terms, &self.facts, reason);
        }
    }
}
