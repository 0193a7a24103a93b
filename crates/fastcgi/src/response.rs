//! Pieces of records into the events of a response: head, data, end.
//!
//! Here the body is counted. The promise: an [`Event::End`] means that the
//! response is complete. A body shorter than its `Content-Length`, or one
//! that no END_REQUEST followed, ends in an error, never in `End`. Data
//! beyond `Content-Length` is cut off, as nginx does.

use bytes::{Bytes, BytesMut};

use crate::decoder::{Decoder, Piece};
use crate::error::{Error, HeadFault, RecordFault, Truncation};
use crate::head::{HeadParser, ResponseHead};

/// What happens in a response, in order: any number of `Stderr` at any place,
/// one `Head`, any number of `Data`, one `End`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Head(ResponseHead),
    /// A part of the body; never empty. A slice of the read buffer: copy
    /// what is kept for long.
    Data(Bytes),
    /// A part of what PHP wrote to its error stream; never empty. Cut where
    /// records and reads are cut, not at lines.
    Stderr(Bytes),
    /// The response is complete.
    End {
        /// The exit status of the application. `None` when the connection
        /// ended without END_REQUEST, though with all of `Content-Length`.
        app_status: Option<u32>,
        /// Whether the connection may carry another request.
        reusable: bool,
    },
}

/// Bytes in, events out, without I/O.
#[derive(Debug)]
pub struct ResponseReader {
    decoder: Decoder,
    stage: Stage,
    head_request: bool,
    stdout_closed: bool,
}

#[derive(Debug)]
enum Stage {
    Head(HeadParser),
    Body(Body),
    Ended,
}

#[derive(Debug)]
struct Body {
    /// What the head promised.
    expected_bytes: Option<u64>,
    /// Also right with no body at all: an answer to HEAD.
    may_be_empty: bool,
    received_bytes: u64,
    /// What came with the end of the head.
    first: Bytes,
}

impl ResponseReader {
    /// `head_request`: the request's method is HEAD, so that the response
    /// has either the body that it promises, or none.
    pub fn new(head_limit_bytes: usize, head_request: bool, buffer: BytesMut) -> ResponseReader {
        ResponseReader {
            decoder: Decoder::with_buffer(buffer),
            stage: Stage::Head(HeadParser::new(head_limit_bytes)),
            head_request,
            stdout_closed: false,
        }
    }

