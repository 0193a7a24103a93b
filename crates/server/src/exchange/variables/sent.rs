//! Variables of the response that was sent to the client.

use std::sync::atomic::Ordering::Relaxed;

use site::{Builtin as B, Coding};

use crate::exchange::reply::ReplyHead;
use crate::exchange::request::Request;
use crate::exchange::value::{put, put_number};
use crate::exchange::variable_table::Value::{Delivery as Of, Reply};
use crate::exchange::variable_table::Variables;

#[rustfmt::skip]
pub const VARIABLES: Variables = &[
    (B::BodyBytesSent, Of(|delivery, out| put_number(delivery.body_bytes_sent(), out))),
    (B::BrotliRatio, Reply(|request, sent, out| put_ratio(request, sent, Coding::Brotli, out))),
    (B::BytesSent, Of(|delivery, out| put_number(delivery.bytes_sent.load(Relaxed), out))),
    (B::GzipRatio, Reply(|request, sent, out| put_ratio(request, sent, Coding::Gzip, out))),
    (B::LimitRate, Of(|delivery, out| put_number(delivery.limit_rate.unwrap_or(0), out))),
    (B::RequestCompletion, Of(|delivery, out| put(Some(if delivery.is_complete { b"OK" } else { b"" }), out))),
    (B::Status, Reply(put_status)),
    (B::ZstdRatio, Reply(|request, sent, out| put_ratio(request, sent, Coding::Zstd, out))),
];

fn put_status(request: &Request, sent: Option<&ReplyHead>, out: &mut Vec<u8>) -> bool {
    // Like in nginx, whose own codes for kinds of a bad request clients never see.
    let status = match sent.map_or(request.delivery.status, |head| head.status) {
        494..=497 => 400,
        status => status,
    };
    if status < 100 {
        out.extend_from_slice(b"00");
    }
    put_number(status, out)
}

fn put_ratio(
    request: &Request,
    sent: Option<&ReplyHead>,
    coding: Coding,
    out: &mut Vec<u8>,
) -> bool {
    let sent = sent.or(request.delivery.reply.as_ref().map(|reply| &reply.head));
    let Some(ratio) = sent.and_then(|head| head.ratio(coding)) else {
        return false;
    };
    out.extend_from_slice(format!("{ratio:.2}").as_bytes());
    true
}
