//! Folders are opened once a configuration is made, before its first request, and closed when the server stops
//! or when another zone takes them over.

use std::path::Path;
use std::sync::Arc;

use disk_tier::{Recovery, Storage, SystemStorage, TierConfig, TierError, TierFolder, stable_hash};
use http_cache::{Millis, OwnedPurgeTarget, PurgeMode, Stamp, Zone};
use parking_lot::Mutex;
use site::{CacheDisk, LogLevel};

use super::log_position::{NodeBegin, PurgesOfOthers};
use super::records::{new_record, written_purge};
use super::reports::level_of;
use super::tickets::Tickets;
use super::{DiskPages, FolderState, OpenFolder, STOP_WITHIN, WaitingFolder};

/// The default `max_size=`: a share of the file system, and no more than this.
const DEFAULT_SHARE: u64 = 10;
const MAX_DEFAULT_BYTES: u64 = 8 << 30;
/// Less than this is not worth a folder.
const MIN_BYTES: u64 = 4 << 20;

/// The form of cache keys. A change of how a key is made of the same request must count this up: pages under other keys
/// are not read then.
const KEY_FORM: u32 = 1;

/// Responses that are looked at when the server stops.
const MAX_AT_STOP: usize = 1_000_000;

/// One folder is opened or closed at a time: a zone takes it over from another one.
static OPENING: Mutex<()> = Mutex::new(());

/// Opens the folders of all zones that wait for theirs. `others`: zones of earlier configurations, which give a folder
/// up that one of these wants. If a folder is opened after this node has begun (`node`), its pages are void if they may
/// lack purges of other machines. Blocks. Returns the lines for the log, for each.
pub fn open_all(
    zones: &[Arc<Zone>],
    others: &[Arc<Zone>],
    node: &NodeBegin,
) -> Vec<(LogLevel, String)> {
    let _one = OPENING.lock();
    let mut lines = Vec::new();
    for zone in zones {
        let Some(pages) = DiskPages::of(zone).filter(|pages| pages.is_waiting()) else {
            continue;
        };
        let is_former = |other: &&Arc<Zone>| !zones.iter().any(|zone| Arc::ptr_eq(zone, other));
        for other in others.iter().filter(is_former) {
            let is_same = |other: &&DiskPages| other.folder() == pages.folder();
            if let Some(other) = DiskPages::of(other).filter(is_same) {
                other.close();
            }
        }
        lines.extend(pages.try_open(zone, node));
    }
    lines
}

/// Whether one of the zones waits for its folder.
pub fn is_any_waiting(zones: &[Arc<Zone>]) -> bool {
    let mut pages = zones.iter().filter_map(|zone| DiskPages::of(zone));
    pages.any(DiskPages::is_waiting)
}

/// Writes pages that only memory has, as far as time allows, and closes all folders. Blocks.
pub fn close_all(zones: &[Arc<Zone>], now: Millis) -> Vec<String> {
    let _one = OPENING.lock();
    zones
        .iter()
        .filter_map(|zone| DiskPages::of(zone)?.close_with_all(zone, now))
        .collect()
}

impl DiskPages {
    fn is_waiting(&self) -> bool {
        matches!(&*self.state.read(), FolderState::Waiting(_))
    }

    /// Opens the folder, and gives its purges to the zone's clock. A reason for a failure is reported once.
    fn try_open(&self, zone: &Arc<Zone>, node: &NodeBegin) -> Vec<(LogLevel, String)> {
        let opened = open(&self.terms, self).and_then(|(tier, recovery)| {
            let tickets = Tickets::new().map_err(|error| TierError::Io {
                what: "start a thread for",
                path: self.terms.folder.clone(),
                error,
            })?;
            Ok((tier, tickets, recovery))
        });
        let (tier, tickets, recovery) = match opened {
            Ok(opened) => opened,
            Err(why) => return self.note_closed(&why),
        };
        // Without the lock: there may be millions, and who asks for a page meanwhile is not to wait.
        recall(zone, &recovery);
        let mut state = self.state.write();
        let FolderState::Waiting(waiting) = &mut *state else {
            return Vec::new();
        };
        let mut waiting = std::mem::take(waiting);
        let seen = PurgesOfOthers::of(&recovery);
        if let Some(begin) = node {
            waiting.is_overflown |= !seen.reach(begin.as_ref());
        }
        let opened = Arc::new(OpenFolder {
            tier,
            tickets,
            seen,
        });
        let was_refused = waiting.why.is_some();
        opened.append_noted(waiting, zone);
        *state = FolderState::Open(Arc::clone(&opened));
        drop(state);
        let mut lines = self.lines_of(&recovery);
        if was_refused {
            let line = self.line(format_args!("pages are kept on disk from now on"));
            lines.push((LogLevel::Notice, line));
        }
        lines
    }

