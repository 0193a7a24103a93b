//! `ExpiresActive`, `ExpiresDefault` and `ExpiresByType` (`mod_expires`).

/// How long a response may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    pub seconds: i64,
    /// From the last change of the file, not from now.
    pub from_change: bool,
}

/// The lines of a section about lifetimes.
#[derive(Clone, Debug, Default)]
pub struct ExpiresSettings {
    pub is_active: Option<bool>,
    pub default: Option<Lifetime>,
    /// By media type, in lower case; a later line holds.
    pub by_type: Vec<(String, Lifetime)>,
}

impl ExpiresSettings {
    pub fn is_empty(&self) -> bool {
        self.is_active.is_none() && self.default.is_none() && self.by_type.is_empty()
    }

    pub fn merge(&mut self, inner: &ExpiresSettings) {
        self.is_active = inner.is_active.or(self.is_active);
        self.default = inner.default.or(self.default);
        self.by_type.extend(inner.by_type.iter().cloned());
    }

    /// Returns the lifetime of a media type, which may have parameters.
    pub fn of(&self, media_type: &[u8]) -> Option<Lifetime> {
        if self.is_active != Some(true) {
            return None;
        }
        let bare = media_type
            .split(|byte| *byte == b';')
            .next()
            .unwrap_or_default();
        let bare = String::from_utf8_lossy(bare.trim_ascii()).to_ascii_lowercase();
        let family = bare
            .split_once('/')
            .map(|(family, _)| format!("{family}/*"));
        let named = |name: &str| {
            let mut lines = self.by_type.iter().rev();
            lines
                .find(|(own, _)| own == name)
                .map(|(_, lifetime)| *lifetime)
        };
        let of_type = named(&bare).or_else(|| named(&family?));
        of_type.or(self.default)
    }
}

/// `access plus 1 month 2 days`, `A3600`
pub fn lifetime(args: &[String]) -> Option<Lifetime> {
    let text = args.join(" ").to_ascii_lowercase();
    let mut words = text.split_whitespace();
    let base = words.next()?;
    let short = base.split_at_checked(1)?;
    if let (base @ ("a" | "m"), Ok(seconds)) = (short.0, short.1.parse()) {
        let from_change = base == "m";
        let is_whole = words.next().is_none();
        return is_whole.then_some(Lifetime {
            seconds,
            from_change,
        });
    }
    let from_change = match base {
        "access" | "now" => false,
        "modification" => true,
        _ => return None,
    };
    let mut words = words.skip_while(|it| *it == "plus").peekable();
    let mut seconds = 0i64;
    words.peek()?;
    while let Some(number) = words.next() {
        let number: i64 = number.parse().ok()?;
        let unit = match words.next()?.trim_end_matches('s') {
            "year" => 365 * 86_400,
            "month" => 30 * 86_400,
            "week" => 7 * 86_400,
            "day" => 86_400,
            "hour" => 3600,
            "minute" => 60,
            "second" => 1,
            _ => return None,
        };
        seconds = seconds.checked_add(number.checked_mul(unit)?)?;
    }
    Some(Lifetime {
        seconds,
        from_change,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_read_as_apache_reads_them() {
        for (text, expected) in [
            ("access plus 1 month 2 days", Some((2_764_800, false))),
            ("modification 1 hour", Some((3600, true))),
            ("now plus 0 seconds", Some((0, false))),
            ("A2592000", Some((2_592_000, false))),
            ("M60", Some((60, true))),
            ("access", None),
            ("access plus 1", None),
            ("access plus 99999999999999999 years", None),
            ("soon", None),
            ("", None),
        ] {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let found = lifetime(&words).map(|it| (it.seconds, it.from_change));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_type_comes_before_its_family_and_before_the_default() {
        let of = |seconds| Lifetime {
            seconds,
            from_change: false,
        };
        let settings = ExpiresSettings {
            is_active: Some(true),
            default: Some(of(1)),
            by_type: vec![
                ("image/png".to_owned(), of(2)),
                ("image/*".to_owned(), of(3)),
                ("image/png".to_owned(), of(4)),
            ],
        };
        for (media_type, seconds) in [("image/PNG", 4), ("image/gif; a=b", 3), ("text/html", 1)] {
            let found = settings.of(media_type.as_bytes());
            assert_eq!(found, Some(of(seconds)), "{media_type}");
        }
    }
}
