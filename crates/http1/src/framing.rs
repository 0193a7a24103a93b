//! Message body length (RFC 9112 §6.3), and the refusal of heads that two readers could
//! frame differently. This check runs right after parsing: nothing else uses a request
//! before it has passed.
//!
//! Stricter than the RFC demands in one point, like nginx: a repeated
//! Content-Length is refused even when the values agree.

use http_semantics::{Excerpt, Presence, RequestView, Version, has_member, same_name};

use crate::error::{RequestError, ResponseError};
use crate::response::ResponseHead;

/// The length of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Neither length nor coding: no body.
    None,
    /// This many bytes follow the head.
    Length(u64),
    /// Chunks follow the head.
    Chunked,
}

/// The length of a response's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFraming {
    /// No body, whatever the fields are (HEAD, 1xx, 204, 304).
    None,
    /// This many bytes.
    Length(u64),
    Chunked,
    /// Everything until the upstream closes. A complete body and a cut one look the
    /// same.
    UntilClose,
}

/// Fields that may come once, as in nginx.
const SINGLE_FIELDS: [&[u8]; 11] = [
    HOST,
    b"expect",
    b"if-match",
    b"if-range",
    b"authorization",
    b"content-range",
    b"if-none-match",
    CONTENT_LENGTH,
    b"if-modified-since",
    TRANSFER_ENCODING,
    b"if-unmodified-since",
];
const SINGLE: Presence = Presence::of(&SINGLE_FIELDS);
const HOST: &[u8] = b"host";
const CONTENT_LENGTH: &[u8] = b"content-length";
const TRANSFER_ENCODING: &[u8] = b"transfer-encoding";

/// Checks the fields that decide about framing and routing, and returns the framing of
/// the body.
///
/// # Errors
/// Repeated single fields, no Host in HTTP/1.1, any doubt about the body's
/// length (400), a coding other than chunked (501), TRACE and CONNECT (405).
pub fn body_framing<'a>(head: impl Into<RequestView<'a>>) -> Result<Framing, RequestError> {
    let head = head.into();
    framing_beside_host(head, head.field(HOST).is_some())
}

/// Like [`body_framing`], for callers that already know whether there is a Host field.
///
/// # Errors
/// The errors of [`body_framing`].
pub fn framing_beside_host(head: RequestView<'_>, has_host: bool) -> Result<Framing, RequestError> {
    if head.line.presence.may_repeat(SINGLE) {
        refuse_repeated(head)?;
    }
    if !has_host && head.version() >= Version::Http11 {
        return Err(RequestError::MissingHost);
    }
    let coding = head.field(TRANSFER_ENCODING);
    let length = head
        .field(CONTENT_LENGTH)
        .map(|value| parse_length(value).ok_or(RequestError::InvalidContentLength))
        .transpose()?;
    let framing = match (coding, length) {
        (None, None) => Framing::None,
        (None, Some(length)) => Framing::Length(length),
        (Some(_), _) if head.version() < Version::Http11 => {
            return Err(RequestError::TransferEncodingIn10);
        }
        (Some(coding), _) if !coding.eq_ignore_ascii_case(b"chunked") => {
            return Err(RequestError::UnknownTransferEncoding(Excerpt::of(coding)));
        }
        (Some(_), Some(_)) => return Err(RequestError::LengthWithTransferEncoding),
        (Some(_), None) => Framing::Chunked,
    };
    match head.method() {
        b"TRACE" => Err(RequestError::TraceRefused),
        b"CONNECT" => Err(RequestError::ConnectRefused),
        _ => Ok(framing),
    }
}

/// Refuses the first repetition of one of [`SINGLE_FIELDS`].
fn refuse_repeated(head: RequestView<'_>) -> Result<(), RequestError> {
    let mut seen = [false; SINGLE_FIELDS.len()];
    for (name, value) in head.fields() {
        let single = SINGLE_FIELDS
            .iter()
            .position(|single| same_name(name, single));
        if let Some(single) = single
            && std::mem::replace(&mut seen[single], true)
        {
            return Err(RequestError::DuplicateField(Excerpt::of(
                &[name, b": ", value].concat(),
            )));
        }
    }
    Ok(())
}

/// One or more digits and nothing else, at most `i64::MAX` so that sums of
/// lengths cannot overflow.
fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0u64, |length, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        let length = length.checked_mul(10)?.checked_add(digit)?;
        (length <= i64::MAX as u64).then_some(length)
    })
}

/// How the body of `head` is framed, being the answer to a request with the
/// method `method`.
///
/// # Errors
/// Any doubt about the length, as for requests; the upstream's connection must
/// not be used again.
pub fn response_framing(
    head: &ResponseHead,
    method: &[u8],
) -> Result<ResponseFraming, ResponseError> {
    let length = at_most_one(head, CONTENT_LENGTH)?
        .map(|value| parse_length(value).ok_or(ResponseError::InvalidContentLength))
        .transpose()?;
    let coding = at_most_one(head, TRANSFER_ENCODING)?;
    if let Some(coding) = coding {
        if !coding.eq_ignore_ascii_case(b"chunked") {
            return Err(ResponseError::UnknownTransferEncoding(Excerpt::of(coding)));
        }
        if length.is_some() {
            return Err(ResponseError::LengthWithTransferEncoding);
        }
    }
    Ok(match (head.status, coding, length) {
        (100..=199 | 204 | 304, ..) => ResponseFraming::None,
        _ if method == b"HEAD" => ResponseFraming::None,
        (_, Some(_), _) => ResponseFraming::Chunked,
        (_, None, Some(length)) => ResponseFraming::Length(length),
        (_, None, None) => ResponseFraming::UntilClose,
    })
}

fn at_most_one<'a>(head: &'a ResponseHead, name: &[u8]) -> Result<Option<&'a [u8]>, ResponseError> {
    let mut values = head.fields.get_all(name);
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(ResponseError::DuplicateFraming),
    }
}

/// Whether the client wants the connection kept: in HTTP/1.1 unless the head has
/// `Connection: close`, in HTTP/1.0 only with `Connection: keep-alive`.
pub fn wants_keep_alive<'a>(head: impl Into<RequestView<'a>>) -> bool {
    let head = head.into();
    if !head.may_have(b"connection") {
        return head.version() == Version::Http11;
    }
    let says = |option: &[u8]| has_member(head.field_all(b"connection"), option);
    match head.version() {
        Version::Http09 => false,
        Version::Http10 => says(b"keep-alive") && !says(b"close"),
        Version::Http11 | Version::Http2 | Version::Http3 => !says(b"close"),
    }
}
