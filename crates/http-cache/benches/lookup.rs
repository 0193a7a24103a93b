//! The cost of a hit in the store alone: a million keys, Zipf-like and uniform, one and two threads.
//!
//! `cargo bench -p http-cache`. Each iteration hashes the key and looks it up, as the server does.

mod pages;

use divan::counter::ItemsCount;
use http_cache::{FoundResponse, KeyRef, NoFields, Zone, ZoneConfig};
use pages::{KEYS, NOW, key};
use std::cell::Cell;
use std::sync::{Arc, LazyLock};

static ZONE: LazyLock<Arc<Zone>> =
    LazyLock::new(|| pages::filled_zone(ZoneConfig::default().shards));

fn main() {
    LazyLock::force(&ZONE);
    divan::main();
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
        ZONE.find(&KeyRef::new(&key(number)), &NoFields, NOW),
        FoundResponse::Fresh(_)
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
