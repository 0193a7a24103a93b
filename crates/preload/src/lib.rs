//! The library that PHP loads (`crates/learn-library`), carried by the program as bytes: for which PHP it
//! is, and how it comes to a place from which PHP can load it.
//!
//! A PHP that is linked statically, one for another C library or an old glibc, and one for another kind of processor load
//! nothing. Each has a [`NotPreloaded`], and its pages are not learned.

mod changers;
mod glibc;
mod interpreter;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{StatVfsMountFlags, statvfs};

pub use changers::{Changer, changers};

use interpreter::{Interpreter, interpreter};

/// Empty if the program was built without Rust's library for glibc.
static LIBRARY: &[u8] = include_bytes!(env!("PRELOADED_LIBRARY"));

/// The library's name in its folder, with a digest of its bytes between: each version of Mayfly has its own.
const NAME_BEGINS: &str = "mayfly-learn-";
const NAME_ENDS: &str = ".so";

/// Libraries that are left in the folder, with those of servers that run: the ones that were used last.
const MAX_KEPT: usize = 8;

const SHELL: &str = "/bin/sh";

/// Readable and executable by all, writable by no account.
const MODE: u32 = 0o555;

/// The reason why a program cannot load the library.
#[derive(Debug, thiserror::Error)]
pub enum NotPreloaded {
    /// This program carries no library.
    #[error("this Mayfly was built without the library")]
    NotCarried,
    /// It is linked statically.
    #[error("it is linked statically and loads no library")]
    Static,
    /// Its C library is not glibc.
    #[error("it runs by {0}, not by glibc")]
    OtherLibrary(String),
    /// Its glibc lacks functions that the library needs.
    #[error("its glibc is older than {}, which the library needs", glibc::LEAST)]
    OlderGlibc,
    /// It is for another kind of processor, or no program of Linux.
    #[error("it is no program for this machine")]
    OtherMachine,
    #[error("it cannot be read: {0}")]
    Unreadable(io::Error),
}

/// The bytes of a library that the program at `path` can load.
///
/// # Errors
/// The reason why there is none.
pub fn library_for(path: &Path) -> Result<&'static [u8], NotPreloaded> {
    if LIBRARY.is_empty() {
        return Err(NotPreloaded::NotCarried);
    }
    match interpreter(path).map_err(NotPreloaded::Unreadable)? {
        Interpreter::Named(name) if !name.contains("ld-linux") => {
            Err(NotPreloaded::OtherLibrary(name))
        }
        Interpreter::Named(name) if glibc::is_older(Path::new(&name)) => {
            Err(NotPreloaded::OlderGlibc)
        }
        Interpreter::Named(_) => Ok(LIBRARY),
        Interpreter::Static => Err(NotPreloaded::Static),
        Interpreter::OtherMachine => Err(NotPreloaded::OtherMachine),
    }
}

/// The bytes of the library for commands, whatever program they start: the system's shell stands for all of them.
///
/// # Errors
/// The reason why the shell can load none.
pub fn library() -> Result<&'static [u8], NotPreloaded> {
    library_for(Path::new(SHELL))
}

/// A library in its place.
#[derive(Debug)]
pub struct InstalledLibrary {
    /// For `LD_PRELOAD`.
    pub path: PathBuf,
    /// Accounts that could put another library there, apart from root; for the log.
    pub changers: Vec<Changer>,
}

/// The library in `folder`, if it is there already.
#[must_use]
pub fn installed(library: &[u8], folder: &Path) -> Option<PathBuf> {
    let path = folder.canonicalize().ok()?.join(file_name(library));
    is_there(library, &path).then_some(path)
}

