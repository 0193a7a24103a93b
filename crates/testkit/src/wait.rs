//! Waiting by looking again, with a bound: nothing sleeps and hopes.

use std::time::{Duration, Instant};

/// Longer than anything takes on a busy machine: an event that takes this long does
/// not come.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// Between two looks.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// Looks until it is so.
///
/// # Panics
/// When it is not so within [`TIMEOUT`].
pub async fn until(what: &str, is_so: impl FnMut() -> bool) {
    until_or(is_so, || format!("not in time: {what}")).await;
}

/// Like [`until`]; `complaint` is the message with which the test fails.
///
/// # Panics
/// When it is not so within [`TIMEOUT`].
pub async fn until_or(mut is_so: impl FnMut() -> bool, complaint: impl Fn() -> String) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < TIMEOUT, "{}", complaint());
        tokio::time::sleep(PAUSE).await;
    }
}
