//! Settings in the text of a PHP file, as far as they are literals. Pure: no PHP runs.
//!
//! A setting is known if its name stands in the file once, in a statement of its own that sets it to one string. A
//! setting in a condition, or one that is set twice, is not known: PHP decides which value holds.

/// The text of a PHP file.
pub(super) struct PhpSettings {
    text: String,
}

impl PhpSettings {
    pub(super) fn of(text: &str) -> PhpSettings {
        PhpSettings {
            text: without_comments(text),
        }
    }

    pub(super) fn mentions(&self, name: &str) -> bool {
        self.occurrences(name) > 0
    }

    /// The string that `define('NAME', '...');` gives to a constant.
    pub(super) fn constant(&self, name: &str) -> Option<String> {
        self.only_value(name, |statement| {
            let arguments = statement.strip_prefix("define")?.trim_start();
            let arguments = arguments.strip_prefix('(')?.trim_start();
            let (defined, rest) = literal(arguments)?;
            let (value, rest) = literal(rest.trim_start().strip_prefix(',')?.trim_start())?;
            (defined == name && rest.trim() == ")").then_some(value)
        })
    }

    /// The string that `$NAME = '...';` gives to a variable.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.only_value(name, |statement| {
            let rest = statement.strip_prefix('$')?.strip_prefix(name)?;
            let value = rest.trim_start().strip_prefix('=')?.trim_start();
            let (value, rest) = literal(value)?;
            rest.trim().is_empty().then_some(value)
        })
    }

    fn only_value(&self, name: &str, value: impl Fn(&str) -> Option<String>) -> Option<String> {
        if self.occurrences(name) != 1 {
            return None;
        }
        plain_statements(&self.text).find_map(value)
    }

    fn occurrences(&self, name: &str) -> usize {
        occurrences(&self.text, name)
    }
}

/// How often the name stands there as a whole word.
pub(super) fn occurrences(text: &str, name: &str) -> usize {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|it| is_word(*it));
    let bytes = text.as_bytes();
    let whole = text.match_indices(name).filter(|(at, _)| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        !is_word(before) && !is_word(bytes.get(at + name.len()))
    });
    whole.count()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The statements that stand in no block but a class, up to where PHP ends or a heredoc begins, in which anything may stand.
pub(super) fn plain_statements(text: &str) -> impl Iterator<Item = &str> {
    let begin = text.find("<?php").map_or(0, |at| at + "<?php".len());
    let mut rest = text.get(begin..).unwrap_or_default();
    let mut depth = 0_usize;
    std::iter::from_fn(move || {
        loop {
            let end = statement_end(rest)?;
            let (statement, behind) = rest.split_at(end);
            let last = behind.chars().next()?;
            rest = behind.get(1..)?;
            let is_plain = depth == 0 && last == ';';
            depth = match last {
                '{' if depth == 0 && opens_class(statement) => 0,
                '{' => depth + 1,
                '}' => depth.saturating_sub(1),
                _ => depth,
            };
            if is_plain {
                return Some(statement.trim());
            }
        }
    })
}

fn opens_class(statement: &str) -> bool {
    let words = statement.split_ascii_whitespace();
    let mut words = words.skip_while(|word| matches!(*word, "final" | "abstract"));
    words.next() == Some("class")
}

/// Returns the position of the first `;`, `{` or `}` outside of strings.
fn statement_end(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        at += match rest.chars().next()? {
            ';' | '{' | '}' => return Some(at),
            '\'' | '"' => string_length(rest),
            _ if rest.starts_with("?>") || rest.starts_with("<<<") => return None,
            other => other.len_utf8(),
        };
    }
}

/// The value of a string at the beginning of the text, and the text behind it.
pub(super) fn literal(text: &str) -> Option<(String, &str)> {
    let (string, rest) = text.split_at_checked(string_length(text))?;
    let quote = string
        .chars()
        .next()
        .filter(|it| ['\'', '"'].contains(it))?;
    let inner = string.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut value = String::with_capacity(inner.len());
    let mut letters = inner.chars().peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied();
        match (letter, next) {
            ('\\', Some('\\')) => {
                letters.next();
                value.push('\\');
            }
            ('\\', Some(escaped)) if escaped == quote => {
                letters.next();
                value.push(escaped);
            }
            ('\\', Some('$')) if quote == '"' => {
                letters.next();
                value.push('$');
            }
            // Line breaks, numbers of letters, variables.
            ('\\', _) if quote == '"' => return None,
            ('$', Some(next)) if quote == '"' && (next == '{' || starts_name(next)) => return None,
            _ => value.push(letter),
        }
    }
    Some((value, rest))
}

