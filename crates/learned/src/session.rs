//! The settings of a session that decide how the text of a statement is read, and what it returns.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::not_learned::NotLearned;
use crate::postgres;

/// utf8mb4_general_ci
const UTF8: u8 = 45;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Characters {
    Utf8,
    /// One byte is one character, and those of ASCII are ASCII's.
    SingleBytes,
    /// Texts are bytes without a collation (binary), as MediaWiki has it.
    Bytes,
    /// Bytes of ASCII stand within other characters (GBK, SJIS, Big5), or it is not known.
    Foreign,
}

/// Modes under which a statement is not read. Others change what is stored, which the rules for written values leave
/// open, or the meaning of texts that are not read in any mode: `||`, and a blank before a parenthesis.
const FOREIGN_MODES: &[&str] = &[
    "oracle",
    "mssql",
    "db2",
    "maxdb",
    "postgresql",
    "mysql323",
    "mysql40",
    "no_backslash_escapes",
    "high_not_precedence",
    // An empty text is stored as NULL.
    "empty_string_is_null",
];

/// Modes under which `"a"` is a name. Drupal sets one of them in each session.
const NAME_MODES: &[&str] = &["ansi", "ansi_quotes"];

/// Modes that change nothing of how a statement is read. No other mode has one of these names within its own.
const PLAIN_MODES: &[&str] = &[
    "only_full_group_by",
    "strict_trans_tables",
    "strict_all_tables",
    "no_zero_in_date",
    "no_zero_date",
    "error_for_division_by_zero",
    "no_auto_create_user",
    "no_engine_substitution",
];

/// A session as its statements leave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub database: Option<String>,
    characters: Characters,
    /// `"a"` is a name.
    has_ansi_quotes: bool,
    is_of_postgres: bool,
    doubts: Vec<NotLearned>,
    settings: u64,
}

impl Session {
    /// A new session, with the collation that the client named in the handshake.
    pub fn new(database: Option<String>, collation: u8) -> Self {
        let characters = match collation {
            // utf8 and utf8mb4; the newer numbers are utf8mb4's. 255 is MySQL's own choice since 8.0.
            33 | 45 | 46 | 76 | 83 | 192..=247 | 255 => Characters::Utf8,
            // latin1 and ascii.
            5 | 8 | 11 | 15 | 31 | 47..=49 | 65 | 94 => Characters::SingleBytes,
            63 => Characters::Bytes,
            _ => Characters::Foreign,
        };
        Self {
            database,
            characters,
            has_ansi_quotes: false,
            is_of_postgres: false,
            doubts: Vec::new(),
            settings: u64::from(collation),
        }
    }

    /// A new session of a PostgreSQL, whose texts and characters are read plainly.
    pub fn of_postgres() -> Self {
        Self {
            is_of_postgres: true,
            ..Self::new(None, UTF8)
        }
    }

    pub(crate) const fn is_of_postgres(&self) -> bool {
        self.is_of_postgres
    }

    /// Modes that the server has for each new session (`@@global.sql_mode`).
    pub fn set_modes(&mut self, modes: &str) {
        let modes = modes.to_ascii_lowercase();
        let is_one_of = |some: &[&str]| modes.split(',').any(|mode| some.contains(&mode.trim()));
        self.has_ansi_quotes = is_one_of(NAME_MODES);
        self.doubt(NotLearned::SessionMode, is_one_of(FOREIGN_MODES));
    }

    /// Two sessions with one number have equal settings, made in one order.
    pub const fn settings(&self) -> u64 {
        self.settings
    }

    /// Why nothing that this session returns is learned.
    pub(crate) fn doubts(&self) -> Option<NotLearned> {
        match self.characters {
            Characters::Foreign => Some(NotLearned::SessionMode),
            Characters::Utf8 | Characters::SingleBytes | Characters::Bytes => {
                self.doubts.first().copied()
            }
        }
    }