    /// Notes why the folder cannot be opened.
    fn note_closed(&self, why: &TierError) -> Vec<(LogLevel, String)> {
        // Without the lock: it is a question to the disk.
        let hides_pages = matches!(why, TierError::Io { .. }) && self.terms.folder.exists();
        let FolderState::Waiting(waiting) = &mut *self.state.write() else {
            return Vec::new();
        };
        waiting.hides_pages = hides_pages;
        let why = why.to_string();
        if waiting.why.as_ref() == Some(&why) {
            return Vec::new();
        }
        let line = self.line(format_args!("nothing is kept on disk: {why}"));
        waiting.why = Some(why);
        vec![(LogLevel::Warn, line)]
    }

    fn lines_of(&self, recovery: &Recovery) -> Vec<(LogLevel, String)> {
        let events = recovery.events.iter();
        let line = |event| (level_of(event), self.line(format_args!("{event}")));
        events.map(line).collect()
    }

    /// A line about this zone's folder.
    pub(super) fn line(&self, message: std::fmt::Arguments<'_>) -> String {
        let folder = self.terms.folder.display();
        format!("cache \"{}\", {folder}: {message}", self.zone_name)
    }

    /// Gives the folder up. No page is kept there from now on.
    fn close(&self) {
        let state = std::mem::replace(&mut *self.state.write(), FolderState::GivenUp);
        if let FolderState::Open(open) = state {
            open.tier.close();
        }
    }

    fn close_with_all(&self, zone: &Arc<Zone>, now: Millis) -> Option<String> {
        let open = self.open()?;
        let clocks = open.tier.now();
        let wanted = zone.most_wanted_stored(now, MAX_AT_STOP);
        let mut records = wanted
            .iter()
            .filter(|(key, response)| !open.has(key, response))
            .filter_map(|(key, response)| new_record(key, response, None, (clocks, now)));
        let report = open.tier.flush_for_stop(&mut records, STOP_WITHIN);
        // Purges are written down until here.
        *self.state.write() = FolderState::Stopped;
        open.tier.close();
        Some(self.line(format_args!(
            "{} responses that only memory had were written, {} were left",
            report.written, report.left
        )))
    }
}

impl OpenFolder {
    /// Writes down the purges made while the folder was not open.
    fn append_noted(&self, waiting: WaitingFolder, zone: &Zone) {
        let everything = http_cache::PurgeTarget::Everything.written();
        let mut purges = waiting.purges;
        if waiting.is_overflown {
            purges = everything
                .into_iter()
                .map(|target| (target, PurgeMode::Hard))
                .collect();
        }
        for (target, mode) in purges {
            let read = read_target(&target);
            let stamp = zone.recall_one(&read, mode);
            let purge = written_purge(target, mode, stamp, self.tier.now());
            self.tickets.add(|| self.tier.append_purge(&purge));
        }
    }

    fn has(&self, key: &[u8], response: &http_cache::StoredResponse) -> bool {
        let variant = super::records::variant_of(response);
        let places = self.tier.find(stable_hash(key));
        places.iter().any(|place| place.is_of_variant(variant))
    }
}

fn recall(zone: &Zone, recovery: &Recovery) {
    let purges = recovery.purges.iter().map(|purge| {
        let mode = match purge.mode {
            disk_tier::PurgeMode::Soft => PurgeMode::Soft,
            disk_tier::PurgeMode::Hard => PurgeMode::Hard,
        };
        (
            read_target(&purge.target),
            mode,
            Stamp::from_number(purge.stamp),
        )
    });
    zone.recall(recovery.start, Stamp::from_number(recovery.floor), purges);
}

fn read_target(bytes: &[u8]) -> OwnedPurgeTarget {
    OwnedPurgeTarget::of(bytes, &cache_decision::pattern::read_written)
}

fn open(terms: &CacheDisk, pages: &DiskPages) -> Result<(TierFolder, Recovery), TierError> {
    let storage: Arc<dyn Storage> = SystemStorage::new();
    let max_bytes = terms
        .max_bytes
        .unwrap_or_else(|| default_bytes(&terms.folder));
    let config = TierConfig {
        min_free_bytes: terms.min_free_bytes,
        inactive: pages.inactive,
        zone: stable_hash(pages.zone_name.as_bytes()),
        fingerprint: u64::from(KEY_FORM),
        ..TierConfig::new(max_bytes.max(MIN_BYTES))
    };
    TierFolder::open(&terms.folder, config, storage)
}

/// A share of the file system that the folder is on, or will be.
fn default_bytes(folder: &Path) -> u64 {
    let there = folder.ancestors().find(|path| path.exists());
    let size = there.and_then(|path| rustix::fs::statvfs(path).ok());
    let size = size.map_or(0, |of| of.f_blocks.saturating_mul(of.f_frsize));
    (size / DEFAULT_SHARE).min(MAX_DEFAULT_BYTES)
}
