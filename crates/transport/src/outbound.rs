//! The response to a request in the form that a transport takes, for any protocol. Its head is
//! walked field by field, its body is there or is pulled.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_cache::{KnownField, MemoryFile, StoredFields, StoredResponse};
use http_semantics::Fields;
use tokio::time::Instant;

use crate::open_file::OpenFile;
use crate::pieces::Pieces;
use crate::spool::{Spool, SpoolLimits};
use crate::tunnel::UpgradedConnection;

/// Read ahead of the client, where a body does not say how much.
const AHEAD_BYTES: u64 = 64 * 1024;

/// Why a response could not be sent whole. The client must not take it for complete.
#[derive(Debug)]
pub enum SendError {
    /// The client left or the connection failed.
    Client(io::Error),
    /// The client took nothing, or hardly anything, for `send_timeout`.
    TimedOut,
    /// The client took nothing while too many others waited for theirs.
    GaveWay,
    /// The body ended early, after the head was sent. The stage that noticed has logged why.
    Truncated,
}

impl From<io::Error> for SendError {
    fn from(error: io::Error) -> Self {
        SendError::Client(error)
    }
}

/// How the head of a response begins.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    pub status: u16,
    /// Reason phrase of the upstream; otherwise the usual one is sent.
    pub reason: Option<&'a [u8]>,
    pub server: ServerField<'a>,
    /// The value of `Date` in Unix milliseconds; `None` if it is among the fields, if anywhere.
    pub date: Option<u64>,
}

/// The content of the `Server` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerField<'a> {
    Version,
    Name,
    /// Text of the operator's.
    Text(&'a [u8]),
    /// It is among the other fields, if anywhere.
    None,
}

/// Takes the fields of a response, one after the other, in the order in which they are sent.
///
/// The fields that the server makes itself are given as a line of HTTP/1 would have them: most
/// responses are lines of HTTP/1.
pub trait FieldSink {
    fn field(&mut self, name: &[u8], value: &[u8]);

    /// A field that is always the same, as a whole line with its end.
    fn line(&mut self, line: &'static [u8]) {
        if let Some((name, value)) = split_line(line) {
            self.field(name, value);
        }
    }

    /// A field whose value ends with a number; `start` is the text before it in the line.
    fn number<const START: usize>(&mut self, start: &'static [u8; START], value: u64) {
        if let Some((name, before)) = split_line(start) {
            self.field(name, &[before, value.to_string().as_bytes()].concat());
        }
    }

    /// The fields of a stored response, which are one block of lines.
    fn stored(&mut self, fields: &StoredFields, form: StoredForm) {
        for (name, value) in fields.iter() {
            match form {
                StoredForm::WithoutBody if describes_body(name) => {}
                StoredForm::Recoded if http_semantics::same_name(name, b"accept-ranges") => {}
                StoredForm::Recoded if is_strong_tag(name, value) => {
                    self.field(name, &[b"W/", value].concat());
                }
                _ => self.field(name, value),
            }
        }
    }
}

/// How the fields of a stored response are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredForm {
    AsIs,
    /// The client has the body (304): fields that describe it are left out.
    WithoutBody,
    /// The body is sent in another content coding.
    Recoded,
}

/// Fields that a 304 does not repeat, though they are stored.
pub const DESCRIBE_BODY: [KnownField; 2] = [KnownField::ContentType, KnownField::ContentEncoding];

/// Does a field called so describe the body?
pub fn describes_body(name: &[u8]) -> bool {
    DESCRIBE_BODY
        .iter()
        .any(|field| http_semantics::same_name(name, field.name().as_bytes()))
}

/// Is this an entity tag that holds for these very bytes alone?
pub fn is_strong_tag(name: &[u8], value: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"etag") && !value.starts_with(b"W/")
}

fn split_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    Some((line.get(..colon)?, line.get(colon + 1..)?.trim_ascii()))
}

/// Facts about the connection and the body's length that a transport has sent, in fields of its
/// own.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SentHead {
    pub length: Option<u64>,
    pub is_chunked: bool,
    pub connection: ConnectionOption,
    /// `Keep-Alive: timeout=N`
    pub keep_alive_seconds: Option<u64>,
}

/// The option that `Connection` carries (RFC 9110 §7.6.1).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionOption {
    /// The protocol has no such field.
    #[default]
    Nothing,
    KeepAlive,
    Close,
    Upgrade,
}

