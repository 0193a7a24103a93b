//! A stored response and its head, which the cache hands out. Once made it does not change, except that
//! it notes when a fetch for a newer one last failed.
//!
//! The head exists first: it is published to followers while the body still arrives. The stored
//! response adds the body when all of it is there. Freshening on a 304 and a soft purge make a new
//! stored response that shares the body of the old one.
//!
//! The parts that a hit reads lie side by side, since in a large store each address is a wait for
//! memory. The index holds both addresses, so that the two waits overlap:
//!
//! ```text
//!   index ─┬──► [ key ][ fields ][ body of up to 2 KB ] ◄─┐
//!          └──► StoredResponse ───────────────────────────┤
//!                                [ piece ][ piece ] ◄─────┘ of a larger body
//! ```
//!
//! ```text
//!   stored_at ─── fresh ─── expires_at ─── stale (swr, sie) ─── only where `use_stale` allows it
//! ```

use crate::body::{Body, COUNTER_BYTES};
use crate::encoded::{EncodedForms, EncodedLookup, Encoding, FormsHome};
use crate::fields::{Field, KnownField, StoredFields};
use crate::freshness::LifetimeSource;
use crate::guard::{SharedGuard, StoredGuard};
use crate::memory_file::FileSlot;
use crate::purge::Stamp;
use crate::purge::labels::Labels;
use crate::size_class::allocated;
use crate::stale::StaleRule;
use crate::storability::Storable;
use crate::time::{Millis, RoughSpan, Span};
use crate::vary::VaryKey;
use bytes::Bytes;
use http_semantics::date;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The upstream's response before the body, handed to [`crate::Leader::publish_head`].
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// Status code.
    pub status: u16,
    /// Reason phrase to send, or empty.
    pub reason: &'a [u8],
    /// The fields to keep and send; those that may not be stored are dropped here.
    pub fields: &'a [Field],
    /// The body's length, if the upstream declared it; a body of another length is never stored.
    pub declared_length: Option<u64>,
}

impl ResponseHead<'_> {
    /// A plain 200 of unknown length.
    pub const OK: ResponseHead<'static> = ResponseHead {
        status: 200,
        reason: b"",
        fields: &[],
        declared_length: None,
    };
}

/// How long a response is fresh that names more tags than are kept.
const UNKNOWN_TAGS_LIFETIME: Duration = Duration::from_secs(1);

/// The head of a stored response, with everything that was decided about it.
#[derive(Clone, Debug)]
pub struct StoredHead {
    /// Status code.
    pub status: u16,
    /// Reason phrase, possibly empty.
    pub reason: Box<[u8]>,
    /// The fields, also as one block of lines.
    pub fields: StoredFields,
    /// The body's length as the upstream declared it.
    pub declared_length: Option<u64>,
    /// When the response was received.
    pub stored_at: Millis,
    /// How old it was already (RFC 9111 §4.2.3: corrected initial age).
    pub age_at_receipt: Span,
    /// The time from which it is stale.
    pub expires_at: Millis,
    /// The source of the lifetime.
    pub lifetime_source: LifetimeSource,
    /// How long past `expires_at` the response may be served while it is refreshed (RFC 5861 §3).
    pub stale_while_revalidate: Span,
    /// How long past `expires_at` the response may be served when the upstream fails (RFC 5861 §4).
    pub stale_if_error: Span,
    /// `must-revalidate` or `proxy-revalidate`: never served stale on the response's own account.
    pub must_revalidate: bool,
    /// How long the upstream took until the head was there.
    pub made_in: RoughSpan,
    /// A purge has marked it stale: it may be shown while it is refreshed.
    pub(crate) is_purged: bool,
    /// It named more tags than are kept.
    pub(crate) lacks_tags: bool,
    /// The request's values that the response's `Vary` selects by.
    pub vary: Option<Arc<VaryKey>>,
}

impl StoredHead {
    /// Creates the head from the received one and the decision to store it.
    #[must_use]
    pub fn new(head: &ResponseHead<'_>, storable: &Storable, now: Millis) -> StoredHead {
        StoredHead {
            status: head.status,
            // A copy: the received phrase is a slice of a whole buffer.
            reason: head.reason.into(),
            fields: StoredFields::new(head.fields),
            declared_length: head.declared_length,
            ..StoredHead::timed(storable, now)
        }
    }

