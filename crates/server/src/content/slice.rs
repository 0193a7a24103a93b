//! `slice`: a long response fetched, and stored, in parts of equal size
//! (<https://nginx.org/en/docs/http/ngx_http_slice_module.html>).
//!
//! ```text
//! client's range            ······[==================]······
//! slices       |        |       |         |         |        |
//!                       └ first ┴── next ─┴── next ─┘
//! ```
//!
//! `$slice_range` is the range of the slice being asked for; a configuration that names it in the
//! request to the upstream gets 206, and the client's response is made from one slice after the
//! other. Each is an exchange of its own through the cache. A slice that does not fit the first
//! (another ETag, another length, other bytes than requested) truncates the response: parts of two
//! versions are never put together.

pub mod range;

use bytes::Bytes;
use http_cache::{Millis, PurgeMode, PurgeTarget};
use site::{Content, LogLevel};
use transport::client::ClientSide;
use transport::outbound::{ArrivingBody, Flow, Leaves, MaybeApart, NextBytes, SendError};

use crate::content;
use crate::content::through_cache::policy;
use crate::content::through_cache::policy::CachePlan;
use crate::exchange::handled::StageEnd;
use crate::exchange::reply::{Body, Reply, ReplyHead};
use crate::exchange::request::Request;
use crate::exchange::slicing::Slicing;
use crate::log::{error_log, traces};
use upstream_fetch::TruncatedBody;

use range::ContentRange;

/// Slices that are served from memory before others have their turn on this thread: some 50
/// microseconds, where they are short.
const MAX_SLICES_PER_TURN: u32 = 16;
/// How many slices of a changed response are let go at once; those beyond are met, and let go, by
/// later requests. To remove this number of keys takes some milliseconds.
const MAX_FORGOTTEN: usize = 4096;

/// Gathers a whole response if the location fetches it in slices; otherwise returns `handled`.
#[inline]
pub fn in_slices(request: &Request, handled: StageEnd) -> StageEnd {
    match request.settings().slice_bytes {
        0 => handled,
        _ => gather(request, handled),
    }
}

/// Makes a whole response of one whose first slice is here.
fn gather(request: &Request, handled: StageEnd) -> StageEnd {
    let Slicing::First(start) = request.values.slicing() else {
        return handled;
    };
    let StageEnd::Reply(mut reply) = handled else {
        return handled;
    };
    if reply.head.status != 206 {
        return StageEnd::Reply(reply);
    }
    let size = request.settings().slice_bytes;
    reply.head.unpack();
    let found = match ContentRange::of(reply.head.field("content-range"), start, size) {
        Ok(found) => found,
        Err(why) => {
            error_log::request(request, LogLevel::Error, format_args!("{why}"));
            // Like in nginx: no status would be true of a response in parts.
            return StageEnd::Close;
        }
    };
    let head = &mut reply.head;
    let etag = validator(head);
    head.status = 200;
    head.reason = None;
    head.content_length = Some(found.complete);
    head.form.accepts_ranges = true;
    for name in ["content-range", "accept-ranges"] {
        head.fields.remove(name);
    }
    if head.last_modified.is_none() {
        head.last_modified = head
            .fields
            .get("last-modified")
            .and_then(http_semantics::date::parse);
    }
    let body = std::mem::replace(&mut reply.body, Body::Empty);
    reply.body = Body::arriving(Slices {
        asked: request.internal(),
        size,
        complete: found.complete,
        validator: etag,
        window: (0, found.complete),
        at: start,
        slice_end: found.end,
        current: Some(body.into_arriving()),
        slices_of_turn: 0,
    });
    StageEnd::Reply(reply)
}

/// A response made of slices, the first of which has been asked for.
pub struct Slices {
    /// The request that each slice is fetched with.
    asked: Box<Request>,
    size: u64,
    /// Length of the whole response.
    complete: u64,
    validator: Option<Bytes>,
    /// The range that the client receives: first byte, byte after the last.
    window: (u64, u64),
    /// The position of the current slice's next byte in the whole response.
    at: u64,
    /// The end of the current slice in the whole response.
    slice_end: u64,
    current: Option<Box<dyn ArrivingBody<Request>>>,
    slices_of_turn: u32,
}

