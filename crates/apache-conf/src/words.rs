//! Words of nginx's syntax.

use nginx_conf::text::quoted;

/// A word, in quotes where it needs some.
pub fn argument(text: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-:?&=+,@%$~[]".contains(it);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => quoted(text),
    }
}

/// Lines as they are, as one argument.
pub fn text(lines: &str) -> String {
    let escaped = lines.replace('\\', "\\\\").replace('\'', "\\'");
    format!("'\n{escaped}'")
}
