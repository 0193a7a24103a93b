//! One round of a request: the path that it has now, the file that this stands for, and the variables that are set.

use crate::environment::Variables;
use crate::expression::Scope;
use crate::pattern::Groups;
use crate::visit::{Disk, FileKind, Visit};

/// A request between two internal redirects.
pub struct Round<'a> {
    pub visit: &'a Visit<'a>,
    pub disk: &'a dyn Disk,
    /// The folder of the whole site, without a slash at the end.
    pub root: &'a [u8],
    /// The path of the address.
    pub path: Vec<u8>,
    pub args: Option<Vec<u8>>,
    pub file: MappedFile,
    pub variables: Variables,
    /// It is not what the client has asked for, but where rules have led it.
    pub is_redirected: bool,
    /// An index is looked at.
    pub is_lookup: bool,
}

/// The file that a path stands for.
#[derive(Clone, Debug, Default)]
pub struct MappedFile {
    /// Of a path that leads to no file: as far as folders were found, and one name more.
    pub name: Vec<u8>,
    /// What is behind the file.
    pub path_info: Vec<u8>,
    pub kind: Option<FileKind>,
}

impl MappedFile {
    pub fn is(&self, kind: FileKind) -> bool {
        self.kind == Some(kind)
    }
}

impl Round<'_> {
    /// The value of a variable of conditions; `None` where it is not known here.
    pub fn variable(&self, name: &str) -> Option<Vec<u8>> {
        crate::variables::value(self, name)
    }

    /// A scope for expressions, with the groups of the last pattern.
    pub fn scope(&self) -> Scope<'_> {
        Scope {
            round: self,
            groups: Groups::default(),
        }
    }
}
