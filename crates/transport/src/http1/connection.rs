//! One client connection: heads are read, requests served one after another, and the connection is
//! ended so that the client gets all sent bytes.
//!
//! ```text
//! accept ─► [PROXY header] ─► head ─► request ─► response ─► head ... ─► linger ─► close
//!                              ▲ idle: no buffer is held, a graceful stop closes
//! ```

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use clock::Deadline;
use http_semantics::{RequestHead, RequestView, Version};
use http1::{Framing, RequestError};
use tokio::time::Instant;
use transport_settings::{BodySettings, ConnectionSettings, LingeringClose};

use super::informational::Http1Client;
use super::input::Input;
use super::keep_alive::{self, Usage};
use super::reading::{self, HeadRead, WaitOutcome};
use super::respond;
use crate::body::{ClientInput, IncomingBody};
use crate::client::ClientSide;
use crate::facts::ConnectionFacts;
use crate::outbound::{Body, SendError};
use crate::ready_or_pending::ReadyOrPending;
use crate::service::{
    BodyLength, Ending, Exchange, ReceivedHead, Refusal, ResponseOutcome, Service, Terms,
};
use crate::stream::ClientStream;
use crate::tunnel;

/// How long the close of a connection waits for work that its last request has begun; the response
/// is out by then.
const END_TIMEOUT: Duration = Duration::from_millis(100);

/// Serves a connection, of which `buffer` was read already, until it ends. `guard` lives as long.
/// The work before the first wait is done here, so that the future, which is most of an idle
/// connection's memory, holds the connection alone.
pub fn serve<S: Service>(
    service: Arc<S>,
    stream: Arc<ClientStream>,
    facts: ConnectionFacts,
    memory: S::Memory,
    buffer: BytesMut,
    guard: impl Send + 'static,
) -> impl Future<Output = ()> + Send {
    let mut connection = Connection {
        client: ClientSide::new(Arc::new(Http1Client(stream.clone()))),
        memory,
        service,
        input: Some(Box::new(Input::new(stream.clone(), buffer))),
        stream,
        facts: Arc::new(facts),
        requests: 0,
        idle: Duration::from_secs(60),
        protected: Duration::ZERO,
        deadline: Deadline::default(),
    };
    let stream = connection.stream.clone();
    async move {
        let mut run = pin!(connection.run());
        poll_fn(|cx| {
            let polled = run.as_mut().poll(cx);
            if polled.is_pending() && stream.has_gathered() {
                // Whatever is waited for, answers that are ready do not wait with it.
                // The next write meets the same error.
                let _ = stream.poll_flush(cx);
            }
            polled
        })
        .await;
        if !stream.end() {
            // In a box: hardly any connection needs room for it.
            Box::pin(stream.wait_for_end()).await;
        }
        drop(guard);
    }
}

pub(super) struct Connection<S: Service> {
    pub(super) service: Arc<S>,
    pub(super) stream: Arc<ClientStream>,
    client: ClientSide,
    /// `None` while the stage that answers a request has its body.
    pub(super) input: Option<Box<Input>>,
    facts: Arc<ConnectionFacts>,
    memory: S::Memory,
    pub(super) requests: u64,
    /// How long the next request may let us wait.
    pub(super) idle: Duration,
    /// How much of that time a graceful stop leaves the connection open (`keepalive_min_timeout`).
    pub(super) protected: Duration,
    pub(super) deadline: Deadline,
}

/// The next step of the connection after a request.
enum Next {
    Request,
    Close,
    /// Close, but read the client's remaining bytes, so that it gets the response.
    Linger {
        time: Duration,
        timeout: Duration,
    },
}

impl Next {
    fn linger(settings: &ConnectionSettings) -> Next {
        Next::Linger {
            time: settings.lingering_time,
            timeout: settings.lingering_timeout,
        }
    }
}

