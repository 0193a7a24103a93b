//! The two halves of a protocol: encoding a request, decoding its response. [`crate::Exchange`]
//! decides when each is called. Nothing here does I/O.

use std::io;

use bytes::{Bytes, BytesMut};

use crate::exchange::{READ_BUFFER_BYTES, make_room};
use crate::segments::Segments;

/// A request in the terms of its protocol, ready to be sent.
pub trait Protocol {
    /// Encodes the request.
    type Request: EncodeRequest;
    /// Decodes the bytes that come back.
    type Response: DecodeResponse;

    /// The two halves of its exchange.
    fn start(self) -> (Self::Request, Self::Response);
}

/// A request on its way into bytes: its head is there from the beginning, its body comes in parts.
pub trait EncodeRequest {
    /// Whether the next part of the body can be taken now.
    fn wants_body(&self) -> bool;

    /// Takes a part of the body, which is not empty. `is_last`: it is known that nothing follows,
    /// and [`EncodeRequest::end_body`] need not come.
    ///
    /// # Errors
    /// The body has another length than the head promises.
    fn add_body(&mut self, part: Bytes, is_last: bool) -> io::Result<()>;

    /// The body has ended.
    ///
    /// # Errors
    /// The body has another length than the head promises.
    fn end_body(&mut self) -> io::Result<()>;

    /// Gives the next bytes to write, in order.
    fn put_segments<'a>(&'a self, segments: &mut Segments<'a>);

    /// `written` bytes of those segments were written.
    fn advance(&mut self, written: usize);

    /// Whether nothing comes beyond the segments that there are.
    fn is_complete(&self) -> bool;
}

/// Bytes in, events of a response out.
pub trait DecodeResponse {
    /// An event of a response.
    type Event;
    /// The errors of an exchange in the protocol.
    type Error: From<StreamError>;

    /// Returns the buffer to which received bytes are appended. One that has no memory yet gets the
    /// first bytes copied, and so holds none while the upstream is waited for.
    fn buffer(&mut self) -> &mut BytesMut;

    /// Makes room in the buffer for the next read.
    fn make_room(&mut self) {
        make_room(self.buffer(), READ_BUFFER_BYTES);
    }

    /// Records whether all of the request has been written; called before each call of `next_event`.
    fn set_request_sent(&mut self, is_sent: bool);

    /// The next event in the received bytes, or `None` when more bytes are needed.
    ///
    /// # Errors
    /// The received bytes are no response of this protocol.
    fn next_event(&mut self) -> Result<Option<Self::Event>, Self::Error>;

    /// The stream has ended, or failed with `failure`, which may be taken for the error: the last
    /// event. `None` if the head was not complete; the caller then returns a [`StreamError`] with
    /// the reason.
    ///
    /// # Errors
    /// The response is incomplete.
    fn end_of_input(
        &mut self,
        failure: &mut Option<io::Error>,
    ) -> Result<Option<Self::Event>, Self::Error>;

    /// Whether the last event was given.
    fn is_over(&self) -> bool;

    /// Whether the last event was given and left the connection clean for another request.
    fn is_reusable(&self) -> bool;

    /// Whether the head was given and a body of known length follows that was read together with
    /// it, or none.
    fn is_whole_body_here(&self) -> bool {
        false
    }

    /// The error for bytes that arrive before anything was sent, in protocols where the client
    /// speaks first: such bytes belong to another request.
    fn unsolicited(&self) -> Option<Self::Error> {
        None
    }

    /// Returns the bytes read beyond the head, if that made the connection a tunnel.
    fn into_tunnel(self) -> Option<Bytes>
    where
        Self: Sized,
    {
        None
    }
}

/// Failures of the stream or the body, whatever the protocol.
#[derive(Debug)]
pub enum StreamError {
    /// The caller's body source failed, or its body has another length than the request's head
    /// promises: the client's doing, not the upstream's.
    RequestBody(io::Error),
    /// The stream failed before the response head was complete.
    Io {
        side: Side,
        /// True when no byte of the response had arrived.
        before_first_byte: bool,
        source: io::Error,
    },
    /// The upstream closed before the response head was complete.
    Closed { before_first_byte: bool },
}

impl StreamError {
    /// Whether nothing of a response had arrived, so that the upstream may not have begun to work: a
    /// reused connection that was closed while idle looks like this. Whether to ask again is the
    /// caller's decision (a request that is not idempotent may have been executed all the same).
    #[must_use]
    pub fn before_first_byte(&self) -> bool {
        match self {
            StreamError::RequestBody(_) => false,
            StreamError::Io {
                before_first_byte, ..
            }
            | StreamError::Closed { before_first_byte } => *before_first_byte,
        }
    }
}

/// The direction of the stream that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// While sending the request.
    Write,
    /// While receiving the response.
    Read,
}
