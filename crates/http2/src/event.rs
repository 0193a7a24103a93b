//! Events: the meaning of a client's bytes for the server of its requests. Events borrow the
//! bytes they came in and the buffer of the head; they do not borrow the connection.

use http_semantics::{FieldSpan, RequestView};

use crate::error::{ErrorCode, StreamError};
use crate::frame::StreamId;
use crate::request_error::RequestError;

/// The result of [`crate::Connection::receive`].
#[derive(Debug)]
pub struct ReceivedInput<'a> {
    /// How many bytes of the input were used up. They must not be given again.
    pub consumed: usize,
    /// The event. There may be more in the rest of the input. `None` asks for more bytes:
    /// the rest of the input is no whole frame.
    pub event: Option<Event<'a>>,
}

/// Something that happened on a connection.
#[derive(Debug)]
pub enum Event<'a> {
    /// A request. Its target begins with `/` or is `*`, its Host field is valid (and came
    /// as `:authority`, mostly), several Cookie fields are one, and none of its fields
    /// speaks of a connection.
    Request {
        /// The stream, on which it is answered.
        stream: StreamId,
        /// Its head, in terms of HTTP/1.
        head: RequestView<'a>,
        /// Length of the field block that it came in.
        block_bytes: usize,
        /// The length of its body, if the client declared it.
        content_length: Option<u64>,
        /// Whether it has no body.
        end_stream: bool,
    },
    /// A request that cannot be served, or whose body showed that. It may be answered with
    /// [`RequestError::status`], or reset; nothing more comes of it.
    BadRequest {
        /// The stream.
        stream: StreamId,
        /// The error of the request.
        error: RequestError,
    },
    /// A piece of a request's body. Once it is consumed, [`crate::Connection::release`]
    /// lets the client send more.
    Data {
        /// The stream.
        stream: StreamId,
        /// The piece; it may be empty at the end.
        data: &'a [u8],
        /// Whether it is the last.
        end_stream: bool,
    },
    /// The end of a request's body, with fields.
    Trailers {
        /// The stream.
        stream: StreamId,
        /// The fields.
        fields: TrailerView<'a>,
    },
    /// A stream ended before its response did. Nothing more can be sent on it.
    Reset {
        /// The stream.
        stream: StreamId,
        /// The side that wanted the reset.
        cause: ResetCause,
        /// Bytes of frames that its response had so far.
        sent_bytes: u64,
    },
    /// The client will open no further stream.
    GoAway {
        /// Why.
        code: ErrorCode,
    },
}

/// Why a stream ended before its response did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetCause {
    /// The client sent RST_STREAM.
    Client(ErrorCode),
    /// The client broke a rule; we sent RST_STREAM.
    Error(StreamError),
}

/// The fields behind a request's body.
#[derive(Clone, Copy, Debug)]
pub struct TrailerView<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) fields: &'a [FieldSpan],
}

impl<'a> TrailerView<'a> {
    /// All fields, in order: name in lower case, value.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let TrailerView { bytes, fields } = self;
        let text = move |field: &FieldSpan| (field.name.of(bytes), field.value.of(bytes));
        fields.iter().map(text)
    }
}

/// The progress of a response, for the caller that sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// All of a body that was given is in the output, and more is expected.
    Drained(StreamId),
    /// A response is in the output as a whole: bytes of frames that it had.
    Sent(StreamId, u64),
}
