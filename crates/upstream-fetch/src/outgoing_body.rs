//! A request's body on its way to an upstream: one that is all there and can be sent again,
//! or one that is handed on while it arrives.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use transport::request_body::{RequestBody, SpooledBody};
use upstream_exchange::BodySource;

/// How much of a body in a file is handed on at once.
const FILE_PART_BYTES: usize = 32 * 1024;

/// A body that is handed on while it arrives. Its errors are the client's faults.
pub type StreamedBody = Box<dyn BodySource + Send + Sync>;

/// A body on its way to an upstream.
pub enum OutgoingBody {
    Memory(Bytes),
    Spooled {
        spooled: Arc<SpooledBody>,
        offset: u64,
    },
    Streamed(StreamedBody),
}

impl OutgoingBody {
    /// A body that can be sent again, as it is at its beginning.
    pub fn replay(body: &RequestBody) -> OutgoingBody {
        match body {
            RequestBody::Memory(bytes) => OutgoingBody::Memory(bytes.clone()),
            RequestBody::Spooled(spooled) => OutgoingBody::Spooled {
                spooled: spooled.clone(),
                offset: 0,
            },
            RequestBody::None | RequestBody::Unread | RequestBody::Streamed(_) => {
                OutgoingBody::Memory(Bytes::new())
            }
        }
    }
}

impl BodySource for OutgoingBody {
    fn is_at_end(&self) -> bool {
        match self {
            OutgoingBody::Memory(bytes) => bytes.is_empty(),
            OutgoingBody::Spooled { spooled, offset } => *offset == spooled.length(),
            OutgoingBody::Streamed(body) => body.is_at_end(),
        }
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match self {
            OutgoingBody::Memory(bytes) => {
                let all = std::mem::take(bytes);
                Poll::Ready((!all.is_empty()).then_some(Ok(all)))
            }
            OutgoingBody::Spooled { spooled, offset } => {
                let left = usize::try_from(spooled.length() - *offset).unwrap_or(usize::MAX);
                if left == 0 {
                    return Poll::Ready(None);
                }
                let mut piece = BytesMut::zeroed(left.min(FILE_PART_BYTES));
                match spooled.read_exact_at(&mut piece, *offset) {
                    Ok(()) => {
                        *offset += piece.len() as u64;
                        Poll::Ready(Some(Ok(piece.freeze())))
                    }
                    Err(error) => Poll::Ready(Some(Err(error))),
                }
            }
            OutgoingBody::Streamed(body) => body.poll_data(cx),
        }
    }
}
