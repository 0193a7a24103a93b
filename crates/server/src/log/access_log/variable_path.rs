//! Access logs whose path has variables in it. The file is opened for each line, unless
//! `open_log_file_cache` keeps it open. A file is only made where the request's root exists, as in
//! nginx: with `$host` in the path, any client could otherwise fill the directory with files.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use site::{LogLevel, OpenLogFileCache, Part, Template};

use crate::exchange::request::Request;
use crate::exchange::variable;
use crate::exchange::variables::files::document_root;
use crate::log::error_log;
use live_state::log_sinks::open_append;
use server_base::lru::Lru;
use system_error::SystemError;

/// Log files that a thread keeps open.
#[derive(Default)]
pub struct OpenFiles {
    by_path: Lru<KeptLog>,
}

struct KeptLog {
    /// `None` until it was used `min_uses` times.
    file: Option<File>,
    uses: u32,
    /// Unix milliseconds.
    used_at: u64,
    checked_at: u64,
}

impl OpenFiles {
    /// Writes `line` to the file that `path` names for this request.
    pub fn write(&mut self, request: &Request, path: &Template, line: &[u8]) {
        let Some(path) = evaluate(request, path) else {
            error_log::request(
                request,
                LogLevel::Error,
                format_args!("a log file name with \"..\" or NUL from a variable is refused"),
            );
            return;
        };
        let settings = request.settings();
        let name = Path::new(OsStr::from_bytes(&path));
        let written = match &settings.open_log_file_cache {
            Some(cache) => {
                self.write_kept(cache, name, line, clock::now(), || root_exists(request))
            }
            None if root_exists(request) => {
                open_append(name).and_then(|mut file| file.write_all(line))
            }
            None => Ok(()),
        };
        if let Err(error) = written {
            error_log::request(
                request,
                LogLevel::Crit,
                format_args!(
                    "open() \"{}\" failed ({})",
                    name.display(),
                    SystemError(&error)
                ),
            );
        }
    }

    fn write_kept(
        &mut self,
        cache: &OpenLogFileCache,
        path: &Path,
        line: &[u8],
        now: u64,
        may_open: impl FnOnce() -> bool,
    ) -> io::Result<()> {
        self.drop_idle(cache, now);
        let key = path.as_os_str().as_bytes();
        let mut uses = 1;
        if let Some(kept) = self.by_path.touch(key) {
            kept.uses = kept.uses.saturating_add(1);
            uses = kept.uses;
            kept.used_at = now;
            if now.saturating_sub(kept.checked_at) >= clock::millis(cache.valid) {
                kept.checked_at = now;
                if kept.file.as_ref().is_some_and(|file| !is_same(file, path)) {
                    kept.file = None;
                }
            }
            if let Some(file) = &mut kept.file {
                return file.write_all(line);
            }
        }
        // A file that cannot be opened takes no other's place.
        let opened = if may_open() {
            open_append(path).map(Some)
        } else {
            Ok(None)
        };
        let Ok(Some(mut file)) = opened else {
            self.by_path.remove(key);
            return opened.map(|_| ());
        };
        let written = file.write_all(line);
        let kept = KeptLog {
            file: (uses >= cache.min_uses).then_some(file),
            uses,
            used_at: now,
            checked_at: now,
        };
        self.by_path.insert(key, kept);
        if self.by_path.len() > cache.max.max(1) {
            self.by_path.remove_oldest();
        }
        written
    }

    fn drop_idle(&mut self, cache: &OpenLogFileCache, now: u64) {
        // One or two at a time are enough to keep up with new files.
        for _ in 0..2 {
            let idle =
                |kept: &KeptLog| now.saturating_sub(kept.used_at) > clock::millis(cache.inactive);
            if self.by_path.oldest().is_some_and(|(_, kept)| idle(kept)) {
                self.by_path.remove_oldest();
            }
        }
    }

    /// Closes them all: after a rotation.
    pub fn close(&mut self) {
        self.by_path = Lru::default();
    }
}

/// Does the name still lead to this file?
fn is_same(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => open.ino() == named.ino() && open.dev() == named.dev(),
        _ => false,
    }
}

