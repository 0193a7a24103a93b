//! Files without a name, for data that does not fit into memory. No other account may read them, by
//! whatever path.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, fchmod};

/// A new file in the folder, with the mode 0600.
///
/// # Errors
/// An error of the system.
pub fn unnamed_in(folder: &Path) -> io::Result<File> {
    let file = tempfile::tempfile_in(folder)?;
    fchmod(&file, Mode::RUSR | Mode::WUSR)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn nobody_else_may_read_a_file_without_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = unnamed_in(folder.path()).unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
    }
}
