//! The session in which a page read, as another connection can have it.
//!
//! A worker may report anything. So a session is taken only if all of its reported settings are `SET NAMES`, or a
//! known variable that is set to one value; and `USE`, for which the name of the database stands.

use std::sync::Arc;

use learn_record::Session;

/// Variables that decide what a statement returns, or that do no harm.
const VARIABLES: &[&str] = &[
    "autocommit",
    "character_set_client",
    "character_set_connection",
    "character_set_database",
    "character_set_results",
    "character_set_server",
    "collation_connection",
    "collation_server",
    "group_concat_max_len",
    "sql_big_selects",
    "sql_mode",
    "time_zone",
    "wait_timeout",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplaySession {
    /// The collation that the client named in the handshake.
    pub collation: u8,
    pub database: Option<String>,
    /// Statements that set it up, in order.
    pub settings: Vec<String>,
    /// The seed of the hashes of its results, where the page was made under another seed than the pool's.
    pub seed: Option<u64>,
}

impl ReplaySession {
    /// `None`: it is not known in full, or was made by something else.
    pub fn of(reported: &Session<'_>) -> Option<Arc<ReplaySession>> {
        let database = reported.database.map(str::from_utf8).transpose().ok()?;
        let mut settings = Vec::new();
        let mut are_characters_of_database = false;
        for setting in reported.settings.as_ref()? {
            let setting = str::from_utf8(setting).ok()?.trim();
            let tokens = tokens(setting).unwrap_or_default();
            let is_use = setting
                .get(..3)
                .is_some_and(|it| it.eq_ignore_ascii_case("use"));
            if is_use {
                database?;
            } else if is_plain_setting(&tokens) || learned::changes_plain_modes(setting) {
                are_characters_of_database = !has_names(&tokens)
                    && (are_characters_of_database || has_characters_of_database(&tokens));
                settings.push(setting.to_owned());
            } else {
                return None;
            }
        }
        // PHP may have chosen the database before or after it.
        (!are_characters_of_database).then_some(())?;
        Some(Arc::new(ReplaySession {
            collation: reported.collation,
            database: database.map(str::to_owned),
            settings,
            seed: None,
        }))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    /// In quotes.
    Text,
    Sign(u8),
}

/// `None`: it has something that no plain setting has, such as a comment that is executed.
fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_ascii_start();
        let Some(first) = rest.bytes().next() else {
            return Some(tokens);
        };
        let length = match first {
            b'/' => {
                let comment = rest.strip_prefix("/*")?;
                let is_executed = comment.starts_with(['!', 'M']);
                let end = comment.find("*/").filter(|_| !is_executed)?;
                rest = comment.get(end + 2..)?;
                continue;
            }
            b'\'' | b'"' => {
                let inner = rest.get(1..)?;
                let end = inner.find(char::from(first))?;
                if inner.get(..end)?.contains('\\') {
                    return None;
                }
                tokens.push(Token::Text);
                end + 2
            }
            // MediaWiki writes the names of variables so.
            b'`' => {
                let inner = rest.get(1..)?;
                let name = inner.get(..inner.find('`')?)?;
                let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
                tokens.push(Token::Word(
                    Some(name).filter(|it| it.bytes().all(is_of_name))?,
                ));
                name.len() + 2
            }
            b'=' | b',' | b'@' | b'.' => {
                tokens.push(Token::Sign(first));
                1
            }
            _ => {
                let end = rest.find(|it: char| !it.is_ascii_alphanumeric() && it != '_');
                let end = end.unwrap_or(rest.len());
                tokens.push(Token::Word(rest.get(..end).filter(|it| !it.is_empty())?));
                end
            }
        };
        rest = rest.get(length..)?;
    }
}

fn is_word(token: &Token<'_>, keyword: &str) -> bool {
    matches!(token, Token::Word(word) if word.eq_ignore_ascii_case(keyword))
}

const fn is_value(token: &Token<'_>) -> bool {
    matches!(token, Token::Word(_) | Token::Text)
}

