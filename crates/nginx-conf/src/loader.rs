//! Sources of a configuration's texts.
//!
//! The only file of this crate that touches the file system. A worker without
//! the rights to read the files is given their texts in a [`MemoryLoader`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

use crate::load::MAX_TOTAL_BYTES;
use crate::source::Sources;

/// Reads configuration files.
pub trait Loader {
    /// The content of a file.
    ///
    /// # Errors
    ///
    /// The error of the system, which is shown to the operator.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The paths that match a pattern of `*`, `?` and `[...]`, in byte order.
    /// An empty result is not an error.
    ///
    /// # Errors
    ///
    /// A pattern that is invalid.
    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>>;
}

/// The rules of glob(3) without flags: `*` and `?` match neither `/` nor a dot
/// at the start of a name.
const MATCH: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// The pattern in the dialect of the `glob` crate, which writes `[!a]` for
/// `[^a]`, gives `**` a meaning, and refuses a `[` that is never closed.
fn translate(pattern: &Path) -> io::Result<String> {
    let invalid = |message: &str| io::Error::new(io::ErrorKind::InvalidInput, message);
    let text = pattern
        .to_str()
        .ok_or_else(|| invalid("pattern is not UTF-8"))?;
    let mut text = text.replace("[^", "[!");
    while text.contains("**") {
        text = text.replace("**", "*");
    }
    if Pattern::new(&text).is_err() {
        text = text.replace('[', "[[]");
    }
    Ok(text)
}

fn sort(paths: &mut [PathBuf]) {
    paths.sort_by(|one, two| one.as_os_str().as_bytes().cmp(two.as_os_str().as_bytes()));
}

/// The file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileLoader;

impl Loader for FileLoader {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // One byte more than allowed, so that the bound is noticed.
        File::open(path)?
            .take(MAX_TOTAL_BYTES as u64 + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        let found = glob::glob_with(&translate(pattern)?, MATCH)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.msg))?;
        // Folders that cannot be listed match nothing, as in glob(3).
        let mut paths: Vec<PathBuf> = found.filter_map(Result::ok).collect();
        sort(&mut paths);
        Ok(paths)
    }
}

/// Texts handed over, by path.
#[derive(Clone, Debug, Default)]
pub struct MemoryLoader {
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Loader for MemoryLoader {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let missing = || io::Error::from_raw_os_error(2);
        self.files.get(path).cloned().ok_or_else(missing)
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        let pattern = Pattern::new(&translate(pattern)?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.msg))?;
        let matches = |path: &&PathBuf| pattern.matches_path_with(path, MATCH);
        let mut paths: Vec<PathBuf> = self.files.keys().filter(matches).cloned().collect();
        sort(&mut paths);
        Ok(paths)
    }
}

impl<P: Into<PathBuf>, T: Into<Vec<u8>>> FromIterator<(P, T)> for MemoryLoader {
    fn from_iter<I: IntoIterator<Item = (P, T)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        Self {
            files: pairs
                .map(|(path, text)| (path.into(), text.into()))
                .collect(),
        }
    }
}

impl From<&Sources> for MemoryLoader {
    fn from(sources: &Sources) -> Self {
        sources.files().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two loaders must agree, or a worker would see another configuration
    /// than the parent that read the files.
    #[test]
    fn both_loaders_match_as_glob_does_in_byte_order() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "b.conf",
            "a.conf",
            "B.conf",
            "a-b.conf",
            ".hidden.conf",
            "x[.conf",
        ];
        let mut memory = Vec::new();
        for name in names {
            let path = folder.path().join(name);
            std::fs::write(&path, name).unwrap();
            memory.push((path, name));
        }
        let memory: MemoryLoader = memory.into_iter().collect();
        let cases: [(&str, &[&str]); 6] = [
            (
                "*.conf",
                &["B.conf", "a-b.conf", "a.conf", "b.conf", "x[.conf"],
            ),
            (
                "**.conf",
                &["B.conf", "a-b.conf", "a.conf", "b.conf", "x[.conf"],
            ),
            ("?.conf", &["B.conf", "a.conf", "b.conf"]),
            ("[^ab].conf", &["B.conf"]),
            ("x[.conf", &["x[.conf"]),
            ("none*", &[]),
        ];
        for (pattern, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|it| folder.path().join(it)).collect();
            let pattern = folder.path().join(pattern);
            assert_eq!(FileLoader.glob(&pattern).unwrap(), expected, "{pattern:?}");
            assert_eq!(memory.glob(&pattern).unwrap(), expected, "{pattern:?}");
        }
        assert_eq!(
            FileLoader.read(&folder.path().join("a.conf")).unwrap(),
            b"a.conf"
        );
    }

    #[test]
    fn a_missing_file_has_the_systems_error() {
        let error = MemoryLoader::default()
            .read(Path::new("/nope"))
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
