//! The savings of admission, beside an LRU of the disk's size that writes each miss: visits by Zipf's law to pages of
//! one size, a memory of a tenth of the disk above it, with and without a crawler whose pages are asked for once.
//!
//! `cargo test -p disk-tier --release --lib admission -- --nocapture` prints the figures.

use crate::admission::{MIN_USES, UseSketch};
use crate::hash::stable_hash;
use std::collections::{HashMap, VecDeque};

const PAGES: usize = 5_000;
const ON_DISK: usize = 1_000;
const IN_MEMORY: usize = ON_DISK / 10;
const SEGMENT: usize = ON_DISK / 32;
const VISITS: usize = 100_000;

/// The visits, which are the same for each cache.
struct PageVisits {
    shares: Vec<f64>,
    crawler_percent: u64,
}

impl PageVisits {
    fn new(exponent: f64, crawler_percent: u64) -> PageVisits {
        let mut sum = 0.0;
        let shares = (1..=PAGES)
            .map(|rank| {
                sum += (rank as f64).powf(-exponent);
                sum
            })
            .collect();
        PageVisits {
            shares,
            crawler_percent,
        }
    }

    fn iter(&self) -> impl Iterator<Item = u64> {
        (0..VISITS as u64).map(|at| {
            let random = stable_hash(&at.to_le_bytes());
            if random % 100 < self.crawler_percent {
                return PAGES as u64 + at;
            }
            let share = (random >> 11) as f64 / (1u64 << 53) as f64 * self.shares[PAGES - 1];
            self.shares.partition_point(|sum| *sum < share) as u64
        })
    }
}

/// Pages in the order of their last use.
struct LruPages {
    size: usize,
    used_at: HashMap<u64, u64>,
    order: VecDeque<(u64, u64)>,
    uses: u64,
}

impl LruPages {
    fn new(size: usize) -> LruPages {
        LruPages {
            size,
            used_at: HashMap::new(),
            order: VecDeque::new(),
            uses: 0,
        }
    }

    /// Whether the page was there; it is from now on.
    fn visit(&mut self, page: u64) -> bool {
        self.uses += 1;
        self.order.push_back((page, self.uses));
        let was_there = self.used_at.insert(page, self.uses).is_some();
        while self.used_at.len() > self.size {
            let Some((oldest, at)) = self.order.pop_front() else {
                break;
            };
            if self.used_at.get(&oldest) == Some(&at) {
                self.used_at.remove(&oldest);
            }
        }
        was_there
    }
}

/// The ring of segments, as the tier has it.
struct PageRing {
    segments: VecDeque<Vec<u64>>,
    /// Pages on the disk, and whether they were used since they were written.
    used: HashMap<u64, bool>,
    written: usize,
}

impl PageRing {
    fn is_full(&self) -> bool {
        self.segments.len() >= ON_DISK / SEGMENT
    }

    fn write(&mut self, page: u64) {
        if self
            .segments
            .back()
            .is_none_or(|segment| segment.len() >= SEGMENT)
        {
            self.segments.push_back(Vec::with_capacity(SEGMENT));
            self.drop_oldest();
        }
        self.used.insert(page, false);
        self.written += 1;
        self.segments.back_mut().unwrap().push(page);
    }

    fn drop_oldest(&mut self) {
        let oldest = match self.segments.len() > ON_DISK / SEGMENT {
            true => self.segments.pop_front().unwrap(),
            false => return,
        };
        for page in oldest {
            let is_used = self.used.remove(&page) == Some(true);
            let newest = self.segments.back_mut().unwrap();
            if is_used && newest.len() < SEGMENT / 2 {
                newest.push(page);
                self.used.insert(page, false);
                self.written += 1;
            }
        }
    }
}

struct CacheFigures {
    hit_percent: f64,
    written: usize,
}

fn figures(hits: usize, written: usize) -> CacheFigures {
    CacheFigures {
        hit_percent: 100.0 * hits as f64 / VISITS as f64,
        written,
    }
}

fn lru(visits: &PageVisits) -> CacheFigures {
    let mut pages = LruPages::new(ON_DISK);
    let hits = visits.iter().filter(|page| pages.visit(*page)).count();
    figures(hits, VISITS - hits)
}

fn tier(visits: &PageVisits, uses_min: u32) -> CacheFigures {
    let mut memory = LruPages::new(IN_MEMORY);
    let mut ring = PageRing {
        segments: VecDeque::new(),
        used: HashMap::new(),
        written: 0,
    };
    let sketch = UseSketch::for_records(ON_DISK as u64);
    let mut hits = 0;
    for page in visits.iter() {
        let uses = sketch.add(stable_hash(&page.to_le_bytes()));
        let is_in_memory = memory.visit(page);
        let is_earned = uses >= uses_min || !ring.is_full();
        let on_disk = ring.used.get_mut(&page);
        hits += usize::from(is_in_memory || on_disk.is_some());
        match on_disk {
            Some(used) => *used = true,
            None if is_earned => ring.write(page),
            None => {}
        }
    }
    figures(hits, ring.written)
}

/// Points of hit ratio above the LRU, and the share of its bytes.
fn compare(exponent: f64, crawler_percent: u64) -> (f64, f64) {
    let visits = PageVisits::new(exponent, crawler_percent);
    let lru = lru(&visits);
    let mut of_tier = (0.0, 0.0);
    for uses_min in [1, 2, 3, 4, 5, 6] {
        let tier = tier(&visits, uses_min);
        let share = tier.written as f64 / lru.written as f64;
        println!(
            "Zipf {exponent}, {crawler_percent} % crawler: LRU {:.1} %; use {uses_min}: {:.1} %, {:.0} % of its bytes",
            lru.hit_percent,
            tier.hit_percent,
            100.0 * share
        );
        if uses_min == MIN_USES {
            of_tier = (tier.hit_percent - lru.hit_percent, share);
        }
    }
    of_tier
}

#[test]
fn fourth_use_beats_an_lru_with_half_of_its_bytes() {
    for (exponent, share_max) in [(0.8, 0.6), (0.9, 0.5), (1.0, 0.5)] {
        let (points, share) = compare(exponent, 0);
        assert!(
            points >= 0.0 && share <= share_max,
            "Zipf {exponent}: {points:.1} points, {share:.2} of the bytes"
        );
    }
}

#[test]
fn crawler_costs_an_lru_four_points_that_admission_keeps() {
    for exponent in [0.8, 0.9, 1.0] {
        let (points, share) = compare(exponent, 20);
        assert!(
            points >= 4.0 && share <= 0.25,
            "Zipf {exponent}: {points:.1} points, {share:.2} of the bytes"
        );
    }
}

#[test]
fn sketch_counts_uses_and_tells_keys_apart() {
    let sketch = UseSketch::for_records(10_000);
    let key = |at: u64| stable_hash(&at.to_le_bytes());
    for uses in 1..=15 {
        assert_eq!(sketch.add(key(0)), uses);
    }
    assert_eq!(sketch.add(key(0)), 15);
    let wrong = (1..1000).filter(|at| sketch.add(key(*at)) != 1).count();
    assert!(wrong < 10, "{wrong} of 1000");
}

#[test]
fn sketch_forgets_what_is_not_used_any_more() {
    let sketch = UseSketch::for_records(1_000);
    let key = stable_hash(b"key");
    (0..15).for_each(|_| assert!(sketch.add(key) > 0));
    for at in 0..40_000u64 {
        sketch.add(stable_hash(&at.to_le_bytes()));
    }
    assert!(sketch.add(key) <= MIN_USES);
}
