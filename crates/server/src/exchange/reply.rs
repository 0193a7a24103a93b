//! A response before it is framed: what handlers make and `respond` sends.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use http_cache::{Known, StoredHead, StoredResponse, is_html};
use http1::{Fields, is_spelt, same_name};
use site::Coding;

use crate::base::decimal;
use crate::base::open_file::OpenFile;
use crate::transport::tunnel::Upgraded;
use crate::upstreams::fetch::UpstreamBody;

/// Head and body of a response.
pub struct Reply {
    pub head: ReplyHead,
    pub body: Body,
}

/// Status and fields. `Content-Length`, `Transfer-Encoding`, `Connection`,
/// `Date` and `Server` are not among the fields: `respond` writes them.
#[derive(Debug, Default)]
pub struct ReplyHead {
    pub status: u16,
    /// Reason phrase of the upstream; otherwise the usual one is sent.
    pub reason: Option<Bytes>,
    /// Fields already written as `Name: value\r\n` lines, sent as they are.
    /// [`ReplyHead::unpack`] turns them into `fields`.
    pub stored: Option<StoredFrom>,
    pub fields: Fields,
    /// Length of the body where it is known.
    pub content_length: Option<u64>,
    /// Unix seconds; for conditional requests and `expires modified`.
    pub last_modified: Option<i64>,
    /// Ranges of it may be sent.
    pub accepts_ranges: bool,
    /// `Accept-Ranges: bytes` is sent, beside what `fields` hold.
    pub says_accept_ranges: bool,
    /// An upstream made it for this request alone.
    pub is_of_upstream: bool,
    /// It is stored, or being stored.
    pub is_of_cache: bool,
    /// `Date` and `Server` are the upstream's own, or not there.
    pub passes_date: bool,
    pub passes_server: bool,
    /// The upstream decided on a charset already (X-Accel-Charset: off).
    pub keeps_charset: bool,
    /// `Vary: Accept-Encoding` is sent, beside what `fields` hold.
    pub says_vary: bool,
    /// The body is sent in this coding: `Content-Encoding` says so, the entity
    /// tag is sent as a weak one, and no ranges are promised.
    pub coded: Option<Coding>,
    /// What compression did, once it is done.
    pub compressed: Option<Compressed>,
    /// What `Connection`, `Keep-Alive` and `Transfer-Encoding` were sent as.
    pub sent_connection: SentConnection,
    pub sent_keep_alive: Option<u64>,
    pub sent_chunked: bool,
    /// The client has the body (304): what describes it is left out.
    pub lacks_body: bool,
    /// `add_header` and `expires` have been applied, or must not be.
    pub is_final: bool,
}

/// The option that `Connection` carries (RFC 9110 §7.6.1).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum SentConnection {
    /// No head was written yet.
    #[default]
    Nothing,
    KeepAlive,
    Close,
    Upgrade,
}

impl SentConnection {
    pub fn option(self) -> &'static str {
        match self {
            SentConnection::Nothing => "",
            SentConnection::KeepAlive => "keep-alive",
            SentConnection::Close => "close",
            SentConnection::Upgrade => "upgrade",
        }
    }
}

/// How much smaller compression made a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compressed {
    pub coding: Coding,
    pub before_bytes: u64,
    pub after_bytes: u64,
}

/// Where a stored head is: with its whole response, or ahead of a body that is
/// still arriving.
#[derive(Debug, Clone)]
pub enum StoredFrom {
    Response(Arc<StoredResponse>),
    Arriving(Arc<StoredHead>),
}

impl std::ops::Deref for StoredFrom {
    type Target = StoredHead;

    fn deref(&self) -> &StoredHead {
        match self {
            StoredFrom::Response(response) => &response.head,
            StoredFrom::Arriving(head) => head,
        }
    }
}

impl ReplyHead {
    pub fn new(status: u16) -> ReplyHead {
        ReplyHead {
            status,
            ..ReplyHead::default()
        }
    }

