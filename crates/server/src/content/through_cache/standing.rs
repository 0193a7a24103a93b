//! Whether a visitor may be shown the answer to the shared request, by the evidence about the page.
//!
//! Each thread remembers its results for the latest visitors, so that a hit costs a hash of its key and of the
//! parts that the shared request leaves out. A remembered result holds until any page is no longer shared
//! (`Evidence::epoch`), and for a minute at most: the answer of a visitor who asks for everything is compared, too.

use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, LazyLock};

use cache_decision::SharedPage;
use http_cache::{KeyRef, VarySpec, Zone};
use page_evidence::{PageName, Standing};
use shared_request::{LeftOut, Trait};
use site::{Pass, SharedRules};

use super::shared;
use super::site_variance;
use super::upstream_state::{is_comparable, is_idle};
use crate::exchange::request::Request;

/// The standing of the visitor of `request`, whose key is `key`; the key gets longer where the page depends
/// on something that a key can hold. The page is `None` if nothing more has to be known of it.
#[inline]
pub fn of(
    request: &Request,
    (pass, rules): (&Pass, &SharedRules),
    (zone, key): (&Arc<Zone>, &mut Vec<u8>),
    left_out: LeftOut,
) -> (Standing, Option<SharedPage>) {
    if request.is_dry() {
        // `explain` shows all that is known.
        return look_closely(request, (pass, rules), (zone, key), left_out);
    }
    if left_out.is_nothing() {
        return (Standing::Shared, None);
    }
    let evidence = &request.configuration.live.alive_zones.seen_pages.evidence;
    let epoch = in_minute(evidence.epoch(), request.now());
    let mark = mark_of(zone, key, &left_out);
    if is_remembered(mark, epoch) {
        return (Standing::Shared, None);
    }
    let key_length = key.len();
    let (standing, page) = look_closely(request, (pass, rules), (zone, key), left_out);
    if standing == Standing::Shared && key.len() == key_length {
        remember(mark, epoch);
    }
    (standing, page)
}

#[cold]
fn look_closely(
    request: &Request,
    (pass, rules): (&Pass, &SharedRules),
    (zone, key): (&Arc<Zone>, &mut Vec<u8>),
    mut left_out: LeftOut,
) -> (Standing, Option<SharedPage>) {
    let evidence = &request.configuration.live.alive_zones.seen_pages.evidence;
    let keyed = evidence.keyed(name_of(request, zone, key));
    let length = key.len();
    if !keyed.is_empty() && shared::put_keyed(request, rules, keyed, key).is_err() {
        key.truncate(length);
        return (Standing::Depends(Trait::Cookies), None);
    }
    // All versions of a browser have one key: whether they are alike is compared.
    for it in keyed.without(Trait::Agent).iter() {
        left_out.set(it, 0);
    }
    if let Some(spec) = varies_on(request, zone, key) {
        left_out = shared::without_varied(request, spec.names(), left_out);
    }
    let mut page = SharedPage {
        name: name_of(request, zone, key),
        left_out,
        keyed,
        audit: None,
    };
    let mut standing = evidence.standing(page.name, &left_out, request.now());
    let guests = &request.configuration.live.alive_zones.seen_pages.guests;
    if standing == Standing::Unproven
        && !evidence.is_shared(page.name)
        && guests.refusal(page.name).is_some()
    {
        standing = Standing::NotShareable;
    }
    // An audit is taken only where it is made: the next one is due much later.
    if standing == Standing::Shared && is_comparable(request) && is_idle(request, pass) {
        page.audit = evidence.takes_audit(page.name, &left_out, request.now());
        if page.audit.is_some() {
            standing = Standing::Unproven;
        }
    }
    (standing, Some(page))
}

/// Returns the fields that responses for the key, or else other pages of the site, have named in `Vary`.
pub fn varies_on(request: &Request, zone: &Zone, key: &[u8]) -> Option<Arc<VarySpec>> {
    let spec = zone.vary_spec(&KeyRef::new(key));
    spec.or_else(|| site_variance::known(zone, request))
}

/// The name of the page with this key.
pub fn name_of(request: &Request, zone: &Zone, key: &[u8]) -> PageName {
    let site = [
        zone.config().name.as_bytes(),
        b"\0",
        request.received.host(),
    ]
    .concat();
    PageName::new(&site, key)
}

/// Visitors that a thread remembers.
const REMEMBERED: usize = 1024;

/// Bits of the number of a minute.
const MINUTE_BITS: u32 = 20;

/// The epoch together with the minute of `now`, in milliseconds.
fn in_minute(epoch: u64, now: u64) -> u64 {
    let minute = (now / 60_000) & ((1 << MINUTE_BITS) - 1);
    (epoch << MINUTE_BITS) | minute
}

thread_local! {
    /// The latest visitors, by mark: the mark, and the epoch and minute in which it was found that the visitor shares the
    /// page.
    static KNOWN: RefCell<Vec<(u64, u64)>> = const { RefCell::new(Vec::new()) };
}

/// Stands for a visitor of a page.
fn mark_of(zone: &Arc<Zone>, key: &[u8], left_out: &LeftOut) -> u64 {
    // Another one in each process: a visitor who could compute it would choose the mark of another visitor.
    static SECRET: LazyLock<foldhash::fast::RandomState> = LazyLock::new(Default::default);
    let mut hasher = SECRET.build_hasher();
    hasher.write(key);
    hasher.write_usize(Arc::as_ptr(zone).addr());
    for it in Trait::ALL {
        hasher.write_u32(left_out.value(it));
    }
    hasher.finish()
}

fn is_remembered(mark: u64, epoch: u64) -> bool {
    KNOWN.with_borrow(|known| {
        let place = known.get(mark as usize % REMEMBERED);
        place.is_some_and(|it| *it == (mark, epoch + 1))
    })
}

fn remember(mark: u64, epoch: u64) {
    KNOWN.with_borrow_mut(|known| {
        known.resize(REMEMBERED, (0, 0));
        if let Some(place) = known.get_mut(mark as usize % REMEMBERED) {
            // An empty place is of no epoch.
            *place = (mark, epoch + 1);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_holds_for_an_epoch_and_a_minute() {
        let now = 29_000_000 * 60_000;
        remember(7, in_minute(3, now));
        assert!(is_remembered(7, in_minute(3, now + 59_999)));
        assert!(!is_remembered(7, in_minute(3, now + 60_000)));
        assert!(!is_remembered(7, in_minute(4, now)));
        assert!(!is_remembered(8, in_minute(3, now)));
    }
}
