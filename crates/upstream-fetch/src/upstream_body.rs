//! A response body that is still at the upstream: read on demand, to the rate that `*_limit_rate`
//! lets through. A body that is read to its end leaves a connection that may serve again.

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clock::SharedDeadline;
use http_cache::Tags;
use site::LogLevel;
use system_error::SystemError;
use upstream::{Lease, Outcome, Stream};
use upstream_exchange::Event;

use super::context::FetchContext;
use super::exchange::{Error, Exchange};
use super::file_copy::FileCopy;
use super::spec::FetchSpec;
use super::tag_lines::TagLines;

/// A response head and the body behind it.
pub struct FetchedResponse {
    pub status: u16,
    pub reason: Bytes,
    pub fields: Vec<(Bytes, Bytes)>,
    pub content_length: Option<u64>,
    /// The connection is a tunnel from here on.
    pub is_upgrade: bool,
    /// How long the server took until the head was there, without the time in line.
    pub made_in: Duration,
    pub body: Box<UpstreamBody>,
}

/// A response body that is still at the upstream. Dropping it aborts, unless it
/// is being kept as a file: then the rest is read all the same.
pub struct UpstreamBody {
    pub(super) exchange: Option<Exchange>,
    pub(super) lease: Option<Lease>,
    connection: ConnectionAge,
    pub(super) context: Arc<FetchContext>,
    pub(super) deadline: SharedDeadline,
    address: Arc<str>,
    received: u64,
    end: BodyEnd,
    /// All of the body, where it came together with the head, or its first bytes where they were looked at.
    at_hand: Option<Bytes>,
    trailers: Vec<(Bytes, Bytes)>,
    pace: ReadingPace,
    file_copy: Option<Box<FileCopy>>,
    /// The client that the response was for is gone.
    has_no_reader: bool,
    /// The reader of tags in the error stream.
    tag_lines: Option<Box<TagLines>>,
}

/// The age and use of a connection, for when it is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionAge {
    pub requests: u32,
    pub born: u64,
}

/// Whether the body has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyEnd {
    Ahead,
    Reached,
    /// There was more data than the response's framing allows.
    Exceeded,
}

/// `*_limit_rate`
#[derive(Debug, Clone, Copy)]
struct ReadingPace {
    /// Bytes read in a second; 0: no limit.
    rate: u64,
    /// When the first bytes were read at that rate.
    since: Option<tokio::time::Instant>,
}

/// The body ended before it was complete.
#[derive(Debug)]
pub struct TruncatedBody;

impl UpstreamBody {
    pub(super) fn new(
        exchange: Exchange,
        lease: Lease,
        connection: ConnectionAge,
        spec: &FetchSpec,
    ) -> UpstreamBody {
        UpstreamBody {
            exchange: Some(exchange),
            address: lease.address().clone(),
            lease: Some(lease),
            connection,
            context: spec.context.clone(),
            deadline: spec.deadline.clone(),
            received: 0,
            end: BodyEnd::Ahead,
            at_hand: None,
            trailers: Vec::new(),
            pace: ReadingPace {
                rate: spec.rate,
                since: None,
            },
            file_copy: None,
            has_no_reader: false,
            tag_lines: spec
                .tag_mark
                .as_deref()
                .map(|mark| Box::new(TagLines::new(mark.as_bytes()))),
        }
    }

    /// Puts a body into the place of this one, which was read to its end: it is read next.
    pub fn put_back(&mut self, body: Bytes) {
        if self.has_ended() && !body.is_empty() {
            self.at_hand = Some(body);
        }
    }

    /// The whole body; `None` if it has more than `most` bytes.
    pub async fn whole(&mut self, most: usize) -> Result<Option<Vec<u8>>, TruncatedBody> {
        let mut body = Vec::new();
        while let Some(piece) = self.next().await? {
            if body.len() + piece.len() > most {
                return Ok(None);
            }
            body.extend_from_slice(&piece);
        }
        Ok(Some(body))
    }

