//! Paths that are personal, known in whatever spelling the application may accept.

use std::borrow::Cow;

use http_semantics::Target;

use crate::{Bypass, Rules, php};

/// # Errors
/// [`Bypass::Path`] where the path is personal in one of its forms: as received, decoded,
/// decoded twice (some applications do), or with its dot segments resolved.
#[inline]
pub(crate) fn examine(target: &[u8], rules: &Rules) -> Result<(), Bypass> {
    if rules.personal_paths.is_empty() {
        return Ok(());
    }
    let path = http_semantics::split_query(target).0;
    let is_personal =
        is_personal(path, rules) || !is_plain(path) && is_personal_decoded(path, rules);
    match is_personal {
        true => Err(Bypass::Path),
        false => Ok(()),
    }
}

fn is_personal(path: &[u8], rules: &Rules) -> bool {
    // A pattern that gives up cannot say that the path is harmless.
    rules
        .personal_paths
        .iter()
        .any(|pattern| pattern.is_match(path).unwrap_or(true))
}

/// Is there one form only?
fn is_plain(path: &[u8]) -> bool {
    memchr::memchr3(b'%', b'#', b'\\', path).is_none()
        && memchr::memmem::find(path, b"//").is_none()
        && memchr::memmem::find(path, b"/.").is_none()
}

#[cold]
fn is_personal_decoded(path: &[u8], rules: &Rules) -> bool {
    let once = php::decode(path, false);
    let twice = php::decode(&once, false);
    let resolved = [path, &once]
        .into_iter()
        .filter_map(|path| Target::parse(path, true).ok())
        .map(|target| target.path.into_owned());
    let forms: Vec<Cow<'_, [u8]>> = resolved
        .map(Cow::Owned)
        .chain([Cow::Borrowed(&once[..]), Cow::Borrowed(&twice[..])])
        .collect();
    forms.iter().any(|form| {
        let slashes: Vec<u8> = form
            .iter()
            .map(|&byte| if byte == b'\\' { b'/' } else { byte })
            .collect();
        is_personal(form, rules) || is_personal(&slashes, rules)
    })
}

#[cfg(test)]
mod tests {
    use pcre2::bytes::Regex;

    use super::*;

    #[test]
    fn personal_paths_are_known_however_they_are_spelt() {
        let rules = Rules {
            personal_paths: vec![Regex::new("(?i)/(?:wp-admin|cart)(?:/|$)").unwrap()],
            ..Rules::default()
        };
        for (target, wanted) in [
            ("/", false),
            ("/cart", true),
            ("/shop/cart/", true),
            ("/cartoon", false),
            ("/?x=/cart/", false),
            ("/wp-%61dmin/", true),
            ("/wp-%2561dmin/", true),
            ("/WP-Admin/x", true),
            ("/a/..%2fwp-admin/", true),
            ("//cart", true),
            ("/cart%2f", true),
            ("/cart%3fx", true),
            ("/a/.%2e/cart", true),
            ("/a%5ccart", true),
            ("/cart#x", true),
        ] {
            let found = examine(target.as_bytes(), &rules).is_err();
            assert_eq!(found, wanted, "{target}");
        }
    }
}
