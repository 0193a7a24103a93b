//! Reading a body piece by piece, wherever its bytes are.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::content::slice::Slices;
use crate::exchange::reply::{Body, Segment};
use crate::respond::SendError;
use crate::respond::recode::Recoder;
use crate::upstreams::fetch::UpstreamBody;

/// Read from a file at once.
const READ_BYTES: u64 = 64 * 1024;

/// A body, expanded on the way where it is compressed.
pub struct Source {
    bytes: Pieces,
    expander: Option<Recoder>,
}

enum Pieces {
    AtHand(VecDeque<Segment>),
    Filling(Box<http_cache::Reader>),
    Upstream(Box<UpstreamBody>),
    Sliced(Box<Slices>),
}

impl Source {
    pub fn new(body: Body, expander: Option<Recoder>) -> Source {
        Source {
            bytes: Pieces::new(body),
            expander,
        }
    }

    /// The next bytes, which are some; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, SendError> {
        loop {
            let next = self.bytes.next().await?;
            let bytes = match (&mut self.expander, next) {
                (None, next) => return Ok(next),
                (Some(expander), Some(bytes)) => expander.push(&bytes)?,
                (Some(expander), None) => {
                    let rest = expander.finish()?;
                    self.expander = None;
                    rest
                }
            };
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
    }
}

impl Pieces {
    fn new(body: Body) -> Pieces {
        match body {
            Body::Empty | Body::Tunnel(_) => Pieces::AtHand(VecDeque::new()),
            Body::Stored {
                response,
                start,
                end,
            } => Pieces::AtHand(
                response
                    .body
                    .slice(start..end)
                    .map(Segment::Memory)
                    .collect(),
            ),
            Body::Segments(segments) => Pieces::AtHand(segments),
            Body::Encoded(body) => {
                Pieces::AtHand(body.chunks().iter().cloned().map(Segment::Memory).collect())
            }
            Body::Filling(reader) => Pieces::Filling(reader),
            Body::Upstream(upstream) => Pieces::Upstream(upstream),
            Body::Sliced(slices) => Pieces::Sliced(slices),
            // Ranges are for whole responses, which have none while commands run.
            Body::Window { body, .. } => Pieces::new(*body),
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, SendError> {
        match self {
            Pieces::Filling(reader) => reader.next_chunk().await.map_err(|_| SendError::Truncated),
            Pieces::Sliced(slices) => slices.next().await.map_err(|_| SendError::Truncated),
            Pieces::Upstream(upstream) => upstream.next().await.map_err(|_| SendError::Truncated),
            Pieces::AtHand(pieces) => match pieces.pop_front() {
                None => Ok(None),
                Some(Segment::Memory(bytes)) => Ok(Some(bytes)),
                Some(Segment::File {
                    file,
                    offset,
                    length,
                }) => {
                    let wanted = length.min(READ_BYTES);
                    let mut bytes = vec![0; usize::try_from(wanted).unwrap_or(0)];
                    file.read_exact_at(&mut bytes, offset)?;
                    if wanted < length {
                        pieces.push_front(Segment::File {
                            file,
                            offset: offset + wanted,
                            length: length - wanted,
                        });
                    }
                    Ok(Some(bytes.into()))
                }
            },
        }
    }
}
