//! Responses: heads and trailers become frames at once, bodies wait for windows and for
//! their turn.

use std::time::Instant;

use bytes::Bytes;

use super::Connection;
use crate::bounds::{
    CONNECTION_QUEUE_BYTES, Flood, OUTPUT_BYTES, STREAM_QUEUE_BYTES, TINY_PIECE_BYTES,
};
use crate::error::{ConnectionError, ErrorCode};
use crate::event::Notice;
use crate::field_block::FieldBlock;
use crate::frame::{
    END_HEADERS, END_STREAM, FrameKind, HEADER_BYTES, StreamId, set_frame_length,
    write_data_header, write_frame_header, write_reset,
};
use crate::hpack;
use crate::output::Output;
use crate::progress::Progress;
use crate::stream::{RequestState, ResponseState, Stream, StreamState, Tail};

/// Why something was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The stream is closed: the client reset it, or the response had ended.
    #[error("the stream is closed")]
    Closed,
    /// A second head, a body before the head, something behind the end, or a status that
    /// cannot be where it is. Nothing was sent.
    #[error("a part of a response out of order")]
    OutOfOrder,
}

impl Connection {
    /// Sends an informational response (RFC 9110 §15.2), such as 103. Not 101, which
    /// HTTP/2 does not have (RFC 9113 §8.6).
    ///
    /// # Errors
    /// [`SendError::OutOfOrder`] behind the head of the final response.
    pub fn send_informational(
        &mut self,
        stream: StreamId,
        status: u16,
        fields: &[&FieldBlock],
    ) -> Result<(), SendError> {
        self.stream_in(stream, ResponseState::Awaited)?;
        if !(100..200).contains(&status) || status == 101 {
            return Err(SendError::OutOfOrder);
        }
        self.put_head(stream, status, fields, false);
        Ok(())
    }

    /// Sends the head of a response: its fields are all those of the blocks, in order.
    /// `end_stream`: nothing follows.
    ///
    /// # Errors
    /// [`SendError`]; then nothing was sent.
    pub fn send_response(
        &mut self,
        stream: StreamId,
        status: u16,
        fields: &[&FieldBlock],
        end_stream: bool,
    ) -> Result<(), SendError> {
        let found = self.stream_in(stream, ResponseState::Awaited)?;
        if !(200..1000).contains(&status) {
            return Err(SendError::OutOfOrder);
        }
        found.answer = ResponseState::Body;
        self.put_head(stream, status, fields, end_stream);
        if end_stream {
            self.finish_in_pending(stream);
        }
        Ok(())
    }

    /// Gives a piece of a response's body, of any length. It is sent as the windows allow:
    /// keep to [`Connection::room`] where the whole is not in memory anyway.
    ///
    /// # Errors
    /// [`SendError`]; then the piece is not sent.
    pub fn send_body(
        &mut self,
        stream: StreamId,
        piece: Bytes,
        end_stream: bool,
    ) -> Result<(), SendError> {
        let now = self.now;
        let found = self.stream_in(stream, ResponseState::Body)?;
        if found.body.is_empty() {
            found.progress = Progress::new(now);
        }
        let bytes = piece.len();
        found.body.push(piece);
        if end_stream {
            found.answer = ResponseState::Whole;
            found.tail = Tail::End;
            if found.body.is_empty() {
                found.sent_bytes += HEADER_BYTES as u64;
                write_data_header(&mut self.pending, stream, 0, true);
                self.finish_in_pending(stream);
                return Ok(());
            }
        }
        self.queued_bytes += bytes;
        self.schedule(stream);
        Ok(())
    }

    /// Ends a response with trailers.
    ///
    /// # Errors
    /// [`SendError`]; then nothing was sent.
    pub fn send_trailers(
        &mut self,
        stream: StreamId,
        fields: &FieldBlock,
    ) -> Result<(), SendError> {
        let found = self.stream_in(stream, ResponseState::Body)?;
        found.answer = ResponseState::Whole;
        if found.body.is_empty() {
            let mut pending = std::mem::take(&mut self.pending);
            self.put_block(&mut pending, stream, END_STREAM, |out| {
                out.extend_from_slice(fields.as_bytes());
            });
            self.finish(stream, &mut pending);
            self.pending = pending;
        } else {
            found.tail = Tail::Trailers(fields.as_bytes().to_vec());
        }
        Ok(())
    }