    /// The head of a response that is stored, or is being stored.
    #[inline]
    pub fn of_stored(stored: StoredFrom) -> ReplyHead {
        ReplyHead {
            status: stored.status,
            reason: (!stored.reason.is_empty()).then(|| Bytes::copy_from_slice(&stored.reason)),
            stored: Some(stored),
            is_of_cache: true,
            accepts_ranges: true,
            ..ReplyHead::default()
        }
    }

    /// Makes stored fields changeable.
    pub fn unpack(&mut self) {
        if let Some(stored) = self.stored.take() {
            let mut fields = Fields::with_capacity(16);
            let kept = |(name, _): &(Bytes, Bytes)| !self.leaves_out(name);
            for (name, value) in stored.fields.pairs().filter(kept) {
                fields.append(name, value);
            }
            for (name, value) in self.fields.as_slice() {
                fields.append(name.clone(), value.clone());
            }
            self.fields = fields;
        }
    }

    /// Leaves out what describes the body.
    pub fn leave_out_body(&mut self) {
        self.lacks_body = true;
        self.fields.retain(|name, _| !describes_body(name));
    }

    /// Is a stored field called `name` not sent?
    fn leaves_out(&self, name: &[u8]) -> bool {
        self.lacks_body && describes_body(name)
    }

    /// The stored fields that are sent.
    pub fn stored_fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let stored = self.stored.iter().flat_map(|stored| stored.fields.iter());
        stored.filter(|(name, _)| !self.leaves_out(name))
    }

    /// The first field called `name`, wherever it is kept.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        if let Some(value) = self.fields.get(name) {
            return Some(value);
        }
        match &self.stored {
            Some(stored) if !self.leaves_out(name.as_bytes()) => stored.fields.first(name),
            _ => None,
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.field(name).is_some()
    }

    /// As [`ReplyHead::field`] for what most hits are asked about.
    #[inline]
    pub fn known(&self, field: Known) -> Option<&[u8]> {
        if !self.fields.is_empty() {
            return self.field(field.name());
        }
        match &self.stored {
            Some(stored) if !(self.lacks_body && DESCRIBE_BODY.contains(&field)) => {
                stored.fields.known(field)
            }
            _ => None,
        }
    }

    /// Is the body HTML?
    pub fn is_html(&self) -> bool {
        match &self.stored {
            Some(stored) if self.fields.is_empty() => stored.fields.is_html(),
            _ => self.known(Known::ContentType).is_some_and(is_html),
        }
    }

    /// Appends `$sent_http_NAME`; false where no such field is sent.
    pub fn write_sent_field(&self, name: &[u8], out: &mut Vec<u8>) -> bool {
        match name {
            b"content_length" => {
                let Some(length) = self.content_length.filter(|_| !self.sent_chunked) else {
                    return false;
                };
                decimal::put(length, out);
                return true;
            }
            b"connection" => {
                let option = self.sent_connection.option();
                out.extend_from_slice(option.as_bytes());
                return !option.is_empty();
            }
            b"keep_alive" => {
                let Some(seconds) = self.sent_keep_alive else {
                    return false;
                };
                out.extend_from_slice(format!("timeout={seconds}").as_bytes());
                return true;
            }
            b"transfer_encoding" => {
                if self.sent_chunked {
                    out.extend_from_slice(b"chunked");
                }
                return self.sent_chunked;
            }
            b"accept_ranges" if self.says_accept_ranges => {
                out.extend_from_slice(b"bytes");
                return true;
            }
            b"accept_ranges" if self.coded.is_some() => return false,
            b"content_encoding" if self.coded.is_some() => {
                let coding = self.coded.map_or("", Coding::name);
                out.extend_from_slice(coding.as_bytes());
                return true;
            }
            _ => {}
        }
        let mut found = false;
        if self.says_vary && name == b"vary" {
            out.extend_from_slice(b"Accept-Encoding");
            found = true;
        }
        for (field, value) in self.stored_fields().chain(self.fields.iter()) {
            if is_spelt(name, field) {
                if found {
                    out.extend_from_slice(b", ");
                }
                if self.weakens(field, value) {
                    out.extend_from_slice(b"W/");
                }
                out.extend_from_slice(value);
                found = true;
            }
        }
        found
    }

    /// Is this a strong entity tag, of a body that is sent as other bytes?
    pub fn weakens(&self, name: &[u8], value: &[u8]) -> bool {
        self.coded.is_some() && name.eq_ignore_ascii_case(b"etag") && !value.starts_with(b"W/")
    }

    /// How many times smaller this coding made the body: `$gzip_ratio` and its kin.
    pub fn ratio(&self, coding: Coding) -> Option<f64> {
        let done = self.compressed.filter(|done| done.coding == coding)?;
        (done.after_bytes > 0).then(|| done.before_bytes as f64 / done.after_bytes as f64)
    }
}

