//! System errors as nginx writes them: `(98: Address already in use)`.

use std::io;

/// `98: Address already in use`
pub fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => {
            let text = error.to_string();
            let suffix = format!(" (os error {number})");
            format!("{number}: {}", text.strip_suffix(&suffix).unwrap_or(&text))
        }
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_comes_before_the_text() {
        let error = io::Error::from_raw_os_error(98);
        assert_eq!(reason(&error), "98: Address already in use");
        assert_eq!(reason(&io::Error::other("odd")), "odd");
    }
}