    /// Returns this head after the upstream answered a validation with 304 (RFC 9111 §4.3.4). From now
    /// on the `Vary` of the 304 selects it: the upstream confirms it for the fields of this request.
    #[must_use]
    pub fn freshened(&self, fields: &[Field], storable: &Storable, now: Millis) -> StoredHead {
        StoredHead {
            status: self.status,
            reason: self.reason.clone(),
            fields: self.fields.freshened(fields),
            declared_length: self.declared_length,
            // A 304 does not show how long the page takes.
            made_in: self.made_in,
            ..StoredHead::timed(storable, now)
        }
    }

    fn timed(storable: &Storable, now: Millis) -> StoredHead {
        let expires_at = now.plus(storable.lifetime.saturating_sub(storable.age_at_receipt));
        StoredHead {
            status: 0,
            reason: Box::default(),
            fields: StoredFields::default(),
            declared_length: None,
            stored_at: now,
            age_at_receipt: storable.age_at_receipt.into(),
            expires_at,
            lifetime_source: storable.source,
            stale_while_revalidate: storable.stale_while_revalidate.into(),
            stale_if_error: storable.stale_if_error.into(),
            must_revalidate: storable.must_revalidate,
            made_in: RoughSpan::default(),
            is_purged: false,
            lacks_tags: false,
            vary: storable.vary.clone(),
        }
    }

    /// Not all of its tags are known: it could not be purged by those that are missing, so it is
    /// fresh for a short time only.
    pub(crate) fn shorten_for_missing_tags(&mut self, now: Millis) {
        self.lacks_tags = true;
        self.expires_at = self.expires_at.min(now.plus(UNKNOWN_TAGS_LIFETIME));
        self.stale_while_revalidate = Span::default();
    }

    /// When the upstream was asked, to a thousandth of the time that it took.
    pub(crate) fn asked_at(&self) -> Millis {
        let made_in = Duration::from_micros(self.made_in.micros());
        self.stored_at.minus(made_in)
    }

    /// The value for the `Age` field now (RFC 9111 §4.2.3).
    #[must_use]
    pub fn current_age(&self, now: Millis) -> Duration {
        self.age_at_receipt.duration() + now.since(self.stored_at)
    }

    /// Returns whether it may be served without asking.
    #[must_use]
    pub fn is_fresh(&self, now: Millis) -> bool {
        now < self.expires_at && !self.needs_validation()
    }

    /// Is it validated on each use (RFC 9111 §5.2.2.4)?
    #[must_use]
    pub fn needs_validation(&self) -> bool {
        self.lifetime_source == LifetimeSource::NoCache
    }

    /// Returns its rule about serving it stale.
    #[must_use]
    pub fn stale_rule(&self) -> StaleRule {
        match self.lifetime_source {
            LifetimeSource::NoCache => StaleRule::NoCache,
            _ if self.must_revalidate => StaleRule::MustRevalidate,
            LifetimeSource::SMaxage => StaleRule::Shared,
            _ => StaleRule::Unsaid,
        }
    }

    /// Returns how much of the freshness lifetime is left; zero when stale.
    #[must_use]
    pub fn fresh_for(&self, now: Millis) -> Duration {
        self.expires_at.since(now)
    }

    /// The `ttl` of `Cache-Status` (RFC 9211 §2.5): whole seconds of the freshness lifetime that
    /// are left. Negative when stale, from the first moment on.
    #[must_use]
    pub fn ttl_secs(&self, now: Millis) -> i64 {
        let seconds = |millis: u64| i64::try_from(millis).unwrap_or(i64::MAX);
        match self.is_fresh(now) {
            true => seconds(self.fresh_for(now).as_secs()),
            false => -seconds(now.0.saturating_sub(self.expires_at.0) / 1000 + 1),
        }
    }

    /// Returns how long past its lifetime it may be shown at most, on its own account.
    #[must_use]
    pub fn stale_windows(&self) -> Duration {
        let refreshed = self.stale_while_revalidate.duration();
        refreshed.max(self.stale_if_error.duration())
    }

    /// The validator `ETag`, as received.
    #[must_use]
    pub fn etag(&self) -> Option<&[u8]> {
        self.fields.known(KnownField::ETag)
    }

