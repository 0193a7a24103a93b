//! One request: from its head to its line in the log.

use std::sync::Arc;

use http2::{ErrorCode, StreamId};
use parking_lot::Mutex;

use super::respond;
use super::shared::{FinishingExchange, SharedCodec, StreamBody, StreamEnd, StreamHandle};
use crate::body::IncomingBody;
use crate::client::ClientSide;
use crate::outbound::SendError;
use crate::ready_or_pending::ReadyOrPending;
use crate::service::{BodyLength, Ending, Exchange, Refusal, ResponseOutcome, Service};

/// The context that the requests of a connection share.
pub struct RequestContext<S: Service> {
    pub service: Arc<S>,
    pub memory: Arc<Mutex<S::Memory>>,
    pub shared: Arc<SharedCodec<S::Exchange>>,
}

impl<S: Service> Clone for RequestContext<S> {
    fn clone(&self) -> Self {
        RequestContext {
            service: self.service.clone(),
            memory: self.memory.clone(),
            shared: self.shared.clone(),
        }
    }
}

/// A request that was received.
pub struct ReceivedRequest<S: Service> {
    pub id: StreamId,
    pub exchange: Box<S::Exchange>,
    pub body: BodyLength,
    pub refused: Option<Box<Refusal>>,
}

impl<S: Service> RequestContext<S> {
    /// Makes the response and gives it to the codec. The request ends when that has left.
    pub async fn answer(self, received: ReceivedRequest<S>) {
        let ReceivedRequest {
            id,
            mut exchange,
            body,
            refused,
        } = received;
        let handle = || StreamHandle {
            shared: self.shared.clone(),
            id,
        };
        let mut client = ClientSide::new(Arc::new(handle()));
        let body: Option<Box<dyn IncomingBody>> = match body {
            BodyLength::None => None,
            _ => Some(Box::new(StreamBody(handle()))),
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
        let given = match answer {
            ResponseOutcome::Response => respond::send(&mut *exchange, &self.shared, id).await,
            ResponseOutcome::Nothing => {
                self.shared.reset(id, ErrorCode::INTERNAL_ERROR);
                return self.end(id, exchange, Ok(Ending::Close));
            }
        };
        match given {
            Ok(body_bytes) => self.given(
                id,
                FinishingExchange {
                    exchange,
                    body_bytes,
                },
            ),
            Err(error) => self.end(id, exchange, Err(error)),
        }
    }

    /// All of the response was given: the request ends when it has left.
    fn given(&self, id: StreamId, given: FinishingExchange<S::Exchange>) {
        let mut state = self.shared.lock();
        match state.streams.get_mut(&id) {
            Some(stream) => match stream.end {
                StreamEnd::Closed { bytes, is_whole } => {
                    state.streams.remove(&id);
                    drop(state);
                    self.over(given, bytes, is_whole);
                }
                _ => stream.end = StreamEnd::Given(given),
            },
            None => {
                drop(state);
                self.over(given, 0, false);
            }
        }
    }

    /// The last byte of a response has left, or will never.
    pub fn over(&self, given: FinishingExchange<S::Exchange>, bytes: u64, is_whole: bool) {
        let FinishingExchange {
            mut exchange,
            body_bytes,
        } = given;
        exchange.add_sent(bytes, bytes.saturating_sub(body_bytes));
        let ending = match is_whole {
            true => {
                exchange.complete();
                Ok(Ending::KeepAlive)
            }
            false => Err(SendError::Client(super::shared::gone())),
        };
        self.log(exchange, &ending);
    }

    /// A request ends whose response could not be given.
    fn end(&self, id: StreamId, mut exchange: Box<S::Exchange>, ending: Result<Ending, SendError>) {
        let removed = self.shared.lock().streams.remove(&id);
        if let Some(stream) = removed
            && let StreamEnd::Closed { bytes, .. } = stream.end
        {
            exchange.add_sent(bytes, bytes);
        }
        self.log(exchange, &ending);
    }

    fn log(&self, mut exchange: Box<S::Exchange>, ending: &Result<Ending, SendError>) {
        let mut memory = self.memory.lock();
        // Background work is not waited for: others are served meanwhile.
        let _ = self.service.end(&mut exchange, &mut memory, ending);
    }
}
