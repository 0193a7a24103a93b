//! Pages that nodes share through the engine (`cache_nodes_pages`). A page from there is a fetch that began at a
//! position of the log. This node may use it if no purge after that position names it: for each zone it is noted which
//! reading of the zone's purge clock belongs to which position.
//!
//! ```text
//! page, position 17 ─► the last note up to 17 ─► a stamp of the zone ─► Zone::promote
//! ```
//!
//! An earlier note does no harm: the page counts as older than it is.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use cache_bus::{AppliedPurges, Epoch, FetchTurn, GivenPage, OpenedPage, SharedPages, TakenPage};
use http_cache::record::{self, KeptBytes, PageRecord};
use http_cache::{
    CacheKey, Millis, Promotion, RequestFields, Stamp, StoredResponse, VarySpec, Zone,
};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::disk_pages::{variant_for, variant_of};
use crate::nodes::Nodes;

/// A page is shared that lives at least as long.
pub const MIN_LIFETIME: Duration = Duration::from_secs(60);
/// Notes of a zone. If there are more, every second one goes.
const MAX_NOTES: usize = 1024;
/// How long a fetch of another node is waited for at most.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// How often it is looked whether the other node has the page: the first pause, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(3), Duration::from_millis(50));

/// Readings of purge clocks, and the positions of a log to which they belong.
#[derive(Default)]
pub struct ZonePositions(Mutex<PositionNotes>);

#[derive(Default)]
struct PositionNotes {
    epoch: Option<Epoch>,
    zones: HashMap<usize, ZoneNotes>,
}

struct ZoneNotes {
    zone: Weak<Zone>,
    /// In the order of both.
    notes: VecDeque<(u64, Stamp)>,
}

impl ZonePositions {
    /// All purges up to `position` hold in these zones.
    pub fn advance(&self, epoch: &Epoch, position: u64, zones: &[Arc<Zone>]) {
        let mut of = self.0.lock();
        if of.epoch.as_ref() != Some(epoch) {
            of.epoch = Some(epoch.clone());
            of.zones.clear();
        }
        of.zones.retain(|_, zone| zone.zone.strong_count() > 0);
        for zone in zones {
            let noted = of.zones.entry(Arc::as_ptr(zone) as usize);
            let noted = noted.or_insert_with(|| ZoneNotes {
                zone: Arc::downgrade(zone),
                notes: VecDeque::new(),
            });
            noted.add(position, zone.stamp());
        }
    }

    /// The stamp of a fetch that began at this position; `None`: purges since then are not known.
    fn stamp(&self, zone: &Arc<Zone>, epoch: &Epoch, position: u64) -> Option<Stamp> {
        let of = self.0.lock();
        of.epoch.as_ref().filter(|noted| *noted == epoch)?;
        let noted = of.zones.get(&(Arc::as_ptr(zone) as usize))?;
        noted.stamp(position)
    }
}

impl ZoneNotes {
    fn add(&mut self, position: u64, stamp: Stamp) {
        if self.notes.back().is_some_and(|last| last.0 >= position) {
            // A note before it is there, and an earlier reading does no harm.
            return;
        }
        if self.notes.len() == MAX_NOTES {
            let mut at = 0;
            self.notes.retain(|_| {
                at += 1;
                at % 2 == 1
            });
        }
        self.notes.push_back((position, stamp));
    }

    fn stamp(&self, position: u64) -> Option<Stamp> {
        let later = self.notes.partition_point(|note| note.0 <= position);
        Some(self.notes.get(later.checked_sub(1)?)?.1)
    }
}

/// A page that is asked for.
pub struct WantedPage {
    pub zone: Arc<Zone>,
    pub key: CacheKey,
    /// The number of the variant that the request selects; 0 if the page is not known to vary.
    pub variant: u64,
    /// How long other nodes wait for this one's fetch.
    pub lock: Duration,
}

impl WantedPage {
    /// `varies_on`: the fields that responses for the key are known to vary on.
    pub fn variant_of(varies_on: Option<&VarySpec>, request: &dyn RequestFields) -> u64 {
        varies_on.map_or(0, |spec| variant_for(spec, request))
    }
}

