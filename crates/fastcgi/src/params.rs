//! The PARAMS stream: name-value pairs, and HTTP fields turned into them.
//!
//! A [`ParamsEncoder`] takes the configured params first, then the request's
//! fields; it makes [`Params`], which may be sent more than once (retries).
//! Two promises: the field `Proxy` never becomes `HTTP_PROXY`, and no name
//! `HTTP_*` occurs twice, because the second would silently win in PHP:
//! repeated fields are joined, and a configured param replaces a field.
//!
//! FastCGI Specification 1.0, section 3.4; RFC 3875, section 4.1.18;
//! nginx's ngx_http_fastcgi_module, "Parameters Passed to a FastCGI Server".

use std::cmp::Ordering;

use bytes::{BufMut, Bytes, BytesMut};

use crate::error::Error;
use crate::record::{self, HEADER_BYTES, MAX_CONTENT_BYTES, RecordHeader};

/// The most that the params of a request may be together. Above any limit
/// on a request head; a param may hold a request body, though.
pub const MAX_PARAMS_BYTES: usize = 16 << 20;

/// Room for a usual set of params, so that encoding allocates once.
const USUAL_PARAMS_BYTES: usize = 2048;

const HTTP_PREFIX: &[u8] = b"HTTP_";

/// The PARAMS records of a request, with the empty one at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params(Bytes);

impl Params {
    /// The records as they go over the wire.
    pub fn as_records(&self) -> &Bytes {
        &self.0
    }

    pub fn into_records(self) -> Bytes {
        self.0
    }
}

/// Whether a request field became a param, and why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldOutcome {
    /// It will be sent, joined with others of its name.
    Taken,
    /// Its name is `Proxy`, or empty: never sent (CVE-2016-5385).
    Refused,
}

/// Collects params. `'a` is the request whose fields are passed on.
#[derive(Debug)]
pub struct ParamsEncoder<'a> {
    /// Room for one record header, then the pairs.
    out: BytesMut,
    /// A pair was left out because of [`MAX_PARAMS_BYTES`].
    too_large: bool,
    /// Names `HTTP_*` (less the prefix) that replace fields.
    replaced: Vec<Box<[u8]>>,
    fields: Vec<Field<'a>>,
}

#[derive(Debug)]
struct Field<'a> {
    name: &'a [u8],
    value: &'a [u8],
}

impl Default for ParamsEncoder<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> ParamsEncoder<'a> {
    pub fn new() -> ParamsEncoder<'a> {
        let mut out = BytesMut::with_capacity(USUAL_PARAMS_BYTES);
        out.put_bytes(0, HEADER_BYTES);
        ParamsEncoder {
            out,
            too_large: false,
            replaced: Vec::new(),
            fields: Vec::new(),
        }
    }

    /// Appends a param. A name `HTTP_*` also replaces the request's field of
    /// that name. `HTTP_PROXY` is sent when pushed here: the operator wrote it.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.replace_http_field(name);
        self.put_pair(name, &[value], b"");
    }

    /// Keeps the request's field out that would become the param `name`,
    /// without sending anything, as nginx does for a `fastcgi_param` with
    /// `if_not_empty` whose value is empty. Other names have no effect.
    pub fn replace_http_field(&mut self, name: &[u8]) {
        if let Some(rest) = name.strip_prefix(HTTP_PREFIX) {
            self.replaced.push(rest.into());
        }
    }

    /// Takes a field of the request: `Accept-Language` becomes
    /// `HTTP_ACCEPT_LANGUAGE`. Repeated fields are joined by `, `, and
    /// `Cookie` by `; ` (as nginx 1.23 does). Fields that differ only by
    /// dash and underscore are the same param and are joined as well.
    pub fn push_http_field(&mut self, name: &'a [u8], value: &'a [u8]) -> FieldOutcome {
        if name.is_empty() || is_param(name, b"PROXY") {
            return FieldOutcome::Refused;
        }
        self.fields.push(Field { name, value });
        FieldOutcome::Taken
    }

    /// Makes the records. The request's fields come last, ordered by name.
    ///
    /// # Errors
    ///
    /// [`Error::ParamsTooLarge`] above [`MAX_PARAMS_BYTES`].
    pub fn finish(mut self) -> Result<Params, Error> {
        self.put_fields();
        if self.too_large {
            return Err(Error::ParamsTooLarge);
        }
        let content_bytes = self.out.len() - HEADER_BYTES;
        let mut out = self.out;
        match u16::try_from(content_bytes) {
            // An empty record would close the stream twice.
            Ok(0) => out.clear(),
            Ok(length) => {
                let header = RecordHeader::new(record::kind::PARAMS, length).encode();
                if let Some(start) = out.first_chunk_mut() {
                    *start = header;
                }
            }
            Err(_) => {
                let records = content_bytes / MAX_CONTENT_BYTES + 2;
                let content = out.split_off(HEADER_BYTES);
                out = BytesMut::with_capacity(content_bytes + records * HEADER_BYTES);
                record::put_stream(&mut out, record::kind::PARAMS, &content);
            }
        }
        out.put_slice(&record::PARAMS_END);
        Ok(Params(out.freeze()))
    }

    /// Sorting finds repeated names in n log n, also for a hostile head of
    /// thousands of fields; the sort is stable, so values keep their order.
    fn put_fields(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.sort_by(|a, b| compare_params(a.name, b.name));
        let mut name = Vec::new();
        let mut values: Vec<&[u8]> = Vec::new();
        for group in fields.chunk_by(|a, b| compare_params(a.name, b.name).is_eq()) {
            let Some(first) = group.first() else { continue };
            if self.replaced.iter().any(|r| is_param(first.name, r)) {
                continue;
            }
            name.clear();
            name.extend_from_slice(HTTP_PREFIX);
            name.extend(first.name.iter().map(|byte| param_byte(*byte)));
            values.clear();
            values.extend(group.iter().map(|field| field.value));
            let separator: &[u8] = if is_param(first.name, b"COOKIE") {
                b"; "
            } else {
                b", "
            };
            self.put_pair(&name, &values, separator);
        }
    }

    fn put_pair(&mut self, name: &[u8], values: &[&[u8]], separator: &[u8]) {
        let joints = values.len().saturating_sub(1) * separator.len();
        let value_bytes = values.iter().map(|value| value.len()).sum::<usize>() + joints;
        let pair_bytes = 8 + name.len() + value_bytes;
        if self.out.len() + pair_bytes > MAX_PARAMS_BYTES {
            self.too_large = true;
            return;
        }
        self.out.reserve(pair_bytes);
        put_length(&mut self.out, name.len());
        put_length(&mut self.out, value_bytes);
        self.out.put_slice(name);
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.out.put_slice(separator);
            }
            self.out.put_slice(value);
        }
    }
}