/// The path; `None` if a variable would lead out of the directory.
fn evaluate(request: &Request, template: &Template) -> Option<Vec<u8>> {
    let path = variable::evaluate(request, template);
    let steps_up = |text: &[u8]| text.split(|&byte| byte == b'/').any(|part| part == b"..");
    let is_meant = template.parts.iter().any(|part| match part {
        Part::Literal(text) => steps_up(text),
        Part::Variable(_) => false,
    });
    let is_refused = path.contains(&0) || (steps_up(&path) && !is_meant);
    (!is_refused).then_some(path)
}

fn root_exists(request: &Request) -> bool {
    let root = document_root(request);
    let is_whole_path = request.location().is_pattern
        && matches!(request.settings().files.root, site::Root::Alias(_));
    let error = match std::fs::metadata(OsStr::from_bytes(&root)) {
        Ok(metadata) if metadata.is_dir() || is_whole_path => return true,
        Ok(_) => io::Error::from_raw_os_error(rustix::io::Errno::NOTDIR.raw_os_error()),
        Err(error) => error,
    };
    error_log::request(
        request,
        LogLevel::Error,
        format_args!(
            "testing \"{}\" existence failed ({})",
            String::from_utf8_lossy(&root),
            SystemError(&error)
        ),
    );
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn cache(max: usize, min_uses: u32) -> OpenLogFileCache {
        OpenLogFileCache {
            max,
            inactive: Duration::from_secs(10),
            min_uses,
            valid: Duration::from_secs(60),
        }
    }

    #[test]
    fn files_are_kept_open_within_their_bounds() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let mut files = OpenFiles::default();
        let open = |files: &mut OpenFiles, name: &str| {
            files
                .by_path
                .peek(path(name).as_os_str().as_bytes())
                .is_some_and(|kept| kept.file.is_some())
        };
        let cache = cache(2, 2);
        for (now, name, is_open) in [
            (0, "a", false),
            (1, "a", true),
            (2, "b", false),
            (3, "c", false),
        ] {
            files
                .write_kept(&cache, &path(name), b"line\n", now, || true)
                .unwrap();
            assert_eq!(open(&mut files, name), is_open, "{name} at {now}");
        }
        assert_eq!(files.by_path.len(), 2);
        assert!(!open(&mut files, "a"));
        assert_eq!(std::fs::read(path("a")).unwrap(), b"line\nline\n");
        files
            .write_kept(&cache, &path("d"), b"line\n", 20_000, || true)
            .unwrap();
        assert_eq!(files.by_path.len(), 1);
    }

    #[test]
    fn a_file_that_was_moved_away_is_opened_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let mut files = OpenFiles::default();
        let cache = cache(2, 1);
        files
            .write_kept(&cache, &path, b"one\n", 0, || true)
            .unwrap();
        std::fs::rename(&path, directory.path().join("b")).unwrap();
        files
            .write_kept(&cache, &path, b"two\n", 5_000, || true)
            .unwrap();
        files
            .write_kept(&cache, &path, b"three\n", 6_000, || true)
            .unwrap();
        files
            .write_kept(&cache, &path, b"four\n", 61_000, || true)
            .unwrap();
        assert_eq!(
            std::fs::read(directory.path().join("b")).unwrap(),
            b"one\ntwo\nthree\n"
        );
        assert_eq!(std::fs::read(&path).unwrap(), b"four\n");
    }

    #[test]
    fn a_file_that_cannot_be_opened_takes_no_others_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let nowhere = directory.path().join("missing/b");
        let mut files = OpenFiles::default();
        let cache = cache(1, 1);
        files
            .write_kept(&cache, &path, b"one\n", 0, || true)
            .unwrap();
        assert!(
            files
                .write_kept(&cache, &nowhere, b"lost\n", 1, || true)
                .is_err()
        );
        std::fs::rename(&path, directory.path().join("moved")).unwrap();
        files
            .write_kept(&cache, &path, b"two\n", 2, || true)
            .unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn no_file_is_made_for_a_site_that_does_not_exist() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let mut files = OpenFiles::default();
        files
            .write_kept(&cache(2, 1), &path, b"one\n", 0, || false)
            .unwrap();
        assert!(!path.exists());
        assert_eq!(files.by_path.len(), 0);
    }
}
