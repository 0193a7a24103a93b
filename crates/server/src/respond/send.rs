//! Writing head and body to the client: together where the body is at hand,
//! as it comes where it is not, never faster than `limit_rate`, and never
//! waiting longer than `send_timeout` for a client that takes nothing. What each kind
//! of body needs beyond that is in `bodies`.

mod bodies;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http_cache::MemoryFile;
use http1::Fields;
use tokio::time::{Instant, timeout_at};

use super::BodyFraming;
use crate::exchange::compiled_location::CompiledLocation;
use crate::exchange::reply::{Body, Compressed};
use crate::exchange::request::Request;
use crate::exchange::variable;
use crate::respond::recode::Recoder;
use crate::route::rewrite::parse_rate;
use crate::transport::stream::{ClientStream, MAX_SLICES};

use bodies::frame;

/// Read from a file at once where its bytes are recoded, or `sendfile` is off.
const READ_BYTES: usize = 64 * 1024;
/// A body up to this long is sent from the head's buffer.
const JOINED_BYTES: usize = 2048;
/// Slices are written once they come to this much (nginx's `postpone_output`):
/// where they are tiny, a client sees all of them or an error.
const LEAST_WRITE_BYTES: usize = 1460;
/// After so many bytes it is the turn of others, however fast this client is; and what one
/// `sendfile` takes (nginx's `sendfile_max_chunk`, 2 MB there). 10 MB to each of four clients cost
/// 5.63 ms of CPU without turns, 5.40 with turns of 2 MB and 5.06 with these: the one keeps
/// reading while the others are served.
const TURN_BYTES: usize = 512 * 1024;

/// Why a response could not be sent whole. The connection must close.
#[derive(Debug)]
pub enum SendError {
    /// The client left or the connection failed.
    Client(io::Error),
    /// The client took nothing for `send_timeout`.
    TimedOut,
    /// The upstream's response broke off after the head was sent.
    Truncated,
}

impl From<io::Error> for SendError {
    fn from(error: io::Error) -> Self {
        SendError::Client(error)
    }
}

/// One response on its way out.
pub struct Sender<'a> {
    stream: &'a ClientStream,
    timeout: Duration,
    pace: Option<Pace>,
    head: Vec<u8>,
    /// Of the head, already written.
    head_written: usize,
    sent: u64,
    /// Of `sent`, when this response's turn began.
    turn_began: u64,
    buffering: Buffering,
    recoder: Option<Recoder>,
    sendfile: bool,
    /// A file follows what is being written.
    precedes_file: bool,
    /// The last pieces of a body, to leave together with its end.
    held: VecDeque<Bytes>,
    /// Bytes of a small body that were put behind the head.
    joined: usize,
    window: Option<Window>,
    /// Fields behind the body, as the upstream sent them.
    trailers: Fields,
}

/// The part that is wanted of a body that is still arriving.
struct Window {
    skip: u64,
    left: u64,
}

impl Window {
    /// What of the next bytes is wanted.
    fn cut(&mut self, bytes: Bytes) -> Bytes {
        let length = bytes.len() as u64;
        let start = self.skip.min(length);
        let end = length.min(start + self.left);
        self.skip -= start;
        self.left -= end - start;
        let at = |position: u64| usize::try_from(position).unwrap_or(usize::MAX);
        bytes.slice(at(start)..at(end))
    }
}

/// How much of an upstream's response is taken off its hands before the
/// client has it.
struct Buffering {
    enabled: bool,
}

/// `limit_rate`: bytes per second past the first `free` ones.
struct Pace {
    bytes_per_second: u64,
    free: u64,
    started: Instant,
}

/// What one system call took of a response.
pub struct Begun {
    /// Bytes of head and body.
    written: usize,
    /// Bytes of head, and of body.
    head: usize,
    body: usize,
    /// Bytes of body that were put behind the head.
    joined: usize,
}

