//! The rules of a server's own configuration: sections for folders, for files and for paths of addresses, and the rules that
//! are run before a path is mapped to a file. Inner sections are read as a `.htaccess` is.

use std::sync::Arc;

use crate::alias::AliasRedirect;
use crate::pattern::{Pattern, fits_glob};
use crate::rewriting::Rewriting;
use crate::settings::{FolderRules, Note};

/// The rules in a server's configuration.
#[derive(Clone, Debug, Default)]
pub struct ServerRules {
    /// The lines outside of sections for folders and addresses.
    pub(crate) common: Arc<FolderRules>,
    pub(crate) folders: Vec<ServerSection>,
    /// `<Location>`
    pub(crate) addresses: Vec<ServerSection>,
    /// Run before a path is mapped to a file.
    pub(crate) rewriting: Option<Rewriting>,
    pub(crate) redirects: Vec<Arc<AliasRedirect>>,
    /// There is a configuration: `.htaccess` files count if it allows them.
    pub is_given: bool,
    /// Lines that have another effect than in Apache.
    pub notes: Vec<Note>,
}

/// A section for some folders or addresses.
#[derive(Clone, Debug)]
pub struct ServerSection {
    pub place: PlaceTest,
    /// Slashes in its head: Apache merges sections for folders in the order of these.
    pub slashes: usize,
    pub rules: Arc<FolderRules>,
}

/// The condition of a section.
#[derive(Clone, Debug)]
pub enum PlaceTest {
    Path(String),
    /// Each `*` stands for a part of one name.
    Glob(String),
    Pattern(Pattern),
}

impl PlaceTest {
    /// Reads the words in the head of a section; `None` if they cannot be read.
    pub fn of(name: &str, args: &[String]) -> Option<PlaceTest> {
        match args {
            [tilde, regex] if tilde == "~" => Pattern::new(regex, false).map(PlaceTest::Pattern),
            [regex] if name.ends_with("match") => {
                Pattern::new(regex, false).map(PlaceTest::Pattern)
            }
            [path] if path.contains(['*', '?', '[']) => Some(PlaceTest::Glob(path.clone())),
            [path] if path.starts_with('/') => Some(PlaceTest::Path(path.clone())),
            _ => None,
        }
    }

    /// Whether it is for this folder, which has no slash at its end. Patterns are compared with the whole path of the
    /// file.
    pub fn is_of_folder(&self, folder: &[u8]) -> bool {
        match self {
            PlaceTest::Path(path) => path.trim_end_matches('/').as_bytes() == folder,
            PlaceTest::Glob(glob) => fits_names(glob.trim_end_matches('/').as_bytes(), folder),
            PlaceTest::Pattern(_) => false,
        }
    }

    /// Whether a pattern holds for this path. One that gave up does if that closes.
    pub fn matches(&self, path: &[u8], closes: bool) -> bool {
        match self {
            PlaceTest::Pattern(pattern) => pattern.is_match(path).unwrap_or(closes),
            _ => false,
        }
    }

    /// Whether it is for this path of an address.
    pub fn is_of_address(&self, path: &[u8], closes: bool) -> bool {
        match self {
            PlaceTest::Path(own) => path.strip_prefix(own.as_bytes()).is_some_and(|rest| {
                own.ends_with('/') || rest.is_empty() || rest.starts_with(b"/")
            }),
            PlaceTest::Glob(glob) => fits_names(glob.as_bytes(), path),
            PlaceTest::Pattern(_) => self.matches(path, closes),
        }
    }
}

/// Whether a shell's pattern fits a path, name by name.
fn fits_names(glob: &[u8], path: &[u8]) -> bool {
    let is_slash = |byte: &u8| *byte == b'/';
    let (mut globs, mut names) = (glob.split(is_slash), path.split(is_slash));
    loop {
        match (globs.next(), names.next()) {
            (None, None) => return true,
            (Some(glob), Some(name)) if fits_glob(glob, name, false) => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(name: &str, args: &[&str]) -> PlaceTest {
        let args: Vec<String> = args.iter().map(|it| (*it).to_owned()).collect();
        PlaceTest::of(name, &args).expect(name)
    }

    #[test]
    fn sections_are_for_the_places_that_apache_takes_them_for() {
        for (args, folder, is_of) in [
            (&["/srv/a/"][..], "/srv/a", true),
            (&["/srv/a"], "/srv/ab", false),
            (&["/"], "", true),
            (&["/srv/*/b"], "/srv/a/b", true),
            (&["/srv/*"], "/srv/a/b", false),
        ] {
            let found = test("directory", args).is_of_folder(folder.as_bytes());
            assert_eq!(found, is_of, "{args:?} {folder}");
        }
        for (name, args, path, is_of) in [
            ("location", &["/a"][..], "/a", true),
            ("location", &["/a"], "/a/b", true),
            ("location", &["/a"], "/ab", false),
            ("location", &["/a/"], "/a", false),
            ("location", &["/"], "/x", true),
            ("location", &["/a/*"], "/a/b", true),
            ("location", &["/a/*"], "/a/b/c", false),
            ("location", &["~", "/b$"], "/a/b", true),
            ("locationmatch", &["^/b"], "/a/b", false),
        ] {
            let found = test(name, args).is_of_address(path.as_bytes(), true);
            assert_eq!(found, is_of, "{args:?} {path}");
        }
        assert!(PlaceTest::of("directory", &["a".to_owned()]).is_none());
    }
}