    /// Where bytes from PHP are appended.
    pub fn buffer(&mut self) -> &mut BytesMut {
        self.decoder.buffer()
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended)
    }

    /// Whether as much body arrived as `Content-Length` promises.
    pub fn has_whole_length(&self) -> bool {
        match &self.stage {
            Stage::Head(_) => false,
            Stage::Body(body) => body.has_whole_length(),
            Stage::Ended => true,
        }
    }

    /// The next event, or `None` when more bytes are needed, or none are.
    ///
    /// # Errors
    ///
    /// See [`Error`]; after one, nothing more may be expected.
    pub fn next_event(&mut self) -> Result<Option<Event>, Error> {
        // Every turn consumes a piece.
        loop {
            if let Stage::Body(body) = &mut self.stage {
                let first = std::mem::take(&mut body.first);
                if let Some(data) = body.take(first) {
                    return Ok(Some(Event::Data(data)));
                }
            }
            let Some(piece) = self.decoder.next_piece()? else {
                return Ok(None);
            };
            if let Some(event) = self.take_piece(piece)? {
                return Ok(Some(event));
            }
        }
    }

    /// The stream has ended: the last event, or what is missing.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] within the head (`before_first_byte` is left to the
    /// caller to correct), [`Error::Truncated`] within the body.
    pub fn end_of_input(&mut self) -> Result<Event, Error> {
        if let Some(piece) = self.decoder.end_of_input()
            && let Some(event) = self.take_piece(piece)?
        {
            return Ok(event);
        }
        match &self.stage {
            Stage::Body(body) if body.has_whole_length() => {
                self.stage = Stage::Ended;
                Ok(Event::End {
                    app_status: None,
                    reusable: false,
                })
            }
            Stage::Body(body) => Err(body.truncated(Truncation::ConnectionClosed)),
            Stage::Head(_) | Stage::Ended => Err(Error::Closed {
                before_first_byte: false,
            }),
        }
    }

    fn take_piece(&mut self, piece: Piece) -> Result<Option<Event>, Error> {
        match piece {
            Piece::Stderr(bytes) => Ok(Some(Event::Stderr(bytes))),
            Piece::Stdout(_) if self.stdout_closed => {
                Err(RecordFault::DataAfterStdoutClosed.into())
            }
            Piece::Stdout(bytes) => self.take_stdout(bytes),
            Piece::StdoutClosed => {
                self.stdout_closed = true;
                match &self.stage {
                    Stage::Head(_) => Err(HeadFault::Incomplete.into()),
                    Stage::Body(_) | Stage::Ended => Ok(None),
                }
            }
            Piece::EndRequest { app_status } => {
                match &self.stage {
                    Stage::Head(_) => return Err(HeadFault::Incomplete.into()),
                    Stage::Body(body) if !body.is_complete() => {
                        return Err(body.truncated(Truncation::RequestEnded));
                    }
                    Stage::Body(_) | Stage::Ended => {}
                }
                self.stage = Stage::Ended;
                Ok(Some(Event::End {
                    app_status: Some(app_status),
                    reusable: self.decoder.ended_cleanly(),
                }))
            }
        }
    }

    fn take_stdout(&mut self, bytes: Bytes) -> Result<Option<Event>, Error> {
        match &mut self.stage {
            Stage::Head(parser) => {
                let Some((head, first)) = parser.push(bytes)? else {
                    return Ok(None);
                };
                // A 204 or 304 has no content, whatever it promises (RFC
                // 9110, sections 15.3.5 and 15.4.5).
                let expected_bytes = match head.status {
                    204 | 304 => Some(0),
                    _ => head.content_length,
                };
                self.stage = Stage::Body(Body {
                    expected_bytes,
                    may_be_empty: self.head_request,
                    received_bytes: 0,
                    first,
                });
                Ok(Some(Event::Head(head)))
            }
            Stage::Body(body) => Ok(body.take(bytes).map(Event::Data)),
            Stage::Ended => Ok(None),
        }
    }
}

impl Body {
    /// Counts `data`, cut to what was promised; `None` when nothing is left.
    fn take(&mut self, mut data: Bytes) -> Option<Bytes> {
        if let Some(expected) = self.expected_bytes {
            let room = expected.saturating_sub(self.received_bytes);
            data.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        }
        self.received_bytes += data.len() as u64;
        (!data.is_empty()).then_some(data)
    }

    fn has_whole_length(&self) -> bool {
        self.expected_bytes == Some(self.received_bytes)
    }

    fn is_complete(&self) -> bool {
        self.expected_bytes.is_none()
            || self.has_whole_length()
            || (self.may_be_empty && self.received_bytes == 0)
    }

    fn truncated(&self, how: Truncation) -> Error {
        Error::Truncated {
            how,
            received_bytes: self.received_bytes,
            expected_bytes: self.expected_bytes,
        }
    }
}

pub(crate) fn fuzz(data: &[u8]) {
    /// Small, so that the fuzzer meets the limit.
    const HEAD_LIMIT_BYTES: usize = 512;

    let Some((&cut, rest)) = data.split_first() else {
        return;
    };
    let mut reader = ResponseReader::new(HEAD_LIMIT_BYTES, cut & 1 == 1, BytesMut::new());
    for part in rest.chunks(usize::from(cut / 2).max(1)) {
        reader.buffer().extend_from_slice(part);
        loop {
            match reader.next_event() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
    let _ = reader.end_of_input();
}