/// Writes the library into `folder`, which is there already, with mode 0555, and removes those that were not used for the
/// longest time: a program that has loaded one keeps it.
///
/// # Errors
/// The folder cannot be written, or programs cannot be started from its file system (`noexec`).
pub fn install(library: &[u8], folder: &Path) -> io::Result<InstalledLibrary> {
    if statvfs(folder)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        let text = format!("the file system of {} is mounted noexec", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    let path = folder.canonicalize()?.join(file_name(library));
    if is_there(library, &path) {
        note_use(&path);
    } else {
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let _ = fs::remove_file(&new);
        let written = write_new(library, &new).and_then(|()| fs::rename(&new, &path));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written?;
        remove_oldest(folder, &path);
    }
    let changers = changers(&path)?;
    Ok(InstalledLibrary { path, changers })
}

fn file_name(library: &[u8]) -> String {
    // FNV-1a with 64 bits distinguishes versions; the bytes themselves are compared as well.
    let digest = library.iter().fold(0xcbf2_9ce4_8422_2325_u64, |all, byte| {
        (all ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{NAME_BEGINS}{digest:016x}{NAME_ENDS}")
}

fn note_use(path: &Path) {
    // If that fails, the file looks older than it is.
    let _ = fs::File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
}

/// Leaves the libraries that were used last, and `new` in any case.
fn remove_oldest(folder: &Path, new: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut others: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let is_one = name
                .to_str()
                .is_some_and(|name| name.starts_with(NAME_BEGINS) && name.ends_with(NAME_ENDS));
            let is_other = is_one && Some(&*name) != new.file_name();
            let used_at = entry.metadata().and_then(|it| it.modified());
            is_other.then_some((used_at.ok()?, entry.path()))
        })
        .collect();
    others.sort_unstable_by(|one, other| other.cmp(one));
    for (_, path) in others.iter().skip(MAX_KEPT - 1) {
        // One that stays takes some room.
        let _ = fs::remove_file(path);
    }
}

fn write_new(library: &[u8], path: &Path) -> io::Result<()> {
    // `create_new` follows no link that another account has put there.
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(library)?;
    file.set_permissions(fs::Permissions::from_mode(MODE))
}

/// Whether the same bytes are there, as a file with the right mode of this account or root.
fn is_there(library: &[u8], path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let own = rustix::process::geteuid().as_raw();
    let is_right = fs::symlink_metadata(path).is_ok_and(|found| {
        found.is_file() && found.mode() & 0o7777 == MODE && [0, own].contains(&found.uid())
    });
    is_right && fs::read(path).is_ok_and(|bytes| bytes == library)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn library_is_carried_and_is_an_elf_file_for_this_machine() {
        let library = library_for(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(library[..4], *b"\x7fELF");
        assert!(library.len() < 1 << 20, "{} bytes", library.len());
    }

    #[test]
    fn what_is_no_program_loads_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script");
        fs::write(&path, "#!/bin/sh\n").unwrap();
        assert!(matches!(
            library_for(&path),
            Err(NotPreloaded::OtherMachine)
        ));
        let missing = library_for(&folder.path().join("missing"));
        assert!(matches!(missing, Err(NotPreloaded::Unreadable(_))));
    }

    #[test]
    fn library_is_written_once_and_leaves_those_of_other_versions_up_to_a_bound() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().unwrap();
        let first = install(b"one", folder.path()).unwrap().path;
        let facts = fs::metadata(&first).unwrap();
        assert_eq!(facts.mode() & 0o7777, 0o555);
        assert_eq!(install(b"one", folder.path()).unwrap().path, first);
        assert_eq!(fs::metadata(&first).unwrap().ino(), facts.ino());
        let second = install(b"two", folder.path()).unwrap().path;
        assert_ne!(first, second);
        assert_eq!(fs::read(&first).unwrap(), b"one", "others may load it");
        assert_eq!(installed(b"two", folder.path()), Some(second));
        assert_eq!(installed(b"three", folder.path()), None);
        let open = File::open(&first).unwrap();
        open.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        fs::write(folder.path().join("other.so"), "").unwrap();
        for version in 0..2 * MAX_KEPT {
            install(format!("{version}").as_bytes(), folder.path()).unwrap();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), MAX_KEPT + 1);
        assert!(!first.exists() && folder.path().join("other.so").exists());
        assert_eq!(io::read_to_string(open).unwrap(), "one", "who has it open");
    }
}
