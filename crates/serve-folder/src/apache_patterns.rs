//! Patterns and flags as Apache writes them.

use super::conf_text::literal_pattern;

/// The pattern of a rule for the whole path; Apache compares what is behind `base`, the folder of the rule.
pub(super) fn rule_pattern(base: &str, pattern: &str, caseless: &str) -> String {
    let pattern = anchored(pattern, &format!("(?<=^{base})"), "$", ".");
    format!("{base}.*?(?{caseless}:{pattern})")
}

/// A pattern with other words for `^`, `$` and `.`, where these have their meaning.
pub(super) fn anchored(regex: &str, begin: &str, end: &str, any: &str) -> String {
    let mut pattern = String::new();
    let mut letters = regex.chars().peekable();
    let mut is_class = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                pattern.push(letter);
                pattern.extend(letters.next());
            }
            '[' if !is_class => {
                is_class = true;
                pattern.push(letter);
                // A bracket that is the first of a class is one of its letters.
                pattern.extend(letters.next_if_eq(&'^'));
                pattern.extend(letters.next_if_eq(&']'));
            }
            ']' => {
                is_class = false;
                pattern.push(letter);
            }
            '^' if !is_class => pattern.push_str(begin),
            '$' if !is_class => pattern.push_str(end),
            '.' if !is_class => pattern.push_str(any),
            _ => pattern.push(letter),
        }
    }
    pattern
}

/// A pattern for the whole name that fits what a shell's pattern does.
pub(super) fn glob(text: &str) -> String {
    let mut pattern = "(?<=/)".to_owned();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '*' => pattern.push_str("[^/]*"),
            '?' => pattern.push_str("[^/]"),
            '[' if letters.as_str().contains(']') => {
                let class: String = letters.by_ref().take_while(|it| *it != ']').collect();
                let class = class.replace('\\', "\\\\");
                match class.strip_prefix('!') {
                    Some(class) => pattern.push_str(&format!("[^/{class}]")),
                    None => pattern.push_str(&format!("[{class}]")),
                }
            }
            _ => pattern.push_str(&literal_pattern(letter.to_string().as_bytes())),
        }
    }
    pattern + r"(?=/|\z)"
}

/// Does a list such as `[L,R=301]`, in lower case, have one of these?
pub(super) fn has_flag(flags: &str, names: &[&str]) -> bool {
    let mut flags = flags.trim_matches(['[', ']']).split(',');
    flags.any(|flag| names.contains(&flag.trim()))
}

/// The captures of a pattern; `None` where they have names.
pub(super) fn count_captures(pattern: &str) -> Option<usize> {
    let mut count = 0;
    let mut is_class = false;
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '[' => is_class = true,
            ']' => is_class = false,
            '(' if !is_class && letters.next_if_eq(&'?').is_none() => count += 1,
            '(' if !is_class && matches!(letters.peek(), Some('P' | '\'' | '|')) => return None,
            // `(?<=` and `(?<!` look back, `(?<name>` is a capture.
            '(' if !is_class
                && letters.next_if_eq(&'<').is_some()
                && !matches!(letters.peek(), Some('=' | '!')) =>
            {
                return None;
            }
            _ => {}
        }
    }
    Some(count)
}

pub(super) fn has_back_reference(pattern: &str) -> bool {
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        if letter == '\\' && letters.next().is_some_and(|next| next.is_ascii_digit()) {
            return true;
        }
    }
    false
}

/// Does a pattern without case fit every path?
pub(super) fn is_everything(pattern: &str) -> bool {
    matches!(
        pattern.trim_matches('"'),
        "^" | "."
            | ".*"
            | "(.*)"
            | "^.*"
            | ".*$"
            | "^.*$"
            | "^(.*)$"
            | "^(.*)"
            | "^/.*$"
            | "/"
            | ".?"
    )
}

/// Do these flags of a rule refuse?
pub(super) fn forbids(flags: &str) -> bool {
    flags.trim_matches(['[', ']']).split(',').any(|flag| {
        matches!(
            flag,
            "f" | "forbidden" | "r=403" | "r=404" | "r=410" | "g" | "gone"
        )
    })
}
