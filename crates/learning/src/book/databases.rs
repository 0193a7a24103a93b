//! Pages that were made of SQLite databases: their states decide, which are looked at elsewhere.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::Book;
use crate::pages::Cause;
use crate::record::{OpenDatabase, Reason, WhyNot};
use crate::sqlite::{NoState, SqliteSeen};

impl Book {
    /// The databases of a page, if it is still the one of this fetch.
    pub fn sqlite_of(&self, number: u32, fetch: u64) -> Option<Arc<[SqliteSeen]>> {
        let page = self.pages.get(number).filter(|page| page.fetch == fetch)?;
        Some(page.sqlite.iter().cloned().collect())
    }

    /// A hit of this page found a database in another state.
    pub fn sqlite_changed(&mut self, number: u32, fetch: u64, path: &Path, now: Instant) {
        if self
            .pages
            .get(number)
            .is_some_and(|page| page.fetch == fetch)
        {
            self.suspect(number, &cause(path, now), false);
        }
    }

    /// Marks the pages whose databases are in other states now.
    pub fn sqlite_looked_at(&mut self, now_seen: &[SqliteSeen], now: Instant) {
        if now_seen.is_empty() {
            return;
        }
        let pages = self.pages.iter().filter(|(_, page)| !page.is_outdated);
        let changed = pages.filter_map(|(number, page)| {
            let changed = page.sqlite.iter().find(|it| has_changed(it, now_seen))?;
            Some((number, changed.database.clone()))
        });
        let changed: Vec<_> = changed.collect();
        for (number, database) in changed {
            self.suspect(number, &cause(database.path(), now), false);
        }
    }

    /// Suspects the page of this name if one of its databases has changed.
    pub fn ask_sqlite(&mut self, name: &[u8], now_seen: &[SqliteSeen], now: Instant) {
        let Some((number, page)) = self.pages.named(name) else {
            return;
        };
        let changed = page.sqlite.iter().find(|it| has_changed(it, now_seen));
        if let Some(database) = changed.map(|it| it.database.clone()) {
            self.suspect(number, &cause(database.path(), now), false);
        }
    }
}

fn cause(path: &Path, now: Instant) -> Arc<Cause> {
    Arc::new(Cause {
        text: format!("{} has changed", path.display()),
        at: now,
    })
}

/// Returns whether a database has changed. A state that is not known at the moment counts as unchanged.
fn has_changed(seen: &SqliteSeen, now_seen: &[SqliteSeen]) -> bool {
    let mut now_seen = now_seen.iter();
    let now = now_seen.find(|it| it.database.path() == seen.database.path());
    now.is_some_and(|now| now.look.state != Err(NoState::Changing) && !seen.is_same(&now.look))
}