    /// The validator `Last-Modified`, as received.
    #[must_use]
    pub fn last_modified(&self) -> Option<&[u8]> {
        self.fields.known(KnownField::LastModified)
    }

    /// Does a 304 mean without doubt that this very content is still right? A `Last-Modified` counts
    /// whole seconds: where it is as young as the response, the content may have changed once more in
    /// the same second (RFC 9110 §8.8.2.2).
    #[must_use]
    pub fn has_sure_validator(&self) -> bool {
        let seconds = |field| date::parse(self.fields.known(field)?);
        let age = || Some(seconds(KnownField::Date)? - seconds(KnownField::LastModified)?);
        self.etag().is_some() || age().is_some_and(|age| age >= SURE_MODIFIED_SECONDS)
    }
}

/// A `Last-Modified` this much earlier than `Date` is beyond doubt, though two clocks have written
/// them.
const SURE_MODIFIED_SECONDS: i64 = 60;

/// Bodies up to this lie behind their fields. The server copies as many behind the head anyway, and
/// larger ones fit the allocator's classes better by themselves.
const BESIDE_FIELDS_BYTES: u64 = 2048;

/// A complete response in the cache.
#[derive(Clone, Debug)]
pub struct StoredResponse {
    /// Status, fields and times. Its methods are reachable directly.
    pub head: StoredHead,
    /// All bytes of the body.
    pub body: Body,
    /// The purge clock when the fetch began: a purge with a later stamp beats this response.
    pub stamp: Stamp,
    /// The group or guard that also decides whether it is shown.
    pub(crate) bond: Bond,
    /// The body in content codings, see [`crate::encoded`].
    pub encoded_forms: Arc<EncodedForms>,
    pub(crate) later: LaterFacts,
    /// The labels by which it is purged; the zone sets them when it is stored.
    pub(crate) labels: Labels,
    /// The stamp up to which purges were compared with it and found to concern others.
    compared_until: NotedNumber,
}

/// A bond of a stored response to a private group or a guard.
#[derive(Clone, Debug)]
pub(crate) enum Bond {
    None,
    /// A private group.
    Group(u64),
    Guard(SharedGuard),
    /// Both. In a box: the bond of each response has the room of two words.
    GuardedGroup(Box<(u64, SharedGuard)>),
}

/// A number that grows while others read: the only part of a stored response that changes. A response
/// that follows another one replaces it.
#[derive(Debug, Default)]
struct NotedNumber(AtomicU64);

impl Clone for NotedNumber {
    fn clone(&self) -> NotedNumber {
        NotedNumber(AtomicU64::new(self.0.load(Relaxed)))
    }
}

/// What was found out about a stored response since it was stored. One number: it has no room for more.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaterFacts {
    /// When a fetch last failed for which it stood in, in milliseconds of the Unix epoch (0: never), and [`DOUBTED`].
    bits: NotedNumber,
}

/// A visitor was shown another answer.
const DOUBTED: u64 = 1 << 63;

impl LaterFacts {
    pub(crate) fn last_failure(&self) -> Option<Millis> {
        let at = self.bits.0.load(Relaxed) & !DOUBTED;
        (at > 0).then_some(Millis(at))
    }

    pub(crate) fn is_doubted(&self) -> bool {
        self.bits.0.load(Relaxed) & DOUBTED != 0
    }
}

impl std::ops::Deref for StoredResponse {
    type Target = StoredHead;

    fn deref(&self) -> &StoredHead {
        &self.head
    }
}

impl StoredResponse {
    /// A response of which all is there, in no group and without encoded forms.
    #[must_use]
    pub fn new(head: StoredHead, body: Body, stamp: Stamp) -> StoredResponse {
        StoredResponse {
            head,
            body,
            stamp,
            bond: Bond::None,
            encoded_forms: Arc::default(),
            later: LaterFacts::default(),
            labels: Labels::default(),
            compared_until: NotedNumber(AtomicU64::new(stamp.0)),
        }
    }

    /// The private group it counts against, see [`crate::private`].
    #[must_use]
    pub fn group(&self) -> Option<u64> {
        match &self.bond {
            Bond::Group(group) => Some(*group),
            Bond::GuardedGroup(both) => Some(both.0),
            Bond::None | Bond::Guard(_) => None,
        }
    }

    pub(crate) fn set_group(&mut self, group: Option<u64>) {
        self.bond = group.map_or(Bond::None, Bond::Group);
    }

