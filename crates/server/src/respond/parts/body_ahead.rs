//! A body that is read by a task of its own, so that the upstream's worker is free again, whenever the body
//! is shown. A page waits for its fragments, and a fragment for those before it: workers that they held
//! meanwhile would be missing for their own parts.
//!
//! ```text
//! upstream ─► task ─► Spool (memory, then a file) ─► next: the reply that shows it
//! ```

use std::sync::Arc;

use bytes::Bytes;
use http_semantics::Fields;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use transport::outbound::{ArrivingBody, Flow, MaybeApart, NextBytes, SendError};
use transport::spool::{Spool, SpoolLimits};

use super::asked::take_bytes;
use crate::exchange::page_budget::{Bound, PageBudget};
use crate::exchange::reply::Body;
use crate::exchange::request::Request;
use crate::log::error_log;

/// The bytes kept in memory of a body that its location does not buffer; larger ones wait for their reader.
const UNBUFFERED_BYTES: u64 = 1024 * 1024;

/// Returns the same body; if an upstream works for it, it is read from here on, whether or not it is shown
/// yet. As a part of a page, it costs the page's bytes.
pub fn read_ahead(body: Body, part_of: Option<&Arc<PageBudget>>) -> Body {
    let Body::Arriving(body) = body else {
        return body;
    };
    match body.apart() {
        Ok(body) => Body::arriving(BodyAhead::begin(body, part_of.cloned())),
        Err(body) if part_of.is_some() => counted(body),
        Err(body) => Body::Arriving(body),
    }
}

/// A part's body whose bytes are counted as they come.
pub fn counted(body: Box<dyn ArrivingBody<Request>>) -> Body {
    Body::arriving(CountedBody(body))
}

struct CountedBody(Box<dyn ArrivingBody<Request>>);

impl ArrivingBody<Request> for CountedBody {
    fn next<'a>(&'a mut self, request: &'a Request) -> NextBytes<'a> {
        Box::pin(async move {
            let next = self.0.next(request).await?;
            let bytes = next.as_ref().map_or(0, Bytes::len) as u64;
            match take_bytes(request, bytes) {
                Ok(()) => Ok(next),
                Err(_) => Err(SendError::Truncated),
            }
        })
    }

    fn apart(self: Box<Self>) -> MaybeApart<Request> {
        Err(self)
    }

    fn discard(self: Box<Self>) {
        self.0.discard();
    }
}

struct BodyAhead {
    shared: Arc<BodyBuffer>,
    task: JoinHandle<()>,
    flow: Flow,
}

struct BodyBuffer {
    state: Mutex<ReadAheadState>,
    /// There are bytes, or the end.
    has_more: Notify,
    /// Bytes were taken.
    has_room: Notify,
}

struct ReadAheadState {
    spool: Spool,
    end: Option<End>,
    trailers: Fields,
}

#[derive(Clone, Copy)]
enum End {
    Whole,
    Truncated,
    /// The page may not have more.
    TooLong,
}

/// The next piece to show.
enum NextPiece {
    Bytes(Bytes),
    End(End),
    /// It has not come yet.
    Nothing,
}

impl BodyBuffer {
    fn take(&self) -> NextPiece {
        let mut state = self.state.lock();
        if let Some(bytes) = state.spool.pop() {
            self.has_room.notify_one();
            return NextPiece::Bytes(bytes);
        }
        state.end.map_or(NextPiece::Nothing, NextPiece::End)
    }
}

impl BodyAhead {
    fn begin(body: Box<dyn ArrivingBody<()>>, part_of: Option<Arc<PageBudget>>) -> BodyAhead {
        let flow = body.flow();
        let limits = match flow.ahead {
            limits if limits.file_bytes > 0 => limits,
            limits => SpoolLimits::memory(limits.memory_bytes.max(UNBUFFERED_BYTES)),
        };
        let shared = Arc::new(BodyBuffer {
            state: Mutex::new(ReadAheadState {
                spool: Spool::new(limits),
                end: None,
                trailers: Fields::new(),
            }),
            has_more: Notify::new(),
            has_room: Notify::new(),
        });
        let task = tokio::spawn(read(body, shared.clone(), part_of));
        BodyAhead { shared, task, flow }
    }
}

async fn read(
    mut body: Box<dyn ArrivingBody<()>>,
    shared: Arc<BodyBuffer>,
    part_of: Option<Arc<PageBudget>>,
) {
    let end = loop {
        let bytes = match body.next(&()).await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => break End::Whole,
            Err(_) => break End::Truncated,
        };
        if let Some(budget) = &part_of
            && budget.take_bytes(bytes.len() as u64).is_err()
        {
            break End::TooLong;
        }
        let has_room = {
            let mut state = shared.state.lock();
            body.keep(bytes, &mut state.spool);
            state.spool.has_room()
        };
        shared.has_more.notify_one();
        if !has_room {
            shared.has_room.notified().await;
        }
    };
    let trailers = body.take_trailers();
    // The upstream's worker is free before readers learn of the end.
    drop(body);
    {
        let mut state = shared.state.lock();
        state.trailers = trailers;
        state.end = Some(end);
    }
    shared.has_more.notify_one();
}

impl ArrivingBody<Request> for BodyAhead {
    fn next<'a>(&'a mut self, request: &'a Request) -> NextBytes<'a> {
        Box::pin(async move {
            loop {
                match self.shared.take() {
                    NextPiece::Bytes(bytes) => return Ok(Some(bytes)),
                    NextPiece::End(End::Whole) => return Ok(None),
                    NextPiece::End(End::Truncated) => return Err(SendError::Truncated),
                    NextPiece::End(End::TooLong) => {
                        error_log::beyond_budget(request, Bound::Bytes);
                        return Err(SendError::Truncated);
                    }
                    NextPiece::Nothing => self.shared.has_more.notified().await,
                }
            }
        })
    }

    fn flow(&self) -> Flow {
        self.flow
    }

    fn take_trailers(&mut self) -> Fields {
        std::mem::take(&mut self.shared.state.lock().trailers)
    }

    fn apart(self: Box<Self>) -> MaybeApart<Request> {
        Err(self)
    }
}

impl Drop for BodyAhead {
    fn drop(&mut self) {
        self.task.abort();
    }
}
