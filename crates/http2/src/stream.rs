//! One stream: its state (RFC 9113 §5.1), its windows, and its pending frames.
//! LIFECYCLE.md of this crate draws the states.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::flow::{ReceiveWindow, SendWindow};
use crate::priority::Priority;
use crate::progress::Progress;

/// The states of a stream that a client opened. `idle` is a number above all that were
/// used; the `reserved` ones belong to server push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamState {
    /// The request goes on, and the response has not ended.
    Open,
    /// The request is whole, the response has not ended.
    HalfClosedRemote,
    /// The response has ended before the request.
    HalfClosedLocal,
    /// Both have ended.
    Closed,
}

impl StreamState {
    /// HEADERS opened the stream.
    pub(crate) fn opened(end_stream: bool) -> Self {
        match end_stream {
            true => StreamState::HalfClosedRemote,
            false => StreamState::Open,
        }
    }

    /// END_STREAM came.
    pub(crate) fn receive_end(self) -> Self {
        match self {
            StreamState::Open | StreamState::HalfClosedRemote => StreamState::HalfClosedRemote,
            StreamState::HalfClosedLocal | StreamState::Closed => StreamState::Closed,
        }
    }

    /// END_STREAM was sent.
    pub(crate) fn send_end(self) -> Self {
        match self {
            StreamState::Open | StreamState::HalfClosedLocal => StreamState::HalfClosedLocal,
            StreamState::HalfClosedRemote | StreamState::Closed => StreamState::Closed,
        }
    }

    /// Returns whether DATA and trailers may come.
    pub(crate) fn may_receive(self) -> bool {
        matches!(self, StreamState::Open | StreamState::HalfClosedLocal)
    }
}

/// How far the response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseState {
    /// Its head was not given yet.
    Awaited,
    /// Its body is being given.
    Body,
    /// All of it was given; some may wait to be sent.
    Whole,
}

/// The state of the server's answer to the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestState {
    /// It is served.
    Valid,
    /// A limit or a rule of ours forbids it: it gets an answer, and its rest is ignored.
    Refused,
    /// It broke the protocol: the same, and RST_STREAM behind the answer.
    Malformed,
}

/// The frames after the body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// It is not known yet.
    Unknown,
    /// Nothing: END_STREAM is on the last DATA frame.
    End,
    /// A field block.
    Trailers(Vec<u8>),
}

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) state: StreamState,
    pub(crate) answer: ResponseState,
    pub(crate) request: RequestState,
    pub(crate) priority: Priority,
    /// Whether it is in the scheduler.
    pub(crate) is_scheduled: bool,
    pub(crate) send_window: SendWindow,
    pub(crate) receive_window: ReceiveWindow,
    /// The rest of Content-Length.
    pub(crate) body_left: Option<u64>,
    pub(crate) body: BodyQueue,
    pub(crate) tail: Tail,
    /// The most bytes of body in one DATA frame.
    pub(crate) chunk_bytes: usize,
    /// Bytes of frames for this stream so far.
    pub(crate) sent_bytes: u64,
    /// The progress since it last had nothing to send.
    pub(crate) progress: Progress,
}

impl Stream {
    /// Returns whether it can send DATA, as far as its own window goes.
    pub(crate) fn can_send(&self) -> bool {
        !self.body.is_empty() && self.send_window.available() > 0
    }

    /// Takes DATA of this length into account; false if Content-Length differs.
    pub(crate) fn count_body(&mut self, bytes: usize, end_stream: bool) -> bool {
        let Some(left) = &mut self.body_left else {
            return true;
        };
        match left.checked_sub(bytes as u64) {
            Some(rest) => *left = rest,
            None => return false,
        }
        !end_stream || *left == 0
    }
}

/// The body of a response, as far as it was given and not sent. One piece needs no
/// allocation.
#[derive(Debug, Default)]
pub(crate) struct BodyQueue {
    first: Bytes,
    /// Empty while `first` is.
    more: VecDeque<Bytes>,
    bytes: usize,
}

impl BodyQueue {
    pub(crate) fn push(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        self.bytes += piece.len();
        if self.first.is_empty() {
            self.first = piece;
        } else {
            self.more.push_back(piece);
        }
    }

    /// Takes a piece of at most `bytes` from the front.
    pub(crate) fn take(&mut self, bytes: usize) -> Bytes {
        let piece = match self.first.len() <= bytes {
            true => std::mem::replace(&mut self.first, self.more.pop_front().unwrap_or_default()),
            false => self.first.split_to(bytes),
        };
        self.bytes -= piece.len();
        piece
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_follow_the_standard() {
        use StreamState::*;
        for (state, after_receive, after_send, may_receive) in [
            (Open, HalfClosedRemote, HalfClosedLocal, true),
            (HalfClosedRemote, HalfClosedRemote, Closed, false),
            (HalfClosedLocal, Closed, HalfClosedLocal, true),
            (Closed, Closed, Closed, false),
        ] {
            assert_eq!(state.receive_end(), after_receive, "{state:?}");
            assert_eq!(state.send_end(), after_send, "{state:?}");
            assert_eq!(state.may_receive(), may_receive, "{state:?}");
        }
        assert_eq!(StreamState::opened(true), HalfClosedRemote);
        assert_eq!(StreamState::opened(false), Open);
    }

    #[test]
    fn a_body_comes_out_as_it_went_in() {
        let mut queue = BodyQueue::default();
        for piece in ["abcd", "", "ef", "g"] {
            queue.push(Bytes::from_static(piece.as_bytes()));
        }
        assert_eq!(queue.len(), 7);
        let pieces: Vec<Bytes> = [3, 3, 1, 9].map(|bytes| queue.take(bytes)).into();
        assert_eq!(pieces, [&b"abc"[..], b"d", b"e", b"f"]);
        assert_eq!(queue.take(1), &b"g"[..]);
        assert!(queue.is_empty());
        assert_eq!(queue.take(1), &b""[..]);
    }
}
