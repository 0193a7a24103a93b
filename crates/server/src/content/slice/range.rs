//! The slice of a response that a request is for, and the check of its `Content-Range`.

use bytes::Bytes;
use http_semantics::range::number;
use site::Builtin as B;

use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::request::Request;
use crate::exchange::slicing::Slicing;
use crate::exchange::value::put;
use crate::exchange::variable_table::Value::Request as Of;
use crate::exchange::variable_table::Variables;

pub const VARIABLES: Variables = &[(
    B::SliceRange,
    Of(|request, out| range(request).is_some_and(|range| put(Some(range.as_bytes()), out))),
)];

/// `$slice_range`; asking for it makes the request one for slices. `None`
/// where `slice` is off.
fn range(request: &Request) -> Option<String> {
    let size = request.settings().slice_bytes;
    if size == 0 {
        return None;
    }
    let start = request.values.write(|values| match values.slicing {
        Slicing::First(start) | Slicing::Next(start) => start,
        Slicing::None => {
            let start = asked_start(&request.received) / size * size;
            values.slicing = Slicing::First(start);
            start
        }
    });
    let last = start.saturating_add(size).saturating_sub(1);
    Some(format!("bytes={start}-{last}"))
}

/// The slice that a fetch is for.
#[derive(Debug, Clone, Copy)]
pub struct WantedSlice {
    start: u64,
    size: u64,
}

impl WantedSlice {
    /// Returns the slice that `request` asks for, if it has used `$slice_range`.
    pub fn by(request: &Request) -> Option<WantedSlice> {
        match request.values.slicing() {
            Slicing::First(start) | Slicing::Next(start) => Some(WantedSlice {
                start,
                size: request.settings().slice_bytes,
            }),
            Slicing::None => None,
        }
    }

    /// Returns how long the body of a 206 with these fields must be; `None` if it is not
    /// this slice, which must not be stored in its place.
    pub fn length(self, fields: &[(Bytes, Bytes)]) -> Option<u64> {
        let (_, value) = fields
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(b"content-range"))?;
        let found = ContentRange::of(Some(value), self.start, self.size).ok()?;
        Some(found.end - found.start)
    }
}

/// Returns the start of the client's single range; zero if it is not known before the
/// response: no range, several, the last bytes, or a condition on it.
fn asked_start(received: &ReceivedRequest) -> u64 {
    if received.head().field("if-range").is_some() {
        return 0;
    }
    received.head().field("range").map_or(0, start_of)
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

/// The reason why a response is not the slice that was asked for.
#[derive(Debug, thiserror::Error)]
pub enum SliceRangeError {
    #[error("invalid range in slice response")]
    Invalid,
    #[error("unexpected range in slice response: {start}-{end}")]
    Unexpected { start: u64, end: u64 },
}

/// A parsed `Content-Range` field (RFC 9110 §14.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentRange {
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
    pub complete: u64,
}

impl ContentRange {
    /// That of a response, if it is the slice that begins at `start`.
    pub fn of(
        value: Option<&[u8]>,
        start: u64,
        size: u64,
    ) -> Result<ContentRange, SliceRangeError> {
        let found = value.and_then(ContentRange::parse);
        let found = found.ok_or(SliceRangeError::Invalid)?;
        let end = start.saturating_add(size).min(found.complete);
        if found.start != start || found.end != end {
            return Err(SliceRangeError::Unexpected {
                start: found.start,
                end: found.end,
            });
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
