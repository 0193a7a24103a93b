//! Finds the php-fpm binary: the one named by the administrator, else a plain
//! `php-fpm` on `PATH` or in the usual folders, else the newest of the
//! versioned ones (`php-fpm8.2` on Debian, `php-fpm83` on Alpine). Choosing
//! is pure; only [`find_php_fpm`] looks at folders.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Folders looked into after those of `PATH`, which leaves out the `sbin`
/// ones for ordinary users.
const USUAL_FOLDERS: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];

/// The reason why no php-fpm was found.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// The one that was named is not there or not executable.
    #[error(
        "{0} is not an executable file; name another php-fpm or leave the name out to have one found"
    )]
    Named(PathBuf),
    /// No folder has php-fpm.
    #[error(
        "no php-fpm on this machine; on Debian and Ubuntu it is in the package `php-fpm` (apt install php-fpm); looked in {}",
        joined(.0)
    )]
    None(Vec<PathBuf>),
}

fn joined(folders: &[PathBuf]) -> String {
    let folders = folders.iter().map(|folder| folder.display().to_string());
    folders.collect::<Vec<_>>().join(":")
}

/// The php-fpm binary to start: `named` if given, else the best one found.
///
/// # Errors
/// [`FindError`], whose text names the package to install.
pub fn find_php_fpm(named: Option<&Path>) -> Result<PathBuf, FindError> {
    if let Some(path) = named {
        return if is_executable(path) {
            Ok(path.to_owned())
        } else {
            Err(FindError::Named(path.to_owned()))
        };
    }
    let folders = folders(std::env::var_os("PATH").as_deref());
    let found = folders
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|path| Rank::of(path).is_some() && is_executable(path));
    match choose(found) {
        Some(path) => Ok(path),
        None => Err(FindError::None(folders)),
    }
}

/// A php-fpm as a file: an upgrade of PHP puts another one in its place, while the former goes on
/// in the processes that run it, and keeps its number as long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl ProgramFile {
    /// Returns the file that a start would run now; `None`: php-fpm is not installed.
    pub fn of(named: Option<&Path>) -> Option<ProgramFile> {
        let path = find_php_fpm(named).ok()?;
        let facts = std::fs::metadata(&path).ok()?;
        Some(ProgramFile {
            path,
            device: facts.dev(),
            inode: facts.ino(),
        })
    }
}

/// The folders to look into, each once, in order.
fn folders(path: Option<&OsStr>) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    path.map(std::env::split_paths)
        .into_iter()
        .flatten()
        // A relative or empty part of PATH means the current folder, from which no daemon should be
        // started.
        .filter(|folder| folder.is_absolute())
        .chain(USUAL_FOLDERS.map(PathBuf::from))
        .filter(|folder| seen.insert(folder.clone()))
        .collect()
}

/// The best of the files found; of equals, the first.
fn choose(found: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    found
        .filter_map(|path| Some((Rank::of(&path)?, path)))
        .reduce(|best, other| if other.0 > best.0 { other } else { best })
        .map(|(_, path)| path)
}

/// How good a file name is; greater is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// `php-fpm8.2` or `php-fpm82`.
    Version(u32, u32),
    /// `php-fpm`: the default of the machine's administrator.
    Plain,
}

impl Rank {
    fn of(path: &Path) -> Option<Self> {
        let version = path.file_name()?.to_str()?.strip_prefix("php-fpm")?;
        if version.is_empty() {
            return Some(Self::Plain);
        }
        let (major, minor) = match version.split_once('.') {
            Some(parts) => parts,
            // Alpine's form has a major version of one digit.
            None => version.split_at_checked(1)?,
        };
        Some(Self::Version(major.parse().ok()?, minor.parse().ok()?))
    }
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_binary_is_the_plain_one_then_the_newest() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str], Option<&str>); 6] = [
            ("nothing", &[], None),
            ("newest", &["/s/php-fpm7.4", "/s/php-fpm8.10", "/s/php-fpm8.2"], Some("/s/php-fpm8.10")),
            ("plain", &["/s/php-fpm8.2", "/s/php-fpm"], Some("/s/php-fpm")),
            ("alpine", &["/s/php-fpm81", "/s/php-fpm83"], Some("/s/php-fpm83")),
            ("first of equals", &["/a/php-fpm8.2", "/b/php-fpm8.2"], Some("/a/php-fpm8.2")),
            ("others", &["/s/php-fpm-status", "/s/php-fpm8", "/s/php", "/s/php-fpm8.2.bak"], None),
        ];
        for (name, found, best) in cases {
            let chosen = choose(found.iter().map(PathBuf::from));
            assert_eq!(chosen.as_deref(), best.map(Path::new), "{name}");
        }
    }

    #[test]
    fn folders_are_those_of_path_then_the_usual_ones_without_repeats_or_relative_ones() {
        let found = folders(Some(OsStr::new("/opt/php/sbin:.::/usr/bin:/opt/php/sbin")));
        let expected = [
            "/opt/php/sbin",
            "/usr/bin",
            "/usr/local/sbin",
            "/usr/local/bin",
            "/usr/sbin",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
    }

    #[test]
    fn missing_binary_is_answered_with_the_package_to_install() {
        let message = FindError::None(vec!["/usr/sbin".into(), "/usr/bin".into()]).to_string();
        assert!(message.contains("apt install php-fpm"), "{message}");
        assert!(
            message.ends_with("looked in /usr/sbin:/usr/bin"),
            "{message}"
        );
    }

    #[test]
    fn named_binary_that_is_not_there_is_an_error_that_names_it() {
        let error = find_php_fpm(Some(Path::new("/nonexistent/php-fpm"))).unwrap_err();
        assert!(error.to_string().starts_with("/nonexistent/php-fpm is not"));
    }
}
