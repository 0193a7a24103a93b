//! Purges that are repeated (`cache_purge_again`): a database that answers from a copy gives the old data for a moment
//! after a change, and a page made of it then is stored.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use crate::exchange::active_configuration::ActiveConfiguration;

/// Purges that wait to be repeated, at some 500 bytes each; further ones are not repeated.
const MAX_WAITING: usize = 100_000;

static WAITING: AtomicUsize = AtomicUsize::new(0);

/// After which time a purge is repeated.
pub fn after(configuration: &ActiveConfiguration) -> Option<Duration> {
    configuration.site.http.purge_again
}

/// Does `purge` once the time is over.
pub fn spawn(time: Duration, purge: impl Future<Output = ()> + Send + 'static) {
    if WAITING.fetch_add(1, Relaxed) >= MAX_WAITING {
        WAITING.fetch_sub(1, Relaxed);
        return;
    }
    tokio::spawn(async move {
        tokio::time::sleep(time).await;
        purge.await;
        WAITING.fetch_sub(1, Relaxed);
    });
}
