//! `cache_learn auto` in the book: comparisons count for the shape of the page's address, and pages of a shape that was
//! refuted are not shown any more by what was learned.

use std::time::{Duration, Instant};

use crate::StoredPage;
use crate::record::{Reason, SeenFile, WhyNot};
use crate::trials::ComparedPage;

use super::{Book, PageBefore, PageEnd};

impl Book {
    /// A page was made again: counts the comparison with the known one, of this age, for the shape.
    pub(super) fn note_trial(
        &mut self,
        end: &PageEnd,
        (agrees, differs, age): (bool, bool, Duration),
        is_polled: bool,
        now: Instant,
    ) {
        let Some(shape) = &end.page.shape else {
            return;
        };
        let page = ComparedPage {
            shape,
            name: &end.page.name,
            address: &end.page.address,
            age,
            may_be_explained: is_polled,
        };
        let notice = match (agrees, differs) {
            (true, _) => self.trials.agree(&page, now),
            (_, true) => self.trials.refute(&page, now),
            _ => None,
        };
        let Some(notice) = notice else {
            return;
        };
        if differs {
            self.suspect_all("a page like it was another", now, |page| {
                page.shape.as_deref() == Some(shape) && page.is_kept
            });
        }
        self.note(notice);
    }

    /// Why a page is not kept yet with `cache_learn auto`: its shape is not proven, or it was not the same itself.
    pub(super) fn why_unproven(
        &self,
        page: &StoredPage,
        before: &PageBefore,
        now: Instant,
    ) -> Option<WhyNot> {
        if page.is_own && !page.is_repeated {
            return Some(WhyNot::new(Reason::Unproven, "an own copy, made once"));
        }
        let shape = page.shape.as_ref()?;
        let is_proven = self.trials.is_proven(shape) && (page.is_own || before.same > 0);
        (!is_proven).then(|| WhyNot::new(Reason::Unproven, self.trials.describe(shape, now)))
    }

    /// Notices the files that PHP saw changed before their pages are compared: the next look would come too late.
    pub(super) fn see_known_files(&mut self, files: &[SeenFile], now: Instant) {
        let changed = files.iter().filter(|file| self.files.is_other(file));
        let changed: Vec<SeenFile> = changed.cloned().collect();
        for file in &changed {
            if let Some((number, true)) = self.files.see(file) {
                self.file_changed(number, now);
            }
        }
    }
}
