//! The task of a connection: begins its requests, reads its control stream, and ends it so that
//! the client knows which of its requests were served.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http3::{Code, ControlReader, DecoderReader, StreamKind};
use parking_lot::Mutex;
use quinn::{RecvStream, SendStream};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;

use super::field_tables::FieldTables;
use super::request::{self, OpenStream, RequestContext};
use super::settings::Settings;
use super::stream::varint;
use crate::connections::TrackedConnection;
use crate::facts::ConnectionFacts;
use crate::service::Service;
use crate::stream::Phase;

/// How long a client may take to learn that the connection ends, before a second GOAWAY names
/// the last request.
const SHUTDOWN_PAUSE: Duration = Duration::from_secs(1);
/// Read from a stream at once that carries no request.
const READ_BYTES: usize = 4096;
/// The most streams that may hold a long piece of a body each (64 KB): as much again as is
/// written in one turn. The others read short ones.
const LONG_PIECES: usize = 4;
/// The number of types of streams: the low bits of a stream's number name its initiator and
/// direction (RFC 9000 §2.1).
const STREAM_NUMBERS: u64 = 4;

/// The activity of a connection, for others.
pub struct QuicPhase(AtomicU8);

impl QuicPhase {
    pub fn new() -> QuicPhase {
        QuicPhase(AtomicU8::new(Phase::Reading as u8))
    }

    fn set(&self, phase: Phase) {
        self.0.store(phase as u8, Ordering::Relaxed);
    }
}

impl TrackedConnection for QuicPhase {
    fn phase(&self) -> Phase {
        Phase::of(self.0.load(Ordering::Relaxed))
    }

    /// Its own task hears of the graceful stop.
    fn close_if_idle(&self) {}
}

/// The link between a connection and its listener.
pub struct ListenerLink<'a> {
    pub phase: &'a QuicPhase,
    /// Once its sender is gone, there is no listener any more.
    pub end: watch::Receiver<()>,
}

/// Serves a connection, whose handshake is over, until it ends.
pub async fn serve<S: Service>(
    service: Arc<S>,
    connection: quinn::Connection,
    facts: ConnectionFacts,
    memory: S::Memory,
    settings: Settings,
    listener: ListenerLink<'_>,
) {
    let idle_ms = clock::millis(settings.first_request_timeout);
    let answering = Arc::new(RequestContext {
        service,
        memory: Mutex::new(memory),
        facts: Arc::new(facts),
        tables: Arc::new(FieldTables::new(connection.clone())),
        connection,
        limits: settings.head.clone(),
        requests: AtomicU64::new(0),
        unfinished_heads: Arc::default(),
        long_pieces: Arc::new(Semaphore::new(LONG_PIECES)),
        open: AtomicUsize::new(0),
        changed: Notify::new(),
        idle_ms: AtomicU64::new(idle_ms),
        is_last: AtomicBool::new(false),
    });
    let connection = answering.connection.clone();
    let Ok(mut control) = connection.open_uni().await else {
        return;
    };
    let list_bytes = settings.head.max_list_bytes as u64;
    let begun = control.write_all(&http3::settings(list_bytes)).await;
    if begun.is_err() {
        return;
    }
    let mut driver = Driver {
        answering,
        control,
        max_streams: settings.max_concurrent_streams as usize,
        next_stream: 0,
        shutdown: Shutdown::None,
        quiet_since: Instant::now(),
        seen_streams: Arc::new(AtomicU8::new(0)),
    };
    if driver.run(listener).await.is_ok() {
        connection.close(varint(Code::NO_ERROR), b"");
    }
}

/// How far the end of a connection is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shutdown {
    None,
    /// A GOAWAY was sent at this time: the client must begin nothing more here.
    Announced(Instant),
    /// The GOAWAY that names the last request was sent.
    Final,
}

struct Driver<S: Service> {
    answering: Arc<RequestContext<S>>,
    control: SendStream,
    max_streams: usize,
    /// Requests from this stream on were not begun.
    next_stream: u64,
    shutdown: Shutdown,
    /// When a request was last begun or ended.
    quiet_since: Instant,
    /// The streams there may be one of each, as bits.
    seen_streams: Arc<AtomicU8>,
}

/// The connection is over already.
struct LostConnection;

impl From<quinn::ConnectionError> for LostConnection {
    fn from(_: quinn::ConnectionError) -> LostConnection {
        LostConnection
    }
}

impl<S: Service> Driver<S> {
    /// Serves until the connection has to close.
    async fn run(&mut self, listener: ListenerLink<'_>) -> Result<(), LostConnection> {
        let ListenerLink { phase, end } = listener;
        let answering = self.answering.clone();
        let connection = &answering.connection;
        let mut stopping = pin!(end_of_listener(answering.service.stopping(), end));
        let mut is_stopping = false;
        loop {
            let open = answering.open.load(Ordering::Acquire);
            phase.set(match open {
                0 if self.next_stream > 0 => Phase::Quiet,
                0 => Phase::Reading,
                _ => Phase::Busy,
            });
            if open == 0 && self.shutdown == Shutdown::Final {
                return Ok(());
            }
            let deadline = self.deadline(open);
            tokio::select! {
                accepted = connection.accept_bi() => {
                    let (send, receive) = accepted?;
                    self.begin(send, receive, open);
                }
                accepted = connection.accept_uni() => self.begin_other(accepted?),
                () = &mut stopping, if !is_stopping => {
                    is_stopping = true;
                    self.announce_end().await;
                }
                () = answering.changed.notified() => {
                    self.quiet_since = Instant::now();
                    if answering.is_last.load(Ordering::Relaxed) {
                        self.announce_end().await;
                    }
                }
                () = sleep_until(deadline) => self.end().await,
            }
        }
    }

