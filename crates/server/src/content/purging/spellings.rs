//! A purge location names its page by the capture of its pattern (`location ~ /purge(/.*)`), and `$1` is decoded
//! (`/über/`). Pages are stored under the path that visitors have sent (`/%C3%BCber/`). nginx removes the decoded
//! spelling alone. Here the purge also names the path as it was sent to us, and with escapes of capital and of small
//! digits.

use std::borrow::Cow;
use std::sync::Arc;

use http_semantics::escape::{Escape, escape};
use http_semantics::hex_pair;
use purge_order::Target;
use site::CacheRules;

use crate::content::through_cache::purge_keys::purge_targets;
use crate::exchange::captures::Captures;
use crate::exchange::request::Request;

/// The groups of a pattern as texts.
type Groups = Vec<Option<Vec<u8>>>;

/// Adds the names of further spellings to targets that are keys with captures.
pub fn add(request: &Request, rules: &Arc<CacheRules>, targets: &mut [Target]) {
    let captures = request.values.read(|values| values.captures.clone());
    if rules.shared.is_some() || rules.purges_everything || captures.is_empty() {
        return;
    }
    let decoded = groups(&captures);
    let mut known = vec![decoded.clone()];
    for groups in spellings(&captures, request.received.target(), &decoded) {
        if known.contains(&groups) {
            continue;
        }
        let more = purge_targets(&with_groups(request, &decoded, &groups), rules);
        for (target, more) in targets.iter_mut().zip(more) {
            target.names.extend(more.names);
        }
        known.push(groups);
    }
}

fn groups(captures: &Captures) -> Groups {
    (0..captures.len())
        .map(|number| captures.group(number).map(<[u8]>::to_vec))
        .collect()
}

fn spellings(captures: &Captures, target: &[u8], decoded: &Groups) -> Vec<Groups> {
    let each = |change: &dyn Fn(&[u8]) -> Vec<u8>| -> Groups {
        let groups = decoded.iter();
        groups.map(|group| group.as_deref().map(change)).collect()
    };
    let capital = |text: &[u8]| escape(text, Escape::Uri).into_owned();
    let small = |text: &[u8]| in_small_digits(&escape(text, Escape::Uri)).into_owned();
    let mut found = vec![each(&capital), each(&small)];
    found.extend(as_sent(captures, target));
    found
}

/// The groups as the path of `target` has them; `None` if they are not of this path.
fn as_sent(captures: &Captures, target: &[u8]) -> Option<Groups> {
    let end = memchr::memchr2(b'?', b'#', target).unwrap_or(target.len());
    let path = target.get(..end)?;
    let mut decoded = Vec::with_capacity(path.len());
    // The position in the path at which each decoded byte begins.
    let mut starts = Vec::with_capacity(path.len() + 1);
    let mut at = 0;
    while let Some(&byte) = path.get(at) {
        starts.push(at);
        let escaped = match (byte, path.get(at + 1), path.get(at + 2)) {
            (b'%', Some(&high), Some(&low)) => hex_pair(high, low),
            _ => None,
        };
        decoded.push(escaped.unwrap_or(byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    starts.push(at);
    // Slashes that were merged and dots that were resolved are not looked for.
    if decoded != captures.subject() {
        return None;
    }
    let text = |(start, end): (usize, usize)| path.get(*starts.get(start)?..*starts.get(end)?);
    let ranges = captures.ranges().iter();
    Some(
        ranges
            .map(|range| Some(range.and_then(text)?.to_vec()))
            .collect(),
    )
}

/// The digits of escapes in small letters.
fn in_small_digits(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'%') {
        return Cow::Borrowed(text);
    }
    let mut small = text.to_vec();
    for at in memchr::memchr_iter(b'%', text) {
        if let Some(digits) = small.get_mut(at + 1..at + 3) {
            digits.make_ascii_lowercase();
        }
    }
    Cow::Owned(small)
}

/// The same request, but for the groups of the last pattern, and the named ones.
fn with_groups(request: &Request, decoded: &Groups, groups: &Groups) -> Box<Request> {
    let (mut subject, mut ranges) = (Vec::new(), Vec::new());
    for group in groups {
        ranges.push(group.as_ref().map(|text| {
            let start = subject.len();
            subject.extend_from_slice(text);
            (start, subject.len())
        }));
    }
    let mut other = request.again();
    let values = other.values.get_mut();
    values.captures.set(&subject, ranges.into_iter());
    // A named group has put the same text into a variable.
    for slot in values.slots.iter_mut().flatten() {
        let mut pairs = decoded.iter().zip(groups);
        let same = pairs.find(|(text, _)| text.as_ref().is_some_and(|text| text == slot));
        if let Some((_, Some(other))) = same {
            slot.clone_from(other);
        }
    }
    other
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(path: &str, ranges: &[Option<(usize, usize)>]) -> Captures {
        let mut captures = Captures::default();
        captures.set(path.as_bytes(), ranges.iter().copied());
        captures
    }

    #[test]
    fn a_capture_is_spelled_as_it_was_sent_and_with_escapes_of_either_case() {
        let captures = captured("/purge/ü b", &[Some((0, 11)), Some((6, 11)), None]);
        let decoded = groups(&captures);
        for (target, expected) in [
            (
                "/purge/%c3%bc%20b?x",
                &["/%C3%BC%20b", "/%c3%bc%20b", "/%c3%bc%20b"][..],
            ),
            (
                "/purge/%C3%bc b",
                &["/%C3%BC%20b", "/%c3%bc%20b", "/%C3%bc b"],
            ),
            // Not the path of the captures: slashes were merged.
            ("//purge/%C3%BC%20b", &["/%C3%BC%20b", "/%c3%bc%20b"]),
            ("/purge/%", &["/%C3%BC%20b", "/%c3%bc%20b"]),
        ] {
            let found = spellings(&captures, target.as_bytes(), &decoded);
            let found: Vec<_> = found
                .iter()
                .map(|groups| String::from_utf8(groups[1].clone().unwrap()).unwrap())
                .collect();
            assert_eq!(found, expected, "{target}");
        }
    }
}