fn param_byte(byte: u8) -> u8 {
    match byte {
        b'-' => b'_',
        other => other.to_ascii_uppercase(),
    }
}

fn is_param(field_name: &[u8], param: &[u8]) -> bool {
    field_name.len() == param.len()
        && field_name
            .iter()
            .zip(param)
            .all(|(a, b)| param_byte(*a) == *b)
}

fn compare_params(a: &[u8], b: &[u8]) -> Ordering {
    let a = a.iter().map(|byte| param_byte(*byte));
    let b = b.iter().map(|byte| param_byte(*byte));
    a.cmp(b)
}

/// One byte below 128, else four with the highest bit set.
fn put_length(out: &mut BytesMut, length: usize) {
    match u8::try_from(length) {
        Ok(short @ 0..=127) => out.put_u8(short),
        // Bounded by MAX_PARAMS_BYTES, which is far below 2^31.
        _ => out.put_u32(u32::try_from(length).unwrap_or(u32::MAX) | 0x8000_0000),
    }
}

/// Takes the name-value pairs of a whole PARAMS stream apart, as a responder
/// does. `None` when the bytes are no pairs.
pub fn decode_pairs(mut stream: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut pairs = Vec::new();
    while !stream.is_empty() {
        let name_bytes = take_length(&mut stream)?;
        let value_bytes = take_length(&mut stream)?;
        let (name, rest) = stream.split_at_checked(name_bytes)?;
        let (value, rest) = rest.split_at_checked(value_bytes)?;
        pairs.push((name.to_vec(), value.to_vec()));
        stream = rest;
    }
    Some(pairs)
}