/// The state of a shared page.
pub enum SharedPage {
    /// Another node has fetched it: see [`PageSharing::promote`].
    Page(OpenedPage),
    /// It is to be fetched, whether or not others can get it then.
    Fetch,
}

/// A fetch whose page may come from another node, or go to others. Dropped, it lets another node fetch.
pub struct PageSharing {
    nodes: Arc<Nodes>,
    wanted: WantedPage,
    name: String,
    applied: AppliedPurges<Epoch>,
    turn: Option<(FetchTurn, Instant)>,
    /// The mark of the page that was taken.
    taken: Vec<u8>,
}

impl PageSharing {
    /// `None`: this node shares no pages, or is no member for the moment.
    pub fn begin(nodes: &Arc<Nodes>, wanted: WantedPage) -> Option<PageSharing> {
        // Read before the fetch begins: its page has seen the purges up to there.
        let (pages, applied) = (nodes.pages()?, nodes.applied()?);
        let name = name(pages, &wanted, wanted.variant);
        Some(PageSharing {
            nodes: nodes.clone(),
            name,
            wanted,
            applied,
            turn: None,
            taken: Vec::new(),
        })
    }

    /// Asks the engine for the page, and waits for a fetch of another node. Asked again, it is another page.
    pub async fn take(&mut self) -> SharedPage {
        let Some(pages) = self.nodes.pages() else {
            return SharedPage::Fetch;
        };
        let until = Instant::now() + MAX_WAIT;
        let mut pause = PAUSES.0;
        loop {
            let terms = (self.wanted.lock, &self.taken[..]);
            let taken = pages.take(&self.name, &self.applied.epoch, terms).await;
            match taken {
                TakenPage::Page(page) => {
                    self.taken.clone_from(&page.mark);
                    return SharedPage::Page(page);
                }
                TakenPage::Fetch(turn) => {
                    self.turn = Some((turn, Instant::now()));
                    break;
                }
                TakenPage::Wait(_) if Instant::now() < until => {
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
                TakenPage::Wait(_) | TakenPage::Unknown => break,
            }
        }
        // The fetch begins now.
        if let Some(applied) = self.nodes.applied() {
            self.applied = applied;
        }
        SharedPage::Fetch
    }

    /// Stores a page that another node has fetched, if this node knows that no purge has hit it. `request` selects
    /// its variant.
    pub fn promote(
        &self,
        page: &OpenedPage,
        request: &dyn RequestFields,
        now: Millis,
    ) -> Option<Arc<StoredResponse>> {
        // Read after the page came: purges of other nodes are known until now.
        if !self.nodes.may_use_stored() {
            return None;
        }
        let (zone, epoch) = (&self.wanted.zone, &self.applied.epoch);
        let stamp = self.nodes.positions().stamp(zone, epoch, page.position)?;
        let (record, body) = page_of(page, now)?;
        let matches = |vary: &http_cache::VaryKey| vary.matches(request);
        if !record.head.vary.as_deref().is_none_or(matches) || !record.head.is_fresh(now) {
            return None;
        }
        let response = record.with_body(body, stamp);
        let key = self.wanted.key.as_ref();
        match zone.promote(&key, response, &record.names(), now) {
            Promotion::Stored(stored) => stored.head.is_fresh(now).then_some(stored),
            Promotion::Newer | Promotion::Purged | Promotion::NoRoom => None,
        }
    }

    /// Gives the fetched response to the other nodes, if it lives long and was asked for twice.
    pub async fn give(mut self, stored: &Arc<StoredResponse>, has_followers: bool, now: Millis) {
        let (Some(pages), Some((turn, taken_at))) = (self.nodes.pages(), self.turn.take()) else {
            return;
        };
        let lifetime = stored.head.fresh_for(now);
        let is_wanted = turn.was_asked || has_followers;
        let is_shared = lifetime >= MIN_LIFETIME && is_wanted;
        if !is_shared || !record::may_be_written(self.wanted.key.bytes(), stored, None) {
            return pages.give_up(&self.name, &turn).await;
        }
        let head = record::write(stored, None);
        let mut bytes = (head.len() as u64).to_be_bytes().to_vec();
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(&stored.body.chunks().concat());
        let since = taken_at.elapsed();
        let held = now.since(stored.head.stored_at);
        let received = since.saturating_sub(held).as_millis();
        let page = GivenPage {
            epoch: &self.applied.epoch,
            position: self.applied.position,
            received: turn.engine_time + u64::try_from(received).unwrap_or_default(),
            lifetime,
            bytes: &bytes,
        };
        let of_page = name(pages, &self.wanted, variant_of(stored));
        pages.give(&of_page, &turn, &page).await;
        if of_page != self.name {
            pages.give_up(&self.name, &turn).await;
        }
    }
}

impl Drop for PageSharing {
    fn drop(&mut self) {
        let Some((turn, _)) = self.turn.take() else {
            return;
        };
        let (nodes, name) = (self.nodes.clone(), std::mem::take(&mut self.name));
        // Without a runtime the server stops, and the deadline ends the turn.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Some(pages) = nodes.pages() {
                    pages.give_up(&name, &turn).await;
                }
            });
        }
    }
}

