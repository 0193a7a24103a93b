//! The files that rules ask for, and the rules of folders: each thread keeps those it has read, and looks once a second
//! whether a file has changed.
//!
//! A `.htaccess` that is a link is read where the administrator or the owner of the file has made it, or where it leads
//! to a file of the site. A file that cannot be read closes its folder, and so does one that is no regular file.

use std::cell::RefCell;
use std::io::Read as _;
use std::sync::Arc;

use htaccess::{Disk, FileFacts, FileKind, FolderRules, Mount, RuleFile, UserCheck, read_rules};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, open, openat, openat2, statat,
};
use rustix::io::Errno;
use server_base::lru::Lru;

/// A look at a folder holds for this time, in milliseconds.
const LOOK_MS: u64 = 1000;
/// Folders that a thread knows.
const MAX_FOLDERS: usize = 20_000;
/// Bytes of all rules that a thread keeps.
const MAX_BYTES: usize = 64 << 20;
/// The memory of a compiled pattern beside its text.
const PATTERN_BYTES: usize = 8 << 10;
/// One more byte than rules are read of, so that a longer file is known.
const READ_BYTES: u64 = (1 << 20) + 1;
/// A group file is small.
const MAX_GROUP_FILE_BYTES: u64 = 1 << 20;

/// Something that the operator should know of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuleNote {
    pub text: String,
    pub closes: bool,
}

/// The state of a path in a thread's table.
struct KnownFolder {
    looked_at: u64,
    is_folder: bool,
    stamp: Option<Stamp>,
    bytes: usize,
    rules: RuleFile,
}

type Stamp = (u64, u64, i64, i64, i64, i64, i64);

#[derive(Default)]
struct KnownFolders {
    folders: Lru<KnownFolder>,
    bytes: usize,
}

thread_local! {
    static KNOWN: RefCell<KnownFolders> = RefCell::default();
}

/// Has one of the folders on the way to a path rules?
pub fn has_rules(mounts: &[Mount], path: &[u8]) -> bool {
    let Some(mount) = mounts.iter().find(|it| path.starts_with(&it.prefix)) else {
        // The address of a folder without its slash, or a path of no file.
        return true;
    };
    let below = path.get(mount.prefix.len()..).unwrap_or_default();
    let now = clock::recent();
    KNOWN.with_borrow_mut(|known| {
        let mut folder = mount.folder.clone();
        let mut names = below.split(|byte| *byte == b'/');
        loop {
            let (is_folder, has_rules) = known.look(&folder, &mount.folder, now, |it| {
                (it.is_folder, !matches!(it.rules, RuleFile::None))
            });
            if has_rules {
                return true;
            }
            let name = names.find(|name| !name.is_empty());
            match name {
                Some(name) if is_folder && folder.len() < 4000 => {
                    folder.push(b'/');
                    folder.extend_from_slice(name);
                }
                _ => return false,
            }
        }
    })
}

impl KnownFolders {
    /// Applies a function to the known state of a folder, which is at most a second old. `root`: the folder of the
    /// site.
    fn look<R>(
        &mut self,
        folder: &[u8],
        root: &[u8],
        now: u64,
        ask: impl FnOnce(&KnownFolder) -> R,
    ) -> R {
        if let Some(known) = self.folders.touch(folder)
            && now.saturating_sub(known.looked_at) < LOOK_MS
        {
            return ask(known);
        }
        let before = self.folders.remove(folder);
        let before_bytes = before.as_ref().map_or(0, |it| it.bytes);
        self.bytes = self.bytes.saturating_sub(before_bytes);
        let known = KnownFolder::now(folder, root, now, before);
        let answer = ask(&known);
        self.bytes += known.bytes;
        self.folders.insert(folder, known);
        while self.folders.len() > MAX_FOLDERS || self.bytes > MAX_BYTES {
            match self.folders.remove_oldest() {
                Some(oldest) => self.bytes = self.bytes.saturating_sub(oldest.bytes),
                None => break,
            }
        }
        answer
    }
}

