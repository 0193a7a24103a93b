//! What of a session decides how the text of a statement is read.

/// A session as its statements leave it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Session {
    pub database: Option<String>,
    /// The character set has bytes of ASCII within other characters (GBK, SJIS, Big5), or is not known.
    pub has_foreign_characters: bool,
    /// `"` encloses names instead of texts.
    pub has_ansi_quotes: bool,
    pub has_no_backslash_escapes: bool,
}

impl Session {
    /// As it begins, with the collation that the client named in the handshake.
    pub fn new(database: Option<String>, collation: u8) -> Self {
        // latin1, utf8 and utf8mb4, ascii, binary; the newer numbers are utf8mb4's.
        let is_known = matches!(collation, 5 | 8 | 11 | 15 | 31 | 33 | 45..=49 | 63 | 65 | 76 | 83 | 94 | 192..=247);
        Self {
            database,
            has_foreign_characters: !is_known,
            ..Self::default()
        }
    }

    /// Follows USE and SET; other statements change nothing.
    pub fn follow(&mut self, statement: &str) {
        let text = statement
            .trim()
            .trim_end_matches(';')
            .trim_end()
            .to_ascii_lowercase();
        let Some((keyword, rest)) =
            text.split_once(|it: char| it.is_ascii_whitespace() || it == '`')
        else {
            return;
        };
        match keyword {
            "use" => {
                let name =
                    statement.trim().trim_end_matches(';').trim_end()[keyword.len()..].trim();
                self.database = Some(name.trim_matches('`').to_owned());
            }
            "set" => self.follow_settings(rest),
            _ => {}
        }
    }

    fn follow_settings(&mut self, settings: &str) {
        let words: Vec<_> = settings
            .split(|it: char| !it.is_ascii_alphanumeric() && it != '_')
            .filter(|word| !word.is_empty())
            .collect();
        for (index, word) in words.iter().enumerate() {
            let value = match *word {
                "names" | "charset" | "character_set_client" => index + 1,
                "character" if words.get(index + 1) == Some(&"set") => index + 2,
                _ => continue,
            };
            let name = words.get(value).copied().unwrap_or_default();
            self.has_foreign_characters = !matches!(
                name,
                "utf8" | "utf8mb3" | "utf8mb4" | "latin1" | "ascii" | "binary"
            );
        }
        if words.contains(&"sql_mode") {
            let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
            // What is computed may be any mode.
            let is_computed = settings.contains('(') || settings.contains('@');
            self.has_ansi_quotes = is_computed
                || has(&[
                    "ansi",
                    "ansi_quotes",
                    "oracle",
                    "mssql",
                    "db2",
                    "maxdb",
                    "postgresql",
                ]);
            self.has_no_backslash_escapes = is_computed || has(&["no_backslash_escapes"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_change_the_database_characters_and_quotes() {
        let mut session = Session::new(Some("blog".to_owned()), 45);
        let mut after = |statement: &str| {
            session.follow(statement);
            let Session {
                database,
                has_foreign_characters,
                has_ansi_quotes,
                has_no_backslash_escapes,
            } = &session;
            (
                database.clone().unwrap(),
                [
                    *has_foreign_characters,
                    *has_ansi_quotes,
                    *has_no_backslash_escapes,
                ],
            )
        };
        for (statement, database, flags) in [
            ("SELECT 1", "blog", [false; 3]),
            ("USE Shop", "Shop", [false; 3]),
            ("use `my shop` ;", "my shop", [false; 3]),
            ("SET NAMES gbk", "my shop", [true, false, false]),
            (
                "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_bin'",
                "my shop",
                [false; 3],
            ),
            (
                "SET SESSION character_set_client = sjis",
                "my shop",
                [true, false, false],
            ),
            ("set character set latin1", "my shop", [false; 3]),
            (
                "SET SESSION sql_mode='ANSI_QUOTES'",
                "my shop",
                [false, true, false],
            ),
            (
                "SET sql_mode='STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES'",
                "my shop",
                [false, false, true],
            ),
            (
                "SET sql_mode=CONCAT(@@sql_mode, ',ANSI')",
                "my shop",
                [false, true, true],
            ),
            ("SET sql_mode=''", "my shop", [false; 3]),
            ("SET time_zone = '+00:00'", "my shop", [false; 3]),
        ] {
            assert_eq!(
                after(statement),
                (database.to_owned(), flags),
                "{statement}"
            );
        }
        assert!(
            Session::new(None, 28).has_foreign_characters,
            "GBK from the beginning"
        );
    }
}
