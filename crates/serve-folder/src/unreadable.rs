//! Folders and files that this account may not read, met during the search for an application.
//! Without this check, a site whose folder is closed would pass for one without any scripts,
//! and its sources for files to hand out.

use std::cell::RefCell;
use std::io;
use std::path::PathBuf;

use super::site_files::{Files, Folder};
use system_error::SystemError;

/// A folder of this machine that remembers the first thing it was refused.
pub struct WatchedFolder {
    folder: Folder,
    refused: RefCell<Option<(PathBuf, io::Error)>>,
}

impl WatchedFolder {
    pub fn new(folder: Folder) -> WatchedFolder {
        WatchedFolder {
            folder,
            refused: RefCell::default(),
        }
    }

    /// Returns the unreadable paths with their reasons.
    pub fn refused(&self) -> Option<String> {
        let refused = self.refused.borrow();
        let (path, error) = refused.as_ref()?;
        Some(format!(
            "{} cannot be read ({})",
            path.display(),
            SystemError(error)
        ))
    }

    fn note<T>(&self, path: &str, result: io::Result<T>) -> Option<T> {
        result
            .map_err(|error| {
                let mut refused = self.refused.borrow_mut();
                // Parts that a distribution keeps elsewhere need not be readable.
                let is_inside = !path.starts_with(['/', '.']);
                let is_refused = error.kind() == io::ErrorKind::PermissionDenied;
                if refused.is_none() && is_inside && is_refused {
                    *refused = Some((self.folder.0.join(path), error));
                }
            })
            .ok()
    }
}

impl Files for WatchedFolder {
    fn is_file(&self, path: &str) -> bool {
        let found = self.note(path, std::fs::metadata(self.folder.0.join(path)));
        found.is_some_and(|found| found.is_file())
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let opened = self.note(folder, std::fs::read_dir(self.folder.0.join(folder)));
        drop(opened);
        self.folder.names(folder)
    }

    fn text(&self, path: &str) -> Option<String> {
        // A file that is there and may not be read means something else than a missing one.
        let is_there = self.folder.is_file(path);
        let text = self.folder.text(path);
        if is_there && text.is_none() {
            self.note(
                path,
                std::fs::File::open(self.folder.0.join(path)).map(drop),
            );
        }
        text
    }
}