fn take_length(stream: &mut &[u8]) -> Option<usize> {
    let (&first, rest) = stream.split_first()?;
    if first < 128 {
        *stream = rest;
        return Some(usize::from(first));
    }
    let (length, rest) = stream.split_first_chunk::<4>()?;
    *stream = rest;
    usize::try_from(u32::from_be_bytes(*length) & 0x7fff_ffff).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the records' framing and takes the pairs out.
    fn pairs(params: &Params) -> Vec<(String, String)> {
        let mut bytes = &params.as_records()[..];
        let mut stream = Vec::new();
        loop {
            let (header, rest) = bytes.split_first_chunk().expect("a header");
            let header = RecordHeader::decode(*header);
            let length = usize::from(header.content_bytes);
            assert_eq!(
                header,
                RecordHeader::new(record::kind::PARAMS, length as u16)
            );
            stream.extend_from_slice(&rest[..length]);
            bytes = &rest[length..];
            if length == 0 {
                assert!(bytes.is_empty(), "the empty record is the last");
                break;
            }
        }
        decode_pairs(&stream)
            .expect("pairs")
            .into_iter()
            .map(|(name, value)| {
                let text = |bytes| String::from_utf8(bytes).expect("text");
                (text(name), text(value))
            })
            .collect()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn no_params_are_one_empty_record() {
        let params = ParamsEncoder::new().finish().expect("params");
        assert_eq!(params.as_records()[..], record::PARAMS_END);
    }

    #[test]
    fn lengths_take_one_byte_below_128_and_four_from_there() {
        for (length, expected) in [
            (0_usize, &b"\x01\x00N"[..]),
            (127, b"\x01\x7fN"),
            (128, b"\x01\x80\x00\x00\x80N"),
            (70_000, b"\x01\x80\x01\x11\x70N"),
        ] {
            let value = "v".repeat(length);
            let mut encoder = ParamsEncoder::new();
            encoder.push(b"N", value.as_bytes());
            let params = encoder.finish().expect("params");
            assert!(params.as_records()[HEADER_BYTES..].starts_with(expected));
            assert_eq!(pairs(&params), [pair("N", &value)], "{length}");
        }
    }

    #[test]
    fn content_of_every_size_around_a_record_is_split_whole() {
        // 1 byte for the name's length, 4 for the value's, 1 for the name.
        for content in [65_527, 65_528, 65_535, 65_536, 131_056, 131_070, 131_071] {
            let value = "x".repeat(content - 6);
            let mut encoder = ParamsEncoder::new();
            encoder.push(b"N", value.as_bytes());
            let params = encoder.finish().expect("params");
            assert_eq!(pairs(&params), [pair("N", &value)], "{content}");
        }
    }

    #[test]
    fn proxy_never_becomes_a_param() {
        for name in ["Proxy", "proxy", "PROXY", "pRoXy", ""] {
            let mut encoder = ParamsEncoder::new();
            let outcome = encoder.push_http_field(name.as_bytes(), b"http://evil/");
            assert_eq!(outcome, FieldOutcome::Refused, "{name}");
            assert_eq!(pairs(&encoder.finish().expect("params")), []);
        }
        let mut encoder = ParamsEncoder::new();
        let outcome = encoder.push_http_field(b"Proxy-Authorization", b"x");
        assert_eq!(outcome, FieldOutcome::Taken);
    }

    #[test]
    fn repeated_fields_are_joined_in_their_order() {
        let mut encoder = ParamsEncoder::new();
        for (name, value) in [
            ("X-Forwarded-For", "foo"),
            ("Cookie", "a=1"),
            ("Foo", "1"),
            ("x-forwarded-for", "bar"),
            ("cookie", "b=2"),
            ("X-Forwarded_For", "bazz"),
            ("X-Forwarded", "prefix of another"),
        ] {
            encoder.push_http_field(name.as_bytes(), value.as_bytes());
        }
        assert_eq!(
            pairs(&encoder.finish().expect("params")),
            [
                pair("HTTP_COOKIE", "a=1; b=2"),
                pair("HTTP_FOO", "1"),
                pair("HTTP_X_FORWARDED", "prefix of another"),
                pair("HTTP_X_FORWARDED_FOR", "foo, bar, bazz"),
            ]
        );
    }

    #[test]
    fn configured_params_replace_fields() {
        let mut encoder = ParamsEncoder::new();
        encoder.push(b"HTTP_X_BLAH", b"blah");
        encoder.push(b"X_KEPT", b"no prefix");
        encoder.replace_http_field(b"HTTP_X_EMPTY");
        for name in ["X-Blah", "X-Blah", "X-Empty", "X-Kept"] {
            encoder.push_http_field(name.as_bytes(), b"field");
        }
        assert_eq!(
            pairs(&encoder.finish().expect("params")),
            [
                pair("HTTP_X_BLAH", "blah"),
                pair("X_KEPT", "no prefix"),
                pair("HTTP_X_KEPT", "field"),
            ]
        );
    }

    #[test]
    fn params_beyond_the_bound_are_refused_and_not_sent_in_part() {
        let half = vec![b'x'; MAX_PARAMS_BYTES / 2];
        let mut encoder = ParamsEncoder::new();
        encoder.push(b"A", &half);
        encoder.push(b"B", &half);
        encoder.push(b"C", b"small");
        assert!(matches!(encoder.finish(), Err(Error::ParamsTooLarge)));
    }

    #[test]
    fn cut_pairs_are_not_decoded() {
        for cut in [
            &b"\x01"[..],
            b"\x01\x02N1",
            b"\x80\x00\x00",
            b"\xff\xff\xff\xff\x01x",
        ] {
            assert_eq!(decode_pairs(cut), None, "{cut:?}");
        }
    }
}