    /// The next bytes; `None` when the response is complete.
    pub async fn next(&mut self) -> Result<Option<Bytes>, TruncatedBody> {
        if self.at_hand.is_some() || self.has_ended() {
            return Ok(self.at_hand.take());
        }
        if self.pace.rate > 0 {
            self.keep_to_rate().await;
        }
        loop {
            let Some(exchange) = &mut self.exchange else {
                return Err(TruncatedBody);
            };
            let limit = self.context.pass.exchange.read_timeout;
            let awaited = exchange.next_within(&self.deadline, |_| limit).await;
            if let Some(given) = self.give(awaited) {
                return given;
            }
        }
    }

    /// Turns an event or a timeout into a result for the reader; `None`: nothing yet.
    fn give(
        &mut self,
        awaited: Option<Result<Option<Event>, Error>>,
    ) -> Option<Result<Option<Bytes>, TruncatedBody>> {
        match awaited {
            Some(Ok(Some(Event::Data(bytes)))) => {
                self.received += bytes.len() as u64;
                self.copy(&bytes);
                return Some(Ok(Some(bytes)));
            }
            Some(Ok(Some(Event::Stderr(text)))) => {
                self.log_stderr(&text, "reading upstream");
                return None;
            }
            Some(Ok(Some(Event::Trailers(trailers)))) => {
                self.context.trace.lock().keep_trailers(&trailers);
                self.trailers = trailers;
                return None;
            }
            Some(Ok(Some(Event::Head(_) | Event::Interim(_)))) => return None,
            Some(Ok(end @ (Some(Event::End { .. }) | None))) => {
                self.end = BodyEnd::Reached;
                if let Some(Event::End {
                    excess_data: Some(excess),
                    ..
                }) = end
                {
                    self.report(LogLevel::Warn, format_args!("{excess}"));
                    self.end = BodyEnd::Exceeded;
                }
                self.end();
                self.end_copy();
                return Some(Ok(None));
            }
            Some(Err(error)) => self.report(
                LogLevel::Error,
                format_args!("{error} while reading upstream"),
            ),
            None => self.report(
                LogLevel::Error,
                format_args!(
                    "upstream timed out (110: Connection timed out) while reading upstream"
                ),
            ),
        }
        self.abandon(Outcome::Failure, None);
        Some(Err(TruncatedBody))
    }

    /// Keeps the response as a file as well. Nothing of its body was handed
    /// out before.
    pub fn copy_to(&mut self, file_copy: FileCopy) {
        self.file_copy = Some(Box::new(file_copy));
        if let Some(bytes) = self.at_hand.clone() {
            self.copy(&bytes);
        }
        if self.has_ended() {
            self.end_copy();
        }
    }

    fn copy(&mut self, bytes: &[u8]) {
        let Some(file_copy) = &mut self.file_copy else {
            return;
        };
        if let Err(error) = file_copy.push(bytes) {
            let path = file_copy.path().to_owned();
            self.file_copy = None;
            self.report_copy(&path, &error);
        }
    }

    /// Ends the copy of a complete response: it is kept, unless more data came than its framing allows.
    fn end_copy(&mut self) {
        let Some(file_copy) = self.file_copy.take().filter(|_| !self.has_excess_data()) else {
            return;
        };
        let path = file_copy.path().to_owned();
        if let Err(error) = file_copy.finish() {
            self.report_copy(&path, &error);
        }
    }

    /// The disk takes no more of a response that its client reads slowly.
    pub fn report_full_disk(&self, folder: &Path, error: &io::Error) {
        let (folder, error) = (folder.display(), SystemError(error));
        self.report(
            LogLevel::Crit,
            format_args!(
                "a temporary file in \"{folder}\" cannot be written ({error}), so the upstream has \
                 to wait for the client, while reading upstream"
            ),
        );
    }

    fn report_copy(&self, path: &Path, error: &io::Error) {
        let (path, error) = (path.display(), SystemError(error));
        self.report(
            LogLevel::Crit,
            format_args!("\"{path}\" could not be stored ({error}) while reading upstream"),
        );
    }

