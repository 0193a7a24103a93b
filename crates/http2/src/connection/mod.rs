//! A connection, as the server sees it: bytes in, events out (`receive.rs`, `blocks.rs`);
//! responses in, frames out (`send.rs`); its streams and its end, here.
//!
//! The caller passes the time with each call, and no two calls overlap. LIFECYCLE.md of this
//! crate draws the states of a stream.

mod blocks;
mod receive;
mod send;
mod unended;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use hashbrown::HashMap;

use self::blocks::OpenBlock;
use self::unended::UnendedRequests;
use crate::bounds::{
    Allowances, CONGESTED_BYTES, Flood, REMEMBERED_PRIORITIES, REMEMBERED_STREAMS,
};
use crate::error::{ConnectionError, ErrorCode, FrameError, StreamError};
use crate::event::{Event, Notice, ReceivedInput, ResetCause};
use crate::flow::{DEFAULT_WINDOW_BYTES, ReceiveWindow, SendWindow};
use crate::frame::{
    FrameHeader, FrameKind, HEADER_BYTES, MAX_FRAME_BYTES, StreamId, write_goaway, write_ping,
    write_reset, write_window_update,
};
use crate::head::HeadBuffer;
use crate::hpack::Decoder;
use crate::preface::{PREFACE, Preface, read_preface};
use crate::priority::Priority;
use crate::progress::Progress;
use crate::request_error::RequestError;
use crate::scheduler::Scheduler;
use crate::settings::{PeerSettings, Settings};
use crate::stream::{RequestState, ResponseState, Stream, StreamState};

pub use send::SendError;

/// One HTTP/2 connection of a client.
// Large: one state machine: a frame may change settings, windows, streams and what is to be sent.
#[derive(Debug)]
pub struct Connection {
    settings: Settings,
    peer: PeerSettings,
    /// How far the peer is with its first bytes.
    opening: Opening,
    /// Whether the peer has our settings in force.
    is_acknowledged: bool,
    decoder: Decoder,
    /// A field block whose CONTINUATION frames are still to come.
    block: Option<OpenBlock>,
    streams: HashMap<StreamId, Stream, foldhash::fast::FixedState>,
    unended: UnendedRequests,
    /// The highest stream that was begun.
    last_stream: StreamId,
    closed: ClosedStreams,
    /// Priorities of streams to come.
    priorities: VecDeque<(StreamId, Priority)>,
    scheduler: Scheduler,
    send_window: SendWindow,
    /// Bytes of bodies that were given and are not in the output yet, of all streams.
    queued_bytes: usize,
    /// More may be given on some stream than before.
    has_more_room: bool,
    receive_window: ReceiveWindow,
    allowances: Allowances,
    /// Frames that wait for [`Connection::take_output`]: all but DATA.
    pending: Vec<u8>,
    notices: VecDeque<Notice>,
    /// Whether a field block must begin with a word about the dynamic table.
    owes_table_size: bool,
    shutdown: Shutdown,
    failed: Option<ConnectionError>,
    /// The progress of all streams together.
    progress: Progress,
    now: Instant,
}

/// How far the peer is with the preface (RFC 9113 §3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    Preface,
    Done,
}

/// How far a graceful end is (§6.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shutdown {
    /// No end is in sight.
    None,
    /// A first GOAWAY announced the end; requests that the client sent before it knew are
    /// served.
    Announced,
    /// A GOAWAY named the last stream.
    Final,
}

/// The payload of the PING that [`Connection::shut_down`] sends; its answer shows that the
/// client knows.
const SHUTDOWN_PING: [u8; 8] = *b"shutdown";

/// The meaning of a frame.
enum Step<'a> {
    Request {
        stream: StreamId,
        block_bytes: usize,
        content_length: Option<u64>,
        end_stream: bool,
    },
    BadRequest(StreamId, RequestError),
    Data {
        stream: StreamId,
        data: &'a [u8],
        end_stream: bool,
    },
    Trailers(StreamId),
    Reset {
        stream: StreamId,
        cause: ResetCause,
        sent_bytes: u64,
    },
    GoAway(ErrorCode),
}

