//! Files that pages were made of, as PHP saw them, and their changes since.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::record::{FileState, SeenFile};

/// Files of one pool. A site of WordPress has some 2,000.
pub const MAX_FILES: usize = 20_000;

struct KnownFile {
    path: Arc<Path>,
    state: Option<FileState>,
}

/// Files by number.
#[derive(Default)]
pub struct Files {
    by_path: HashMap<Arc<Path>, u32>,
    files: Vec<KnownFile>,
}

/// A file that is to be looked at.
pub struct FileToCheck {
    pub number: u32,
    pub path: Arc<Path>,
    pub state: Option<FileState>,
}

/// The state of a file that was looked at again.
pub struct ChangedFile {
    pub number: u32,
    pub state: Option<FileState>,
}

impl Files {
    pub fn path(&self, number: u32) -> Option<&Path> {
        self.files.get(number as usize).map(|file| &*file.path)
    }

    /// Scripts stay in PHP's memory for a while after they changed.
    pub fn is_script(path: &Path) -> bool {
        let extension = path.extension();
        extension.is_some_and(|it| it == "php" || it == "inc")
    }

    /// The number of a file, and whether it was known in another state. `None`: there is no room.
    pub fn see(&mut self, seen: &SeenFile) -> Option<(u32, bool)> {
        if let Some(number) = self.by_path.get(&*seen.path) {
            let known = self.files.get_mut(*number as usize)?;
            let has_changed = !FileState::is_same(known.state, seen.state);
            // A state that is known in more detail stays.
            if has_changed || seen.state.is_some_and(|state| state.inode != 0) {
                known.state = seen.state;
            }
            return Some((*number, has_changed));
        }
        if self.files.len() >= MAX_FILES {
            return None;
        }
        let number = u32::try_from(self.files.len()).ok()?;
        let path: Arc<Path> = seen.path.clone().into();
        self.by_path.insert(path.clone(), number);
        self.files.push(KnownFile {
            path,
            state: seen.state,
        });
        Some((number, false))
    }

    /// Is it known in another state?
    pub fn is_other(&self, seen: &SeenFile) -> bool {
        let known = self.by_path.get(&*seen.path);
        let known = known.and_then(|number| self.files.get(*number as usize));
        known.is_some_and(|known| !FileState::is_same(known.state, seen.state))
    }

    /// All scripts, in the order of their paths.
    pub fn scripts(&self) -> Vec<(&Path, Option<FileState>)> {
        let files = self.files.iter().map(|file| (&*file.path, file.state));
        let mut scripts: Vec<_> = files.filter(|(path, _)| Files::is_script(path)).collect();
        scripts.sort_unstable_by_key(|(path, _)| *path);
        scripts
    }

    pub fn to_check(&self) -> Vec<FileToCheck> {
        let files = self.files.iter().zip(0..);
        let files = files.map(|(file, number)| FileToCheck {
            number,
            path: file.path.clone(),
            state: file.state,
        });
        files.collect()
    }

    /// Whether it had not been noticed yet.
    pub fn change(&mut self, changed: &ChangedFile) -> bool {
        let file = self.files.get_mut(changed.number as usize);
        file.is_some_and(|file| std::mem::replace(&mut file.state, changed.state) != changed.state)
    }
}

/// Looks at files. Blocks.
pub fn check(files: Vec<FileToCheck>) -> Vec<ChangedFile> {
    let files = files.into_iter().filter_map(|file| {
        let state = state_of(&file.path);
        (!FileState::is_same(file.state, state)).then_some(ChangedFile {
            number: file.number,
            state,
        })
    });
    files.collect()
}

/// `None`: there is none, or it cannot be looked at.
pub fn state_of(path: &Path) -> Option<FileState> {
    let facts = fs::metadata(path).ok()?;
    let seconds = facts.mtime().saturating_mul(1_000_000_000);
    Some(FileState {
        modified: seconds.saturating_add(facts.mtime_nsec()),
        bytes: if facts.is_dir() { 0 } else { facts.len() },
        inode: facts.ino(),
    })
}

/// The system takes no longer ones.
const MAX_PATH_BYTES: usize = 4096;

/// Folders in which times and sizes of files show no change, or files come and go with each request.
const UNRELIABLE: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp"];

/// Is this a folder in which times and sizes of files show no change, so that no page is learned there?
pub fn has_unreliable_times(folder: &Path) -> bool {
    UNRELIABLE
        .iter()
        .any(|unreliable| folder.starts_with(unreliable))
}

