//! Opening files, and `open_file_cache`: the file found at a path, kept for a while by
//! each thread with or without the open file
//! (<https://nginx.org/en/docs/http/ngx_http_core_module.html#open_file_cache>).

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;
use site::{FileSettings, OpenFileCache};
use transport::open_file::{OpenFile, Stamp, Validators};

use server_base::lru::Lru;
use server_base::site_path::{self, Links};

/// The file or folder at a path.
#[derive(Debug, Clone)]
pub struct FoundFile {
    pub kind: FileKind,
    pub length: u64,
    /// Unix seconds.
    pub modified: i64,
    /// Open, where it was asked for and is a regular file.
    pub file: Option<Arc<OpenFile>>,
    /// Device and inode.
    identity: (u64, u64),
    stamp: Stamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    File,
    Directory,
    /// A FIFO, a socket, a device.
    Other,
}

/// Why there is nothing to be had at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The system call, as nginx names it.
    pub call: &'static str,
    pub errno: Errno,
}

impl Failure {
    /// There is no such file.
    pub fn is_missing(self) -> bool {
        matches!(
            self.errno,
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG
        )
    }

    /// It may not be read, or there is a symbolic link where none is allowed.
    pub fn is_forbidden(self) -> bool {
        matches!(self.errno, Errno::ACCESS | Errno::LOOP | Errno::MLINK)
    }

    pub fn error(self) -> io::Error {
        self.errno.into()
    }
}

/// The caller's use of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenPurpose {
    Contents,
    Facts,
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

/// The rule of `disable_symlinks` for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkRule {
    links: Links,
    /// Links in this beginning of the path are followed.
    free_bytes: usize,
}

impl LinkRule {
    const FOLLOW_ALL: LinkRule = LinkRule {
        links: Links::Followed,
        free_bytes: 0,
    };

    /// The rule for `path`; `from` is the value of `from=`, as in nginx.
    pub fn new(path: &[u8], from: &[u8], if_not_owner: bool) -> LinkRule {
        let links = match if_not_owner {
            true => Links::OfOwner,
            false => Links::Refused,
        };
        if from.is_empty() || !path.starts_with(from) {
            return LinkRule {
                links,
                free_bytes: 0,
            };
        }
        let free_bytes = match path.get(from.len()) {
            None => return LinkRule::FOLLOW_ALL,
            Some(b'/') => from.len(),
            Some(_) if from.ends_with(b"/") => from.len() - 1,
            Some(_) => 0,
        };
        LinkRule { links, free_bytes }
    }
}

/// Looks at `path`, and opens it where its contents are wanted.
pub fn look(
    path: &[u8],
    wanted: OpenPurpose,
    settings: &FileSettings,
) -> Result<FoundFile, Failure> {
    match settings
        .open_file_cache
        .as_ref()
        .filter(|cache| cache.max > 0)
    {
        Some(rules) => {
            CACHE.with_borrow_mut(|cache| cache.look(path, wanted, rules, clock::recent()))
        }
        None => look_now(path, wanted, LinkRule::FOLLOW_ALL),
    }
}

/// Like [`look`], without `open_file_cache`: each time, the links are looked at.
pub fn look_now(path: &[u8], wanted: OpenPurpose, rule: LinkRule) -> Result<FoundFile, Failure> {
    if path.contains(&0) {
        return Err(Failure {
            call: "open()",
            errno: Errno::NOENT,
        });
    }
    if wanted == OpenPurpose::Facts && rule == LinkRule::FOLLOW_ALL {
        let stat = site_path::stat(path).map_err(|errno| Failure {
            call: "stat()",
            errno,
        });
        return Ok(found(&stat?, None));
    }
    let flags = match wanted {
        OpenPurpose::Facts => OFlags::PATH,
        // Without NONBLOCK, opening a FIFO would wait for a process that writes to it.
        OpenPurpose::Contents => OFlags::RDONLY | OFlags::NONBLOCK,
    };
    let call = match rule.links {
        Links::Followed => "open()",
        Links::Refused | Links::OfOwner => "openat()",
    };
    let (opened, stat) = site_path::open_below(path, rule.free_bytes, flags, rule.links)
        .map_err(|errno| Failure { call, errno })?;
    let file =
        (wanted == OpenPurpose::Contents).then(|| Arc::new(OpenFile::new(File::from(opened))));
    Ok(found(&stat, file))
}

