//! User files: `name:hash` lines, read again when the file has changed. Each thread remembers
//! a bounded number of them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;

/// User files remembered by a thread: paths may come from variables.
const MAX_FILES: usize = 32;
/// Largest user file: a hundred thousand users.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// Names and their hashes.
pub type Users = HashMap<Box<[u8]>, Box<[u8]>>;

/// A user file as it was read.
struct ReadFile {
    /// Modification time, inode and length, which differ after a change.
    state: (i64, i64, u64, u64),
    users: Rc<Users>,
}

thread_local! {
    static FILES: RefCell<HashMap<Box<[u8]>, ReadFile>> = RefCell::default();
}

/// The users of the file at `path`.
pub fn users(path: &[u8]) -> io::Result<Rc<Users>> {
    let metadata = std::fs::metadata(OsStr::from_bytes(path))?;
    let state = (
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ino(),
        metadata.len(),
    );
    let known = FILES.with_borrow(|files| {
        files
            .get(path)
            .filter(|file| file.state == state)
            .map(|file| file.users.clone())
    });
    if let Some(users) = known {
        return Ok(users);
    }
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = Vec::new();
    File::open(OsStr::from_bytes(path))?
        .take(MAX_FILE_BYTES)
        .read_to_end(&mut text)?;
    let users = Rc::new(parse_users(&text));
    FILES.with_borrow_mut(|files| {
        if files.len() >= MAX_FILES {
            files.clear();
        }
        files.insert(
            path.into(),
            ReadFile {
                state,
                users: users.clone(),
            },
        );
    });
    Ok(users)
}

/// `name:hash[:comment]` lines; the first line of a name counts.
fn parse_users(text: &[u8]) -> Users {
    let mut users = Users::new();
    for line in text.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut parts = line.split(|&byte| byte == b':');
        if let (Some(name), Some(hash)) = (parts.next(), parts.next())
            && !name.starts_with(b"#")
        {
            users.entry(name.into()).or_insert_with(|| hash.into());
        }
    }
    users
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_files_may_hold_comments_and_lack_a_last_line_end() {
        let users =
            parse_users(b"# a:b\none:hash\r\ntwo:hash:comment\n\nthree\none:later\nfour:last");
        let mut found: Vec<_> = users
            .iter()
            .map(|(name, hash)| (String::from_utf8_lossy(name), String::from_utf8_lossy(hash)))
            .collect();
        found.sort();
        let wanted = [("four", "last"), ("one", "hash"), ("two", "hash")];
        assert_eq!(found, wanted.map(|(name, hash)| (name.into(), hash.into())));
    }

    #[test]
    fn a_changed_user_file_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("users");
        let bytes = path.as_os_str().as_bytes();
        assert_eq!(users(bytes).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(&path, "a:1\n").unwrap();
        assert_eq!(users(bytes).unwrap().len(), 1);
        assert!(Rc::ptr_eq(&users(bytes).unwrap(), &users(bytes).unwrap()));
        std::fs::write(&path, "a:1\nb:2\n").unwrap();
        assert_eq!(users(bytes).unwrap().len(), 2);
    }
}