    /// Returns how many bytes of a response's body the client's windows let out, beyond those that were
    /// given.
    pub fn window(&self, stream: StreamId) -> usize {
        let Some(stream) = self.streams.get(&stream) else {
            return 0;
        };
        let own = stream.send_window.available();
        let shared = self.send_window.available();
        let own = own.saturating_sub(stream.body.len());
        own.min(shared.saturating_sub(self.queued_bytes))
    }

    /// Returns how many bytes of a response's body should be given now where giving them costs memory:
    /// as many as the windows and the bounds of the queue let out.
    pub fn room(&self, stream: StreamId) -> usize {
        let queued = self.queued_bytes(stream);
        let own = STREAM_QUEUE_BYTES.saturating_sub(queued);
        let shared = CONNECTION_QUEUE_BYTES.saturating_sub(self.queued_bytes);
        self.window(stream).min(own).min(shared)
    }

    /// Returns whether [`Connection::room`] may have grown since this was asked last.
    pub fn take_room_change(&mut self) -> bool {
        std::mem::take(&mut self.has_more_room)
    }

    /// Returns how urgent a response is (RFC 9218 §4.1): the lower, the more.
    pub fn urgency(&self, stream: StreamId) -> u8 {
        let found = self.streams.get(&stream);
        found.map_or(u8::MAX, |stream| stream.priority.urgency)
    }

    /// Returns when the connection last made progress, as long as the stream's own window is open: it
    /// waits for its turn.
    pub fn last_turn(&self, stream: StreamId) -> Option<Instant> {
        let found = self.streams.get(&stream)?;
        (found.send_window.available() > 0).then_some(self.progress.at)
    }

    /// Returns how many bytes of a response's body were given and are not in the output yet.
    pub fn queued_bytes(&self, stream: StreamId) -> usize {
        self.streams
            .get(&stream)
            .map_or(0, |stream| stream.body.len())
    }

    /// Moves frames into the output: all that are no DATA, then DATA in the order of
    /// priorities and as far as windows allow. It stops when the output has some
    /// hundred kilobytes; write it, and come again.
    ///
    /// # Errors
    /// The errors of [`Connection::receive`]: the client's windows are so small that nearly nothing fits
    /// in a frame.
    pub fn take_output(&mut self, out: &mut Output, now: Instant) -> Result<(), ConnectionError> {
        self.now = now;
        loop {
            if !self.pending.is_empty() {
                out.write(|frames| frames.append(&mut self.pending));
            }
            if out.len() >= OUTPUT_BYTES || self.send_window.available() == 0 {
                return Ok(());
            }
            let Some(stream) = self.scheduler.next() else {
                return Ok(());
            };
            if let Err(error) = self.send_data(stream, out) {
                let error = self.fail(error);
                out.write(|frames| frames.append(&mut self.pending));
                return Err(error);
            }
        }
    }

    /// Sends one DATA frame of a stream that can send, and its end if that is next.
    fn send_data(&mut self, id: StreamId, out: &mut Output) -> Result<(), ConnectionError> {
        let max_bytes = self.max_frame_bytes();
        let Some(stream) = self.streams.get_mut(&id) else {
            return Ok(());
        };
        let window = stream
            .send_window
            .available()
            .min(self.send_window.available());
        let most = max_bytes.min(stream.chunk_bytes);
        let len = stream.body.len().min(window).min(most);
        stream.send_window.take(len);
        self.send_window.take(len);
        self.queued_bytes -= len;
        self.has_more_room = true;
        self.progress.note(len, self.now);
        stream.sent_bytes += (HEADER_BYTES + len) as u64;
        let is_last = len == stream.body.len();
        match is_last {
            true => stream.progress = Progress::new(self.now),
            false => stream.progress.note(len, self.now),
        }
        let end_stream = is_last && stream.tail == Tail::End;
        // If a body is given as far as the windows go, the next piece waits behind this one.
        let goes_on = !is_last || (stream.tail == Tail::Unknown && len == window);
        let window_ended = window < TINY_PIECE_BYTES && goes_on;
        out.write(|frames| write_data_header(frames, id, len, end_stream));
        let mut left = len;
        while left > 0 {
            // A frame may have several pieces, each of which is some bytes.
            let piece = stream.body.take(left);
            left -= piece.len();
            out.push_body(piece);
        }
        stream.is_scheduled = stream.can_send();
        if stream.is_scheduled {
            self.scheduler.add(id, stream.priority);
        }
        if is_last {
            self.end_body(id, out);
        }
        self.allowances.earn_by_bytes(len);
        match window_ended {
            true => self.charge(Flood::TinyWindows),
            false => Ok(()),
        }
    }

