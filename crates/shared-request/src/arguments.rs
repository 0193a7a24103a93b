//! Query arguments: those that make a request personal, and those that are removed from it.

use pcre2::bytes::Regex;

use crate::{Bypass, NameSet, Rules, php};

/// # Errors
/// [`Bypass::Argument`] where one of the arguments makes the request personal: of those that
/// were received, or of those that a rewrite has made, perhaps of parts of the path.
#[inline]
pub(crate) fn examine(
    target: &[u8],
    rewritten: Option<&[u8]>,
    rules: &Rules,
) -> Result<(), Bypass> {
    let received = http_semantics::split_query(target).1.unwrap_or_default();
    examine_args(received, rules)?;
    match rewritten {
        Some(args) if args != received => examine_args(args, rules),
        _ => Ok(()),
    }
}

#[inline]
fn examine_args(args: &[u8], rules: &Rules) -> Result<(), Bypass> {
    if args.is_empty() {
        return Ok(());
    }
    match is_personal(
        args,
        &rules.personal_arguments,
        &rules.personal_argument_patterns,
    ) {
        true => Err(Bypass::Argument),
        false => Ok(()),
    }
}

fn is_personal(args: &[u8], names: &NameSet, patterns: &[Regex]) -> bool {
    // PHP can be configured to take `;` for `&` (arg_separator.input): then it has more
    // arguments.
    let whole = args.split(|&byte| byte == b'&');
    let parts = args.split(|&byte| matches!(byte, b'&' | b';'));
    let mut all = whole.chain(parts.filter(|_| args.contains(&b';')));
    all.any(|argument| {
        let (name, value) = halves(argument);
        php::any_name(name, |name| names.has(name))
            || !patterns.is_empty()
                && php::any_name(name, |name| matches_any(name, value, patterns))
    })
}

fn matches_any(name: &[u8], value: &[u8], patterns: &[Regex]) -> bool {
    let mut text = name.to_vec();
    text.push(b'=');
    text.extend_from_slice(&php::decode(value, true));
    // A pattern that gives up cannot say that the argument is harmless.
    patterns
        .iter()
        .any(|pattern| pattern.is_match(&text).unwrap_or(true))
}

fn halves(argument: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'=', argument) {
        Some(at) => {
            let (name, value) = argument.split_at(at);
            (name, value.get(1..).unwrap_or_default())
        }
        None => (argument, &[]),
    }
}

/// Appends `args` without those that `removed` names. The other arguments stay as they were
/// received, in their order.
pub fn put_counted(args: &[u8], removed: &NameSet, out: &mut Vec<u8>) {
    if removed.is_empty() {
        out.extend_from_slice(args);
        return;
    }
    let start = out.len();
    for argument in args.split(|&byte| byte == b'&') {
        let (name, _) = halves(argument);
        if argument.is_empty() || php::any_name(name, |name| removed.has(name)) {
            continue;
        }
        if out.len() > start {
            out.push(b'&');
        }
        out.extend_from_slice(argument);
    }
}

/// Appends a target without the arguments that `removed` names, and without `?` where none is
/// left. Its arguments end at `#`, as those of the request do: the part behind it is no
/// argument, and may not become one when those before it are removed.
#[inline]
pub fn put_target(target: &[u8], removed: &NameSet, out: &mut Vec<u8>) {
    let (path, Some(args)) = http_semantics::split_query(target) else {
        out.extend_from_slice(target);
        return;
    };
    if removed.is_empty() {
        out.extend_from_slice(target);
        return;
    }
    out.extend_from_slice(path);
    let end = out.len();
    out.push(b'?');
    let args_end = memchr::memchr(b'#', args).unwrap_or(args.len());
    put_counted(args.get(..args_end).unwrap_or_default(), removed, out);
    if out.len() == end + 1 {
        out.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> NameSet {
        NameSet::new(names.iter().map(|name| name.as_bytes()))
    }

    #[test]
    fn arguments_that_do_not_count_are_left_out() {
        let removed = set(&["utm_*", "gclid"]);
        for (target, wanted) in [
            ("/?a=1&utm_source=x&b=2", "/?a=1&b=2"),
            ("/?utm_source=x", "/"),
            ("/?gclid=1&gclidx=2", "/?gclidx=2"),
            ("/", "/"),
            ("/?", "/"),
            ("/?a&b=&&c", "/?a&b=&c"),
            ("/?utm%5Fsource=x&a", "/?a"),
            ("/?utm_source[]=x&utm_source[a][b]=y&a", "/?a"),
            ("/?utm.source=x&utm+source=x&a", "/?a"),
            ("/?%75tm_source=x", "/"),
            ("/?a=utm_source", "/?a=utm_source"),
            ("/utm_source?b", "/utm_source?b"),
            ("/?utm_source=x#&a", "/"),
            ("/?a#&b", "/?a"),
            ("/?a#?b", "/?a"),
            ("/x#?utm_source=x&a", "/x#?a"),
        ] {
            let mut out = Vec::new();
            put_target(target.as_bytes(), &removed, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), wanted, "{target}");
            out.clear();
            put_target(target.as_bytes(), &set(&[]), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), target, "nothing is removed");
        }
    }

    #[test]
    fn personal_arguments_are_known_however_they_are_spelt() {
        let rules = Rules {
            personal_arguments: set(&["preview"]),
            personal_argument_patterns: vec![Regex::new("^action=(?!(?:view|raw)$)").unwrap()],
            ..Rules::default()
        };
        for (target, wanted) in [
            ("/", false),
            ("/?", false),
            ("/?a=preview", false),
            ("/preview", false),
            ("/?preview", true),
            ("/?preview=0", true),
            ("/?a=1&preview=true", true),
            ("/?a=1;preview=true", true),
            ("/?%70review=true", true),
            ("/?preview[]=true", true),
            ("/?+preview=true", true),
            ("/?preview%00=true", true),
            ("/?action=view", false),
            ("/?action=vi%65w", false),
            ("/?action=edit", true),
            ("/?%61ction=edit", true),
            ("/?action=", true),
            ("/?action", true),
            ("/?actions=edit", false),
        ] {
            let found = examine(target.as_bytes(), None, &rules).is_err();
            assert_eq!(found, wanted, "{target}");
            let args = target.split_once('?').map_or("", |(_, args)| args);
            let found = examine(b"/", Some(args.as_bytes()), &rules).is_err();
            assert_eq!(found, wanted, "{target}, rewritten");
        }
    }
}