impl<'a> Step<'a> {
    fn into_event(self, head: &'a HeadBuffer) -> Event<'a> {
        match self {
            Step::Request {
                stream,
                block_bytes,
                content_length,
                end_stream,
            } => Event::Request {
                stream,
                block_bytes,
                head: head.request(),
                content_length,
                end_stream,
            },
            Step::BadRequest(stream, error) => Event::BadRequest { stream, error },
            Step::Data {
                stream,
                data,
                end_stream,
            } => Event::Data {
                stream,
                data,
                end_stream,
            },
            Step::Trailers(stream) => Event::Trailers {
                stream,
                fields: head.trailers(),
            },
            Step::Reset {
                stream,
                cause,
                sent_bytes,
            } => Event::Reset {
                stream,
                cause,
                sent_bytes,
            },
            Step::GoAway(code) => Event::GoAway { code },
        }
    }
}

/// Streams that were closed lately.
#[derive(Debug, Default)]
struct ClosedStreams(VecDeque<(StreamId, bool)>);

impl ClosedStreams {
    fn push(&mut self, stream: StreamId, was_reset_by_us: bool) {
        if self.0.len() == REMEMBERED_STREAMS {
            self.0.pop_front();
        }
        self.0.push_back((stream, was_reset_by_us));
    }

    /// Returns whether we reset it; `None` for one that is not remembered.
    fn find(&self, stream: StreamId) -> Option<bool> {
        let found = self.0.iter().rev().find(|(other, _)| *other == stream);
        found.map(|(_, was_reset_by_us)| *was_reset_by_us)
    }
}

impl Connection {
    /// A connection on which nothing was received yet. Our SETTINGS are among the first
    /// output.
    pub fn new(settings: Settings, now: Instant) -> Self {
        let mut pending = Vec::new();
        settings.announce(&mut pending);
        let window = settings.connection_window();
        if window > DEFAULT_WINDOW_BYTES {
            let increment = window - DEFAULT_WINDOW_BYTES;
            write_window_update(&mut pending, StreamId::CONNECTION, increment);
        }
        Connection {
            settings,
            peer: PeerSettings::default(),
            opening: Opening::Preface,
            is_acknowledged: false,
            decoder: Decoder::default(),
            block: None,
            streams: HashMap::default(),
            unended: UnendedRequests::default(),
            last_stream: StreamId::CONNECTION,
            closed: ClosedStreams::default(),
            priorities: VecDeque::new(),
            scheduler: Scheduler::default(),
            send_window: SendWindow::new(DEFAULT_WINDOW_BYTES),
            queued_bytes: 0,
            has_more_room: false,
            receive_window: ReceiveWindow::new(window, window),
            allowances: Allowances::new(now),
            pending,
            notices: VecDeque::new(),
            owes_table_size: false,
            shutdown: Shutdown::None,
            failed: None,
            progress: Progress::new(now),
            now,
        }
    }