    /// Whether its texts cannot be read, so that a statement may be any.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.characters == Characters::Foreign || self.doubts.contains(&NotLearned::SessionMode)
    }

    /// Whether texts are compared by their bytes, whatever the collation of the column.
    pub(crate) fn compares_bytes(&self) -> bool {
        self.characters == Characters::Bytes
    }

    pub(crate) fn has_utf8_names(&self) -> bool {
        self.characters == Characters::Utf8
    }

    pub(crate) fn has_ansi_quotes(&self) -> bool {
        self.has_ansi_quotes
    }

    fn doubt(&mut self, reason: NotLearned, is_doubtful: bool) {
        self.doubts.retain(|it| *it != reason);
        if is_doubtful {
            self.doubts.push(reason);
        }
    }

    /// Follows a statement that the server has executed, of any kind.
    pub fn follow(&mut self, statement: &[u8]) {
        let text = String::from_utf8_lossy(statement);
        if self.is_of_postgres {
            self.hash(&text);
            if let Some(reason) = postgres::change_of_session(&text) {
                self.doubt(reason, true);
            }
            return;
        }
        let plain = PlainText::of(&text, self.has_ansi_quotes);
        let Some(PlainText { text, has_several }) = plain else {
            return self.follow_hidden(&text);
        };
        let text = text.trim().trim_end_matches(';').trim_end();
        let end = text
            .find(|it: char| !it.is_ascii_alphabetic())
            .unwrap_or(text.len());
        let (keyword, rest) = text.split_at(end);
        match &keyword.to_ascii_lowercase()[..] {
            "use" => self.database = Some(unquoted(rest.trim(), self.has_ansi_quotes)),
            "set" if !has_several => self.follow_settings(&rest.to_ascii_lowercase()),
            "create" if has_word(rest, "temporary") => self.doubt(NotLearned::TemporaryTable, true),
            // They change nothing of a session, whatever they do.
            "select" | "insert" | "update" | "delete" | "replace" | "with" | "show"
            | "describe" | "desc" | "explain" | "begin" | "start" | "commit" | "rollback"
            | "savepoint" | "release" | "create" | "alter" | "drop" | "rename" | "truncate"
            | "lock" | "unlock" | "analyze" | "optimize" | "check" | "repair" | "flush"
            | "grant" | "revoke" | "kill" | "load" | "handler"
                if !has_several => {}
            "" if text.starts_with('(') && !has_several => {}
            // Procedures and prepared statements may set anything.
            _ => self.doubt_all(text),
        }
        // A function may set variables of the session as well; what it returns is not learned.
    }

    /// A statement with comments that are executed, or that is not understood: it is followed as if all in
    /// it were executed.
    fn follow_hidden(&mut self, text: &str) {
        let sets = ["set", "use", "call", "execute", "temporary"];
        if sets.iter().any(|word| has_word(text, word)) {
            self.doubt_all(text);
        }
    }

    fn doubt_all(&mut self, text: &str) {
        self.hash(text);
        self.doubt(NotLearned::SessionMode, true);
    }

    fn hash(&mut self, text: &str) {
        let mut hasher = DefaultHasher::new();
        (self.settings, text).hash(&mut hasher);
        self.settings = hasher.finish();
    }

    fn follow_settings(&mut self, settings: &str) {
        if is_of_user_variables(settings) {
            return;
        }
        let words: Vec<_> = words(settings).collect();
        // They set what others have, or what one statement has.
        if ["global", "persist", "persist_only", "statement"]
            .iter()
            .any(|scope| words.contains(scope))
        {
            return self.doubt_all(settings);
        }
        self.hash(settings);
        // A computed value may be any mode or name, and a text may have any words.
        let is_computed = settings.contains(['(', '@']);
        for (index, word) in words.iter().enumerate() {
            let value = match *word {
                "names"
                | "charset"
                | "character_set_client"
                | "character_set_connection"
                | "collation_connection" => index + 1,
                "character" if words.get(index + 1) == Some(&"set") => index + 2,
                _ => continue,
            };
            let name = words.get(value).copied().unwrap_or_default();
            // The characters of the connection must be readable; the client's decide alone.
            let is_of_connection =
                matches!(*word, "character_set_connection" | "collation_connection");
            let characters = match name.split('_').next().unwrap_or_default() {
                "utf8" | "utf8mb3" | "utf8mb4" => Characters::Utf8,
                "latin1" | "ascii" => Characters::SingleBytes,
                "binary" if !is_of_connection => Characters::Bytes,
                _ => Characters::Foreign,
            };
            let characters = if is_computed {
                Characters::Foreign
            } else {
                characters
            };
            if !is_of_connection || characters == Characters::Foreign {
                self.characters = characters;
            }
        }
        // The next number of a column that counts up may be one that is there.
        if words.contains(&"insert_id") {
            self.doubt(NotLearned::SessionMode, true);
        }
        if words.contains(&"sql_mode") {
            match modes_that_are_set(settings) {
                Some(modes) => self.set_modes(modes),
                None if adds_or_removes_plain_modes(settings) => {}
                None => self.doubt(NotLearned::SessionMode, true),
            }
        }
        let reads_uncommitted =
            words.contains(&"uncommitted") || (is_computed && settings.contains("isolation"));
        if reads_uncommitted || settings.contains("isolation") {
            self.doubt(NotLearned::Isolation, reads_uncommitted);
        }
    }
}