/// Applications look whether they may write there. Its time changes with each program of the machine.
const TEMPORARY_FOLDERS: [&str; 2] = ["/tmp", "/var/tmp"];

/// Random bytes, and nothing.
const DEVICES: [&str; 3] = ["/dev/urandom", "/dev/random", "/dev/null"];

/// The meaning of a path of a record for a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeenPath {
    /// Its time and size show a change.
    File(PathBuf),
    /// It means nothing for the page.
    Nothing,
    /// Its time and size do not show a change.
    Unreliable,
}

impl SeenPath {
    /// `is_looked_at`: it was neither opened nor listed.
    pub fn of(bytes: &[u8], is_looked_at: bool) -> SeenPath {
        let path = Path::new(OsStr::from_bytes(bytes));
        let is_one_of = |paths: &[&str]| paths.iter().any(|it| path == Path::new(it));
        if is_one_of(&DEVICES) || (is_looked_at && is_one_of(&TEMPORARY_FOLDERS)) {
            return SeenPath::Nothing;
        }
        let is_odd = !path.is_absolute() || bytes.len() > MAX_PATH_BYTES || bytes.contains(&0);
        let plain = without_parents(path);
        let is_unreliable = |folder: &&str| path.starts_with(folder) || plain.starts_with(folder);
        match is_odd || UNRELIABLE.iter().any(is_unreliable) {
            true => SeenPath::Unreliable,
            // The path of PHP itself: `..` after a symbolic link is the folder above the link's target.
            false => SeenPath::File(path.to_owned()),
        }
    }
}

/// The path as it would be without symbolic links.
pub fn without_parents(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
        plain
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_or_goes_is_found_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part.html");
        fs::write(&path, "one").unwrap();
        let mut files = Files::default();
        let seen = SeenFile {
            path: path.clone(),
            state: state_of(&path),
        };
        assert_eq!(files.see(&seen), Some((0, false)));
        assert_eq!(files.see(&seen), Some((0, false)));
        assert!(check(files.to_check()).is_empty());
        fs::write(&path, "other").unwrap();
        let changed = check(files.to_check());
        assert_eq!(changed.len(), 1);
        assert!(files.change(&changed[0]));
        assert!(!files.change(&changed[0]));
        assert!(check(files.to_check()).is_empty());
        fs::remove_file(&path).unwrap();
        assert_eq!(check(files.to_check())[0].state, None);
        assert_eq!(files.see(&seen), Some((0, true)), "PHP saw another");
        // Whether it is there is all that another page has asked.
        fs::write(&path, "one more").unwrap();
        let mut files = Files::default();
        let mut seen = SeenFile {
            path: path.clone(),
            state: state_of(&path),
        };
        seen.state.as_mut().unwrap().inode = 0;
        files.see(&seen);
        fs::write(&path, "and another").unwrap();
        assert!(check(files.to_check()).is_empty());
        fs::remove_file(&path).unwrap();
        assert_eq!(check(files.to_check()).len(), 1);
    }

    #[test]
    fn paths_are_told_apart_by_what_their_time_says() {
        let file = |path: &str| SeenPath::File(PathBuf::from(path));
        for (bytes, expected) in [
            (&b"/srv/site/index.php"[..], file("/srv/site/index.php")),
            (b"/devices", file("/devices")),
            (b"/dev/urandom", SeenPath::Nothing),
            (b"/proc/loadavg", SeenPath::Unreliable),
            (b"/tmp/sess_1", SeenPath::Unreliable),
            (b"/tmp", SeenPath::Nothing),
            (b"/srv/../tmp/a", SeenPath::Unreliable),
            (b"/tmp/../srv/a", SeenPath::Unreliable),
            (b"/../../proc/loadavg", SeenPath::Unreliable),
            (
                b"/srv/site/public/../vendor/autoload.php",
                file("/srv/site/public/../vendor/autoload.php"),
            ),
            (b"index.php", SeenPath::Unreliable),
            (b"/srv/\0", SeenPath::Unreliable),
            (b"", SeenPath::Unreliable),
        ] {
            assert_eq!(SeenPath::of(bytes, true), expected, "{bytes:?}");
        }
        assert_eq!(SeenPath::of(b"/tmp", false), SeenPath::Unreliable, "listed");
    }
}