    async fn read_to_end(&mut self) {
        while let Ok(Some(_)) = self.next().await {}
    }

    /// A body that takes over the exchange, where the reader has gone but the response is being
    /// kept as a file.
    fn rest_to_copy(&mut self) -> Option<UpstreamBody> {
        if self.has_no_reader || self.exchange.is_none() {
            return None;
        }
        Some(UpstreamBody {
            file_copy: Some(self.file_copy.take()?),
            exchange: self.exchange.take(),
            lease: self.lease.take(),
            has_no_reader: true,
            context: self.context.clone(),
            // The client's connection, whose timer this was, goes on without it.
            deadline: SharedDeadline::default(),
            address: self.address.clone(),
            at_hand: None,
            trailers: Vec::new(),
            tag_lines: self.tag_lines.take(),
            ..*self
        })
    }

    /// A body that came together with its head is taken off the connection, which may serve the
    /// next request at once. So is the connection of a response without a body. (Not with FastCGI:
    /// a script may still be at work behind its length.)
    pub(super) fn take_at_hand(&mut self) {
        let is_here = match &self.exchange {
            Some(Exchange::Http(exchange)) => exchange.is_whole_body_here(),
            _ => false,
        };
        if !is_here {
            return;
        }
        let mut at_hand = None;
        // The bytes, if there are any, and the end. A fault in them shows again when they are read.
        for _ in 0..2 {
            let event = self.exchange.as_mut().and_then(Exchange::next_at_hand);
            match event.and_then(|event| self.give(Some(event))) {
                Some(Ok(Some(bytes))) => at_hand = Some(bytes),
                _ => break,
            }
        }
        self.at_hand = at_hand;
    }

    /// The first bytes, once they are there; `next` gives them as well. None of a body that is empty or fails.
    pub async fn first_bytes(&mut self) -> Option<&Bytes> {
        if self.at_hand.is_none() {
            self.at_hand = self.next().await.ok().flatten();
        }
        self.at_hand.as_ref()
    }

    /// All of a body of `length` bytes, where the upstream has nothing to do with it
    /// any more.
    pub fn at_hand(&self, length: u64) -> Option<&[Bytes]> {
        let bytes = self.at_hand.as_slice();
        let is_all = bytes.iter().map(|bytes| bytes.len() as u64).sum::<u64>() == length;
        (self.has_ended() && is_all).then_some(bytes)
    }

    /// Waits while more was read than `*_limit_rate` lets through; the second
    /// that has begun counts as a whole one.
    async fn keep_to_rate(&mut self) {
        let since = *self
            .pace
            .since
            .get_or_insert_with(tokio::time::Instant::now);
        let earned_at = self.received.saturating_mul(1000) / self.pace.rate;
        let wait_until = since + Duration::from_millis(earned_at.saturating_sub(1000));
        tokio::time::sleep_until(wait_until).await;
    }

    /// Whether the upstream sent more data than its response's framing allows; known once `next` gave `None`.
    pub fn has_excess_data(&self) -> bool {
        self.end == BodyEnd::Exceeded
    }

    fn has_ended(&self) -> bool {
        self.end != BodyEnd::Ahead
    }

    /// `*_limit_rate`, in bytes per second; 0: no limit.
    pub fn set_rate(&mut self, rate: u64) {
        self.pace.rate = rate;
    }

    pub fn settings(&self) -> &site::Exchange {
        &self.context.pass.exchange
    }

    /// Fields that followed the body and go on to the client
    /// (`proxy_pass_trailers`); known once `next` gave `None`.
    pub fn trailers(&self) -> &[(Bytes, Bytes)] {
        match self.context.pass.proxy() {
            Some(proxy) if proxy.pass_trailers => &self.trailers,
            _ => &[],
        }
    }

    /// Fields that followed the body, whether or not they go on; known once `next` gave `None`.
    pub fn received_trailers(&self) -> &[(Bytes, Bytes)] {
        &self.trailers
    }

