//! The fields of a response, in the order in which they are sent: for the writer of the head, and
//! for `$sent_http_*`.

use std::fmt::Write as _;
use std::time::Duration;

use http_cache::{Outcome, Reason, ServedFrom};
use http_semantics::is_spelt;
use transport::outbound::FieldSink;

use crate::exchange::reply::ReplyHead;
use crate::exchange::request::Request;

/// All fields of the response `head`, but for those of the transport.
#[inline]
pub fn walk(request: &Request, head: &ReplyHead, to: &mut impl FieldSink) {
    head.walk(to);
    request.cache.read(|notes| {
        if let Some(outcome) = &notes.outcome {
            if let Some(age) = notes.age
                && (outcome.served != ServedFrom::No || age > 0)
            {
                to.number(b"Age: ", age);
            }
            if request.settings().headers.cache_status {
                cache_status(outcome, notes.reason, to);
            }
        }
        if let Some(lifetime) = notes.marks_writer {
            to.field(b"Set-Cookie", writer_cookie(lifetime).as_bytes());
        }
    });
}

/// The `Cache-Status` field (RFC 9211); the plain hit without the formatter.
fn cache_status(outcome: &Outcome, reason: Option<Reason>, to: &mut impl FieldSink) {
    let plain_hit = Outcome {
        ttl_secs: outcome.ttl_secs,
        ..Outcome::hit(Duration::ZERO)
    };
    let ttl = outcome.ttl_secs.and_then(|ttl| u64::try_from(ttl).ok());
    match ttl {
        Some(ttl) if *outcome == plain_hit && reason.is_none() => {
            to.number(b"Cache-Status: mayfly; hit; ttl=", ttl);
        }
        _ => {
            // Most are no longer, and a text that grows is copied.
            let mut value = String::with_capacity(96);
            let _ = write!(value, "{}", outcome.cache_status("mayfly", reason));
            to.field(b"Cache-Status", value.as_bytes());
        }
    }
}

fn writer_cookie(lifetime: Duration) -> String {
    let milliseconds = clock::millis(lifetime);
    // Counted from the end of the write: the application may have taken long.
    let until = clock::now().saturating_add(milliseconds);
    let seconds = milliseconds.div_ceil(1000);
    let name = String::from_utf8_lossy(site::WRITER_COOKIE);
    format!("{name}={until}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Lax")
}

/// Appends `$sent_http_NAME` of the response `head`; false if no such field is sent.
pub fn write(request: &Request, head: &ReplyHead, name: &[u8], out: &mut Vec<u8>) -> bool {
    match (&request.delivery.sent_head, head.content_length) {
        // How the body will be framed is not known yet.
        (None, Some(length)) if name == b"content_length" => {
            decimal::put(length, out);
            return true;
        }
        _ => {}
    }
    let mut values = Values {
        name,
        out,
        is_any: false,
    };
    if let Some(sent) = &request.delivery.sent_head {
        sent.walk(&mut values);
    }
    walk(request, head, &mut values);
    values.is_any
}

/// Appends the values of all fields that a variable names.
struct Values<'a> {
    name: &'a [u8],
    out: &'a mut Vec<u8>,
    is_any: bool,
}

impl FieldSink for Values<'_> {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        if !is_spelt(self.name, name) {
            return;
        }
        if self.is_any {
            self.out.extend_from_slice(b", ");
        }
        self.out.extend_from_slice(value);
        self.is_any = true;
    }
}
