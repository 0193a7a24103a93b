//! Disks on which zones are to keep pages and cannot.

use std::path::Path;

use machine_check::Finding;
use rustix::fs::{StatVfsMountFlags, statvfs};
use site::{CacheDisk, Site};

/// `root` is where the paths of the configuration begin.
pub fn check(site: &Site, root: &Path) -> Vec<Finding> {
    let zones = site.http.cache_zones.iter();
    let disks = zones.filter_map(|zone| Some((&*zone.name, zone.disk.as_ref()?)));
    disks
        .filter_map(|(name, disk)| look(name, disk, root))
        .collect()
}

fn look(zone: &str, disk: &CacheDisk, root: &Path) -> Option<Finding> {
    let folder = root.join(disk.folder.strip_prefix("/").unwrap_or(&disk.folder));
    let there = folder.ancestors().find(|path| path.exists())?;
    let facts = statvfs(there).ok()?;
    let what = match facts.f_flag.contains(StatVfsMountFlags::RDONLY) {
        true => "is on a file system that is read-only".to_owned(),
        false => {
            let free = facts.f_bavail.saturating_mul(facts.f_frsize);
            lack(free, disk.min_free_bytes)?
        }
    };
    let folder = disk.folder.display();
    Some(
        Finding::warning(
            "zone-disk",
            format!("Zone \"{zone}\" keeps nothing in {folder}, which {what}."),
        )
        .because("0 of its pages are there after a restart: PHP makes each of them anew.")
        .mended_by(format!(
            "df {folder}  then free some space, set min_free= or name another path in *_cache_path; or disk=off"
        )),
    )
}

/// Returns the fault if too few bytes are free.
fn lack(free: u64, min_free: u64) -> Option<String> {
    (free <= min_free).then(|| {
        format!(
            "has {} MB free where {} MB stay free (min_free)",
            free >> 20,
            min_free >> 20
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_without_room_for_pages_is_told() {
        assert_eq!(lack(600 << 20, 512 << 20), None);
        let text = "has 300 MB free where 512 MB stay free (min_free)";
        assert_eq!(lack(300 << 20, 512 << 20).as_deref(), Some(text));
        let disk = |min_free_bytes| CacheDisk {
            folder: "/var/cache/mayfly/mayfly-pages".into(),
            max_bytes: None,
            min_free_bytes,
            timeout: std::time::Duration::ZERO,
        };
        let root = tempfile::tempdir().unwrap();
        assert!(look("pages", &disk(0), root.path()).is_none());
        let finding = look("pages", &disk(u64::MAX), root.path()).unwrap();
        assert!(
            finding
                .what
                .starts_with("Zone \"pages\" keeps nothing in /var/cache"),
            "{finding:?}"
        );
    }
}
