//! `auth_basic`: a name and a password that must stand in a file
//! (<https://nginx.org/en/docs/http/ngx_http_auth_basic_module.html>, RFC 7617).
//!
//! The file is read again when it changed. Its hashes are compared in `password`. Hashes
//! made to be slow would hold up the whole thread at each request, so what was right once
//! is remembered, as a salted digest.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;

use base64::Engine;
use sha1::{Digest, Sha1};
use site::{Builtin as B, LogLevel};

use crate::access::password::{self, Comparison};
use crate::exchange::request::Request;
use crate::exchange::value::put;
use crate::exchange::variable;
use crate::exchange::variable_table::Value::Request as Of;
use crate::exchange::variable_table::Variables;
use crate::log::error_log;
use crate::log::error_log::Errno;

pub const VARIABLES: Variables = &[(B::RemoteUser, Of(put_remote_user))];

/// User files remembered by a thread: paths may come from variables.
const MAX_FILES: usize = 32;
/// Largest user file: a hundred thousand users.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// Passwords remembered as right by a thread.
const MAX_REMEMBERED: usize = 1024;
/// Longest password that is tried: a head's size bounds it, DES looks at 8.
const MAX_PASSWORD_BYTES: usize = 1024;

/// What `auth_basic` says about a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// 401 with `WWW-Authenticate: Basic realm="..."`.
    Challenge {
        realm: Vec<u8>,
    },
    /// There is no user file.
    Forbidden,
    /// It could not be read, or its hash not be understood.
    Failed(u16),
}

/// Checks the request's name and password; sets `remote_user` to the name
/// given, right or wrong, as the log of nginx shows it.
pub fn check(request: &mut Request) -> Verdict {
    let settings = request.settings_held();
    let Some(auth) = &settings.auth else {
        return Verdict::Pass;
    };
    let realm = variable::evaluate(request, &auth.realm);
    if realm == b"off" {
        return Verdict::Pass;
    }
    let Some((user, password)) = credentials(request.head.field("authorization")) else {
        let message = format_args!("no user/password was provided for basic authentication");
        error_log::request(request, LogLevel::Info, message);
        return Verdict::Challenge { realm };
    };
    let mut path = variable::evaluate(request, &auth.user_file);
    if path.first() != Some(&b'/') {
        let folder = auth.folder.as_os_str().as_bytes();
        path = [folder, b"/", &path].concat();
    }
    let shown = String::from_utf8_lossy(&path).into_owned();
    request.extras.remote_user = Some(user.clone());
    let users = match users(&path) {
        Ok(users) => users,
        Err(error) => {
            let message = format_args!("open() \"{shown}\" failed{}", Errno(&error));
            let missing = error.kind() == io::ErrorKind::NotFound;
            let level = if missing {
                LogLevel::Error
            } else {
                LogLevel::Crit
            };
            error_log::request(request, level, message);
            return if missing {
                Verdict::Forbidden
            } else {
                Verdict::Failed(500)
            };
        }
    };
    let name = String::from_utf8_lossy(&user).into_owned();
    let Some(hash) = users.get(user.as_slice()) else {
        let message = format_args!("user \"{name}\" was not found in \"{shown}\"");
        error_log::request(request, LogLevel::Error, message);
        return Verdict::Challenge { realm };
    };
    match compare(&user, hash, &password) {
        Comparison::Right => return Verdict::Pass,
        Comparison::Wrong => {
            let message = format_args!("user \"{name}\": password mismatch");
            error_log::request(request, LogLevel::Error, message);
        }
        Comparison::UnknownFormat => {
            let message = format_args!(
                "user \"{name}\": the format of the password in \"{shown}\" is not supported, \
                 make it again with \"htpasswd -B\" or \"openssl passwd -6\""
            );
            error_log::request(request, LogLevel::Error, message);
        }
    }
    Verdict::Challenge { realm }
}

/// The name that was checked, or the one given where none is asked for.
fn put_remote_user(request: &mut Request, out: &mut Vec<u8>) -> bool {
    if let Some(user) = &request.extras.remote_user {
        return put(Some(user), out);
    }
    let given = credentials(request.head.field("authorization"));
    put(given.as_ref().map(|(user, _)| user.as_slice()), out)
}

