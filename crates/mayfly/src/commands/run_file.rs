//! A file of a running server in the folder of control sockets: written at the start, removed at the end.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::processes::control_socket;

/// A file that is removed when this is dropped, unless another has taken its place.
pub struct RunFile {
    path: PathBuf,
    identity: FileIdentity,
}

impl RunFile {
    /// Writes it, for an account and group if it is not this process that reads it.
    ///
    /// # Errors
    /// The error of the system.
    pub fn write(
        path: &Path,
        bytes: &[u8],
        mode: u32,
        owner: Option<(u32, u32)>,
    ) -> io::Result<RunFile> {
        control_socket::make_folder(path);
        trusted_path::replace_for(path, bytes, mode, owner)?;
        Ok(RunFile {
            path: path.to_owned(),
            identity: identity(&fs::symlink_metadata(path)?),
        })
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        let found = fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| identity(&found) == self.identity) {
            // It may have been removed by hand.
            let _ = trusted_path::remove(&self.path);
        }
    }
}

/// The identity of our file: its device and number, and when it was written. The number of a file that was replaced is
/// given to another one.
type FileIdentity = (u64, u64, i64, i64);

fn identity(facts: &fs::Metadata) -> FileIdentity {
    (facts.dev(), facts.ino(), facts.mtime(), facts.mtime_nsec())
}
