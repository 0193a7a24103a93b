//! Sending a response on a stream: what is at hand is given to the codec as it is, anything
//! else is pulled as fast as the client takes it.

use std::sync::Arc;

use bytes::Bytes;
use http_semantics::{Fields, status};
use http2::{ErrorCode, FieldBlock, StreamId};
use tokio::time::Instant;

use super::fields;
use super::shared::{Shared, gone};
use crate::base::spool::Spool;
use crate::transport::outbound::{Body, Leaves, NextBytes, Pace, SendError, SentHead};
use crate::transport::service::Exchange;

/// Gives the whole response to the codec: how many bytes its body had.
///
/// # Errors
/// It could not be given whole. The stream is reset then.
pub async fn send<X: Exchange>(
    exchange: &mut X,
    shared: &Arc<Shared<X>>,
    id: StreamId,
) -> Result<u64, SendError> {
    let sent = send_whole(exchange, shared, id).await;
    if sent.is_err() {
        shared.reset(id, ErrorCode::INTERNAL_ERROR);
    }
    sent
}

async fn send_whole<X: Exchange>(
    exchange: &mut X,
    shared: &Arc<Shared<X>>,
    id: StreamId,
) -> Result<u64, SendError> {
    let status = exchange.opening().status;
    let rules = exchange.rules();
    let has_none = matches!(status, 204 | 304);
    let is_empty = matches!(exchange.body(), Body::Empty) && !exchange.wants_head_alone();
    let length = match has_none {
        true => None,
        false => exchange.content_length().or(is_empty.then_some(0)),
    };
    exchange.note_head(sent_head(length));
    if has_none || exchange.wants_head_alone() {
        // A body that nobody wants is dropped; one that is being stored goes on
        // arriving without this reader.
        *exchange.body() = Body::Empty;
        send_at_hand(exchange, shared, id, length)?;
        return Ok(0);
    }
    exchange.body().read_small_file();
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
    send_arriving(exchange, shared, id, length).await
}

/// Gives a response whose body is there; `None` where it has to be pulled.
fn send_at_hand<X: Exchange>(
    exchange: &mut X,
    shared: &Shared<X>,
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
    let mut state = shared.lock();
    put_head(&*exchange, &mut state.codec, id, length, chunks.is_empty())?;
    let bytes = chunks.iter().map(Bytes::len).sum::<usize>() as u64;
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
    Ok(Some(bytes))
}

/// Gives the head to the codec; `is_whole` says that nothing follows.
fn put_head<X: Exchange>(
    exchange: &X,
    codec: &mut http2::Connection,
    id: StreamId,
    length: Option<u64>,
    is_whole: bool,
) -> Result<(), SendError> {
    let status = status::shown(exchange.opening().status);
    codec.set_chunk_bytes(id, exchange.settings().connection.http2_chunk_bytes);
    let given = fields::with_block(exchange, &sent_head(length), |block| {
        codec.send_response(id, status, &[block], is_whole)
    });
    Ok(given.map_err(|_| gone())?)
}

fn sent_head(length: Option<u64>) -> SentHead {
    SentHead {
        length,
        ..SentHead::default()
    }
}

/// What was pulled and not given.
struct Outflow<'a, X> {
    shared: &'a Shared<X>,
    id: StreamId,
    ahead: Spool,
    /// A piece of what was ahead, cut to what may be given now.
    piece: Bytes,
    /// Bytes that are still owed to the client, where a length was promised.
    owed: Option<u64>,
    given: u64,
    pace: Option<(Pace, Instant)>,
}

/// Pulls a body, and gives it as fast as the client takes it.
async fn send_arriving<X: Exchange>(
    exchange: &mut X,
    shared: &Arc<Shared<X>>,
    id: StreamId,
    length: Option<u64>,
) -> Result<u64, SendError> {
    let pace = exchange.pace();
    let mut body = exchange.take_body().into_arriving();
    let flow = body.flow();
    send_head(exchange, shared, id, length, flow.leaves)?;
    let mut outflow = Outflow {
        shared,
        id,
        ahead: Spool::new(flow.ahead),
        piece: Bytes::new(),
        owed: length,
        given: 0,
        pace: pace.map(|pace| (pace, Instant::now())),
    };
    loop {
        while !outflow.ahead.has_room() {
            outflow.give().await?;
        }
        let read = {
            let mut next = body.next(exchange);
            outflow.give_until(&mut next, flow.ends_with_client).await?
        };
        match read {
            Ok(Some(bytes)) => body.keep(bytes, &mut outflow.ahead),
            Ok(None) => break,
            Err(error) => {
                // What was received is the client's, also when the rest is missing.
                outflow.give_all().await?;
                return Err(error);
            }
        }
    }
    outflow.give_all().await?;
    if outflow.owed.is_some_and(|owed| owed > 0) {
        return Err(SendError::Truncated);
    }
    let given = outflow.given;
    let received = body.take_trailers();
    drop(body);
    end(shared, id, exchange.trailers(received))?;
    Ok(given)
}

/// The head alone. It leaves with the first bytes, unless it is wanted at once.
fn send_head<X: Exchange>(
    exchange: &X,
    shared: &Shared<X>,
    id: StreamId,
    length: Option<u64>,
    leaves: Leaves,
) -> Result<(), SendError> {
    let mut state = shared.lock();
    put_head(exchange, &mut state.codec, id, length, false)?;
    if leaves == Leaves::AtOnce {
        state.wake_writer();
    }
    Ok(())
}

/// The end of a body, with the fields that follow it.
fn end<X>(shared: &Shared<X>, id: StreamId, trailers: &Fields) -> Result<(), SendError> {
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

impl<X: Exchange> Outflow<'_, X> {
    /// Waits for bytes, and meanwhile gives what there is.
    async fn give_until(
        &mut self,
        next: &mut NextBytes<'_>,
        ends_with_client: bool,
    ) -> Result<Result<Option<Bytes>, SendError>, SendError> {
        let (shared, id) = (self.shared, self.id);
        loop {
            let has_more = !self.piece.is_empty() || !self.ahead.is_empty();
            tokio::select! {
                biased;
                read = &mut *next => return Ok(read),
                given = self.give(), if has_more => given?,
                () = shared.gone(id), if ends_with_client => return Err(gone().into()),
            }
        }
    }

    async fn give_all(&mut self) -> Result<(), SendError> {
        while !self.piece.is_empty() || !self.ahead.is_empty() {
            self.give().await?;
        }
        Ok(())
    }

    /// Gives some bytes, once the client has taken enough of what was given before. Whoever
    /// gives up waiting has lost nothing.
    async fn give(&mut self) -> Result<(), SendError> {
        if self.piece.is_empty() {
            self.piece = self.ahead.pop().unwrap_or_default();
            if let Some(owed) = &mut self.owed {
                let kept = usize::try_from(*owed).unwrap_or(usize::MAX);
                // What goes beyond the promised length is cut off.
                self.piece.truncate(kept);
                *owed -= self.piece.len() as u64;
            }
        }
        if self.piece.is_empty() {
            return Ok(());
        }
        self.shared.room(self.id).await?;
        let allowed = match &self.pace {
            Some((pace, started)) => pace.allowance(*started, self.given).await,
            None => usize::MAX,
        };
        let allowed = allowed.min(self.piece.len());
        let piece = self.piece.split_to(allowed);
        self.given += piece.len() as u64;
        let mut state = self.shared.lock();
        let given = state.codec.send_body(self.id, piece, false);
        given.map_err(|_| gone())?;
        state.wake_writer();
        Ok(())
    }
}
