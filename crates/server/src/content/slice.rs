//! `slice`: a long response fetched, and stored, in parts of equal size
//! (<https://nginx.org/en/docs/http/ngx_http_slice_module.html>).
//!
//! ```text
//! client's range            ······[==================]······
//! slices       |        |       |         |         |        |
//!                       └ first ┴── next ─┴── next ─┘
//! ```
//!
//! `$slice_range` is the range of the slice being asked for; whoever names it
//! in the request to the upstream gets 206, and what the client sees is made
//! from one slice after the other. Each is an exchange of its own through the
//! cache. A slice that does not fit the first (another ETag, another length,
//! other bytes than asked for) breaks the response off: parts of two versions
//! are never put together.

use std::collections::VecDeque;

use bytes::Bytes;
use http_cache::{KeyRef, Millis, PurgeMode, PurgeTarget};
use site::{Builtin as B, Content, LogLevel};

use crate::base::clock;
use crate::content::policy;
use crate::content::policy::CachePlan;
use crate::exchange::handled::Handled;
use crate::exchange::reply::{Body, Reply, ReplyHead, Segment};
use crate::exchange::request::{Request, Slicing};
use crate::exchange::value::put;
use crate::exchange::variable_table::Value::Request as Of;
use crate::exchange::variable_table::Variables;
use crate::log::error_log;
use crate::pipeline;
use crate::transport::client::ClientSide;
use crate::upstreams::fetch::Truncated;

/// How many slices of a changed response are let go at once; those beyond are
/// met, and let go, by later requests. So many keys take some milliseconds.
const MAX_FORGOTTEN: usize = 4096;

pub const VARIABLES: Variables = &[(
    B::SliceRange,
    Of(|request, out| range(request).is_some_and(|range| put(Some(range.as_bytes()), out))),
)];

/// `$slice_range`; asking for it makes the request one for slices. `None`
/// where `slice` is off.
fn range(request: &mut Request) -> Option<String> {
    let size = request.settings().slice_bytes;
    if size == 0 {
        return None;
    }
    let start = match request.slicing {
        Slicing::First(start) | Slicing::Next(start) => start,
        Slicing::None => {
            let start = asked_start(request) / size * size;
            request.slicing = Slicing::First(start);
            start
        }
    };
    let last = start.saturating_add(size).saturating_sub(1);
    Some(format!("bytes={start}-{last}"))
}

/// The slice that a fetch is for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    start: u64,
    size: u64,
}

impl Wanted {
    /// What `request` asks for, once it asked for `$slice_range`.
    pub fn by(request: &Request) -> Option<Wanted> {
        match request.slicing {
            Slicing::First(start) | Slicing::Next(start) => Some(Wanted {
                start,
                size: request.settings().slice_bytes,
            }),
            Slicing::None => None,
        }
    }

    /// How long the body of a 206 with these fields must be; `None` where it is
    /// not this slice, which must not be stored in its place.
    pub fn length(self, fields: &[(Bytes, Bytes)]) -> Option<u64> {
        let (_, value) = fields
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(b"content-range"))?;
        let found = ContentRange::of(Some(value), self.start, self.size).ok()?;
        Some(found.end - found.start)
    }
}

/// Where the client's single range begins. Zero where that is not known before
/// the response: no range, several, the last bytes, or a condition on it.
fn asked_start(request: &Request) -> u64 {
    if request.head.field("if-range").is_some() {
        return 0;
    }
    request.head.field("range").map_or(0, start_of)
}

fn start_of(range: &[u8]) -> u64 {
    let Some((unit, ranges)) = range.split_at_checked(6) else {
        return 0;
    };
    if !unit.eq_ignore_ascii_case(b"bytes=") || ranges.contains(&b',') {
        return 0;
    }
    let ranges = ranges.trim_ascii_start();
    let digits = ranges
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(ranges.len());
    let text = ranges.get(..digits).unwrap_or_default();
    number(text).unwrap_or(0)
}

