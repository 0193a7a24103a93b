//! Texts with `$1`, `%1` and `%{NAME}` in them.

use crate::paths::escaped_value;
use crate::pattern::Groups;
use crate::values::Values;

/// The groups that patterns have matched.
#[derive(Clone, Debug, Default)]
pub struct CapturedGroups {
    /// The groups of the rule: `$1`.
    pub of_rule: Groups,
    /// The groups of the last condition: `%1`.
    pub of_condition: Groups,
}

/// How the values of groups are written.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupForm {
    /// `[B]`
    pub is_escaped: bool,
    /// A group of the rule had a `?` in it.
    pub has_mark: bool,
}

/// The text with its values; `None` if one is not known. A map that does not exist gives nothing.
pub fn expand(
    text: &str,
    values: &dyn Values,
    captured: &CapturedGroups,
    mut form: Option<&mut GroupForm>,
) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() + 32);
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        let rest = &text[at + letter.len_utf8()..];
        let next = rest.chars().next();
        match (letter, next) {
            ('\\', Some(next)) => {
                push(next, &mut out);
                letters.next();
            }
            ('$' | '%', Some(digit)) if digit.is_ascii_digit() => {
                letters.next();
                let number = digit.to_digit(10)? as usize;
                let groups = match letter {
                    '$' => &captured.of_rule,
                    _ => &captured.of_condition,
                };
                let value = groups.get(number);
                match form.as_deref_mut() {
                    Some(form) => {
                        form.has_mark |= letter == '$' && value.contains(&b'?');
                        match form.is_escaped {
                            true => out.extend(escaped_value(value)),
                            false => out.extend_from_slice(value),
                        }
                    }
                    None => out.extend_from_slice(value),
                }
            }
            ('%', Some('{')) => {
                let end = rest.find('}')?;
                out.extend(values.variable(&rest[1..end])?);
                skip(&mut letters, at + 1 + end);
            }
            ('$', Some('{')) => {
                // Maps are declared in the configuration of a server only.
                let end = rest.find('}')?;
                let inner = &rest[1..end];
                let default = inner.split_once('|').map_or("", |it| it.1);
                out.extend_from_slice(default.as_bytes());
                skip(&mut letters, at + 1 + end);
            }
            _ => push(letter, &mut out),
        }
    }
    Some(out)
}

fn skip(letters: &mut std::str::CharIndices<'_>, end: usize) {
    while letters.offset() <= end && letters.next().is_some() {}
}

fn push(letter: char, out: &mut Vec<u8>) {
    out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}

/// A text with `$1` in it, as `RedirectMatch` and `SetEnvIf` have it.
pub fn substituted(text: &[u8], groups: &Groups) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'$' | b'&', [digit, behind @ ..]) if *first == b'$' && digit.is_ascii_digit() => {
                out.extend_from_slice(groups.get(usize::from(digit - b'0')));
                rest = behind;
            }
            (b'\\', [next @ (b'$' | b'&'), behind @ ..]) => {
                out.push(*next);
                rest = behind;
            }
            (b'&', _) => out.extend_from_slice(groups.get(0)),
            (byte, _) => out.push(*byte),
        }
    }
    out
}
