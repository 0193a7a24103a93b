//! What `<Files>` and `<FilesMatch>` choose, as patterns of paths.

use htaccess::anchors::anchored;

use crate::patterns::{glob_body, is_everything, literal, matches};
use crate::settings::Names;

/// More alternatives of one pattern are not taken apart.
const MAX_EXTENSIONS: usize = 200;

/// Of a regular expression.
pub fn of_regex(regex: &str) -> Names {
    if is_everything(regex) {
        return Names::All;
    }
    match extensions(regex) {
        Some((extensions, is_caseless)) => Names::Extensions(extensions, is_caseless),
        None => Names::Pattern(regex.to_owned()),
    }
}

/// Of a name, which may have `*` and `?`.
pub fn of_glob(glob: &str) -> Names {
    let is_plain = |it: &str| !it.contains(['*', '?', '[']);
    match glob.strip_prefix("*.") {
        _ if glob == "*" => Names::All,
        _ if is_plain(glob) => Names::Literal(glob.to_owned()),
        Some(extension) if is_plain(extension) && !extension.contains('.') => {
            Names::Extensions(vec![extension.to_owned()], false)
        }
        _ => Names::Pattern(format!("^{}$", glob_body(glob, "", literal))),
    }
}

/// The extensions that `\.(?:a|b)$` chooses, and whether case does not count.
fn extensions(regex: &str) -> Option<(Vec<String>, bool)> {
    let (regex, mut is_caseless) = match regex.strip_prefix("(?i)") {
        Some(rest) => (rest, true),
        None => (regex, false),
    };
    let regex = regex
        .strip_prefix(".*")
        .or(regex.strip_prefix("^.*"))
        .or(regex.strip_prefix(".+"))
        .unwrap_or(regex);
    let inner = regex.strip_prefix("\\.")?.strip_suffix('$')?;
    let inner = match inner.strip_prefix('(').and_then(|it| it.strip_suffix(')')) {
        None => inner,
        Some(group) => {
            let group = group.strip_prefix("?:").unwrap_or(group);
            match group.strip_prefix("?i:") {
                Some(rest) => {
                    is_caseless = true;
                    rest
                }
                None => group,
            }
        }
    };
    let mut extensions = Vec::new();
    for one in inner.split('|') {
        extensions.extend(spellings(one)?);
        if extensions.len() > MAX_EXTENSIONS {
            return None;
        }
    }
    Some((extensions, is_caseless))
}

/// `jpe?g` is jpg and jpeg.
fn spellings(pattern: &str) -> Option<Vec<String>> {
    let mut all = vec![String::new()];
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        if !letter.is_ascii_alphanumeric() && letter != '_' && letter != '-' {
            return None;
        }
        let without = letters.next_if_eq(&'?').map(|_| all.clone());
        all.iter_mut().for_each(|it| it.push(letter));
        all.extend(without.into_iter().flatten());
        if all.len() > MAX_EXTENSIONS {
            return None;
        }
    }
    (!pattern.is_empty()).then_some(all)
}

/// The pattern of the paths of these files below `folder` (its path with a slash at both ends). A path may follow the name
/// of a script.
pub fn path_pattern(names: &Names, folder: &str) -> (bool, String) {
    let within = match folder {
        "/" => String::new(),
        folder => format!("^{}", literal(folder)),
    };
    match names {
        Names::All => (false, format!("{within}.*")),
        Names::Extensions(extensions, is_caseless) => {
            let end = match extensions
                .iter()
                .any(|it| it.to_ascii_lowercase().starts_with("ph"))
            {
                true => "(?:/|$)",
                false => "$",
            };
            let any = if within.is_empty() { "" } else { "(?:.*)" };
            let any = any.replace("(?:.*)", ".*");
            let list = match &extensions[..] {
                [one] => one.clone(),
                all => format!("(?:{})", all.join("|")),
            };
            (*is_caseless, format!("{within}{any}\\.{list}{end}"))
        }
        Names::Literal(name) => {
            let end = if name.to_ascii_lowercase().contains(".ph") {
                "(?:/|$)"
            } else {
                "$"
            };
            let begin = match within.is_empty() {
                true => "/".to_owned(),
                false => format!("{within}(?:.*/)?"),
            };
            (false, format!("{begin}{}{end}", literal(name)))
        }
        Names::Pattern(regex) => {
            let regex = anchored(regex, "(?<=/)", r"(?=/|\z)", "[^/]");
            // The name is the last one of the path, or one of a script, which a path may follow.
            let any = if within.is_empty() { "" } else { ".*?" };
            (
                false,
                format!("{within}{any}(?<=/)(?=[^/]+/?\\z|[^/]*\\.ph[^/]*/)(?=[^/]*?(?:{regex}))"),
            )
        }
    }
}

/// Do these names have this one?
pub fn has(names: &Names, name: &str) -> bool {
    match names {
        Names::All => true,
        Names::Extensions(extensions, is_caseless) => {
            name.rsplit_once('.').is_some_and(|(_, extension)| {
                extensions.iter().any(|it| match is_caseless {
                    true => it.eq_ignore_ascii_case(extension),
                    false => it == extension,
                })
            })
        }
        Names::Literal(literal) => literal == name,
        Names::Pattern(regex) => matches(regex, name).unwrap_or(true),
    }
}
