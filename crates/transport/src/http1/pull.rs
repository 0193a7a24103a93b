//! A body that is pulled, on its way to the client: read ahead as far as it wants that, cut to
//! the length that was promised, framed, and ended with its trailers.

use std::collections::VecDeque;
use std::io;

use bytes::Bytes;
use http_semantics::Fields;
use http1::HeadWriter;
use http1::chunked::{CHUNK_END, ChunkHead, LAST_CHUNK};

use super::framing::BodyFraming;
use super::send::Sender;
use crate::outbound::{ArrivingBody, Flow, Leaves, NextBytes, SendError};
use crate::service::Exchange;
use crate::spool::Spool;
use crate::stream::MAX_SLICES;

/// Bytes that have been read and not been written.
struct Outflow {
    flow: Flow,
    /// Not framed yet.
    ahead: Spool,
    /// Framed.
    pieces: VecDeque<Bytes>,
    framing: BodyFraming,
    /// Bytes that are still owed to the client, where a length was promised.
    owed: Option<u64>,
    /// Bytes were read.
    has_begun: bool,
}

/// The next step of sending a body.
enum Step {
    Read(Result<Option<Bytes>, SendError>),
    Write,
}

impl Sender<'_> {
    /// Sends a body as it comes. Reading comes first, so that a response that is there
    /// already leaves in one write.
    pub(super) async fn send_arriving<X: Exchange>(
        &mut self,
        exchange: &mut X,
        mut body: Box<dyn ArrivingBody<X>>,
        framing: BodyFraming,
    ) -> Result<(), SendError> {
        let mut outflow = Outflow::new(body.flow(), framing);
        loop {
            self.make_room(&mut outflow).await?;
            let read = {
                let mut next = body.next(exchange);
                self.write_until(&mut next, &mut outflow).await?
            };
            match read {
                Ok(Some(bytes)) => {
                    outflow.has_begun = true;
                    body.keep(bytes, &mut outflow.ahead);
                }
                Ok(None) => break,
                Err(error) => {
                    // The client gets the received bytes, even if the rest is missing.
                    if !outflow.is_held_back() {
                        self.write_ahead(&mut outflow).await?;
                    }
                    return Err(error);
                }
            }
        }
        self.drain(&mut outflow).await?;
        if outflow.owed.is_some_and(|owed| owed > 0) {
            self.write(&mut outflow.pieces).await?;
            return Err(SendError::Truncated);
        }
        let received = body.take_trailers();
        drop(body);
        if framing == BodyFraming::Chunked {
            put_last_chunk(exchange.trailers(received), &mut outflow.pieces);
        }
        self.write(&mut outflow.pieces).await
    }

    /// Writes until more may be read.
    async fn make_room(&mut self, outflow: &mut Outflow) -> Result<(), SendError> {
        // Before anything goes to disk, the client takes as much as it can.
        if outflow.ahead.is_memory_full() && !self.is_paced() {
            outflow.frame_ahead();
            while self.write_some(&mut outflow.pieces)? && !outflow.pieces.is_empty() {}
        }
        while !outflow.ahead.has_room() || (self.is_paced() && self.has_output(outflow)) {
            outflow.frame_ahead();
            self.write(&mut outflow.pieces).await?;
        }
        Ok(())
    }

    /// Waits for bytes, and meanwhile writes those at hand.
    async fn write_until(
        &mut self,
        next: &mut NextBytes<'_>,
        outflow: &mut Outflow,
    ) -> Result<Result<Option<Bytes>, SendError>, SendError> {
        loop {
            let has_output = self.has_output(outflow);
            let step = tokio::select! {
                biased;
                read = &mut *next => Step::Read(read),
                ready = self.stream.writable(), if has_output => {
                    ready?;
                    Step::Write
                }
                () = self.stream.closed(), if outflow.flow.ends_with_client => {
                    return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
                }
            };
            match step {
                Step::Read(read) => return Ok(read),
                Step::Write => {
                    outflow.frame_ahead();
                    self.write_some(&mut outflow.pieces)?;
                }
            }
        }
    }

    fn has_output(&self, outflow: &Outflow) -> bool {
        !outflow.pieces.is_empty()
            || (outflow.may_leave() && (!outflow.ahead.is_empty() || self.head_left() > 0))
    }

    /// Frames all bytes that were read, and writes all but the last write's worth.
    async fn drain(&mut self, outflow: &mut Outflow) -> Result<(), SendError> {
        loop {
            outflow.frame_ahead();
            if outflow.ahead.is_empty() {
                return Ok(());
            }
            self.write(&mut outflow.pieces).await?;
        }
    }

    /// Writes all that was read.
    async fn write_ahead(&mut self, outflow: &mut Outflow) -> Result<(), SendError> {
        self.drain(outflow).await?;
        self.write(&mut outflow.pieces).await
    }
}

impl Outflow {
    fn new(flow: Flow, framing: BodyFraming) -> Outflow {
        Outflow {
            flow,
            ahead: Spool::new(flow.ahead),
            pieces: VecDeque::new(),
            framing,
            owed: framing.declared(),
            has_begun: false,
        }
    }

    /// May the bytes at hand go out, though more are to come?
    fn may_leave(&self) -> bool {
        match self.flow.leaves {
            Leaves::AtOnce => true,
            Leaves::WithFirstBytes => self.has_begun,
            Leaves::InParts(least) => self.ahead.length() >= least as u64,
        }
    }

    /// Is it too little to be sent, if no more comes?
    fn is_held_back(&self) -> bool {
        matches!(self.flow.leaves, Leaves::InParts(_)) && !self.may_leave()
    }

    /// Frames as much as one write takes. Bytes beyond the promised length are cut off.
    fn frame_ahead(&mut self) {
        while self.pieces.len() < MAX_SLICES / 2 {
            let Some(mut bytes) = self.ahead.pop() else {
                return;
            };
            if let Some(owed) = &mut self.owed {
                let kept = usize::try_from(*owed).unwrap_or(usize::MAX);
                bytes.truncate(kept);
                *owed -= bytes.len() as u64;
            }
            frame(&mut self.pieces, bytes, self.framing);
        }
    }
}

/// Puts bytes behind the others, as a chunk where the body goes in chunks.
fn frame(pieces: &mut VecDeque<Bytes>, bytes: Bytes, framing: BodyFraming) {
    if bytes.is_empty() {
        return;
    }
    if framing == BodyFraming::Chunked {
        pieces.push_back(Bytes::copy_from_slice(
            ChunkHead::new(bytes.len() as u64).as_ref(),
        ));
        pieces.push_back(bytes);
        pieces.push_back(Bytes::from_static(CHUNK_END));
    } else {
        pieces.push_back(bytes);
    }
}

/// The end of a body in chunks, with the fields that follow it.
fn put_last_chunk(trailers: &Fields, pieces: &mut VecDeque<Bytes>) {
    let mut lines = Vec::new();
    for (name, value) in trailers.as_slice() {
        let _ = HeadWriter::resume(&mut lines).put_field(name, value);
    }
    if lines.is_empty() {
        pieces.push_back(Bytes::from_static(LAST_CHUNK));
    } else {
        pieces.push_back(Bytes::from_static(b"0\r\n"));
        pieces.push_back(Bytes::from(lines));
        pieces.push_back(Bytes::from_static(CHUNK_END));
    }
}
