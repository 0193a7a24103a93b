//! The cache zones of a configuration, and how much memory they may take if it sets no size.

use std::fmt;
use std::sync::{Arc, Weak};

use http_cache::{GroupLimits, Zone, ZoneConfig};
use parking_lot::Mutex;
use site::{CacheZone, Content, Site};

use crate::disk_pages::DiskPages;
use crate::evidence::SeenPages;
use crate::registry::Registry;
use server_base::memory_limit::MemoryLimit;

/// The bound of one visitor's private copies, with `cache_litespeed`: a page has several fragments.
const OF_VISITOR: GroupLimits = GroupLimits {
    max_responses: 64,
    max_bytes: 1 << 20,
};
/// Smallest share of memory a zone gets without `memory=`.
const MIN_ZONE_BYTES: u64 = 8 << 20;
/// Purges that a zone with pages on disk keeps one by one: 64 MB, grown into as they come. They last for an hour
/// at a thousand different ones a second.
const PURGES_REMEMBERED: usize = 4_000_000;
/// Stored responses looked at in one sweep of a zone: well under a millisecond.
pub const SWEEP_WORK: usize = 4096;

/// The zones of `site`.
pub fn build(
    site: &Site,
    previous: Option<&Registry<CacheZone, Arc<Zone>>>,
    keeps_on_disk: bool,
) -> Registry<CacheZone, Arc<Zone>> {
    let default_memory = DefaultMemory::of(site);
    let bytes_each = default_memory.map_or(MIN_ZONE_BYTES, |memory| memory.bytes_each);
    let zones = site.http.cache_zones.iter().map(|zone| {
        let make = || {
            let disk = zone.disk.as_ref().filter(|_| keeps_on_disk);
            let made = Zone::new(ZoneConfig {
                name: zone.name.clone(),
                memory_budget_bytes: zone.memory_bytes.unwrap_or(bytes_each),
                inactive: zone.inactive,
                group_limits: private_limits(site),
                purges_remembered: disk.map(|_| PURGES_REMEMBERED),
                ..ZoneConfig::default()
            });
            if let Some(disk) = disk {
                let pages = DiskPages::waiting(zone, disk);
                pages.set_zone(&made);
                made.set_tier(pages);
            }
            made
        };
        (zone.clone(), make)
    });
    Registry::renew(previous, zones)
}

/// All zones that a request may still be answered from, of whatever configuration.
#[derive(Default)]
pub struct AliveZones {
    zones: Mutex<Vec<Weak<Zone>>>,
    /// Observations of pages in them that may be shared.
    pub seen_pages: Arc<SeenPages>,
}

impl AliveZones {
    /// Adds those of another configuration, and forgets those that are gone.
    pub fn add(&self, zones: &[Arc<Zone>]) {
        let mut alive = self.zones.lock();
        alive.retain(|zone| zone.strong_count() > 0);
        for zone in zones {
            let zone = Arc::downgrade(zone);
            if !alive.iter().any(|known| known.ptr_eq(&zone)) {
                alive.push(zone);
            }
        }
    }

    /// Returns the zones that there are now.
    pub fn zones(&self) -> Vec<Arc<Zone>> {
        self.zones.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

/// The memory of the zones that name no size: together a quarter of the memory there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultMemory {
    pub zones: usize,
    pub bytes_each: u64,
    /// The limit of memory; `None` if the system does not show one.
    pub limit: Option<MemoryLimit>,
}

/// The memory that is assumed if the system does not show it.
const ASSUMED_BYTES: u64 = 1 << 30;

impl DefaultMemory {
    /// For the zones of `site`; `None` if each names its size.
    pub fn of(site: &Site) -> Option<DefaultMemory> {
        let zones = &site.http.cache_zones;
        let zones = zones
            .iter()
            .filter(|zone| zone.memory_bytes.is_none())
            .count();
        let share = u64::try_from(zones).unwrap_or(u64::MAX);
        let limit = MemoryLimit::observe();
        let available = limit.as_ref().map_or(ASSUMED_BYTES, |limit| limit.bytes);
        (zones > 0).then(|| DefaultMemory {
            zones,
            bytes_each: (available / 4 / share).max(MIN_ZONE_BYTES),
            limit,
        })
    }
}

/// The memory of the server beside its zones: itself, and connections.
const OWN_BYTES: u64 = 32 << 20;
/// This part of the memory is left to programs beside it, such as PHP.
const SHARE_OF_OTHERS: u64 = 8;

/// Zones that may take more memory than there is. The kernel would end the server before they are
/// full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcessiveMemory {
    pub zones_bytes: u64,
    /// The bytes that all of them together may take.
    pub fitting_bytes: u64,
    pub limit: MemoryLimit,
}

