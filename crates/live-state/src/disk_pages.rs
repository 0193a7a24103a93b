//! The pages of a zone on disk, beside memory: its tier (`http_cache::Tier`), made of a folder of records
//! (`disk_tier`).
//!
//! ```text
//!   Waiting ── the folder is free ──► Open ── the server stops, or a reload gives the folder to another zone ──► Closed
//!      purges are noted                  purges are in the journal
//! ```
//!
//! A zone begins to wait when it is made, so that no purge is missed. Only one process, and one zone in it, has a
//! folder; another waits for it and works without meanwhile.

mod log_position;
mod opening;
mod records;
mod reports;
mod tickets;

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use disk_tier::{ReadNow, RecordPlace, TierFolder, TierStats, UseVerdict, stable_hash};
use http_cache::{
    KeptVerdict, KeyRef, Millis, PurgeMode, PurgeTarget, RequestFields, Stamp, StoredResponse,
    Tier, TierFuture, TierLook, TierPage, Zone,
};
use parking_lot::{Mutex, RwLock};
use site::{CacheDisk, CacheZone};
use tokio::sync::watch;

pub use log_position::{NodeBegin, applied_to_stored, note_position};
pub use opening::{close_all, is_any_waiting, open_all};
pub use reports::{DiskState, log_events};

use log_position::PurgesOfOthers;
use records::page_of;
pub(crate) use records::{new_record, variant_for, variant_of};
use tickets::Tickets;

/// Purges that are noted while a zone waits for its folder; more than these, and all that is in it is void.
const MAX_NOTED_PURGES: usize = 4096;

/// The longest time that a clean stop writes.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// The pages of a zone on disk.
pub struct DiskPages {
    terms: CacheDisk,
    zone_name: String,
    inactive: Duration,
    zone: RwLock<Weak<Zone>>,
    state: RwLock<FolderState>,
    /// Reads under way, so that one read answers all who wait for it.
    reads: Arc<Mutex<HashMap<RecordPlace, ReadUnderWay>>>,
}

/// The channel on which all that wait for a read get its result.
type ReadUnderWay = watch::Receiver<Option<Option<Arc<TierPage>>>>;

enum FolderState {
    Waiting(WaitingFolder),
    Open(Arc<OpenFolder>),
    /// Another zone has the folder.
    GivenUp,
    /// The server stops: purges that come now are not answered any more.
    Stopped,
}

/// A folder that is not there yet.
#[derive(Default)]
struct WaitingFolder {
    purges: Vec<(Vec<u8>, PurgeMode)>,
    /// More came than are noted, or it is not known which there were.
    is_overflown: bool,
    /// The reason why it is not open, once that was tried.
    why: Option<String>,
    /// The disk refuses a folder that may have pages, which the next start would show.
    hides_pages: bool,
}

/// A folder that is ours.
struct OpenFolder {
    tier: TierFolder,
    tickets: Tickets,
    /// The purges of other machines that the pages of earlier starts have seen.
    seen: PurgesOfOthers,
}

impl DiskPages {
    /// Waits for the folder of a zone.
    pub fn waiting(zone: &CacheZone, terms: &CacheDisk) -> Arc<DiskPages> {
        Arc::new(DiskPages {
            terms: terms.clone(),
            zone_name: zone.name.clone(),
            inactive: zone.inactive,
            zone: RwLock::default(),
            state: RwLock::new(FolderState::Waiting(WaitingFolder::default())),
            reads: Arc::default(),
        })
    }

    /// Returns the pages on disk of a zone that has any.
    pub fn of(zone: &Zone) -> Option<&DiskPages> {
        zone.tier()?.as_any().downcast_ref()
    }

    /// The zone whose pages these are.
    pub fn set_zone(&self, zone: &Arc<Zone>) {
        *self.zone.write() = Arc::downgrade(zone);
    }

    pub fn folder(&self) -> &Path {
        &self.terms.folder
    }

    /// Numbers of the folder, while it is open.
    pub fn stats(&self) -> Option<TierStats> {
        self.open().map(|open| open.tier.stats())
    }

    /// Whether a response is kept under this key.
    pub fn has(&self, key: &[u8]) -> bool {
        self.open()
            .is_some_and(|open| !open.tier.find(stable_hash(key)).is_empty())
    }

    fn open(&self) -> Option<Arc<OpenFolder>> {
        match &*self.state.read() {
            FolderState::Open(open) => Some(Arc::clone(open)),
            FolderState::Waiting(_) | FolderState::GivenUp | FolderState::Stopped => None,
        }
    }

