//! Handles each frame, but for field blocks (`blocks.rs`).

use super::{Connection, Opening, SHUTDOWN_PING, Shutdown, Step, reset_step};
use crate::bounds::{Flood, TINY_DATA_BYTES};
use crate::error::{ConnectionError, ErrorCode, FrameError, StreamError};
use crate::event::ResetCause;
use crate::flow::{DEFAULT_WINDOW_BYTES, ReceiveWindow};
use crate::frame::{
    Frame, FrameHeader, FrameKind, PriorityUpdate, StreamId, write_ping, write_settings_ack,
};
use crate::head::HeadBuffer;
use crate::priority::Priority;
use crate::request_error::RequestError;
use crate::stream::{RequestState, ResponseState, StreamState};

impl Connection {
    pub(super) fn process<'a>(
        &mut self,
        header: FrameHeader,
        payload: &'a [u8],
        head: &mut HeadBuffer,
    ) -> Result<Option<Step<'a>>, FrameError> {
        debug_assert_eq!(self.opening, Opening::Done);
        let stream = header.stream;
        match Frame::parse(header, payload)? {
            Frame::Data {
                data,
                padding,
                end_stream,
            } => self.on_data(stream, data, padding, end_stream),
            Frame::Headers {
                fragment,
                end_stream,
                end_headers,
                depends_on,
            } => {
                let depends_on_itself = depends_on == Some(stream);
                self.begin_block(stream, end_stream, depends_on_itself);
                self.add_to_block(fragment, end_headers, head)
            }
            Frame::Continuation {
                fragment,
                end_headers,
            } => {
                if self.block.is_none() {
                    return Err(ConnectionError::UnexpectedContinuation(stream).into());
                }
                self.add_to_block(fragment, end_headers, head)
            }
            Frame::Priority { depends_on } => self.on_priority(stream, depends_on).map(|()| None),
            Frame::ResetStream { code } => self.on_reset(stream, code).map_err(Into::into),
            Frame::Settings { pairs } => Ok(self.on_settings(pairs).map(|()| None)?),
            Frame::SettingsAck => {
                self.on_settings_ack();
                Ok(None)
            }
            // The header alone was enough to refuse it.
            Frame::PushPromise => Err(ConnectionError::PushPromise.into()),
            Frame::Ping { payload, ack } => Ok(self.on_ping(payload, ack).map(|()| None)?),
            Frame::GoAway { code, .. } => {
                self.charge(Flood::IgnoredFrames)?;
                Ok(Some(Step::GoAway(code)))
            }
            Frame::WindowUpdate { increment } => {
                self.charge(Flood::WindowUpdates)?;
                match stream.is_connection() {
                    true => Ok(self.grow_window(increment).map(|()| None)?),
                    false => self.grow_stream_window(stream, increment).map(|()| None),
                }
            }
            Frame::PriorityUpdate(update) => Ok(self.on_priority_update(update).map(|()| None)?),
            Frame::Unknown => Ok(self.charge(Flood::IgnoredFrames).map(|()| None)?),
        }
    }

    /// Returns whether a stream was never opened (§5.1).
    pub(super) fn is_idle(&self, stream: StreamId) -> bool {
        !stream.is_from_client() || stream > self.last_stream
    }

    /// Returns whether we ignore frames for a stream that is not open: we have reset the stream, or it
    /// came behind the last one that we accepted, and the client did not know yet.
    pub(super) fn is_ignored(&self, stream: StreamId) -> bool {
        let is_late = self.shutdown == Shutdown::Final && stream > self.last_stream;
        (is_late && stream.is_from_client()) || self.closed.find(stream) == Some(true)
    }

    fn on_data<'a>(
        &mut self,
        id: StreamId,
        data: &'a [u8],
        padding: usize,
        end_stream: bool,
    ) -> Result<Option<Step<'a>>, FrameError> {
        let flow_bytes = data.len() + padding;
        let taken = self.receive_window.take(flow_bytes);
        taken.map_err(|_| ConnectionError::WindowExceeded)?;
        if data.len() < TINY_DATA_BYTES && !end_stream {
            self.charge(Flood::TinyData)?;
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            self.release_connection(flow_bytes);
            return self.on_data_without_stream(id).map(|()| None);
        };
        if stream.request != RequestState::Valid {
            self.release_connection(flow_bytes);
            self.charge(Flood::IgnoredFrames)?;
            return Ok(None);
        }
        if !stream.state.may_receive() {
            self.release_connection(flow_bytes);
            return Err(FrameError::Stream(id, StreamError::Closed(FrameKind::Data)));
        }
        if stream.receive_window.take(flow_bytes).is_err() {
            self.release_connection(flow_bytes);
            return Err(FrameError::Stream(id, StreamError::WindowExceeded));
        }
        if !stream.count_body(data.len(), end_stream) {
            self.release(id, flow_bytes);
            return self.on_malformed(id, RequestError::BodyLength);
        }
        let is_answered = stream.state == StreamState::HalfClosedLocal;
        if end_stream {
            stream.state = stream.state.receive_end();
        }
        if is_answered {
            self.drop_rest(id, flow_bytes);
            return Ok(None);
        }
        if padding > 0 {
            self.release(id, padding);
        }
        self.allowances.earn_by_bytes(data.len());
        if data.is_empty() && !end_stream {
            return Ok(None);
        }
        Ok(Some(Step::Data {
            stream: id,
            data,
            end_stream,
        }))
    }

    fn on_data_without_stream(&mut self, id: StreamId) -> Result<(), FrameError> {
        if self.is_ignored(id) {
            Ok(self.charge(Flood::IgnoredFrames)?)
        } else if self.is_idle(id) {
            Err(ConnectionError::IdleStream(FrameKind::Data, id).into())
        } else {
            Err(FrameError::Stream(id, StreamError::Closed(FrameKind::Data)))
        }
    }

    /// A request that is open turns out to be malformed. It may still be answered if no
    /// answer was begun (§8.1.1).
    pub(super) fn on_malformed<'a>(
        &mut self,
        id: StreamId,
        error: RequestError,
    ) -> Result<Option<Step<'a>>, FrameError> {
        match self.streams.get_mut(&id) {
            Some(stream) if stream.answer == ResponseState::Awaited => {
                stream.request = RequestState::Malformed;
                self.charge(Flood::StreamErrors)?;
                Ok(Some(Step::BadRequest(id, error)))
            }
            _ => Err(FrameError::Stream(id, StreamError::Malformed)),
        }
    }

    /// The old priorities are ignored (§5.3.2), but for a rule of theirs that is checked
    /// by all test suites (RFC 7540 §5.3.1).
    fn on_priority(&mut self, stream: StreamId, depends_on: StreamId) -> Result<(), FrameError> {
        self.charge(Flood::Priorities)?;
        match stream == depends_on {
            true => Err(FrameError::Stream(stream, StreamError::SelfDependency)),
            false => Ok(()),
        }
    }

    fn on_reset(
        &mut self,
        stream: StreamId,
        code: ErrorCode,
    ) -> Result<Option<Step<'static>>, ConnectionError> {
        if !self.streams.contains_key(&stream) {
            if self.is_idle(stream) && !self.is_ignored(stream) {
                return Err(ConnectionError::IdleStream(FrameKind::ResetStream, stream));
            }
            return self.charge(Flood::IgnoredFrames).map(|()| None);
        }
        self.charge(Flood::Resets)?;
        let removed = self.remove(stream, false);
        let cause = ResetCause::Client(code);
        Ok(removed.and_then(|removed| reset_step(stream, &removed, cause)))
    }

    fn on_settings(&mut self, pairs: &[[u8; 6]]) -> Result<(), ConnectionError> {
        self.charge(Flood::Settings)?;
        let peer = self.peer.updated(pairs)?;
        let difference =
            i64::from(peer.initial_window_bytes) - i64::from(self.peer.initial_window_bytes);
        self.owes_table_size |= peer.has_small_table && !self.peer.has_small_table;
        self.peer = peer;
        if difference != 0 {
            self.has_more_room = true;
            // Only streams that have something to send and could not come into question.
            let mut opened = Vec::new();
            for (id, stream) in &mut self.streams {
                let shifted = stream.send_window.shift(difference);
                shifted.map_err(|_| ConnectionError::WindowOverflow)?;
                if !stream.is_scheduled && stream.can_send() {
                    opened.push(*id);
                }
            }
            for id in opened {
                self.schedule(id);
            }
        }
        write_settings_ack(&mut self.pending);
        Ok(())
    }

    /// From now on the peer knows our window for streams. Streams opened before may have had a larger
    /// one.
    fn on_settings_ack(&mut self) {
        if std::mem::replace(&mut self.is_acknowledged, true) {
            return;
        }
        let window = self.settings.stream_window();
        if let Some(difference) = DEFAULT_WINDOW_BYTES.checked_sub(window) {
            for stream in self.streams.values_mut() {
                stream.receive_window.shrink(difference);
            }
        }
    }

    fn on_ping(&mut self, payload: [u8; 8], ack: bool) -> Result<(), ConnectionError> {
        self.charge(Flood::Pings)?;
        if !ack {
            write_ping(&mut self.pending, payload, true);
        } else if payload == SHUTDOWN_PING && self.shutdown == Shutdown::Announced {
            self.finish_shutdown();
        }
        Ok(())
    }

    fn grow_window(&mut self, increment: u32) -> Result<(), ConnectionError> {
        if increment == 0 {
            return Err(ConnectionError::ZeroWindowUpdate);
        }
        self.has_more_room = true;
        let grown = self.send_window.grow(increment);
        grown.map_err(|_| ConnectionError::WindowOverflow)
    }

    fn grow_stream_window(&mut self, id: StreamId, increment: u32) -> Result<(), FrameError> {
        let Some(stream) = self.streams.get_mut(&id) else {
            return if self.is_ignored(id) {
                Ok(())
            } else if self.is_idle(id) {
                Err(ConnectionError::IdleStream(FrameKind::WindowUpdate, id).into())
            } else if increment == 0 {
                Err(FrameError::Stream(id, StreamError::ZeroWindowUpdate))
            } else {
                // The response may have ended a moment ago.
                Ok(())
            };
        };
        if increment == 0 {
            return Err(FrameError::Stream(id, StreamError::ZeroWindowUpdate));
        }
        if stream.send_window.grow(increment).is_err() {
            return Err(FrameError::Stream(id, StreamError::WindowOverflow));
        }
        self.has_more_room = true;
        self.schedule(id);
        Ok(())
    }

    /// RFC 9218 §7.1.
    fn on_priority_update(&mut self, update: PriorityUpdate<'_>) -> Result<(), ConnectionError> {
        self.charge(Flood::Priorities)?;
        let PriorityUpdate { stream: id, value } = update;
        if !id.is_from_client() {
            return Err(ConnectionError::InvalidStream(
                FrameKind::PriorityUpdate,
                id,
            ));
        }
        let priority = Priority::parse(value);
        if let Some(stream) = self.streams.get_mut(&id) {
            let before = std::mem::replace(&mut stream.priority, priority);
            if stream.is_scheduled {
                self.scheduler.remove(id, before);
                self.scheduler.add(id, priority);
            }
        } else if self.is_idle(id) {
            self.remember_priority(id, priority);
        }
        Ok(())
    }

    /// The window of a stream that opens now. Before the peer has acknowledged our
    /// settings, it may believe in the default.
    pub(super) fn new_receive_window(&self) -> ReceiveWindow {
        let size = self.settings.stream_window();
        let available = match self.is_acknowledged {
            true => size,
            false => size.max(DEFAULT_WINDOW_BYTES),
        };
        ReceiveWindow::new(available, size)
    }
}
