//! Waits, on a thread that may, until purges are on the disk.

use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use http_cache::TierFuture;

use crate::cache_zones::AliveZones;

/// A disk that takes longer does not hold up the other process: its purges hold in memory.
const WITHIN: Duration = Duration::from_secs(1);

/// Waits until all zones have written their purges down, or for as long as a disk may take.
pub(super) fn wait(zones: &AliveZones) {
    let until = Instant::now() + WITHIN;
    for zone in zones.zones() {
        if let Some(written) = zone.tier().and_then(|tier| tier.written_down()) {
            wait_for(written, until);
        }
    }
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<ThreadWaker>) {
        self.0.unpark();
    }
}

fn wait_for(mut written: TierFuture<bool>, until: Instant) {
    let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
    let mut context = Context::from_waker(&waker);
    while written.as_mut().poll(&mut context).is_pending() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::park_timeout(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purge_is_waited_for_until_it_is_written_and_no_longer_than_a_disk_may_take() {
        let (done, written) = tokio::sync::oneshot::channel();
        let waiting = thread::spawn(move || {
            let until = Instant::now() + Duration::from_secs(600);
            wait_for(Box::pin(async { written.await.is_ok() }), until);
        });
        done.send(()).unwrap();
        waiting.join().unwrap();
        wait_for(Box::pin(std::future::pending()), Instant::now());
    }
}