    /// The tags that messages of the error stream have named; all of them once `next` gave `None`.
    pub fn tags_in_stderr(&self) -> Option<&Tags> {
        self.tag_lines.as_ref().map(|lines| lines.tags())
    }

    pub(super) fn report(&self, level: LogLevel, message: std::fmt::Arguments<'_>) {
        self.context.log.write(level, Some(&self.address), message);
    }

    /// Logs the text of the error stream, without the messages that name tags.
    pub(super) fn log_stderr(&mut self, text: &[u8], doing: &str) {
        let others = match &mut self.tag_lines {
            None => Cow::Borrowed(text),
            Some(lines) => Cow::Owned(lines.read(text)),
        };
        self.log_errors(&others, doing);
    }

    fn log_errors(&self, text: &[u8], doing: &str) {
        let text = text.trim_ascii_end();
        if text.is_empty() && self.tag_lines.is_some() {
            return;
        }
        let text = String::from_utf8_lossy(text);
        self.report(
            LogLevel::Error,
            format_args!("FastCGI sent in stderr: \"{text}\" while {doing}"),
        );
    }

    /// The response is complete: the connection may serve the next request.
    fn end(&mut self) {
        self.end_tag_lines();
        self.finish_trace(None);
        let now = clock::recent();
        let Some(mut lease) = self.lease.take() else {
            return;
        };
        if let Some(stream) = self.exchange.take().and_then(Exchange::into_stream) {
            let connection = upstream::Connection {
                stream,
                requests: self.connection.requests,
                born: self.connection.born,
            };
            lease.keep(connection, now);
        }
        lease.report(Outcome::Success, now);
    }

    /// Logs the text held back because it could have been a mark.
    fn end_tag_lines(&mut self) {
        let left = self.tag_lines.as_mut().map(|lines| lines.end());
        if let Some(left) = left {
            self.log_errors(&left, "reading upstream");
        }
    }

    pub(super) fn abandon(&mut self, outcome: Outcome, status: Option<u16>) {
        self.end_tag_lines();
        self.finish_trace(status);
        self.exchange = None;
        if let Some(lease) = self.lease.take() {
            lease.report(outcome, clock::recent());
        }
    }

    /// The connection and the bytes read ahead of it, after an upgrade.
    pub fn into_tunnel(mut self) -> Option<(Stream, Bytes, TunnelEnd)> {
        let (stream, received) = self.exchange.take().and_then(Exchange::into_tunnel)?;
        let mut lease = self.lease.take();
        if let Some(lease) = &mut lease {
            lease.end_turn();
        }
        let end = TunnelEnd {
            lease,
            context: self.context.clone(),
        };
        Some((stream, received, end))
    }

    /// Ends the exchange in favour of another server.
    pub fn give_up(mut self, outcome: Outcome) {
        self.abandon(outcome, None);
    }

    fn finish_trace(&self, status: Option<u16>) {
        let mut trace = self.context.trace.lock();
        if let Some(exchange) = &self.exchange {
            trace.count(
                exchange.sent_bytes(),
                exchange.received_bytes(),
                self.received,
            );
        }
        trace.end_try(status);
    }
}

impl Drop for UpstreamBody {
    fn drop(&mut self) {
        if let Some(mut rest) = self.rest_to_copy() {
            // Outside of a worker the future is dropped, and the copy with it.
            if let Ok(worker) = tokio::runtime::Handle::try_current() {
                worker.spawn(async move { rest.read_to_end().await });
            }
        } else if self.lease.is_some() {
            self.abandon(Outcome::Neutral, None);
        }
    }
}

/// The resources that a tunnel holds until it ends: the lease lasts as long.
pub struct TunnelEnd {
    lease: Option<Lease>,
    context: Arc<FetchContext>,
}

impl TunnelEnd {
    /// Notes that both sides are done, and how many bytes went each way.
    pub fn note(self, sent: u64, received: u64) {
        let mut trace = self.context.trace.lock();
        trace.count(sent, received, received);
        trace.end_try(None);
        drop(trace);
        if let Some(lease) = self.lease {
            lease.report(Outcome::Success, clock::now());
        }
    }
}