impl<S: Service> Connection<S> {
    async fn run(&mut self) {
        let Some(terms) = self.service.terms(&self.facts, &mut self.memory) else {
            return;
        };
        self.idle = terms.head().timeout;
        drop(terms);
        loop {
            match self.next_request().await {
                Next::Request => {}
                Next::Close => return,
                Next::Linger { time, timeout } => {
                    self.linger(time, timeout).await;
                    return;
                }
            }
        }
    }

    async fn next_request(&mut self) -> Next {
        let is_first = self.requests == 0;
        let Some(input) = self.input() else {
            return Next::Close;
        };
        let is_pipelined = !is_first && !input.buffer.is_empty();
        let awaited = match reading::is_between_requests(&input.buffer) {
            true => self.await_request().await,
            false => WaitOutcome::Bytes,
        };
        if matches!(awaited, WaitOutcome::Closed) {
            return Next::Close;
        }
        let started_at = clock::recent();
        // A reload may have taken the listener away while we waited.
        let Some(terms) = self.service.terms(&self.facts, &mut self.memory) else {
            return Next::Close;
        };
        let read = match awaited {
            WaitOutcome::Bytes => {
                let settings = terms.head();
                let limits = reading::limits(settings);
                self.read_head(&limits, settings.timeout).await
            }
            _ if self.requests > 0 => return Next::Close,
            _ => HeadRead::Abandoned("client timed out", 408),
        };
        match read {
            HeadRead::Head(line, fields) => {
                let Some(input) = self.input() else {
                    return Next::Close;
                };
                let bytes = reading::take_head(&mut input.buffer, line.head_len);
                let length = line.head_len as u64;
                let head = RequestHead {
                    bytes,
                    line,
                    fields,
                };
                self.requests += 1;
                let received = self.received(head, length, started_at, is_pipelined);
                let (service, memory) = (&self.service, &mut self.memory);
                let (exchange, body) = service.receive(terms, memory, received, body_length);
                let (body, refused) = match body {
                    // Also if no handler reads the body: the next request could not be found behind
                    // it.
                    Ok(BodyLength::Unknown) if self.has_broken_chunks() => {
                        let reason = "client sent invalid chunked body";
                        (BodyLength::None, Some(Refusal::new(400, reason)))
                    }
                    Ok(body) => (body, None),
                    Err(refusal) => (BodyLength::None, Some(refusal)),
                };
                self.answer(exchange, body, refused).await
            }
            HeadRead::Refused(error) => {
                self.requests += 1;
                let received = self.received_unreadable(started_at);
                let exchange = self.service.receive_unreadable(terms, received);
                Box::pin(self.answer(exchange, BodyLength::None, Some(refusal(&error)))).await
            }
            HeadRead::Abandoned(reason, status) => {
                let received = self.received_unreadable(started_at);
                self.service.abandoned(terms, received, reason, status);
                Next::Close
            }
        }
    }

    fn has_broken_chunks(&mut self) -> bool {
        self.input()
            .is_some_and(|input| input.begins_with_broken_chunks())
    }

    /// The receiving half of the connection; `None` while a body is still read from it.
    #[inline]
    pub(super) fn input(&mut self) -> Option<&mut Input> {
        if self.input.is_none() {
            self.input = self.client.take_body().and_then(own);
        }
        self.input.as_deref_mut()
    }

    /// Returns the source of the beginning request's body, if it has one.
    #[inline]
    fn begin_body(&mut self, length: BodyLength) -> Option<Box<dyn IncomingBody>> {
        let framing = match length {
            BodyLength::None => Framing::None,
            BodyLength::Known(length) => Framing::Length(length),
            BodyLength::Unknown => Framing::Chunked,
        };
        match self.input()?.begin(framing) {
            true => Some(self.input.take()?),
            false => None,
        }
    }

    fn received(
        &self,
        head: RequestHead,
        bytes: u64,
        started_at: u64,
        is_pipelined: bool,
    ) -> ReceivedHead {
        ReceivedHead {
            head,
            connection: self.facts.clone(),
            started_at,
            nth_on_connection: self.requests,
            is_pipelined,
            is_early: self.stream.is_early(),
            bytes,
        }
    }

