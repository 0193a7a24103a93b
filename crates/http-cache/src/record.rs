//! Stored responses as bytes, so that they can be kept elsewhere and come back, perhaps to another
//! start of the server or to another version of it. The body is kept as it is, beside these bytes.
//!
//! ```text
//! form 1 │ status 2 │ flags 1 │ lifetime source 1 │ fresh for 8 │ age at receipt 8
//!        │ stale-while-revalidate 8 │ stale-if-error 8 │ made in 2 │ reason │ address
//!        │ count of tags 4, tags │ count of names of `Vary` 4, names, their values │ length of the fields' lines 4, fields
//!        │ in form 3: the inputs of the page
//! ```
//!
//! Numbers are big-endian, and each text has its length before it. The fields are one text, as they lie in
//! memory: a hit on a kept page takes them as they are. Times are counted from the moment at which the
//! response was received, which the keeper knows: the clock of a process means nothing to the next. Any other
//! form is not read; a change of the layout counts `FORM` up. A response that has a guard is
//! written in `GUARDED_FORM`, and is of no use without its inputs, which are not parsed here.
//!
//! A variance stands under the bare key of a page that varies: it names the fields by which its variants,
//! which are kept under longer keys, differ.

use crate::body::Body;
use crate::fields::StoredFields;
use crate::freshness::LifetimeSource;
use crate::purge::OwnedPurgeTarget;
use crate::purge::written::MAX_NAME_BYTES;
use crate::purge::{LabelNames, Stamp, Tags};
use crate::stored::{StoredHead, StoredResponse};
use crate::time::{Millis, RoughSpan, Span};
use crate::vary::{VaryKey, VarySpec};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// The forms that are written and read.
const FORM: u8 = 2;
const GUARDED_FORM: u8 = 3;

const MUST_REVALIDATE: u8 = 1;
const LACKS_TAGS: u8 = 2;
const IS_PURGED: u8 = 4;
const SAYS_LENGTH: u8 = 8;

/// Sources in the order of their numbers.
const SOURCES: [LifetimeSource; 8] = [
    LifetimeSource::AccelExpires,
    LifetimeSource::CdnCacheControl,
    LifetimeSource::SMaxage,
    LifetimeSource::MaxAge,
    LifetimeSource::Expires,
    LifetimeSource::Rule,
    LifetimeSource::Heuristic,
    LifetimeSource::NoCache,
];

/// A response that was kept elsewhere, but for its body.
#[derive(Clone, Debug)]
pub struct PageRecord {
    /// The head as it was stored.
    pub head: Arc<StoredHead>,
    /// The address by which it is purged.
    pub address: Bytes,
    /// The tags by which it is purged.
    pub tags: Tags,
    /// The inputs of a response with a guard: it may be shown only if they are unchanged. Empty if its age
    /// is not known.
    pub made_of: Option<Bytes>,
}

impl PageRecord {
    /// Returns the names by which it is purged.
    #[must_use]
    pub fn names(&self) -> LabelNames<'_> {
        LabelNames {
            address: &self.address,
            tags: Some(&self.tags),
        }
    }

    /// The response, with a body that was read. `stamp`: when its fetch began.
    #[must_use]
    pub fn with_body(&self, body: Bytes, stamp: Stamp) -> StoredResponse {
        StoredResponse::new(StoredHead::clone(&self.head), Body::pack(&[body]), stamp)
    }
}

/// May the response be kept elsewhere? A private one never is, nor one with a guard without its inputs
/// `made_of`.
#[must_use]
pub fn may_be_written(key: &[u8], response: &StoredResponse, made_of: Option<&[u8]>) -> bool {
    let address = response.labels.address().unwrap_or_default();
    response.group().is_none()
        && response.guard().is_some() == made_of.is_some()
        && key.len() <= MAX_NAME_BYTES
        && address.len() <= MAX_NAME_BYTES
}

/// The response in bytes, but for its body.
#[must_use]
pub fn write(response: &StoredResponse, made_of: Option<&[u8]>) -> Vec<u8> {
    let head = &response.head;
    let form = made_of.map_or(FORM, |_| GUARDED_FORM);
    let mut out = vec![form];
    out.extend_from_slice(&head.status.to_be_bytes());
    let flags = [
        (head.must_revalidate, MUST_REVALIDATE),
        (head.lacks_tags, LACKS_TAGS),
        (head.is_purged, IS_PURGED),
        (head.declared_length.is_some(), SAYS_LENGTH),
    ];
    let set = flags.iter().filter(|(is, _)| *is).map(|(_, flag)| flag);
    out.push(set.fold(0, |all, flag| all | flag));
    let source = SOURCES
        .iter()
        .position(|source| *source == head.lifetime_source);
    out.push(source.unwrap_or_default() as u8);
    for number in [
        millis(head.expires_at.since(head.stored_at).into()),
        millis(head.age_at_receipt),
        millis(head.stale_while_revalidate),
        millis(head.stale_if_error),
    ] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    out.extend_from_slice(&head.made_in.bits().to_be_bytes());
    put_text(&head.reason, &mut out);
    put_text(response.labels.address().unwrap_or_default(), &mut out);
    let tags: Vec<&[u8]> = response.tags().collect();
    put_count(tags.len(), &mut out);
    tags.iter().for_each(|tag| put_text(tag, &mut out));
    match &head.vary {
        Some(vary) => {
            put_names(vary.spec().names(), &mut out);
            put_text(vary.values(), &mut out);
        }
        None => put_names(&[], &mut out),
    }
    put_count(head.fields.lines().len(), &mut out);
    put_text(head.fields.block(), &mut out);
    out.extend_from_slice(made_of.unwrap_or_default());
    out
}

