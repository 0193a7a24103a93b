//! What a hit costs in the store alone: a million keys, Zipf-like and uniform, one and two threads.
//!
//! `cargo bench -p http-cache`. Each iteration hashes the key and looks it up, as the server does.

use bytes::Bytes;
use divan::counter::ItemsCount;
use http_cache::{
    Body, KeyRef, LifetimeSource, Lookup, Millis, NoFields, ResponseHead, Storable, StoredHead,
    StoredResponse, Zone, ZoneConfig,
};
use std::cell::Cell;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

const KEYS: u64 = 1_000_000;
const NOW: Millis = Millis(1_700_000_000_000);

static ZONE: LazyLock<Arc<Zone>> = LazyLock::new(|| {
    let config = ZoneConfig {
        memory_budget_bytes: 8 << 30,
        ..ZoneConfig::default()
    };
    let zone = Zone::new(config);
    let storable = Storable {
        lifetime: Duration::from_secs(60),
        source: LifetimeSource::Rule,
        age_at_receipt: Duration::ZERO,
        stale_while_revalidate: Duration::ZERO,
        stale_if_error: Duration::ZERO,
        must_revalidate: false,
        vary: None,
        share_only: None,
    };
    let reason = Bytes::new();
    let head = ResponseHead {
        status: 200,
        reason: &reason,
        fields: &[],
        declared_length: None,
    };
    let head = StoredHead::new(&head, &storable, NOW);
    let body = Body::pack(&[Bytes::from_static(&[b'x'; 64])]);
    for number in 0..KEYS {
        let response = StoredResponse {
            head: head.clone(),
            body: body.clone(),
            stamp: zone.stamp(),
            group: None,
            encoded_forms: Default::default(),
        };
        zone.insert(&KeyRef::new(&key(number)), response, NOW)
            .expect("fits");
    }
    zone
});

fn main() {
    LazyLock::force(&ZONE);
    divan::main();
}

/// `httpexample.org/page/0000000GET`.
fn key(number: u64) -> [u8; 31] {
    let mut key = *b"httpexample.org/page/0000000GET";
    let mut rest = number;
    for digit in key[21..28].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

thread_local! {
    static SEED: Cell<u64> = const { Cell::new(0x9e37_79b9_7f4a_7c15) };
}

fn random() -> u64 {
    SEED.with(|seed| {
        let mut x = seed.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        seed.set(x);
        x
    })
}

fn look(number: u64) -> bool {
    matches!(
        ZONE.lookup(&KeyRef::new(&key(number)), &NoFields, NOW),
        Lookup::Fresh(_)
    )
}

/// Every key as likely: a cache miss of the processor at each step.
#[divan::bench(threads = [1, 2], sample_count = 200, sample_size = 2000)]
fn uniform(bencher: divan::Bencher) {
    bencher
        .counter(ItemsCount::new(1u32))
        .bench(|| look(random() % KEYS));
}

/// Half of the requests for a thousand keys.
#[divan::bench(threads = [1, 2], sample_count = 200, sample_size = 2000)]
fn skewed(bencher: divan::Bencher) {
    bencher.counter(ItemsCount::new(1u32)).bench(|| {
        let r = random();
        look(if r & 1 == 0 {
            (r >> 1) % 1000
        } else {
            (r >> 1) % KEYS
        })
    });
}

/// One page, all at once: the front page under a flood.
#[divan::bench(threads = [1, 2], sample_count = 200, sample_size = 2000)]
fn one_key(bencher: divan::Bencher) {
    bencher.counter(ItemsCount::new(1u32)).bench(|| look(7));
}
