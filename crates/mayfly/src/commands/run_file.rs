//! A file of a running server in the folder of control sockets: written at the start, removed at the end.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::processes::control_socket;

/// A file that is removed when this is dropped, unless another has taken its place.
pub struct RunFile {
    path: PathBuf,
    /// Which file is ours: device and number.
    identity: (u64, u64),
}

impl RunFile {
    /// Writes it, for an account and group if it is not this process that reads it.
    ///
    /// # Errors
    /// What the system says.
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

fn identity(facts: &fs::Metadata) -> (u64, u64) {
    (facts.dev(), facts.ino())
}
