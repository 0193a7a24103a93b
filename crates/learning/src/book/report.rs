//! The report of a page, for people.

use std::time::Instant;

use super::Book;
use crate::files::Files;
use crate::log_state::LogState;
use crate::pages::{LearnedPage, PageReport};

/// Files of a page that are shown.
const MAX_SHOWN_FILES: usize = 20;

impl Book {
    /// Reports a page to people.
    pub fn report(&mut self, name: &[u8], now: Instant) -> Option<PageReport> {
        let number = self.pages.named(name).map(|(number, _)| number);
        if let Some(number) = number {
            self.ask_index(number, now);
        }
        let ago = |at: Instant| now.saturating_duration_since(at);
        let replay_percent = self.replays.then(|| self.replay_time.percent(now));
        match self.pages.named(name).map(|(_, page)| page) {
            Some(page) if now < page.ends_at => Some(PageReport::Learned {
                made_ago: ago(page.made_at),
                suspect: page
                    .suspect
                    .as_ref()
                    .map(|cause| (cause.text.clone(), ago(cause.at))),
                left: page.kept_until.saturating_duration_since(now),
                is_kept: page.is_kept,
                not_kept: page.not_kept.as_deref().cloned(),
                statements: page.statements,
                tables: page.tables.iter().map(ToString::to_string).collect(),
                files: self.shown_files(page),
                log: self.log_of(page),
                databases: shown_databases(page),
                replay_percent: replay_percent.filter(|_| page.is_open(now)),
                same: page.same,
                changed: page.changed,
            }),
            _ => {
                let (why, at) = self.notes.of(name)?;
                Some(PageReport::NotLearned {
                    why: why.clone(),
                    ago: ago(*at),
                })
            }
        }
    }

    fn log_of(&self, page: &LearnedPage) -> LogState {
        let mut databases = self.databases.iter();
        let database = databases.find(|it| Some(&it.server) == page.server.as_ref());
        database.map_or(LogState::Off, |it| it.log.clone())
    }

    /// Files but for scripts, which are those of all pages.
    fn shown_files(&self, page: &LearnedPage) -> Vec<String> {
        let paths = page.files.iter().filter_map(|file| self.files.path(*file));
        let paths = paths.filter(|path| !Files::is_script(path));
        let shown = paths.take(MAX_SHOWN_FILES);
        shown.map(|path| path.display().to_string()).collect()
    }
}

fn shown_databases(page: &LearnedPage) -> Vec<String> {
    let paths = page.sqlite.iter().map(|it| it.database.path());
    let cache = page.cache.iter();
    let cache = cache.map(|it| format!("{} keys of the object cache {}", it.keys, it.server));
    paths
        .map(|path| path.display().to_string())
        .chain(cache)
        .collect()
}