fn found(stat: &Stat, file: Option<Arc<OpenFile>>) -> FoundFile {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        _ => FileKind::Other,
    };
    FoundFile {
        kind,
        length: u64::try_from(stat.st_size).unwrap_or(0),
        modified: stat.st_mtime,
        file: file.filter(|_| kind == FileKind::File),
        identity: (stat.st_dev, stat.st_ino),
        stamp: Stamp::of(stat),
    }
}

impl FoundFile {
    /// Returns the validators of this state of the file.
    pub fn validators(&self) -> Validators {
        let make = || Validators::new(self.modified, self.length);
        match &self.file {
            Some(file) => file.validators(make),
            None => make(),
        }
    }

    /// The open file's bytes are to stay with it.
    fn keep_bytes(&self) {
        if let Some(file) = &self.file {
            file.keep(self.length, self.stamp);
        }
    }

    /// Takes the stamp of another look at the file: other times mean other bytes.
    fn take_stamp(&mut self, stamp: Stamp) {
        if self.stamp == stamp {
            return;
        }
        self.stamp = stamp;
        // Without a descriptor for it, the file is opened at its next use.
        let file = self.file.take().and_then(|file| file.again().ok());
        self.file = file.map(Arc::new);
        self.keep_bytes();
    }
}

/// `open_file_cache` of one thread.
#[derive(Default)]
struct Cache {
    by_path: Lru<KeptFile>,
}

struct KeptFile {
    result: Result<FoundFile, Failure>,
    uses: u32,
    /// Unix milliseconds.
    used_at: u64,
    checked_at: u64,
}

impl Cache {
    fn look(
        &mut self,
        path: &[u8],
        wanted: OpenPurpose,
        rules: &OpenFileCache,
        now: u64,
    ) -> Result<FoundFile, Failure> {
        self.drop_idle(rules, now);
        let mut uses = 1;
        if let Some(kept) = self.by_path.touch(path) {
            kept.uses = kept.uses.saturating_add(1);
            kept.used_at = now;
            uses = kept.uses;
            if !kept.is_valid(path, rules, now) {
                kept.result = Err(Failure {
                    call: "open()",
                    errno: Errno::NOENT,
                });
            } else if let Some(result) = kept.answer(wanted) {
                return result;
            }
        }
        let result = look_now(path, wanted, LinkRule::FOLLOW_ALL);
        if result.is_err() && !rules.errors {
            self.by_path.remove(path);
            return result;
        }
        let mut kept = KeptFile {
            result: result.clone(),
            uses,
            used_at: now,
            checked_at: now,
        };
        if let Ok(found) = &mut kept.result {
            match uses < rules.min_uses {
                true => found.file = None,
                false => found.keep_bytes(),
            }
        }
        self.by_path.insert(path, kept);
        if self.by_path.len() > rules.max {
            self.by_path.remove_oldest();
        }
        result
    }

    fn drop_idle(&mut self, rules: &OpenFileCache, now: u64) {
        // One or two at a time are enough to keep up with new files.
        for _ in 0..2 {
            let is_idle =
                |kept: &KeptFile| now.saturating_sub(kept.used_at) > clock::millis(rules.inactive);
            if self.by_path.oldest().is_some_and(|(_, kept)| is_idle(kept)) {
                self.by_path.remove_oldest();
            }
        }
    }
}

