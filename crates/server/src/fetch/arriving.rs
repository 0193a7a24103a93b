//! A response body that is still at the upstream: read on demand, to the rate
//! that `*_limit_rate` lets through; whoever reads it to its end leaves a
//! connection that may serve again.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use site::{LogLevel, Pass};
use tokio::time::timeout;
use upstream::{Lease, Outcome, Stream};

use super::exchange::{Event, Exchange};
use super::{FetchSpec, LogContext, Os, Trace};
use crate::clock;
use crate::runtime::Runtime;
use crate::serve::file_copy::Copying;

/// A response body that is still at the upstream. Dropping it aborts, unless it
/// is being kept as a file: then the rest is read all the same.
pub struct UpstreamBody {
    pub(super) exchange: Option<Exchange>,
    pub(super) lease: Option<Lease>,
    requests: u32,
    born: u64,
    runtime: Arc<Runtime>,
    pub(super) pass: Arc<Pass>,
    trace: Arc<Mutex<Trace>>,
    log: LogContext,
    address: String,
    received: u64,
    ended: bool,
    trailers: Vec<(Bytes, Bytes)>,
    /// Bytes read in a second; 0: no limit.
    rate: u64,
    /// When the first bytes were read at that rate.
    reading_since: Option<tokio::time::Instant>,
    copying: Option<Box<Copying>>,
    /// There was more than the response's framing says.
    has_surplus: bool,
    /// Whoever the response was for is gone.
    has_no_reader: bool,
}

/// The body ended before it was complete.
#[derive(Debug)]
pub struct BrokenOff;

impl UpstreamBody {
    /// `requests` and `born` are the connection's, for when it is kept.
    pub(super) fn new(
        spec: &FetchSpec,
        exchange: Exchange,
        lease: Lease,
        (requests, born): (u32, u64),
        address: String,
    ) -> UpstreamBody {
        UpstreamBody {
            exchange: Some(exchange),
            lease: Some(lease),
            requests,
            born,
            runtime: spec.runtime.clone(),
            pass: spec.pass.clone(),
            trace: spec.trace.clone(),
            log: spec.log.clone(),
            address,
            received: 0,
            ended: false,
            trailers: Vec::new(),
            rate: spec.rate,
            reading_since: None,
            copying: None,
            has_surplus: false,
            has_no_reader: false,
        }
    }

    /// The next bytes; `None` when the response is complete.
    pub async fn next(&mut self) -> Result<Option<Bytes>, BrokenOff> {
        if self.ended {
            return Ok(None);
        }
        if self.rate > 0 {
            self.keep_to_rate().await;
        }
        loop {
            let Some(exchange) = &mut self.exchange else {
                return Err(BrokenOff);
            };
            let limit = self.pass.exchange.read_timeout;
            match timeout(limit, exchange.next()).await {
                Ok(Ok(Some(Event::Data(bytes)))) => {
                    self.received += bytes.len() as u64;
                    self.copy(&bytes);
                    return Ok(Some(bytes));
                }
                Ok(Ok(Some(Event::Stderr(text)))) => {
                    self.log_stderr(&text, "reading upstream");
                }
                Ok(Ok(Some(Event::Trailers(trailers)))) => {
                    self.trace.lock().trailers(&trailers);
                    self.trailers = trailers;
                }
                Ok(Ok(Some(Event::Head(_) | Event::Interim(_)))) => {}
                Ok(Ok(end @ (Some(Event::End(_)) | None))) => {
                    if let Some(Event::End(Some(surplus))) = end {
                        self.report(LogLevel::Warn, format_args!("{surplus}"));
                        self.has_surplus = true;
                    }
                    self.end();
                    self.end_copy();
                    return Ok(None);
                }
                Ok(Err(error)) => {
                    self.report(
                        LogLevel::Error,
                        format_args!("{error} while reading upstream"),
                    );
                    self.abandon(Outcome::Failure, None);
                    return Err(BrokenOff);
                }
                Err(_) => {
                    self.report(
                        LogLevel::Error,
                        format_args!(
                            "upstream timed out (110: Connection timed out) while reading upstream"
                        ),
                    );
                    self.abandon(Outcome::Failure, None);
                    return Err(BrokenOff);
                }
            }
        }
    }

    /// Keeps the response as a file as well. Nothing of its body was read before.
    pub fn copy_to(&mut self, copying: Copying) {
        self.copying = Some(Box::new(copying));
        if self.ended {
            self.end_copy();
        }
    }

    fn copy(&mut self, bytes: &[u8]) {
        let Some(copying) = &mut self.copying else {
            return;
        };
        if let Err(error) = copying.push(bytes) {
            let path = copying.path().to_owned();
            self.copying = None;
            self.report_copy(&path, &error);
        }
    }

    /// The response is over: it is kept, unless its upstream lied about its end.
    fn end_copy(&mut self) {
        let Some(copying) = self.copying.take().filter(|_| !self.has_surplus) else {
            return;
        };
        let path = copying.path().to_owned();
        if let Err(error) = copying.finish() {
            self.report_copy(&path, &error);
        }
    }