    /// Returns when the connection ends at the latest.
    fn deadline(&self, open: usize) -> Option<Instant> {
        let idle = Duration::from_millis(self.answering.idle_ms.load(Ordering::Relaxed));
        let announced = match self.shutdown {
            Shutdown::Announced(at) => Some(at + SHUTDOWN_PAUSE),
            Shutdown::None | Shutdown::Final => None,
        };
        let idle_end = (open == 0)
            .then(|| self.quiet_since.checked_add(idle))
            .flatten();
        match (announced, idle_end) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// A request begins.
    fn begin(&mut self, send: SendStream, receive: RecvStream, open: usize) {
        self.quiet_since = Instant::now();
        let is_overloaded = open >= 2 * self.max_streams.max(1);
        if self.shutdown == Shutdown::Final || is_overloaded {
            return self.answering.turn_away(send, receive);
        }
        self.next_stream = (send.id().index() + 1) * STREAM_NUMBERS;
        let stream = OpenStream::new(&self.answering);
        tokio::spawn(request::serve(stream, send, receive));
    }

    /// A stream that carries no request.
    fn begin_other(&self, receive: RecvStream) {
        let (answering, seen) = (self.answering.clone(), self.seen_streams.clone());
        tokio::spawn(async move {
            if let Err(error) = read_other(receive, &seen, &answering.tables).await {
                answering.fail(error);
            }
        });
    }

    /// Announces to the client that it must begin nothing more on this connection.
    async fn announce_end(&mut self) {
        if self.shutdown == Shutdown::None {
            self.shutdown = Shutdown::Announced(Instant::now());
            self.say(http3::goaway_frame(None)).await;
        }
    }

    /// Sends the GOAWAY that names the last request, and takes no further ones.
    async fn end(&mut self) {
        self.shutdown = Shutdown::Final;
        self.say(http3::goaway_frame(Some(self.next_stream))).await;
    }

    async fn say(&mut self, frame: Vec<u8>) {
        let frame = Bytes::from(frame);
        let written = self.control.write_chunk(frame);
        // A client that takes nothing will not take the end of the connection either.
        let _ = tokio::time::timeout(SHUTDOWN_PAUSE, written).await;
    }
}

/// Resolves when the server stops, or a reload has taken the listener away.
pub async fn end_of_listener(stopped: impl Future<Output = ()>, mut end: watch::Receiver<()>) {
    tokio::select! {
        () = stopped => {}
        () = async { while end.changed().await.is_ok() {} } => {}
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Reads a stream that carries no request, until the connection ends.
async fn read_other(
    mut receive: RecvStream,
    seen: &AtomicU8,
    tables: &Arc<FieldTables>,
) -> Result<(), http3::Error> {
    let mut input = BytesMut::new();
    let kind = loop {
        if let Some(kind) = StreamKind::read(&mut input) {
            break kind;
        }
        match receive.read_chunk(READ_BYTES, true).await {
            Ok(Some(chunk)) => input.extend_from_slice(&chunk.bytes),
            // The stream may end before its type is sent (RFC 9114 §6.2).
            Ok(None) | Err(_) => return Ok(()),
        }
    };
    let bit = match kind {
        StreamKind::Control => 1,
        StreamKind::QpackEncoder => 2,
        StreamKind::QpackDecoder => 4,
        StreamKind::Push => {
            return Err(http3::Error {
                code: Code::STREAM_CREATION_ERROR,
                reason: "began a stream for a push",
            });
        }
        StreamKind::Unknown => {
            let _ = receive.stop(varint(Code::STREAM_CREATION_ERROR));
            return Ok(());
        }
    };
    if seen.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
        return Err(http3::Error {
            code: Code::STREAM_CREATION_ERROR,
            reason: "began a second stream of a kind there is one of",
        });
    }
    let mut control = ControlReader::default();
    loop {
        match kind {
            StreamKind::Control => while control.next(&mut input)?.is_some() {},
            StreamKind::QpackEncoder => tables.take(&mut input)?,
            _ => DecoderReader.take(&mut input)?,
        }
        match receive.read_chunk(READ_BYTES, true).await {
            Ok(Some(chunk)) => input.extend_from_slice(&chunk.bytes),
            Err(quinn::ReadError::ConnectionLost(_)) => return Ok(()),
            Ok(None) | Err(_) => {
                return Err(http3::Error {
                    code: Code::CLOSED_CRITICAL_STREAM,
                    reason: "closed a stream that must stay open",
                });
            }
        }
    }
}
