//! Times as mod_expires has them: `"access plus 1 month 2 days"`, `A3600`, `M3600`.

const UNITS: [(&str, u64); 7] = [
    ("year", 365 * 86_400),
    ("month", 30 * 86_400),
    ("week", 7 * 86_400),
    ("day", 86_400),
    ("hour", 3600),
    ("minute", 60),
    ("second", 1),
];

/// The argument of `expires`; `None` where it cannot be read.
pub fn lifetime(text: &str) -> Option<String> {
    let lower = text.trim().to_ascii_lowercase();
    let number = lower.get(1..).and_then(|it| it.parse::<u64>().ok());
    let (is_modified, seconds) = match (lower.chars().next()?, number) {
        ('a', Some(seconds)) => (false, seconds),
        ('m', Some(seconds)) => (true, seconds),
        _ => {
            let mut words = lower.split_ascii_whitespace().peekable();
            let is_modified = match words.next()? {
                "access" | "now" => false,
                "modification" => true,
                _ => return None,
            };
            words.next_if_eq(&"plus");
            let mut seconds = 0_u64;
            while let Some(number) = words.next() {
                let number: u64 = number.parse().ok()?;
                let unit = words.next()?.trim_end_matches('s');
                let (_, length) = UNITS.iter().find(|it| it.0 == unit)?;
                seconds = seconds.checked_add(number.checked_mul(*length)?)?;
            }
            (is_modified, seconds)
        }
    };
    let text = match seconds {
        0 => "0".to_owned(),
        _ if seconds % 86_400 == 0 => format!("{}d", seconds / 86_400),
        _ if seconds % 3600 == 0 => format!("{}h", seconds / 3600),
        _ => format!("{seconds}s"),
    };
    Some(match (is_modified, seconds) {
        (true, 1..) => format!("modified +{text}"),
        (_, 0) => "0s".to_owned(),
        _ => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_those_of_expires() {
        for (text, expected) in [
            ("access plus 1 month", Some("30d")),
            ("Access 1 year", Some("365d")),
            ("now plus 90 minutes", Some("5400s")),
            ("access plus 1 day 12 hours", Some("36h")),
            ("modification plus 2 hours", Some("modified +2h")),
            ("A1209600", Some("14d")),
            ("M60", Some("modified +60s")),
            ("access plus 0 seconds", Some("0s")),
            ("access plus 99999999999999999999 years", None),
            ("later", None),
            ("", None),
        ] {
            assert_eq!(lifetime(text).as_deref(), expected, "{text}");
        }
    }
}
