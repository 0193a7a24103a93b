//! Lowers the cookie by which a client is known again: `userid`, `userid_*`.

use super::Lowering;
use super::level::Level;
use super::values::bytes;
use crate::model::*;

impl Lowering<'_> {
    pub fn user_id(&mut self, level: &Level<'_>) -> Option<UserIdSettings> {
        // All are read, so that mistakes are reported where it is off.
        let mut settings = UserIdSettings {
            version: None,
            name: bytes(text(level, "userid_name").unwrap_or("uid")),
            expires: self.user_id_expires(level),
            attributes: self.user_id_attributes(level),
            p3p: bytes(
                text(level, "userid_p3p")
                    .filter(|text| *text != "none")
                    .unwrap_or(""),
            ),
            mark: self.user_id_mark(level),
            service: level.word("userid_service").and_then(|word| {
                let number = self.number_of(word)?;
                Some(u32::try_from(number).unwrap_or(u32::MAX))
            }),
            reset: None,
        };
        let word = level.word("userid")?;
        settings.version = match word.text.as_str() {
            "off" => return None,
            "log" => None,
            "v1" => Some(UserIdVersion::One),
            "on" => Some(UserIdVersion::Two),
            _ => {
                self.invalid(word, "value", "expected on, v1, log or off");
                return None;
            }
        };
        if self.variables.is_defined("uid_reset") {
            settings.reset = Some(self.template_in(word, 0, "$uid_reset"));
        }
        Some(settings)
    }

    fn user_id_expires(&mut self, level: &Level<'_>) -> UserIdExpires {
        let Some(node) = level.find("userid_expires") else {
            return UserIdExpires::Session;
        };
        match node.arg(0).text.as_str() {
            "off" => UserIdExpires::Session,
            "max" => UserIdExpires::Max,
            _ => match self.duration_of(node.arg(0)) {
                Some(time) => UserIdExpires::After(time),
                None => UserIdExpires::Session,
            },
        }
    }

    fn user_id_mark(&mut self, level: &Level<'_>) -> Option<u8> {
        let word = level.word("userid_mark")?;
        match word.text.as_bytes() {
            b"off" => None,
            &[mark] if mark.is_ascii_alphanumeric() || mark == b'=' => Some(mark),
            _ => {
                self.invalid(word, "value", "expected off, or one letter, digit or =");
                None
            }
        }
    }

    fn user_id_attributes(&mut self, level: &Level<'_>) -> Box<[u8]> {
        let mut attributes = String::new();
        if let Some(domain) = text(level, "userid_domain").filter(|domain| *domain != "none") {
            attributes = format!("; domain={domain}");
        }
        attributes += "; path=";
        attributes += text(level, "userid_path").unwrap_or("/");
        let words: Vec<_> = level
            .all("userid_flags")
            .iter()
            .flat_map(|node| node.args())
            .collect();
        const FLAGS: [&str; 5] = [
            "secure",
            "httponly",
            "samesite=strict",
            "samesite=lax",
            "samesite=none",
        ];
        for flag in FLAGS {
            if words.iter().any(|word| word.text == flag) {
                attributes = attributes + "; " + flag;
            }
        }
        for word in words {
            if word.text != "off" && !FLAGS.contains(&word.text.as_str()) {
                self.invalid(
                    word,
                    "flag",
                    "expected off, secure, httponly or samesite=strict|lax|none",
                );
            }
        }
        bytes(&attributes)
    }
}

fn text<'t>(level: &Level<'t>, name: &str) -> Option<&'t str> {
    Some(level.word(name)?.text.as_str())
}
