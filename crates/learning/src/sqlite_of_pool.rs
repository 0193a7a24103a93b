//! The SQLite databases of a pool are looked at, and what a hit finds there is noted.
//!
//! A page counts the states that they had before its fetch was sent to PHP. So one that is made of a database
//! which is not known yet is not learned; the next one is.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::LearnedPool;
use crate::record::OpenDatabase;
use crate::sqlite::SqliteSeen;

impl LearnedPool {
    /// A page was made of these. Call from the thread of the pool: what is new is looked at by one that may wait.
    pub(crate) fn know_sqlite(&self, named: &[OpenDatabase]) {
        if named.is_empty() {
            return;
        }
        let (mut known, now) = (self.sqlite.lock(), Instant::now());
        for new in named.iter().filter_map(|it| known.name(&it.path, now)) {
            tokio::task::spawn_blocking(move || new.look_and_wait());
        }
    }

    /// All that are known, as they are now.
    pub(crate) fn look_at_sqlite(&self) -> Arc<[SqliteSeen]> {
        let known = self.sqlite.lock().all();
        let seen = known.into_iter().map(|database| SqliteSeen {
            look: database.look(),
            database,
        });
        seen.collect()
    }

    /// A hit found that a database has changed.
    pub(crate) fn sqlite_changed(&self, number: u32, fetch: u64, path: &Path) {
        self.change(|book| book.sqlite_changed(number, fetch, path, Instant::now()));
    }
}
