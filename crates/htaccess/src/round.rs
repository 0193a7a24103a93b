//! One round of a request: the path that it has now, the file that this stands for, and the variables that are set.

use std::net::IpAddr;

use crate::environment::Variables;
use crate::expression::Scope;
use crate::pattern::Groups;
use crate::values::{FileFacts, FileKind, Values};
use crate::visit::{Disk, Visit};

/// A request between two internal redirects.
pub struct Round<'a> {
    pub visit: &'a Visit<'a>,
    pub disk: &'a dyn Disk,
    /// The method; a request for an index has GET.
    pub method: &'a str,
    /// The folder of the whole site, without a slash at the end.
    pub root: &'a [u8],
    /// The path of the address.
    pub path: Vec<u8>,
    /// The path that is mapped to a file in its place, if rules of the server demand that.
    pub mapped: Option<Vec<u8>>,
    pub args: Option<Vec<u8>>,
    pub file: MappedFile,
    pub variables: Variables,
    /// The path is not the client's, but one to which rules have led.
    pub is_redirected: bool,
    /// An index is looked at.
    pub is_lookup: bool,
}

/// The file that a path stands for.
#[derive(Clone, Debug, Default)]
pub struct MappedFile {
    /// The file's name. If the path leads to no file: the folders as far as they were found, and one name more.
    pub name: Vec<u8>,
    /// The rest of the path behind the file.
    pub path_info: Vec<u8>,
    pub kind: Option<FileKind>,
}

impl MappedFile {
    pub fn is(&self, kind: FileKind) -> bool {
        self.kind == Some(kind)
    }
}

impl Values for Round<'_> {
    fn variable(&self, name: &str) -> Option<Vec<u8>> {
        crate::variables::value(self, name)
    }

    fn look(&self, path: &[u8]) -> FileFacts {
        self.disk.look(path)
    }

    fn client(&self) -> Option<IpAddr> {
        self.visit.client
    }
}

impl Round<'_> {
    /// A scope for expressions, without groups of a pattern.
    pub fn scope(&self) -> Scope<'_> {
        Scope {
            values: self,
            groups: Groups::default(),
        }
    }
}
