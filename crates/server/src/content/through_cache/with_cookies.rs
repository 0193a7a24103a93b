//! Pages that are made with a visitor's cookies, and shared as the application demands by LiteSpeed's protocol
//! (`content/litespeed`).
//!
//! ```text
//! request ─ no cookie that counts ──────► as with cache_shared: one page for all visitors
//!    └ cookies ─ nothing is noted ──────► sent as it came, not stored; the response's policy is noted
//!         ├ noted: public ──────────────► written anew with all cookies; shared by those for whom
//!         │                               `_lscache_vary*` and the cookies of X-LiteSpeed-Vary are the same
//!         └ noted: private ─────────────► written anew with all cookies; a copy for this visitor
//! ```
//!
//! Such a page was made of the URL, the visitor's class and cookies, nothing else. A page without cookies is never
//! shared with those who have some, nor the other way round. The key of a private copy holds all cookies and the
//! client's address: to whom it is shown, the application would have sent the same. Purges find private copies by
//! the visitor's long cookies ([`VisitorId`]).

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use cache_decision::fields::Fields;
use cache_decision::litespeed::{VARY_COOKIES, VisitorId, visitor_ids};
use cache_decision::with_cookies::{RequestMemory, WithCookies, sharing_said};
use http_cache::{CacheKey, FoundResponse, KeyRef, Millis, Sharing, Zone};
use shared_request::{Bypass, Class, NameSet, cookies};
use site::SharedRules;

use super::shared;
use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::request::Request;
use crate::exchange::request_values::RequestValues;
use crate::exchange::sharing_note::SharingNote;
use crate::exchange::variable;

type Field = (Bytes, Bytes);

/// How long the policy of a page's responses is remembered. The next response renews it.
const NOTE_TIME: Duration = Duration::from_secs(24 * 3600);
/// A visitor with more of them has no private copies: each is a label of each.
const MAX_IDS: usize = 16;

/// Makes the key of a request with cookies; an error is the reason why it goes past the cache.
pub fn put_key(
    request: &Request,
    rules: &SharedRules,
    zone: &Arc<Zone>,
    key: &mut Vec<u8>,
) -> Result<(Class, Arc<WithCookies>), Bypass> {
    key.clear();
    let class = shared::put_visitors_key(request, rules, key)?;
    if let Some(own) = &rules.key {
        key.push(0);
        variable::append(request, own, key);
    }
    let note = note_key(&request.received, key);
    let mut noted = zone.sharing(&note.as_ref(), Millis(request.now()));
    if noted.is_none() && is_kept_for_group(request, key, zone) {
        noted = Some(Sharing::Group);
    }
    let ids = match noted {
        Some(Sharing::OneVisitor) => visitor_ids(request.received.head().view()),
        Some(Sharing::Group) | None => Vec::new(),
    };
    let with = match noted {
        Some(Sharing::Group) => WithCookies {
            sharing: Sharing::Group,
            note,
            ids,
            group: None,
        },
        Some(Sharing::OneVisitor) if is_known(&ids) => {
            let digest = shared::put_visitor(request, rules, key);
            WithCookies {
                sharing: Sharing::OneVisitor,
                note,
                ids,
                group: digest.first_chunk().copied().map(u64::from_be_bytes),
            }
        }
        Some(Sharing::OneVisitor) | None => {
            let note = SharingNote {
                zone: zone.clone(),
                key: note,
            };
            let note = Some(Box::new(note));
            request
                .values
                .write(|values| values.later.sharing_note = note);
            return Err(Bypass::Cookie);
        }
    };
    Ok((class, Arc::new(with)))
}

/// Returns the key of the note on who may share a page: for a URL and a group of visitors.
fn note_key(received: &ReceivedRequest, key: &[u8]) -> CacheKey {
    let mut note = key.to_vec();
    static OF_GROUPS: LazyLock<NameSet> = LazyLock::new(|| NameSet::new([VARY_COOKIES.as_bytes()]));
    for (name, value) in cookies::pairs(received.head().view()) {
        if cookies::is_named(name, &OF_GROUPS) {
            for part in [&b"\0"[..], name, b"=", value] {
                note.extend_from_slice(part);
            }
        }
    }
    CacheKey::new(note)
}

/// Is a fresh copy stored that was made for the visitor's group? Its own fields name who may share it: clients who
/// invent groups can make the zone forget notes, but not copies that visitors use.
fn is_kept_for_group(request: &Request, key: &[u8], zone: &Zone) -> bool {
    let (key, fields) = (KeyRef::new(key), Fields::Shared(request.received.head()));
    match zone.find_again(&key, &fields, Millis(request.now())) {
        // A copy without `Vary` is not specific to a group.
        FoundResponse::Fresh(kept) => kept.vary.is_some(),
        FoundResponse::NotFresh(_) => false,
    }
}

/// Is there something by which a private copy could be purged?
fn is_known(ids: &[VisitorId]) -> bool {
    (1..=MAX_IDS).contains(&ids.len())
}

/// Notes the sharing policy of a response that was fetched for one client alone.
pub fn note_of_direct(values: &RequestValues, fields: &[Field]) {
    let note = values.write_given(|values| values.later.sharing_note.take());
    let Some(note) = note.flatten() else {
        return;
    };
    let sharing = sharing_said(fields);
    if sharing.is_some() {
        put_note(&note.zone, &note.key.as_ref(), sharing);
    }
}

fn put_note(zone: &Zone, key: &KeyRef<'_>, sharing: Option<Sharing>) {
    let until = Millis(clock::now()).plus(NOTE_TIME);
    zone.note_sharing(key, sharing, until);
}

/// Notes the sharing policy of a response that was fetched for the cache.
pub fn note(zone: &Zone, expected: &RequestMemory, fields: &[Field]) {
    if let Some(with) = &expected.cookies {
        put_note(zone, &with.note.as_ref(), sharing_said(fields));
    }
}
