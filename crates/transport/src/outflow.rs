//! A body that is not given to a stream as a whole, but as fast as the client takes it: the same for HTTP/2
//! and HTTP/3. An [`Outlet`] is the protocol's stream.
//!
//! Bytes at hand are read when there is room for them and not before, so that a stream whose client takes
//! nothing holds none of them. Bytes from an upstream are read ahead as far as its location allows.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_semantics::Fields;
use tokio::time::Instant;

use crate::outbound::{ArrivingBody, Body, Flow, Leaves, NextBytes, Pace, SendError, SentHead};
use crate::pieces::Pieces;
use crate::service::Exchange;
use crate::spool::Spool;
use crate::waiting_streams::{self, StreamHoldings, WaitedTime};

/// Begins a response on a stream: the length of its body, and whether its head is all that is sent. A body
/// without a reader is dropped; one that is being stored goes on arriving without this reader.
pub fn begin<X: Exchange>(exchange: &mut X) -> (Option<u64>, bool) {
    let has_none = matches!(exchange.opening().status, 204 | 304);
    let is_empty = matches!(exchange.body(), Body::Empty) && !exchange.wants_head_alone();
    let length = match has_none {
        true => None,
        false => exchange.content_length().or(is_empty.then_some(0)),
    };
    exchange.note_head(sent_head(length));
    let is_head_alone = has_none || exchange.wants_head_alone();
    match is_head_alone {
        true => *exchange.body() = Body::Empty,
        false => exchange.body().read_small_file(),
    }
    (length, is_head_alone)
}

/// Creates the facts of a head on a stream.
pub fn sent_head(length: Option<u64>) -> SentHead {
    SentHead {
        length,
        ..SentHead::default()
    }
}

/// The room that an outlet has.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Bytes given earlier for which the client has made room since.
    pub taken: usize,
    /// How many bytes may be given; none if earlier ones have to leave first.
    pub free: usize,
}

/// A stream that takes a response.
pub trait Outlet<X>: Send {
    /// Takes the head. It leaves with the first bytes of the body, unless it is wanted at once.
    fn send_head(
        &mut self,
        exchange: &mut X,
        length: Option<u64>,
        leaves: Leaves,
    ) -> impl Future<Output = Result<(), SendError>> + Send;

    /// Waits until more of the body may be given, or some of the given bytes have left. A caller that gives
    /// up waiting has lost nothing.
    fn room(&mut self) -> impl Future<Output = Result<Room, SendError>> + Send;

    /// Takes bytes of the body, for which there is room: how many of them the client has room for.
    fn send(&mut self, piece: Bytes) -> Result<usize, SendError>;

    /// Takes the fields behind the body, and with them its end.
    fn end(&mut self, trailers: &Fields) -> impl Future<Output = Result<(), SendError>> + Send;

    /// Bytes that were given and have not left.
    fn held_bytes(&self) -> usize;

    /// Do given bytes leave without a further call of [`Outlet::room`]?
    fn is_flushed(&self) -> bool;

    /// Returns a function for the time at which other streams of the connection last sent something, as long
    /// as the stream waits for its turn among them and not for its client.
    fn turns(&self) -> impl Fn() -> Option<Instant> + Send + use<Self, X>;

    /// Resolves when the client has gone, with the error to report.
    fn gone(&self) -> impl Future<Output = SendError> + Send + use<Self, X>;
}

/// Bytes that were pulled and not given to the outlet.
struct Outflow<'a, O> {
    outlet: &'a mut O,
    ahead: Spool,
    /// A piece of the bytes ahead, cut to the length that may be given now.
    piece: Bytes,
    /// Bytes that are still owed to the client, where a length was promised.
    owed: Option<u64>,
    given: u64,
    pace: Option<(Pace, Instant)>,
    waiting: ClientWait,
    holds_file: bool,
}

/// How long a client may be waited for, and has been.
pub struct ClientWait {
    /// `send_timeout`
    timeout: Duration,
    waited_time: WaitedTime,
}

impl ClientWait {
    pub fn new(timeout: Duration) -> ClientWait {
        ClientWait {
            timeout,
            waited_time: WaitedTime::default(),
        }
    }

    /// The client has taken bytes, or has room for them.
    pub fn note_taken(&mut self, bytes: usize) {
        self.waited_time.note_taken(bytes);
    }

    /// Waits for `ready`, for as long as the client has time and no other stream needs the memory of this
    /// one. `turns` is as [`Outlet::turns`].
    ///
    /// # Errors
    /// The errors of `ready`; or the client has taken too little for too long.
    pub async fn until<T>(
        &mut self,
        held: StreamHoldings,
        turns: impl Fn() -> Option<Instant>,
        ready: impl Future<Output = Result<T, SendError>>,
    ) -> Result<T, SendError> {
        let mut ready = pin!(ready);
        if let Poll::Ready(result) =
            std::future::poll_fn(|cx| Poll::Ready(ready.as_mut().poll(cx))).await
        {
            return result;
        }
        let wait = self.waited_time.wait();
        let place = waiting_streams::of_this_process().enter(wait.since(), held);
        let mut until = wait.since() + self.timeout;
        loop {
            tokio::select! {
                result = &mut ready => return result,
                () = place.gives_way() => return Err(SendError::GaveWay),
                () = tokio::time::sleep_until(until) => match turns() {
                    Some(at) if at + self.timeout > Instant::now() => until = at + self.timeout,
                    _ => return Err(SendError::TimedOut),
                },
            }
        }
    }
}

