//! The head of a response as a frame of HTTP/3.

use bytes::Bytes;
use http_semantics::{Fields, status};
use http3::FieldBlock;

use crate::head;
use crate::outbound::{FieldSink, SentHead};
use crate::service::Exchange;

/// The HEADERS frame of a response.
pub fn response<X: Exchange>(exchange: &X, sent: &SentHead) -> Bytes {
    let mut block = FieldBlock::new();
    block.put_status(status::shown(exchange.opening().status));
    head::walk(exchange, sent, &mut Block(&mut block));
    block.to_frame().into()
}

/// The HEADERS frame of an informational response.
pub fn informational(status: u16, fields: &[(Bytes, Bytes)]) -> Bytes {
    let mut block = FieldBlock::new();
    block.put_status(status);
    for (name, value) in fields {
        // One that HTTP/3 does not have is left out.
        let _ = block.put(name, value);
    }
    block.to_frame().into()
}

/// The HEADERS frame behind a body; `None` if no field is left.
pub fn trailers(fields: &Fields) -> Option<Bytes> {
    let mut block = FieldBlock::new();
    for (name, value) in fields.as_slice() {
        let _ = block.put(name, value);
    }
    (!block.is_empty()).then(|| block.to_frame().into())
}

/// Appends fields.
///
/// Fields that HTTP/3 does not have, and values with line breaks or NUL, are refused by the
/// codec and left out: the latter can only come from variables, and no response may be split by
/// them.
struct Block<'a>(&'a mut FieldBlock);

impl FieldSink for Block<'_> {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        let _ = self.0.put(name, value);
    }
}