    /// Creates the head of a request that cannot be parsed.
    fn received_unreadable(&mut self, started_at: u64) -> ReceivedHead {
        let buffer = match self.input() {
            Some(input) => &input.buffer[..],
            None => &[],
        };
        let (head, length) = (reading::unreadable_head(buffer), buffer.len() as u64);
        self.received(head, length, started_at, false)
    }

    /// Serves the request, sends the response, and has it logged.
    async fn answer(
        &mut self,
        mut exchange: Box<S::Exchange>,
        body: BodyLength,
        refused: Option<Box<Refusal>>,
    ) -> Next {
        let expects = body != BodyLength::None && http_semantics::expects_continue(exchange.head());
        let takes_informational = exchange.head().version() >= Version::Http11;
        let body = self.begin_body(body);
        self.client.begin(body, expects, takes_informational);
        // Not by `end`, here and below: a future more on the way of each hit.
        let (service, client) = (&self.service, &mut self.client);
        let configuration = service.configuration(&exchange);
        let answer =
            match service.respond(&mut exchange, &configuration, client, refused.as_deref()) {
                ReadyOrPending::Ready(answer) => answer,
                ReadyOrPending::Pending(rest) => rest.await,
            };
        let may_keep_alive =
            refused.is_none() && self.may_keep_alive(&exchange) && !self.client.expects_continue;
        let ending = match answer {
            ResponseOutcome::Response if matches!(exchange.body(), Body::Tunnel(_)) => {
                Box::pin(self.tunnel(&mut exchange, may_keep_alive)).await
            }
            ResponseOutcome::Response => {
                let is_followed = self.is_followed();
                match respond::send(&mut *exchange, &self.stream, may_keep_alive, is_followed) {
                    ReadyOrPending::Ready(ending) => ending,
                    ReadyOrPending::Pending(rest) => rest.await,
                }
            }
            ResponseOutcome::Nothing if self.stream.has_gathered() => {
                let timeout = exchange.connection_settings().send_timeout;
                let flushed = Box::pin(respond::flush(&self.stream, timeout)).await;
                flushed.map(|()| Ending::Close)
            }
            ResponseOutcome::Nothing => Ok(Ending::Close),
        };
        let awaited = self.service.end(&mut exchange, &mut self.memory, &ending);
        if let Some(awaited) = awaited {
            // A client that comes back at once shall find the effects of its request.
            let _ = tokio::time::timeout(END_TIMEOUT, awaited).await;
        }
        let settings = exchange.connection_settings();
        self.idle = settings.keepalive_timeout;
        self.protected = settings.keepalive_min_timeout;
        match ending {
            Ok(Ending::KeepAlive) if self.is_body_read() => Next::Request,
            Ok(Ending::KeepAlive) => {
                let body = exchange.body_settings();
                match self.discard_body(body, settings.lingering_time).await {
                    true => Next::Request,
                    false => Next::linger(settings),
                }
            }
            Ok(Ending::Close) if answer == ResponseOutcome::Nothing => Next::Close,
            Ok(Ending::Close) => self.lingering_close(&*exchange),
            Err(SendError::TimedOut) => {
                if settings.reset_timedout {
                    self.stream.reset_on_close();
                }
                Next::Close
            }
            Err(_) => Next::Close,
        }
    }

    /// Sends a 101 and hands on bytes both ways behind it.
    async fn tunnel(
        &mut self,
        exchange: &mut S::Exchange,
        may_keep_alive: bool,
    ) -> Result<Ending, SendError> {
        let upgraded = match exchange.take_body() {
            Body::Tunnel(upgraded) => upgraded,
            _ => return Ok(Ending::Close),
        };
        respond::send(exchange, &self.stream, may_keep_alive, false)
            .end()
            .await?;
        let ahead = match self.input() {
            Some(input) => std::mem::take(&mut input.buffer),
            None => BytesMut::new(),
        };
        let until = self.service.outlived(exchange);
        let moved = tunnel::run(&self.stream, ahead, upgraded, until).await;
        exchange.add_sent(moved.to_client, 0);
        exchange.add_received(moved.to_upstream);
        Ok(Ending::Close)
    }

