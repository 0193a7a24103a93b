//! The methods and the names of files for which the lines of a section hold.

use crate::pattern::{Pattern, fits_glob};

/// The methods of `<Limit>` and `<LimitExcept>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Methods {
    #[default]
    All,
    Only(Vec<String>),
    Except(Vec<String>),
}

impl Methods {
    /// The names as they stand in a section's head or behind `Require method`.
    pub fn named(names: &[String]) -> Vec<String> {
        names.iter().map(|it| as_counted(it).to_owned()).collect()
    }

    pub fn include(&self, method: &str) -> bool {
        let method = as_counted(method);
        match self {
            Methods::All => true,
            Methods::Only(names) => names.iter().any(|it| it == method),
            Methods::Except(names) => names.iter().all(|it| it != method),
        }
    }
}

/// HEAD counts as GET.
pub fn as_counted(method: &str) -> &str {
    match method {
        "HEAD" => "GET",
        method => method,
    }
}

/// The names of `<Files>` and `<FilesMatch>`.
#[derive(Clone, Debug)]
pub enum NameTest {
    Glob(String),
    Pattern(Pattern),
}

impl NameTest {
    /// Whether it holds for a file of this name. The name of a folder that is asked for with its slash is
    /// empty. A pattern that gave up holds if that closes.
    pub fn holds(&self, name: &[u8], closes: bool) -> bool {
        match self {
            NameTest::Glob(glob) => fits_glob(glob.as_bytes(), name, false),
            NameTest::Pattern(pattern) => pattern.is_match(name).unwrap_or(closes),
        }
    }
}