    pub(crate) fn guard(&self) -> Option<&SharedGuard> {
        match &self.bond {
            Bond::Guard(guard) => Some(guard),
            Bond::GuardedGroup(both) => Some(&both.1),
            Bond::None | Bond::Group(_) => None,
        }
    }

    /// Is it the copy of one visitor, shown while nothing that it was made of has changed?
    #[must_use]
    pub fn is_own_copy(&self) -> bool {
        matches!(self.bond, Bond::GuardedGroup(_))
    }

    pub(crate) fn set_guard(&mut self, guard: StoredGuard) {
        let Some(guard) = guard else {
            return;
        };
        self.bond = match self.group() {
            Some(group) => Bond::GuardedGroup(Box::new((group, guard))),
            None => Bond::Guard(guard),
        };
        // Each lookup compares it anew.
        self.compared_until = NotedNumber::default();
    }

    /// The tags by which it is purged.
    pub fn tags(&self) -> impl Iterator<Item = &[u8]> {
        self.labels.tags()
    }

    /// Returns the stamp up to which no purge has concerned it.
    #[inline]
    pub(crate) fn compared_until(&self) -> u64 {
        // Relaxed: a late value only costs another comparison, and nothing is read that depends on it.
        self.compared_until.0.load(Relaxed)
    }

    /// No purge up to this stamp has concerned it.
    pub(crate) fn note_compared(&self, until: u64) {
        if self.guard().is_none() {
            self.compared_until.0.fetch_max(until, Relaxed);
        }
    }

    /// A fetch for a new copy has failed, and this one stands in for it.
    pub fn note_failure(&self, now: Millis) {
        // Never refused.
        let _ = (self.later.bits.0).fetch_update(Relaxed, Relaxed, |bits| {
            Some(bits & DOUBTED | (bits & !DOUBTED).max(now.0 & !DOUBTED))
        });
    }

    /// A visitor was shown another, perhaps newer answer: once this one is stale, it stands in for a fetch that failed,
    /// and is shown for no other reason.
    pub fn doubt(&self) {
        self.later.bits.0.fetch_or(DOUBTED, Relaxed);
    }

    /// The body in `encoding`. When it is ready this costs one shared lock and no allocation.
    #[must_use]
    pub fn encoded(&self, encoding: Encoding) -> EncodedLookup {
        // A session's page is seldom asked for twice, and its group's bounds count whole responses.
        if self.group().is_some() || !self.encoded_forms.has_home() {
            return EncodedLookup::NotKept;
        }
        self.encoded_forms.look_or_claim(encoding)
    }

    /// Returns the response in a new layout, and the block of memory that begins with `key` and holds
    /// all its small parts.
    pub(crate) fn laid_out(mut self, key: &[u8]) -> (Bytes, StoredResponse) {
        let mut block = Vec::with_capacity(self.block_len(key.len()));
        let mut put = |bytes: &[u8]| {
            let start = block.len();
            block.extend_from_slice(bytes);
            start..block.len()
        };
        put(key);
        let fields = put(self.head.fields.block());
        let small = self.is_small();
        let body = small.then(|| put(&self.body.chunks().concat()));
        let block = Bytes::from(block);
        self.head.fields = std::mem::take(&mut self.head.fields).moved_to(block.slice(fields));
        if let Some(range) = body {
            self.body = Body::whole(block.slice(range));
        }
        (block, self)
    }

    /// Asks memory for the half of itself that a lookup does not look at and an answer begins with.
    pub(crate) fn fetch_lines(&self) {
        std::hint::black_box(self.head.age_at_receipt);
    }

    fn is_small(&self) -> bool {
        self.body.len() <= BESIDE_FIELDS_BYTES
    }

    fn block_len(&self, key_len: usize) -> usize {
        let small: usize = match self.is_small() {
            true => self.body.chunks().iter().map(Bytes::len).sum(),
            false => 0,
        };
        key_len + self.head.fields.block().len() + small
    }

    /// Says where the response is found.
    pub(crate) fn set_home(&self, zone: Weak<dyn FormsHome>, hash: u64) {
        self.encoded_forms.set_home(zone, hash);
        // A session's page is seldom asked for twice.
        if let (None, Some(slot)) = (self.group(), self.body.file_slot()) {
            let owner = Arc::downgrade(&self.encoded_forms);
            slot.set_owner(owner);
        }
    }

