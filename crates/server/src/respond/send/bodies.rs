//! Each kind of body, on its way out: files, what others are still filling, slices,
//! what is recoded as it goes, what is still at the upstream. How bytes are written,
//! and how fast, is the sender's.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use http_cache::Reader;
use http1::chunked::{CHUNK_END, ChunkHead, LAST_CHUNK};
use http1::{Fields, HeadWriter};

use super::{LEAST_WRITE_BYTES, READ_BYTES, SendError, Sender, TURN_BYTES};
use crate::base::open_file::OpenFile;
use crate::base::spool::Spool;
use crate::content::slice::Slices;
use crate::exchange::reply::{Body, Segment};
use crate::respond::BodyFraming;
use crate::transport::stream::MAX_SLICES;
use crate::upstreams::fetch::{Truncated, UpstreamBody};

impl Sender<'_> {
    pub(super) async fn write_segments(
        &mut self,
        segments: VecDeque<Segment>,
    ) -> Result<(), SendError> {
        let mut pieces = VecDeque::new();
        for segment in segments {
            match segment {
                Segment::Memory(bytes) => pieces.push_back(bytes),
                Segment::File {
                    file,
                    offset,
                    length,
                } if !self.sendfile => {
                    self.read_and_write(&file, offset, length, &mut pieces)
                        .await?;
                }
                Segment::File {
                    file,
                    offset,
                    length,
                } => {
                    // A head whose file may have to wait does not wait with it.
                    self.precedes_file = self.pace.is_none();
                    self.write(&mut pieces).await?;
                    self.precedes_file = false;
                    self.write_file(&file, offset, length).await?;
                }
            }
        }
        self.write(&mut pieces).await
    }

    /// `sendfile off`: for file systems whose `sendfile` cannot be trusted.
    async fn read_and_write(
        &mut self,
        file: &OpenFile,
        mut offset: u64,
        length: u64,
        pieces: &mut VecDeque<Bytes>,
    ) -> Result<(), SendError> {
        let end = offset + length;
        while offset < end {
            let wanted = usize::try_from(end - offset)
                .unwrap_or(usize::MAX)
                .min(READ_BYTES);
            let mut buffer = vec![0; wanted];
            let read = file.read_at(&mut buffer, offset)?;
            if read == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            buffer.truncate(read);
            offset += read as u64;
            pieces.push_back(buffer.into());
            self.write(pieces).await?;
        }
        Ok(())
    }

    async fn write_file(
        &mut self,
        file: &OpenFile,
        mut offset: u64,
        length: u64,
    ) -> Result<(), SendError> {
        let end = offset + length;
        while offset < end {
            let left = usize::try_from(end - offset)
                .unwrap_or(usize::MAX)
                .min(TURN_BYTES);
            let piece = self.allowance(left).await;
            match self.stream.try_sendfile(file, offset, piece) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(sent) => {
                    offset += sent as u64;
                    self.sent += sent as u64;
                    self.take_turns().await;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait().await?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads along with a response that is being stored.
    pub(super) async fn write_filling(
        &mut self,
        mut reader: Reader,
        framing: BodyFraming,
    ) -> Result<(), SendError> {
        let mut pieces = VecDeque::new();
        let mut left = declared(framing);
        loop {
            // What has arrived already goes out together with the head.
            let mut ended = false;
            while pieces.len() < MAX_SLICES / 4 {
                match poll_once(reader.next_chunk()).await {
                    Some(Ok(Some(bytes))) => {
                        self.add_piece(&mut pieces, &bytes, framing, &mut left)?
                    }
                    Some(Ok(None)) => {
                        ended = true;
                        break;
                    }
                    Some(Err(_)) => {
                        self.write(&mut pieces).await?;
                        return Err(SendError::Truncated);
                    }
                    None => break,
                }
            }
            if ended || self.has_all_wanted() {
                return self.finish(pieces, framing, left).await;
            }
            if pieces.is_empty() && self.head_written == self.head.len() {
                match reader.next_chunk().await {
                    Ok(Some(bytes)) => self.add_piece(&mut pieces, &bytes, framing, &mut left)?,
                    Ok(None) => return self.finish(pieces, framing, left).await,
                    Err(_) => return Err(SendError::Truncated),
                }
            }
            self.write(&mut pieces).await?;
        }
    }

    /// One slice after the other, each asked for when the one before is out.
    pub(super) async fn write_slices(
        &mut self,
        mut slices: Slices,
        framing: BodyFraming,
    ) -> Result<(), SendError> {
        let mut pieces = VecDeque::new();
        let mut held_bytes = 0;
        let mut left = declared(framing);
        loop {
            match slices.next().await {
                Ok(Some(bytes)) => {
                    held_bytes += bytes.len();
                    self.add_piece(&mut pieces, &bytes, framing, &mut left)?;
                }
                Ok(None) => return self.finish(pieces, framing, left).await,
                Err(Truncated) => return Err(SendError::Truncated),
            }
            if held_bytes >= LEAST_WRITE_BYTES {
                held_bytes = 0;
                self.write(&mut pieces).await?;
            }
        }
    }

    /// Recodes a body that is at hand and sends it.
    pub(super) async fn write_recoded(
        &mut self,
        body: Body,
        framing: BodyFraming,
    ) -> Result<(), SendError> {
        let segments = match body {
            Body::Stored {
                response,
                start,
                end,
            } => response
                .body
                .slice(start..end)
                .map(Segment::Memory)
                .collect(),
            Body::Segments(segments) => segments,
            _ => VecDeque::new(),
        };
        let mut pieces = VecDeque::new();
        let mut left = None;
        for segment in segments {
            match segment {
                Segment::Memory(bytes) => {
                    self.add_piece(&mut pieces, &bytes, framing, &mut left)?
                }
                Segment::File {
                    file,
                    mut offset,
                    length,
                } => {
                    let end = offset + length;
                    let mut buffer = vec![0; READ_BYTES];
                    while offset < end {
                        let wanted = usize::try_from(end - offset)
                            .unwrap_or(usize::MAX)
                            .min(READ_BYTES);
                        let read = file.read_at(&mut buffer[..wanted], offset)?;
                        if read == 0 {
                            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                        }
                        offset += read as u64;
                        self.add_piece(&mut pieces, &buffer[..read], framing, &mut left)?;
                        self.write(&mut pieces).await?;
                    }
                }
            }
        }
        self.finish(pieces, framing, None).await
    }

    /// Puts a piece of the body in line, recoded and framed. What goes beyond
    /// the declared length is cut off.
    fn add_piece(
        &mut self,
        pieces: &mut VecDeque<Bytes>,
        bytes: &(impl AsBytes + ?Sized),
        framing: BodyFraming,
        left: &mut Option<u64>,
    ) -> Result<(), SendError> {
        let mut bytes = match &mut self.recoder {
            Some(recoder) => recoder.push(bytes.as_slice())?,
            None => bytes.to_bytes(),
        };
        if let Some(window) = &mut self.window {
            bytes = window.cut(bytes);
        }
        if let Some(left) = left {
            let keep = usize::try_from(*left)
                .unwrap_or(usize::MAX)
                .min(bytes.len());
            bytes.truncate(keep);
            *left -= keep as u64;
        }
        frame(pieces, bytes, framing);
        Ok(())
    }

    /// The end of one body: what is left of it goes out, or waits for the end of
    /// the response, which is not far.
    async fn finish(
        &mut self,
        mut pieces: VecDeque<Bytes>,
        framing: BodyFraming,
        left: Option<u64>,
    ) -> Result<(), SendError> {
        if self.recoder.is_some() || framing == BodyFraming::Chunked {
            self.held.append(&mut pieces);
        } else {
            self.write(&mut pieces).await?;
        }
        if left.is_some_and(|left| left > 0) {
            return Err(SendError::Truncated);
        }
        Ok(())
    }

    /// What the upstream sent behind the body.
    pub fn take_trailers(&mut self) -> Fields {
        std::mem::take(&mut self.trailers)
    }

    /// Tells the client that the body is over.
    pub async fn end(&mut self, framing: BodyFraming, trailers: &Fields) -> Result<(), SendError> {
        let mut pieces = std::mem::take(&mut self.held);
        if let Some(recoder) = &mut self.recoder {
            let rest = recoder.finish()?;
            frame(&mut pieces, rest, framing);
        }
        if framing == BodyFraming::Chunked {
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
        self.write(&mut pieces).await
    }

    /// A response for this client alone: at PHP's pace where buffering is off,
    /// else PHP is read as fast as memory and disk allow. Reading comes first,
    /// so that a response that is there already leaves in one write.
    pub(super) async fn write_upstream(
        &mut self,
        mut upstream: Box<UpstreamBody>,
        framing: BodyFraming,
    ) -> Result<(), SendError> {
        let watches = !upstream.settings().ignore_client_abort;
        let mut spool = Spool::new(upstream.settings(), self.buffering.enabled);
        // Where another body came before, its end goes first.
        let mut pieces = std::mem::take(&mut self.held);
        let mut left = declared(framing);
        // With buffering the head waits for the first bytes of the body.
        let mut holds_head = self.buffering.enabled;
        loop {
            // Before anything goes to disk, the client takes what it will.
            if spool.is_memory_full() && self.pace.is_none() {
                self.refill(&mut pieces, &mut spool, framing, &mut left)?;
                while self.write_some(&mut pieces)? && !pieces.is_empty() {}
            }
            let has_output =
                !pieces.is_empty() || !spool.is_empty() || (self.head_left() > 0 && !holds_head);
            let must_write = !spool.has_room() || (self.pace.is_some() && has_output);
            let step = if must_write {
                Step::Write
            } else {
                tokio::select! {
                    biased;
                    read = upstream.next() => Step::Read(read),
                    ready = self.stream.writable(), if has_output => { ready?; Step::Write }
                    () = self.stream.closed(), if watches => {
                        return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
                    }
                }
            };
            match step {
                Step::Read(Ok(Some(bytes))) => {
                    holds_head = false;
                    let folder = &upstream.settings().temp_path;
                    if let Err(error) = spool.push(bytes, folder) {
                        upstream.report_full_disk(folder, &error);
                    }
                }
                Step::Read(read) => {
                    for (name, value) in upstream.trailers() {
                        self.trailers.append(name.clone(), value.clone());
                    }
                    // What was received is the client's, also when the rest is missing.
                    while let Some(bytes) = spool.pop() {
                        self.add_piece(&mut pieces, &bytes, framing, &mut left)?;
                        if pieces.len() > MAX_SLICES / 2 {
                            self.write(&mut pieces).await?;
                        }
                    }
                    if read.is_err() {
                        self.write(&mut pieces).await?;
                        return Err(SendError::Truncated);
                    }
                    return self.finish(pieces, framing, left).await;
                }
                Step::Write => {
                    self.refill(&mut pieces, &mut spool, framing, &mut left)?;
                    if must_write {
                        self.write(&mut pieces).await?;
                    } else {
                        self.write_some(&mut pieces)?;
                    }
                }
            }
        }
    }

    /// Takes as much from the spool as one write takes.
    fn refill(
        &mut self,
        pieces: &mut VecDeque<Bytes>,
        spool: &mut Spool,
        framing: BodyFraming,
        left: &mut Option<u64>,
    ) -> Result<(), SendError> {
        while pieces.len() < MAX_SLICES / 2 {
            match spool.pop() {
                Some(bytes) => self.add_piece(pieces, &bytes, framing, left)?,
                None => break,
            }
        }
        if !self.buffering.enabled
            && let Some(recoder) = &mut self.recoder
        {
            frame(pieces, recoder.flush()?, framing);
        }
        Ok(())
    }

    /// Nothing that is still to come belongs to the part that is wanted.
    fn has_all_wanted(&self) -> bool {
        self.window.as_ref().is_some_and(|window| window.left == 0)
    }
}

/// What comes next for a response that is passed through.
enum Step {
    Read(Result<Option<Bytes>, Truncated>),
    Write,
}

/// Bytes that were promised to the client.
fn declared(framing: BodyFraming) -> Option<u64> {
    match framing {
        BodyFraming::Length(length) => Some(length),
        _ => None,
    }
}

/// What a future gives at once, if it does. The future must lose nothing by
/// being dropped.
async fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        Poll::Ready(match future.as_mut().poll(cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

/// Bytes that may already be shared, or not.
trait AsBytes {
    fn as_slice(&self) -> &[u8];
    fn to_bytes(&self) -> Bytes;
}

impl AsBytes for Bytes {
    fn as_slice(&self) -> &[u8] {
        self
    }

    fn to_bytes(&self) -> Bytes {
        self.clone()
    }
}

impl AsBytes for [u8] {
    fn as_slice(&self) -> &[u8] {
        self
    }

    fn to_bytes(&self) -> Bytes {
        Bytes::copy_from_slice(self)
    }
}

/// Puts bytes behind the others, as a chunk where the body goes in chunks.
pub(super) fn frame(pieces: &mut VecDeque<Bytes>, bytes: Bytes, framing: BodyFraming) {
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