impl Begun {
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

/// The hit: head and all pieces of the body in one system call, if the socket
/// takes them; two where the body is in a `file` as well. What it did not take is left to
/// [`Sender::send_rest`]. Where the next response is about to be made (`is_followed`), a
/// small one waits for it.
pub fn write_at_once(
    stream: &ClientStream,
    head: &mut Vec<u8>,
    mut chunks: &[Bytes],
    file: Option<&MemoryFile>,
    is_followed: bool,
) -> Result<Begun, SendError> {
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
    Ok(Begun {
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
) -> Result<Begun, SendError> {
    let body = length_of(chunks);
    let mut written = taken(stream.try_write_head_of_file(head))?;
    if written == head.len() {
        written += taken(stream.try_sendfile(file, 0, body))?;
    }
    Ok(Begun {
        written,
        head: head.len(),
        body,
        joined: 0,
    })
}

/// What the socket took, which may be nothing.
fn taken(written: io::Result<usize>) -> io::Result<usize> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        written => written,
    }
}

/// Leaves a response to go with the next; `None` where it has to go now. Apart
/// from the way of those who wait for their answer.
#[cold]
fn gather(stream: &ClientStream, head: &[u8], chunks: &[Bytes]) -> Option<Begun> {
    let body = length_of(chunks);
    stream.gather(head, chunks).then_some(Begun {
        written: head.len() + body,
        head: head.len(),
        body,
        joined: 0,
    })
}

/// Writes what was gathered, where no response follows that would take it along.
pub async fn flush(request: &Request, stream: &ClientStream) -> Result<(), SendError> {
    let deadline = request.settings().connection.send_timeout;
    let flushed = poll_fn(|cx| stream.poll_flush(cx));
    match timeout_at(Instant::now() + deadline, flushed).await {
        Ok(flushed) => Ok(flushed?),
        Err(_) => Err(SendError::TimedOut),
    }
}

/// `limit_rate` or one of its kin may slow this response down.
pub fn may_be_paced(request: &Request, place: &CompiledLocation) -> bool {
    request.limit_rate.is_some() || place.is_paced
}

/// The pace that X-Accel-Limit-Rate, `set $limit_rate` or `limit_rate` ask for.
fn pace(request: &mut Request) -> Option<Pace> {
    let rate = match request.limit_rate {
        None if !request.compiled_location().is_paced => return None,
        None => {
            let settings = request.settings_held();
            parse_rate(&variable::evaluate(request, &settings.limit_rate))
        }
        rate => rate,
    };
    let bytes_per_second = rate.filter(|&rate| rate > 0)?;
    let settings = request.settings_held();
    Some(Pace {
        bytes_per_second,
        free: parse_rate(&variable::evaluate(request, &settings.limit_rate_after)).unwrap_or(0),
        started: Instant::now(),
    })
}

impl<'a> Sender<'a> {
    pub fn new(
        request: &mut Request,
        stream: &'a ClientStream,
        recoder: Option<Recoder>,
        head: Vec<u8>,
    ) -> Sender<'a> {
        let pace = pace(request);
        let settings = request.settings();
        let by_directive = match &settings.content {
            site::Content::Pass(pass) => pass.exchange.buffering,
            _ => true,
        };
        Sender {
            stream,
            timeout: settings.connection.send_timeout,
            pace,
            head,
            head_written: 0,
            sent: 0,
            turn_began: 0,
            buffering: Buffering {
                enabled: request.accel_buffering.unwrap_or(by_directive),
            },
            recoder,
            sendfile: settings.files.sendfile,
            precedes_file: false,
            held: VecDeque::new(),
            joined: 0,
            window: None,
            trailers: Fields::new(),
        }
    }

    /// Bytes sent, bytes of head sent, and the head's buffer.
    pub fn into_counts(self) -> (u64, u64, Vec<u8>) {
        let head_len = self.head.len() - self.joined;
        (self.sent, self.head_written.min(head_len) as u64, self.head)
    }

    /// What compression did.
    pub fn compression(&self) -> Option<Compressed> {
        self.recoder.as_ref().and_then(Recoder::compressed)
    }

