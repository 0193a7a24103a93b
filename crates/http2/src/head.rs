//! A request head: from a field block to the spans that HTTP/1 has too
//! (`http_semantics::RequestView`), and the rules of RFC 9113 §8.2 and §8.3 on the way.
//! HTTP/3 has the same rules (RFC 9114 §4.2, §4.3), and its heads are read here as well: how
//! a block is compressed is known to a [`FieldSource`] alone.
//!
//! A head costs no allocation unless the caller's reused [`HeadBuffer`] has to grow. A block
//! is decoded to its end even when the request is refused early, so that the peer's table
//! stays right.

use http_semantics::{
    Excerpt, FieldSpan, Host, Presence, RequestHead, RequestLine, RequestView, Span, Version,
    parse_host,
};

use crate::bounds::{BLOCK_TO_LIST, MIN_BLOCK_BYTES};
use crate::error::ConnectionError;
use crate::event::TrailerView;
use crate::field_block::is_connection_specific;
use crate::hpack::{BlockReader, DecodedField, Decoder, FIELD_OVERHEAD_BYTES};
use crate::priority::Priority;
use crate::request_error::RequestError;
use crate::settings::HeadLimits;

/// Memory for one head at a time, used again and again.
#[derive(Debug)]
pub struct HeadBuffer {
    bytes: Vec<u8>,
    fields: Vec<FieldSpan>,
    line: RequestLine,
}

impl Default for HeadBuffer {
    fn default() -> Self {
        HeadBuffer {
            bytes: Vec::new(),
            fields: Vec::new(),
            line: RequestLine {
                head_len: 0,
                method: Span::default(),
                target: Span::default(),
                line: Span::default(),
                version: Version::Http2,
                ignored_fields: 0,
                presence: Presence::default(),
            },
        }
    }
}

impl HeadBuffer {
    /// Creates a buffer without memory yet.
    pub fn new() -> Self {
        HeadBuffer::default()
    }

    /// The head that was read last, if it was sound.
    pub fn request(&self) -> RequestView<'_> {
        RequestView {
            bytes: &self.bytes,
            line: &self.line,
            fields: &self.fields,
        }
    }

    pub(crate) fn trailers(&self) -> TrailerView<'_> {
        TrailerView {
            bytes: &self.bytes,
            fields: &self.fields,
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
    }

    fn append(&mut self, text: &[u8]) -> Span {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        Span::new(start, self.bytes.len())
    }

    fn append_copy(&mut self, span: Span) -> Span {
        let start = self.bytes.len();
        let range = span.start as usize..span.end as usize;
        self.bytes.extend_from_within(range);
        Span::new(start, self.bytes.len())
    }
}

/// Copies a head, for a request that lives longer than its event.
pub fn to_owned_head(head: RequestView<'_>) -> RequestHead {
    RequestHead {
        bytes: bytes::Bytes::copy_from_slice(head.bytes),
        line: *head.line,
        fields: head.fields.to_vec(),
    }
}

/// The facts of a head about its stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestFacts {
    /// The length of the body, if the head declares it.
    pub content_length: Option<u64>,
    /// How urgent the response is (RFC 9218).
    pub priority: Priority,
}

/// The most bytes that a field block may have, encoded or decoded.
pub fn max_block_bytes(limits: &HeadLimits) -> usize {
    limits
        .max_list_bytes
        .saturating_mul(BLOCK_TO_LIST)
        .max(MIN_BLOCK_BYTES)
}

/// Gives the fields of a block, one after the other.
pub trait FieldSource {
    /// Why a block cannot be read, which ends the connection.
    type Error;

    /// Appends the next field to `out`, its value behind its name; `None` at the block's end.
    ///
    /// # Errors
    /// The block is not valid.
    fn next_field(&mut self, out: &mut Vec<u8>) -> Result<Option<DecodedField>, Self::Error>;

    /// Returns the error for a block that stands for far more than a head may have.
    fn too_large() -> Self::Error;
}

/// A block of HPACK.
struct HpackSource<'a> {
    decoder: &'a mut Decoder,
    reader: BlockReader<'a>,
}

impl FieldSource for HpackSource<'_> {
    type Error = ConnectionError;

    #[inline]
    fn next_field(&mut self, out: &mut Vec<u8>) -> Result<Option<DecodedField>, ConnectionError> {
        Ok(self.decoder.next_field(&mut self.reader, out)?)
    }

    fn too_large() -> ConnectionError {
        ConnectionError::FieldBlockTooLarge
    }
}

/// Reads a request head into `buffer`.
///
/// # Errors
/// Outside, those of the connection; inside, those of the request.
pub(crate) fn read_request(
    decoder: &mut Decoder,
    block: &[u8],
    limits: &HeadLimits,
    buffer: &mut HeadBuffer,
) -> Result<Result<RequestFacts, RequestError>, ConnectionError> {
    let reader = BlockReader::new(block);
    let mut source = HpackSource { decoder, reader };
    read_head(&mut source, Version::Http2, limits, buffer)
}

