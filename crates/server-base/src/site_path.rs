//! Opens files by paths that a visitor chooses and in which an account of the site may put links. Links
//! are followed, but for those of `/proc` that lead to open files of a process ("magic links"): with
//! `ln -s /proc/self/fd`, visitors would read uploads and pages of other sites, which only this process
//! may. Nothing of `/proc` is opened at all.
//!
//! The kernel sees to it (`openat2(2)`, Linux 5.6). If it does not know the call, or a sandbox forbids it,
//! the path is walked name by name under the same rules.

use std::collections::VecDeque;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, Stat, fstat, fstatfs,
    major, openat, openat2, readlinkat, statat,
};
use rustix::io::Errno;

/// The number of links on a path that the kernel follows.
const MAX_LINKS: usize = 40;

/// Are symbolic links followed?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    Followed,
    /// `disable_symlinks on`
    Refused,
    /// Links that belong to the owner of their target are followed: `disable_symlinks if_not_owner`.
    OfOwner,
}

/// Opens `path`; `flags` name the use.
///
/// # Errors
/// An error of the system; `LOOP` for a link that is not followed, `ACCESS` for a path in `/proc`.
pub fn open(path: &[u8], flags: OFlags, links: Links) -> Result<(OwnedFd, Stat), Errno> {
    open_in(CWD, path, flags, links)
}

/// Like [`open`], but links in the first `free_bytes` of the path, which name a folder, are followed.
///
/// # Errors
/// The errors of [`open`].
pub fn open_below(
    path: &[u8],
    free_bytes: usize,
    flags: OFlags,
    links: Links,
) -> Result<(OwnedFd, Stat), Errno> {
    let (base, rest) = path.split_at_checked(free_bytes).unwrap_or((b"", path));
    if base.is_empty() {
        return open(path, flags, links);
    }
    let (folder, _) = open(base, OFlags::PATH | OFlags::DIRECTORY, Links::Followed)?;
    let start = rest.iter().position(|&byte| byte != b'/');
    match start.and_then(|start| rest.get(start..)) {
        Some(rest) => open_in(folder.as_fd(), rest, flags, links),
        None => open_in(folder.as_fd(), b".", flags, links),
    }
}

fn open_in(
    folder: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    links: Links,
) -> Result<(OwnedFd, Stat), Errno> {
    let flags = flags | OFlags::CLOEXEC;
    let mut resolve = ResolveFlags::NO_MAGICLINKS;
    if links == Links::Refused {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    let file = match links {
        // The kernel does not look at owners.
        Links::OfOwner => walk(folder, path, flags, links),
        Links::Followed | Links::Refused => {
            match openat2(folder, path, flags, Mode::empty(), resolve) {
                Err(Errno::NOSYS | Errno::PERM) => walk(folder, path, flags, links),
                opened => opened,
            }
        }
    }?;
    let stat = outside_proc(&file)?;
    Ok((file, stat))
}

/// Returns the facts of the file at `path`. Most paths end with no link: for them it is one system call.
///
/// # Errors
/// The errors of [`open`].
pub fn stat(path: &[u8]) -> Result<Stat, Errno> {
    let found = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Symlink => Ok(open(path, OFlags::PATH, Links::Followed)?.1),
        _ => Ok(found),
    }
}

/// The facts of a file that is not in `/proc`.
fn outside_proc(file: impl AsFd) -> Result<Stat, Errno> {
    let stat = fstat(&file)?;
    // File systems without a disk have the major number 0.
    if major(stat.st_dev) == 0 && fstatfs(&file)?.f_type == PROC_SUPER_MAGIC {
        return Err(Errno::ACCESS);
    }
    Ok(stat)
}

/// Opens `path`, from `start` on, name by name. Each link is read here, so that the kernel follows none.
fn walk(
    start: BorrowedFd<'_>,
    path: &[u8],
    mut flags: OFlags,
    links: Links,
) -> Result<OwnedFd, Errno> {
    let folder = |path: &[u8]| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(start, path, flags, Mode::empty())
    };
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    if path.ends_with(b"/") {
        flags |= OFlags::DIRECTORY;
    }
    let mut here = folder(if path.starts_with(b"/") { b"/" } else { b"." })?;
    let mut rest: VecDeque<Vec<u8>> = names(path).collect();
    let mut links_left = MAX_LINKS;
    while let Some(name) = rest.pop_front() {
        let entry = openat(
            &here,
            &*name,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let stat = outside_proc(&entry)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            links_left = links_left.checked_sub(1).ok_or(Errno::LOOP)?;
            if links == Links::Refused {
                return Err(Errno::LOOP);
            }
            let target = readlinkat(&entry, c"", Vec::new())?.into_bytes();
            if links == Links::OfOwner {
                let flags = match rest.is_empty() {
                    true => flags,
                    false => OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
                };
                let (led_to, found) = open_in(here.as_fd(), &target, flags, Links::Followed)?;
                if found.st_uid != stat.st_uid {
                    return Err(Errno::LOOP);
                }
                if rest.is_empty() {
                    return Ok(led_to);
                }
                here = led_to;
                continue;
            }
            if target.starts_with(b"/") {
                here = folder(b"/")?;
            }
            names(&target).rev().for_each(|name| rest.push_front(name));
        } else if rest.is_empty() {
            // A link that has come there meanwhile is an error.
            return openat(&here, &*name, flags | OFlags::NOFOLLOW, Mode::empty());
        } else {
            here = entry;
        }
    }
    openat(&here, c".", flags, Mode::empty())
}

