//! `Redirect` and `RedirectMatch` (`mod_alias`), for paths of addresses.

use crate::paths::escaped;
use crate::pattern::Pattern;
use crate::rewriting::substituted;

/// A line.
#[derive(Clone, Debug)]
pub struct AliasRedirect {
    pub from: From,
    pub status: u16,
    /// Empty if the status is no redirect.
    pub to: String,
}

#[derive(Clone, Debug)]
pub enum From {
    Prefix(String),
    Pattern(Pattern),
}

impl AliasRedirect {
    /// Returns the target of the redirect; `None` if the line does not hold for the path. An empty target:
    /// the response has a status only.
    pub fn target(&self, path: &[u8], args: Option<&[u8]>) -> Option<Vec<u8>> {
        let is_redirect = (300..400).contains(&self.status);
        let mut target = match &self.from {
            From::Prefix(prefix) => {
                let rest = behind(path, prefix.as_bytes())?;
                [self.to.as_bytes(), &escaped(rest)].concat()
            }
            From::Pattern(pattern) => match pattern.groups(path) {
                Ok(groups) => {
                    let target = substituted(self.to.as_bytes(), &groups?);
                    let mark = target.iter().position(|it| *it == b'?');
                    let (path, args) = target.split_at(mark.unwrap_or(target.len()));
                    [&escaped(path)[..], args].concat()
                }
                // The pattern could not be evaluated: no redirect, but a line that refuses does refuse.
                Err(_) if is_redirect => return None,
                Err(_) => Vec::new(),
            },
        };
        if let Some(args) = args.filter(|_| is_redirect && !target.contains(&b'?')) {
            target.push(b'?');
            target.extend_from_slice(args);
        }
        Some(target)
    }
}

/// Returns the rest of the path behind a prefix that ends at a slash.
fn behind<'p>(path: &'p [u8], prefix: &[u8]) -> Option<&'p [u8]> {
    let rest = path.strip_prefix(prefix)?;
    let ends = prefix.ends_with(b"/") || rest.is_empty() || rest.starts_with(b"/");
    ends.then_some(rest)
}