    /// Reads input up to the first event. Call it again with the rest until there is no
    /// event any more. It looks at a frame when it is whole, and a frame has at most
    /// [`MAX_FRAME_BYTES`] and a header of [`HEADER_BYTES`].
    ///
    /// # Errors
    /// The connection cannot go on. Its output has a GOAWAY frame with the reason; write it,
    /// and close. All streams are gone.
    pub fn receive<'a>(
        &mut self,
        input: &'a [u8],
        head: &'a mut HeadBuffer,
        now: Instant,
    ) -> Result<ReceivedInput<'a>, ConnectionError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.now = now;
        self.allowances.refill(now);
        let mut consumed = 0;
        loop {
            let rest = input.get(consumed..).unwrap_or_default();
            let (bytes, step) = match self.receive_one(rest, head) {
                Ok(one) => one,
                Err(error) => return Err(self.fail(error)),
            };
            consumed += bytes;
            if let Some(step) = step {
                let event = Some(step.into_event(head));
                return Ok(ReceivedInput { consumed, event });
            }
            if bytes == 0 {
                let event = None;
                return Ok(ReceivedInput { consumed, event });
            }
        }
    }

    /// Reads one frame, or the preface: how many bytes it had, none if it is not whole.
    fn receive_one<'a>(
        &mut self,
        input: &'a [u8],
        head: &mut HeadBuffer,
    ) -> Result<(usize, Option<Step<'a>>), ConnectionError> {
        if self.opening == Opening::Preface {
            return match read_preface(input) {
                Preface::Partial => Ok((0, None)),
                Preface::Absent => Err(ConnectionError::InvalidPreface),
                // SETTINGS should follow (§3.4). Nothing depends on it, and nginx serves clients
                // that have nothing to set.
                Preface::Complete => {
                    self.opening = Opening::Done;
                    Ok((PREFACE.len(), None))
                }
            };
        }
        let Some(header) = FrameHeader::read(input) else {
            return Ok((0, None));
        };
        self.check_header(header)?;
        let end = HEADER_BYTES + header.length as usize;
        let Some(payload) = input.get(HEADER_BYTES..end) else {
            return Ok((0, None));
        };
        match self.process(header, payload, head) {
            Ok(step) => Ok((end, step)),
            Err(FrameError::Stream(stream, error)) => {
                let step = self.fail_stream(stream, error)?;
                Ok((end, step))
            }
            Err(FrameError::Connection(error)) => Err(error),
        }
    }

    /// Checks a frame by its header, before the payload is there.
    fn check_header(&mut self, header: FrameHeader) -> Result<(), ConnectionError> {
        if header.length as usize > MAX_FRAME_BYTES {
            return Err(ConnectionError::FrameTooLarge(header.kind, header.length));
        }
        if header.kind == FrameKind::PushPromise {
            return Err(ConnectionError::PushPromise);
        }
        match &self.block {
            Some(block)
                if header.kind != FrameKind::Continuation || header.stream != block.stream() =>
            {
                Err(ConnectionError::ExpectedContinuation(header.kind))
            }
            _ => Ok(()),
        }
    }

    /// Ends one stream because of the client's error.
    fn fail_stream(
        &mut self,
        stream: StreamId,
        error: StreamError,
    ) -> Result<Option<Step<'static>>, ConnectionError> {
        self.charge(match error {
            StreamError::Refused => Flood::RefusedStreams,
            _ => Flood::StreamErrors,
        })?;
        write_reset(&mut self.pending, stream, error.code());
        let Some(removed) = self.remove(stream, true) else {
            if self.closed.find(stream) != Some(true) {
                self.closed.push(stream, true);
            }
            return Ok(None);
        };
        Ok(reset_step(stream, &removed, ResetCause::Error(error)))
    }

    fn fail(&mut self, error: ConnectionError) -> ConnectionError {
        self.fail_with(error.code());
        self.failed = Some(error);
        error
    }

    fn fail_with(&mut self, code: ErrorCode) {
        write_goaway(&mut self.pending, self.last_stream, code);
        self.shutdown = Shutdown::Final;
        self.streams.clear();
        self.queued_bytes = 0;
        self.unended.clear();
        self.scheduler = Scheduler::default();
        self.block = None;
    }

    fn charge(&mut self, flood: Flood) -> Result<(), ConnectionError> {
        self.allowances
            .charge(flood)
            .map_err(ConnectionError::Flood)
    }

    /// Takes a stream out, and gives back its body's part of the window.
    fn remove(&mut self, stream: StreamId, was_reset_by_us: bool) -> Option<Stream> {
        let removed = self.streams.remove(&stream)?;
        if removed.is_scheduled {
            self.scheduler.remove(stream, removed.priority);
        }
        self.unended.remove(stream);
        self.queued_bytes -= removed.body.len();
        self.has_more_room = true;
        self.closed.push(stream, was_reset_by_us);
        self.release_connection(removed.receive_window.held());
        Some(removed)
    }

    /// Puts a stream into the scheduler if it can send.
    fn schedule(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id)
            && !stream.is_scheduled
            && stream.can_send()
        {
            stream.is_scheduled = true;
            self.scheduler.add(id, stream.priority);
        }
    }

    fn release_connection(&mut self, bytes: usize) {
        if let Some(increment) = self.receive_window.release(bytes) {
            write_window_update(&mut self.pending, StreamId::CONNECTION, increment);
        }
    }

    /// Keeps a priority for a stream that is not there yet; the oldest makes room.
    fn remember_priority(&mut self, stream: StreamId, priority: Priority) {
        self.priorities.retain(|(other, _)| *other != stream);
        if self.priorities.len() == REMEMBERED_PRIORITIES {
            self.priorities.pop_front();
        }
        self.priorities.push_back((stream, priority));
    }

    fn take_priority(&mut self, stream: StreamId) -> Option<Priority> {
        let at = self
            .priorities
            .iter()
            .position(|(other, _)| *other == stream)?;
        let (_, priority) = self.priorities.remove(at)?;
        Some(priority)
    }

    /// Lets the client send more of a request's body: this many bytes of it were consumed.
    pub fn release(&mut self, stream: StreamId, bytes: usize) {
        let Some(found) = self.streams.get_mut(&stream) else {
            return; // Given back when it was closed.
        };
        let held = found.receive_window.held().min(bytes);
        let increment = found.receive_window.release(held);
        let goes_on = found.state == StreamState::Open && found.request == RequestState::Valid;
        if let Some(increment) = increment.filter(|_| goes_on) {
            write_window_update(&mut self.pending, stream, increment);
        }
        self.release_connection(held);
    }

    /// Ends a stream at our wish, whatever it has sent. A client may send a request again
    /// that was ended with [`ErrorCode::REFUSED_STREAM`].
    pub fn reset(&mut self, stream: StreamId, code: ErrorCode) {
        if self.remove(stream, true).is_some() {
            write_reset(&mut self.pending, stream, code);
        }
    }

    /// Announces the end of the connection to the client, and serves the requests that it
    /// sent before it knew (§6.8). Once it knows, or when [`Connection::finish_shutdown`] is
    /// called, a second GOAWAY names the last stream.
    pub fn shut_down(&mut self) {
        if self.shutdown == Shutdown::None {
            self.shutdown = Shutdown::Announced;
            write_goaway(&mut self.pending, StreamId::MAX, ErrorCode::NO_ERROR);
            write_ping(&mut self.pending, SHUTDOWN_PING, false);
        }
    }

    /// Ends the time in which new streams are accepted. Open streams go on.
    pub fn finish_shutdown(&mut self) {
        if self.shutdown != Shutdown::Final {
            self.shutdown = Shutdown::Final;
            write_goaway(&mut self.pending, self.last_stream, ErrorCode::NO_ERROR);
        }
    }

    /// Ends the connection at our wish: all streams are gone, and a GOAWAY frame with this
    /// code is the last output.
    pub fn abort(&mut self, code: ErrorCode) {
        if self.failed.is_none() {
            self.fail_with(code);
        }
    }

    /// Returns whether a GOAWAY has named the last stream.
    pub fn is_shutdown_final(&self) -> bool {
        self.shutdown == Shutdown::Final
    }

    /// Returns whether the connection was shut down and no response is left. Once the output is
    /// written, it can be closed.
    pub fn is_finished(&self) -> bool {
        self.shutdown == Shutdown::Final && self.open_streams() == 0
    }

    /// Returns whether a field block has begun and CONTINUATION frames are still to come.
    pub fn is_in_head(&self) -> bool {
        self.block.is_some()
    }

    /// Bounds the DATA frames of a response (`http2_chunk_size` where it was made).
    pub fn set_chunk_bytes(&mut self, stream: StreamId, bytes: usize) {
        if let Some(found) = self.streams.get_mut(&stream) {
            found.chunk_bytes = bytes.max(1);
        }
    }

    /// Returns how many streams are open whose response has not ended.
    pub fn open_streams(&self) -> usize {
        self.streams.len() - self.unended.len()
    }

    /// Returns whether [`Connection::take_output`] has something to give.
    pub fn has_output(&self) -> bool {
        let can_send = !self.scheduler.is_empty() && self.send_window.available() > 0;
        can_send || !self.pending.is_empty()
    }

    /// Returns whether nothing should be read, because too many bytes wait to be written: else
    /// a client that does not read makes us keep answers without bound.
    pub fn is_congested(&self) -> bool {
        self.pending.len() >= CONGESTED_BYTES
    }

    /// Returns when the stream that waits longest made progress, of those that have something
    /// to send: the client's windows, or its socket, take nothing more.
    pub fn stalled_since(&self) -> Option<Instant> {
        let progress = self
            .streams
            .values()
            .filter_map(|stream| self.waits_since(stream));
        progress.min()
    }

    /// Resets the streams that have something to send and made no progress for this time, and
    /// returns them.
    pub fn reset_stalled(&mut self, timeout: Duration, now: Instant) -> Vec<StreamId> {
        self.now = now;
        let is_stalled = |stream: &Stream| {
            let since = self.waits_since(stream);
            since.is_some_and(|since| now.saturating_duration_since(since) >= timeout)
        };
        let stalled = self.streams.iter().filter(|(_, stream)| is_stalled(stream));
        let mut stalled: Vec<StreamId> = stalled.map(|(id, _)| *id).collect();
        stalled.sort_unstable();
        for stream in &stalled {
            self.reset(*stream, ErrorCode::CANCEL);
        }
        stalled
    }

    /// Returns since when a stream with something to send has waited. One that waits for its
    /// turn makes progress while others do.
    fn waits_since(&self, stream: &Stream) -> Option<Instant> {
        if stream.body.is_empty() {
            return None;
        }
        Some(match stream.is_scheduled {
            true => stream.progress.at.max(self.progress.at),
            false => stream.progress.at,
        })
    }

    /// Returns how a response goes; call it until there is nothing more to say.
    pub fn next_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Returns whether a response was begun on a stream, and the stream is still there.
    pub fn has_answer(&self, stream: StreamId) -> bool {
        let found = self.streams.get(&stream);
        found.is_some_and(|stream| stream.answer != ResponseState::Awaited)
    }
}

/// Returns the step for the response of a removed stream, unless the response has ended
/// before.
fn reset_step(stream: StreamId, removed: &Stream, cause: ResetCause) -> Option<Step<'static>> {
    (removed.state != StreamState::HalfClosedLocal).then_some(Step::Reset {
        stream,
        cause,
        sent_bytes: removed.sent_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_streams_that_were_closed_last_are_remembered() {
        let mut closed = ClosedStreams::default();
        let streams: Vec<StreamId> = (0..=REMEMBERED_STREAMS as u32)
            .map(|number| StreamId::new(2 * number + 1))
            .collect();
        for stream in &streams {
            closed.push(*stream, stream.number() % 4 == 1);
        }
        assert_eq!(closed.0.len(), REMEMBERED_STREAMS);
        let found: Vec<_> = streams.iter().map(|&stream| closed.find(stream)).collect();
        assert_eq!(found[..3], [None, Some(false), Some(true)]);
        assert!(found[1..].iter().all(Option::is_some));
    }
}
