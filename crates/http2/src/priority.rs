//! Priorities (RFC 9218 §4, §5): how urgent a response is, and whether a part of it is
//! useful before the rest.

/// The value of a `priority` field or a PRIORITY_UPDATE frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// The urgency from 0, the most urgent, to 7.
    pub urgency: u8,
    /// Whether responses of one urgency may be sent in pieces, by turns.
    pub incremental: bool,
}

/// How many urgencies there are.
pub(crate) const URGENCIES: usize = 8;

impl Default for Priority {
    fn default() -> Self {
        Priority {
            urgency: 3,
            incremental: false,
        }
    }
}

impl Priority {
    /// Reads the value of a `priority` field. Values that are not understood are ignored
    /// (§4), as are members of later extensions. The value is taken apart at commas without
    /// regard to quoted strings, which neither parameter has: a client that hides one in a
    /// string changes nothing but the order of its own responses.
    ///
    /// ```
    /// use http2::Priority;
    /// let priority = Priority::parse(b"u=1, i");
    /// assert_eq!(priority, Priority { urgency: 1, incremental: true });
    /// ```
    pub fn parse(value: &[u8]) -> Self {
        let mut priority = Priority::default();
        for member in value.split(|&byte| byte == b',') {
            // Parameters of a member follow a semicolon; none are defined.
            let end = member.iter().position(|&byte| byte == b';');
            let member = member
                .get(..end.unwrap_or(member.len()))
                .unwrap_or_default();
            match member.trim_ascii() {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_understood_counts_and_the_rest_is_ignored() {
        for (value, urgency, incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("i", 3, true),
            ("i=?1", 3, true),
            ("u=5,i", 5, true),
            ("  u=7 ;x=y ,\ti;z", 7, true),
            ("u=1, u=2, i, i=?0", 2, false),
            ("u=8", 3, false),
            ("u=-1", 3, false),
            ("u=1.0", 3, false),
            ("u=22", 3, false),
            ("u", 3, false),
            ("I", 3, false),
            ("foo=bar, u=4", 4, false),
            (",,,;;=", 3, false),
        ] {
            let expected = Priority {
                urgency,
                incremental,
            };
            assert_eq!(Priority::parse(value.as_bytes()), expected, "{value:?}");
        }
    }
}