    /// Sends a body, and the head if it is still here. The end of the body is
    /// told by [`Sender::end`]; where that adds bytes, the last ones wait for it.
    pub async fn send(&mut self, body: Body, framing: BodyFraming) -> Result<(), SendError> {
        if self.recoder.is_some() && body.is_at_hand() {
            return self.write_recoded(body, framing).await;
        }
        let body = match body {
            Body::Window { body, start, end } => {
                self.window = Some(Window {
                    skip: start,
                    left: end - start,
                });
                *body
            }
            body => body,
        };
        match body {
            Body::Empty if framing == BodyFraming::Chunked => Ok(()),
            Body::Empty => self.write(&mut VecDeque::new()).await,
            Body::Stored {
                response,
                start,
                end,
            } => {
                let mut pieces = VecDeque::new();
                for bytes in response.body.slice(start..end) {
                    frame(&mut pieces, bytes, framing);
                }
                self.write(&mut pieces).await
            }
            Body::Encoded(body) => {
                let mut pieces = VecDeque::new();
                for bytes in body.chunks() {
                    frame(&mut pieces, bytes.clone(), framing);
                }
                self.write(&mut pieces).await
            }
            Body::Segments(segments) if framing == BodyFraming::Chunked => {
                self.write_recoded(Body::Segments(segments), framing).await
            }
            Body::Segments(segments) => self.write_segments(segments).await,
            Body::Filling(reader) => Box::pin(self.write_filling(*reader, framing)).await,
            Body::Sliced(slices) => Box::pin(self.write_slices(*slices, framing)).await,
            Body::Upstream(upstream) => Box::pin(self.write_upstream(upstream, framing)).await,
            // A tunnel begins once the head is out; windows do not nest.
            Body::Tunnel(_) | Body::Window { .. } => Ok(()),
        }
    }

    /// The rest of a response that `write_at_once` began.
    pub async fn send_rest(&mut self, begun: Begun, chunks: &[Bytes]) -> Result<(), SendError> {
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

    fn head_left(&self) -> usize {
        self.head.len() - self.head_written
    }

    /// Writes all of `pieces`, after what is left of the head.
    async fn write(&mut self, pieces: &mut VecDeque<Bytes>) -> Result<(), SendError> {
        if !self.held.is_empty() {
            // Another body follows the one whose end was held back.
            let mut all = std::mem::take(&mut self.held);
            all.append(pieces);
            *pieces = all;
        }
        while self.head_written < self.head.len() || !pieces.is_empty() {
            if self.pace.is_some() {
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

    /// Writes what the socket takes now; false when it takes nothing.
    fn write_some(&mut self, pieces: &mut VecDeque<Bytes>) -> Result<bool, SendError> {
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

    /// How many of `wanted` bytes may be sent now; waits until it is some.
    async fn allowance(&mut self, wanted: usize) -> usize {
        let Some(pace) = &self.pace else {
            return wanted;
        };
        let body_sent = self.sent - self.head_written as u64;
        loop {
            let elapsed = pace.started.elapsed().as_millis();
            // As nginx counts: the second that has begun may be used.
            let earned =
                u128::from(pace.bytes_per_second) * (elapsed + 1000) / 1000 + u128::from(pace.free);
            let allowed = earned.saturating_sub(u128::from(body_sent));
            if allowed > 0 {
                return usize::try_from(allowed)
                    .unwrap_or(usize::MAX)
                    .min(wanted.max(1));
            }
            let missing = u128::from(body_sent).saturating_sub(earned) + 1;
            let wait = missing * 1000 / u128::from(pace.bytes_per_second) + 1;
            tokio::time::sleep(Duration::from_millis(u64::try_from(wait).unwrap_or(1000))).await;
        }
    }

    async fn wait(&self) -> Result<(), SendError> {
        match timeout_at(Instant::now() + self.timeout, self.stream.writable()).await {
            Ok(ready) => Ok(ready?),
            Err(_) => Err(SendError::TimedOut),
        }
    }
}
