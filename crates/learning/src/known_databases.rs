//! The SQLite databases that the pages of a pool were made of lately.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sqlite::SqliteDatabase;

/// Databases of one pool. All are looked at when a fetch begins, at some microseconds each.
pub const MAX_DATABASES: usize = 16;

/// One that no page named for so long makes room for another.
const UNUSED: Duration = Duration::from_secs(600);

#[derive(Default)]
pub struct KnownDatabases(Vec<(Arc<SqliteDatabase>, Instant)>);

impl KnownDatabases {
    /// Returns it if it was not known.
    pub fn name(&mut self, path: &Path, now: Instant) -> Option<Arc<SqliteDatabase>> {
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
