//! The head of a response as a block of HPACK (RFC 7541).

use std::cell::RefCell;

use http2::FieldBlock;

use crate::base::clock;
use crate::transport::outbound::{FieldSink, Opening, SentHead, ServerField};
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
        put_opening(&exchange.opening(), block);
        let mut fields = Block(block);
        sent.walk(&mut fields);
        exchange.walk_fields(&mut fields);
        send(block)
    })
}

fn put_opening(opening: &Opening<'_>, block: &mut FieldBlock) {
    let version = concat!("mayfly/", env!("CARGO_PKG_VERSION"));
    let _ = match opening.server {
        ServerField::Version => block.put("server", version),
        ServerField::Name => block.put("server", "mayfly"),
        ServerField::Text(text) => block.put("server", text),
        ServerField::None => Ok(()),
    };
    if let Some(now_ms) = opening.date {
        clock::with_date(now_ms, |date| {
            let _ = block.put("date", date);
        });
    }
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
