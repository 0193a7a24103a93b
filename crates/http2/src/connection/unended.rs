//! Requests whose response has ended before them (RFC 9113 §8.1): their streams are half-closed
//! (local). The rest of such a request is checked like any other, so that a client that breaks a
//! rule learns of its error however early the response was there; then it is dropped.
//!
//! The client is asked to send no more (RST_STREAM with NO_ERROR) where it would need a larger
//! window to go on, and after a time that the transport sets.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Connection;
use crate::error::ErrorCode;
use crate::frame::StreamId;
use crate::stream::StreamState;

/// Streams whose response has ended and whose request has not, the oldest first, with the time
/// of that. There are no more than streams may be open.
#[derive(Debug, Default)]
pub(super) struct UnendedRequests(VecDeque<(StreamId, Instant)>);

impl UnendedRequests {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn remove(&mut self, stream: StreamId) {
        if let Some(at) = self.0.iter().position(|(other, _)| *other == stream) {
            self.0.remove(at);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Connection {
    /// The response of a valid request has ended, and the request has not. False if the client has
    /// used up its window so far that it would wait for more.
    pub(super) fn leave_unended(&mut self, id: StreamId) -> bool {
        let Some(stream) = self.streams.get_mut(&id) else {
            return false;
        };
        let held = stream.receive_window.held();
        let needs_window = stream.receive_window.release(held).is_some();
        self.release_connection(held);
        if !needs_window {
            self.unended.0.push_back((id, self.now));
        }
        !needs_window
    }

    /// Drops received bytes of an unended request.
    pub(super) fn drop_rest(&mut self, id: StreamId, bytes: usize) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let needs_window = stream.receive_window.release(bytes).is_some();
        let has_ended = stream.state == StreamState::Closed;
        self.release_connection(bytes);
        if has_ended {
            self.remove(id, false);
        } else if needs_window {
            self.reset(id, ErrorCode::NO_ERROR);
        }
    }

    /// Returns since when the client could have ended the oldest request whose response has ended.
    pub fn unended_since(&self) -> Option<Instant> {
        self.unended.0.front().map(|(_, since)| *since)
    }

    /// Asks the client to send no more of requests whose response ended at least this long ago.
    pub fn abort_unended(&mut self, timeout: Duration, now: Instant) {
        self.now = now;
        while let Some((id, since)) = self.unended.0.front().copied()
            && now.saturating_duration_since(since) >= timeout
        {
            self.reset(id, ErrorCode::NO_ERROR);
        }
    }
}