/// Sends the response of an exchange: how many bytes its body had.
///
/// # Errors
/// It could not be given whole.
pub async fn send_body<X: Exchange, O: Outlet<X>>(
    exchange: &mut X,
    outlet: &mut O,
    length: Option<u64>,
) -> Result<u64, SendError> {
    let pace = exchange.pace();
    let timeout = exchange.connection_settings().send_timeout;
    let body = exchange.take_body();
    let flow = match &body {
        Body::Arriving(body) => body.flow(),
        _ => Flow::default(),
    };
    outlet.send_head(exchange, length, flow.leaves).await?;
    let mut outflow = Outflow {
        outlet,
        ahead: Spool::new(flow.ahead),
        piece: Bytes::new(),
        owed: length,
        given: 0,
        pace: pace.map(|pace| (pace, Instant::now())),
        waiting: ClientWait::new(timeout),
        holds_file: false,
    };
    let trailers = match body {
        Body::Arriving(body) => outflow.send_arriving(exchange, body).await?,
        body => {
            outflow.send_pieces::<X>(body.into_pieces()).await?;
            Fields::new()
        }
    };
    if outflow.owed.is_some_and(|owed| owed > 0) {
        return Err(SendError::Truncated);
    }
    let given = outflow.given;
    outlet.end(exchange.trailers(trailers)).await?;
    Ok(given)
}

impl<O> Outflow<'_, O> {
    /// Gives a body that is at hand, piece by piece.
    async fn send_pieces<X: Exchange>(&mut self, mut pieces: Pieces) -> Result<(), SendError>
    where
        O: Outlet<X>,
    {
        self.holds_file = pieces.has_file();
        while !pieces.is_empty() {
            let free = self.room::<X>(pieces.memory_bytes()).await?;
            let most = self.paced(free).await;
            if let Some(piece) = pieces.read(most)? {
                self.give_piece::<X>(piece)?;
            }
        }
        drop(pieces);
        self.holds_file = false;
        self.give_all::<X>().await
    }

    /// Gives a body that comes from elsewhere, and reads it ahead: the fields behind it.
    async fn send_arriving<X: Exchange>(
        &mut self,
        exchange: &mut X,
        mut body: Box<dyn ArrivingBody<X>>,
    ) -> Result<Fields, SendError>
    where
        O: Outlet<X>,
    {
        let ends_with_client = body.flow().ends_with_client;
        loop {
            while !self.ahead.has_room() {
                self.give::<X>().await?;
            }
            let read = {
                let mut next = body.next(exchange);
                self.give_until::<X>(&mut next, ends_with_client).await?
            };
            match read {
                Ok(Some(bytes)) => body.keep(bytes, &mut self.ahead),
                Ok(None) => break,
                Err(error) => {
                    // The client gets the received bytes, even if the rest is missing.
                    self.give_all::<X>().await?;
                    return Err(error);
                }
            }
        }
        self.give_all::<X>().await?;
        Ok(body.take_trailers())
    }

    /// Waits for bytes, and meanwhile gives those at hand.
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
            let has_more = self.has_more::<X>();
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
        while self.has_more::<X>() {
            self.give::<X>().await?;
        }
        Ok(())
    }

    /// Is there something that the client should get?
    fn has_more<X: Exchange>(&self) -> bool
    where
        O: Outlet<X>,
    {
        !self.piece.is_empty() || !self.ahead.is_empty() || !self.outlet.is_flushed()
    }

    /// Gives some of the bytes ahead, once there is room. A caller that gives up waiting has lost nothing.
    async fn give<X: Exchange>(&mut self) -> Result<(), SendError>
    where
        O: Outlet<X>,
    {
        if self.piece.is_empty() {
            self.piece = self.ahead.pop().unwrap_or_default();
        }
        let held = self.piece.len() + self.ahead.memory_bytes();
        let free = self.room::<X>(held).await?;
        if self.piece.is_empty() {
            return Ok(());
        }
        let most = self.paced(free).await.min(self.piece.len());
        let piece = self.piece.split_to(most);
        self.give_piece::<X>(piece)
    }

    /// Gives a piece for which there is room.
    fn give_piece<X: Exchange>(&mut self, mut piece: Bytes) -> Result<(), SendError>
    where
        O: Outlet<X>,
    {
        if let Some(owed) = &mut self.owed {
            // Bytes beyond the promised length are cut off.
            piece.truncate(usize::try_from(*owed).unwrap_or(usize::MAX));
            *owed -= piece.len() as u64;
        }
        if piece.is_empty() {
            return Ok(());
        }
        self.given += piece.len() as u64;
        let taken = self.outlet.send(piece)?;
        self.waiting.note_taken(taken);
        Ok(())
    }

    /// Waits for room: how many bytes. Meanwhile `body_bytes` of the body are there for this stream alone.
    async fn room<X: Exchange>(&mut self, body_bytes: usize) -> Result<usize, SendError>
    where
        O: Outlet<X>,
    {
        let held = StreamHoldings {
            bytes: body_bytes + self.outlet.held_bytes(),
            has_temporary_file: self.ahead.has_file(),
            has_file: self.holds_file,
        };
        let turns = self.outlet.turns();
        loop {
            let room = self.outlet.room();
            let Room { taken, free } = self.waiting.until(held, &turns, room).await?;
            self.waiting.note_taken(taken);
            if free > 0 {
                return Ok(free);
            }
        }
    }

    /// Waits for the pace: how many of `bytes` may be given now.
    async fn paced(&self, bytes: usize) -> usize {
        match &self.pace {
            Some((pace, started)) => bytes.min(pace.allowance(*started, self.given).await),
            None => bytes,
        }
    }
}
