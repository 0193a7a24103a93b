//! Sending a response on a stream: bodies at hand go to quinn as they are, any other is pulled as fast
//! as the client takes it.

use std::sync::Arc;

use bytes::Bytes;
use http_semantics::Fields;
use http3::data_frame_head;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit};
use tokio::time::Instant;

use super::fields;
use super::stream::{Outgoing, StreamClient, gone};
use crate::outbound::{Body, Leaves, SendError};
use crate::outflow::{self, ClientWait, Outlet, Room, sent_head};
use crate::pieces::READ_BYTES;
use crate::service::Exchange;
use crate::waiting_streams::StreamHoldings;

/// Read of a body at once where other streams of the connection hold long pieces: the content of a few
/// packets.
const SHORT_PIECE_BYTES: usize = 4096;

/// Sends the whole response: how many bytes its body had.
///
/// # Errors
/// It could not be sent whole.
pub async fn send<X: Exchange>(
    exchange: &mut X,
    client: &Arc<StreamClient>,
) -> Result<u64, SendError> {
    let mut outgoing = client.outgoing.clone().lock_owned().await;
    outgoing.set_timeout(exchange.connection_settings().send_timeout);
    let rules = exchange.rules();
    let (length, is_head_alone) = outflow::begin(exchange);
    if is_head_alone {
        send_at_hand(exchange, &mut outgoing, length).await?;
        return Ok(0);
    }
    if !rules.may_have_trailers
        && !rules.may_be_paced
        && let Some(bytes) = send_at_hand(exchange, &mut outgoing, length).await?
    {
        return Ok(bytes);
    }
    if matches!(exchange.body(), Body::Tunnel(_)) {
        // HTTP/3 has no way to ask for one (RFC 9114 §4.5).
        return Err(SendError::Truncated);
    }
    let mut outlet = StreamOutlet {
        outgoing,
        client: client.clone(),
        permit: None,
        head_waits: false,
    };
    // In a box, since most requests do not need this part of the task: a connection has many of them.
    Box::pin(outflow::send_body(exchange, &mut outlet, length)).await
}

/// Sends a response whose body is there and short, or stored; `None` if it has to be pulled.
async fn send_at_hand<X: Exchange>(
    exchange: &mut X,
    outgoing: &mut Outgoing,
    length: Option<u64>,
) -> Result<Option<u64>, SendError> {
    let is_stored = exchange.body().is_stored();
    let Some(chunks) = exchange.body().chunks(length) else {
        return Ok(None);
    };
    let bytes = chunks.iter().map(Bytes::len).sum::<usize>();
    if bytes > READ_BYTES && !is_stored {
        return Ok(None);
    }
    let chunks: Vec<Bytes> = chunks.to_vec();
    outgoing.push(fields::response(&*exchange, &sent_head(length)));
    if bytes > 0 {
        outgoing.push(data_frame_head(bytes).into());
    }
    for chunk in chunks {
        outgoing.push(chunk);
    }
    let held = StreamHoldings {
        bytes: if is_stored { 0 } else { bytes },
        ..StreamHoldings::default()
    };
    let timeout = exchange.connection_settings().send_timeout;
    let mut waiting = ClientWait::new(timeout);
    while !outgoing.is_flushed() {
        let taken = waiting.until(held, || None, outgoing.flush_some()).await?;
        waiting.note_taken(taken);
    }
    outgoing.finish();
    // Nothing of the upstream is kept longer than needed.
    if let Body::Arriving(_) = exchange.body() {
        exchange.take_body();
    }
    Ok(Some(bytes as u64))
}

/// A stream of HTTP/3, for bodies that are pulled.
struct StreamOutlet {
    outgoing: OwnedMutexGuard<Outgoing>,
    client: Arc<StreamClient>,
    /// The permit for a long piece that was given and has not left.
    permit: Option<OwnedSemaphorePermit>,
    /// The head leaves with the first piece of the body.
    head_waits: bool,
}

impl<X: Exchange> Outlet<X> for StreamOutlet {
    async fn send_head(
        &mut self,
        exchange: &mut X,
        length: Option<u64>,
        leaves: Leaves,
    ) -> Result<(), SendError> {
        let head = fields::response(&*exchange, &sent_head(length));
        self.outgoing.push(head);
        self.head_waits = leaves != Leaves::AtOnce;
        match self.head_waits {
            true => Ok(()),
            false => self.outgoing.flush().await,
        }
    }

    async fn room(&mut self) -> Result<Room, SendError> {
        let mut taken = 0;
        if !self.head_waits {
            taken = self.outgoing.flush_some().await?;
        }
        if !self.head_waits && !self.outgoing.is_flushed() {
            return Ok(Room { taken, free: 0 });
        }
        if self.permit.is_none() {
            self.permit = self.client.long_pieces.clone().try_acquire_owned().ok();
        }
        let free = match self.permit {
            Some(_) => READ_BYTES,
            None => SHORT_PIECE_BYTES,
        };
        Ok(Room { taken, free })
    }

    fn send(&mut self, piece: Bytes) -> Result<usize, SendError> {
        self.head_waits = false;
        self.outgoing.push(data_frame_head(piece.len()).into());
        self.outgoing.push(piece);
        Ok(0)
    }

    async fn end(&mut self, trailers: &Fields) -> Result<(), SendError> {
        if let Some(frame) = fields::trailers(trailers) {
            self.outgoing.push(frame);
        }
        self.outgoing.flush().await?;
        self.outgoing.finish();
        Ok(())
    }

    fn held_bytes(&self) -> usize {
        self.outgoing.pending_bytes()
    }

    fn is_flushed(&self) -> bool {
        self.head_waits || self.outgoing.is_flushed()
    }

    fn turns(&self) -> impl Fn() -> Option<Instant> + Send + use<X> {
        || None
    }

    fn gone(&self) -> impl Future<Output = SendError> + Send + use<X> {
        let client = self.client.clone();
        async move {
            client.gone().await;
            gone().into()
        }
    }
}
