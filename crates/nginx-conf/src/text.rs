//! Writing nginx's syntax: lines, blocks and values, indented and quoted. Knows
//! the grammar and no directive's meaning; values it cannot carry are refused.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// A value that nginx's syntax cannot carry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} cannot be written in a configuration: it must be UTF-8 without `$` and control characters"
)]
pub struct CannotWrite(String);

/// The text being written.
#[derive(Debug, Default)]
pub struct Conf {
    /// The text written so far.
    pub text: String,
    depth: usize,
}

impl Conf {
    pub fn line(&mut self, line: &str) {
        // Writing to a String does not fail.
        let _ = writeln!(self.text, "{:indent$}{line}", "", indent = self.depth * 4);
    }

    pub fn note(&mut self, note: &str) {
        self.line(&format!("# {note}"));
    }

    pub fn gap(&mut self) {
        self.text.push('\n');
    }

    pub fn open(&mut self, head: &str) {
        self.line(&format!("{head} {{"));
        self.depth += 1;
    }

    pub fn close(&mut self) {
        while self.text.ends_with("\n\n") {
            self.text.pop();
        }
        self.depth = self.depth.saturating_sub(1);
        self.line("}");
    }

    pub fn map(&mut self, head: &str, cases: &[(&str, &str)]) {
        self.open(&format!("map {head}"));
        for (key, value) in cases {
            match key.starts_with('~') {
                true => self.line(&format!("\"{key}\" {value};")),
                false => self.line(&format!("{key} {value};")),
            }
        }
        self.close();
        self.gap();
    }
}

/// A path as an argument.
pub fn path(path: &Path) -> Result<String, CannotWrite> {
    match path.to_str() {
        Some(text) => word(text),
        None => Err(CannotWrite(path.to_string_lossy().into_owned())),
    }
}

/// Text as an argument, quoted if it must be. There is no way to write a `$`
/// where variables are allowed.
pub fn word(text: &str) -> Result<String, CannotWrite> {
    if text.is_empty() || text.contains('$') || text.chars().any(char::is_control) {
        return Err(CannotWrite(text.to_owned()));
    }
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-:[]@+,=~".contains(letter);
    if text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    Ok(format!(
        "\"{}\"",
        text.replace('\\', "\\\\").replace('"', "\\\"")
    ))
}

/// A directive with words; nothing without words.
pub fn list(conf: &mut Conf, directive: &str, words: &[&str]) {
    if words.is_empty() {
        return;
    }
    let words: Vec<String> = words.iter().map(|word| table_word(word)).collect();
    let mut line = directive.to_owned();
    let mut lines = Vec::new();
    for word in words {
        if line.len() + word.len() > MAX_LINE_BYTES {
            lines.push(std::mem::replace(&mut line, "   ".to_owned()));
        }
        line.push(' ');
        line.push_str(&word);
    }
    lines.push(line + ";");
    for line in lines {
        conf.line(&line);
    }
}

/// Long lists go on in a line of their own.
const MAX_LINE_BYTES: usize = 90;

/// A name or a pattern of the tables, in quotes where the syntax wants them.
pub fn table_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.*/=".contains(&byte);
    match word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("\"{word}\""),
    }
}

/// Text without variables as an argument.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A duration in nginx's units, whole seconds where it is.
pub fn time(duration: Duration) -> String {
    match duration.subsec_millis() {
        0 => format!("{}s", duration.as_secs()),
        _ => format!("{}ms", duration.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_or_refused() {
        let cases = [
            ("/srv/site", Some("/srv/site")),
            ("/srv/my site", Some("\"/srv/my site\"")),
            ("/srv/a\"b\\c;{}", Some("\"/srv/a\\\"b\\\\c;{}\"")),
            ("[::]:80", Some("[::]:80")),
            ("/srv/$x", None),
            ("/srv/a\nb", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(word(text).ok().as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn lifetimes_are_written_in_whole_seconds_or_milliseconds() {
        let cases = [
            (1000, "1s"),
            (200, "200ms"),
            (1500, "1500ms"),
            (60_000, "60s"),
        ];
        for (milliseconds, expected) in cases {
            assert_eq!(time(Duration::from_millis(milliseconds)), expected);
        }
    }
}