/// Reads the head of a request of this version into `buffer`.
///
/// # Errors
/// Outside, those of the connection; inside, those of the request.
pub fn read_head<S: FieldSource>(
    source: &mut S,
    version: Version,
    limits: &HeadLimits,
    buffer: &mut HeadBuffer,
) -> Result<Result<RequestFacts, RequestError>, S::Error> {
    let mut builder = RequestBuilder::default();
    let verdict = read_fields(source, limits, buffer, |buffer, field| {
        builder.take(buffer, field, limits)
    })?;
    Ok(verdict.and_then(|()| builder.finish(buffer, version)))
}

/// Reads trailers into `buffer`.
///
/// # Errors
/// The errors of [`read_request`].
pub(crate) fn read_trailers(
    decoder: &mut Decoder,
    block: &[u8],
    limits: &HeadLimits,
    buffer: &mut HeadBuffer,
) -> Result<Result<(), RequestError>, ConnectionError> {
    let reader = BlockReader::new(block);
    let mut source = HpackSource { decoder, reader };
    read_trailer_fields(&mut source, limits, buffer)
}

/// Reads trailers into `buffer`, however their block is compressed.
///
/// # Errors
/// The errors of [`read_head`].
pub fn read_trailer_fields<S: FieldSource>(
    source: &mut S,
    limits: &HeadLimits,
    buffer: &mut HeadBuffer,
) -> Result<Result<(), RequestError>, S::Error> {
    read_fields(source, limits, buffer, |buffer, field| {
        let (name, value) = field.of(&buffer.bytes);
        if name.starts_with(b":") {
            return Err(RequestError::MisplacedPseudoField(Excerpt::of(name)));
        }
        let is_kept = check_field(name, value, limits)?;
        buffer.keep(field, is_kept, limits)?;
        Ok(())
    })
}

/// Reads a block of which only the table's state matters.
///
/// # Errors
/// The connection cannot go on.
pub(crate) fn skip_block(
    decoder: &mut Decoder,
    block: &[u8],
    limits: &HeadLimits,
    buffer: &mut HeadBuffer,
) -> Result<(), ConnectionError> {
    let refuse = |_: &mut HeadBuffer, _| Err(RequestError::HeadTooLarge);
    let reader = BlockReader::new(block);
    let mut source = HpackSource { decoder, reader };
    read_fields(&mut source, limits, buffer, refuse).map(|_| ())
}

/// A field in the buffer that is not among its fields yet.
#[derive(Clone, Copy)]
struct NewField {
    name: Span,
    value: Span,
}

impl NewField {
    fn new(start: usize, field: DecodedField) -> Self {
        let name_end = start + field.name_len;
        NewField {
            name: Span::new(start, name_end),
            value: Span::new(name_end, name_end + field.value_len),
        }
    }

    fn of(self, bytes: &[u8]) -> (&[u8], &[u8]) {
        (self.name.of(bytes), self.value.of(bytes))
    }
}

impl HeadBuffer {
    /// Makes a field one of the head's, or leaves it out.
    fn keep(
        &mut self,
        field: NewField,
        is_kept: bool,
        limits: &HeadLimits,
    ) -> Result<(), RequestError> {
        if self.fields.len() + self.line.ignored_fields >= limits.max_fields {
            return Err(RequestError::TooManyFields);
        }
        if is_kept {
            self.line.presence.note(field.name.of(&self.bytes));
            self.fields.push(FieldSpan {
                name: field.name,
                value: field.value,
            });
        } else {
            self.line.ignored_fields += 1;
        }
        Ok(())
    }
}

/// Decodes a block field by field, and gives each to `take` until one is refused.
fn read_fields<S: FieldSource>(
    source: &mut S,
    limits: &HeadLimits,
    buffer: &mut HeadBuffer,
    mut take: impl FnMut(&mut HeadBuffer, NewField) -> Result<(), RequestError>,
) -> Result<Result<(), RequestError>, S::Error> {
    buffer.clear();
    buffer.line.ignored_fields = 0;
    buffer.line.presence = Presence::default();
    let max_decoded_bytes = max_block_bytes(limits);
    let (mut decoded_bytes, mut list_bytes) = (0, 0);
    let mut verdict = Ok(());
    loop {
        let start = buffer.bytes.len();
        let Some(field) = source.next_field(&mut buffer.bytes)? else {
            return Ok(verdict);
        };
        let field_bytes = field.name_len + field.value_len;
        // An index of one byte can stand for a field of 4 KB (an "HPACK bomb").
        decoded_bytes += field_bytes + FIELD_OVERHEAD_BYTES;
        if decoded_bytes > max_decoded_bytes.saturating_add(overhead_bytes(limits)) {
            return Err(S::too_large());
        }
        list_bytes += field_bytes;
        if verdict.is_ok() {
            verdict = check_size(field, list_bytes, limits)
                .and_then(|()| take(buffer, NewField::new(start, field)));
        }
        if verdict.is_err() {
            buffer.bytes.truncate(start);
        }
    }
}

