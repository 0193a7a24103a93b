//! Accounts that could replace a file: its owner, and every account that may write one of the
//! folders that lead to it.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// An account or a group that may change the target of a path. Root always may and is not named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Changer {
    Account(u32),
    Group(u32),
    Everybody,
}

impl fmt::Display for Changer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Account(number) => write!(formatter, "account {number}"),
            Self::Group(number) => write!(formatter, "group {number}"),
            Self::Everybody => formatter.write_str("everybody"),
        }
    }
}

/// Returns the accounts that could replace the file at `path`, which is resolved; sorted.
///
/// # Errors
/// The error of the system.
pub fn changers(path: &Path) -> io::Result<Vec<Changer>> {
    let mut found = Vec::new();
    for (step, path) in path.ancestors().enumerate() {
        let status = fs::symlink_metadata(path)?;
        add(
            &mut found,
            status.uid(),
            status.gid(),
            status.mode(),
            step > 0,
        );
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn add(found: &mut Vec<Changer>, account: u32, group: u32, mode: u32, is_folder: bool) {
    const STICKY: u32 = 0o1000;
    if account != 0 {
        found.push(Changer::Account(account));
    }
    // In a folder with the sticky bit, only the owner of a file may replace it.
    if is_folder && mode & STICKY != 0 {
        return;
    }
    if mode & 0o020 != 0 && group != 0 {
        found.push(Changer::Group(group));
    }
    if mode & 0o002 != 0 {
        found.push(Changer::Everybody);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_and_those_who_may_write_can_change_a_file() {
        for (account, group, mode, is_folder, expected) in [
            (0, 0, 0o100_555, false, &[][..]),
            (33, 33, 0o100_555, false, &[Changer::Account(33)]),
            (0, 33, 0o040_775, true, &[Changer::Group(33)]),
            (0, 0, 0o040_777, true, &[Changer::Everybody]),
            (0, 0, 0o041_777, true, &[]),
        ] {
            let mut found = Vec::new();
            add(&mut found, account, group, mode, is_folder);
            assert_eq!(found, expected, "{account} {group} {mode:o}");
        }
    }

    #[test]
    fn all_folders_of_a_path_count() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("file"), b"").unwrap();
        let path = inner.canonicalize().unwrap().join("file");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(&inner, open).unwrap();
        assert!(changers(&path).unwrap().contains(&Changer::Everybody));
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(&inner, closed).unwrap();
        assert!(!changers(&path).unwrap().contains(&Changer::Everybody));
    }
}
