//! One request: from its stream to its line in the log.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http_semantics::{RequestHead, Version};
use http2::{HeadBuffer, HeadLimits};
use http3::Code;
use parking_lot::Mutex;
use quinn::{RecvStream, SendStream};
use tokio::sync::{Notify, Semaphore};

use super::body::{HeadError, Incoming};
use super::field_tables::FieldTables;
use super::respond;
use super::stream::{Outgoing, StreamClient, varint};
use crate::body::IncomingBody;
use crate::client::ClientSide;
use crate::facts::ConnectionFacts;
use crate::outbound::SendError;
use crate::ready_or_pending::ReadyOrPending;
use crate::service::{
    BodyLength, Ending, Exchange, ReceivedHead, Refusal, ResponseOutcome, Service, Terms,
};

/// The context that the requests of a connection share.
pub struct RequestContext<S: Service> {
    pub service: Arc<S>,
    pub memory: Mutex<S::Memory>,
    pub facts: Arc<ConnectionFacts>,
    pub connection: quinn::Connection,
    pub tables: Arc<FieldTables>,
    pub limits: HeadLimits,
    pub requests: AtomicU64,
    /// Bytes of heads that are not whole yet.
    pub unfinished_heads: Arc<AtomicUsize>,
    /// Permits for streams to hold a long piece of a body.
    pub long_pieces: Arc<Semaphore>,
    /// Streams that are being served, or whose last bytes the client has not acknowledged.
    pub open: AtomicUsize,
    /// One of them has ended, or the connection is to.
    pub changed: Notify,
    /// How long the connection may be without a request, in milliseconds: of the last location.
    pub idle_ms: AtomicU64,
    /// No further request is wanted.
    pub is_last: std::sync::atomic::AtomicBool,
}

/// Counts a stream while it lives.
pub struct OpenStream<S: Service>(Arc<RequestContext<S>>);

impl<S: Service> OpenStream<S> {
    pub fn new(answering: &Arc<RequestContext<S>>) -> OpenStream<S> {
        answering.open.fetch_add(1, Ordering::Relaxed);
        OpenStream(answering.clone())
    }
}

impl<S: Service> Drop for OpenStream<S> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.0.changed.notify_one();
    }
}

/// A request that was received.
struct ReceivedRequest<S: Service> {
    exchange: Box<S::Exchange>,
    body: BodyLength,
    refused: Option<Box<Refusal>>,
}

/// Serves the request of a stream.
pub async fn serve<S: Service>(stream: OpenStream<S>, send: SendStream, receive: RecvStream) {
    let answering = stream.0.clone();
    let mut stopped = pin!(send.stopped());
    let terms = answering.terms();
    let Some(terms) = terms else {
        // A reload has taken the listener away.
        answering.is_last.store(true, Ordering::Relaxed);
        return answering.turn_away(send, receive);
    };
    let timeout = terms.head().timeout;
    let (limits, heads) = (answering.limits.clone(), answering.unfinished_heads.clone());
    let mut incoming = Incoming::new(receive, answering.tables.clone(), limits, heads);
    let started_at = clock::recent();
    let head = match tokio::time::timeout(timeout, incoming.read_head()).await {
        Ok(head) => head,
        Err(_) => {
            answering.report(&terms, "client timed out");
            return answering.break_off(send, incoming, Code::REQUEST_INCOMPLETE);
        }
    };
    let received = match head {
        Ok(block) => answering.begin(terms, &block, &mut incoming, started_at),
        Err(HeadError::TooLarge) => {
            let error = http2::RequestError::HeadTooLarge;
            let refusal = Refusal::new(error.status(), &error);
            Ok(answering.begin_refused(terms, refusal, &incoming, started_at))
        }
        Err(HeadError::Gone) => return,
        Err(HeadError::Incomplete) => {
            return answering.break_off(send, incoming, Code::REQUEST_INCOMPLETE);
        }
        Err(HeadError::Connection(error)) => Err(error),
    };
    let received = match received {
        Ok(received) => received,
        Err(error) => return answering.fail(error),
    };
    let client = Arc::new(StreamClient::new(
        Outgoing::new(send, timeout),
        answering.long_pieces.clone(),
    ));
    let mut has_gone = false;
    let send_timeout = {
        let mut answer = pin!(answering.answer(received, incoming, &client));
        poll_fn(|cx| {
            if !has_gone && stopped.as_mut().poll(cx).is_ready() {
                has_gone = true;
                client.note_gone();
            }
            answer.as_mut().poll(cx)
        })
        .await
    };
    if !has_gone {
        // Until the client has it all, the connection stays.
        let _ = tokio::time::timeout(send_timeout, stopped).await;
    }
}

impl<S: Service> RequestContext<S> {
    pub fn terms(&self) -> Option<S::Terms> {
        self.service.terms(&self.facts, &mut self.memory.lock())
    }

    pub fn report(&self, terms: &S::Terms, reason: &str) {
        self.service
            .report_broken_connection(terms, &self.facts, reason);
    }

    /// The client broke the rules of the connection, which ends.
    pub fn fail(&self, error: http3::Error) {
        if let Some(terms) = self.terms() {
            self.report(&terms, &error.to_string());
        }
        self.tables.close(error);
    }

    /// The request was not looked at: the client may send it elsewhere (RFC 9114 §4.1.1).
    pub fn turn_away(&self, mut send: SendStream, mut receive: RecvStream) {
        let code = varint(Code::REQUEST_REJECTED);
        let _ = send.reset(code);
        let _ = receive.stop(code);
    }