impl KnownFolder {
    fn now(folder: &[u8], root: &[u8], now: u64, before: Option<KnownFolder>) -> KnownFolder {
        let mut known = KnownFolder {
            looked_at: now,
            is_folder: false,
            stamp: None,
            bytes: 0,
            rules: RuleFile::None,
        };
        let file = [folder, b"/.htaccess"].concat();
        let found = match statat(CWD, &file[..], AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => {
                let flags = AtFlags::empty();
                let folder = statat(CWD, folder, flags);
                known.is_folder = folder.is_ok_and(|it| kind(&it) == FileKind::Folder);
                return known;
            }
            Err(Errno::NOTDIR) => return known,
            Err(_) => {
                // Whether it is there cannot be known.
                known.is_folder = true;
                known.rules = RuleFile::Unreadable;
                return known;
            }
        };
        known.is_folder = true;
        let is_link = FileType::from_raw_mode(found.st_mode) == FileType::Symlink;
        // The target of a link may change while the link does not.
        let stamp = (!is_link).then(|| stamp(&found));
        if let Some(before) = before
            && stamp.is_some()
            && before.stamp == stamp
        {
            return KnownFolder {
                looked_at: now,
                ..before
            };
        }
        known.stamp = stamp;
        match read(&file, root, is_link.then_some(found.st_uid)) {
            Ok(bytes) => {
                let rules = read_rules(&bytes);
                known.bytes = bytes.len() + rules.patterns * PATTERN_BYTES;
                known.rules = RuleFile::Rules(Arc::new(rules));
            }
            Err(_) => known.rules = RuleFile::Unreadable,
        }
        known
    }
}

fn stamp(found: &Stat) -> Stamp {
    let number = |value: u64| i64::try_from(value).unwrap_or(0);
    (
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime,
        number(found.st_mtime_nsec),
        found.st_ctime,
        number(found.st_ctime_nsec),
    )
}

const ROOT: u32 = 0;

/// May a link of this account be followed out of the site?
fn is_trusted_target(file: &[u8], owner: u32) -> bool {
    let target = statat(CWD, file, AtFlags::empty());
    owner == ROOT || target.is_ok_and(|it| it.st_uid == owner && kind(&it) == FileKind::File)
}

/// The bytes of a regular file. Opening it does not wait. `link_of`: it is a link of this account.
fn read(file: &[u8], root: &[u8], link_of: Option<u32>) -> Result<Vec<u8>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = match link_of {
        None => open(file, flags | OFlags::NOFOLLOW, Mode::empty())?,
        // The administrator's (Debian's packages have theirs in /etc), or one to a file of the same account.
        Some(owner) if is_trusted_target(file, owner) => {
            let opened = open(file, flags, Mode::empty())?;
            let target = fstat(&opened)?;
            if owner != ROOT && target.st_uid != owner {
                return Err(Errno::XDEV);
            }
            opened
        }
        Some(_) => {
            let below = file.strip_prefix(root).ok_or(Errno::XDEV)?;
            let below = below.strip_prefix(b"/").unwrap_or(below);
            let folder = openat(CWD, root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            openat2(&folder, below, flags, Mode::empty(), resolve)?
        }
    };
    if kind(&fstat(&opened)?) != FileKind::File {
        return Err(Errno::INVAL);
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::from(opened)
        .take(READ_BYTES)
        .read_to_end(&mut bytes);
    read.map_err(|_| Errno::IO)?;
    Ok(bytes)
}

fn kind(found: &Stat) -> FileKind {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Folder,
        _ => FileKind::Other,
    }
}

/// The files of a site, for one request.
pub struct FolderFiles<'a> {
    pub site: &'a [Mount],
    /// `.htaccess` files count.
    pub reads_rules: bool,
    pub credentials: Option<(Vec<u8>, Vec<u8>)>,
    pub notes: RefCell<Vec<RuleNote>>,
}

