//! Sending a response on a stream: bodies at hand with room in the client's windows are given to the
//! codec as they are, any other is pulled as fast as the client takes it.

use std::sync::Arc;

use bytes::Bytes;
use http_semantics::{Fields, status};
use http2::{ErrorCode, FieldBlock, StreamId};
use tokio::time::Instant;

use super::fields;
use super::shared::{SharedCodec, gone};
use crate::outbound::{Body, Leaves, SendError};
use crate::outflow::{self, Outlet, Room, sent_head};
use crate::service::Exchange;

/// Gives the whole response to the codec: how many bytes its body had.
///
/// # Errors
/// It could not be given whole. The stream is reset then.
pub async fn send<X: Exchange>(
    exchange: &mut X,
    shared: &Arc<SharedCodec<X>>,
    id: StreamId,
) -> Result<u64, SendError> {
    let sent = send_whole(exchange, shared, id).await;
    match sent {
        Ok(_) => {}
        Err(SendError::TimedOut | SendError::GaveWay) => shared.reset(id, ErrorCode::CANCEL),
        Err(_) => shared.reset(id, ErrorCode::INTERNAL_ERROR),
    }
    sent
}

async fn send_whole<X: Exchange>(
    exchange: &mut X,
    shared: &Arc<SharedCodec<X>>,
    id: StreamId,
) -> Result<u64, SendError> {
    let rules = exchange.rules();
    let (length, is_head_alone) = outflow::begin(exchange);
    if is_head_alone {
        send_at_hand(exchange, shared, id, length)?;
        return Ok(0);
    }
    if !rules.may_have_trailers
        && !rules.may_be_paced
        && let Some(bytes) = send_at_hand(exchange, shared, id, length)?
    {
        return Ok(bytes);
    }
    if matches!(exchange.body(), Body::Tunnel(_)) {
        // HTTP/2 has no way to ask for one (RFC 9113 §8.6).
        return Err(SendError::Truncated);
    }
    let mut outlet = StreamOutlet { shared, id };
    outflow::send_body(exchange, &mut outlet, length).await
}

/// Gives a response whose body is there and has room; `None` if it has to be pulled.
fn send_at_hand<X: Exchange>(
    exchange: &mut X,
    shared: &SharedCodec<X>,
    id: StreamId,
    length: Option<u64>,
) -> Result<Option<u64>, SendError> {
    let Some(chunks) = exchange.body().chunks(length) else {
        return Ok(None);
    };
    let chunks: Vec<Bytes> = chunks
        .iter()
        .filter(|chunk| !chunk.is_empty())
        .cloned()
        .collect();
    let bytes = chunks.iter().map(Bytes::len).sum::<usize>();
    let mut state = shared.lock();
    let room = match exchange.body().is_stored() {
        // Nothing of it is copied.
        true => state.codec.window(id),
        false => state.codec.room(id),
    };
    if bytes > room {
        return Ok(None);
    }
    put_head(&*exchange, &mut state.codec, id, length, chunks.is_empty())?;
    let last = chunks.len().saturating_sub(1);
    for (nth, chunk) in chunks.into_iter().enumerate() {
        let given = state.codec.send_body(id, chunk, nth == last);
        given.map_err(|_| gone())?;
    }
    state.wake_writer();
    drop(state);
    // Nothing of the upstream is kept longer than needed.
    if let Body::Arriving(_) = exchange.body() {
        exchange.take_body();
    }
    Ok(Some(bytes as u64))
}

/// Gives the head to the codec; `is_whole`: nothing follows it.
fn put_head<X: Exchange>(
    exchange: &X,
    codec: &mut http2::Connection,
    id: StreamId,
    length: Option<u64>,
    is_whole: bool,
) -> Result<(), SendError> {
    let status = status::shown(exchange.opening().status);
    codec.set_chunk_bytes(id, exchange.connection_settings().http2_chunk_bytes);
    let given = fields::with_block(exchange, &sent_head(length), |block| {
        codec.send_response(id, status, &[block], is_whole)
    });
    Ok(given.map_err(|_| gone())?)
}

/// A stream of HTTP/2, for bodies that are pulled.
struct StreamOutlet<'a, X> {
    shared: &'a Arc<SharedCodec<X>>,
    id: StreamId,
}

impl<'a, X: Exchange> Outlet<X> for StreamOutlet<'a, X> {
    async fn send_head(
        &mut self,
        exchange: &mut X,
        length: Option<u64>,
        leaves: Leaves,
    ) -> Result<(), SendError> {
        let mut state = self.shared.lock();
        put_head(&*exchange, &mut state.codec, self.id, length, false)?;
        if leaves == Leaves::AtOnce {
            state.wake_writer();
        }
        Ok(())
    }

    async fn room(&mut self) -> Result<Room, SendError> {
        let free = self.shared.room(self.id).await?;
        Ok(Room { taken: 0, free })
    }

    fn send(&mut self, piece: Bytes) -> Result<usize, SendError> {
        let bytes = piece.len();
        let mut state = self.shared.lock();
        let given = state.codec.send_body(self.id, piece, false);
        given.map_err(|_| gone())?;
        state.wake_writer();
        Ok(bytes)
    }

    async fn end(&mut self, trailers: &Fields) -> Result<(), SendError> {
        end(self.shared, self.id, trailers)
    }

    fn held_bytes(&self) -> usize {
        self.shared.lock().codec.queued_bytes(self.id)
    }

    /// Always flushed: the connection writes the frames.
    fn is_flushed(&self) -> bool {
        true
    }

    fn turns(&self) -> impl Fn() -> Option<Instant> + Send + use<'a, X> {
        let (shared, id) = (self.shared.clone(), self.id);
        move || {
            let turn = shared.lock().codec.last_turn(id);
            turn.map(Instant::from_std)
        }
    }

    fn gone(&self) -> impl Future<Output = SendError> + Send + use<'a, X> {
        let (shared, id) = (self.shared.clone(), self.id);
        async move {
            shared.gone(id).await;
            gone().into()
        }
    }
}

/// The end of a body, with the fields that follow it.
fn end<X>(shared: &SharedCodec<X>, id: StreamId, trailers: &Fields) -> Result<(), SendError> {
    let mut block = FieldBlock::new();
    for (name, value) in trailers.as_slice() {
        let _ = block.put(name, value);
    }
    let mut state = shared.lock();
    match block.is_empty() {
        true => state.codec.send_body(id, Bytes::new(), true),
        false => state.codec.send_trailers(id, &block),
    }
    .map_err(|_| gone())?;
    state.wake_writer();
    Ok(())
}
