//! The files of a machine, below a root: `/`, or a folder that a test has planted.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Files of the kernel and settings are short; of a longer one the beginning is read.
const MAX_BYTES: u64 = 1 << 20;
/// Entries of one folder.
const MAX_ENTRIES: usize = 4096;

/// A machine whose files can be read.
#[derive(Debug)]
pub struct Machine {
    root: PathBuf,
}

/// A file system of `/proc/self/mounts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub point: PathBuf,
    pub kind: String,
    pub size_bytes: Option<u64>,
}

impl Machine {
    pub fn new(root: &Path) -> Machine {
        Machine {
            root: root.to_owned(),
        }
    }

    /// Returns a path of the machine below the root.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The text of a regular file; `None` if it is missing or cannot be read. Pipes and sockets
    /// are not waited for.
    pub fn read(&self, path: &str) -> Option<String> {
        let path = self.path(path);
        if !path.metadata().ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        let file = File::open(path).ok()?;
        file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A file that holds one number.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.read(path)?.split_whitespace().next()?.parse().ok()
    }

    /// Names in a folder, sorted.
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(path)).into_iter().flatten();
        let names = entries.flatten().take(MAX_ENTRIES);
        let mut names: Vec<String> = names
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// The file system that a path of the machine is on.
    pub fn mount_of(&self, path: &Path) -> Option<Mount> {
        let mounts = self.read("proc/self/mounts")?;
        mounts
            .lines()
            .filter_map(mount)
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.as_os_str().len())
    }
}

fn mount(line: &str) -> Option<Mount> {
    let mut words = line.split(' ');
    let (point, kind, options) = (words.nth(1)?, words.next()?, words.next()?);
    let size = options.split(',').find_map(|it| it.strip_prefix("size="));
    Some(Mount {
        point: PathBuf::from(point.replace("\\040", " ")),
        kind: kind.to_owned(),
        size_bytes: size.and_then(size_bytes),
    })
}

/// `65536k`
fn size_bytes(text: &str) -> Option<u64> {
    let (digits, scale) = match text.strip_suffix(['k', 'm', 'g']) {
        Some(digits) if text.ends_with('k') => (digits, 10),
        Some(digits) if text.ends_with('m') => (digits, 20),
        Some(digits) => (digits, 30),
        None => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << scale)
}
