//! Patterns with other signs for their anchors.

/// A pattern with other words for `^`, `$` and `.`, where these have their meaning.
pub fn anchored(regex: &str, begin: &str, end: &str, any: &str) -> String {
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
