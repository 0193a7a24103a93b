//! Field blocks: collected from HEADERS and CONTINUATION (RFC 9113 §4.3, §6.10), then read
//! as a request, as trailers, or only for the state of compression.

use super::{Connection, Shutdown, Step};
use crate::bounds::{Flood, max_continuations};
use crate::error::{ConnectionError, ErrorCode, FrameError, StreamError};
use crate::flow::SendWindow;
use crate::frame::{FrameHeader, FrameKind, StreamId, write_reset};
use crate::head::{
    HeadBuffer, RequestFacts, max_block_bytes, read_request, read_trailers, skip_block,
};
use crate::progress::Progress;
use crate::request_error::RequestError;
use crate::stream::{BodyQueue, RequestState, ResponseState, Stream, StreamState, Tail};

/// A field block that has begun.
#[derive(Debug)]
pub(super) struct OpenBlock {
    stream: StreamId,
    end_stream: bool,
    depends_on_itself: bool,
    /// Fragments before the last.
    bytes: Vec<u8>,
    continuations: u32,
}

impl OpenBlock {
    pub(super) fn stream(&self) -> StreamId {
        self.stream
    }
}

/// The use of a field block, which depends on its stream.
enum BlockUse {
    NewRequest,
    Trailers,
    /// The request is malformed already, or comes too late.
    Ignored,
    /// Nothing is done on this stream.
    Refused(StreamError),
}

impl Connection {
    pub(super) fn begin_block(
        &mut self,
        stream: StreamId,
        end_stream: bool,
        depends_on_itself: bool,
    ) {
        self.block = Some(OpenBlock {
            stream,
            end_stream,
            depends_on_itself,
            bytes: Vec::new(),
            continuations: 0,
        });
    }