/// The list that is assigned to `sql_mode`. `None`: it is computed, the server's own, a number, or assigned twice.
fn modes_that_are_set(settings: &str) -> Option<&str> {
    let (before, value) = settings.split_once("sql_mode")?;
    let is_of_user = before.ends_with('@') && !before.ends_with("@@");
    let is_plain = !before.contains(['\'', '"']) && !value.contains("sql_mode") && !is_of_user;
    let value = value.strip_prefix('`').unwrap_or(value).trim_start();
    let value = value.strip_prefix(":=").or(value.strip_prefix('='))?;
    let value = value.trim_start();
    let quoted = ['\'', '"']
        .iter()
        .find_map(|quote| value.strip_prefix(*quote)?.split_once(*quote));
    let end = value.find(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    let (word, behind) = value.split_at(end.unwrap_or(value.len()));
    let is_mode = word.starts_with(|it: char| it.is_ascii_alphabetic()) && word != "default";
    let (modes, behind) = quoted.or(is_mode.then_some((word, behind)))?;
    // Behind a function or the first piece of a text there is more of the value.
    let behind = behind.trim_start();
    let is_whole = behind.is_empty() || behind.starts_with([',', ';']);
    (is_plain && is_whole).then_some(modes)
}

/// Bytes of a statement that changes modes. A longer one is read by its tokens.
const MAX_OF_MODES: usize = 512;

/// Whether a statement adds plain modes to those of its session, or removes some, and does nothing else: whatever the other
/// modes are, what texts and names mean stays as it was.
pub fn changes_plain_modes(statement: &str) -> bool {
    let statement = statement.trim_matches([' ', ';']);
    let settings = statement.split_at_checked("SET ".len());
    let settings = settings.filter(|(set, _)| set.eq_ignore_ascii_case("SET "));
    settings.is_some_and(|(_, settings)| {
        let is_short = settings.len() <= MAX_OF_MODES;
        is_short && adds_or_removes_plain_modes(&settings.to_ascii_lowercase())
    })
}

/// Whether plain modes are added to those that the session has, or removed from them, and nothing else is set. ProcessWire sends
/// `SET sql_mode=(SELECT REPLACE(@@sql_mode,'ONLY_FULL_GROUP_BY',''))`.
fn adds_or_removes_plain_modes(settings: &str) -> bool {
    // Without a blank it is the name of a function of the site.
    if ["selectreplace", "selectconcat"]
        .iter()
        .any(|name| settings.contains(name))
    {
        return false;
    }
    let text: String = settings.split_ascii_whitespace().collect();
    let text = text.strip_prefix("session").unwrap_or(&text);
    let list = text.strip_prefix("sql_mode=").and_then(|value| {
        let query = value.strip_prefix("(select");
        let query = query.and_then(|value| value.strip_suffix(')'));
        let value = query.unwrap_or(value);
        let removed = value.strip_prefix("replace(@@sql_mode,'");
        let removed = removed.and_then(|list| list.strip_suffix("','')"));
        let added = || {
            let list = value.strip_prefix("concat(@@sql_mode,'")?;
            list.strip_suffix("')")
        };
        removed.or_else(added)
    });
    list.is_some_and(|list| {
        let mut modes = list.split(',').filter(|mode| !mode.is_empty());
        modes.all(|mode| PLAIN_MODES.contains(&mode))
    })
}

/// A statement without its comments.
struct PlainText {
    text: String,
    /// A `;` stands outside of texts, not at the end.
    has_several: bool,
}

impl PlainText {
    /// `None`: it has a comment that is executed, or something is not closed.
    fn of(statement: &str, has_ansi_quotes: bool) -> Option<Self> {
        let mut text = String::new();
        let mut rest = statement;
        let (mut has_ended, mut has_several) = (false, false);
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '/' if rest.starts_with("/*") => {
                    if rest.starts_with("/*!") || rest.starts_with("/*M!") {
                        return None;
                    }
                    text.push(' ');
                    rest[2..].find("*/")? + 4
                }
                '#' => line_length(rest),
                '-' if rest.starts_with("--") && !rest[2..].starts_with(|it: char| it > ' ') => {
                    line_length(rest)
                }
                '\'' | '"' | '`' => {
                    let is_name = first == '`' || first == '"' && has_ansi_quotes;
                    let length = quoted_length(rest, first, is_name)?;
                    text.push_str(&rest[..length]);
                    has_several |= has_ended;
                    length
                }
                _ => {
                    has_several |= has_ended && !first.is_whitespace() && first != ';';
                    has_ended |= first == ';';
                    text.push(first);
                    first.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        Some(Self { text, has_several })
    }
}

/// A name without the quotes that it may have.
fn unquoted(name: &str, has_ansi_quotes: bool) -> String {
    let quote = match name.chars().next() {
        Some('"') if has_ansi_quotes => "\"",
        _ => "`",
    };
    let inner = name.strip_prefix(quote);
    let inner = inner.and_then(|inner| inner.strip_suffix(quote));
    inner.map_or_else(
        || name.to_owned(),
        |inner| inner.replace(&quote.repeat(2), quote),
    )
}

fn line_length(text: &str) -> usize {
    text.find('\n').map_or(text.len(), |end| end + 1)
}

fn quoted_length(text: &str, quote: char, is_name: bool) -> Option<usize> {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if !is_name => is_escaped = true,
            // Two of them are one within the text: the next text begins at once.
            _ if character == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_')
        .filter(|word| !word.is_empty())
}

fn has_word(text: &str, word: &str) -> bool {
    words(text).any(|it| it.eq_ignore_ascii_case(word))
}

/// `SET @a = 1`: one variable, which statements name where they use it.
fn is_of_user_variables(settings: &str) -> bool {
    let settings = settings.trim_start();
    settings.starts_with('@') && !settings.starts_with("@@") && !settings.contains([',', ';'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use NotLearned::{Isolation, SessionMode, TemporaryTable};

    #[test]
    fn statements_change_the_database_and_what_is_doubted() {
        for (statement, database, doubt) in [
            ("SELECT 1", "blog", None),
            ("USE Shop", "Shop", None),
            ("use `my shop` ;", "my shop", None),
            ("use`a``b`", "a`b", None),
            ("SET NAMES gbk", "blog", Some(SessionMode)),
            ("SET NAMES binary", "blog", None),
            ("SET NAMES DEFAULT", "blog", Some(SessionMode)),
            ("SET @a = 1, @b = 'names utf8'", "blog", Some(SessionMode)),
            ("SET GLOBAL sql_mode = ''", "blog", Some(SessionMode)),
            (
                "SET STATEMENT sql_mode = '' FOR SELECT 1",
                "blog",
                Some(SessionMode),
            ),
            ("SET insert_id = 5", "blog", Some(SessionMode)),
            ("SET NAMES 'utf8mb4' COLLATE 'utf8mb4_bin'", "blog", None),
            (
                "SET SESSION character_set_client = sjis",
                "blog",
                Some(SessionMode),
            ),
            (
                "SET character_set_client = @saved",
                "blog",
                Some(SessionMode),
            ),
            (
                "SET collation_connection = binary",
                "blog",
                Some(SessionMode),
            ),
            (
                "SET collation_connection = utf8mb4_turkish_ci",
                "blog",
                None,
            ),
            ("set character set latin1", "blog", None),
            ("SET SESSION sql_mode='ANSI_QUOTES'", "blog", None),
            ("SET @@SESSION.sql_mode = 'STRICT_ALL_TABLES'", "blog", None),
            ("SET sql_mode = ANSI", "blog", None),
            ("SET sql_mode = 'ANSI,ORACLE'", "blog", Some(SessionMode)),
            ("SET sql_mode = DEFAULT", "blog", Some(SessionMode)),
            ("SET sql_mode = 4", "blog", Some(SessionMode)),
            ("SET sql_mode = ''", "blog", None),
            (
                "SET sql_mode = '', sql_mode = 'ORACLE'",
                "blog",
                Some(SessionMode),
            ),
            ("SET time_zone = 'sql_mode=\"\"'", "blog", Some(SessionMode)),
            (
                "SET sql_mode='HIGH_NOT_PRECEDENCE'",
                "blog",
                Some(SessionMode),
            ),
            (
                "SET sql_mode='STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES'",
                "blog",
                Some(SessionMode),
            ),
            (
                "SET @old = @@sql_mode, sql_mode = 'ANSI'",
                "blog",
                Some(SessionMode),
            ),
            (
                "SET sql_mode=CONCAT(@@sql_mode, ',ANSI')",
                "blog",
                Some(SessionMode),
            ),
            (
                "SET sql_mode=CONCAT('ANSI',',NO_BACKSLASH_ESCAPES')",
                "blog",
                Some(SessionMode),
            ),
            (
                "SET sql_mode=(SELECT REPLACE(@@sql_mode,'ONLY_FULL_GROUP_BY',''))",
                "blog",
                None,
            ),
            (
                "SET SESSION sql_mode = (SELECT CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'))",
                "blog",
                None,
            ),
            (
                "SET sql_mode=REPLACE(@@sql_mode,'STRICT_TRANS_TABLES,NO_ZERO_DATE','')",
                "blog",
                None,
            ),
            (
                "SET sql_mode=(SELECT REPLACE(@@sql_mode,'ANSI_QUOTES',''))",
                "blog",
                Some(SessionMode),
            ),
            (
                "SET sql_mode=(SELECT REPLACE(@@sql_mode,'STRICT_ALL_TABLES','ORACLE'))",
                "blog",
                Some(SessionMode),
            ),
            (
                "SET sql_mode=(SELECT CONCAT(@@sql_mode,',NO_ZERO_DATE,ORACLE'))",
                "blog",
                Some(SessionMode),
            ),
            (
                "SET sql_mode=(SELECT REPLACE(@@sql_mode,'NO_ZERO_DATE','')), sql_mode='ANSI'",
                "blog",
                Some(SessionMode),
            ),
            ("SET sql_mode=IFNULL(@old,'')", "blog", Some(SessionMode)),
            ("SET sql_mode='ANSI' ',ORACLE'", "blog", Some(SessionMode)),
            ("SET @a=1, @sql_mode='ansi'", "blog", Some(SessionMode)),
            ("SET `sql_mode`='ANSI', time_zone='+00:00'", "blog", None),
            (
                "SET sql_mode='EMPTY_STRING_IS_NULL'",
                "blog",
                Some(SessionMode),
            ),
            ("SET sql_mode=''", "blog", None),
            ("SET time_zone = '+00:00'", "blog", None),
            (
                "SET time_zone = '+00:00'; SET NAMES gbk",
                "blog",
                Some(SessionMode),
            ),
            ("SELECT 1; SET sql_mode = 'ANSI'", "blog", Some(SessionMode)),
            ("/*!40101 SET NAMES gbk */", "blog", Some(SessionMode)),
            ("/* */ SET NAMES gbk", "blog", Some(SessionMode)),
            ("/* by a plug-in */ SELECT 1", "blog", None),
            ("-- \nSET NAMES gbk", "blog", Some(SessionMode)),
            ("SELECT /*!40001 SQL_NO_CACHE */ 1", "blog", None),
            (
                "UPDATE /* set use call */ a SET b = 'a;b''\\';/*!'",
                "blog",
                None,
            ),
            (
                "UPDATE a SET b = 'a;b'; SET NAMES gbk;",
                "blog",
                Some(SessionMode),
            ),
            ("CALL set_up()", "blog", Some(SessionMode)),
            ("EXECUTE a", "blog", Some(SessionMode)),
            ("CREATE TABLE a (b INT)", "blog", None),
            (
                "CREATE TEMPORARY TABLE posts (b INT)",
                "blog",
                Some(TemporaryTable),
            ),
            (
                "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
                "blog",
                Some(Isolation),
            ),
            (
                "SET tx_isolation = 'READ-UNCOMMITTED'",
                "blog",
                Some(Isolation),
            ),
            (
                "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
                "blog",
                None,
            ),
        ] {
            let mut session = Session::new(Some("blog".to_owned()), 45);
            session.follow(statement.as_bytes());
            assert_eq!(session.database.as_deref(), Some(database), "{statement}");
            assert_eq!(session.doubts(), doubt, "{statement}");
        }
    }

    fn doubt(session: &Session) -> Option<NotLearned> {
        session.doubts()
    }

    #[test]
    fn sessions_begin_with_the_settings_of_client_and_server() {
        assert_eq!(doubt(&Session::new(None, 28)), Some(SessionMode), "GBK");
        assert_eq!(doubt(&Session::new(None, 255)), None, "of MySQL 8");
        assert_eq!(doubt(&Session::new(None, 63)), None, "binary");
        assert!(Session::new(None, 63).compares_bytes());
        assert_eq!(doubt(&Session::new(None, 8)), None, "latin1");
        for (modes, expected) in [
            ("STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION", None),
            ("REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES", None),
            (
                "STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES",
                Some(SessionMode),
            ),
        ] {
            let mut session = Session::new(None, 45);
            session.set_modes(modes);
            assert_eq!(doubt(&session), expected, "{modes}");
        }
    }

    #[test]
    fn session_with_ansi_quotes_is_read_in_its_own_quoting() {
        let mut session = Session::new(None, 45);
        assert!(!session.has_ansi_quotes());
        for statement in [
            "SET sql_mode = 'ANSI,TRADITIONAL'",
            // With backslashes that escape, the text would not be closed.
            "SELECT 1 AS \"a\\\"",
            "USE \"my \"\"shop\"\"\"",
        ] {
            session.follow(statement.as_bytes());
        }
        assert_eq!(doubt(&session), None);
        assert!(session.has_ansi_quotes());
        assert_eq!(session.database.as_deref(), Some("my \"shop\""));
        session.follow(b"SELECT 1 AS \"a\\\"; SET NAMES gbk; -- \"");
        assert_eq!(doubt(&session), Some(SessionMode));
        let mut session = Session::new(None, 45);
        session.set_modes("ANSI_QUOTES");
        assert!(session.has_ansi_quotes());
        session.follow(b"SET sql_mode = ''");
        assert!(!session.has_ansi_quotes());
    }

    #[test]
    fn modes_that_are_added_or_removed_leave_the_others() {
        let mut session = Session::new(None, 45);
        session.set_modes("ANSI_QUOTES,ONLY_FULL_GROUP_BY");
        let before = session.settings();
        session.follow(b"SET sql_mode=(SELECT REPLACE(@@sql_mode,'ONLY_FULL_GROUP_BY',''))");
        assert!(session.has_ansi_quotes());
        assert_ne!(session.settings(), before);
        session.follow(b"SET sql_mode = 'ORACLE'");
        session.follow(b"SET sql_mode=(SELECT REPLACE(@@sql_mode,'NO_ZERO_DATE',''))");
        assert_eq!(doubt(&session), Some(SessionMode));
    }

    #[test]
    fn settings_are_the_same_number_only_after_the_same_statements() {
        let after = |statements: &[&str]| {
            let mut session = Session::new(None, 45);
            for statement in statements {
                session.follow(statement.as_bytes());
            }
            session.settings()
        };
        assert_eq!(after(&["SELECT 1", "SET @a = 1", "BEGIN"]), after(&[]));
        assert_eq!(
            after(&["SET sql_mode = ''"]),
            after(&["SET sql_mode = ''", "COMMIT"])
        );
        assert_ne!(after(&["SET time_zone = '+01:00'"]), after(&[]));
        assert_ne!(after(&["SET @a = 1, time_zone = '+01:00'"]), after(&[]));
        assert_ne!(
            after(&["SET a = 1", "SET b = 2"]),
            after(&["SET b = 2", "SET a = 1"])
        );
    }
}