/// Returns the overhead of a head's fields beside their names and values.
fn overhead_bytes(limits: &HeadLimits) -> usize {
    limits.max_fields.saturating_mul(FIELD_OVERHEAD_BYTES)
}

fn check_size(
    field: DecodedField,
    list_bytes: usize,
    limits: &HeadLimits,
) -> Result<(), RequestError> {
    if field.name_len.max(field.value_len) > limits.max_field_bytes {
        Err(RequestError::FieldTooLong)
    } else if list_bytes > limits.max_list_bytes {
        Err(RequestError::HeadTooLarge)
    } else {
        Ok(())
    }
}

const UNDERSCORE: u8 = 1;
const ODD: u8 = 2;
const REFUSED: u8 = 4;

/// The class of each byte in a field name; zero for letters, digits and `-`.
static NAME_BYTES: [u8; 256] = {
    let mut table = [REFUSED; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        table[byte as usize] = match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' => 0,
            b'_' => UNDERSCORE,
            b'A'..=b'Z' | b':' => REFUSED,
            _ => ODD,
        };
        byte += 1;
    }
    table
};

/// Checks a field that is no pseudo-field; whether it is kept.
fn check_field(name: &[u8], value: &[u8], limits: &HeadLimits) -> Result<bool, RequestError> {
    let of_byte = |classes: u8, &byte: &u8| classes | NAME_BYTES[usize::from(byte)];
    let classes = name.iter().fold(0, of_byte);
    if classes & REFUSED != 0 || name.is_empty() {
        return Err(RequestError::InvalidFieldName(Excerpt::of(name)));
    }
    if !is_valid_value(value) {
        return Err(RequestError::InvalidFieldValue(Excerpt::of(name)));
    }
    if is_connection_specific(name) || (name == b"te" && !value.eq_ignore_ascii_case(b"trailers")) {
        return Err(RequestError::ConnectionField(Excerpt::of(name)));
    }
    let is_odd = classes & ODD != 0 || (classes & UNDERSCORE != 0 && !limits.underscores);
    Ok(!(is_odd && limits.ignore_invalid_fields))
}

fn is_valid_value(value: &[u8]) -> bool {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    memchr::memchr3(b'\r', b'\n', 0, value).is_none()
        && !is_space(value.first())
        && !is_space(value.last())
}

/// A request while its fields come.
#[derive(Default)]
struct RequestBuilder {
    method: Option<Span>,
    scheme: Option<Span>,
    authority: Option<Span>,
    path: Option<Span>,
    host: Option<Span>,
    cookies: usize,
    has_fields: bool,
    facts: RequestFacts,
}

impl RequestBuilder {
    fn take(
        &mut self,
        buffer: &mut HeadBuffer,
        field: NewField,
        limits: &HeadLimits,
    ) -> Result<(), RequestError> {
        let (name, value) = field.of(&buffer.bytes);
        if name.first() == Some(&b':') {
            return self.take_pseudo(name, field.value);
        }
        let is_kept = check_field(name, value, limits)?;
        self.has_fields = true;
        match name {
            b"host" if self.host.replace(field.value).is_some() => {
                return Err(RequestError::DuplicateField("host"));
            }
            b"content-length" => self.take_content_length(value)?,
            b"cookie" => self.cookies += 1,
            b"priority" => self.facts.priority = Priority::parse(value),
            _ => {}
        }
        buffer.keep(field, is_kept, limits)
    }

    fn take_pseudo(&mut self, name: &[u8], value: Span) -> Result<(), RequestError> {
        if self.has_fields {
            return Err(RequestError::MisplacedPseudoField(Excerpt::of(name)));
        }
        let (slot, name) = match name {
            b":method" => (&mut self.method, ":method"),
            b":scheme" => (&mut self.scheme, ":scheme"),
            b":authority" => (&mut self.authority, ":authority"),
            b":path" => (&mut self.path, ":path"),
            _ => return Err(RequestError::UnknownPseudoField(Excerpt::of(name))),
        };
        match slot.replace(value) {
            Some(_) => Err(RequestError::DuplicatePseudoField(name)),
            None => Ok(()),
        }
    }

