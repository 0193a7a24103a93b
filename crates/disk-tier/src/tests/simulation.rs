//! Thousands of histories of writes, purges, crashes, power cuts and damage, from a seed each. They are judged by two
//! promises: no bytes are read that were not written, and no page is used that is older than a purge that returned.
//!
//! The caller is simulated as well, as small as it can be: a database with a version for each page, fetches that take
//! some time, and the table of purges that the cache in memory has.

use super::*;
use crate::{StoppedPurge, TierEvent, append_while_stopped};

const PAGES: usize = 12;
const TAGS: usize = 3;
const STEPS: usize = 160;

/// The faults that a history may contain beside kills.
#[derive(Clone, Copy, Debug)]
struct SimulationRules {
    power_cuts: bool,
    /// Writes are torn at multiples of this when the process dies.
    tears_to: usize,
    /// Bits flip, files are cut and removed, while no process runs.
    damage: bool,
}

/// The sums over all seeds.
#[derive(Debug, Default)]
struct SimulationSums {
    hits: usize,
    outdated: usize,
    restarts: usize,
    void_starts: usize,
    confirmed: usize,
}

struct SimulatedFetch {
    page: usize,
    version: u64,
    stamp: u64,
}

struct CacheHistory {
    seed: u64,
    random: u64,
    rules: SimulationRules,
    disk: SimulatedDisk,
    tier: Option<(TierFolder, u64)>,
    clock: u64,
    /// Stamp and target, as memory has them.
    purges: Vec<(u64, String)>,
    versions: [u64; PAGES],
    /// Versions that no answer may be older than.
    promised: [u64; PAGES],
    fetches: Vec<SimulatedFetch>,
    tickets: Vec<(crate::PurgeTicket, Vec<(usize, u64)>)>,
    sums: SimulationSums,
}

impl CacheHistory {
    fn new(seed: u64, rules: SimulationRules) -> CacheHistory {
        CacheHistory {
            seed,
            random: seed,
            rules,
            disk: SimulatedDisk::new(),
            tier: None,
            clock: 0,
            purges: Vec::new(),
            versions: [1; PAGES],
            promised: [0; PAGES],
            fetches: Vec::new(),
            tickets: Vec::new(),
            sums: SimulationSums::default(),
        }
    }

    fn random(&mut self, below: usize) -> usize {
        self.random = stable_hash(&self.random.to_le_bytes());
        usize::try_from(self.random >> 16).unwrap() % below
    }

    fn run(mut self) -> SimulationSums {
        for _ in 0..STEPS {
            if self.tier.is_none() {
                self.start();
                continue;
            }
            match self.random(24) {
                0..=4 => self.fetch(),
                5..=9 => self.store(),
                10..=12 => self.change(),
                13..=15 => self.commit(),
                16..=21 => self.look(),
                22 => {
                    let operations = 1 + self.random(40) as u64;
                    self.disk.die_after(operations, self.rules.tears_to);
                }
                _ => self.end(),
            }
        }
        self.sums
    }

    fn start(&mut self) {
        let config = TierConfig {
            max_bytes: 1 << 20,
            ..config()
        };
        let opened = TierFolder::open_without_threads(folder(), config, self.disk.storage(), 16);
        // It may die while it opens.
        let Ok((tier, recovery)) = opened else {
            self.end();
            return;
        };
        self.clock = recovery.first_stamp();
        self.purges = recovery
            .purges
            .iter()
            .map(|purge| {
                (
                    purge.stamp,
                    String::from_utf8(purge.target.to_vec()).unwrap(),
                )
            })
            .collect();
        let damaged = recovery
            .events
            .iter()
            .any(|event| matches!(event, TierEvent::JournalDamaged { .. }));
        self.sums.void_starts += usize::from(damaged);
        assert!(
            !damaged || self.rules.damage || !self.rules.tears_to.is_multiple_of(64),
            "seed {}: {recovery:?}",
            self.seed
        );
        if self.random(4) > 0 {
            tier.load();
        }
        self.tier = Some((tier, recovery.floor));
        self.sums.restarts += 1;
    }

