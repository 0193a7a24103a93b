//! Matches a request against patterns, and keeps the captures.
//!
//! A pattern that gives up (a limit of the library: steps, stack) gives neither a match nor a
//! mismatch. Treating it as a mismatch would skip the `deny` behind it, so the request is answered
//! with 500: the failure is recorded in the request and checked before an upstream is asked and
//! before anything is sent ([`has_failed`]).

use pcre2::bytes::CaptureLocations;
use site::{LogLevel, Pattern};

use crate::exchange::request::Request;
use crate::exchange::request_values::put_value;
use crate::log::error_log;

/// The number of bytes logged of a text on which a pattern gave up.
const LOGGED_BYTES: usize = 100;

/// A pattern gave up.
pub struct GivenUp;

/// Does `pattern` match `subject`? A match fills the request's captures and
/// the slots of named groups. A pattern that gives up does not match, and the request is
/// refused for it.
pub fn matches(request: &Request, pattern: &Pattern, subject: &[u8]) -> bool {
    // A request that is refused anyway pays for no further match.
    if has_failed(request) {
        return false;
    }
    if pattern.group_count() <= 1 {
        return is_match(request, pattern, subject).unwrap_or_else(|GivenUp| refuse(request));
    }
    let Some(locations) = captures(request, pattern, subject) else {
        return false;
    };
    let groups = (0..locations.len()).map(|group| locations.get(group));
    request.values.write(|values| {
        values.captures.set(subject, groups);
        for &(group, slot) in &pattern.named {
            let value = locations
                .get(group)
                .and_then(|(start, end)| subject.get(start..end));
            let value = value.unwrap_or_default().to_vec();
            put_value(&mut values.slots, slot.0, Some(value));
        }
    });
    true
}

/// Returns the positions of the groups of `pattern` in `subject`, or `None` if it does not match. A
/// pattern that gives up makes the request be refused.
pub fn captures(request: &Request, pattern: &Pattern, subject: &[u8]) -> Option<CaptureLocations> {
    if has_failed(request) {
        return None;
    }
    match pattern.captures(subject) {
        Ok(found) => found,
        Err(error) => {
            log(request, pattern, subject, &error);
            refuse(request);
            None
        }
    }
}

/// Does `pattern` match `subject`? For those who have an answer of their own for a pattern
/// that gives up.
pub fn is_match(request: &Request, pattern: &Pattern, subject: &[u8]) -> Result<bool, GivenUp> {
    pattern.is_match(subject).map_err(|error| {
        log(request, pattern, subject, &error);
        GivenUp
    })
}

#[cold]
fn log(request: &Request, pattern: &Pattern, subject: &[u8], error: &pcre2::Error) {
    let shown = subject.get(..LOGGED_BYTES).unwrap_or(subject);
    error_log::request(
        request,
        LogLevel::Error,
        format_args!(
            "pattern \"{}\" failed on \"{}\": {error}",
            pattern.source,
            shown.escape_ascii()
        ),
    );
}

/// Notes that the server must refuse the request; false, as nothing matched.
#[cold]
pub fn refuse(request: &Request) -> bool {
    request.values.failures.note();
    false
}

/// Has a pattern given up on the request since it was refused for one?
#[inline]
pub fn has_failed(request: &Request) -> bool {
    request.values.failures.is_any()
}
