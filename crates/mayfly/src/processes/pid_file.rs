//! The pid file: written when all sockets listen, so that a script that waits for it
//! may connect at once; removed at the end. Read by `-s`.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use system_error::SystemError;

/// A pid file that is ours; removed with [`PidFile::remove`].
#[derive(Debug)]
pub struct PidFile {
    pub path: PathBuf,
}

impl PidFile {
    /// # Errors
    /// nginx's message.
    pub fn write(path: &Path) -> Result<PidFile, String> {
        let text = format!("{}\n", std::process::id());
        trusted_path::write(path, text.as_bytes(), 0o644).map_err(|error| {
            format!(
                "open() \"{}\" failed ({})",
                path.display(),
                SystemError(&error)
            )
        })?;
        Ok(PidFile {
            path: path.to_owned(),
        })
    }

    /// Removes it, unless it is another's by now: of a server that was started before this
    /// one had stopped.
    pub fn remove(&self) {
        let own = std::process::id().to_string();
        let is_ours =
            trusted_path::read_small(&self.path).is_ok_and(|(text, _)| text.trim() == own);
        if is_ours {
            // It may have been removed by hand.
            let _ = trusted_path::remove(&self.path);
        }
    }
}

/// Returns the pid file of a program while another one takes its place: nginx's
/// `nginx.pid.oldbin`.
pub fn of_predecessor(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".oldbin");
    name.into()
}

/// The process that a pid file names.
///
/// # Errors
/// nginx's message.
pub fn read(path: &Path) -> Result<Pid, String> {
    let (text, owner) = trusted_path::read_small(path).map_err(|error| {
        format!(
            "open() \"{}\" failed ({})",
            path.display(),
            SystemError(&error)
        )
    })?;
    let text = text.trim();
    let pid = text
        .parse()
        .ok()
        // A negative number would mean a group of processes.
        .filter(|number| *number > 0)
        .and_then(Pid::from_raw)
        .ok_or_else(|| format!("invalid PID number \"{text}\" in \"{}\"", path.display()))?;
    // Root would otherwise send a signal wherever another account wishes.
    match std::fs::metadata(format!("/proc/{text}")) {
        Ok(process) if owner != 0 && process.uid() != owner => Err(format!(
            "\"{}\" belongs to another account than process {text}",
            path.display()
        )),
        _ => Ok(pid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_file_of_a_successor_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        let own = PidFile::write(&path).unwrap();
        std::fs::write(&path, "1\n").unwrap();
        own.remove();
        assert!(path.exists());
        let own = PidFile::write(&path).unwrap();
        own.remove();
        assert!(!path.exists());
    }

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
