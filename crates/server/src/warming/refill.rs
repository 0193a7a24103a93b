//! `cache_refill`: after a purge, the most wanted of the pages that it has hit are fetched again.
//!
//! A purge does not wait for any of this, and the cost does not grow with the number of purges: there
//! is one task for a zone, and it looks for hit pages at a tenth of one core's time.
//!
//! ```text
//! purge ─► begin ─► look for hit pages, in steps ─► the most wanted, sorted ─► visits, a few at a time
//!                      ▲                                                         │
//!                      └──────────────── purged again meanwhile ─────────────────┘
//! ```

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use http_cache::{Millis, MostWanted, WantedResponse, WantedWalk, Zone};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::again;
use super::visit::{VisitResult, visit};
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::own_visit::Purpose;
use crate::service::own_visit::request;

/// Pages fetched at the same time: enough to keep PHP's workers busy, and half of those that may stand
/// in the line of refreshes.
const AT_ONCE: usize = 8;
/// How long after a purge its pages are fetched; the rest is left to visitors.
const TIME: Duration = Duration::from_secs(60);
/// When a page is tried again that visitors' requests left no room for.
const RETRY: Duration = Duration::from_millis(100);
/// Stored responses that are looked at before the walk pauses: about two milliseconds.
const STEP: usize = 16_384;
/// A pause is this many times as long as the step before it.
const REST: u32 = 9;

/// The zones whose purged pages are being fetched.
static REFILLS: Mutex<Vec<Refill>> = Mutex::new(Vec::new());

struct Refill {
    /// The number of its task.
    id: u64,
    zone: Weak<Zone>,
    /// The configuration of the last purge.
    configuration: Weak<ActiveConfiguration>,
    /// There were purges since the task last looked. Some have removed these.
    purged: Option<MostWanted>,
}

/// A purge has hit something in `zone`. `removed` are pages that are not found there any more.
pub fn begin(configuration: &Arc<ActiveConfiguration>, zone: &Arc<Zone>, removed: MostWanted) {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let Ok(event_loop) = Handle::try_current() else {
        return;
    };
    let weak = Arc::downgrade(zone);
    let mut refills = REFILLS.lock();
    if let Some(running) = refills.iter_mut().find(|it| it.zone.ptr_eq(&weak)) {
        running.configuration = Arc::downgrade(configuration);
        match &mut running.purged {
            Some(purged) => removed
                .into_sorted()
                .into_iter()
                .for_each(|it| purged.add(it)),
            none => *none = Some(removed),
        }
        return;
    }
    let id = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    refills.push(Refill {
        id,
        zone: weak.clone(),
        configuration: Arc::downgrade(configuration),
        purged: Some(removed),
    });
    // A task that its event loop has no time for any more is dropped at once, and takes the lock.
    drop(refills);
    let task = Task {
        id,
        configuration: Weak::new(),
        zone: weak,
        walk_again_at: Instant::now(),
    };
    event_loop.spawn(task.run());
}

/// Fetches the purged pages of one zone. Ends with them, and with its configuration.
struct Task {
    id: u64,
    configuration: Weak<ActiveConfiguration>,
    zone: Weak<Zone>,
    walk_again_at: Instant,
}

/// A page that is still to be fetched.
type Page = Arc<WantedResponse>;

impl Drop for Task {
    fn drop(&mut self) {
        REFILLS.lock().retain(|it| it.id != self.id);
    }
}

impl Task {
    async fn run(mut self) {
        let mut pages: VecDeque<Page> = VecDeque::new();
        let mut visits: JoinSet<Option<Page>> = JoinSet::new();
        let mut deadline = Instant::now();
        loop {
            if let Some(mut most) = self.purged_meanwhile() {
                deadline = Instant::now() + TIME;
                let left = pages.drain(..).map(Arc::unwrap_or_clone);
                left.for_each(|page| most.add(page));
                let Some(most) = self.look(most).await else {
                    return;
                };
                pages.extend(most.into_sorted().into_iter().map(Arc::new));
            }
            if Instant::now() >= deadline {
                pages.clear();
            }
            while visits.len() < AT_ONCE
                && let Some(page) = pages.pop_front()
            {
                let Some(configuration) = self.configuration.upgrade() else {
                    return;
                };
                visits.spawn(fetch(configuration, page));
            }
            match visits.join_next().await {
                Some(Ok(Some(put_off))) => pages.push_front(put_off),
                Some(_) => {}
                None if self.is_over() => return,
                None => {}
            }
        }
    }

    fn purged_meanwhile(&mut self) -> Option<MostWanted> {
        let mut refills = REFILLS.lock();
        let own = refills.iter_mut().find(|it| it.id == self.id)?;
        self.configuration = own.configuration.clone();
        own.purged.take()
    }

    /// Ends, unless there was a purge in this very moment.
    fn is_over(&self) -> bool {
        let mut refills = REFILLS.lock();
        match refills.iter().position(|it| it.id == self.id) {
            Some(at) if refills[at].purged.is_some() => false,
            Some(at) => {
                refills.swap_remove(at);
                true
            }
            None => true,
        }
    }

    /// Adds the pages that purges have hit; `None` if the zone or the thread is about to end.
    async fn look(&mut self, mut most: MostWanted) -> Option<MostWanted> {
        let mut walk = WantedWalk::default();
        loop {
            sleep_until(self.walk_again_at).await;
            let zone = self.zone.upgrade()?;
            let step = move || {
                let began = Instant::now();
                let now = Millis(clock::now());
                let is_more = zone.walk_wanted(&mut walk, &mut most, now, STEP);
                (most, walk, is_more, began.elapsed())
            };
            let stepped = tokio::task::spawn_blocking(step).await.ok()?;
            let (is_more, took);
            (most, walk, is_more, took) = stepped;
            self.walk_again_at = Instant::now() + took * REST;
            if !is_more {
                return Some(most);
            }
        }
    }
}

/// Fetches a page; gives it back if it should be tried again.
async fn fetch(configuration: Arc<ActiveConfiguration>, page: Page) -> Option<Page> {
    let configuration = ConfigurationHandle::new(configuration);
    for asked in again::requests(&configuration, &page) {
        let purpose = Purpose::Refill(page.clone());
        let Ok(mut request) = request(&configuration, &asked, purpose) else {
            continue;
        };
        match visit(&mut request).await {
            VisitResult::OtherPage => {}
            // A redirect to HTTPS, or a file: not the stored page.
            VisitResult::NotStored {
                status: Some(_), ..
            } if request.cache.read(|notes| notes.outcome.is_none()) => {}
            VisitResult::Busy => {
                sleep(RETRY).await;
                return Some(page);
            }
            VisitResult::Fresh { .. }
            | VisitResult::Stored { .. }
            | VisitResult::NotStored { .. } => break,
        }
    }
    None
}
