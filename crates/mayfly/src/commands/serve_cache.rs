//! The folders in which `mayfly serve` keeps the pages of sites, one for each site below [`crate::paths::cache`]. A start notes in
//! its own which site that is, and removes those of sites that are gone or were not served for long.
//!
//! A folder goes only while the locks of all zones in it are held: no server keeps pages there. Pages are made again, so that
//! one that went too soon costs time and nothing else.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use disk_tier::{FolderLock, Storage, SystemStorage};
use site::Site;

/// The file that names the site whose pages these are.
const SITE_FILE: &str = "site";
/// How the file is called until it is whole.
const UNFINISHED: &str = ".site.";
/// Held by the start that looks for folders to remove.
const LOCK_FILE: &str = "lock";
/// The prefix of zones' folders in such a folder, which also holds purges that PHP has left.
const OF_ZONE: &str = "mayfly-";
const LEFT_PURGES: &str = "left-purges";
/// Behind the name of a folder that is about to be removed.
const REMOVED: &str = ".removed";

/// A site that was not served for so long is not served any more.
const UNUSED_FOR: Duration = Duration::from_secs(30 * 24 * 3600);
/// A site whose folder is gone: its disk may be away for a while.
const GONE_FOR: Duration = Duration::from_secs(24 * 3600);
/// Folders that a start looks at, and files of each.
const MAX_FOLDERS: usize = 16_384;
const MAX_FILES: usize = 4096;

/// The folders of the zones of `site` that `serve` has chosen.
fn own_folders(site: &Site, cache: &Path) -> Vec<PathBuf> {
    let zones = site.http.cache_zones.iter();
    let kept = zones.filter(|zone| zone.disk.is_some() && zone.path.parent() == Some(cache));
    kept.map(|zone| zone.path.clone()).collect()
}

/// Notes that pages of the site in `served`, a folder or an address, are kept there. Obstacles are left to the zones,
/// which report them.
pub fn note_site(site: &Site, cache: &Path, served: &Path) {
    for folder in own_folders(site, cache) {
        let _ = trusted_path::make_open_folder(cache);
        let _ = trusted_path::make_open_folder(&folder);
        let name = served.as_os_str().as_bytes();
        let _ = trusted_path::replace(&folder.join(SITE_FILE), name, 0o644);
    }
}

/// Removes folders that are of no use any more, by a thread of its own. `say` gets a line if there were any.
pub fn remove_unused(site: &Site, cache: &Path, say: impl FnOnce(String) + Send + 'static) {
    let own = own_folders(site, cache);
    if own.is_empty() {
        return;
    }
    let cache = cache.to_owned();
    let work = move || {
        let count = remove_at(&cache, &own, SystemTime::now());
        if count > 0 {
            say(format!(
                "{count} folders with pages of sites that are gone, or were not served for 30 days, were removed from {}",
                cache.display()
            ));
        }
    };
    // Without a thread the next start does it.
    let _ = std::thread::Builder::new()
        .name("serve-cache".to_owned())
        .spawn(work);
}

/// Removes folders below `cache`, but none of `own`; how many those were.
fn remove_at(cache: &Path, own: &[PathBuf], now: SystemTime) -> usize {
    let storage = SystemStorage::new();
    let Ok(Some(_lock)) = storage.lock(&cache.join(LOCK_FILE)) else {
        return 0;
    };
    let entries = std::fs::read_dir(cache).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).take(MAX_FOLDERS);
    let removed = paths.filter(|path| !own.contains(path) && remove_one(path, &storage, now));
    removed.count()
}

/// Removes a folder if it is one of `serve`, of no use, and no process keeps pages there.
fn remove_one(folder: &Path, storage: &SystemStorage, now: SystemTime) -> bool {
    let Some(name) = folder.file_name().and_then(OsStr::to_str) else {
        return false;
    };
    if let Some(name) = name.strip_suffix(REMOVED) {
        // A start has ended before it was done.
        return is_digest(name) && std::fs::remove_dir_all(folder).is_ok();
    }
    let Some(found) = SiteFolder::look(folder).filter(|_| is_digest(name)) else {
        return false;
    };
    if !found.is_unused(now) {
        return false;
    }
    let locks: Option<Vec<Box<dyn FolderLock>>> = found
        .zones
        .iter()
        .map(|zone| storage.lock(&zone.join(LOCK_FILE)).ok().flatten())
        .collect();
    // A start of this site has put its file there before the locks were held.
    let changed = std::fs::symlink_metadata(folder).and_then(|it| it.modified());
    if locks.is_none() || changed.is_ok_and(|changed| changed != found.changed) {
        return false;
    }
    // At once: a server that starts now makes a folder of its own.
    let removed = folder.with_file_name(format!("{name}{REMOVED}"));
    std::fs::rename(folder, &removed).is_ok() && std::fs::remove_dir_all(&removed).is_ok()
}

/// The content of a folder of pages.
struct SiteFolder {
    zones: Vec<PathBuf>,
    /// The site, if the file names it.
    site: Option<PathBuf>,
    /// When a name in it has changed.
    changed: SystemTime,
    /// When anything in it or in the folders of zones has.
    used: SystemTime,
}