/// A record as it is read.
#[derive(Clone, Copy, Debug)]
pub struct KeptBytes<'a> {
    /// The bytes from [`write()`]. The page shares their memory.
    pub head: &'a Bytes,
    /// How long the body beside it is.
    pub body_bytes: u64,
    /// How long ago the response was received; `None`: the clocks do not tell. Then it is stale.
    pub age: Option<Duration>,
}

/// Reads the record that [`write()`] has written of a response without a guard; `None` for anything else.
#[must_use]
pub fn read(kept: KeptBytes<'_>, now: Millis) -> Option<PageRecord> {
    read_any(kept, now).filter(|page| page.made_of.is_none())
}

/// Reads the record of any response. One with a guard must not be shown without another one.
#[must_use]
pub fn read_any(kept: KeptBytes<'_>, now: Millis) -> Option<PageRecord> {
    let mut rest = Unread(&kept.head[..]);
    let form = rest.byte()?;
    let mut page = read_page(&mut rest, kept, now)?;
    match form {
        FORM if rest.0.is_empty() => Some(page),
        GUARDED_FORM => {
            let made_of = kept.head.slice_ref(rest.0);
            page.made_of = Some(kept.age.map_or_else(Bytes::new, |_| made_of));
            Some(page)
        }
        _ => None,
    }
}

/// For fuzzing: a record that was read is written again, and comes back as it was.
///
/// # Panics
/// When it does not.
#[doc(hidden)]
pub fn fuzz_record(bytes: &[u8]) {
    let _ = OwnedPurgeTarget::of(bytes, &|_| None).as_target().written();
    let read = |head: Bytes| {
        let kept = KeptBytes {
            head: &head,
            body_bytes: 0,
            age: Some(Duration::ZERO),
        };
        read_any(kept, Millis(1 << 40))
    };
    if let Some(page) = read(Bytes::copy_from_slice(bytes)) {
        let made_of = page.made_of.as_deref();
        let written = write(&page.with_body(Bytes::new(), Stamp::default()), made_of);
        let again = read(written.into()).expect("what was written can be read");
        // Labels are those of a zone, which this response is not in.
        assert_eq!(again.head.fields.lines(), page.head.fields.lines());
        assert_eq!(again.head.vary, page.head.vary);
        assert_eq!(again.made_of, page.made_of);
    }
}

fn read_page(rest: &mut Unread<'_>, kept: KeptBytes<'_>, now: Millis) -> Option<PageRecord> {
    let status = rest.short()?;
    let flags = rest.byte()?;
    let lifetime_source = *SOURCES.get(usize::from(rest.byte()?))?;
    let mut span = || Some(Duration::from_millis(rest.long()?));
    let fresh_for = span()?;
    let mut span = || Some(Span::from(span()?));
    let (age_at_receipt, stale_while_revalidate, stale_if_error) = (span()?, span()?, span()?);
    let made_in = RoughSpan::from_bits(rest.short()?);
    let reason = rest.text()?.into();
    let address = kept.head.slice_ref(rest.text()?);
    let mut tags = Tags::default();
    for _ in 0..rest.count()? {
        tags.add(rest.text()?);
    }
    let names = rest.names()?;
    let vary = match names.is_empty() {
        true => None,
        false => Some(Arc::new(VaryKey::of_parts(
            VarySpec::of_names(names),
            rest.text()?,
        ))),
    };
    let lines_len = rest.count()?;
    let fields = kept.head.slice_ref(rest.text()?);
    let stored_at = now.minus(kept.age.unwrap_or(fresh_for));
    let head = StoredHead {
        status,
        reason,
        fields: StoredFields::of_block(fields, lines_len)?,
        declared_length: (flags & SAYS_LENGTH != 0).then_some(kept.body_bytes),
        stored_at,
        age_at_receipt,
        expires_at: stored_at.plus(fresh_for),
        lifetime_source,
        stale_while_revalidate,
        stale_if_error,
        must_revalidate: flags & MUST_REVALIDATE != 0,
        made_in,
        is_purged: flags & IS_PURGED != 0,
        lacks_tags: flags & LACKS_TAGS != 0,
        vary,
    };
    Some(PageRecord {
        head: Arc::new(head),
        address,
        tags,
        made_of: None,
    })
}

fn millis(span: Span) -> u64 {
    u64::try_from(span.duration().as_millis()).unwrap_or(u64::MAX)
}

/// No text here reaches 4 GB: responses that large are not stored.
fn put_count(count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
}