/// Name and password of an `Authorization: Basic` field (RFC 7617 §2).
fn credentials(authorization: Option<&[u8]>) -> Option<(Vec<u8>, Vec<u8>)> {
    let (scheme, encoded) = authorization?.split_at_checked(b"Basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") {
        return None;
    }
    let decoded = password::base64_lenient()
        .decode(encoded.trim_ascii())
        .ok()?;
    let colon = memchr::memchr(b':', &decoded).filter(|&colon| colon > 0)?;
    let (user, password) = decoded.split_at(colon);
    Some((user.to_vec(), password.get(1..)?.to_vec()))
}

type Users = HashMap<Box<[u8]>, Box<[u8]>>;

/// A user file as it was read.
struct ReadFile {
    /// Modification time, inode and length: what tells that it changed.
    state: (i64, i64, u64, u64),
    users: Rc<Users>,
}

thread_local! {
    static FILES: RefCell<HashMap<Box<[u8]>, ReadFile>> = RefCell::default();
    static RIGHT: RefCell<Remembered> = RefCell::new(Remembered::new());
}

/// The users of the file at `path`.
fn users(path: &[u8]) -> io::Result<Rc<Users>> {
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

fn compare(user: &[u8], hash: &[u8], password: &[u8]) -> Comparison {
    if password.len() > MAX_PASSWORD_BYTES {
        return Comparison::Wrong;
    }
    if !password::is_slow(hash) {
        return password::compare(hash, password);
    }
    let digest = RIGHT.with_borrow(|right| right.digest(user, hash, password));
    if RIGHT.with_borrow(|right| right.digests.contains(&digest)) {
        return Comparison::Right;
    }
    let comparison = password::compare(hash, password);
    if comparison == Comparison::Right {
        RIGHT.with_borrow_mut(|remembered| remembered.insert(digest));
    }
    comparison
}

/// Digests of what was found right, under a salt that only this thread knows.
struct Remembered {
    salt: [u8; 16],
    digests: std::collections::HashSet<[u8; 20]>,
}

impl Remembered {
    fn new() -> Remembered {
        Remembered {
            salt: crate::base::random::bytes16(),
            digests: Default::default(),
        }
    }

    fn digest(&self, user: &[u8], hash: &[u8], password: &[u8]) -> [u8; 20] {
        let mut digest = Sha1::new().chain_update(self.salt);
        for part in [user, hash, password] {
            // With their lengths, so that no part runs into the next.
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        digest.finalize().into()
    }

    fn insert(&mut self, digest: [u8; 20]) {
        if self.digests.len() >= MAX_REMEMBERED {
            self.digests.clear();
        }
        self.digests.insert(digest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_right_once_is_remembered_with_user_and_hash() {
        let hash = b"$apr1$abcdefgh$FBwExRW4dCc8aL.OvjpIE1";
        assert_eq!(compare(b"a", hash, b"password"), Comparison::Right);
        let digest = |user: &[u8], password: &[u8]| {
            RIGHT.with_borrow(|right| right.digest(user, hash, password))
        };
        let knows = |digest| RIGHT.with_borrow(|right| right.digests.contains(&digest));
        assert!(knows(digest(b"a", b"password")));
        assert!(!knows(digest(b"b", b"password")));
        assert_eq!(compare(b"a", hash, b"wrong"), Comparison::Wrong);
        assert!(!knows(digest(b"a", b"wrong")));
        for number in 0..=MAX_REMEMBERED {
            RIGHT.with_borrow_mut(|right| right.insert(Sha1::digest(number.to_le_bytes()).into()));
        }
        assert!(RIGHT.with_borrow(|right| right.digests.len()) <= MAX_REMEMBERED);
    }

    #[test]
    fn credentials_are_read_as_by_nginx() {
        let pair = |user: &str, password: &str| {
            Some((user.as_bytes().to_vec(), password.as_bytes().to_vec()))
        };
        for (field, wanted) in [
            ("Basic dXNlcjpwYXNz", pair("user", "pass")),
            ("basic   dXNlcjpwYXNz", pair("user", "pass")),
            ("Basic dXNlcjpw", pair("user", "p")),
            ("Basic dXNlcjphOmI=", pair("user", "a:b")),
            ("Basic dXNlcjphOmI", pair("user", "a:b")),
            ("Basic dXNlcjo=", pair("user", "")),
            ("Basic OnBhc3M=", None),
            ("Basic dXNlcg==", None),
            ("Basic ????", None),
            ("Basic", None),
            ("Basic ", None),
            ("Bearer dXNlcjpwYXNz", None),
        ] {
            assert_eq!(credentials(Some(field.as_bytes())), wanted, "{field}");
        }
        assert_eq!(credentials(None), None);
    }

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
