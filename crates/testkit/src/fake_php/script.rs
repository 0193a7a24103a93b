//! The answer of a fake PHP, step by step.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use fastcgi::record::{self, RecordHeader, kind, protocol_status};
use tokio::sync::Semaphore;

#[derive(Clone, Debug)]
pub(super) enum Step {
    Send(Bytes),
    ReadBody,
    WaitFor(Arc<Semaphore>),
    InPiecesOf(usize),
    Hang,
    Close,
}

/// An answer, step by step. Without an end of its own it closes STDOUT and
/// ends the request as complete.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub(super) steps: Vec<Step>,
    ends: bool,
}

impl Script {
    pub fn new() -> Script {
        Script::default()
    }

    /// Head and body in one record: `Script::page("Content-Type: a\r\n", "hello")`.
    pub fn page(head: &str, body: impl AsRef<[u8]>) -> Script {
        let mut stdout = head.as_bytes().to_vec();
        stdout.extend_from_slice(b"\r\n");
        stdout.extend_from_slice(body.as_ref());
        Script::new().stdout(stdout)
    }

    /// Sends STDOUT, in a record of its own.
    pub fn stdout(self, content: impl AsRef<[u8]>) -> Script {
        self.stream(kind::STDOUT, content.as_ref())
    }

    /// Sends STDERR, in a record of its own.
    pub fn stderr(self, content: impl AsRef<[u8]>) -> Script {
        self.stream(kind::STDERR, content.as_ref())
    }

    /// Sends the empty STDOUT record.
    pub fn close_stdout(self) -> Script {
        self.raw(RecordHeader::new(kind::STDOUT, 0).encode())
    }

    /// Goes on with the steps of another.
    pub fn then(mut self, mut other: Script) -> Script {
        self.steps.append(&mut other.steps);
        self.ends |= other.ends;
        self
    }

    /// Sends bytes that need not be records.
    pub fn raw(mut self, bytes: impl AsRef<[u8]>) -> Script {
        self.steps
            .push(Step::Send(Bytes::copy_from_slice(bytes.as_ref())));
        self
    }

    /// Joins the sends at the end of the script into one write.
    pub fn at_once(mut self) -> Script {
        let mut together = BytesMut::new();
        let sends = |step: &Step| matches!(step, Step::Send(_));
        let first = self.steps.iter().rposition(|step| !sends(step));
        for step in self.steps.drain(first.map_or(0, |at| at + 1)..) {
            if let Step::Send(bytes) = step {
                together.extend_from_slice(&bytes);
            }
        }
        self.steps.push(Step::Send(together.freeze()));
        self
    }

    /// From here on every write has at most `bytes` bytes.
    pub fn in_pieces_of(mut self, bytes: usize) -> Script {
        self.steps.push(Step::InPiecesOf(bytes.max(1)));
        self
    }

    /// Goes on when a permit of `gate` is free, and consumes it.
    pub fn wait_for(mut self, gate: &Arc<Semaphore>) -> Script {
        self.steps.push(Step::WaitFor(Arc::clone(gate)));
        self
    }

    /// Reads the rest of the request body and drops it.
    pub fn read_body(mut self) -> Script {
        self.steps.push(Step::ReadBody);
        self
    }

    /// Ends the request with these statuses; see [`protocol_status`].
    pub fn end(mut self, app_status: u32, protocol_status: u8) -> Script {
        let mut out = BytesMut::new();
        record::put_end_request(&mut out, app_status, protocol_status);
        self.ends = true;
        self.raw(out)
    }

    /// Closes the connection without END_REQUEST.
    pub fn close(mut self) -> Script {
        self.steps.push(Step::Close);
        self
    }

    /// Never ends. Returns when the client closes.
    pub fn hang(mut self) -> Script {
        self.steps.push(Step::Hang);
        self
    }

    fn stream(self, kind: u8, content: &[u8]) -> Script {
        let mut out = BytesMut::new();
        record::put_stream(&mut out, kind, content);
        self.raw(out)
    }

    pub(super) fn ended(self) -> Script {
        if self.ends {
            return self;
        }
        self.close_stdout()
            .end(0, protocol_status::REQUEST_COMPLETE)
    }
}