fn put_text(text: &[u8], out: &mut Vec<u8>) {
    put_count(text.len(), out);
    out.extend_from_slice(text);
}

fn put_names(names: &[String], out: &mut Vec<u8>) {
    put_count(names.len(), out);
    names.iter().for_each(|name| put_text(name.as_bytes(), out));
}

/// The bytes of a record not parsed yet.
struct Unread<'a>(&'a [u8]);

impl<'a> Unread<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn count(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn long(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.count()?).ok()?;
        self.take(len)
    }

    fn names(&mut self) -> Option<Vec<String>> {
        let mut names = Vec::new();
        for _ in 0..self.count()? {
            names.push(String::from_utf8(self.text()?.to_vec()).ok()?);
        }
        Some(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Zone, ZoneConfig};
    use crate::testing::{T0, fields, key, response};

    fn page() -> Arc<StoredResponse> {
        let zone = Zone::new(ZoneConfig::default());
        let mut made = response(60, 100, T0, zone.stamp());
        made.head.status = 404;
        made.head.reason = b"Gone fishing"[..].into();
        made.head.fields = StoredFields::new(&fields(&[
            "Content-Type: text/html",
            "X: 1",
            "X: 2",
            "ETag: \"e\"",
        ]));
        made.head.stale_if_error = Duration::from_secs(7).into();
        made.head.made_in = Duration::from_millis(12).into();
        made.head.declared_length = Some(100);
        let vary = VaryKey::of([&b"X-Of, Accept"[..]].into_iter(), &fields(&["X-Of: a"]));
        made.head.vary = vary.expect("no refusal").map(Arc::new);
        let mut tags = Tags::default();
        tags.add(b"news:5");
        tags.add(b"list");
        let names = LabelNames {
            address: b"host/a",
            tags: Some(&tags),
        };
        zone.insert_named(&key("/a").as_ref(), made, &names, T0)
            .expect("stored")
    }

    fn read_at(head: &[u8], age: Option<Duration>, now: Millis) -> Option<PageRecord> {
        let kept = KeptBytes {
            head: &Bytes::copy_from_slice(head),
            body_bytes: 100,
            age,
        };
        read(kept, now)
    }

    #[test]
    fn a_response_comes_back_as_it_was() {
        let page = page();
        let written = write(&page, None);
        let later = T0.plus(Duration::from_secs(9000));
        let read = read_at(&written, Some(Duration::from_secs(20)), later).expect("written");
        let mut head = page.head.clone();
        assert_eq!(read.head.current_age(later), Duration::from_secs(20));
        assert_eq!(read.head.fresh_for(later), Duration::from_secs(40));
        (head.stored_at, head.expires_at) = (read.head.stored_at, read.head.expires_at);
        assert_eq!(format!("{:?}", read.head), format!("{head:?}"));
        assert_eq!(*read.address, *b"host/a");
        let mut tags: Vec<&[u8]> = read.tags.iter().collect();
        tags.sort_unstable();
        assert_eq!(tags, [&b"list"[..], b"news:5"]);
    }

    #[test]
    fn what_is_cut_or_of_another_form_is_not_read() {
        let mut written = write(&page(), None);
        let read = |bytes: &[u8]| read_at(bytes, None, T0);
        for len in 0..written.len() {
            assert!(read(&written[..len]).is_none());
        }
        written.push(0);
        assert!(read(&written).is_none());
        written.pop();
        assert!(read(&written).is_some());
        written[0] = 1;
        assert!(read(&written).is_none());
    }

    #[test]
    fn what_a_response_was_made_of_comes_back_while_its_age_is_known() {
        let written = write(&page(), Some(b"made of"));
        let bytes = Bytes::copy_from_slice(&written);
        let kept = |age| KeptBytes {
            head: &bytes,
            body_bytes: 100,
            age,
        };
        assert!(read(kept(None), T0).is_none(), "it has no guard there");
        let read = |age| read_any(kept(age), T0).expect("written").made_of;
        let known = read(Some(Duration::ZERO));
        assert_eq!(known.as_deref(), Some(&b"made of"[..]));
        assert_eq!(read(None).as_deref(), Some(&b""[..]));
        let plain = read_at(&write(&page(), None), None, T0).expect("written");
        assert_eq!(plain.made_of, None);
        let made = response(60, 10, T0, Stamp::default());
        assert!(!may_be_written(b"/a", &made, Some(b"made of")), "no guard");
    }

    #[test]
    fn a_response_whose_age_is_not_known_is_stale_and_not_gone() {
        let read = read_at(&write(&page(), None), None, T0).expect("written");
        assert!(!read.head.is_fresh(T0));
        assert_eq!(read.head.expires_at, T0);
    }

    #[test]
    fn a_private_copy_is_never_written() {
        let mut made = response(60, 10, T0, Stamp::default());
        assert!(may_be_written(b"/a", &made, None));
        made.set_group(Some(5));
        assert!(!may_be_written(b"/a", &made, None));
        assert!(!may_be_written(
            &[b'x'; MAX_NAME_BYTES + 1],
            &response(60, 1, T0, Stamp::default()),
            None
        ));
    }
}
