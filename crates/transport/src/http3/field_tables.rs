//! QPACK's state of a connection (RFC 9204): the table that the client's encoder fills, the
//! requests that wait for it, and the decoder stream to the client's encoder.
//!
//! A request that refers to no inserted field never waits, and a client that inserts none gets no
//! stream. A client's use of memory is bounded: the table, [`MAX_BLOCKED_STREAMS`] waiting field
//! blocks, and [`MAX_UNSENT_BYTES`] of instructions that it does not take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use http2::{HeadBuffer, HeadLimits, RequestError, RequestFacts};
use http3::{Code, DynamicTable, Error, MAX_BLOCKED_STREAMS};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::stream::varint;

/// Instructions that wait to be sent: those of some thousand requests.
const MAX_UNSENT_BYTES: usize = 16 * 1024;

/// The state of a connection, shared by its requests.
pub struct FieldTables {
    connection: quinn::Connection,
    state: Mutex<TableState>,
    /// There is something to send.
    unsent: Notify,
    /// The task that sends it was started.
    is_sending: AtomicBool,
}

#[derive(Default)]
struct TableState {
    table: DynamicTable,
    blocked: Vec<BlockedStream>,
    unsent: Vec<u8>,
}

/// A stream whose field block waits for insertions.
struct BlockedStream {
    stream: u64,
    required: u64,
    waker: Waker,
}

impl FieldTables {
    pub fn new(connection: quinn::Connection) -> FieldTables {
        FieldTables {
            connection,
            state: Mutex::new(TableState::default()),
            unsent: Notify::new(),
            is_sending: AtomicBool::new(false),
        }
    }

    /// Follows instructions of the client's encoder.
    ///
    /// # Errors
    /// The connection ends.
    pub fn take(self: &Arc<Self>, input: &mut BytesMut) -> Result<(), Error> {
        let mut state = self.state.lock();
        let TableState {
            table,
            blocked,
            unsent,
        } = &mut *state;
        table.take(input)?;
        for stream in blocked.iter() {
            if stream.required <= table.inserted() {
                stream.waker.wake_by_ref();
            }
        }
        table.acknowledge_insertions(unsent);
        self.send_soon(&state)
    }

    /// Ready when all has come that this field block refers to.
    ///
    /// # Errors
    /// The connection ends: the block is broken, or too many of them wait.
    pub fn poll_insertions(
        &self,
        cx: &mut Context<'_>,
        stream: u64,
        block: &[u8],
    ) -> Poll<Result<(), Error>> {
        let mut state = self.state.lock();
        state.blocked.retain(|blocked| blocked.stream != stream);
        let required = match state.table.required_insertions(block) {
            Ok(required) => required,
            Err(error) => return Poll::Ready(Err(error)),
        };
        if required <= state.table.inserted() {
            return Poll::Ready(Ok(()));
        }
        if state.blocked.len() >= MAX_BLOCKED_STREAMS {
            return Poll::Ready(Err(Error {
                code: Code::QPACK_DECOMPRESSION_FAILED,
                reason: "has too many requests that wait for insertions",
            }));
        }
        state.blocked.push(BlockedStream {
            stream,
            required,
            waker: cx.waker().clone(),
        });
        Poll::Pending
    }

    /// Reads the head of a request.
    ///
    /// # Errors
    /// Outside, those of the connection; inside, those of the request.
    pub fn read_request(
        self: &Arc<Self>,
        stream: u64,
        block: &[u8],
        limits: &HeadLimits,
        buffer: &mut HeadBuffer,
    ) -> Result<Result<RequestFacts, RequestError>, Error> {
        self.read(stream, block, |table| {
            http3::read_request(block, table, limits, buffer)
        })
    }

    /// Reads trailers.
    ///
    /// # Errors
    /// The errors of [`FieldTables::read_request`].
    pub fn read_trailers(
        self: &Arc<Self>,
        stream: u64,
        block: &[u8],
        limits: &HeadLimits,
    ) -> Result<Result<(), RequestError>, Error> {
        self.read(stream, block, |table| {
            http3::read_trailers(block, table, limits)
        })
    }

    fn read<T>(
        self: &Arc<Self>,
        stream: u64,
        block: &[u8],
        read: impl FnOnce(&DynamicTable) -> Result<Result<T, RequestError>, Error>,
    ) -> Result<Result<T, RequestError>, Error> {
        let mut state = self.state.lock();
        let TableState { table, unsent, .. } = &mut *state;
        let fields = read(table)?;
        match &fields {
            Ok(_) => table.acknowledge_block(block, stream, unsent),
            // It was not read to its end.
            Err(_) => table.cancel_stream(stream, unsent),
        }
        self.send_soon(&state)?;
        Ok(fields)
    }

    /// Nothing more of this stream is read.
    pub fn cancel(self: &Arc<Self>, stream: u64) {
        let mut state = self.state.lock();
        state.blocked.retain(|blocked| blocked.stream != stream);
        let TableState { table, unsent, .. } = &mut *state;
        table.cancel_stream(stream, unsent);
        if let Err(error) = self.send_soon(&state) {
            self.close(error);
        }
    }

    /// Ends the connection because of the client's error.
    pub fn close(&self, error: Error) {
        self.connection
            .close(varint(error.code), error.reason.as_bytes());
    }

    /// Sends pending instructions, by a task that lives as long as the connection.
    fn send_soon(self: &Arc<Self>, state: &TableState) -> Result<(), Error> {
        if state.unsent.is_empty() {
            return Ok(());
        }
        if state.unsent.len() > MAX_UNSENT_BYTES {
            return Err(Error {
                code: Code::EXCESSIVE_LOAD,
                reason: "takes no instructions of QPACK",
            });
        }
        if !self.is_sending.swap(true, Ordering::Relaxed) {
            tokio::spawn(self.clone().send());
        }
        self.unsent.notify_one();
        Ok(())
    }

    async fn send(self: Arc<Self>) {
        tokio::select! {
            _ = self.send_all() => {}
            _ = self.connection.closed() => {}
        }
    }

    async fn send_all(&self) -> Option<()> {
        let mut stream = self.connection.open_uni().await.ok()?;
        stream.write_all(&http3::decoder_stream()).await.ok()?;
        loop {
            self.unsent.notified().await;
            let bytes = std::mem::take(&mut self.state.lock().unsent);
            stream.write_all(&bytes).await.ok()?;
        }
    }
}