    /// Handles the end of the body that was given so far.
    fn end_body(&mut self, id: StreamId, out: &mut Output) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        match std::mem::replace(&mut stream.tail, Tail::Unknown) {
            Tail::Unknown => self.notices.push_back(Notice::Drained(id)),
            Tail::End => out.write(|frames| self.finish(id, frames)),
            Tail::Trailers(block) => out.write(|frames| {
                self.put_block(frames, id, END_STREAM, |out| out.extend_from_slice(&block));
                self.finish(id, frames);
            }),
        }
    }

    /// Writes the field block of a head.
    fn put_head(&mut self, id: StreamId, status: u16, fields: &[&FieldBlock], end_stream: bool) {
        let flags = if end_stream { END_STREAM } else { 0 };
        let mut pending = std::mem::take(&mut self.pending);
        self.put_block(&mut pending, id, flags, |out| {
            hpack::put_status(out, status);
            for block in fields {
                out.extend_from_slice(block.as_bytes());
            }
        });
        self.pending = pending;
    }

    /// Writes a field block as HEADERS and, where it is too large for one frame,
    /// CONTINUATION (RFC 9113 §4.3).
    fn put_block(
        &mut self,
        out: &mut Vec<u8>,
        id: StreamId,
        flags: u8,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let max_bytes = self.max_frame_bytes();
        let start = out.len();
        write_frame_header(out, 0, FrameKind::Headers, flags | END_HEADERS, id);
        if std::mem::take(&mut self.owes_table_size) {
            hpack::put_no_table(out);
        }
        write(out);
        let length = out.len() - start - HEADER_BYTES;
        if length <= max_bytes {
            set_frame_length(out, start, length);
        } else {
            let block = out.split_off(start + HEADER_BYTES);
            out.truncate(start);
            put_split_block(out, id, flags, &block, max_bytes);
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.sent_bytes += (out.len() - start) as u64;
        }
    }

    fn max_frame_bytes(&self) -> usize {
        self.peer.max_frame_bytes
    }

    fn stream_in(&mut self, id: StreamId, answer: ResponseState) -> Result<&mut Stream, SendError> {
        match self.streams.get_mut(&id) {
            Some(stream) if stream.answer == answer => Ok(stream),
            Some(_) => Err(SendError::OutOfOrder),
            None => Err(SendError::Closed),
        }
    }

    fn finish_in_pending(&mut self, id: StreamId) {
        let mut pending = std::mem::take(&mut self.pending);
        self.finish(id, &mut pending);
        self.pending = pending;
    }

    /// END_STREAM is written. A request that is not whole yet is not needed any more
    /// (§8.1); one that was malformed ends with the error it is (§8.1.1).
    fn finish(&mut self, id: StreamId, frames: &mut Vec<u8>) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        stream.state = stream.state.send_end();
        let sent_bytes = stream.sent_bytes;
        let code = match (stream.request, stream.state) {
            (RequestState::Malformed, _) => Some(ErrorCode::PROTOCOL_ERROR),
            (_, StreamState::Closed) => None,
            (RequestState::Refused, _) => Some(ErrorCode::NO_ERROR),
            (RequestState::Valid, _) => match self.leave_unended(id) {
                true => return self.note_sent(id, sent_bytes),
                false => Some(ErrorCode::NO_ERROR),
            },
        };
        if let Some(code) = code {
            write_reset(frames, id, code);
        }
        self.remove(id, code.is_some());
        self.note_sent(id, sent_bytes);
    }

    fn note_sent(&mut self, id: StreamId, sent_bytes: u64) {
        self.allowances.earn_by_request();
        self.notices.push_back(Notice::Sent(id, sent_bytes));
    }
}

/// Writes a block that needs more than one frame.
fn put_split_block(out: &mut Vec<u8>, id: StreamId, flags: u8, block: &[u8], max_bytes: usize) {
    let mut kind = FrameKind::Headers;
    let mut flags = flags;
    let mut rest = block;
    while !rest.is_empty() {
        let (fragment, after) = rest.split_at(rest.len().min(max_bytes));
        if after.is_empty() {
            flags |= END_HEADERS;
        }
        write_frame_header(out, fragment.len(), kind, flags, id);
        out.extend_from_slice(fragment);
        (kind, flags, rest) = (FrameKind::Continuation, 0, after);
    }
}