/// The databases of a page, as they were when its fetch began.
pub fn seen_by_page(
    named: &[OpenDatabase],
    begun: &[SqliteSeen],
) -> Result<Box<[SqliteSeen]>, WhyNot> {
    let seen = named.iter().map(|named| {
        let shown = named.path.display();
        let unknown = |why: &str| WhyNot::new(Reason::DatabaseFile, format!("{shown}: {why}"));
        let written = |why: &str| WhyNot::new(Reason::WrittenMeanwhile, format!("{shown}: {why}"));
        let seen = begun.iter().find(|it| it.database.path() == named.path);
        let seen = seen.ok_or_else(|| unknown("it is seen for the first time"))?;
        match seen.look.state {
            Err(NoState::Unknown(why)) => Err(unknown(why)),
            Err(NoState::Changing) => Err(written("it was being written when the page was begun")),
            Ok(state) if !state.is_of(named.device, named.inode) => {
                Err(unknown("PHP has another file open that had this path"))
            }
            // With a rollback journal it would keep all others from writing.
            Ok(state) if named.is_from_before && state.has_snapshots() => Err(unknown(
                "a persistent connection to a database with a write-ahead log may have a transaction open",
            )),
            Ok(_) if !seen.look.is_settled => {
                Err(written("it was written just before the page was begun"))
            }
            Ok(_) => Ok(seen.clone()),
        }
    });
    seen.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::tests::{end, state};
    use crate::book::{LearnedEnd, PageEnd};
    use crate::record::RunRecord;
    use crate::sqlite::{SqliteDatabase, SqliteLook, SqliteState};

    const PATH: &str = "/srv/data/a.db";

    fn seen(state: Result<SqliteState, NoState>, is_settled: bool) -> Arc<[SqliteSeen]> {
        let database = Arc::new(SqliteDatabase::new(PATH.into()));
        let look = SqliteLook { state, is_settled };
        [SqliteSeen { database, look }].into()
    }

    fn with_counter(counter: u8) -> Arc<[SqliteSeen]> {
        seen(Ok(SqliteState::alone(2, counter, false)), true)
    }

    fn begun(book: &Book, sqlite: Arc<[SqliteSeen]>) -> PageEnd {
        let mut end = end(book, 1);
        end.begun.sqlite = sqlite;
        end
    }

    fn record(inode: u64, is_from_before: bool) -> RunRecord {
        let database = OpenDatabase {
            path: PATH.into(),
            device: 1,
            inode,
            is_from_before,
        };
        RunRecord {
            sqlite: vec![database],
            ..RunRecord::default()
        }
    }

    #[test]
    fn a_page_is_suspect_once_its_database_has_another_state() {
        let (mut book, now) = (Book::default(), Instant::now());
        let end = begun(&book, with_counter(1));
        let learned = book.learn(&end, Some(record(2, false)), now);
        let LearnedEnd::Known(number, _) = learned else {
            panic!("{learned:?}");
        };
        assert_eq!(book.sqlite_of(number, 1).map(|it| it.len()), Some(1));
        assert!(
            book.sqlite_of(number, 2).is_none(),
            "another page has the number"
        );
        book.sqlite_looked_at(&with_counter(1), now);
        book.sqlite_looked_at(&seen(Err(NoState::Changing), false), now);
        assert_eq!(state(&mut book, now), None, "it says nothing");
        book.sqlite_changed(number, 2, Path::new(PATH), now);
        assert_eq!(state(&mut book, now), None, "another page's hit");
        book.sqlite_looked_at(&with_counter(2), now);
        assert!(state(&mut book, now).is_some_and(|it| it.contains("has changed")));
        // Made again: another digest is no surprise.
        let mut again = begun(&book, with_counter(2));
        again.page.digest = Some(2);
        book.learn(&again, Some(record(2, false)), now);
        assert_eq!(book.snapshot().compared, [0, 0, 0, 1]);
        book.sqlite_changed(number, 1, Path::new(PATH), now);
        assert!(state(&mut book, now).is_some());
    }

    #[test]
    fn pages_whose_database_had_no_certain_state_when_they_were_begun_are_not_kept() {
        let logged = || seen(Ok(SqliteState::alone(2, 1, true)), true);
        for (what, sqlite, record, reason) in [
            (
                "first",
                Arc::default(),
                record(2, false),
                Reason::DatabaseFile,
            ),
            (
                "unreadable",
                seen(Err(NoState::Unknown("why")), false),
                record(2, false),
                Reason::DatabaseFile,
            ),
            (
                "being written",
                seen(Err(NoState::Changing), false),
                record(2, false),
                Reason::WrittenMeanwhile,
            ),
            (
                "just written",
                seen(Ok(SqliteState::alone(2, 1, false)), false),
                record(2, false),
                Reason::WrittenMeanwhile,
            ),
            (
                "replaced",
                with_counter(1),
                record(3, true),
                Reason::DatabaseFile,
            ),
            (
                "persistent, a log",
                logged(),
                record(2, true),
                Reason::DatabaseFile,
            ),
        ] {
            let (mut book, now) = (Book::default(), Instant::now());
            let end = begun(&book, sqlite);
            book.learn(&end, Some(record), now);
            let state = state(&mut book, now).unwrap_or_default();
            assert!(state.starts_with(reason.word()), "{what}: {state}");
        }
        for (sqlite, is_from_before) in [(logged(), false), (with_counter(1), true)] {
            let (mut book, now) = (Book::default(), Instant::now());
            let end = begun(&book, sqlite);
            book.learn(&end, Some(record(2, is_from_before)), now);
            assert_eq!(state(&mut book, now), None);
        }
    }
}
