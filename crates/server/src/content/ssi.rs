//! Server Side Includes: pages put together from parts
//! (<https://nginx.org/en/docs/http/ngx_http_ssi_module.html>).
//!
//! ```text
//! body ─► scan: text and commands ─► run ─► text, and bodies of other requests
//! ```
//!
//! A body is read as it comes; includes of one stretch are asked for at the same
//! time and sent in order. Conditions may nest, which nginx's may not.

mod run;
mod scan;
mod source;

pub use source::Source;

use crate::exchange::reply::Reply;
use crate::exchange::request::Request;
use crate::respond::{BodyFraming, SendError, Sender};

/// Requests within requests: deeper than this is a cycle.
pub const MAX_DEPTH: u8 = 20;

/// Decides whether the body is run, and changes the fields accordingly.
pub fn choose(request: &mut Request, reply: &mut Reply) {
    request.runs_ssi = applies(request, reply);
    if !request.runs_ssi {
        return;
    }
    reply.head.unpack();
    reply.head.content_length = None;
    reply.head.accepts_ranges = false;
    reply.head.fields.remove("accept-ranges");
    reply.head.fields.remove("etag");
    if !request.settings().ssi.last_modified {
        reply.head.fields.remove("last-modified");
        reply.head.last_modified = None;
    }
}

fn applies(request: &Request, reply: &Reply) -> bool {
    request.settings().ssi.enabled
        && reply.head.content_length != Some(0)
        && !reply.head.has("content-encoding")
        && reply
            .head
            .field("content-type")
            .is_some_and(|value| request.settings().ssi.types.contains(value))
}

/// Runs a body and sends what comes of it.
pub async fn send(
    request: &mut Request,
    sender: &mut Sender<'_>,
    body: crate::exchange::reply::Body,
    framing: BodyFraming,
) -> Result<(), SendError> {
    let mut out = run::Out::Client { sender, framing };
    run::run(request, Source::new(body, None), &mut out).await
}