impl SentHead {
    /// The fields that say so.
    #[inline]
    pub fn walk(&self, to: &mut impl FieldSink) {
        if let Some(length) = self.length {
            to.number(b"Content-Length: ", length);
        } else if self.is_chunked {
            to.line(b"Transfer-Encoding: chunked\r\n");
        }
        match self.connection {
            ConnectionOption::KeepAlive => to.line(b"Connection: keep-alive\r\n"),
            ConnectionOption::Close => to.line(b"Connection: close\r\n"),
            ConnectionOption::Upgrade => to.line(b"Connection: upgrade\r\n"),
            ConnectionOption::Nothing => {}
        }
        if let Some(seconds) = self.keep_alive_seconds {
            to.number(b"Keep-Alive: timeout=", seconds);
        }
    }
}

/// No faster than a number of bytes per second past the first `free` ones.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub bytes_per_second: u64,
    pub free: u64,
}

impl Pace {
    /// Returns how many bytes may be sent now, of a body that began at `started` and of which
    /// `sent` bytes are out; waits until it is some.
    pub async fn allowance(&self, started: Instant, sent: u64) -> usize {
        loop {
            let elapsed = started.elapsed();
            let allowed = self.earned(elapsed).saturating_sub(sent);
            if allowed > 0 {
                return usize::try_from(allowed).unwrap_or(usize::MAX);
            }
            tokio::time::sleep(self.time_for(sent + 1, elapsed)).await;
        }
    }

    /// Returns how many bytes may have been sent after this time. Like in nginx, the second that
    /// has begun may be used.
    fn earned(&self, elapsed: Duration) -> u64 {
        let earned = u128::from(self.bytes_per_second) * (elapsed.as_millis() + 1000) / 1000;
        u64::try_from(earned + u128::from(self.free)).unwrap_or(u64::MAX)
    }

    /// Returns how long to wait until `bytes` may have been sent, if not yet.
    fn time_for(&self, bytes: u64, elapsed: Duration) -> Duration {
        let missing = u128::from(bytes.saturating_sub(self.earned(elapsed)));
        let wait = missing * 1000 / u128::from(self.bytes_per_second.max(1)) + 1;
        Duration::from_millis(u64::try_from(wait).unwrap_or(1000))
    }
}

/// The body of a response. `X` is the exchange that it belongs to.
pub enum Body<X> {
    Empty,
    /// A stored response's body, whole or a part of it.
    Stored {
        response: Arc<StoredResponse>,
        start: u64,
        end: u64,
    },
    /// A stored response's body in a content coding, whole.
    Encoded(http_cache::Body),
    /// Pieces that are all there, in order.
    Segments(VecDeque<Segment>),
    /// It is pulled piece by piece.
    Arriving(Box<dyn ArrivingBody<X>>),
    /// The bytes after a 101, both ways, until one side ends.
    Tunnel(Box<dyn UpgradedConnection>),
}

/// A piece of a body.
pub enum Segment {
    Memory(Bytes),
    File {
        file: Arc<OpenFile>,
        offset: u64,
        length: u64,
    },
}

/// The next bytes of a body, which are some; `None` at its end.
pub type NextBytes<'a> =
    Pin<Box<dyn Future<Output = Result<Option<Bytes>, SendError>> + Send + 'a>>;

/// A body that is pulled: one that is still at an upstream, or put together on its way.
///
/// The transport that pulls also watches its client: when that leaves, it gives up the pull, and with it
/// the body. So a body need not ask whether it still has a reader.
pub trait ArrivingBody<X>: Send + Sync {
    /// Asks for more. A caller that gives up before the answer is there gives up the body.
    fn next<'a>(&'a mut self, exchange: &'a X) -> NextBytes<'a>;

    fn flow(&self) -> Flow {
        Flow::default()
    }

    /// Keeps bytes that the client has not taken yet.
    fn keep(&self, bytes: Bytes, ahead: &mut Spool) {
        // Never asked to where memory is full, so that nothing goes to disk.
        let _ = ahead.push(bytes, Path::new(""));
    }

    /// Fields that followed the body; known at its end.
    fn take_trailers(&mut self) -> Fields {
        Fields::new()
    }

    /// All of a body of `length` bytes, where nothing has to be waited for.
    fn at_hand(&self, _length: u64) -> Option<&[Bytes]> {
        None
    }

