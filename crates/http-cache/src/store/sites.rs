//! The fields on which the pages of each site vary, learned from pages that were stored: a page that is asked for the
//! first time is then made for the preferences of its first visitor already.
//!
//! Bounded in sites and in names. What no page has named for a long time is forgotten, so that one odd
//! page does not make variants of all others for ever.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::key::KeyRef;
use crate::vary::VarySpec;

/// More sites than a server with one zone has. The one that was not asked for the longest gives way: visitors
/// who invent hosts do not drive out a site that others visit.
const MAX_SITES: usize = 256;

/// Applications name one or two; the values of all of them tell variants apart.
const MAX_NAMES: usize = 8;

/// Longer than the name of each field that is sent to applications.
const MAX_NAME_BYTES: usize = 64;

/// A name is forgotten when this many pages in a row have not named it. Each page that varies names
/// it, so that even a site with few such pages is remembered.
const FORGOTTEN_AFTER_PAGES: u32 = 1000;

/// The sites of a zone.
#[derive(Default)]
pub(super) struct Sites(Mutex<SiteTable>);

#[derive(Default)]
struct SiteTable {
    /// By the hash of the site's key.
    sites: HashMap<u64, SiteVariance>,
    /// Counts lookups and pages.
    clock: u64,
}

/// The fields on which the pages of a site vary.
struct SiteVariance {
    spec: Arc<VarySpec>,
    /// The names of the spec, and how many pages in a row have not named each.
    unnamed: Vec<(String, u32)>,
    /// The clock of the table.
    last_used: u64,
}

impl Sites {
    /// A page of a site was stored; it varies on `named` (lower case).
    pub(super) fn note_page(&self, site: &KeyRef<'_>, named: &[String]) {
        let mut table = self.0.lock();
        table.clock += 1;
        let now = table.clock;
        let Some(known) = table.sites.get_mut(&site.hash()) else {
            let mut unnamed = Vec::new();
            add_names(&mut unnamed, named);
            if !unnamed.is_empty() {
                table.make_room();
                let variance = SiteVariance::new(unnamed, now);
                table.sites.insert(site.hash(), variance);
            }
            return;
        };
        let mut unnamed = known.unnamed.clone();
        for (name, pages) in &mut unnamed {
            *pages = match named.contains(name) {
                true => 0,
                false => *pages + 1,
            };
        }
        unnamed.retain(|(_, pages)| *pages < FORGOTTEN_AFTER_PAGES);
        add_names(&mut unnamed, named);
        if unnamed.is_empty() {
            table.sites.remove(&site.hash());
        } else if unnamed.iter().map(|(name, _)| name).eq(known.spec.names()) {
            known.unnamed = unnamed;
        } else {
            *known = SiteVariance::new(unnamed, now);
        }
    }

    /// Returns the fields on which the pages of a site are known to vary.
    pub(super) fn varies_on(&self, site: &KeyRef<'_>) -> Option<Arc<VarySpec>> {
        let mut table = self.0.lock();
        table.clock += 1;
        let now = table.clock;
        let known = table.sites.get_mut(&site.hash())?;
        known.last_used = now;
        Some(Arc::clone(&known.spec))
    }
}

impl SiteTable {
    fn make_room(&mut self) {
        if self.sites.len() < MAX_SITES {
            return;
        }
        let oldest = self.sites.iter().min_by_key(|(_, site)| site.last_used);
        if let Some(oldest) = oldest.map(|(site, _)| *site) {
            self.sites.remove(&oldest);
        }
    }
}

impl SiteVariance {
    fn new(mut unnamed: Vec<(String, u32)>, now: u64) -> SiteVariance {
        unnamed.sort_unstable();
        let names = unnamed.iter().map(|(name, _)| name.clone());
        SiteVariance {
            spec: Arc::new(VarySpec::of_names(names.collect())),
            unnamed,
            last_used: now,
        }
    }
}

/// Adds names that are not there yet, as far as there is room.
fn add_names(unnamed: &mut Vec<(String, u32)>, named: &[String]) {
    for name in named {
        let is_known = unnamed.iter().any(|(known, _)| known == name);
        if !is_known && unnamed.len() < MAX_NAMES && name.len() <= MAX_NAME_BYTES {
            unnamed.push((name.clone(), 0));
        }
    }
    unnamed.sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::CacheKey;

    fn site(name: impl ToString) -> CacheKey {
        CacheKey::new(name.to_string().into_bytes())
    }

    fn note(sites: &Sites, of: &CacheKey, named: &[&str]) {
        let named: Vec<String> = named.iter().map(ToString::to_string).collect();
        sites.note_page(&of.as_ref(), &named);
    }

    fn known(sites: &Sites, of: &CacheKey) -> Vec<String> {
        let spec = sites.varies_on(&of.as_ref());
        spec.map_or(Vec::new(), |spec| spec.names().to_vec())
    }

    #[test]
    fn what_one_page_names_is_known_of_its_site_alone() {
        let (sites, here, there) = (Sites::default(), site("here"), site("there"));
        note(&sites, &here, &[]);
        assert!(known(&sites, &here).is_empty());
        note(&sites, &here, &["origin"]);
        note(&sites, &here, &["accept-language", "origin"]);
        note(&sites, &here, &[]);
        assert_eq!(known(&sites, &here), ["accept-language", "origin"]);
        assert!(known(&sites, &there).is_empty());
    }

    #[test]
    fn what_is_not_named_any_more_is_forgotten() {
        let (sites, here) = (Sites::default(), site("here"));
        note(&sites, &here, &["accept", "accept-language"]);
        for _ in 1..FORGOTTEN_AFTER_PAGES {
            note(&sites, &here, &["accept-language"]);
        }
        assert_eq!(known(&sites, &here), ["accept", "accept-language"]);
        note(&sites, &here, &["accept-language"]);
        assert_eq!(known(&sites, &here), ["accept-language"]);
        for _ in 0..FORGOTTEN_AFTER_PAGES {
            note(&sites, &here, &[]);
        }
        assert!(known(&sites, &here).is_empty());
    }

    #[test]
    fn invented_hosts_do_not_drive_out_a_site_that_is_visited() {
        let (sites, here) = (Sites::default(), site("here"));
        note(&sites, &here, &["accept-language"]);
        for number in 0..2 * MAX_SITES {
            note(&sites, &site(number), &["accept-language"]);
            assert_eq!(known(&sites, &here), ["accept-language"], "{number}");
        }
        assert_eq!(sites.0.lock().sites.len(), MAX_SITES);
    }

    #[test]
    fn the_site_that_nobody_visited_for_the_longest_time_gives_way() {
        let sites = Sites::default();
        (0..MAX_SITES)
            .rev()
            .for_each(|number| note(&sites, &site(number), &["origin"]));
        // Visits count, not when the site came.
        (0..MAX_SITES).for_each(|number| drop(known(&sites, &site(number))));
        note(&sites, &site("new"), &["origin"]);
        let is_gone = |number: &usize| known(&sites, &site(number)).is_empty();
        assert_eq!((0..MAX_SITES).filter(is_gone).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn names_are_bounded_in_number_and_length() {
        let (sites, here) = (Sites::default(), site("here"));
        note(&sites, &here, &[&"x".repeat(MAX_NAME_BYTES + 1)]);
        assert!(known(&sites, &here).is_empty());
        for number in 0..2 * MAX_NAMES {
            note(&sites, &here, &[&format!("sec-ch-{number}")]);
        }
        assert_eq!(known(&sites, &here).len(), MAX_NAMES);
    }
}