    /// Closes at once, or lingers where the client may still be sending: a
    /// reset would take the response from it.
    fn lingering_close(&mut self, exchange: &S::Exchange) -> Next {
        let mut is_sending = || {
            self.input()
                .is_none_or(|input| !input.is_done() || !input.buffer.is_empty())
        };
        let settings = exchange.connection_settings();
        match settings.lingering_close {
            LingeringClose::Always => Next::linger(settings),
            LingeringClose::On if is_sending() => Next::linger(settings),
            LingeringClose::On | LingeringClose::Off => Next::Close,
        }
    }

    /// Is the next request here already, so that its response is about to be made?
    fn is_followed(&mut self) -> bool {
        let input = self.input();
        // Most clients wait for their answer: nothing is there.
        input.is_some_and(|input| {
            !input.buffer.is_empty() && input.is_done() && reading::holds_head(&input.buffer)
        })
    }

    fn may_keep_alive(&self, exchange: &S::Exchange) -> bool {
        let usage = Usage {
            requests: self.requests,
            age_ms: exchange.now().saturating_sub(self.facts.accepted_at),
        };
        let settings = exchange.connection_settings();
        !self.service.is_stopping() && keep_alive::may_keep(settings, exchange.head(), usage)
    }

    /// Is the whole body read, so that the next head is found?
    fn is_body_read(&mut self) -> bool {
        self.input().is_some_and(|input| input.is_done())
    }

    /// Reads the rest of the body that the handler left, so that the next head is found; false if
    /// the rest is too long.
    async fn discard_body(&mut self, settings: &BodySettings, time: Duration) -> bool {
        let Some(input) = self.input.take() else {
            return false;
        };
        let mut body = ClientInput::new(input);
        body.limit(settings);
        let limit = Instant::now() + time;
        let is_read = loop {
            match tokio::time::timeout_at(limit, body.next_body()).await {
                // A client may send faster than this is read: then nothing waits for the limit.
                Ok(Ok(Some(_))) if Instant::now() < limit => {}
                Ok(Ok(None)) => break true,
                Ok(_) | Err(_) => break false,
            }
        };
        self.input = own(body.into_body());
        is_read
    }

    /// Says that nothing more will come, and reads until the client agrees.
    async fn linger(&mut self, time: Duration, timeout: Duration) {
        if !self.stream.end() {
            Box::pin(self.stream.wait_for_end()).await;
        }
        self.stream.shutdown_write();
        let end = Instant::now() + time;
        loop {
            if let Some(input) = self.input() {
                input.buffer.clear();
            }
            let until = end.min(Instant::now() + timeout);
            match self.fill(until).await {
                Ok(Some(read)) if read > 0 && Instant::now() < end => {}
                _ => return,
            }
        }
    }
}

/// The transport's own input, back from the stage that read a body from it.
fn own(body: Box<dyn IncomingBody>) -> Option<Box<Input>> {
    body.into_any().downcast().ok()
}

/// The length of a request's body; before HTTP/1.0 there was none.
#[inline]
fn body_length(head: RequestView<'_>, has_host: bool) -> Result<BodyLength, Box<Refusal>> {
    if head.version() == Version::Http09 {
        return Ok(BodyLength::None);
    }
    match http1::framing_beside_host(head, has_host) {
        Ok(Framing::None) => Ok(BodyLength::None),
        Ok(Framing::Length(length)) => Ok(BodyLength::Known(length)),
        Ok(Framing::Chunked) => Ok(BodyLength::Unknown),
        Err(error) => Err(refusal(&error)),
    }
}

#[cold]
fn refusal(error: &RequestError) -> Box<Refusal> {
    Refusal::new(error.status(), error)
}
