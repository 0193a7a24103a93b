//! Server Side Includes: pages put together from parts
//! (<https://nginx.org/en/docs/http/ngx_http_ssi_module.html>).
//!
//! ```text
//! body ─► parts::Source: text and commands ─► run ─► text, and bodies of other requests
//! ```
//!
//! Includes of one stretch are asked for at the same time and sent in order. Conditions may
//! nest, which nginx's may not.

mod run;

pub use run::Page;

use crate::exchange::reply::Reply;
use crate::exchange::request::Request;

/// Decides whether the body is run, and changes the fields accordingly.
pub fn choose(request: &Request, reply: &mut Reply) -> bool {
    if !applies(request, reply) {
        return false;
    }
    reply.head.unpack();
    reply.head.content_length = None;
    reply.head.form.accepts_ranges = false;
    reply.head.fields.remove("accept-ranges");
    reply.head.fields.remove("etag");
    if !request.settings().ssi.last_modified {
        reply.head.fields.remove("last-modified");
        reply.head.last_modified = None;
    }
    true
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