/// Makes a whole response of one whose first slice is here.
pub fn gather(request: &mut Request, handled: Handled) -> Handled {
    let Slicing::First(start) = request.slicing else {
        return handled;
    };
    let Handled::Reply(mut reply) = handled else {
        return handled;
    };
    if reply.head.status != 206 {
        return Handled::Reply(reply);
    }
    let size = request.settings().slice_bytes;
    reply.head.unpack();
    let found = match ContentRange::of(reply.head.field("content-range"), start, size) {
        Ok(found) => found,
        Err(why) => {
            error_log::request(request, LogLevel::Error, format_args!("{why}"));
            // As nginx does: no status would be true of a response in parts.
            return Handled::Close;
        }
    };
    let head = &mut reply.head;
    let etag = validator(head);
    head.status = 200;
    head.reason = None;
    head.content_length = Some(found.complete);
    head.accepts_ranges = true;
    for name in ["content-range", "accept-ranges"] {
        head.fields.remove(name);
    }
    if head.last_modified.is_none() {
        head.last_modified = head
            .fields
            .get("last-modified")
            .and_then(http1::date::parse);
    }
    let body = std::mem::replace(&mut reply.body, Body::Empty);
    reply.body = Body::Sliced(Box::new(Slices {
        asked: request.internal(),
        size,
        complete: found.complete,
        validator: etag,
        window: (0, found.complete),
        at: start,
        slice_end: found.end,
        current: Some(Source::of(body)),
    }));
    Handled::Reply(reply)
}

/// A response made of slices, the first of which has been asked for.
pub struct Slices {
    /// What each slice is asked for with.
    asked: Box<Request>,
    size: u64,
    /// Length of the whole response.
    complete: u64,
    validator: Option<Bytes>,
    /// What the client gets: first byte, byte after the last.
    window: (u64, u64),
    /// Where the next byte of the current slice is in the response.
    at: u64,
    /// Where the current slice ends.
    slice_end: u64,
    current: Option<Source>,
}

impl Slices {
    /// Cuts the response to one range; both lie within it.
    pub fn cut(&mut self, start: u64, end: u64) {
        self.window = (start, end);
    }

