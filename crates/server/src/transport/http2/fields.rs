//! The head of a response as a block of HPACK (RFC 7541).

use std::cell::RefCell;

use http2::FieldBlock;

use crate::transport::head;
use crate::transport::outbound::{FieldSink, SentHead};
use crate::transport::service::Exchange;

thread_local! {
    /// What a thread writes heads in, one after the other.
    static BLOCK: RefCell<FieldBlock> = const { RefCell::new(FieldBlock::new()) };
}

/// Hands the fields of the response to `send`.
pub fn with_block<X: Exchange, R>(
    exchange: &X,
    sent: &SentHead,
    send: impl FnOnce(&FieldBlock) -> R,
) -> R {
    BLOCK.with_borrow_mut(|block| {
        block.clear();
        head::walk(exchange, sent, &mut Block(block));
        send(block)
    })
}

/// Appends fields.
///
/// What HTTP/2 does not have, and values with line breaks or NUL, are refused by the codec and
/// left out: the latter can only come from variables, and no response may be split by them.
struct Block<'a>(&'a mut FieldBlock);

impl FieldSink for Block<'_> {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        let _ = self.0.put(name, value);
    }
}