    /// Looks for records of a key that a request may be shown, without waiting for a disk. `of_variant`: looks only for
    /// records that may be of this variant.
    fn look_in(
        &self,
        open: &Arc<OpenFolder>,
        key: &KeyRef<'_>,
        (request, mut of_variant): (&dyn RequestFields, Option<u64>),
        now: Millis,
    ) -> TierLook {
        let hash = stable_hash(key.bytes());
        let places = open.tier.find(hash);
        for place in places.iter() {
            if of_variant.is_some_and(|variant| !place.is_of_variant(variant)) {
                continue;
            }
            match open.tier.read_now(place, key.bytes()) {
                ReadNow::Missing => {}
                ReadNow::NotInMemory => return TierLook::Coming(self.read_soon(open, place, key)),
                ReadNow::Record(record) => {
                    match page_of(*record, now).map(|page| self.judge(page, key, request)) {
                        Some(JudgedPage::Shown(page)) => {
                            let variant = records::number_of(&page.record.head);
                            open.tier.note_use(hash, variant);
                            return TierLook::Here(Arc::new(page));
                        }
                        Some(JudgedPage::OtherVariant(wanted)) => of_variant = Some(wanted),
                        Some(JudgedPage::Purged) | None => open.tier.forget(place),
                    }
                }
            }
        }
        TierLook::Nothing
    }

    fn judge<Page: std::borrow::Borrow<TierPage>>(
        &self,
        page: Page,
        key: &KeyRef<'_>,
        request: &dyn RequestFields,
    ) -> JudgedPage<Page> {
        let kept = page.borrow();
        if self.is_purged(key, kept) {
            return JudgedPage::Purged;
        }
        match &kept.record.head.vary {
            Some(vary) if !vary.matches(request) => {
                JudgedPage::OtherVariant(records::variant_for(vary.spec(), request))
            }
            _ => JudgedPage::Shown(page),
        }
    }

    fn is_purged(&self, key: &KeyRef<'_>, page: &TierPage) -> bool {
        let facts = (page.record.head.status, page.stamp);
        let zone = self.zone.read().upgrade();
        zone.is_none_or(|zone| {
            zone.judge_kept(key, &page.record.names(), facts) == KeptVerdict::Purged
        })
    }

    /// Reads a record by a thread of the folder, once for all who wait, and no longer than the bound.
    fn read_soon(
        &self,
        open: &Arc<OpenFolder>,
        place: RecordPlace,
        key: &KeyRef<'_>,
    ) -> TierFuture<Option<Arc<TierPage>>> {
        let within = self.terms.timeout;
        let mut reads = self.reads.lock();
        let under_way = reads.get(&place).cloned();
        let mut under_way = under_way.unwrap_or_else(|| {
            let (ended, under_way) = watch::channel(None);
            reads.insert(place, under_way.clone());
            let (open, reads) = (Arc::clone(open), Arc::clone(&self.reads));
            let key = Bytes::copy_from_slice(key.bytes());
            // A task of its own: the first who asked may leave, and others wait for it.
            tokio::spawn(async move {
                let mut ticket = open.tier.read(place, key);
                let read = match tokio::time::timeout(within, &mut ticket).await {
                    Ok(read) => read,
                    Err(_) => {
                        ticket.give_up();
                        None
                    }
                };
                reads.lock().remove(&place);
                let page = read.and_then(|record| page_of(*record, Millis(clock::now())));
                ended.send_replace(Some(page.map(Arc::new)));
            });
            under_way
        });
        Box::pin(async move {
            let ended = under_way.wait_for(Option::is_some);
            // Later requests wait no longer than the first, whose bound ends the read.
            ended.await.ok()?.clone()?
        })
    }
}

/// The verdict on a page for a request.
enum JudgedPage<Page> {
    Shown(Page),
    /// The page is of another variant; this is the number of the wanted one.
    OtherVariant(u64),
    Purged,
}

impl Tier for DiskPages {
    fn write_down(&self, target: PurgeTarget<'_>, mode: PurgeMode, stamp: Stamp, _now: Millis) {
        let Some(written) = target.written() else {
            return;
        };
        if let FolderState::Open(open) = &*self.state.read() {
            return open.append(written, mode, stamp);
        }
        match &mut *self.state.write() {
            // It was opened meanwhile.
            FolderState::Open(open) => open.append(written, mode, stamp),
            FolderState::Waiting(waiting) if waiting.purges.len() < MAX_NOTED_PURGES => {
                waiting.purges.push((written, mode));
            }
            FolderState::Waiting(waiting) => waiting.is_overflown = true,
            FolderState::GivenUp | FolderState::Stopped => {}
        }
    }

