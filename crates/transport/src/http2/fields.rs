//! The head of a response as a block of HPACK (RFC 7541).

use std::cell::RefCell;

use http2::{EncodedFields, FieldBlock};

use crate::head;
use crate::outbound::{FieldSink, SentHead};
use crate::service::Exchange;

thread_local! {
    /// The thread's buffer for heads, written one after the other.
    static WRITER: RefCell<Writer> = const {
        RefCell::new(Writer { block: FieldBlock::new(), encoded: EncodedFields::new() })
    };
}

/// Hands the fields of the response to `send`.
pub fn with_block<X: Exchange, R>(
    exchange: &X,
    sent: &SentHead,
    send: impl FnOnce(&FieldBlock) -> R,
) -> R {
    WRITER.with_borrow_mut(|writer| {
        writer.block.clear();
        head::walk(exchange, sent, writer);
        send(&writer.block)
    })
}

/// Appends fields to a block.
///
/// Fields that HTTP/2 does not have, and values with line breaks or NUL, are refused by the
/// codec and left out: the latter can only come from variables, and no response may be split by
/// them.
struct Writer {
    block: FieldBlock,
    encoded: EncodedFields,
}

impl FieldSink for Writer {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        let _ = self.encoded.put(&mut self.block, name, value);
    }
}