impl KeptFile {
    /// Checked lately, or unchanged.
    fn is_valid(&mut self, path: &[u8], rules: &OpenFileCache, now: u64) -> bool {
        if now.saturating_sub(self.checked_at) < clock::millis(rules.valid) {
            return true;
        }
        let looked = look_now(path, OpenPurpose::Facts, LinkRule::FOLLOW_ALL);
        let (Ok(old), Ok(new)) = (&self.result, looked) else {
            return false;
        };
        let facts = |found: &FoundFile| (found.kind, found.length, found.modified, found.identity);
        if facts(old) != facts(&new) {
            return false;
        }
        self.checked_at = now;
        if let Ok(old) = &mut self.result {
            old.take_stamp(new.stamp);
        }
        true
    }

    /// Returns the known result, if it is enough.
    fn answer(&self, wanted: OpenPurpose) -> Option<Result<FoundFile, Failure>> {
        match &self.result {
            Err(failure) => Some(Err(*failure)),
            Ok(found) => {
                let is_enough = wanted == OpenPurpose::Facts
                    || found.kind != FileKind::File
                    || found.file.is_some();
                is_enough.then(|| Ok(found.clone()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_beginning_of_a_path_that_from_names_is_free() {
        let free = |path: &str, from: &str| {
            LinkRule::new(path.as_bytes(), from.as_bytes(), false).free_bytes
        };
        assert_eq!(free("/a/b", ""), 0);
        assert_eq!(free("/a/b", "/c"), 0);
        assert_eq!(free("/a/b", "/a"), 2);
        assert_eq!(free("/a/b", "/a/"), 2);
        assert_eq!(free("/ab", "/a"), 0);
        let whole = LinkRule::new(b"/a/b", b"/a/b", false);
        assert_eq!(whole, LinkRule::FOLLOW_ALL);
    }

    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    fn rules(max: usize, min_uses: u32, errors: bool) -> OpenFileCache {
        OpenFileCache {
            max,
            inactive: Duration::from_secs(10),
            valid: Duration::from_secs(60),
            min_uses,
            errors,
        }
    }

    fn bytes(path: &std::path::Path) -> &[u8] {
        path.as_os_str().as_bytes()
    }

    struct Bench {
        _directory: tempfile::TempDir,
        path: PathBuf,
        cache: Cache,
        rules: OpenFileCache,
    }

    impl Bench {
        fn new(rules: OpenFileCache) -> Bench {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("file");
            Bench {
                _directory: directory,
                path,
                cache: Cache::default(),
                rules,
            }
        }

        fn length(&mut self, now: u64) -> Result<u64, Errno> {
            let found = self
                .cache
                .look(bytes(&self.path), OpenPurpose::Contents, &self.rules, now);
            found
                .map(|found| {
                    assert!(found.file.is_some());
                    found.length
                })
                .map_err(|failure| failure.errno)
        }

        fn is_open(&mut self) -> bool {
            let kept = self.cache.by_path.peek(bytes(&self.path));
            kept.is_some_and(|kept| kept.result.as_ref().is_ok_and(|found| found.file.is_some()))
        }
    }

    #[test]
    fn what_was_found_counts_until_it_is_looked_at_again() {
        let mut bench = Bench::new(rules(10, 1, false));
        std::fs::write(&bench.path, "1").unwrap();
        assert_eq!(bench.length(0), Ok(1));
        std::fs::remove_file(&bench.path).unwrap();
        std::fs::write(&bench.path, "123").unwrap();
        assert_eq!(bench.length(9_000), Ok(1));
        assert_eq!(bench.length(18_000), Ok(1));
        assert_eq!(
            bench.length(28_001),
            Ok(3),
            "left alone for longer than `inactive`"
        );
        bench.rules.valid = Duration::from_secs(1);
        std::fs::write(&bench.path, "12345").unwrap();
        assert_eq!(bench.length(29_000), Ok(3));
        assert_eq!(bench.length(29_001), Ok(5), "`valid` is over");
    }

    #[test]
    fn files_stay_open_once_they_are_used_often_enough() {
        let mut bench = Bench::new(rules(10, 2, false));
        std::fs::write(&bench.path, "1").unwrap();
        assert_eq!(bench.length(0), Ok(1));
        assert!(!bench.is_open());
        assert_eq!(bench.length(1), Ok(1));
        assert!(bench.is_open());
    }

    #[test]
    fn errors_are_kept_where_that_is_asked_for() {
        for (errors, wanted) in [(false, Ok(1)), (true, Err(Errno::NOENT))] {
            let mut bench = Bench::new(rules(10, 1, errors));
            assert_eq!(bench.length(0), Err(Errno::NOENT));
            std::fs::write(&bench.path, "1").unwrap();
            assert_eq!(bench.length(1), wanted);
            assert_eq!(bench.length(60_001), Ok(1));
        }
    }

    #[test]
    fn kept_bytes_go_when_the_file_was_written_to_within_the_second() {
        let mut bench = Bench::new(rules(10, 1, false));
        bench.rules.valid = Duration::from_secs(1);
        let write = |path: &PathBuf, text: &str, nanoseconds: u64| {
            std::fs::write(path, text).unwrap();
            let time = std::time::UNIX_EPOCH + Duration::new(1_000_000_000, 0);
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(time + Duration::from_nanos(nanoseconds))
                .unwrap();
        };
        let mut open_at = |path: &PathBuf, now: u64| {
            let found = bench
                .cache
                .look(bytes(path), OpenPurpose::Contents, &bench.rules, now);
            found.unwrap().file.unwrap()
        };
        let path = bench.path.clone();
        write(&path, "old", 1);
        let first = open_at(&path, 0);
        assert!(Arc::ptr_eq(&first, &open_at(&path, 1000)), "as it was");
        write(&path, "new", 2);
        assert!(
            Arc::ptr_eq(&first, &open_at(&path, 1999)),
            "taken for granted"
        );
        assert!(!Arc::ptr_eq(&first, &open_at(&path, 2000)), "looked at");
    }

    #[test]
    fn the_cache_holds_no_more_than_it_may() {
        let mut bench = Bench::new(rules(2, 1, true));
        for name in ["a", "b", "c", "a"] {
            bench.path.set_file_name(name);
            let _ = bench.length(0);
        }
        assert_eq!(bench.cache.by_path.len(), 2);
    }

    #[test]
    fn things_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("file"), "text").unwrap();
        std::os::unix::fs::symlink("file", path("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("fifo"), rustix::fs::Mode::RWXU).unwrap();
        for (name, no_symlinks, wanted) in [
            ("file", false, Ok((FileKind::File, true))),
            ("file", true, Ok((FileKind::File, true))),
            ("link", false, Ok((FileKind::File, true))),
            ("link", true, Err(Errno::LOOP)),
            ("fifo", false, Ok((FileKind::Other, false))),
            (".", false, Ok((FileKind::Directory, false))),
            ("none", false, Err(Errno::NOENT)),
            ("file/none", false, Err(Errno::NOTDIR)),
            ("socket", false, Err(Errno::NXIO)),
            ("file\0", false, Err(Errno::NOENT)),
        ] {
            let path = path(name);
            let rule = match no_symlinks {
                true => LinkRule::new(bytes(&path), b"", false),
                false => LinkRule::FOLLOW_ALL,
            };
            let found = look_now(bytes(&path), OpenPurpose::Contents, rule);
            let opened = found.map(|found| (found.kind, found.file.is_some()));
            assert_eq!(
                opened.map_err(|failure| failure.errno),
                wanted,
                "{name} {no_symlinks}"
            );
        }
        let facts = look_now(
            bytes(&path("fifo")),
            OpenPurpose::Facts,
            LinkRule::FOLLOW_ALL,
        )
        .unwrap();
        assert_eq!((facts.kind, facts.file.is_some()), (FileKind::Other, false));
    }
}
