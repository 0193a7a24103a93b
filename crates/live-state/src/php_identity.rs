//! The identity of the PHP that runs: the settings of a pool, and the files in the places where programs, extensions
//! and settings of PHP are. A page that was made by another PHP is not read back from disk (`cache_learn_replay`).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use learning::Digest;
use site::PhpPool;

/// The usual places of PHP in distributions and in images of containers: a folder, and the beginning of the names in
/// it.
const PLACES: [(&str, &str); 10] = [
    ("/etc", "php"),
    ("/usr/lib", "php"),
    ("/usr/lib64", "php"),
    ("/usr/local/bin", "php"),
    ("/usr/local/etc", "php"),
    ("/usr/local/lib", "php"),
    ("/usr/local/sbin", "php"),
    ("/usr/sbin", "php"),
    ("/usr/bin", "php"),
    ("/opt", "php"),
];

/// `/etc/php/8.2/fpm/conf.d/20-mysqli.ini`, and `/usr/local/lib/php/extensions/no-debug-non-zts-20220829/mysqli.so`.
const DEEPEST: usize = 5;

/// With more files the identity of PHP is not known.
const MAX_FILES: usize = 20_000;

/// `None`: there is too much to look at.
pub fn of(pool: &PhpPool) -> Option<u64> {
    let mut digest = Digest::default();
    let made_by = (
        &pool.binary,
        &pool.user,
        &pool.chdir,
        &pool.env,
        pool.clear_env,
    );
    let settings = format!("{made_by:?} {:?} {:?}", pool.settings, pool.extra);
    digest.read(settings.as_bytes());
    let mut left = MAX_FILES;
    if let Some(binary) = &pool.binary {
        add(binary, &mut digest);
    }
    for (folder, begin) in PLACES {
        add_all(Path::new(folder), begin, DEEPEST, (&mut digest, &mut left))?;
    }
    Some(digest.finish())
}

/// The files whose names begin so, and all below.
fn add_all(
    folder: &Path,
    begin: &str,
    deepest: usize,
    (digest, left): (&mut Digest, &mut usize),
) -> Option<()> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_meant = |path: &Path| {
        let name = path.file_name().map(|name| name.as_encoded_bytes());
        name.is_some_and(|name| name.starts_with(begin.as_bytes()))
    };
    let mut paths: Vec<_> = paths.filter(|path| is_meant(path)).collect();
    paths.sort_unstable();
    for path in paths {
        *left = left.checked_sub(1)?;
        add(&path, digest);
        // A link leads to a file that has another name, or to nowhere.
        if deepest > 0 && path.symlink_metadata().is_ok_and(|it| it.is_dir()) {
            add_all(&path, "", deepest - 1, (digest, left))?;
        }
    }
    Some(())
}

/// A file, or the one that a link leads to.
fn add(path: &Path, digest: &mut Digest) {
    digest.read(path.as_os_str().as_encoded_bytes());
    let facts = fs::metadata(path).ok();
    let parts = facts.map(|it| {
        [
            it.mtime(),
            it.mtime_nsec(),
            it.size().cast_signed(),
            it.ino().cast_signed(),
        ]
    });
    for part in parts.into_iter().flatten() {
        digest.read(&part.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_folder(folder: &Path, mut left: usize) -> Option<u64> {
        let mut digest = Digest::default();
        add_all(folder, "php", DEEPEST, (&mut digest, &mut left))?;
        Some(digest.finish())
    }

    #[test]
    fn each_file_below_a_place_counts_and_others_do_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let conf = folder.path().join("php/8.2/fpm/conf.d");
        fs::create_dir_all(&conf).expect("folders");
        fs::write(conf.join("20-mysqli.ini"), "extension=mysqli.so").expect("a file");
        let first = of_folder(folder.path(), 100);
        assert!(first.is_some());
        fs::write(folder.path().join("other"), "").expect("a file");
        assert_eq!(of_folder(folder.path(), 100), first);
        fs::write(conf.join("20-mysqli.ini"), "extension=mysqli.so;").expect("a file");
        let second = of_folder(folder.path(), 100);
        assert_ne!(second, first);
        fs::write(conf.join("30-new.ini"), "").expect("a file");
        assert_ne!(of_folder(folder.path(), 100), second);
        assert_eq!(of_folder(folder.path(), 3), None, "there is more");
    }
}
