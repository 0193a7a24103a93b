//! How PHP reads names of cookies and query arguments (`main/php_variables.c`,
//! `php_default_treat_data` and `php_register_variable_ex`, PHP 7.0 to 8.4).
//!
//! PHP skips white space before a name, ends it at a NUL, decodes percent signs (in cookies
//! until 7.4.11), writes `_` for `.` and space, and takes the text after `[` as the index of an
//! array, unless the bracket is never closed: then it is `_` as well. Which of these a given PHP
//! does is not known here, so a name has several forms, and the forms are asked about one after
//! the other: too many of them cost a page that is not shared, one too few would cost a
//! visitor's privacy.
//!
//! Held to a real PHP by the fuzz target `php_names` and, through the whole server, by the
//! attack test `php_names`.

/// Is one of the names that PHP may give to a cookie or an argument, of which `raw` is
/// received, one that `is` wanted?
#[inline]
pub fn any_name(raw: &[u8], mut is: impl FnMut(&[u8]) -> bool) -> bool {
    match raw.iter().all(|&byte| PLAIN[usize::from(byte)]) {
        true => is(raw),
        false => any_form(raw, &mut is),
    }
}

/// Bytes that stand for themselves in a name.
static PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        table[byte] = !matches!(byte as u8, b'.' | b'[' | b'%' | b'+');
        byte += 1;
    }
    table
};

#[cold]
fn any_form(raw: &[u8], is: &mut dyn FnMut(&[u8]) -> bool) -> bool {
    let decoded = decode(raw, true);
    [raw, &decoded].into_iter().any(|text| {
        let ended = text.split(|&byte| byte == 0).next().unwrap_or_default();
        [text, ended].into_iter().any(|text| {
            let name = text.trim_ascii_start();
            // White space before a cookie's name is any of C's; vertical tabs are not Rust's.
            let name = match name.iter().position(|byte| !matches!(byte, 9..=13 | b' ')) {
                Some(start) => &name[start..],
                None => &[],
            };
            is(&changed(name, true))
                || is(&changed(name.trim_ascii_end(), true))
                || is(&changed(name, false))
        })
    })
}

/// A name with `_` for characters that PHP does not keep; up to a bracket, or with `_` for it.
fn changed(name: &[u8], ends_at_bracket: bool) -> Vec<u8> {
    name.iter()
        .take_while(|&&byte| !(ends_at_bracket && byte == b'['))
        .map(|&byte| match byte {
            b'.' | b' ' | b'[' => b'_',
            byte => byte,
        })
        .collect()
}

/// Percent signs decoded, as far as two hexadecimal digits follow them; with `plus` a space
/// for each `+`, as in arguments.
#[must_use]
pub fn decode(text: &[u8], plus: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        out.push(match byte {
            b'%' => match after {
                [high, low, after @ ..] => match (digit(*high), digit(*low)) {
                    (Some(high), Some(low)) => {
                        rest = after;
                        high * 16 + low
                    }
                    _ => b'%',
                },
                _ => b'%',
            },
            b'+' if plus => b' ',
            byte => byte,
        });
    }
    out
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Compares the rules' names in a query string with the names that PHP finds in it: for
/// fuzzing.
///
/// # Panics
/// When PHP finds a name that the rules did not.
#[doc(hidden)]
pub fn fuzz_arguments(args: &[u8], names: &mut dyn FnMut(&[u8]) -> Vec<Vec<u8>>) {
    use crate::{NameSet, Rules, arguments};
    let rules = Rules {
        personal_arguments: NameSet::new([&b"preview"[..]]),
        removed_arguments: NameSet::new([&b"utm_*"[..], b"gclid"]),
        ..Rules::default()
    };
    let target = [b"/?", args].concat();
    let is_personal = arguments::examine(&target, None, &rules).is_err();
    let found = names(args);
    assert!(
        is_personal || !found.iter().any(|name| name == b"preview"),
        "PHP finds the personal argument"
    );
    let mut counted = Vec::new();
    arguments::put_counted(args, &rules.removed_arguments, &mut counted);
    for name in names(&counted) {
        assert!(
            !rules.removed_arguments.has(&name),
            "PHP finds an argument that was to be removed"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_in_each_of_its_forms() {
        for raw in [
            "wp_user",
            "wp.user",
            "wp user",
            "wp+user",
            "wp%5Fuser",
            "wp%2Euser",
            "wp_user[a]",
            "wp.user[a][b]",
            "wp[user",
            " wp_user",
            "%20%20wp_user",
            "\twp_user",
            "\x0bwp_user",
            "\x0cwp_user",
            "wp_user%00x",
            "wp_user\0x",
            "%77p_user",
        ] {
            assert!(
                any_name(raw.as_bytes(), |name| name == b"wp_user"),
                "{raw:?}"
            );
        }
        for raw in ["wp_user2", "xwp_user", "wp__user", "[wp_user]", "wp%5user"] {
            assert!(
                !any_name(raw.as_bytes(), |name| name == b"wp_user"),
                "{raw:?}"
            );
        }
    }

    #[test]
    fn percent_signs_are_decoded_once() {
        for (text, wanted) in [
            ("a%62c", "abc"),
            ("a%2562", "a%62"),
            ("%", "%"),
            ("%4", "%4"),
            ("%zz", "%zz"),
            ("a+b", "a b"),
            ("%C3%A9", "é"),
        ] {
            assert_eq!(decode(text.as_bytes(), true), wanted.as_bytes(), "{text}");
        }
        assert_eq!(decode(b"a+b", false), b"a+b");
    }
}
