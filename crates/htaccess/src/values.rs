//! The facts of a request and of files that conditions use.

use std::net::IpAddr;

/// A request, as conditions see it.
pub trait Values {
    /// The value of a variable; `None` if it is not known here.
    fn variable(&self, name: &str) -> Option<Vec<u8>>;
    fn look(&self, path: &[u8]) -> FileFacts;
    fn client(&self) -> Option<IpAddr>;
}

/// The kind of file at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Missing,
    File,
    Folder,
    Other,
    /// It may not be looked at.
    Forbidden,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    pub kind: FileKind,
    /// The path itself is a symbolic link; whether it has the owner of its target.
    pub link_of_owner: Option<bool>,
    pub length: u64,
    pub is_executable: bool,
}
