//! Files that bodies of streams are read from. However many streams read a file, it is open once: each
//! would hold a descriptor of its own otherwise, for as long as its client wants.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;

use crate::open_file::OpenFile;

/// Device and inode: they name the same file for as long as it is open.
type FileId = (u64, u64);

struct OpenFileUse {
    file: Arc<OpenFile>,
    holders: usize,
}

static FILES: LazyLock<Mutex<HashMap<FileId, OpenFileUse>>> = LazyLock::new(Mutex::default);

/// A file that a body is read from.
pub struct HeldFile {
    file: Arc<OpenFile>,
    /// `None` if the system does not say which file it is.
    id: Option<FileId>,
}

impl HeldFile {
    /// Takes the place of `file`, which is closed where the same file is held already.
    pub fn new(file: Arc<OpenFile>) -> HeldFile {
        let Ok(stat) = rustix::fs::fstat(&*file) else {
            return HeldFile { file, id: None };
        };
        let id = (stat.st_dev, stat.st_ino);
        let mut files = FILES.lock();
        let shared = files.entry(id).or_insert(OpenFileUse { file, holders: 0 });
        shared.holders += 1;
        let file = shared.file.clone();
        HeldFile { file, id: Some(id) }
    }

    pub fn file(&self) -> &OpenFile {
        &self.file
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        let mut files = FILES.lock();
        if let Some(shared) = files.get_mut(&id) {
            shared.holders -= 1;
            if shared.holders == 0 {
                files.remove(&id);
            }
        }
    }
}

/// Returns how many files are held.
pub fn count() -> usize {
    FILES.lock().len()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_file_that_is_held_already_is_open_once() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let open = || Arc::new(OpenFile::new(File::open(&path).unwrap()));
        let (first, second) = (open(), open());
        let (is_first, is_second) = (Arc::downgrade(&first), Arc::downgrade(&second));
        let first = HeldFile::new(first);
        let second = HeldFile::new(second);
        assert!(is_second.upgrade().is_none(), "it is closed");
        assert!(std::ptr::eq(first.file(), second.file()));
        drop(first);
        assert!(is_first.upgrade().is_some());
        drop(second);
        assert!(is_first.upgrade().is_none(), "the last has closed it");
    }
}
