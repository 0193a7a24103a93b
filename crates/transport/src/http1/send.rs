//! Writing head and body to the client: together where the body is at hand,
//! as it comes where it is not (`pull`), never faster than `limit_rate`, and never
//! waiting longer than `send_timeout` for a client that takes nothing.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http_cache::MemoryFile;
use tokio::time::{Instant, timeout_at};

use super::framing::BodyFraming;
use crate::open_file::OpenFile;
use crate::outbound::{Body, Pace, Segment, SendError};
use crate::service::Exchange;
use crate::stream::{ClientStream, MAX_SLICES};

/// Read from a file at once where its bytes are recoded, or `sendfile` is off.
const READ_BYTES: usize = 64 * 1024;
/// A body up to this long is sent from the head's buffer.
const JOINED_BYTES: usize = 2048;
/// After these bytes it is the turn of others, however fast this client is; also the length of one
/// `sendfile` (nginx's `sendfile_max_chunk`, 2 MB there). 10 MB to each of four clients cost
/// 5.63 ms of CPU without turns, 5.40 with turns of 2 MB and 5.06 with these: the one keeps
/// reading while the others are served.
const TURN_BYTES: usize = 512 * 1024;
/// A part of a zone's file up to this size was found in the page cache a moment ago, by bytes that
/// stand close enough. A longer part, or one that goes on after a wait, is looked for again.
const FOUND_WARM_BYTES: u64 = 256 * 1024;

/// One response on its way out.
pub struct Sender<'a> {
    pub(super) stream: &'a ClientStream,
    timeout: Duration,
    pace: Option<(Pace, Instant)>,
    head: Vec<u8>,
    /// The bytes of the head already written.
    head_written: usize,
    sent: u64,
    /// The value of `sent` when this response's turn began.
    turn_began: u64,
    sendfile: bool,
    /// A file follows the bytes being written.
    precedes_file: bool,
    /// Bytes of a small body that were put behind the head.
    joined: usize,
}

/// The bytes of a response that one system call took.
pub struct WrittenBytes {
    /// Bytes of head and body.
    written: usize,
    /// Bytes of head, and of body.
    head: usize,
    body: usize,
    /// Bytes of body that were put behind the head.
    joined: usize,
}

impl WrittenBytes {
    /// Has all gone out?
    pub fn is_all(&self) -> bool {
        self.written == self.head + self.body
    }

    /// Bytes sent, and bytes of head among them.
    pub fn counts(&self) -> (u64, u64) {
        (self.written as u64, self.written.min(self.head) as u64)
    }
}

fn length_of(chunks: &[Bytes]) -> usize {
    chunks.iter().map(Bytes::len).sum()
}

/// Sends a hit: head and all pieces of the body in one system call, if the socket takes them; two if
/// the body is in a `file` as well. Bytes that it did not take are left to
/// [`Sender::send_unwritten`]. If the next response is about to be made (`is_followed`), a small one
/// waits for it.
pub fn write_at_once(
    stream: &ClientStream,
    head: &mut Vec<u8>,
    mut chunks: &[Bytes],
    file: Option<&MemoryFile>,
    is_followed: bool,
) -> Result<WrittenBytes, SendError> {
    if is_followed && let Some(begun) = gather(stream, head, chunks) {
        return Ok(begun);
    }
    if let Some(file) = file {
        return write_with_file(stream, head, chunks, file);
    }
    let head_len = head.len();
    let mut joined = 0;
    if let [chunk] = chunks
        && chunk.len() <= JOINED_BYTES
    {
        // One piece is cheaper to hand over than two; so few bytes cost nothing to copy.
        joined = chunk.len();
        head.extend_from_slice(chunk);
        chunks = &[];
    }
    let written = match chunks {
        [] => stream.try_write(head),
        chunks => write_pieces(stream, head, chunks),
    };
    Ok(WrittenBytes {
        written: taken(written)?,
        head: head_len,
        body: joined + length_of(chunks),
        joined,
    })
}

fn write_pieces(stream: &ClientStream, head: &[u8], chunks: &[Bytes]) -> io::Result<usize> {
    let mut slices = [IoSlice::new(&[]); MAX_SLICES];
    slices[0] = IoSlice::new(head);
    let mut used = 1;
    for (slice, chunk) in slices[1..].iter_mut().zip(chunks) {
        *slice = IoSlice::new(chunk);
        used += 1;
    }
    stream.try_write_vectored(&slices[..used])
}

