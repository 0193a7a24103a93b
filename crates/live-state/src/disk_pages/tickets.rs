//! Purges that are on their way to the disk, and the requests that wait for them. The journal syncs in order: a
//! thread waits for one after the other, and publishes the number of the last one.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, mpsc};

use disk_tier::{PurgeNotWritten, PurgeTicket};
use http_cache::TierFuture;
use parking_lot::Mutex;
use tokio::sync::watch;

/// Purges in the order in which they were appended.
pub struct Tickets {
    /// How many were added; held while one is, so that their order is that of the numbers.
    added: Mutex<u64>,
    to_thread: mpsc::Sender<(u64, PurgeTicket)>,
    settled: watch::Receiver<u64>,
    failures: Arc<Failures>,
}

/// Purges that hold in memory alone.
#[derive(Default)]
pub struct Failures {
    count: AtomicU64,
    why: Mutex<Option<PurgeNotWritten>>,
}

impl Tickets {
    /// Begins the thread.
    pub fn new() -> io::Result<Tickets> {
        let (to_thread, tickets) = mpsc::channel::<(u64, PurgeTicket)>();
        let (sender, settled) = watch::channel(0);
        let failures = Arc::<Failures>::default();
        let noted = Arc::clone(&failures);
        let wait = move || {
            for (number, ticket) in tickets {
                match ticket.wait() {
                    Ok(()) => {
                        sender.send_replace(number);
                    }
                    // The requests that wait for it go on waiting. The next purge that is on the disk settles
                    // it: the journal then has a floor above all that found no room.
                    Err(why) => {
                        noted.count.fetch_add(1, SeqCst);
                        *noted.why.lock() = Some(why);
                    }
                }
            }
        };
        std::thread::Builder::new()
            .name("purge-journal".to_owned())
            .spawn(wait)?;
        Ok(Tickets {
            added: Mutex::new(0),
            to_thread,
            settled,
            failures,
        })
    }

    /// Adds the purge that `append` hands to the journal. The journal bounds how many wait: the tickets of
    /// purges that it cannot take are settled at once.
    pub fn add(&self, append: impl FnOnce() -> PurgeTicket) {
        let mut added = self.added.lock();
        *added += 1;
        // Without the thread, as at the end of the process, waiting ends as well: in vain.
        let _ = self.to_thread.send((*added, append()));
    }

    /// Resolves to `true` when all that were added so far are on the disk, and to `false` if they will not be;
    /// `None`: they are.
    pub fn settled(&self) -> Option<TierFuture<bool>> {
        let added = *self.added.lock();
        let mut settled = self.settled.clone();
        if *settled.borrow() >= added {
            return None;
        }
        Some(Box::pin(async move {
            settled.wait_for(|number| *number >= added).await.is_ok()
        }))
    }

    /// How many purges are not on the disk since the last call, and why.
    pub fn take_failures(&self) -> Option<(u64, PurgeNotWritten)> {
        let why = self.failures.why.lock().take()?;
        Some((self.failures.count.swap(0, SeqCst), why))
    }
}
