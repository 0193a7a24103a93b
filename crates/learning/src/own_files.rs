//! Files that a request wrote itself, and that are no obstacle: it writes to one and never reads it (a log, a counter), or makes
//! one and removes it again (WordPress tries in this way whether it may write to a folder).
//!
//! Everything else that it writes is one: a file that it also reads, renames, or finds and removes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use learn_record::{FileLook, FileUse};

use crate::files::without_parents;

/// Files of one request. With more, each of them is an obstacle.
const MAX_WRITTEN: usize = 32;

#[derive(Default)]
pub struct OwnFiles {
    /// The positions in the record of looks that say nothing of the page.
    excused: Vec<usize>,
    /// The folders of these files, whose times the request has changed.
    folders: Vec<PathBuf>,
}

impl OwnFiles {
    pub fn of(looks: &[FileLook<'_>]) -> OwnFiles {
        let is_written = |look: &FileLook<'_>| look.by == FileUse::WrittenOnly;
        let written = looks.iter().filter(|look| is_written(look)).count();
        let mut own = OwnFiles::default();
        if !(1..=MAX_WRITTEN).contains(&written) {
            return own;
        }
        let paths: Vec<PathBuf> = looks.iter().map(|look| plain(look.path)).collect();
        for (at, look) in looks.iter().enumerate().filter(|(_, it)| is_written(it)) {
            // A file that could not be opened was not written.
            let Some(inode) = look.state.map(|state| state.inode) else {
                continue;
            };
            let is_it = |other: usize| {
                let state = looks.get(other).and_then(|other| other.state);
                let has_inode = state.is_some_and(|state| inode != 0 && state.inode == inode);
                has_inode || paths.get(other) == paths.get(at)
            };
            let uses = (0..looks.len()).filter(|other| is_it(*other));
            let uses: Vec<usize> = uses.collect();
            if let Some(excused) = excused(looks, &uses, at) {
                let is_removed =
                    |it: &usize| looks.get(*it).is_some_and(|it| it.by == FileUse::Removed);
                // To write into a file that stays does not change the time of its folder.
                if excused.iter().any(is_removed) {
                    let folder = paths.get(at).and_then(|path| path.parent());
                    own.folders.extend(folder.map(Path::to_owned));
                }
                own.excused.extend(excused);
            }
        }
        own
    }

    /// Does the look at this position of the record say nothing of the page?
    pub fn excuse(&self, at: usize) -> bool {
        self.excused.contains(&at)
    }

    /// Is it a look at a folder that the request has written in, so that only its presence counts?
    pub fn are_in(&self, look: &FileLook<'_>) -> bool {
        look.by != FileUse::Listed
            && !self.folders.is_empty()
            && look.state.is_some_and(|state| state.is_folder)
            && self.folders.contains(&plain(look.path))
    }
}

/// The uses of the file that was written at `at`, in order, that say nothing of the page. `None`: the file is an obstacle.
fn excused(looks: &[FileLook<'_>], uses: &[usize], at: usize) -> Option<Vec<usize>> {
    let of = |use_at: &usize| looks.get(*use_at);
    let is_removal = |use_at: &&usize| {
        **use_at > at
            && of(use_at).is_some_and(|it| it.by == FileUse::Removed && it.state.is_some())
    };
    let removed_at = uses.iter().find(is_removal).copied();
    let mut excused = Vec::new();
    for use_at in uses {
        let look = of(use_at)?;
        let was_there = look.state.is_some();
        let is_own_look = removed_at.is_some_and(|end| (at..end).contains(use_at)) && was_there;
        match look.by {
            FileUse::WrittenOnly => excused.push(*use_at),
            FileUse::Removed if removed_at == Some(*use_at) => excused.push(*use_at),
            FileUse::Looked if is_own_look => excused.push(*use_at),
            // The page depends on its absence, which is so again.
            FileUse::Looked if removed_at.is_some() && !was_there => {}
            _ => return None,
        }
    }
    Some(excused)
}

fn plain(path: &[u8]) -> PathBuf {
    without_parents(Path::new(OsStr::from_bytes(path)))
}

#[cfg(test)]
mod tests {
    use learn_record::FileState;

    use super::*;

    fn look(path: &'static str, by: FileUse, inode: u64) -> FileLook<'static> {
        let state = FileState {
            is_folder: false,
            modified_nanoseconds: 1,
            size: 0,
            inode,
        };
        FileLook {
            path: path.as_bytes(),
            by,
            state: (inode != 0).then_some(state),
        }
    }

    #[test]
    fn file_that_is_only_written_or_made_and_removed_is_no_obstacle() {
        use FileUse::{Listed, Looked, Opened, Removed, Written, WrittenOnly};
        const LOG: &str = "/srv/log";
        for (name, looks, expected) in [
            ("a log", &[look(LOG, WrittenOnly, 5)][..], &[0][..]),
            (
                "made, looked at, removed",
                &[
                    look(LOG, Looked, 0),
                    look(LOG, WrittenOnly, 5),
                    look(LOG, Looked, 5),
                    look(LOG, Removed, 5),
                ],
                &[1, 2, 3],
            ),
            (
                "another one",
                &[look("/srv/other", Opened, 6), look(LOG, WrittenOnly, 5)],
                &[1],
            ),
            (
                "read before",
                &[look(LOG, Opened, 5), look(LOG, WrittenOnly, 5)],
                &[],
            ),
            (
                "looked at before, and there",
                &[
                    look(LOG, Looked, 5),
                    look(LOG, WrittenOnly, 5),
                    look(LOG, Removed, 5),
                ],
                &[],
            ),
            (
                "looked at and kept",
                &[look(LOG, WrittenOnly, 5), look(LOG, Looked, 5)],
                &[],
            ),
            (
                "read and removed: another request may have written it",
                &[
                    look(LOG, WrittenOnly, 5),
                    look(LOG, Opened, 5),
                    look(LOG, Removed, 5),
                ],
                &[],
            ),
            (
                "gone when it was looked at: another request removed it",
                &[look(LOG, WrittenOnly, 5), look(LOG, Looked, 0)],
                &[],
            ),
            (
                "by another path",
                &[
                    look("/srv/a/../log", Opened, 0),
                    look("/srv//log", WrittenOnly, 5),
                ],
                &[],
            ),
            (
                "by a link",
                &[look("/srv/link", Opened, 5), look(LOG, WrittenOnly, 5)],
                &[],
            ),
            ("removed alone", &[look(LOG, Removed, 5)], &[]),
            ("not opened", &[look(LOG, WrittenOnly, 0)], &[]),
            (
                "renamed",
                &[look(LOG, WrittenOnly, 5), look(LOG, Written, 5)],
                &[],
            ),
            (
                "listed",
                &[look(LOG, WrittenOnly, 5), look(LOG, Listed, 5)],
                &[],
            ),
        ] {
            let own = OwnFiles::of(looks);
            let excused: Vec<_> = (0..looks.len()).filter(|at| own.excuse(*at)).collect();
            assert_eq!(excused, expected, "{name}");
        }
    }

    #[test]
    fn only_the_presence_of_its_folder_counts_unless_that_is_listed() {
        let folder = |path, by| FileLook {
            state: Some(FileState {
                is_folder: true,
                modified_nanoseconds: 1,
                size: 0,
                inode: 9,
            }),
            ..look(path, by, 9)
        };
        // A file that stays, and one that is gone again.
        let log = OwnFiles::of(&[look("/srv/site/log", FileUse::WrittenOnly, 5)]);
        assert!(!log.are_in(&folder("/srv/site/", FileUse::Looked)));
        let own = OwnFiles::of(&[
            look("/srv/site/probe", FileUse::WrittenOnly, 5),
            look("/srv/site/probe", FileUse::Removed, 5),
        ]);
        assert!(own.are_in(&folder("/srv/site/", FileUse::Looked)));
        assert!(!own.are_in(&folder("/srv/site", FileUse::Listed)));
        assert!(!own.are_in(&folder("/srv", FileUse::Looked)));
        assert!(!own.are_in(&look("/srv/site", FileUse::Looked, 9)));
    }

    #[test]
    fn requests_that_write_many_files_have_none_excused() {
        let looks = vec![look("/srv/log", FileUse::WrittenOnly, 5); MAX_WRITTEN + 1];
        assert!(!OwnFiles::of(&looks).excuse(0));
        assert!(OwnFiles::of(&looks[1..]).excuse(0));
    }
}
