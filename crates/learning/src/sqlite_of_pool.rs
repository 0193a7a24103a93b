//! The SQLite databases of a pool: which its pages were made of lately, and what they are looked at for.
//!
//! A page counts the states that they had before its fetch was sent to PHP. So one that is made of a database
//! which is not known yet is not learned; the next one is.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::LearnedPool;
use crate::record::OpenDatabase;
use crate::sqlite::{SqliteDatabase, SqliteSeen};

/// Databases of one pool. All are looked at when a fetch begins, at some microseconds each.
pub const MAX_DATABASES: usize = 16;

/// One that no page named for so long makes room for another.
const UNUSED: Duration = Duration::from_secs(600);

#[derive(Default)]
pub struct KnownDatabases(Vec<(Arc<SqliteDatabase>, Instant)>);

impl KnownDatabases {
    /// Returns it if it was not known.
    fn name(&mut self, path: &Path, now: Instant) -> Option<Arc<SqliteDatabase>> {
        if let Some((_, named)) = self.0.iter_mut().find(|(it, _)| it.path() == path) {
            *named = now;
            return None;
        }
        if self.0.len() >= MAX_DATABASES {
            let is_used = |named: &Instant| now.saturating_duration_since(*named) < UNUSED;
            self.0.retain(|(_, named)| is_used(named));
        }
        if self.0.len() >= MAX_DATABASES {
            return None;
        }
        let database = Arc::new(SqliteDatabase::new(path.to_owned()));
        self.0.push((database.clone(), now));
        Some(database)
    }

    pub fn all(&self) -> Vec<Arc<SqliteDatabase>> {
        self.0
            .iter()
            .map(|(database, _)| database.clone())
            .collect()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_are_bounded_and_those_that_no_page_names_make_room() {
        let (mut known, now) = (KnownDatabases::default(), Instant::now());
        let path = |number: usize| Path::new("/srv").join(number.to_string());
        for number in 0..=MAX_DATABASES {
            known.name(&path(number), now);
            known.name(&path(0), now + UNUSED);
        }
        assert_eq!(known.all().len(), MAX_DATABASES);
        known.name(&path(99), now + UNUSED);
        let left: Vec<_> = known.all().iter().map(|it| it.path().to_owned()).collect();
        assert_eq!(left, [path(0), path(99)]);
    }
}
