//! Files that were looked into and are no SQLite databases: while they stay as they were, they are not looked into again.
#![forbid(unsafe_code)]

use crate::system::OpenedFile;

/// Files that are remembered. Each has one place, by its inode.
const PLACES: usize = 512;

/// Times of files have steps, within which a file may change twice: one that changed later than this before it was
/// looked into is looked into again.
const SETTLED_NANOSECONDS: i64 = 2_000_000_000;

#[derive(Debug, Default)]
pub(crate) struct PlainFiles(Vec<Option<OpenedFile>>);

impl PlainFiles {
    pub(crate) fn holds(&self, file: &OpenedFile) -> bool {
        self.0.get(place(file)).and_then(Option::as_ref) == Some(file)
    }

    /// Remembers a file that was looked into at the time `now`, if it had not changed for a while.
    pub(crate) fn add(&mut self, file: &OpenedFile, now_nanoseconds: i64) {
        let last_change = file
            .changed_nanoseconds
            .max(file.state.modified_nanoseconds);
        if last_change < now_nanoseconds.saturating_sub(SETTLED_NANOSECONDS) {
            self.0.resize(PLACES, None);
            self.0[place(file)] = Some(*file);
        }
    }
}

fn place(file: &OpenedFile) -> usize {
    usize::try_from(file.state.inode % PLACES as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use learn_record::FileState;

    use super::*;

    const NOW: i64 = 1_000_000_000_000;

    fn file(inode: u64, changed_nanoseconds: i64) -> OpenedFile {
        OpenedFile {
            state: FileState {
                is_folder: false,
                modified_nanoseconds: 7,
                size: 100,
                inode,
            },
            is_regular: true,
            device: 1,
            changed_nanoseconds,
        }
    }

    #[test]
    fn file_is_remembered_until_something_of_it_is_different() {
        let mut files = PlainFiles::default();
        let known = file(3, 8);
        assert!(!files.holds(&known));
        files.add(&known, NOW);
        assert!(files.holds(&known));
        let (mut longer, mut written, mut touched, mut elsewhere) = (known, known, known, known);
        longer.state.size += 1;
        written.changed_nanoseconds += 1;
        touched.state.modified_nanoseconds += 1;
        elsewhere.device += 1;
        for other in [longer, written, touched, elsewhere, file(4, 8)] {
            assert!(!files.holds(&other), "{other:?}");
        }
        let in_its_place = file(3 + PLACES as u64, 8);
        files.add(&in_its_place, NOW);
        assert!(files.holds(&in_its_place) && !files.holds(&known));
    }

    #[test]
    fn file_that_has_just_changed_is_not_remembered() {
        let mut files = PlainFiles::default();
        for changed in [NOW - SETTLED_NANOSECONDS, NOW, NOW + 1, i64::MAX] {
            files.add(&file(3, changed), NOW);
            assert!(!files.holds(&file(3, changed)), "{changed}");
        }
        files.add(&file(3, 8), i64::MIN);
        assert!(!files.holds(&file(3, 8)), "a clock before all files");
    }
}