fn name(pages: &SharedPages, wanted: &WantedPage, variant: u64) -> String {
    let zone = wanted.zone.config().name.as_bytes();
    pages.name(&[zone, wanted.key.bytes(), &variant.to_be_bytes()])
}

fn page_of(page: &OpenedPage, now: Millis) -> Option<(PageRecord, Bytes)> {
    let (len, rest) = page.bytes.split_first_chunk::<8>()?;
    let len = usize::try_from(u64::from_be_bytes(*len)).ok()?;
    let (head, body) = rest.split_at_checked(len)?;
    let kept = KeptBytes {
        head: &Bytes::copy_from_slice(head),
        body_bytes: body.len() as u64,
        age: Some(page.age),
    };
    Some((record::read(kept, now)?, Bytes::copy_from_slice(body)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_cache::{PurgeMode, PurgeTarget, ZoneConfig};

    fn purge(zone: &Zone) {
        zone.purge_here(PurgeTarget::Tag(b"t"), PurgeMode::Hard, Millis(1));
    }

    #[test]
    fn a_position_has_the_stamp_of_the_last_note_before_it() {
        let zone = Zone::new(ZoneConfig::default());
        let (positions, epoch): (ZonePositions, Epoch) = (ZonePositions::default(), "e".into());
        let zones = [zone.clone()];
        let stamp = |at| positions.stamp(&zone, &epoch, at).map(Stamp::number);
        assert_eq!(stamp(5), None);
        positions.advance(&epoch, 5, &zones);
        purge(&zone);
        positions.advance(&epoch, 7, &zones);
        purge(&zone);
        positions.advance(&epoch, 7, &zones);
        assert_eq!(
            [4, 5, 6, 7, 99].map(stamp),
            [None, Some(0), Some(0), Some(1), Some(1)]
        );
        let other = Zone::new(ZoneConfig::default());
        assert_eq!(positions.stamp(&other, &epoch, 7), None);
        assert_eq!(positions.stamp(&zone, &"f".into(), 7), None);
        positions.advance(&"f".into(), 0, &zones);
        assert_eq!(stamp(7), None, "another log");
    }

    #[test]
    fn notes_are_bounded_and_old_ones_become_coarse() {
        let zone = Zone::new(ZoneConfig::default());
        let (positions, epoch): (ZonePositions, Epoch) = (ZonePositions::default(), "e".into());
        for position in 0..5000 {
            positions.advance(&epoch, position, std::slice::from_ref(&zone));
            purge(&zone);
        }
        for position in 0..5000 {
            let stamp = positions.stamp(&zone, &epoch, position).expect("known");
            assert!(stamp.number() <= position, "never later than it was");
        }
        let notes = positions.0.lock();
        let notes = notes.zones.values().next().expect("one zone").notes.len();
        assert!(notes <= MAX_NOTES, "{notes}");
    }
}
