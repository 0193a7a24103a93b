//! Patterns and flags as Apache writes them, and networks as it names them.

use std::fmt::Write as _;
use std::net::IpAddr;

use htaccess::anchors::anchored;

/// The pattern of a rule for the whole path; Apache compares what is behind `base`, the folder of the rule.
pub fn rule_pattern(base: &str, pattern: &str, caseless: &str) -> String {
    let pattern = anchored(pattern, &format!("(?<=^{base})"), "$", ".");
    format!("{base}.*?(?{caseless}:{pattern})")
}

/// A pattern for the whole name that fits what a shell's pattern does.
pub fn glob(text: &str) -> String {
    let name = glob_body(text, "/", |letter| literal_pattern(letter.as_bytes()));
    format!(r"(?<=/){name}(?=/|\z)")
}

/// The pattern for what a shell's pattern fits. Its wildcards fit no letter of `kept_out`; `literal` writes a letter that is
/// no wildcard.
pub fn glob_body(text: &str, kept_out: &str, literal: impl Fn(&str) -> String) -> String {
    let any = match kept_out {
        "" => ".".to_owned(),
        _ => format!("[^{kept_out}]"),
    };
    let mut pattern = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '*' => pattern.push_str(&format!("{any}*")),
            '?' => pattern.push_str(&any),
            '[' if letters.as_str().contains(']') => {
                let class: String = letters.by_ref().take_while(|it| *it != ']').collect();
                let class = class.replace('\\', "\\\\");
                match class.strip_prefix('!') {
                    Some(class) => pattern.push_str(&format!("[^{kept_out}{class}]")),
                    None => pattern.push_str(&format!("[{class}]")),
                }
            }
            _ => pattern.push_str(&literal(&letter.to_string())),
        }
    }
    pattern
}

/// Does a list such as `[L,R=301]`, in lower case, have one of these?
pub fn has_flag(flags: &str, names: &[&str]) -> bool {
    let mut flags = flags.trim_matches(['[', ']']).split(',');
    flags.any(|flag| names.contains(&flag.trim()))
}

/// The captures of a pattern; `None` where they have names.
pub fn count_captures(pattern: &str) -> Option<usize> {
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

pub fn has_back_reference(pattern: &str) -> bool {
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        if letter == '\\' && letters.next().is_some_and(|next| next.is_ascii_digit()) {
            return true;
        }
    }
    false
}

/// Does a pattern without case fit every path?
pub fn is_everything(pattern: &str) -> bool {
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

/// A pattern that fits `bytes` as they are.
pub fn literal_pattern(bytes: &[u8]) -> String {
    let mut pattern = String::new();
    for &byte in bytes {
        match byte {
            b'/' | b'_' | b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                pattern.push(char::from(byte));
            }
            // Writing to a String does not fail.
            _ => drop(write!(pattern, "\\x{byte:02x}")),
        }
    }
    pattern
}

/// An address, a network, or the begin of an address (`10.1`) as `deny` takes them.
pub fn network(text: &str) -> Option<String> {
    if text.parse::<IpAddr>().is_ok() {
        return Some(text.to_owned());
    }
    if let Some((address, bits)) = text.split_once('/') {
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let mask = bits.parse::<std::net::Ipv4Addr>().map(u32::from);
        let bits: u32 = match mask {
            Ok(mask) if mask.leading_ones() + mask.trailing_zeros() >= 32 => mask.leading_ones(),
            _ => bits.parse().ok()?,
        };
        let bits = Some(bits).filter(|bits| *bits <= most)?;
        return Some(format!("{address}/{bits}"));
    }
    let parts: Vec<&str> = text.trim_end_matches('.').split('.').collect();
    let whole: Vec<&str> = parts.iter().copied().chain(["0"; 4]).take(4).collect();
    let address: IpAddr = whole.join(".").parse().ok()?;
    (parts.len() < 4).then(|| format!("{address}/{}", parts.len() * 8))
}

/// Does a pattern fit a text? `None` where it is no pattern, or takes too long.
pub fn matches(pattern: &str, text: &str) -> Option<bool> {
    let pattern = pcre2::bytes::Regex::new(pattern).ok()?;
    pattern.is_match(text.as_bytes()).ok()
}

/// Is it a pattern that can be written?
pub fn compiles(pattern: &str) -> bool {
    !pattern.contains('\0') && pcre2::bytes::Regex::new(pattern).is_ok()
}

/// A pattern of `RewriteRule` for the whole path. `base`: the folder of the rule with a slash at both ends, or an empty
/// text in a server, where the whole path is compared.
pub fn of_path(base: &str, pattern: &str, is_caseless: bool) -> String {
    let is_simple = |rest: &str| {
        let without_classes = anchored(rest, "\0", "$", ".");
        !without_classes.contains('\0') && !has_top_level_alternatives(rest)
    };
    let case = if is_caseless { "(?i)" } else { "" };
    match pattern.strip_prefix('^') {
        _ if [".", ".+", "^.", "^.+", "^.+$"].contains(&pattern) && !base.is_empty() => {
            format!("^{}.", literal(base))
        }
        _ if base.is_empty() => format!("{case}{pattern}"),
        Some(rest) if is_simple(rest) => {
            format!("{case}^{}{rest}", literal(base))
        }
        None if base == "/" && is_simple(pattern) && begins_with_letters(pattern) => {
            format!("{case}{pattern}")
        }
        _ => {
            let case = if is_caseless { "i" } else { "" };
            format!("^{}", rule_pattern(&literal(base), pattern, case))
        }
    }
}

/// Does what it fits begin with two letters that are no slash?
fn begins_with_letters(pattern: &str) -> bool {
    let mut letters = pattern.chars();
    let is_plain = |it: Option<char>| it.is_some_and(|it| it.is_ascii_alphanumeric() || it == '_');
    is_plain(letters.next()) && is_plain(letters.next())
}

/// A path as a pattern that is read easily.
pub fn literal(path: &str) -> String {
    let mut pattern = String::new();
    for letter in path.chars() {
        match letter {
            '.' | '+' | '*' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '^' | '$' | '|' | '\\' => {
                pattern.push('\\');
                pattern.push(letter);
            }
            _ if letter.is_control() => {
                pattern.push_str(&literal_pattern(letter.to_string().as_bytes()))
            }
            _ => pattern.push(letter),
        }
    }
    pattern
}

/// Has the pattern a `|` outside of groups?
fn has_top_level_alternatives(pattern: &str) -> bool {
    let (mut depth, mut is_class) = (0_usize, false);
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '[' => is_class = true,
            ']' => is_class = false,
            '(' if !is_class => depth += 1,
            ')' if !is_class => depth = depth.saturating_sub(1),
            '|' if !is_class && depth == 0 => return true,
            _ => {}
        }
    }
    false
}

/// The pattern, whose `.` fits line breaks as well: a refusal must not be passed by with one in a name.
pub fn over_lines(pattern: &str) -> String {
    match pattern.contains(".*") || pattern.contains(".+") {
        true => format!("(?s){pattern}"),
        false => pattern.to_owned(),
    }
}