    /// The process ends, in one of several ways, and something may happen before the next one starts.
    fn end(&mut self) {
        let cuts_power = self.rules.power_cuts && self.random(2) == 0;
        let is_clean = self.random(4) == 0;
        if let Some((tier, _)) = self.tier.take().filter(|_| is_clean) {
            tier.finish_segment();
        }
        match cuts_power {
            true => self.disk.cut_power(self.random ^ self.seed),
            false => self.disk.kill(),
        }
        self.fetches.clear();
        self.tickets.clear();
        if self.rules.damage && self.random(3) == 0 {
            self.damage();
        }
        if self.random(4) == 0 {
            self.purge_while_stopped();
        }
    }

    fn damage(&mut self) {
        let files = self.disk.files();
        let at = self.random(files.len());
        let (path, mut bytes) = files[at].clone();
        match self.random(4) {
            0 => self.disk.remove_file(&path),
            1 => {
                bytes.truncate(self.random(bytes.len() + 1));
                self.disk.put_file(&path, bytes);
            }
            _ if bytes.is_empty() => {}
            _ => {
                // Mostly a place that has bytes.
                let end = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0) + 1;
                let byte = self.random(end);
                bytes[byte] ^= 1 << self.random(8);
                self.disk.put_file(&path, bytes);
            }
        }
    }

    fn purge_while_stopped(&mut self) {
        let page = self.random(PAGES);
        self.versions[page] += 1;
        let purge = StoppedPurge {
            mode: PurgeMode::Hard,
            target: format!("page{page}").into(),
        };
        let dies = self.random(4) == 0;
        if dies {
            let operations = 1 + self.random(12) as u64;
            self.disk.die_after(operations, self.rules.tears_to);
        }
        if append_while_stopped(folder(), &self.disk.storage(), &[purge]).is_ok() {
            self.promised[page] = self.versions[page];
        }
        match self.rules.power_cuts {
            true => self.disk.cut_power(self.random),
            false => self.disk.kill(),
        }
    }

    fn fetch(&mut self) {
        let page = self.random(PAGES);
        self.fetches.push(SimulatedFetch {
            page,
            version: self.versions[page],
            stamp: self.clock,
        });
    }

    fn store(&mut self) {
        if self.fetches.is_empty() {
            return;
        }
        let at = self.random(self.fetches.len());
        let SimulatedFetch {
            page,
            version,
            stamp,
        } = self.fetches.swap_remove(at);
        let Some((tier, _)) = &self.tier else {
            return;
        };
        let len = 500 + 7919 * usize::try_from(version).unwrap() % 40_000;
        let name = format!("{page}.{version}");
        tier.write(NewRecord {
            stamp,
            head: Bytes::from(name.clone().into_bytes()),
            ..record(tier, &format!("page{page}"), &body_of(&name, len))
        });
        tier.write_waiting();
    }

    /// A change in the database, and the purge for it.
    fn change(&mut self) {
        let page = self.random(PAGES);
        let of_tag = self.random(3) == 0;
        let tag = page % TAGS;
        let (target, pages): (_, Vec<_>) = match of_tag {
            true => (
                format!("tag{tag}"),
                (0..PAGES).filter(|page| page % TAGS == tag).collect(),
            ),
            false => (format!("page{page}"), vec![page]),
        };
        let Some((tier, _)) = &self.tier else {
            return;
        };
        self.clock += 1;
        for page in &pages {
            self.versions[*page] += 1;
        }
        let ticket = tier.append_purge(&purge(self.clock, &target));
        self.purges.push((self.clock, target));
        let versions = pages
            .into_iter()
            .map(|page| (page, self.versions[page]))
            .collect();
        self.tickets.push((ticket, versions));
    }

    /// Syncs the waiting purges, and lets their callers go on.
    fn commit(&mut self) {
        let Some((tier, _)) = &self.tier else {
            return;
        };
        tier.commit_purges();
        for (mut ticket, versions) in self.tickets.drain(..) {
            // If the process has died meanwhile, the caller gets no answer.
            if outcome(&mut ticket) != Some(Ok(())) {
                continue;
            }
            self.sums.confirmed += 1;
            for (page, version) in versions {
                self.promised[page] = self.promised[page].max(version);
            }
        }
    }

    fn look(&mut self) {
        let page = self.random(PAGES);
        let Some((tier, floor)) = &self.tier else {
            return;
        };
        let key = format!("page{page}");
        let places = tier.find(stable_hash(key.as_bytes()));
        for place in places.iter() {
            let Some(record) = tier.read_waiting(place, key.as_bytes()) else {
                continue;
            };
            let name = String::from_utf8(record.head.to_vec()).unwrap();
            let (of, version) = name.split_once('.').unwrap();
            let version: u64 = version.parse().unwrap();
            assert_eq!(of, page.to_string(), "seed {}", self.seed);
            let body = body(&record);
            assert!(
                body == body_of(&name, body.len()) && body.len() >= 500,
                "seed {}",
                self.seed
            );
            assert!(record.stamp >= *floor, "seed {}", self.seed);
            let tag = format!("tag{}", page % TAGS);
            let is_outdated = |(stamp, target): &(u64, String)| {
                record.stamp < *stamp && (*target == key || *target == tag)
            };
            if self.purges.iter().any(is_outdated) {
                self.sums.outdated += 1;
                tier.forget(place);
                continue;
            }
            assert!(
                version >= self.promised[page],
                "seed {}: page {page} of version {version} is older than a purge that returned",
                self.seed
            );
            self.sums.hits += 1;
        }
    }
}

