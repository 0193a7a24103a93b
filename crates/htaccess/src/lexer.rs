//! Lines and words of Apache's configuration language. A line that ends with a backslash goes on in the next one; words
//! end at white space unless they are in quotes.

/// A line, with those that continue it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The number of its first physical line, from 1.
    pub number: usize,
    /// Without the backslashes that join its parts.
    pub text: String,
}

/// The lines of a text, those that go on in the next one joined.
pub fn lines(text: &str) -> Vec<Line> {
    let mut all: Vec<Line> = Vec::new();
    let mut goes_on = false;
    for (index, line) in text.lines().enumerate() {
        let (line, continues) = match line.strip_suffix('\\') {
            Some(line) => (line, true),
            None => (line, false),
        };
        match all.last_mut().filter(|_| goes_on) {
            Some(begin) => begin.text.push_str(line),
            None => all.push(Line {
                number: index + 1,
                text: line.to_owned(),
            }),
        }
        goes_on = continues;
    }
    all
}

pub fn words(line: &str) -> Vec<String> {
    split(line, false)
}

/// The words of a line of mod_rewrite: a space behind a backslash is a part of its word.
pub fn rewrite_words(line: &str) -> Vec<String> {
    split(line, true)
}

fn split(line: &str, keeps_escaped_spaces: bool) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while let Some(first) = rest.chars().next() {
        let quote = matches!(first, '"' | '\'').then_some(first);
        let mut word = String::new();
        let mut letters = rest.char_indices().skip(usize::from(quote.is_some()));
        let mut end = rest.len();
        while let Some((at, letter)) = letters.next() {
            match quote {
                Some(quote) if letter == '\\' && rest[at + 1..].starts_with(quote) => {
                    word.push(quote);
                    letters.next();
                }
                // One backslash, except for mod_rewrite, which reads its own words.
                _ if !keeps_escaped_spaces
                    && letter == '\\'
                    && rest[at + 1..].starts_with('\\') =>
                {
                    word.push('\\');
                    letters.next();
                }
                Some(quote) if letter == quote => {
                    end = at + 1;
                    break;
                }
                None if keeps_escaped_spaces
                    && letter == '\\'
                    && rest[at + 1..].starts_with([' ', '\t']) =>
                {
                    word.push_str("\\ ");
                    letters.next();
                }
                None if letter.is_whitespace() => {
                    end = at;
                    break;
                }
                _ => word.push(letter),
            }
        }
        words.push(word);
        rest = rest[end..].trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_at_spaces_outside_of_quotes() {
        for (line, expected) in [
            ("", &[][..]),
            ("  Options  -Indexes\t+X ", &["Options", "-Indexes", "+X"]),
            (
                r#"Header set A "b \"c\" d""#,
                &["Header", "set", "A", r#"b "c" d"#],
            ),
            ("A 'b c' d", &["A", "b c", "d"]),
            (r#"A "b"#, &["A", "b"]),
            (r"A b\ c", &["A", r"b\", "c"]),
        ] {
            assert_eq!(words(line), expected, "{line}");
        }
        assert_eq!(rewrite_words(r"A b\ c d"), ["A", r"b\ c", "d"]);
    }

    #[test]
    fn lines_that_end_with_a_backslash_go_on() {
        let text = "a \\\nb\n\nc \\";
        let found: Vec<(usize, String)> = lines(text)
            .into_iter()
            .map(|it| (it.number, it.text))
            .collect();
        assert_eq!(
            found,
            [
                (1, "a b".to_owned()),
                (3, String::new()),
                (4, "c ".to_owned())
            ]
        );
    }
}
