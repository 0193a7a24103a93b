//! Reading a body piece by piece, wherever its bytes are.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::fetch::UpstreamBody;
use crate::reply::{Body, Segment};
use crate::respond::SendError;
use crate::serve::slice::Slices;

/// Read from a file at once.
const READ_BYTES: u64 = 64 * 1024;

pub enum Source {
    Pieces(VecDeque<Segment>),
    Filling(Box<http_cache::Reader>),
    Upstream(Box<UpstreamBody>),
    Sliced(Box<Slices>),
}

impl Source {
    pub fn new(body: Body) -> Source {
        match body {
            Body::Empty | Body::Tunnel(_) => Source::Pieces(VecDeque::new()),
            Body::Stored {
                response,
                start,
                end,
            } => Source::Pieces(
                response
                    .body
                    .slice(start..end)
                    .map(Segment::Memory)
                    .collect(),
            ),
            Body::Segments(segments) => Source::Pieces(segments),
            Body::Encoded(body) => {
                Source::Pieces(body.chunks().iter().cloned().map(Segment::Memory).collect())
            }
            Body::Filling(reader) => Source::Filling(reader),
            Body::Upstream(upstream) => Source::Upstream(upstream),
            Body::Sliced(slices) => Source::Sliced(slices),
            // Ranges are for whole responses, which have none while commands run.
            Body::Window { body, .. } => Source::new(*body),
        }
    }

    /// The next bytes; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, SendError> {
        match self {
            Source::Filling(reader) => reader.next_chunk().await.map_err(|_| SendError::BrokenOff),
            Source::Sliced(slices) => slices.next().await.map_err(|_| SendError::BrokenOff),
            Source::Upstream(upstream) => upstream.next().await.map_err(|_| SendError::BrokenOff),
            Source::Pieces(pieces) => match pieces.pop_front() {
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