    fn break_off(&self, mut send: SendStream, mut incoming: Incoming, code: Code) {
        let _ = send.reset(varint(code));
        incoming.stop(code);
    }

    /// A request begins.
    fn begin(
        &self,
        terms: S::Terms,
        block: &[u8],
        incoming: &mut Incoming,
        started_at: u64,
    ) -> Result<ReceivedRequest<S>, http3::Error> {
        let mut buffer = HeadBuffer::new();
        let facts = match self.tables.read_request(
            incoming.stream_number(),
            block,
            &self.limits,
            &mut buffer,
        )? {
            Ok(facts) => facts,
            Err(error) => {
                let refusal = Refusal::new(error.status(), &error);
                return Ok(self.begin_refused(terms, refusal, incoming, started_at));
            }
        };
        let bytes = incoming.received();
        let length = incoming.begin_body(facts.content_length);
        if incoming.is_malformed() {
            let error = http2::RequestError::BodyLength;
            let refusal = Refusal::new(error.status(), &error);
            return Ok(self.begin_refused(terms, refusal, incoming, started_at));
        }
        let head = http2::to_owned_head(buffer.request());
        let received = self.received(head, bytes, started_at);
        let (exchange, body) =
            self.service
                .receive(terms, &mut self.memory.lock(), received, |_, _| Ok(length));
        let (body, refused) = match body {
            Ok(body) => (body, None),
            Err(refusal) => (BodyLength::None, Some(refusal)),
        };
        self.follow(&exchange);
        Ok(ReceivedRequest {
            exchange,
            body,
            refused,
        })
    }

    /// Answers a refused request with an error.
    fn begin_refused(
        &self,
        terms: S::Terms,
        refusal: Box<Refusal>,
        incoming: &Incoming,
        started_at: u64,
    ) -> ReceivedRequest<S> {
        let head = RequestHead::unreadable(Version::Http3);
        let received = self.received(head, incoming.received(), started_at);
        let exchange = self.service.receive_unreadable(terms, received);
        self.follow(&exchange);
        ReceivedRequest {
            exchange,
            body: BodyLength::None,
            refused: Some(refusal),
        }
    }

    fn received(&self, head: RequestHead, bytes: u64, started_at: u64) -> ReceivedHead {
        ReceivedHead {
            head,
            connection: self.facts.clone(),
            started_at,
            nth_on_connection: self.requests.fetch_add(1, Ordering::Relaxed) + 1,
            is_pipelined: false,
            is_early: false,
            bytes,
        }
    }

    /// Adopts the location's settings for its connections.
    fn follow(&self, exchange: &S::Exchange) {
        let settings = exchange.connection_settings();
        let idle = clock::millis(settings.keepalive_timeout);
        self.idle_ms.store(idle, Ordering::Relaxed);
        let age = exchange.now().saturating_sub(self.facts.accepted_at);
        if self.requests.load(Ordering::Relaxed) >= settings.keepalive_requests
            || u128::from(age) >= settings.keepalive_time.as_millis()
        {
            self.is_last.store(true, Ordering::Relaxed);
            self.changed.notify_one();
        }
    }

    /// Makes the response and sends it. Gives how long the client may take nothing of it
    /// (`send_timeout`).
    async fn answer(
        &self,
        received: ReceivedRequest<S>,
        mut incoming: Incoming,
        stream: &Arc<StreamClient>,
    ) -> Duration {
        let ReceivedRequest {
            mut exchange,
            body,
            refused,
        } = received;
        let mut client = ClientSide::new(stream.clone());
        let body: Option<Box<dyn IncomingBody>> = match (&refused, body) {
            (Some(_), _) => {
                incoming.stop(Code::MESSAGE_ERROR);
                None
            }
            (None, BodyLength::None) => None,
            (None, _) => Some(Box::new(incoming)),
        };
        let expects = body.is_some() && http_semantics::expects_continue(exchange.head());
        client.begin(body, expects, true);
        let configuration = self.service.configuration(&exchange);
        let (service, refused) = (&self.service, refused.as_deref());
        let answer = match service.respond(&mut exchange, &configuration, &mut client, refused) {
            ReadyOrPending::Ready(answer) => answer,
            ReadyOrPending::Pending(rest) => rest.await,
        };
        drop(configuration);
        let sent = match answer {
            ResponseOutcome::Response => respond::send(&mut *exchange, stream).await,
            ResponseOutcome::Nothing => Err(SendError::Truncated),
        };
        let mut outgoing = stream.outgoing.lock().await;
        let bytes = outgoing.sent();
        let ending = match sent {
            Ok(body_bytes) => {
                exchange.add_sent(bytes, bytes.saturating_sub(body_bytes));
                exchange.complete();
                Ok(Ending::KeepAlive)
            }
            Err(error) => {
                outgoing.reset(match error {
                    SendError::TimedOut | SendError::GaveWay => Code::REQUEST_CANCELLED,
                    _ => Code::INTERNAL_ERROR,
                });
                exchange.add_sent(bytes, 0);
                match answer {
                    ResponseOutcome::Response => Err(error),
                    ResponseOutcome::Nothing => Ok(Ending::Close),
                }
            }
        };
        drop(outgoing);
        let send_timeout = exchange.connection_settings().send_timeout;
        // Background work is not waited for.
        let _ = self
            .service
            .end(&mut exchange, &mut self.memory.lock(), &ending);
        send_timeout
    }
}
