//! The files of a site, as far as they are looked at: [`Folder`] is the real one, tests have
//! lists of names.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};

/// The files of the site, by paths relative to its folder (`..` and absolute
/// paths reach beyond, where a distribution keeps parts elsewhere).
pub trait Files {
    /// Whether there is a file (or a link to one).
    fn is_file(&self, path: &str) -> bool;
    /// The names in a folder; none if there is no such folder.
    fn names(&self, folder: &str) -> Vec<String>;
    /// The beginning of a text file.
    fn text(&self, path: &str) -> Option<String>;
}

/// A folder of this machine.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

impl Folder {
    /// The files looked into are small; a huge one is not one of them.
    const MAX_TEXT_BYTES: u64 = 64 << 10;
    /// Names looked at in one folder, in case it holds a million uploads.
    const MAX_NAMES: usize = 10_000;
}

impl Folder {
    /// Opens a file of the folder. Links may lead to another file in it, but not out of it: root reads here, and
    /// another account may have put them there.
    fn open_beneath(&self, path: &str) -> io::Result<File> {
        let folder = trusted_path::open(&self.0, OFlags::PATH | OFlags::DIRECTORY)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let opened = rustix::fs::openat2(&folder, path, flags, Mode::empty(), resolve)?;
        Ok(File::from(opened))
    }
}

impl Files for Folder {
    fn is_file(&self, path: &str) -> bool {
        self.0.join(path).is_file()
    }

    fn names(&self, folder: &str) -> Vec<String> {
        std::fs::read_dir(self.0.join(folder))
            .into_iter()
            .flatten()
            .take(Self::MAX_NAMES)
            .filter_map(|file| file.ok()?.file_name().into_string().ok())
            .collect()
    }

    fn text(&self, path: &str) -> Option<String> {
        let whole = self.0.join(path);
        let file = self.open_beneath(path).or_else(|_| open(&whole));
        begin_of_file(file.ok()?, Self::MAX_TEXT_BYTES).ok()
    }
}

/// The first bytes of a regular file as text. It never waits: root reads here files that others may have put
/// there, a FIFO for instance. Root follows the links of root only.
///
/// # Errors
/// The file cannot be read, or is no regular file.
pub fn begin_of_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    begin_of_file(open(path)?, bytes_max)
}

fn open(path: &Path) -> io::Result<File> {
    trusted_path::open(path, OFlags::RDONLY).map(File::from)
}

fn begin_of_file(file: File, bytes_max: u64) -> io::Result<String> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