impl ExcessiveMemory {
    /// Checks the zones of `site`; `None` if they fit, or if the system does not show its memory.
    pub fn of(site: &Site) -> Option<ExcessiveMemory> {
        let each = DefaultMemory::of(site).map_or(0, |memory| memory.bytes_each);
        let zones = site.http.cache_zones.iter();
        let bytes = zones.map(|zone| zone.memory_bytes.unwrap_or(each));
        let zones_bytes = bytes.fold(0, u64::saturating_add);
        ExcessiveMemory::within(zones_bytes, MemoryLimit::observe()?)
    }

    fn within(zones_bytes: u64, limit: MemoryLimit) -> Option<ExcessiveMemory> {
        let of_others = OWN_BYTES.saturating_add(limit.bytes / SHARE_OF_OTHERS);
        let fitting_bytes = limit.bytes.saturating_sub(of_others);
        (zones_bytes > fitting_bytes).then_some(ExcessiveMemory {
            zones_bytes,
            fitting_bytes: fitting_bytes.max(MIN_ZONE_BYTES),
            limit,
        })
    }

    /// How to mend it.
    pub fn advice(&self) -> String {
        format!(
            "write \"memory=\" with at most {} MB for all zones together, or leave it out: a quarter is taken then",
            self.fitting_bytes >> 20
        )
    }
}

impl fmt::Display for ExcessiveMemory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "stored responses may take {} MB of {}, where the server would be killed before they do",
            self.zones_bytes >> 20,
            self.limit
        )
    }
}

/// The most generous of all `cache_private` rules.
fn private_limits(site: &Site) -> Option<GroupLimits> {
    let settings = site
        .http
        .servers
        .iter()
        .flat_map(|server| &server.locations);
    settings
        .filter_map(|location| match &location.settings.content {
            Content::Pass(pass) => pass.cache.as_ref(),
            _ => None,
        })
        .flat_map(|rules| {
            let of_session = rules.private.as_ref().map(|private| GroupLimits {
                max_responses: private.copies,
                max_bytes: private.size_bytes,
            });
            [of_session, rules.speaks_litespeed().then_some(OF_VISITOR)]
        })
        .flatten()
        .reduce(|one, other| GroupLimits {
            max_responses: one.max_responses.max(other.max_responses),
            max_bytes: one.max_bytes.max(other.max_bytes),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use server_base::memory_limit::LimitSource;

    #[test]
    fn zones_that_do_not_fit_beside_the_server_are_told() {
        for (zones, limit, fitting) in [
            (400, 60, Some(20)),
            (20, 60, None),
            (21, 60, Some(20)),
            (8, 30, Some(8)),
            (6000, 8000, None),
            (7000, 8000, Some(6968)),
            (0, 1, None),
        ] {
            let limit = MemoryLimit {
                bytes: limit << 20,
                source: LimitSource::Machine,
            };
            let excess = ExcessiveMemory::within(zones << 20, limit);
            let found = excess.map(|excess| excess.fitting_bytes >> 20);
            assert_eq!(found, fitting, "{zones}");
        }
    }
}
