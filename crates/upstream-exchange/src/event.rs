//! The events of a response. HTTP/1 and FastCGI have the same ones, each of them some more; which those are is said there.

use std::fmt;

use bytes::Bytes;

/// An event of a response, in order: any number of `Interim`, one `Head`, any number of `Data`, perhaps `Trailers`, one
/// `End`; any number of `Stderr` at any point. After the `Head` of an upgrade nothing follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// HTTP: an interim response (RFC 9110 §15.2) other than 100 and 101, such as 103 Early Hints.
    Interim(ResponseHead),
    /// The final response's head, or that of a 101.
    Head(ResponseHead),
    /// A part of the body; never empty. A slice of the read buffer: copy a part that is kept for
    /// long.
    Data(Bytes),
    /// FastCGI: a part of PHP's error stream; never empty. Cut where records and reads are cut, not at
    /// lines.
    Stderr(Bytes),
    /// HTTP: the trailer fields behind the last chunk; never empty.
    Trailers(Vec<(Bytes, Bytes)>),
    /// The response is complete.
    End {
        /// FastCGI: the exit status of the application. `None` when the connection
        /// ended without END_REQUEST, though with all of `Content-Length`.
        app_status: Option<u32>,
        /// Whether the connection may carry another request.
        reusable: bool,
        /// The kind of data that came beyond the response and was dropped, for the log.
        excess_data: Option<ExcessData>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// HTTP: from 100 to 999. FastCGI: from `Status`; else 302 with `Location`, else 200.
    pub status: u16,
    /// The reason phrase behind the status; may be empty.
    pub reason: Bytes,
    /// All fields, in order and as spelled, those of the connection and `Status` included: like nginx, the
    /// server hides them by name. FastCGI: identical repetitions of `Content-Length` are left out. Slices of
    /// the read buffer: copy a field that is kept for long.
    pub fields: Vec<(Bytes, Bytes)>,
    /// The value of `Content-Length`, also where no body follows (HEAD, 304).
    pub content_length: Option<u64>,
    /// A 101, which was asked for: [`crate::Exchange::into_tunnel`] comes next.
    pub is_upgrade: bool,
}

/// How an upstream sent more than its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExcessData {
    /// After the `Content-Length` bytes of the body.
    AfterLength,
    AfterLastChunk,
    /// After a head that no body follows.
    AfterHead,
    /// After END_REQUEST.
    AfterEnd,
}

impl fmt::Display for ExcessData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExcessData::AfterLength => {
                "upstream sent more data than specified in \"Content-Length\" header"
            }
            ExcessData::AfterLastChunk => "upstream sent data after final chunk",
            ExcessData::AfterHead => "upstream sent a body with a response that has none",
            ExcessData::AfterEnd => "upstream sent data after the end of the FastCGI request",
        })
    }
}
