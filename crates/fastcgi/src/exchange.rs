//! Writes a FastCGI request as the records of an exchange.
//!
//! BEGIN_REQUEST and the params leave together with the first records of the body; PHP may answer
//! before it has read all of it. To abort, drop the exchange: the connection closes, which PHP-FPM
//! notices when it next writes.

use std::collections::VecDeque;
use std::io;

use bytes::{Buf, Bytes, BytesMut};
use upstream_exchange::{EncodeRequest, FIRST_READ_BYTES, NoBody, Protocol, Segments};

use crate::params::Params;
use crate::record::{self, RecordHeader, STREAM_CONTENT_BYTES};
use crate::response::{ExpectedResponse, ResponseReader};

/// One request under way; its last event is [`crate::Event::End`].
pub type Exchange<S, B = NoBody> = upstream_exchange::Exchange<S, RequestSpec, B>;

/// A FastCGI request: its params, and the bounds for its response.
#[derive(Clone, Debug)]
pub struct RequestSpec {
    pub params: Params,
    /// Asks PHP to leave the connection open (`fastcgi_keep_conn`).
    pub keep_conn: bool,
    /// The method is HEAD: see [`ExpectedResponse::head_request`].
    pub head_request: bool,
    /// Bound of the response head (`fastcgi_buffer_size`).
    pub head_limit_bytes: usize,
}

impl Protocol for RequestSpec {
    type Request = RequestRecords;
    type Response = ResponseReader;

    fn start(self) -> (RequestRecords, ResponseReader) {
        let expected = ExpectedResponse {
            head_limit_bytes: self.head_limit_bytes,
            head_request: self.head_request,
            keep_conn: self.keep_conn,
        };
        (
            RequestRecords::new(self.keep_conn, self.params),
            ResponseReader::new(expected, BytesMut::with_capacity(FIRST_READ_BYTES)),
        )
    }
}

/// The records of a request that are not yet written.
#[derive(Debug)]
pub struct RequestRecords {
    /// Heads and contents of records by turns, behind the params.
    segments: VecDeque<Bytes>,
    /// The rest of a part of the body that is longer than a record.
    part: Bytes,
    /// The end of STDIN is among the segments, or written.
    has_ended: bool,
}

impl RequestRecords {
    fn new(keep_conn: bool, params: Params) -> RequestRecords {
        let begin: &'static [u8] = if keep_conn {
            &record::BEGIN_REQUEST_KEEP_CONN
        } else {
            &record::BEGIN_REQUEST
        };
        let mut segments = VecDeque::with_capacity(Segments::MAX);
        segments.push_back(Bytes::from_static(begin));
        segments.push_back(params.into_records());
        RequestRecords {
            segments,
            part: Bytes::new(),
            has_ended: false,
        }
    }

    /// Whether a record's header and content can leave with the next write.
    fn has_room(&self) -> bool {
        self.segments.len() + 2 <= Segments::MAX
    }

    /// Makes records of the part of the body that is here, as far as there is room.
    fn cut_part(&mut self) {
        while !self.part.is_empty() && self.has_room() {
            let content = self
                .part
                .split_to(self.part.len().min(STREAM_CONTENT_BYTES));
            // Cut to fit just above.
            let length = u16::try_from(content.len()).unwrap_or(u16::MAX);
            let header = RecordHeader::new(record::kind::STDIN, length).encode();
            self.segments.push_back(Bytes::copy_from_slice(&header));
            self.segments.push_back(content);
        }
    }
}

impl EncodeRequest for RequestRecords {
    fn wants_body(&self) -> bool {
        !self.has_ended && self.part.is_empty() && self.has_room()
    }

    fn add_body(&mut self, part: Bytes, _is_last: bool) -> io::Result<()> {
        self.part = part;
        self.cut_part();
        Ok(())
    }

    fn end_body(&mut self) -> io::Result<()> {
        self.segments
            .push_back(Bytes::from_static(&record::STDIN_END));
        self.has_ended = true;
        Ok(())
    }

    fn put_segments<'a>(&'a self, segments: &mut Segments<'a>) {
        for segment in &self.segments {
            segments.push(segment);
        }
    }

    fn advance(&mut self, mut written: usize) {
        while let Some(segment) = self.segments.front_mut() {
            if written < segment.len() {
                segment.advance(written);
                break;
            }
            written -= segment.len();
            self.segments.pop_front();
        }
        self.cut_part();
    }

    fn is_complete(&self) -> bool {
        self.has_ended
    }
}