fn names(path: &[u8]) -> impl DoubleEndedIterator<Item = Vec<u8>> {
    let names = path.split(|&byte| byte == b'/');
    let names = names.filter(|name| !name.is_empty() && *name != b".");
    names.map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn bytes(path: &Path) -> &[u8] {
        path.as_os_str().as_bytes()
    }

    /// The text at a path, by the kernel's way and by ours, which agree.
    fn read(path: &Path, links: Links) -> Result<String, Errno> {
        let text = |file: OwnedFd| {
            let mut text = String::new();
            File::from(file).read_to_string(&mut text).unwrap();
            text
        };
        let walked = walk(CWD, bytes(path), OFlags::RDONLY, links)
            .and_then(|file| outside_proc(&file).map(|_| text(file)));
        let opened = open(bytes(path), OFlags::RDONLY, links).map(|(file, _)| text(file));
        assert_eq!(
            walked.is_ok(),
            opened.is_ok(),
            "{path:?} {walked:?} {opened:?}"
        );
        assert_eq!(walked.as_ref().ok(), opened.as_ref().ok());
        opened
    }

    #[test]
    fn links_are_followed_but_not_to_what_a_process_has_open() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/b/file"), "text").unwrap();
        let open = File::open(at("a/b/file")).unwrap();
        let fd = open.as_raw_fd();
        let own = std::process::id();
        for (name, target) in [
            ("plain", "a/b/file".to_owned()),
            ("absolute", at("a/b/file").display().to_string()),
            ("folder", "a/./b/".to_owned()),
            ("up", "a/b/../b/file".to_owned()),
            ("chain", "plain".to_owned()),
            ("round", "round".to_owned()),
            ("nowhere", "none".to_owned()),
            ("magic", format!("/proc/self/fd/{fd}")),
            ("fds", format!("/proc/{own}/fd")),
            ("cwd", "/proc/self/cwd".to_owned()),
            ("root", "/proc/self/root".to_owned()),
            ("proc", "/proc".to_owned()),
            ("environ", "/proc/self/environ".to_owned()),
        ] {
            symlink(target, at(name)).unwrap();
        }
        for name in [
            "a/b/file",
            "plain",
            "absolute",
            "folder/file",
            "up",
            "chain",
            "folder//./file",
        ] {
            assert_eq!(read(&at(name), Links::Followed).unwrap(), "text", "{name}");
            let without_links = read(&at(name), Links::Refused).ok();
            assert_eq!(without_links.is_some(), name == "a/b/file", "{name}");
            assert_eq!(stat(bytes(&at(name))).unwrap().st_size, 4, "{name}");
        }
        for (name, expected) in [
            ("round", Errno::LOOP),
            ("nowhere", Errno::NOENT),
            ("magic", Errno::LOOP),
            ("proc/version", Errno::ACCESS),
            ("environ", Errno::ACCESS),
            ("plain/", Errno::NOTDIR),
        ] {
            assert_eq!(read(&at(name), Links::Followed), Err(expected), "{name}");
        }
        for name in [
            format!("fds/{fd}"),
            format!("proc/self/fd/{fd}"),
            format!("root{}", at("a/b/file").display()),
            "cwd/Cargo.toml".to_owned(),
            "magic".to_owned(),
        ] {
            assert!(read(&at(&name), Links::Followed).is_err(), "{name}");
        }
        assert_eq!(stat(bytes(&at("magic"))).err(), Some(Errno::LOOP));
        assert!(open_folder(&at("fds")).is_err() && open_folder(&at("folder")).is_ok());
    }

    #[test]
    fn links_to_what_belongs_to_another_account_are_told_from_those_to_ones_own() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/b/file"), "text").unwrap();
        symlink("a/b/file", at("own")).unwrap();
        symlink("a", at("folder")).unwrap();
        symlink("own", at("chain")).unwrap();
        for name in ["a/b/file", "own", "folder/b/file", "chain", "folder/../own"] {
            assert_eq!(read(&at(name), Links::OfOwner).unwrap(), "text", "{name}");
        }
        assert_eq!(read(&at("own/"), Links::OfOwner), Err(Errno::NOTDIR));
        // Root's files belong to another account, unless these are root's own.
        symlink("/etc/passwd", at("passwd")).unwrap();
        symlink("/etc", at("etc")).unwrap();
        if rustix::process::geteuid().is_root() {
            let to = rustix::process::Uid::from_raw(65_534);
            for name in ["passwd", "etc"] {
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::chownat(CWD, at(name), Some(to), None, flags).unwrap();
            }
        }
        for name in ["passwd", "etc/passwd"] {
            assert_eq!(read(&at(name), Links::OfOwner), Err(Errno::LOOP), "{name}");
        }
    }

    #[test]
    fn links_in_the_trusted_beginning_of_a_path_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("a")).unwrap();
        std::fs::write(at("a/file"), "text").unwrap();
        symlink("file", at("a/link")).unwrap();
        symlink("a", at("folder")).unwrap();
        let opened = |path: &str, free: &str| {
            let path = at(path);
            let free_bytes = bytes(&at(free)).len();
            open_below(bytes(&path), free_bytes, OFlags::RDONLY, Links::Refused).err()
        };
        assert_eq!(opened("folder/file", "folder"), None);
        assert_eq!(opened("folder/", "folder"), None);
        assert_eq!(opened("folder/link", "folder"), Some(Errno::LOOP));
        assert_eq!(opened("folder/file", ""), Some(Errno::LOOP));
    }

    fn open_folder(path: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        open(bytes(path), flags, Links::Followed).map(|(folder, _)| folder)
    }
}