    /// The next bytes; `None` at the end of what the client asked for.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Truncated> {
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
                return Err(Truncated);
            };
            let Some(bytes) = current.next().await? else {
                self.report("a slice that is too short");
                return Err(Truncated);
            };
            let (from, to) = (self.at, self.at.saturating_add(bytes.len() as u64));
            if to > self.slice_end {
                self.report("a slice that is too long");
                return Err(Truncated);
            }
            self.at = to;
            let cut = |place: u64| usize::try_from(place - from).unwrap_or(usize::MAX);
            let (first, last) = (start.clamp(from, to), end.clamp(from, to));
            if first < last {
                return Ok(Some(bytes.slice(cut(first)..cut(last))));
            }
        }
    }

    async fn fetch(&mut self, start: u64) -> Result<(), Truncated> {
        self.current = None;
        let mut part = self.asked.internal();
        part.now = clock::now();
        part.slicing = Slicing::Next(start);
        let mut nobody = ClientSide::none();
        let handled = pipeline::content(&mut part, &mut nobody);
        let mut reply: Box<Reply> = match Box::pin(handled).await {
            Handled::Reply(reply) if reply.head.status == 206 => reply,
            other => {
                let status = match &other {
                    Handled::Reply(reply) => reply.head.status,
                    Handled::Status(status) | Handled::StatusWith(status, _) => *status,
                    _ => 0,
                };
                self.report(format_args!(
                    "unexpected status code {status} in slice response"
                ));
                return Err(Truncated);
            }
        };
        reply.head.unpack();
        let found = match ContentRange::of(reply.head.field("content-range"), start, self.size) {
            Ok(found) => found,
            Err(why) => {
                self.report(why);
                return Err(Truncated);
            }
        };
        if validator(&reply.head) != self.validator {
            self.report("etag mismatch in slice response");
            self.forget(found.complete);
            return Err(Truncated);
        }
        if found.complete != self.complete {
            self.report(format_args!(
                "the response has {} bytes in this slice and {} in the first",
                found.complete, self.complete
            ));
            self.forget(found.complete);
            return Err(Truncated);
        }
        self.at = start;
        self.slice_end = found.end;
        self.current = Some(Source::of(reply.body));
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
            self.asked.slicing = Slicing::Next(start);
            let CachePlan::Use(plan) = policy::plan(&mut self.asked, &configuration, pass) else {
                return;
            };
            let target = PurgeTarget::Key(KeyRef::new(&plan.key));
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

/// What says that slices are of one version: the ETag, or failing that the
/// date of the last change.
fn validator(head: &ReplyHead) -> Option<Bytes> {
    let value = head.field("etag").or_else(|| head.field("last-modified"));
    value.map(Bytes::copy_from_slice)
}

/// Where the bytes of a slice come from.
enum Source {
    Pieces(VecDeque<Bytes>),
    Body(Body),
}

impl Source {
    fn of(body: Body) -> Source {
        match body {
            Body::Stored {
                response,
                start,
                end,
            } => Source::Pieces(response.body.slice(start..end).collect()),
            Body::Segments(segments) => {
                let memory = |segment| match segment {
                    Segment::Memory(bytes) => Some(bytes),
                    // No slice is a file; without it the slice is too short.
                    Segment::File { .. } => None,
                };
                Source::Pieces(segments.into_iter().filter_map(memory).collect())
            }
            body => Source::Body(body),
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Truncated> {
        match self {
            Source::Pieces(pieces) => Ok(pieces.pop_front()),
            Source::Body(Body::Filling(reader)) => reader.next_chunk().await.map_err(|_| Truncated),
            Source::Body(Body::Upstream(upstream)) => upstream.next().await,
            Source::Body(_) => Ok(None),
        }
    }
}

/// What `Content-Range` says (RFC 9110 §14.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ContentRange {
    start: u64,
    /// The byte after the last.
    end: u64,
    complete: u64,
}

impl ContentRange {
    /// That of a response, if it is the slice that begins at `start`.
    fn of(value: Option<&[u8]>, start: u64, size: u64) -> Result<ContentRange, String> {
        let Some(found) = value.and_then(ContentRange::parse) else {
            return Err("invalid range in slice response".to_owned());
        };
        let end = start.saturating_add(size).min(found.complete);
        if found.start != start || found.end != end {
            return Err(format!(
                "unexpected range in slice response: {}-{}",
                found.start, found.end
            ));
        }
        Ok(found)
    }

    /// `bytes FIRST-LAST/COMPLETE`; a length that is not known makes it none.
    fn parse(value: &[u8]) -> Option<ContentRange> {
        let text = value.strip_prefix(b"bytes ")?.trim_ascii();
        let dash = memchr::memchr(b'-', text)?;
        let slash = memchr::memchr(b'/', text)?;
        let start = number(text.get(..dash)?.trim_ascii())?;
        let end = number(text.get(dash + 1..slash)?.trim_ascii())?.checked_add(1)?;
        let complete = number(text.get(slash + 1..)?.trim_ascii())?;
        (start < end && end <= complete).then_some(ContentRange {
            start,
            end,
            complete,
        })
    }
}

/// Digits and nothing else, up to `i64::MAX` as in nginx.
fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    text.parse::<i64>()
        .ok()
        .and_then(|number| u64::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_slice_is_where_a_single_range_begins() {
        for (range, start) in [
            ("bytes=0-", 0),
            ("bytes=5-7", 5),
            ("BYTES= 12-", 12),
            ("bytes=-10", 0),
            ("bytes=5-7,9-11", 0),
            ("bytes=", 0),
            ("bytes=99999999999999999999-", 0),
            ("lines=5-7", 0),
            ("by", 0),
        ] {
            assert_eq!(start_of(range.as_bytes()), start, "{range}");
        }
    }

    #[test]
    fn a_content_range_is_whole_or_none() {
        let found = |start, end, complete| {
            Some(ContentRange {
                start,
                end,
                complete,
            })
        };
        for (value, wanted) in [
            ("bytes 0-1/100", found(0, 2, 100)),
            ("bytes  2-3 / 4", found(2, 4, 4)),
            ("bytes 0-1/*", None),
            ("bytes */100", None),
            ("bytes 0-100/100", None),
            ("bytes 2-1/100", None),
            ("bytes 0-1", None),
            ("bytes", None),
            ("bytes -1/100", None),
            ("bytes 0-18446744073709551615/18446744073709551615", None),
            ("", None),
        ] {
            assert_eq!(ContentRange::parse(value.as_bytes()), wanted, "{value}");
        }
    }
}