    fn report_copy(&self, path: &Path, error: &io::Error) {
        let (path, error) = (path.display(), Os(error));
        self.report(
            LogLevel::Crit,
            format_args!("\"{path}\" could not be stored ({error}) while reading upstream"),
        );
    }

    /// Nobody reads on, but the response is being kept as a file: a body that
    /// takes over the exchange.
    fn rest_to_copy(&mut self) -> Option<UpstreamBody> {
        if self.has_no_reader || self.exchange.is_none() {
            return None;
        }
        Some(UpstreamBody {
            copying: Some(self.copying.take()?),
            exchange: self.exchange.take(),
            lease: self.lease.take(),
            has_no_reader: true,
            runtime: self.runtime.clone(),
            pass: self.pass.clone(),
            trace: self.trace.clone(),
            log: self.log.clone(),
            address: std::mem::take(&mut self.address),
            trailers: Vec::new(),
            ..*self
        })
    }

    /// Without a body the response is over with its head: the connection may serve
    /// the next request at once. (A script may still be at work behind its length.)
    pub(super) async fn end_if_empty(&mut self) {
        let is_over = match &self.exchange {
            Some(Exchange::Http(exchange)) => exchange.has_whole_length(),
            _ => false,
        };
        if is_over {
            // Ends at once; what would be wrong shows again when it is read.
            let _ = self.next().await;
        }
    }

    /// Waits while more was read than `*_limit_rate` lets through; the second
    /// that has begun counts as a whole one.
    async fn keep_to_rate(&mut self) {
        let since = *self
            .reading_since
            .get_or_insert_with(tokio::time::Instant::now);
        let earned_at = self.received.saturating_mul(1000) / self.rate;
        let wait_until = since + Duration::from_millis(earned_at.saturating_sub(1000));
        tokio::time::sleep_until(wait_until).await;
    }

    /// All bytes that were promised are there, though PHP may still be at work.
    pub fn has_whole_length(&self) -> bool {
        self.ended
            || self
                .exchange
                .as_ref()
                .is_some_and(Exchange::has_whole_length)
    }

    /// `*_limit_rate`, in bytes per second; 0: no limit.
    pub fn set_rate(&mut self, rate: u64) {
        self.rate = rate;
    }

    pub fn settings(&self) -> &site::Exchange {
        &self.pass.exchange
    }

    /// Fields that followed the body and go on to the client
    /// (`proxy_pass_trailers`); known once `next` gave `None`.
    pub fn trailers(&self) -> &[(Bytes, Bytes)] {
        match self.pass.proxy() {
            Some(proxy) if proxy.pass_trailers => &self.trailers,
            _ => &[],
        }
    }

    fn report(&self, level: LogLevel, message: std::fmt::Arguments<'_>) {
        self.log.write(&self.runtime, level, message, &self.address);
    }

    pub(super) fn log_stderr(&self, text: &[u8], doing: &str) {
        let text = String::from_utf8_lossy(text.trim_ascii_end());
        self.report(
            LogLevel::Error,
            format_args!("FastCGI sent in stderr: \"{text}\" while {doing}"),
        );
    }

    /// The response is complete: the connection may serve the next request.
    fn end(&mut self) {
        self.ended = true;
        self.finish_trace(None);
        let now = clock::now();
        let Some(mut lease) = self.lease.take() else {
            return;
        };
        if let Some(stream) = self.exchange.take().and_then(Exchange::into_stream) {
            let connection = upstream::Connection {
                stream,
                requests: self.requests,
                born: self.born,
            };
            lease.keep(connection, now);
        }
        lease.report(Outcome::Success, now);
    }

    pub(super) fn abandon(&mut self, outcome: Outcome, status: Option<u16>) {
        self.finish_trace(status);
        self.exchange = None;
        if let Some(lease) = self.lease.take() {
            lease.report(outcome, clock::now());
        }
    }

    /// The connection and what was read ahead of it, after an upgrade. The lease
    /// lasts as long as the tunnel.
    pub fn into_tunnel(mut self) -> Option<(Stream, Bytes, Tunnel)> {
        let (stream, ahead) = self.exchange.take().and_then(Exchange::into_tunnel)?;
        let tunnel = Tunnel {
            lease: self.lease.take(),
            trace: self.trace.clone(),
        };
        Some((stream, ahead, tunnel))
    }

    /// Ends the exchange in favour of another server.
    pub fn give_up(mut self, outcome: Outcome) {
        self.abandon(outcome, None);
    }

    fn finish_trace(&self, status: Option<u16>) {
        let mut trace = self.trace.lock();
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
                worker.spawn(async move { while let Ok(Some(_)) = rest.next().await {} });
            }
        } else if self.lease.is_some() {
            self.abandon(Outcome::Neutral, None);
        }
    }
}

/// What a tunnel holds until it ends.
pub struct Tunnel {
    lease: Option<Lease>,
    trace: Arc<Mutex<Trace>>,
}

impl Tunnel {
    /// Both sides are done; so many bytes went each way.
    pub fn end(mut self, sent: u64, received: u64) {
        let mut trace = self.trace.lock();
        trace.count(sent, received, received);
        trace.end_try(None);
        drop(trace);
        if let Some(lease) = self.lease.take() {
            lease.report(Outcome::Success, clock::now());
        }
    }
}