/// Whether a statement sets known variables of the session to values, and does nothing else.
fn is_plain_setting(tokens: &[Token<'_>]) -> bool {
    match tokens {
        [set, names, value] if is_word(set, "set") && is_word(names, "names") => is_value(value),
        [set, character, set_again, value]
            if is_word(set, "set") && is_word(character, "character") =>
        {
            is_word(set_again, "set") && is_value(value)
        }
        [set, names, value, collate, collation]
            if is_word(set, "set") && is_word(names, "names") =>
        {
            is_value(value) && is_word(collate, "collate") && is_value(collation)
        }
        [set, rest @ ..] if is_word(set, "set") => rest
            .split(|token| *token == Token::Sign(b','))
            .all(is_assignment),
        _ => false,
    }
}

/// Whether a plain setting names the characters of the connection.
fn has_names(tokens: &[Token<'_>]) -> bool {
    tokens.get(1).is_some_and(|it| is_word(it, "names"))
}

/// Whether the characters of the connection are those of the database after a plain setting, or may be.
fn has_characters_of_database(tokens: &[Token<'_>]) -> bool {
    let mut words = tokens.iter();
    words.any(|it| is_word(it, "character") || is_word(it, "character_set_database"))
}

fn is_assignment(part: &[Token<'_>]) -> bool {
    const AT: Token<'_> = Token::Sign(b'@');
    let assigned = match part {
        [AT, AT, scope, Token::Sign(b'.'), rest @ ..] if is_word(scope, "session") => rest,
        [AT, AT, rest @ ..] => rest,
        [scope, rest @ ..] if is_word(scope, "session") => rest,
        rest => rest,
    };
    let [Token::Word(name), Token::Sign(b'='), value] = assigned else {
        return false;
    };
    is_value(value) && VARIABLES.contains(&&*name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_plain(text: &str) -> bool {
        tokens(text).is_some_and(|tokens| is_plain_setting(&tokens))
    }

    #[test]
    fn settings_of_known_variables_to_values_are_plain_and_nothing_else_is() {
        for text in [
            "SET NAMES utf8mb4",
            "SET CHARACTER SET utf8mb4",
            "SET character_set_server = 'utf8mb4', collation_server = 'utf8mb4_unicode_ci'",
            "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_520_ci'",
            "SET SESSION sql_mode='NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION'",
            "set @@session.time_zone = '+00:00', @@sql_mode = ''",
            "SET /* Database::open */ group_concat_max_len = 262144, `sql_mode` = ''",
        ] {
            assert!(is_plain(text), "{text}");
        }
        for text in [
            "SET GLOBAL sql_mode = ''",
            "SET @@global.sql_mode = ''",
            "SET CHARACTER SET utf8mb4, sql_mode = @a",
            "SET CHARACTER NAMES utf8mb4",
            "SET @a = 1",
            "SET PASSWORD = 'a'",
            "SET general_log_file = '/tmp/a'",
            "SET sql_mode = (SELECT 1)",
            "SET sql_mode = @@global.sql_mode",
            "SET sql_mode = 'a'; DROP TABLE post",
            "SET sql_mode = 'a\\'', max_statement_time = 0",
            "SET sql_mode = 'a' 'b'",
            "SET `sql_mode = ''",
            "SET `sql_mode`` = ''",
            "SET `global` `sql_mode` = ''",
            "SET NAMES utf8 -- a",
            "SET NAMES utf8 # a",
            "SET /*!50000 GLOBAL */ sql_mode = ''",
            "SET /*M! GLOBAL */ sql_mode = ''",
            "SET sql_mode",
            "SET",
            "DROP TABLE post",
            "LOCK TABLES post READ",
            "",
        ] {
            assert!(!is_plain(text), "{text}");
        }
    }

    #[test]
    fn a_session_is_taken_whose_characters_are_not_those_of_its_database() {
        let is_taken = |settings: &[&'static [u8]]| {
            let reported = Session {
                connection: 1,
                server: b"",
                server_version: b"",
                identifier: 1,
                account: b"",
                collation: 45,
                database: Some(b"blog"),
                settings: Some(settings.to_vec()),
            };
            ReplaySession::of(&reported).is_some()
        };
        let (names, of_database) = (&b"SET NAMES utf8mb4"[..], &b"SET CHARACTER SET utf8mb4"[..]);
        let variable = &b"SET character_set_database = latin1"[..];
        let modes = &b"SET sql_mode=(SELECT REPLACE(@@sql_mode,'STRICT_ALL_TABLES',''))"[..];
        assert!(is_taken(&[]) && is_taken(&[of_database, variable, names, modes]));
        for settings in [
            &[of_database][..],
            &[names, of_database],
            &[names, variable],
        ] {
            assert!(!is_taken(settings), "{settings:?}");
        }
    }
}
