//! The input of an evaluation, the questions it asks meanwhile, and its verdict.

use std::net::IpAddr;
use std::sync::Arc;

use crate::settings::FolderRules;
use crate::values::FileFacts;

/// A request, as far as rules can ask for it.
pub struct Visit<'a> {
    pub method: &'a str,
    /// Decoded and normalised, with a slash at the begin.
    pub path: &'a [u8],
    pub args: &'a [u8],
    /// `GET /a?b HTTP/1.1`
    pub request_line: &'a [u8],
    pub scheme: &'a str,
    /// The host as the client wrote it.
    pub host: &'a [u8],
    pub port: u16,
    pub server_address: Option<IpAddr>,
    pub client: Option<IpAddr>,
    /// The values of a field, joined by commas.
    pub field: &'a dyn Fn(&str) -> Option<Vec<u8>>,
    pub field_names: &'a dyn Fn() -> Vec<String>,
    /// The time in seconds since 1970, and the local time as year, month, day, hour, minute, second, weekday.
    pub time: (i64, [u32; 7]),
    /// Indexes of folders, unless rules name others.
    pub indexes: &'a [String],
    /// The server lists folders, unless rules forbid it.
    pub lists_folders: bool,
}

/// A folder of files and the paths of addresses that lead to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// With a slash at the end.
    pub prefix: Vec<u8>,
    /// The folder, without a slash at the end; empty if another server has the files.
    pub folder: Vec<u8>,
}

/// The `.htaccess` of a folder.
#[derive(Clone, Debug)]
pub enum RuleFile {
    None,
    Rules(Arc<FolderRules>),
    /// It is there and cannot be read: the folder is closed.
    Unreadable,
}

/// The result of checking a name and a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserCheck {
    Right,
    Wrong,
    /// There is no such file, or it cannot be read.
    NoFile,
}

/// The files of the machine.
pub trait Disk {
    fn look(&self, path: &[u8]) -> FileFacts;
    /// The rules of the folder at `path`, without a slash at its end.
    fn rules(&self, path: &[u8]) -> RuleFile;
    /// The credentials of the request, compared with a user file.
    fn check_user(&self, user_file: &str) -> UserCheck;
    /// The name in the credentials.
    fn user(&self) -> Option<String>;
    /// The members of a group in a group file; `None` if the file cannot be read.
    fn is_in_group(&self, group_file: &str, group: &str, user: &str) -> Option<bool>;
}

/// The target of a request that is let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    pub path: Vec<u8>,
    pub args: Vec<u8>,
    /// Variables for a script.
    pub variables: Vec<(String, Vec<u8>)>,
    /// It is not where the request has begun.
    pub is_changed: bool,
    /// There is no such file, and the rules lead paths without a file elsewhere.
    pub is_missing: bool,
}

/// The verdict of the rules on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Target(Target),
    Refused {
        status: u16,
        /// With 401: the text that a browser shows while it asks for a name.
        realm: Option<String>,
    },
    Redirect {
        status: u16,
        /// A path, or a whole address.
        location: Vec<u8>,
    },
}

impl Verdict {
    /// A refusal that asks for nothing.
    pub fn refused(status: u16) -> Verdict {
        Verdict::Refused {
            status,
            realm: None,
        }
    }
}