fn starts_name(letter: char) -> bool {
    letter.is_ascii_alphabetic() || letter == '_' || !letter.is_ascii()
}

/// The length of the string at the beginning of the text, with its quotes; all of the text if it does not end.
pub(super) fn string_length(text: &str) -> usize {
    let mut letters = text.char_indices();
    let quote = letters.next().map(|(_, quote)| quote);
    let mut is_escaped = false;
    for (at, letter) in letters {
        if Some(letter) == quote && !is_escaped {
            return at + letter.len_utf8();
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    text.len()
}

/// Returns the text without PHP's comments.
pub(super) fn without_comments(text: &str) -> String {
    let mut left = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '\'' | '"' => {
                let end = string_length(rest);
                left.push_str(rest.get(..end).unwrap_or_default());
                end
            }
            _ if first == '#' || rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            _ => {
                left.push(first);
                first.len_utf8()
            }
        };
        rest = rest.get(end..).unwrap_or_default();
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_is_known_where_one_statement_of_its_own_defines_it() {
        for (text, expected) in [
            ("define('DB_USER', 'blog');", Some("blog")),
            ("define( \"DB_USER\" ,\n \"blog\" ) ;", Some("blog")),
            ("define('DB_USER', '');", Some("")),
            (
                r"define('DB_USER', 'a;b{c}\'d\\e\f$g//h#i');",
                Some(r"a;b{c}'d\e\f$g//h#i"),
            ),
            (r#"define('DB_USER', "a\"b\$c\\d$");"#, Some(r#"a"b$c\d$"#)),
            (
                "/* define('DB_USER', 'old'); */ define('DB_USER', 'blog');",
                Some("blog"),
            ),
            (
                "define('DB_USER_2', 'other'); define('DB_USER', 'blog');",
                Some("blog"),
            ),
            (
                "if (true) { echo 1; } define('DB_USER', 'blog');",
                Some("blog"),
            ),
            // Not a literal.
            ("define('DB_USER', getenv('USER'));", None),
            ("define('DB_USER', 'a' . 'b');", None),
            ("define('DB_USER', \"$name\");", None),
            ("define('DB_USER', \"{$name}\");", None),
            ("define('DB_USER', \"a\\n\");", None),
            ("define('DB_USER', USER);", None),
            // Not a statement that is sure to run, or not the only one.
            ("if ($local) { define('DB_USER', 'blog'); }", None),
            ("if ($local) define('DB_USER', 'blog');", None),
            ("defined('DB_USER') || define('DB_USER', 'blog');", None),
            ("define('DB_USER', 'a'); define('DB_USER', 'b');", None),
            ("echo \"define('DB_USER', 'blog');\";", None),
            ("echo <<<END\ndefine('DB_USER', 'blog');\nEND;", None),
            ("?> define('DB_USER', 'blog');", None),
            // Cut off.
            ("define('DB_USER', 'blog", None),
            ("define('DB_USER', 'blog')", None),
            ("", None),
        ] {
            let settings = PhpSettings::of(&format!("<?php\n{text}"));
            assert_eq!(settings.constant("DB_USER").as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_variable_is_known_where_one_statement_of_its_own_assigns_it() {
        for (text, expected) in [
            ("$wgDBuser = 'wiki';", Some("wiki")),
            ("$wgDBuser=\"wiki\";", Some("wiki")),
            ("$wgDBuser .= 'wiki';", None),
            ("$wgDBuser == 'wiki';", None),
            ("$wgDBuser = 'wiki'; $wgDBuser = 'other';", None),
            ("$other = $wgDBuser = 'wiki';", None),
        ] {
            let settings = PhpSettings::of(&format!("<?php\n{text}"));
            assert_eq!(settings.variable("wgDBuser").as_deref(), expected, "{text}");
        }
    }
}