impl FolderFiles<'_> {
    fn note(&self, folder: &[u8], rules: &FolderRules) {
        let file = String::from_utf8_lossy(folder).into_owned();
        for note in &rules.notes {
            self.notes.borrow_mut().push(RuleNote {
                text: format!("{file}/.htaccess:{note}"),
                closes: note.closes,
            });
        }
    }
}

impl Disk for FolderFiles<'_> {
    fn look(&self, path: &[u8]) -> FileFacts {
        let nothing = |kind| FileFacts {
            kind,
            link_of_owner: None,
            length: 0,
            is_executable: false,
        };
        let failed = |errno| match errno {
            Errno::ACCESS | Errno::LOOP | Errno::PERM => nothing(FileKind::Forbidden),
            _ => nothing(FileKind::Missing),
        };
        if path.contains(&0) {
            return nothing(FileKind::Missing);
        }
        let found = match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(errno) => return failed(errno),
        };
        let (found, link_of_owner) = match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink => match statat(CWD, path, AtFlags::empty()) {
                Ok(target) => {
                    let is_of_owner = target.st_uid == found.st_uid;
                    (target, Some(is_of_owner))
                }
                Err(errno) => return failed(errno),
            },
            _ => (found, None),
        };
        FileFacts {
            kind: kind(&found),
            link_of_owner,
            length: u64::try_from(found.st_size).unwrap_or(0),
            is_executable: found.st_mode & 0o111 != 0,
        }
    }

    fn rules(&self, path: &[u8]) -> RuleFile {
        if !self.reads_rules {
            return RuleFile::None;
        }
        let is_in = |it: &&Mount| !it.folder.is_empty() && path.starts_with(&it.folder);
        let root = self.site.iter().find(is_in);
        let root = root.map_or(path, |it| &it.folder[..]);
        let now = clock::recent();
        let rules =
            KNOWN.with_borrow_mut(|known| known.look(path, root, now, |it| it.rules.clone()));
        match &rules {
            RuleFile::Rules(rules) if !rules.notes.is_empty() => self.note(path, rules),
            RuleFile::Unreadable => self.notes.borrow_mut().push(RuleNote {
                text: format!(
                    "{}/.htaccess cannot be read, or is a link out of the site: the folder is closed; make it a file that the server may read",
                    String::from_utf8_lossy(path)
                ),
                closes: true,
            }),
            _ => {}
        }
        rules
    }

    fn check_user(&self, user_file: &str) -> UserCheck {
        check_user(self.credentials.as_ref(), user_file)
    }

    fn user(&self) -> Option<String> {
        let (user, _) = self.credentials.as_ref()?;
        String::from_utf8(user.clone()).ok()
    }

    fn is_in_group(&self, group_file: &str, group: &str, user: &str) -> Option<bool> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = open(group_file, flags, Mode::empty()).ok()?;
        if kind(&fstat(&opened).ok()?) != FileKind::File {
            return None;
        }
        let mut text = String::new();
        let file = std::fs::File::from(opened).take(MAX_GROUP_FILE_BYTES);
        { file }.read_to_string(&mut text).ok()?;
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        Some(lines.any(|(name, members)| {
            name.trim() == group && members.split_whitespace().any(|it| it == user)
        }))
    }
}

/// Checks a name and a password against a user file.
fn check_user(credentials: Option<&(Vec<u8>, Vec<u8>)>, user_file: &str) -> UserCheck {
    let Some((user, password)) = credentials else {
        return UserCheck::Wrong;
    };
    let Ok(users) = basic_auth::users(user_file.as_bytes()) else {
        return UserCheck::NoFile;
    };
    let Some(hash) = users.get(user.as_slice()) else {
        return UserCheck::Wrong;
    };
    match basic_auth::compare(user, hash, password) {
        basic_auth::Comparison::Right => UserCheck::Right,
        basic_auth::Comparison::Wrong | basic_auth::Comparison::UnknownFormat => UserCheck::Wrong,
    }
}
