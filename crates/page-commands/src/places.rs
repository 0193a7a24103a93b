//! The places of the commands in a stored page: found once, and kept beside its body as an
//! encoded form is ([`http_cache::EncodedLookup`]), counted in the budget of the zone.
//!
//! ```text
//! body:  text <command> text <command> text
//! kept:       [start,end)    [start,end)      8 bytes each
//! ```

use std::ops::Range;

use bytes::Bytes;
use http_cache::{Body, EncodedLookup, StoredResponse};

use crate::language::{CommandSearch, Language};

/// Bodies up to this are searched whole, in one piece of memory. Larger ones are read as bodies
/// that arrive.
const MAX_BODY_BYTES: u64 = 16 * 1024 * 1024;

/// Both ends of a command, as they are kept: little endian, within [`MAX_BODY_BYTES`].
const RECORD_BYTES: usize = 8;

/// The places of the commands of a stored body; `None` if it is too large.
pub fn of_stored<L: Language>(response: &StoredResponse) -> Option<Vec<Range<u64>>> {
    if response.body.len() > MAX_BODY_BYTES {
        return None;
    }
    let claim = match response.encoded(L::KEPT_AS) {
        EncodedLookup::Ready(kept) => return Some(read(&kept)),
        EncodedLookup::Useless => return Some(Vec::new()),
        EncodedLookup::Absent(claim) => Some(claim),
        // Searching once more is quicker than waiting.
        EncodedLookup::Busy(_) | EncodedLookup::NotKept => None,
    };
    let places = search::<L>(&response.body);
    match claim {
        Some(claim) if places.is_empty() => claim.useless(),
        Some(claim) => {
            // Without room it is searched for again.
            claim.attach(write(&places));
        }
        None => {}
    }
    Some(places)
}

fn search<L: Language>(body: &Body) -> Vec<Range<u64>> {
    let joined;
    let bytes: &[u8] = match body.chunks() {
        [] => &[],
        [whole] => whole,
        several => {
            joined = several.concat();
            &joined
        }
    };
    let mut places = Vec::new();
    let mut inside = L::CommandContext::default();
    let mut from = 0;
    while let CommandSearch::Command(range) = L::find(&bytes[from..], &mut inside) {
        places.push((from + range.start) as u64..(from + range.end) as u64);
        from += range.end;
    }
    places
}

fn write(places: &[Range<u64>]) -> Body {
    let mut bytes = Vec::with_capacity(places.len() * RECORD_BYTES);
    for place in places {
        for end in [place.start, place.end] {
            let end = u32::try_from(end).unwrap_or(u32::MAX);
            bytes.extend_from_slice(&end.to_le_bytes());
        }
    }
    Body::pack(&[Bytes::from(bytes)])
}

fn read(kept: &Body) -> Vec<Range<u64>> {
    let bytes = kept.chunks().concat();
    let (records, _) = bytes.as_chunks::<RECORD_BYTES>();
    let places = records.iter().map(|record| {
        let [a, b, c, d, e, f, g, h] = *record;
        u64::from(u32::from_le_bytes([a, b, c, d]))..u64::from(u32::from_le_bytes([e, f, g, h]))
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Esi, Ssi};

    #[test]
    fn places_are_read_as_they_were_written() {
        let places: Vec<Range<u64>> = (0..5000).map(|at| at * 100..at * 100 + 7).collect();
        assert_eq!(read(&write(&places)), places);
    }

    #[test]
    fn commands_across_pieces_of_a_body_are_found() {
        let text = "x".repeat(20_470);
        let page = format!("{text}<esi:include src='/a'/>{text}<!--#echo var='b' -->{text}");
        let body = Body::pack(&[Bytes::from(page.clone())]);
        assert!(body.chunks().len() > 1, "the body is in several pieces");
        let found = |places: Vec<Range<u64>>| -> Vec<String> {
            let text =
                |place: Range<u64>| page[place.start as usize..place.end as usize].to_owned();
            places.into_iter().map(text).collect()
        };
        assert_eq!(found(search::<Esi>(&body)), ["<esi:include src='/a'/>"]);
        assert_eq!(found(search::<Ssi>(&body)), ["<!--#echo var='b' -->"]);
    }
}
