//! The fields that the pages of a site vary on, where the server writes the request itself (`cache_shared`):
//! learned from pages, so that the first visitor of a new address is served in their own language, too.
//!
//! A visitor chooses addresses, and so which responses there are. Pages alone teach, and only those that are
//! stored: no error, no redirect, no picture, no data of an interface. Learned fields are sent and tell variants
//! apart; a page that depends on none of them then has more copies, and none is shown to the wrong visitor.

use http_cache::{CacheKey, Zone, is_html};
use shared_request::varied::may_be_sent;
use std::sync::Arc;

use super::store_plan::StorePlan;
use crate::exchange::request::Request;
use upstream_fetch::FetchedResponse;

/// Stands for the site of a request: its host on one of the servers.
pub fn site_key(request: &Request) -> CacheKey {
    let server = request.route.server().0.to_be_bytes();
    CacheKey::new([&server[..], request.received.host()].concat())
}

/// Returns the fields that pages of the request's site are known to vary on.
pub fn known(zone: &Zone, request: &Request) -> Option<Arc<http_cache::VarySpec>> {
    zone.site_varies_on(&site_key(request).as_ref())
}

/// Learns of a response that is about to be stored.
pub fn learn(store: &StorePlan, fetched: &FetchedResponse) {
    let Some(site) = &store.sent.site else {
        return;
    };
    let values = |wanted: &'static [u8]| {
        let fields = fetched.fields.iter();
        fields.filter_map(move |(name, value)| name.eq_ignore_ascii_case(wanted).then_some(value))
    };
    let is_page = fetched.status == 200 && values(b"content-type").any(|value| is_html(value));
    if !is_page {
        return;
    }
    let names = values(b"vary").flat_map(|value| value.split(|&byte| byte == b','));
    let names = names.map(|name| String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase());
    let names: Vec<String> = names.filter(|name| may_be_sent(name)).collect();
    store.zone.note_page_of_site(&site.as_ref(), &names);
}
