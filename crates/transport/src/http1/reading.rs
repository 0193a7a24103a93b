//! Reading the head of the next request, and waiting for it.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_semantics::{FieldSpan, RequestHead, RequestLine, Span, Version};
use http1::{HeadLimits, ParsedHead, RequestError};
use tokio::time::Instant;
use transport_settings::HeadSettings;

use super::connection::Connection;
use crate::service::Service;
use crate::spare_fields;
use crate::stream::Phase;

/// The result of waiting for a request.
pub enum WaitOutcome {
    /// Its first bytes, in the buffer.
    Bytes,
    /// The client closed, or a graceful stop did.
    Closed,
    TimedOut,
}

/// The result of reading a head.
pub enum HeadRead {
    Head(RequestLine, Vec<FieldSpan>),
    /// The client closed or stayed silent in the middle of it.
    Abandoned(&'static str, u16),
    Refused(RequestError),
}

impl<S: Service> Connection<S> {
    /// Waits for the first bytes of a request. Nothing of the configuration is
    /// held meanwhile, and no buffer.
    pub(super) async fn await_request(&mut self) -> WaitOutcome {
        // For all that comes before a request: line ends do not prolong it.
        let until = clock::recent_instant() + self.idle;
        let mut is_protected = !self.protected.is_zero();
        loop {
            let end = match is_protected {
                true => {
                    self.stream.set_phase(Phase::Quiet);
                    until - self.idle.saturating_sub(self.protected)
                }
                false => {
                    self.stream.set_phase(Phase::Idle);
                    if self.service.closes_idle() && self.requests > 0 {
                        return WaitOutcome::Closed;
                    }
                    until
                }
            };
            let read = self.fill(end).await;
            self.stream.set_phase(Phase::Busy);
            match read {
                Ok(None) if is_protected => is_protected = false,
                Ok(Some(0)) | Err(_) => return WaitOutcome::Closed,
                Ok(None) => return WaitOutcome::TimedOut,
                Ok(Some(_)) => {}
            }
            match self.input() {
                Some(input) if is_between_requests(&input.buffer) => input.buffer.clear(),
                Some(_) => return WaitOutcome::Bytes,
                None => return WaitOutcome::Closed,
            }
        }
    }

    /// Reads until a whole head is there.
    pub(super) async fn read_head(&mut self, limits: &HeadLimits, timeout: Duration) -> HeadRead {
        let mut parsed_len = 0;
        let mut deadline = None;
        let mut fields = spare_fields::take();
        loop {
            let Some(input) = self.input() else {
                return HeadRead::Abandoned("client prematurely closed connection", 400);
            };
            if http1::worth_parsing(&input.buffer, parsed_len, limits) {
                match http1::parse_request(&input.buffer, limits, &mut fields) {
                    Ok(ParsedHead::Complete(line)) => return HeadRead::Head(line, fields),
                    Ok(ParsedHead::Partial) => {}
                    Err(error) => return HeadRead::Refused(error),
                }
            }
            parsed_len = input.buffer.len();
            let until = *deadline.get_or_insert_with(|| clock::recent_instant() + timeout);
            self.stream.set_phase(Phase::Reading);
            let read = self.fill(until).await;
            self.stream.set_phase(Phase::Busy);
            match read {
                Ok(Some(0)) | Err(_) => {
                    return HeadRead::Abandoned("client prematurely closed connection", 400);
                }
                Ok(None) => return HeadRead::Abandoned("client timed out", 408),
                Ok(Some(_)) => {}
            }
        }
    }

    /// Reads some bytes; `None` when `until` passed first. While nothing has
    /// come, the connection holds no buffer.
    pub(super) async fn fill(&mut self, until: Instant) -> io::Result<Option<usize>> {
        if self.input().is_none() {
            return Ok(Some(0));
        }
        let Some(input) = &mut self.input else {
            return Ok(Some(0));
        };
        let (stream, buffer) = (&self.stream, &mut input.buffer);
        let deadline = &mut self.deadline;
        deadline.until(until);
        let mut is_woken = false;
        poll_fn(|cx| {
            let was_woken = std::mem::replace(&mut is_woken, true);
            match stream.poll_receive(cx, buffer, was_woken) {
                Poll::Ready(read) => Poll::Ready(read.map(Some)),
                Poll::Pending => deadline.poll(cx).map(|()| Ok(None)),
            }
        })
        .await
    }
}

/// Takes the head at the start of `buffer`. If nothing follows it, the memory goes along,
/// and the connection keeps none.
pub fn take_head(buffer: &mut BytesMut, head_len: usize) -> Bytes {
    match buffer.len() == head_len {
        true => std::mem::take(buffer).freeze(),
        false => buffer.split_to(head_len).freeze(),
    }
}

/// Is a whole head there, by the empty line behind it?
pub fn holds_head(buffer: &[u8]) -> bool {
    let start = buffer
        .iter()
        .position(|&byte| byte != b'\r' && byte != b'\n');
    start.is_some_and(|start| {
        let head = &buffer[start..];
        memchr::memmem::find(head, b"\n\r\n").is_some()
            || memchr::memmem::find(head, b"\n\n").is_some()
    })
}

/// Nothing but line ends, which clients may send between requests (RFC 9112 §2.2).
pub fn is_between_requests(buffer: &[u8]) -> bool {
    buffer.iter().all(|&byte| byte == b'\r' || byte == b'\n')
}

/// The limits that are configured.
pub fn limits(settings: &HeadSettings) -> HeadLimits {
    let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
    HeadLimits {
        first_buffer_bytes: bytes(settings.buffer_bytes),
        large_buffers: settings.large_buffers,
        large_buffer_bytes: bytes(settings.large_buffer_bytes),
        max_fields: settings.max_fields,
        ignore_invalid_fields: settings.ignore_invalid,
        underscores: settings.underscores,
    }
}

/// Creates the head of an unparsable request: its first line, for the log.
pub fn unreadable_head(buffer: &[u8]) -> RequestHead {
    let end = buffer
        .iter()
        .position(|&byte| byte == b'\n' || byte == b'\r')
        .unwrap_or(buffer.len());
    // Its request line may be sound, and is then logged.
    let alone = [&buffer[..end], b"\r\n\r\n"].concat();
    let mut fields = Vec::new();
    if let Ok(ParsedHead::Complete(line)) =
        http1::parse_request(&alone, &HeadLimits::default(), &mut fields)
    {
        return RequestHead {
            bytes: alone.into(),
            line,
            fields,
        };
    }
    let bytes = Bytes::copy_from_slice(&buffer[..end]);
    let nothing = Span::new(0, 0);
    RequestHead {
        line: RequestLine {
            head_len: end,
            method: nothing,
            target: nothing,
            line: Span::new(0, end),
            version: Version::Http10,
            ignored_fields: 0,
            presence: http_semantics::Presence::default(),
        },
        bytes,
        fields: Vec::new(),
    }
}
