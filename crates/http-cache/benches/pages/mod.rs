//! A zone with a million small pages, for the benches.

use bytes::Bytes;
use http_cache::{
    Body, KeyRef, LifetimeSource, Millis, ResponseHead, Storable, StoredHead, StoredResponse, Zone,
    ZoneConfig,
};
use std::sync::Arc;
use std::time::Duration;

pub const KEYS: u64 = 1_000_000;
pub const NOW: Millis = Millis(1_700_000_000_000);

/// Made once: what every insert stores.
pub struct Pages {
    head: StoredHead,
    body: Body,
}

impl Pages {
    pub fn new() -> Pages {
        let storable = Storable {
            lifetime: Duration::from_secs(60),
            said: None,
            source: LifetimeSource::Rule,
            age_at_receipt: Duration::ZERO,
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: Duration::ZERO,
            must_revalidate: false,
            vary: None,
            share_only: None,
        };
        Pages {
            head: StoredHead::new(&ResponseHead::OK, &storable, NOW),
            body: Body::pack(&[Bytes::from_static(&[b'x'; 64])]),
        }
    }

    pub fn insert(&self, zone: &Zone, number: u64) {
        let response = StoredResponse::new(self.head.clone(), self.body.clone(), zone.stamp());
        let _ = zone
            .insert(&KeyRef::new(&key(number)), response, NOW)
            .expect("fits");
    }
}

/// A zone in which every key has its page.
pub fn filled_zone(shards: usize) -> Arc<Zone> {
    let zone = Zone::new(ZoneConfig {
        memory_budget_bytes: 8 << 30,
        shards,
        ..ZoneConfig::default()
    });
    let pages = Pages::new();
    (0..KEYS).for_each(|number| pages.insert(&zone, number));
    zone
}

/// `httpexample.org/page/0000000GET`.
pub fn key(number: u64) -> [u8; 31] {
    let mut key = *b"httpexample.org/page/0000000GET";
    let mut rest = number;
    for digit in key[21..28].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}