/// Fields that a 304 does not repeat, though they are stored.
pub const DESCRIBE_BODY: [Known; 2] = [Known::ContentType, Known::ContentEncoding];

fn describes_body(name: &[u8]) -> bool {
    DESCRIBE_BODY
        .iter()
        .any(|field| same_name(name, field.name().as_bytes()))
}

/// Where the bytes of a body are.
pub enum Body {
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
    /// A response that is being stored while it arrives.
    Filling(Box<http_cache::Reader>),
    /// One slice after the other.
    Sliced(Box<crate::content::slice::Slices>),
    /// A response for this request alone.
    Upstream(Box<UpstreamBody>),
    /// What follows a 101: bytes both ways, until one side ends.
    Tunnel(Box<dyn Upgraded>),
    /// A part of a body that is still arriving.
    Window {
        body: Box<Body>,
        start: u64,
        end: u64,
    },
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

impl Body {
    pub fn bytes(bytes: impl Into<Bytes>) -> Body {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return Body::Empty;
        }
        Body::Segments(VecDeque::from([Segment::Memory(bytes)]))
    }

    pub fn file(file: Arc<OpenFile>, length: u64) -> Body {
        if length == 0 {
            return Body::Empty;
        }
        Body::Segments(VecDeque::from([Segment::File {
            file,
            offset: 0,
            length,
        }]))
    }

    /// Reads what is a small file, or a small part of one. What cannot be read
    /// stays a file: sending it will say why.
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
            _ => {}
        }
        pieces
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

impl Reply {
    /// The tunnel that begins behind the head, if one does.
    pub fn take_tunnel(&mut self) -> Option<Box<dyn Upgraded>> {
        if !matches!(self.body, Body::Tunnel(_)) {
            return None;
        }
        match std::mem::replace(&mut self.body, Body::Empty) {
            Body::Tunnel(upgraded) => Some(upgraded),
            _ => None,
        }
    }

    /// A stored response, whole. Made where it stays: it is large.
    pub fn of_stored(stored: Arc<StoredResponse>) -> Box<Reply> {
        let place = Box::new_uninit();
        let length = stored.body.len();
        let reply = Reply {
            head: ReplyHead {
                content_length: Some(length),
                ..ReplyHead::of_stored(StoredFrom::Response(stored.clone()))
            },
            body: Body::Stored {
                response: stored,
                start: 0,
                end: length,
            },
        };
        Box::write(place, reply)
    }

    pub fn new(status: u16, content_type: &[u8], body: impl Into<Bytes>) -> Reply {
        let body = body.into();
        let mut head = ReplyHead::new(status);
        head.content_length = Some(body.len() as u64);
        if !content_type.is_empty() {
            head.fields
                .append("Content-Type", Bytes::copy_from_slice(content_type));
        }
        Reply {
            head,
            body: Body::bytes(body),
        }
    }
}