    /// Adds a fragment, and reads the block if that was the last.
    pub(super) fn add_to_block<'a>(
        &mut self,
        fragment: &[u8],
        is_last: bool,
        head: &mut HeadBuffer,
    ) -> Result<Option<Step<'a>>, FrameError> {
        let Some(mut block) = self.block.take() else {
            return Ok(None);
        };
        if block.bytes.len() + fragment.len() > max_block_bytes(&self.settings.head) {
            return Err(ConnectionError::FieldBlockTooLarge.into());
        }
        if is_last && block.bytes.is_empty() {
            return self.read_block(&block, fragment, head);
        }
        block.bytes.extend_from_slice(fragment);
        if is_last {
            return self.read_block(&block, &block.bytes, head);
        }
        // The HEADERS frame counts as the first.
        block.continuations += 1;
        if block.continuations > max_continuations() {
            return Err(ConnectionError::Flood(Flood::Continuations).into());
        }
        self.block = Some(block);
        Ok(None)
    }

    /// Resets the stream whose head takes too long: a field block that has begun, or one whose
    /// first frame begins `input` and is not whole. The rest of the block is read for the state of
    /// compression alone (§4.3), and other streams go on. Returns the stream; `None` if there is
    /// no such head, or if it is ignored already.
    pub fn reset_late_head(&mut self, input: &[u8]) -> Option<StreamId> {
        let stream = match &self.block {
            Some(block) => block.stream,
            None => {
                let header = FrameHeader::read(input)?;
                (header.kind == FrameKind::Headers).then_some(header.stream)?
            }
        };
        if matches!(self.block_use(stream), Ok(BlockUse::Ignored) | Err(_)) {
            return None;
        }
        if self.remove(stream, true).is_none() {
            self.closed.push(stream, true);
            self.last_stream = self.last_stream.max(stream);
        }
        write_reset(&mut self.pending, stream, ErrorCode::PROTOCOL_ERROR);
        Some(stream)
    }

    fn read_block<'a>(
        &mut self,
        block: &OpenBlock,
        bytes: &[u8],
        head: &mut HeadBuffer,
    ) -> Result<Option<Step<'a>>, FrameError> {
        let id = block.stream;
        let mut block_use = self.block_use(id)?;
        if block.depends_on_itself && !matches!(block_use, BlockUse::Ignored) {
            block_use = BlockUse::Refused(StreamError::SelfDependency);
        }
        let limits = &self.settings.head;
        match block_use {
            BlockUse::NewRequest => {
                self.last_stream = id;
                let request = read_request(&mut self.decoder, bytes, limits, head)?;
                self.open(block, bytes.len(), request)
            }
            BlockUse::Trailers => {
                let trailers = read_trailers(&mut self.decoder, bytes, limits, head)?;
                self.on_trailers(id, block.end_stream, trailers)
            }
            BlockUse::Ignored => {
                skip_block(&mut self.decoder, bytes, limits, head)?;
                self.charge(Flood::IgnoredFrames)?;
                Ok(None)
            }
            BlockUse::Refused(error) => {
                self.last_stream = self.last_stream.max(id);
                skip_block(&mut self.decoder, bytes, limits, head)?;
                Err(FrameError::Stream(id, error))
            }
        }
    }

    /// §5.1, §5.1.1, §5.1.2.
    fn block_use(&self, id: StreamId) -> Result<BlockUse, ConnectionError> {
        if let Some(stream) = self.streams.get(&id) {
            return Ok(if stream.request != RequestState::Valid {
                BlockUse::Ignored
            } else if stream.state.may_receive() {
                BlockUse::Trailers
            } else {
                BlockUse::Refused(StreamError::Closed(FrameKind::Headers))
            });
        }
        if !id.is_from_client() || id <= self.last_stream {
            return match self.closed.find(id) {
                Some(true) => Ok(BlockUse::Ignored),
                Some(false) => Err(ConnectionError::ClosedStream(FrameKind::Headers, id)),
                None => Err(ConnectionError::InvalidNewStream(id)),
            };
        }
        if self.shutdown == Shutdown::Final {
            return Ok(BlockUse::Ignored);
        }
        match self.streams.len() >= self.settings.max_concurrent_streams as usize {
            true => Ok(BlockUse::Refused(StreamError::Refused)),
            false => Ok(BlockUse::NewRequest),
        }
    }

    fn open<'a>(
        &mut self,
        block: &OpenBlock,
        block_bytes: usize,
        request: Result<RequestFacts, RequestError>,
    ) -> Result<Option<Step<'a>>, FrameError> {
        let (id, end_stream) = (block.stream, block.end_stream);
        let updated = self.take_priority(id);
        let facts = request.as_ref().copied().unwrap_or_default();
        let mut stream = Stream {
            state: StreamState::opened(end_stream),
            answer: ResponseState::Awaited,
            request: RequestState::Valid,
            // A frame that came before counts more than the field (RFC 9218 §7).
            priority: updated.unwrap_or(facts.priority),
            is_scheduled: false,
            send_window: SendWindow::new(self.peer.initial_window_bytes),
            receive_window: self.new_receive_window(),
            body_left: facts.content_length,
            body: BodyQueue::default(),
            tail: Tail::Unknown,
            chunk_bytes: self.settings.chunk_bytes.max(1),
            sent_bytes: 0,
            progress: Progress::new(self.now),
        };
        let has_right_length = !end_stream || stream.count_body(0, true);
        let error = match request {
            Ok(_) if has_right_length => None,
            Ok(_) => Some(RequestError::BodyLength),
            Err(error) => Some(error),
        };
        let is_malformed = error.as_ref().map(RequestError::is_malformed);
        stream.request = match is_malformed {
            None => RequestState::Valid,
            Some(false) => RequestState::Refused,
            Some(true) => RequestState::Malformed,
        };
        self.streams.insert(id, stream);
        if is_malformed == Some(true) {
            self.charge(Flood::StreamErrors)?;
        }
        Ok(Some(match error {
            Some(error) => Step::BadRequest(id, error),
            None => Step::Request {
                stream: id,
                block_bytes,
                content_length: facts.content_length,
                end_stream,
            },
        }))
    }

    /// §8.1.
    fn on_trailers<'a>(
        &mut self,
        id: StreamId,
        end_stream: bool,
        trailers: Result<(), RequestError>,
    ) -> Result<Option<Step<'a>>, FrameError> {
        if let Err(error) = trailers {
            return self.on_malformed(id, error);
        }
        if !end_stream {
            return self.on_malformed(id, RequestError::UnendedTrailers);
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            return Ok(None);
        };
        if !stream.count_body(0, true) {
            return self.on_malformed(id, RequestError::BodyLength);
        }
        let is_answered = stream.state == StreamState::HalfClosedLocal;
        stream.state = stream.state.receive_end();
        if is_answered {
            self.drop_rest(id, 0);
            return Ok(None);
        }
        Ok(Some(Step::Trailers(id)))
    }
}
