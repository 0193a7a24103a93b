//! The fields of a response for protocols whose heads are nothing but fields: HTTP/2 and
//! HTTP/3. (HTTP/1 has a writer of its own.)

use crate::outbound::{FieldSink, SentHead, ServerField};
use crate::service::Exchange;

/// Hands all fields of a response's head to `to`, in their order.
pub fn walk<X: Exchange>(exchange: &X, sent: &SentHead, to: &mut impl FieldSink) {
    let version = concat!("mayfly/", env!("CARGO_PKG_VERSION"));
    let opening = exchange.opening();
    match opening.server {
        ServerField::Version => to.field(b"server", version.as_bytes()),
        ServerField::Name => to.field(b"server", b"mayfly"),
        ServerField::Text(text) => to.field(b"server", text),
        ServerField::None => {}
    }
    if let Some(now_ms) = opening.date {
        clock::with_date(now_ms, |date| to.field(b"date", date.as_bytes()));
    }
    sent.walk(to);
    exchange.walk_fields(to);
}