/// `MAYFLY_TIER_SEEDS=10` runs ten times as many histories.
fn factor() -> u64 {
    let factor = std::env::var("MAYFLY_TIER_SEEDS").ok();
    factor.and_then(|factor| factor.parse().ok()).unwrap_or(1)
}

fn run(seeds: std::ops::Range<u64>, rules: SimulationRules) -> SimulationSums {
    let mut all = SimulationSums::default();
    for seed in seeds {
        let sums = CacheHistory::new(stable_hash(&seed.to_le_bytes()), rules).run();
        all.hits += sums.hits;
        all.outdated += sums.outdated;
        all.restarts += sums.restarts;
        all.void_starts += sums.void_starts;
        all.confirmed += sums.confirmed;
    }
    println!("{rules:?}: {all:?}");
    all
}

#[test]
fn histories_with_kills_break_no_promise_and_lose_little() {
    let sums = run(
        0..200 * factor(),
        SimulationRules {
            power_cuts: false,
            tears_to: 64,
            damage: false,
        },
    );
    assert_eq!(sums.void_starts, 0);
    assert!(
        sums.hits > 3 * 200 && sums.outdated > 50 && sums.confirmed > 500,
        "{sums:?}"
    );
}

#[test]
fn histories_with_power_cuts_break_no_promise() {
    let sums = run(
        1_000_000..1_000_000 + 200 * factor(),
        SimulationRules {
            power_cuts: true,
            tears_to: 512,
            damage: false,
        },
    );
    assert!(sums.hits > 200 && sums.confirmed > 500, "{sums:?}");
}

#[test]
fn histories_with_writes_torn_anywhere_break_no_promise() {
    let sums = run(
        2_000_000..2_000_000 + 100 * factor(),
        SimulationRules {
            power_cuts: true,
            tears_to: 1,
            damage: false,
        },
    );
    assert!(sums.hits > 100, "{sums:?}");
}

#[test]
fn histories_with_damaged_files_break_no_promise() {
    let sums = run(
        3_000_000..3_000_000 + 200 * factor(),
        SimulationRules {
            power_cuts: true,
            tears_to: 1,
            damage: true,
        },
    );
    assert!(sums.hits > 100 && sums.void_starts > 10, "{sums:?}");
}