/// The head, then the body from the file that holds the same bytes as `chunks`: the
/// kernel copies none of them.
fn write_with_file(
    stream: &ClientStream,
    head: &[u8],
    chunks: &[Bytes],
    file: &MemoryFile,
) -> Result<WrittenBytes, SendError> {
    let body = length_of(chunks);
    let mut written = taken(stream.try_write_head_of_file(head))?;
    if written == head.len() {
        written += taken(stream.try_sendfile(file, 0, body))?;
    }
    Ok(WrittenBytes {
        written,
        head: head.len(),
        body,
        joined: 0,
    })
}

/// Returns the bytes that the socket took, which may be none.
fn taken(written: io::Result<usize>) -> io::Result<usize> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        written => written,
    }
}

/// Leaves a response to go with the next; `None` if it has to go now. Apart
/// from the way of those who wait for their answer.
#[cold]
fn gather(stream: &ClientStream, head: &[u8], chunks: &[Bytes]) -> Option<WrittenBytes> {
    let body = length_of(chunks);
    stream.gather(head, chunks).then_some(WrittenBytes {
        written: head.len() + body,
        head: head.len(),
        body,
        joined: 0,
    })
}

impl<'a> Sender<'a> {
    /// Creates a sender by the settings of `exchange` and at its pace, from `head` on.
    pub fn new<X: Exchange>(
        stream: &'a ClientStream,
        exchange: &mut X,
        head: Vec<u8>,
    ) -> Sender<'a> {
        Sender {
            stream,
            timeout: exchange.connection_settings().send_timeout,
            pace: exchange.pace().map(|pace| (pace, Instant::now())),
            head,
            head_written: 0,
            sent: 0,
            turn_began: 0,
            sendfile: exchange.may_sendfile() && !stream.is_encrypted(),
            precedes_file: false,
            joined: 0,
        }
    }

    /// Bytes sent, bytes of head sent, and the head's buffer.
    pub fn into_counts(self) -> (u64, u64, Vec<u8>) {
        let head_len = self.head.len() - self.joined;
        (self.sent, self.head_written.min(head_len) as u64, self.head)
    }

    /// Sends the head, the body and the mark of its end.
    pub async fn send<X: Exchange>(
        &mut self,
        exchange: &mut X,
        body: Body<X>,
        framing: BodyFraming,
    ) -> Result<(), SendError> {
        match body {
            Body::Arriving(body) => Box::pin(self.send_arriving(exchange, body, framing)).await,
            Body::Segments(segments) if framing != BodyFraming::Chunked => {
                self.write_segments(segments).await
            }
            // Chunked bodies are framed by the code for pulled bodies.
            body if framing == BodyFraming::Chunked => {
                let body = body.into_arriving();
                Box::pin(self.send_arriving(exchange, body, framing)).await
            }
            body => self.write_segments(body.into_segments()).await,
        }
    }

    /// The rest of a response that `write_at_once` began.
    pub async fn send_unwritten(
        &mut self,
        begun: WrittenBytes,
        chunks: &[Bytes],
    ) -> Result<(), SendError> {
        self.joined = begun.joined;
        self.sent = begun.written as u64;
        self.head_written = begun.written.min(self.head.len());
        let mut of_body = begun.written - self.head_written;
        let mut pieces = VecDeque::new();
        for chunk in chunks.iter().filter(|_| begun.joined == 0) {
            if of_body < chunk.len() {
                pieces.push_back(chunk.slice(of_body..));
            }
            of_body = of_body.saturating_sub(chunk.len());
        }
        self.write(&mut pieces).await
    }

    pub(super) fn is_paced(&self) -> bool {
        self.pace.is_some()
    }

    pub(super) fn head_left(&self) -> usize {
        self.head.len() - self.head_written
    }

    /// Writes all of `pieces`, after the rest of the head.
    pub(super) async fn write(&mut self, pieces: &mut VecDeque<Bytes>) -> Result<(), SendError> {
        while self.head_written < self.head.len() || !pieces.is_empty() {
            if self.is_paced() {
                self.write_paced(pieces).await?;
                continue;
            }
            if !self.write_some(pieces)? {
                self.wait().await?;
            }
            self.take_turns().await;
        }
        Ok(())
    }

    /// Lets others go first after [`TURN_BYTES`]: a client that takes all that it is sent would
    /// keep the thread to itself.
    async fn take_turns(&mut self) {
        if self.sent - self.turn_began >= TURN_BYTES as u64 {
            self.turn_began = self.sent;
            tokio::task::yield_now().await;
        }
    }

    /// Writes as much as the socket takes now; false when it takes nothing.
    pub(super) fn write_some(&mut self, pieces: &mut VecDeque<Bytes>) -> Result<bool, SendError> {
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let mut used = 0;
        let head = self.head.get(self.head_written..).unwrap_or_default();
        if !head.is_empty() {
            slices[0] = IoSlice::new(head);
            used = 1;
        }
        for (slice, piece) in slices[used..].iter_mut().zip(pieces.iter()) {
            *slice = IoSlice::new(piece);
            used += 1;
        }
        if used == 0 {
            return Ok(true);
        }
        let written = match self.precedes_file {
            true => self.stream.try_write_ahead_of_file(&slices[..used]),
            false => self.stream.try_write_vectored(&slices[..used]),
        };
        match written {
            Ok(0) => Err(io::Error::from(io::ErrorKind::WriteZero).into()),
            Ok(written) => {
                self.advance(written, pieces);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn advance(&mut self, written: usize, pieces: &mut VecDeque<Bytes>) {
        self.sent += written as u64;
        let of_head = written.min(self.head.len() - self.head_written);
        self.head_written += of_head;
        let mut rest = written - of_head;
        while let Some(piece) = pieces.front_mut() {
            if rest < piece.len() {
                piece.advance(rest);
                return;
            }
            rest -= piece.len();
            if let Some(written) = pieces.pop_front() {
                http_client::recycle(written);
            }
        }
    }

    async fn write_paced(&mut self, pieces: &mut VecDeque<Bytes>) -> Result<(), SendError> {
        let head_left = self.head.len() - self.head_written;
        let next = pieces.front().map_or(0, Bytes::len);
        let allowed = if head_left > 0 {
            head_left
        } else {
            self.allowance(next).await
        };
        let mut now: VecDeque<Bytes> = VecDeque::new();
        if head_left == 0
            && let Some(piece) = pieces.front_mut()
        {
            now.push_back(piece.split_to(allowed.min(piece.len())));
            if piece.is_empty() {
                pieces.pop_front();
            }
        }
        loop {
            if !self.write_some(&mut now)? {
                self.wait().await?;
            }
            if now.is_empty() && (head_left == 0 || self.head_written == self.head.len()) {
                return Ok(());
            }
        }
    }

    /// Returns how many of `wanted` bytes may be sent now; waits until it is some.
    async fn allowance(&mut self, wanted: usize) -> usize {
        let Some((pace, started)) = &self.pace else {
            return wanted;
        };
        let body_sent = self.sent - self.head_written as u64;
        let allowed = pace.allowance(*started, body_sent).await;
        allowed.min(wanted.max(1))
    }

    async fn wait(&self) -> Result<(), SendError> {
        match timeout_at(Instant::now() + self.timeout, self.stream.writable()).await {
            Ok(ready) => Ok(ready?),
            Err(_) => Err(SendError::TimedOut),
        }
    }

    async fn write_segments(&mut self, segments: VecDeque<Segment>) -> Result<(), SendError> {
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
                    self.precedes_file = !self.is_paced();
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

    /// Waits no longer for a disk than for a client.
    async fn warm(&self, file: &OpenFile, offset: u64, length: usize) -> Result<(), SendError> {
        let warm = timeout_at(Instant::now() + self.timeout, file.warm(offset, length));
        match warm.await {
            Ok(read) => Ok(read?),
            Err(_) => Err(SendError::TimedOut),
        }
    }

    async fn write_file(
        &mut self,
        file: &OpenFile,
        mut offset: u64,
        length: u64,
    ) -> Result<(), SendError> {
        let end = offset + length;
        let mut is_warm = length <= FOUND_WARM_BYTES;
        while offset < end {
            let left = usize::try_from(end - offset)
                .unwrap_or(usize::MAX)
                .min(TURN_BYTES);
            let piece = self.allowance(left).await;
            if !std::mem::take(&mut is_warm) {
                self.warm(file, offset, piece).await?;
            }
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
}
