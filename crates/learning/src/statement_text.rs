//! A statement as people are shown it: without its values, which may be a visitor's password or address.

/// The text with `?` in the place of strings and numbers.
pub fn without_values(statement: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(statement.len());
    let mut at = 0;
    while let Some(&byte) = statement.get(at) {
        let is_in_name = shown.last().is_some_and(|last: &u8| is_of_name(*last));
        let end = match byte {
            b'\'' | b'"' => end_of_string(statement, at),
            b'`' => end_of_name(statement, at),
            b'0'..=b'9' if !is_in_name => end_of_number(statement, at),
            _ => at + 1,
        };
        let is_value = matches!(byte, b'\'' | b'"') || byte.is_ascii_digit() && !is_in_name;
        match is_value {
            true => shown.push(b'?'),
            false => shown.extend_from_slice(statement.get(at..end).unwrap_or_default()),
        }
        at = end;
    }
    shown
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// Behind the closing quote: a doubled one and one behind a backslash are within. Without one, the end of the text.
fn end_of_string(statement: &[u8], start: usize) -> usize {
    let quote = statement.get(start).copied().unwrap_or(b'\'');
    let mut at = start + 1;
    while let Some(&byte) = statement.get(at) {
        let is_doubled = byte == quote && statement.get(at + 1) == Some(&quote);
        match byte {
            b'\\' => at += 2,
            _ if is_doubled => at += 2,
            _ if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    statement.len()
}

fn end_of_name(statement: &[u8], start: usize) -> usize {
    let rest = statement.get(start + 1..).unwrap_or_default();
    let length = rest.iter().position(|byte| *byte == b'`');
    length.map_or(statement.len(), |length| start + length + 2)
}

fn end_of_number(statement: &[u8], start: usize) -> usize {
    let rest = statement.get(start..).unwrap_or_default();
    let is_of_number = |byte: &u8| is_of_name(*byte) || *byte == b'.';
    start + rest.iter().take_while(|byte| is_of_number(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_shown_without_its_values() {
        for (statement, expected) in [
            (
                "UPDATE wp2_users SET pass = 'a''b\\'c', n=-1.5e3 WHERE `4x`=0x1F",
                "UPDATE wp2_users SET pass = ?, n=-? WHERE `4x`=?",
            ),
            ("SELECT \"a\\\"b\", t1.c2", "SELECT ?, t1.c2"),
            ("SELECT 'open", "SELECT ?"),
            ("SELECT '\\", "SELECT ?"),
            ("SELECT `open", "SELECT `open"),
            ("", ""),
        ] {
            let shown = without_values(statement.as_bytes());
            assert_eq!(String::from_utf8_lossy(&shown), expected);
        }
    }
}
