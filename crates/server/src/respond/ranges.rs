//! Byte ranges (RFC 9110 §14): one as it is, several as multipart/byteranges.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_cache::KnownField;
use http_semantics::conditional::{self, Validators};
use http_semantics::range::{self, Ranges};
use site::Settings;

use crate::exchange::reply::{Body, Reply, ReplyHead, Segment};
use crate::exchange::request::Request;
use crate::respond::window::Window;

/// Cuts the reply to the client's ranges.
#[inline]
pub fn apply(request: &Request, settings: &Settings, reply: &mut Reply) {
    let max = settings.files.max_ranges;
    let Some(length) = reply.head.content_length.filter(|_| max != Some(0)) else {
        return;
    };
    match request.received.head().field("range") {
        None => promise(&mut reply.head),
        Some(asked) => answer(request, reply, (asked, max), length),
    }
}

/// Says that ranges may be asked for.
#[inline]
fn promise(head: &mut ReplyHead) {
    head.added.accept_ranges = head.known(KnownField::AcceptRanges).is_none();
}

/// Answers the ranges `asked` for, of which there may be `max`.
#[inline(never)]
fn answer(request: &Request, reply: &mut Reply, (asked, max): (&[u8], Option<usize>), length: u64) {
    let ranges = match range_applies(request, reply) {
        true => range::parse_ranges(asked, length, max),
        false => Ranges::Ignore,
    };
    match ranges {
        Ranges::Ignore => promise(&mut reply.head),
        Ranges::NotSatisfiable => {
            let mut page = super::status_page(request, 416);
            page.head
                .fields
                .append("Content-Range", format!("bytes */{length}"));
            page.head.is_final = true;
            *reply = page;
        }
        Ranges::Satisfiable(ranges) if ranges.len() == 1 => {
            let (start, end) = ranges.first().copied().unwrap_or((0, length));
            single(reply, start, end);
            partial(reply, end - start);
            reply.head.fields.set(
                "Content-Range",
                format!("bytes {start}-{}/{length}", end - 1),
            );
        }
        Ranges::Satisfiable(ranges) if reply.body.is_at_hand() => multiple(reply, &ranges, length),
        Ranges::Satisfiable(_) => {}
    }
}

fn range_applies(request: &Request, reply: &Reply) -> bool {
    let last_modified = super::last_modified(reply);
    let validators = Validators {
        etag: reply.head.known(KnownField::ETag),
        last_modified,
    };
    conditional::range_applies(request.received.head(), validators)
}

fn partial(reply: &mut Reply, length: u64) {
    reply.head.unpack();
    reply.head.fields.remove("accept-ranges");
    reply.head.status = 206;
    reply.head.reason = None;
    reply.head.content_length = Some(length);
}

/// Cuts the body to one range, now or while it arrives.
fn single(reply: &mut Reply, start: u64, end: u64) {
    reply.body = match std::mem::replace(&mut reply.body, Body::Empty) {
        Body::Stored {
            response,
            start: from,
            ..
        } => Body::Stored {
            response,
            start: from + start,
            end: from + end,
        },
        body if body.is_at_hand() => Body::Segments(body.part(start, end)),
        body => Body::Arriving(Window::on(body.into_arriving(), start, end)),
    };
}

fn multiple(reply: &mut Reply, ranges: &[(u64, u64)], length: u64) {
    static SERIAL: AtomicU64 = AtomicU64::new(1);
    let boundary = format!("{:020}", SERIAL.fetch_add(1, Ordering::Relaxed));
    let content_type = reply.head.field("content-type").map(<[u8]>::to_vec);
    let mut pieces = VecDeque::new();
    for &(start, end) in ranges {
        let mut head = format!("\r\n--{boundary}\r\n").into_bytes();
        if let Some(content_type) = &content_type {
            head.extend_from_slice(b"Content-Type: ");
            head.extend_from_slice(content_type);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(
            format!("Content-Range: bytes {start}-{}/{length}\r\n\r\n", end - 1).as_bytes(),
        );
        pieces.push_back(Segment::Memory(Bytes::from(head)));
        pieces.extend(reply.body.part(start, end));
    }
    pieces.push_back(Segment::Memory(Bytes::from(format!(
        "\r\n--{boundary}--\r\n"
    ))));
    let total = pieces.iter().map(Segment::length).sum();
    partial(reply, total);
    // Each part has its own; the head must have none (RFC 9110 §15.3.7.2).
    reply.head.fields.remove("content-range");
    reply.head.fields.set(
        "Content-Type",
        format!("multipart/byteranges; boundary={boundary}"),
    );
    reply.body = Body::Segments(pieces);
}
