//! The size of a browser's window in pixels, as it is typed.

/// Width and height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSize {
    pub width: u32,
    pub height: u32,
}

impl Default for WindowSize {
    /// That of `--viewport`.
    fn default() -> Self {
        WindowSize {
            width: 1366,
            height: 768,
        }
    }
}

impl std::str::FromStr for WindowSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sides = text.split_once('x');
        let side = |text: &str| text.parse().ok().filter(|it| (1..=16_384).contains(it));
        match sides.map(|(width, height)| (side(width), side(height))) {
            Some((Some(width), Some(height))) => Ok(WindowSize { width, height }),
            _ => Err("expected WIDTHxHEIGHT in pixels, such as 390x844".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_two_sides() {
        let sides = |width, height| Some(WindowSize { width, height });
        for (text, expected) in [
            ("390x844", sides(390, 844)),
            ("0x1", None),
            ("390", None),
            ("99999x1", None),
            ("axb", None),
        ] {
            assert_eq!(text.parse().ok(), expected, "{text}");
        }
    }
}