    /// Gives from now on only the bytes from `start` to `end`; false if it cannot do better
    /// than give them all.
    fn cut(&mut self, _start: u64, _end: u64) -> bool {
        false
    }

    /// It has no reader.
    fn discard(self: Box<Self>) {}

    /// Moves the body to a task of its own, if an upstream's worker is taken until it has been
    /// read. Other bodies are returned unchanged.
    fn apart(self: Box<Self>) -> MaybeApart<X>;
}

/// A change to a body as it is pulled.
pub trait BodyChange<X>: Send + Sync + 'static {
    /// The next bytes of the changed body.
    fn next<'a>(&'a mut self, body: &'a mut dyn ArrivingBody<X>, exchange: &'a X) -> NextBytes<'a>;
}

/// A body and its change. It flows, waits and ends like the body within.
pub struct ChangedBody<X, C> {
    body: Box<dyn ArrivingBody<X>>,
    change: C,
}

impl<X: Sync + 'static, C: BodyChange<X>> ChangedBody<X, C> {
    pub fn around(body: Box<dyn ArrivingBody<X>>, change: C) -> Box<dyn ArrivingBody<X>> {
        Box::new(ChangedBody { body, change })
    }
}

impl<X: Sync + 'static, C: BodyChange<X>> ArrivingBody<X> for ChangedBody<X, C> {
    fn apart(self: Box<Self>) -> MaybeApart<X> {
        Err(self)
    }

    fn next<'a>(&'a mut self, exchange: &'a X) -> NextBytes<'a> {
        self.change.next(&mut *self.body, exchange)
    }

    fn flow(&self) -> Flow {
        self.body.flow()
    }

    fn keep(&self, bytes: Bytes, ahead: &mut Spool) {
        self.body.keep(bytes, ahead);
    }

    fn take_trailers(&mut self) -> Fields {
        self.body.take_trailers()
    }
}

/// A body that can be read without its exchange, or one that cannot.
pub type MaybeApart<X> = Result<Box<dyn ArrivingBody<()>>, Box<dyn ArrivingBody<X>>>;

/// How an arriving body is passed on.
#[derive(Debug, Clone, Copy)]
pub struct Flow {
    /// The limits of reading ahead of the client.
    pub ahead: SpoolLimits,
    pub leaves: Leaves,
    /// It is read for this client alone: when the client goes, reading ends.
    pub ends_with_client: bool,
}

/// When bytes that have arrived go out, if more are to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// At once, the head even before the first bytes.
    AtOnce,
    /// The head together with the first bytes.
    WithFirstBytes,
    /// Once it has come to this many bytes.
    InParts(usize),
}

impl Default for Flow {
    fn default() -> Flow {
        Flow {
            ahead: SpoolLimits::memory(AHEAD_BYTES),
            leaves: Leaves::WithFirstBytes,
            ends_with_client: false,
        }
    }
}

