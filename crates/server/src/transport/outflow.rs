//! A body that is pulled, and given to a stream as fast as the client takes it: the same for
//! HTTP/2 and HTTP/3. What a stream is, an [`Outlet`] knows.

use std::pin::pin;

use bytes::Bytes;
use http_semantics::Fields;
use tokio::time::Instant;

use crate::base::spool::Spool;
use crate::transport::outbound::{Leaves, NextBytes, Pace, SendError};
use crate::transport::service::Exchange;

/// A stream that takes a response.
pub trait Outlet<X>: Send {
    /// Takes the head. It leaves with the first bytes of the body, unless it is wanted at once.
    fn send_head(
        &mut self,
        exchange: &mut X,
        length: Option<u64>,
        leaves: Leaves,
    ) -> impl Future<Output = Result<(), SendError>> + Send;

    /// Waits until more of the body may be given. Whoever gives up waiting has lost nothing.
    fn room(&mut self) -> impl Future<Output = Result<(), SendError>> + Send;

    /// Takes bytes of the body, for which there is room: at once, whether or not they are
    /// waited for.
    fn send(&mut self, piece: Bytes) -> impl Future<Output = Result<(), SendError>> + Send;

    /// Takes the fields behind the body, and with them its end.
    fn end(&mut self, trailers: &Fields) -> impl Future<Output = Result<(), SendError>> + Send;

    /// Resolves when the client has gone, with what is said of that.
    fn gone(&self) -> impl Future<Output = SendError> + Send + use<Self, X>;
}

/// What was pulled and not given.
struct Outflow<'a, O> {
    outlet: &'a mut O,
    ahead: Spool,
    /// A piece of what was ahead, cut to what may be given now.
    piece: Bytes,
    /// Bytes that are still owed to the client, where a length was promised.
    owed: Option<u64>,
    given: u64,
    pace: Option<(Pace, Instant)>,
}

/// Sends the response of an exchange: how many bytes its body had.
///
/// # Errors
/// It could not be given whole.
pub async fn send_arriving<X: Exchange, O: Outlet<X>>(
    exchange: &mut X,
    outlet: &mut O,
    length: Option<u64>,
) -> Result<u64, SendError> {
    let pace = exchange.pace();
    let mut body = exchange.take_body().into_arriving();
    let flow = body.flow();
    outlet.send_head(exchange, length, flow.leaves).await?;
    let mut outflow = Outflow {
        outlet,
        ahead: Spool::new(flow.ahead),
        piece: Bytes::new(),
        owed: length,
        given: 0,
        pace: pace.map(|pace| (pace, Instant::now())),
    };
    loop {
        while !outflow.ahead.has_room() {
            outflow.give::<X>().await?;
        }
        let read = {
            let mut next = body.next(exchange);
            outflow
                .give_until::<X>(&mut next, flow.ends_with_client)
                .await?
        };
        match read {
            Ok(Some(bytes)) => body.keep(bytes, &mut outflow.ahead),
            Ok(None) => break,
            Err(error) => {
                // What was received is the client's, also when the rest is missing.
                outflow.give_all::<X>().await?;
                return Err(error);
            }
        }
    }
    outflow.give_all::<X>().await?;
    if outflow.owed.is_some_and(|owed| owed > 0) {
        return Err(SendError::Truncated);
    }
    let given = outflow.given;
    let received = body.take_trailers();
    drop(body);
    outlet.end(exchange.trailers(received)).await?;
    Ok(given)
}

impl<O> Outflow<'_, O> {
    /// Waits for bytes, and meanwhile gives what there is.
    async fn give_until<X: Exchange>(
        &mut self,
        next: &mut NextBytes<'_>,
        ends_with_client: bool,
    ) -> Result<Result<Option<Bytes>, SendError>, SendError>
    where
        O: Outlet<X>,
    {
        let mut gone = pin!(self.outlet.gone());
        loop {
            let has_more = !self.piece.is_empty() || !self.ahead.is_empty();
            tokio::select! {
                biased;
                read = &mut *next => return Ok(read),
                given = self.give::<X>(), if has_more => given?,
                error = &mut gone, if ends_with_client => return Err(error),
            }
        }
    }

    async fn give_all<X: Exchange>(&mut self) -> Result<(), SendError>
    where
        O: Outlet<X>,
    {
        while !self.piece.is_empty() || !self.ahead.is_empty() {
            self.give::<X>().await?;
        }
        Ok(())
    }

    /// Gives some bytes, once the client has taken enough of what was given before. Whoever
    /// gives up waiting has lost nothing.
    async fn give<X: Exchange>(&mut self) -> Result<(), SendError>
    where
        O: Outlet<X>,
    {
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
        self.outlet.room().await?;
        let allowed = match &self.pace {
            Some((pace, started)) => pace.allowance(*started, self.given).await,
            None => usize::MAX,
        };
        let allowed = allowed.min(self.piece.len());
        let piece = self.piece.split_to(allowed);
        self.given += piece.len() as u64;
        self.outlet.send(piece).await
    }
}