impl Slices {
    /// The next bytes; `None` at the end of the client's range.
    async fn next(&mut self) -> Result<Option<Bytes>, TruncatedBody> {
        let (start, end) = self.window;
        loop {
            if self.at >= end {
                self.current = None;
                return Ok(None);
            }
            let is_elsewhere = start >= self.slice_end && self.at < start;
            if is_elsewhere || self.at == self.slice_end {
                self.fetch(start.max(self.at) / self.size * self.size)
                    .await?;
                continue;
            }
            let Some(current) = &mut self.current else {
                return Err(TruncatedBody);
            };
            let next = current.next(&self.asked).await;
            let Some(bytes) = next.map_err(|_| TruncatedBody)? else {
                self.report("the slice is shorter than its Content-Range says");
                return Err(TruncatedBody);
            };
            let (from, to) = (self.at, self.at.saturating_add(bytes.len() as u64));
            if to > self.slice_end {
                self.report("the slice is longer than its Content-Range says");
                return Err(TruncatedBody);
            }
            self.at = to;
            let cut = |place: u64| usize::try_from(place - from).unwrap_or(usize::MAX);
            let (first, last) = (start.clamp(from, to), end.clamp(from, to));
            if first < last {
                return Ok(Some(bytes.slice(cut(first)..cut(last))));
            }
        }
    }

    async fn fetch(&mut self, start: u64) -> Result<(), TruncatedBody> {
        self.current = None;
        self.slices_of_turn += 1;
        if self.slices_of_turn > MAX_SLICES_PER_TURN {
            self.slices_of_turn = 1;
            tokio::task::yield_now().await;
        }
        let mut part = self.asked.internal();
        part.note_time(clock::now());
        part.values.get_mut().slicing = Slicing::Next(start);
        let mut nobody = ClientSide::none();
        let handled = content::make(&mut part, &mut nobody);
        let handled = Box::pin(handled).await;
        traces::end_part(&part);
        let mut reply: Box<Reply> = match handled {
            StageEnd::Reply(reply) if reply.head.status == 206 => reply,
            other => {
                let status = match &other {
                    StageEnd::Reply(reply) => reply.head.status,
                    StageEnd::Status(status) | StageEnd::StatusWith(status, _) => *status,
                    _ => 0,
                };
                self.report(format_args!(
                    "unexpected status code {status} in slice response"
                ));
                return Err(TruncatedBody);
            }
        };
        reply.head.unpack();
        let found = match ContentRange::of(reply.head.field("content-range"), start, self.size) {
            Ok(found) => found,
            Err(why) => {
                self.report(why);
                return Err(TruncatedBody);
            }
        };
        if validator(&reply.head) != self.validator {
            self.report("etag mismatch in slice response");
            self.forget(found.complete);
            return Err(TruncatedBody);
        }
        if found.complete != self.complete {
            self.report(format_args!(
                "the response has {} bytes according to this slice and {} according to the first",
                found.complete, self.complete
            ));
            self.forget(found.complete);
            return Err(TruncatedBody);
        }
        self.at = start;
        self.slice_end = found.end;
        self.current = Some(reply.body.into_arriving());
        Ok(())
    }

    /// Lets go of what is stored of a response that has changed meanwhile, so
    /// that the next client gets the new one rather than the same error.
    fn forget(&mut self, complete: u64) {
        let (configuration, settings) =
            (self.asked.configuration.clone(), self.asked.settings_held());
        let Content::Pass(pass) = &settings.content else {
            return;
        };
        let now = Millis(clock::now());
        let end = complete.max(self.complete);
        let mut start = 0;
        for _ in 0..MAX_FORGOTTEN {
            self.asked.values.get_mut().slicing = Slicing::Next(start);
            let CachePlan::Use(plan) = policy::plan(&mut self.asked, &configuration, pass) else {
                return;
            };
            let target = PurgeTarget::Key(plan.key.as_ref());
            plan.zone.purge(target, PurgeMode::Hard, now);
            start = start.saturating_add(self.size);
            if start >= end {
                return;
            }
        }
    }

    fn report(&self, what: impl std::fmt::Display) {
        error_log::request(&self.asked, LogLevel::Error, format_args!("{what}"));
    }
}

/// Returns the validator that all slices must share: the ETag, or else the date of the last change.
fn validator(head: &ReplyHead) -> Option<Bytes> {
    let value = head.field("etag").or_else(|| head.field("last-modified"));
    value.map(Bytes::copy_from_slice)
}

/// Slices are written once they come to this much (nginx's `postpone_output`):
/// where they are tiny, a client sees all of them or an error.
const MIN_WRITE_BYTES: usize = 1460;

impl<X: Sync> ArrivingBody<X> for Slices {
    fn apart(self: Box<Self>) -> MaybeApart<X> {
        Ok(self)
    }

    fn next<'a>(&'a mut self, _exchange: &'a X) -> NextBytes<'a> {
        Box::pin(async move { Slices::next(self).await.map_err(|_| SendError::Truncated) })
    }

    fn flow(&self) -> Flow {
        Flow {
            leaves: Leaves::InParts(MIN_WRITE_BYTES),
            // No slice is asked for once the client has gone.
            ends_with_client: true,
            ..Flow::default()
        }
    }

    fn cut(&mut self, start: u64, end: u64) -> bool {
        self.window = (start, end);
        true
    }
}