impl<X: Sync + 'static> Body<X> {
    pub fn bytes(bytes: impl Into<Bytes>) -> Body<X> {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return Body::Empty;
        }
        Body::Segments(VecDeque::from([Segment::Memory(bytes)]))
    }

    pub fn file(file: Arc<OpenFile>, length: u64) -> Body<X> {
        if length == 0 {
            return Body::Empty;
        }
        Body::Segments(VecDeque::from([Segment::File {
            file,
            offset: 0,
            length,
        }]))
    }

    pub fn arriving(body: impl ArrivingBody<X> + 'static) -> Body<X> {
        Body::Arriving(Box::new(body))
    }

    /// Reads a body that is a small file, or a small part of one. A file that cannot be read
    /// stays a file: sending it reports the error.
    #[inline]
    pub fn read_small_file(&mut self) {
        if let Body::Segments(segments) = self {
            read_small_file(segments);
        }
    }

    /// All bytes are there: parts of it can be taken.
    pub fn is_at_hand(&self) -> bool {
        matches!(
            self,
            Body::Empty | Body::Stored { .. } | Body::Encoded(_) | Body::Segments(_)
        )
    }

    /// Returns how long a body is that is at hand.
    pub fn length_at_hand(&self) -> Option<u64> {
        match self {
            Body::Empty => Some(0),
            Body::Stored { start, end, .. } => Some(end - start),
            Body::Encoded(body) => Some(body.len()),
            Body::Segments(segments) => Some(segments.iter().map(Segment::length).sum()),
            Body::Arriving(_) | Body::Tunnel(_) => None,
        }
    }

    /// The pieces of a part of a body that is at hand.
    pub fn part(&self, start: u64, end: u64) -> VecDeque<Segment> {
        let mut pieces = VecDeque::new();
        match self {
            Body::Stored {
                response,
                start: from,
                ..
            } => {
                pieces.extend(
                    response
                        .body
                        .slice(from + start..from + end)
                        .map(Segment::Memory),
                );
            }
            Body::Encoded(body) => pieces.extend(body.slice(start..end).map(Segment::Memory)),
            Body::Segments(segments) => {
                let mut position = 0;
                for segment in segments {
                    let length = segment.length();
                    let from = start.max(position) - position;
                    let to = end.min(position + length).saturating_sub(position);
                    if from < to {
                        pieces.push_back(segment.slice(from, to));
                    }
                    position += length;
                }
            }
            Body::Empty | Body::Arriving(_) | Body::Tunnel(_) => {}
        }
        pieces
    }

    /// All of its bytes, where they can be handed on as they are. `length` is that of the body,
    /// where it is known.
    #[inline]
    pub fn chunks(&self, length: Option<u64>) -> Option<&[Bytes]> {
        match self {
            Body::Empty => Some(&[]),
            Body::Stored {
                response,
                start: 0,
                end,
            } if *end == response.body.len() => Some(response.body.chunks()),
            Body::Encoded(body) => Some(body.chunks()),
            Body::Segments(segments) => match segments.as_slices() {
                ([Segment::Memory(bytes)], []) => Some(std::slice::from_ref(bytes)),
                _ => None,
            },
            Body::Arriving(body) => body.at_hand(length?),
            Body::Stored { .. } | Body::Tunnel(_) => None,
        }
    }

    /// The file in memory that holds the same bytes as [`Body::chunks`].
    #[inline]
    pub fn memory_file(&self) -> Option<&MemoryFile> {
        match self {
            Body::Stored { response, .. } => response.body.file(),
            Body::Encoded(body) => body.file(),
            _ => None,
        }
    }

    /// The pieces of a body that is at hand.
    pub fn into_segments(self) -> VecDeque<Segment> {
        match self {
            Body::Stored {
                response,
                start,
                end,
            } => {
                let pieces = response.body.slice(start..end);
                pieces.map(Segment::Memory).collect()
            }
            Body::Encoded(body) => body.chunks().iter().cloned().map(Segment::Memory).collect(),
            Body::Segments(segments) => segments,
            Body::Empty | Body::Arriving(_) | Body::Tunnel(_) => VecDeque::new(),
        }
    }

    /// Turns the body into one that is pulled.
    pub fn into_arriving(self) -> Box<dyn ArrivingBody<X>> {
        match self {
            Body::Arriving(body) => body,
            body => Box::new(body.into_pieces()),
        }
    }

    /// A body that is at hand, to be read as far as there is room for it.
    pub fn into_pieces(self) -> Pieces {
        let is_stored = self.is_stored();
        Pieces::new(self.into_segments(), is_stored)
    }

    /// Are its bytes those of a stored response, which others have as well?
    pub fn is_stored(&self) -> bool {
        matches!(self, Body::Stored { .. } | Body::Encoded(_))
    }
}

fn read_small_file(segments: &mut VecDeque<Segment>) {
    let [
        Segment::File {
            file,
            offset,
            length,
        },
    ] = segments.make_contiguous()
    else {
        return;
    };
    if let Ok(Some(bytes)) = file.small_part(*offset, *length) {
        segments[0] = Segment::Memory(bytes);
    }
}

impl Segment {
    pub fn length(&self) -> u64 {
        match self {
            Segment::Memory(bytes) => bytes.len() as u64,
            Segment::File { length, .. } => *length,
        }
    }

    /// Bytes `from..to` of it; both lie within.
    fn slice(&self, from: u64, to: u64) -> Segment {
        match self {
            Segment::Memory(bytes) => {
                let clamp = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                Segment::Memory(bytes.slice(clamp(from)..clamp(to)))
            }
            Segment::File { file, offset, .. } => Segment::File {
                file: file.clone(),
                offset: offset + from,
                length: to - from,
            },
        }
    }
}
