//! The pid file: written when all sockets listen, so that whoever waits for it
//! may connect at once; removed at the end. Read by `-s`.

use std::path::{Path, PathBuf};

use rustix::process::Pid;

use crate::system_error::reason;

/// A pid file that is ours; removed with [`PidFile::remove`].
#[derive(Debug)]
pub struct PidFile {
    pub path: PathBuf,
}

impl PidFile {
    /// # Errors
    /// nginx's message.
    pub fn write(path: &Path) -> Result<PidFile, String> {
        std::fs::write(path, format!("{}\n", std::process::id())).map_err(|error| {
            format!("open() \"{}\" failed ({})", path.display(), reason(&error))
        })?;
        Ok(PidFile {
            path: path.to_owned(),
        })
    }

    pub fn remove(&self) {
        // It may have been removed by hand.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The process that a pid file names.
///
/// # Errors
/// nginx's message.
pub fn read(path: &Path) -> Result<Pid, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("open() \"{}\" failed ({})", path.display(), reason(&error)))?;
    let text = text.trim();
    text.parse()
        .ok()
        // A negative number would mean a group of processes.
        .filter(|number| *number > 0)
        .and_then(Pid::from_raw)
        .ok_or_else(|| format!("invalid PID number \"{text}\" in \"{}\"", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_number_is_taken_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        for (text, expected) in [
            ("12\n", Some(12)),
            ("", None),
            ("0", None),
            ("-1", None),
            ("x", None),
        ] {
            std::fs::write(&path, text).unwrap();
            let found = read(&path).ok().map(|pid| pid.as_raw_nonzero().get());
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