impl SiteFolder {
    /// `None`: it is not one of this account's, or has something else in it.
    fn look(folder: &Path) -> Option<SiteFolder> {
        let own = rustix::process::geteuid().as_raw();
        let facts = std::fs::symlink_metadata(folder).ok()?;
        if !facts.is_dir() || facts.uid() != own {
            return None;
        }
        let changed = facts.modified().ok()?;
        let mut found = SiteFolder {
            zones: Vec::new(),
            site: None,
            changed,
            used: changed,
        };
        for entry in std::fs::read_dir(folder).ok()?.take(MAX_FILES) {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?;
            if name == SITE_FILE {
                let (text, owner) = trusted_path::read_small(&path).unwrap_or_default();
                found.site = (owner == own && text.starts_with('/')).then(|| PathBuf::from(text));
            } else if name.starts_with(OF_ZONE) {
                found.zones.push(path.clone());
            } else if name != LEFT_PURGES && !name.starts_with(UNFINISHED) {
                return None;
            }
            found.note_use(&path);
        }
        for zone in found.zones.clone() {
            let files = std::fs::read_dir(zone).into_iter().flatten().flatten();
            files
                .take(MAX_FILES)
                .for_each(|file| found.note_use(&file.path()));
        }
        Some(found)
    }

    fn note_use(&mut self, path: &Path) {
        let changed = std::fs::symlink_metadata(path).and_then(|facts| facts.modified());
        self.used = self.used.max(changed.unwrap_or(self.used));
    }

    fn is_unused(&self, now: SystemTime) -> bool {
        let age = now.duration_since(self.used).unwrap_or_default();
        let is_gone = || {
            let site = self.site.as_deref();
            site.is_some_and(|site| site.symlink_metadata().is_err_and(|it| is_missing(&it)))
        };
        age >= UNUSED_FOR || (age >= GONE_FOR && is_gone())
    }
}

fn is_missing(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
    )
}

/// Whether a name is one that `serve` gives to the folder of a site.
fn is_digest(name: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    name.len() == 16 && name.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "0123456789abcdef";

    fn folder_of(cache: &Path, name: &str, site: Option<&str>) -> PathBuf {
        let folder = cache.join(name);
        std::fs::create_dir_all(folder.join("mayfly-pages")).unwrap();
        std::fs::create_dir(folder.join(LEFT_PURGES)).unwrap();
        std::fs::write(folder.join("mayfly-pages/seg-000001"), "pages").unwrap();
        if let Some(site) = site {
            std::fs::write(folder.join(SITE_FILE), site).unwrap();
        }
        folder
    }

    /// Sets the files of the folder to a time this many days ago.
    fn age(folder: &Path, days: u64) {
        let long_ago = SystemTime::now() - Duration::from_secs(days * 24 * 3600 + 60);
        for path in [
            "mayfly-pages/seg-000001",
            "mayfly-pages",
            LEFT_PURGES,
            SITE_FILE,
            ".",
        ] {
            if let Ok(file) = std::fs::File::open(folder.join(path)) {
                file.set_modified(long_ago).unwrap();
            }
        }
    }

    fn removed(cache: &Path, own: &[PathBuf]) -> usize {
        remove_at(cache, own, SystemTime::now())
    }

    #[test]
    fn pages_of_a_site_that_is_gone_or_was_not_served_for_long_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let there = root.path().to_str().unwrap();
        for (site, days, is_removed) in [
            (Some(there), 29, false),
            (Some(there), 30, true),
            (Some("/no/such/site"), 0, false),
            (Some("/no/such/site"), 1, true),
            (Some("http://127.0.0.1:8080"), 29, false),
            (None, 29, false),
            (None, 30, true),
        ] {
            let cache = tempfile::tempdir().unwrap();
            let folder = folder_of(cache.path(), NAME, site);
            age(&folder, days);
            let count = removed(cache.path(), &[]);
            assert_eq!(count, usize::from(is_removed), "{site:?} after {days} days");
            assert_eq!(folder.exists(), !is_removed);
        }
    }

    #[test]
    fn a_folder_in_use_and_what_is_not_of_serve_stay() {
        let cache = tempfile::tempdir().unwrap();
        let at = |name: &str| folder_of(cache.path(), name, None);
        let own = at("00000000000000aa");
        let used = at("00000000000000bb");
        let foreign = at("00000000000000cc");
        let (other, library) = (at("wordpress"), at("library"));
        std::fs::write(foreign.join("notes.txt"), "of somebody").unwrap();
        let all = [&own, &used, &foreign, &other, &library];
        let link = cache.path().join("00000000000000dd");
        std::os::unix::fs::symlink(&own, &link).unwrap();
        let lock = SystemStorage::new().lock(&used.join("mayfly-pages/lock"));
        let lock = lock.unwrap().expect("it is free");
        std::fs::File::open(used.join("mayfly-pages/lock"))
            .unwrap()
            .set_modified(SystemTime::UNIX_EPOCH)
            .unwrap();
        all.iter().for_each(|it| age(it, 365));
        let own_folders = std::slice::from_ref(&own);
        assert_eq!(removed(cache.path(), own_folders), 0);
        assert!(all.iter().all(|it| it.exists()));
        drop(lock);
        assert_eq!(removed(cache.path(), own_folders), 1);
        assert!(!used.exists() && own.exists() && link.exists());
    }

    #[test]
    fn one_start_at_a_time_removes_and_what_a_killed_one_left_is_removed() {
        let cache = tempfile::tempdir().unwrap();
        let folder = folder_of(cache.path(), &format!("{NAME}{REMOVED}"), None);
        let lock = SystemStorage::new().lock(&cache.path().join(LOCK_FILE));
        assert_eq!(removed(cache.path(), &[]), 0);
        drop(lock);
        assert_eq!(removed(cache.path(), &[]), 1);
        assert!(!folder.exists());
    }
}