    fn written_down(&self) -> Option<TierFuture<bool>> {
        match &*self.state.read() {
            FolderState::Open(open) => open.tickets.settled(),
            FolderState::Waiting(waiting) if waiting.hides_pages => {
                Some(Box::pin(std::future::ready(false)))
            }
            FolderState::Waiting(_) | FolderState::GivenUp => None,
            FolderState::Stopped => Some(Box::pin(std::future::pending())),
        }
    }

    fn look(&self, key: &KeyRef<'_>, request: &dyn RequestFields, now: Millis) -> TierLook {
        let Some(open) = self.open() else {
            return TierLook::Nothing;
        };
        self.look_in(&open, key, (request, None), now)
    }

    fn look_at(
        &self,
        page: Arc<TierPage>,
        key: &KeyRef<'_>,
        request: &dyn RequestFields,
        now: Millis,
    ) -> TierLook {
        match (self.judge(page, key, request), self.open()) {
            (JudgedPage::Shown(page), _) => TierLook::Here(page),
            (JudgedPage::OtherVariant(wanted), Some(open)) => {
                self.look_in(&open, key, (request, Some(wanted)), now)
            }
            (JudgedPage::OtherVariant(_) | JudgedPage::Purged, _) => TierLook::Nothing,
        }
    }

    fn note_stored(&self, key: &KeyRef<'_>, response: &Arc<StoredResponse>, now: Millis) {
        let Some(open) = self.open() else {
            return;
        };
        let (hash, variant) = (stable_hash(key.bytes()), variant_of(response));
        let older = open.tier.find(hash);
        let mut older = older.iter().filter(|place| place.is_of_variant(variant));
        let has_older = older.next().is_some();
        let is_earned = open.tier.note_use(hash, variant) == UseVerdict::Earned;
        if !((is_earned || has_older) && open.write(key.bytes(), response, None, now)) {
            // The page on disk is older than the one that is shown.
            open.forget(hash, variant);
        }
    }

    fn note_kept(
        &self,
        key: &KeyRef<'_>,
        response: &StoredResponse,
        made_of: (&[u8], Duration),
        now: Millis,
    ) {
        let Some(open) = self.open() else {
            return;
        };
        let (hash, variant) = (stable_hash(key.bytes()), variant_of(response));
        if open.tier.note_use(hash, variant) == UseVerdict::Earned {
            // It may be kept for its first minute, and longer when it is made again.
            let (made_of, kept_for) = made_of;
            let kept_for = kept_for.saturating_add(disk_tier::MIN_LIFETIME);
            open.write(key.bytes(), response, Some((made_of, kept_for)), now);
        }
    }

    fn note_wanted(&self, key: &[u8], response: &Arc<StoredResponse>, now: Millis) {
        let Some(open) = self.open() else {
            return;
        };
        let variant = variant_of(response);
        let hash = stable_hash(key);
        let places = open.tier.find(hash);
        match places.iter().any(|place| place.is_of_variant(variant)) {
            // So that it stays there when its turn to leave comes.
            true => {
                open.tier.note_use(hash, variant);
            }
            // One with a guard is written the next time that it is made.
            false if !open.write(key, response, None, now) => {
                open.tier.note_use(hash, variant);
            }
            false => {}
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl OpenFolder {
    fn append(&self, target: Vec<u8>, mode: PurgeMode, stamp: Stamp) {
        let purge = records::written_purge(target, mode, stamp, self.tier.now());
        self.tickets.add(|| self.tier.append_purge(&purge));
    }

    /// Hands a response over to be written, if it may be; whether it was taken.
    fn write(
        &self,
        key: &[u8],
        response: &StoredResponse,
        made_of: Option<(&[u8], Duration)>,
        now: Millis,
    ) -> bool {
        new_record(key, response, made_of, (self.tier.now(), now))
            .is_some_and(|record| self.tier.write(record) == disk_tier::WriteVerdict::Queued)
    }

    fn forget(&self, hash: u64, variant: u64) {
        let places = self.tier.find(hash);
        for place in places.iter().filter(|place| place.is_of_variant(variant)) {
            self.tier.forget(place);
        }
    }
}

impl fmt::Debug for DiskPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskPages")
            .field("folder", &self.terms.folder)
            .finish_non_exhaustive()
    }
}