    fn take_content_length(&mut self, value: &[u8]) -> Result<(), RequestError> {
        let length = parse_length(value).ok_or(RequestError::InvalidContentLength)?;
        match self.facts.content_length.replace(length) {
            Some(_) => Err(RequestError::DuplicateField("content-length")),
            None => Ok(()),
        }
    }

    fn finish(
        self,
        buffer: &mut HeadBuffer,
        version: Version,
    ) -> Result<RequestFacts, RequestError> {
        let missing = RequestError::MissingPseudoField;
        let method = self.method.ok_or(missing(":method"))?;
        match method.of(&buffer.bytes) {
            // Both are refused whatever else they say, as over HTTP/1.
            b"CONNECT" => return Err(RequestError::ConnectRefused),
            b"TRACE" => return Err(RequestError::TraceRefused),
            method if !is_method(method) => return Err(RequestError::InvalidMethod),
            _ => {}
        }
        let scheme = self.scheme.ok_or(missing(":scheme"))?;
        if !is_scheme(scheme.of(&buffer.bytes)) {
            return Err(RequestError::InvalidScheme);
        }
        let path = self.path.ok_or(missing(":path"))?;
        if !is_path(path.of(&buffer.bytes), method.of(&buffer.bytes)) {
            return Err(RequestError::InvalidPath);
        }
        self.set_host(buffer, scheme)?;
        if self.cookies > 1 {
            join_cookies(buffer);
        }
        let line_start = buffer.bytes.len();
        buffer.line.method = buffer.append_copy(method);
        buffer.append(b" ");
        buffer.line.target = buffer.append_copy(path);
        buffer.append(b" ");
        let line_end = buffer.append(version.as_str().as_bytes()).end as usize;
        buffer.line.version = version;
        buffer.line.line = Span::new(line_start, line_end);
        buffer.line.head_len = line_end;
        Ok(self.facts)
    }

    /// §8.3.1: there is one host, whether it came as `:authority` or as Host or as both.
    /// Behind this it is in the Host field.
    fn set_host(&self, buffer: &mut HeadBuffer, scheme: Span) -> Result<(), RequestError> {
        let parse =
            |span: Span| parse_host(span.of(&buffer.bytes)).ok_or(RequestError::InvalidHost);
        match (self.authority, self.host) {
            (None, None) => Err(RequestError::MissingHost),
            (None, Some(host)) => parse(host).map(|_| ()),
            (Some(authority), None) => {
                parse(authority)?;
                let name = buffer.append(b"host");
                buffer.line.presence.note(b"host");
                let host = FieldSpan {
                    name,
                    value: authority,
                };
                buffer.fields.insert(0, host);
                Ok(())
            }
            (Some(authority), Some(host)) => {
                let default_port = match scheme.of(&buffer.bytes) {
                    b"https" => 443,
                    _ => 80,
                };
                let port = |host: &Host<'_>| host.port.unwrap_or(default_port);
                let (one, other) = (parse(authority)?, parse(host)?);
                match one.name == other.name && port(&one) == port(&other) {
                    true => Ok(()),
                    false => Err(RequestError::HostDiffers),
                }
            }
        }
    }
}

/// §8.2.3: clients may send each cookie as a field of its own; beyond HTTP/2 there is one.
fn join_cookies(buffer: &mut HeadBuffer) {
    let start = buffer.bytes.len();
    for at in 0..buffer.fields.len() {
        let Some(field) = buffer.fields.get(at).copied() else {
            break;
        };
        if field.name.of(&buffer.bytes) == b"cookie" {
            if buffer.bytes.len() > start {
                buffer.append(b"; ");
            }
            buffer.append_copy(field.value);
        }
    }
    let joined = Span::new(start, buffer.bytes.len());
    let mut is_first = true;
    buffer.fields.retain_mut(|field| {
        if field.name.of(&buffer.bytes) != b"cookie" {
            return true;
        }
        field.value = joined;
        std::mem::take(&mut is_first)
    });
}

fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0u64, |length, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        length.checked_mul(10)?.checked_add(digit)
    })
}

/// nginx: `A-Z`, `_`, `-`.
fn is_method(method: &[u8]) -> bool {
    let is_method_byte = |byte: &u8| matches!(byte, b'A'..=b'Z' | b'_' | b'-');
    !method.is_empty() && method.iter().all(is_method_byte)
}

/// RFC 3986 §3.1.
fn is_scheme(scheme: &[u8]) -> bool {
    let is_scheme_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(is_scheme_byte)
}

/// Checks a path by §8.3.1. Its meaning is decided when it is decoded, like for HTTP/1.
fn is_path(path: &[u8], method: &[u8]) -> bool {
    let is_path_byte = |&byte: &u8| byte > b' ' && byte != 0x7f;
    match path {
        b"*" => method == b"OPTIONS",
        _ => path.starts_with(b"/") && path.iter().all(is_path_byte),
    }
}