    /// Lets go of the encoded forms. The body's file cannot go; these are its bytes.
    pub(crate) fn drop_forms(&self) -> u64 {
        self.encoded_forms.clear();
        self.body.file_slot().map_or(0, FileSlot::file_bytes)
    }

    /// Returns the response, fresh until that time at least.
    #[must_use]
    pub(crate) fn kept_until(&self, until: Millis) -> StoredResponse {
        let mut response = self.clone();
        response.head.expires_at = response.head.expires_at.max(until);
        response
    }

    /// Returns the response, stale from `now` on (soft purge).
    #[must_use]
    pub fn expired(&self, now: Millis) -> StoredResponse {
        let mut response = self.clone();
        response.head.expires_at = response.head.expires_at.min(now);
        response.head.is_purged = true;
        response
    }

    /// The fields after a 304 with `fields` (RFC 9111 §3.2), for [`crate::decide`].
    #[must_use]
    pub fn fields_after(&self, fields: &[Field]) -> Vec<Field> {
        let merged = self.head.fields.freshened(fields);
        let stated_age = fields
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(b"age"))
            .cloned();
        merged.pairs().chain(stated_age).collect()
    }

    /// Bytes of memory the response takes under a key of `key_len` bytes: key, body, fields and
    /// bookkeeping as the allocator rounds them. The zone adds the index, and the memory of encoded
    /// forms and files when they come.
    #[must_use]
    pub(crate) fn size_bytes(&self, key_len: usize) -> usize {
        let separate = match self.is_small() {
            true => 0,
            false => self.body.size_bytes(),
        };
        allocated(size_of::<StoredResponse>() + 16)
            + allocated(self.block_len(key_len))
            + COUNTER_BYTES
            + separate
            + EncodedForms::empty_size_bytes()
            + allocated(self.head.reason.len())
            + self.head.vary.as_ref().map_or(0, |vary| vary.size_bytes())
            + self.labels.size_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purge::clock::Purges;
    use crate::testing::{T0, response, storable};

    #[test]
    fn a_stored_response_takes_four_lines_of_memory() {
        // Beside the counts of those who share it.
        assert!(size_of::<StoredResponse>() + 2 * size_of::<usize>() <= 256);
    }

    /// The phrase and the fields of a proxied response are slices of the bytes of one read, with the
    /// beginning of the body. Kept as such, 1 KB of page took 3 KB.
    #[test]
    fn a_stored_head_holds_no_received_buffer() {
        let received = Bytes::from(b"HTTP/1.1 200 Fine\r\nX: 1\r\n\r\nbody".to_vec());
        let head = StoredHead::new(
            &ResponseHead {
                status: 200,
                reason: &received.slice(13..17),
                fields: &[(received.slice(19..20), received.slice(22..23))],
                declared_length: None,
            },
            &storable(&["Cache-Control: max-age=60"], &[]),
            T0,
        );
        assert_eq!(*head.reason, *b"Fine");
        assert_eq!(head.fields.first("x"), Some(&b"1"[..]));
        assert!(received.is_unique());
    }

    #[test]
    fn key_fields_and_a_small_body_lie_side_by_side() {
        for (len, is_beside) in [
            (0, true),
            (1, true),
            (2048, true),
            (2049, false),
            (90_000, false),
        ] {
            let mut made = response(60, len, T0, Purges::new(1).stamp());
            let field = (Bytes::from("X"), Bytes::from("1"));
            made.head.fields = StoredFields::new(&[field]);
            let (block, laid) = made.clone().laid_out(b"/key");
            assert!(block.starts_with(b"/key"));
            assert_eq!(laid.fields.lines(), made.fields.lines(), "{len}");
            assert_eq!(
                laid.body.chunks().concat(),
                made.body.chunks().concat(),
                "{len}"
            );
            let fields = laid.fields.block().as_ptr_range();
            assert_eq!(block[4..].as_ptr(), fields.start, "{len}");
            let body = laid.body.chunks().first().map(|piece| piece.as_ptr());
            assert!(
                body.is_none_or(|body| (body == fields.end) == is_beside),
                "{len}"
            );
            assert_eq!(laid.size_bytes(4), made.size_bytes(4), "{len}");
        }
    }
}
