//! Responses kept as files (`*_store`): a copy of the client's response goes into a temporary
//! file, which takes its place by one rename when the response is whole.
//!
//! Invariant: under the final name there is a complete response or none at all.

use std::fs::{DirBuilder, FileTimes, Permissions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::NamedTempFile;

/// A response on its way into a file. Dropped before its end, nothing is left.
pub struct FileCopy {
    rules: site::FileCopy,
    temp_folder: PathBuf,
    temp: Option<NamedTempFile>,
    path: PathBuf,
    modified: Option<SystemTime>,
    /// The body's length in bytes: as the upstream declared it, and as received.
    length: Option<u64>,
    written: u64,
}

impl FileCopy {
    /// Begins the copy that `rules` ask for, to be called `path` once it is whole. `length` is
    /// the length that the upstream declared.
    pub fn new(
        rules: site::FileCopy,
        temp_folder: PathBuf,
        path: PathBuf,
        modified: Option<SystemTime>,
        length: Option<u64>,
    ) -> FileCopy {
        FileCopy {
            rules,
            temp_folder,
            temp: None,
            path,
            modified,
            length,
            written: 0,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// When they cannot be written; the copy is then worth nothing.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.temp()?.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// The response is whole: gives the file its name. A response shorter than its declared
    /// length is dropped.
    ///
    /// # Errors
    /// When the file cannot take its place.
    pub fn finish(mut self) -> io::Result<()> {
        if self.length.is_some_and(|length| length != self.written) {
            return Ok(());
        }
        self.temp()?;
        let Some(temp) = self.temp.take() else {
            return Ok(());
        };
        self.dress(&temp)?;
        let mut result = temp.persist(&self.path);
        if let Err(error) = &mut result
            && error.error.kind() == io::ErrorKind::NotFound
        {
            self.make_folders()?;
            result = result.or_else(|error| error.file.persist(&self.path));
        }
        match result {
            Err(error) if error.error.kind() == io::ErrorKind::CrossesDevices => {
                self.copy_over(error.file)
            }
            result => result.map(drop).map_err(|error| error.error),
        }
    }

    fn temp(&mut self) -> io::Result<&mut NamedTempFile> {
        let temp = match self.temp.take() {
            Some(temp) => temp,
            None => new_file(&self.temp_folder)?,
        };
        Ok(self.temp.insert(temp))
    }

    /// Rights and time, before anybody sees the file.
    fn dress(&self, file: &NamedTempFile) -> io::Result<()> {
        let file = file.as_file();
        file.set_permissions(Permissions::from_mode(self.rules.mode))?;
        match self.modified {
            Some(time) => file.set_times(FileTimes::new().set_accessed(time).set_modified(time)),
            None => Ok(()),
        }
    }

    fn make_folders(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(self.rules.folder_mode());
        builder.create(folder(&self.path))
    }

    /// The temporary folder is on another file system: another temporary file
    /// beside the place, so that the last step is a rename all the same.
    fn copy_over(&self, mut from: NamedTempFile) -> io::Result<()> {
        let mut beside = NamedTempFile::new_in(folder(&self.path))?;
        from.rewind()?;
        io::copy(from.as_file_mut(), beside.as_file_mut())?;
        self.dress(&beside)?;
        beside
            .persist(&self.path)
            .map(drop)
            .map_err(|error| error.error)
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn new_file(folder: &Path) -> io::Result<NamedTempFile> {
    NamedTempFile::new_in(folder).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
            NamedTempFile::new_in(folder)
        }
        _ => Err(error),
    })
}
