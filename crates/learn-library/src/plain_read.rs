//! Which statements need not be announced as writes, decided without a parser.
//!
//! Only what certainly changes no data passes: SELECT with functions of a list, SHOW, SET of the
//! session, and the begin of a transaction. Texts and comments are read as if they were code, so that
//! no mode or character set of a session can hide a call in them. What is stopped by mistake costs an
//! acknowledgement; Mayfly's parser has the last word.
#![forbid(unsafe_code)]

/// Reserved words that may stand before a parenthesis, also with blanks between.
#[rustfmt::skip]
const WORDS: &[&[u8]] = &[
    b"ALL", b"AND", b"ANY", b"AS", b"BETWEEN", b"BY", b"CASE", b"DISTINCT", b"ELSE", b"EXISTS", b"FROM",
    b"HAVING", b"IN", b"INDEX", b"INTERVAL", b"IS", b"JOIN", b"KEY", b"LIKE", b"LIMIT", b"NOT", b"ON", b"OR",
    b"OVER", b"REGEXP", b"RLIKE", b"SELECT", b"SOME", b"STRAIGHT_JOIN", b"THEN", b"UNION", b"USING", b"VALUES",
    b"WHEN", b"WHERE", b"XOR",
];

/// Functions of the server that change nothing, for which a stored function cannot stand where no blank
/// is between the name and the parenthesis.
#[rustfmt::skip]
const FUNCTIONS: &[&[u8]] = &[
    b"ABS", b"ACOS", b"ADDDATE", b"ASCII", b"AVG", b"BINARY", b"CAST", b"CEIL", b"CEILING", b"CHAR",
    b"CHAR_LENGTH", b"COALESCE", b"CONCAT", b"CONCAT_WS", b"CONVERT", b"COS", b"COUNT", b"CRC32", b"CURDATE",
    b"CURRENT_DATE", b"CURRENT_TIMESTAMP", b"CURTIME", b"DATABASE", b"DATE", b"DATEDIFF", b"DATE_ADD",
    b"DATE_FORMAT", b"DATE_SUB", b"DAY", b"DAYOFMONTH", b"DAYOFWEEK", b"DAYOFYEAR", b"FIELD", b"FIND_IN_SET",
    b"FLOOR", b"FORMAT", b"FOUND_ROWS", b"FROM_DAYS", b"FROM_UNIXTIME", b"GREATEST", b"GROUP_CONCAT", b"HEX",
    b"HOUR", b"IF", b"IFNULL", b"INET_ATON", b"INET_NTOA", b"INSTR", b"ISNULL", b"JSON_CONTAINS",
    b"JSON_EXTRACT", b"JSON_LENGTH", b"JSON_UNQUOTE", b"JSON_VALUE", b"LCASE", b"LEAST", b"LEFT", b"LENGTH",
    b"LOCATE", b"LOWER", b"LPAD", b"LTRIM", b"MATCH", b"AGAINST", b"MAX", b"MD5", b"MIN", b"MINUTE", b"MOD",
    b"MONTH", b"NOW", b"NULLIF", b"POW", b"POWER", b"RADIANS", b"RAND", b"REPLACE", b"REVERSE", b"RIGHT",
    b"ROUND", b"ROW_NUMBER", b"RPAD", b"RTRIM", b"SCHEMA", b"SECOND", b"SEC_TO_TIME", b"SHA1", b"SHA2", b"SIGN",
    b"SIN", b"SQRT", b"STRCMP", b"SUBSTR", b"SUBSTRING", b"SUBSTRING_INDEX", b"SUM", b"TIME", b"TIMESTAMPDIFF",
    b"TIME_TO_SEC", b"TO_DAYS", b"TRIM", b"TRUNCATE", b"UNHEX", b"UNIX_TIMESTAMP", b"UPPER", b"UTC_TIMESTAMP",
    b"UUID", b"VERSION", b"WEEK", b"WEEKDAY", b"YEAR",
];

/// Further words of PostgreSQL, with types that have a length.
#[rustfmt::skip]
const POSTGRES_WORDS: &[&[u8]] = &[
    b"ARRAY", b"BIT", b"CHAR", b"CHARACTER", b"CONFLICT", b"CUBE", b"DECIMAL", b"EXCEPT", b"FILTER", b"GROUP",
    b"ILIKE", b"INTERSECT", b"LATERAL", b"NUMERIC", b"OFFSET", b"ORDINALITY", b"PARTITION", b"RETURNING",
    b"ROLLUP", b"ROW", b"SETS", b"SIMILAR", b"SYMMETRIC", b"TIME", b"TIMESTAMP", b"TO", b"VARCHAR", b"WITHIN",
];

/// Functions of PostgreSQL that change nothing but sequences.
#[rustfmt::skip]
const POSTGRES_FUNCTIONS: &[&[u8]] = &[
    b"ABS", b"ACOS", b"AGE", b"ARRAY_AGG", b"ARRAY_APPEND", b"ARRAY_CAT", b"ARRAY_LENGTH", b"ARRAY_POSITION",
    b"ARRAY_REMOVE", b"ARRAY_TO_JSON", b"ARRAY_TO_STRING", b"ARRAY_UPPER", b"ASCII", b"ASIN", b"ATAN", b"ATAN2",
    b"AVG", b"BIT_LENGTH", b"BOOL_AND", b"BOOL_OR", b"BTRIM", b"CARDINALITY", b"CAST", b"CEIL", b"CEILING",
    b"CHARACTER_LENGTH", b"CHAR_LENGTH", b"CHR", b"CLOCK_TIMESTAMP", b"COALESCE", b"CONCAT", b"CONCAT_WS",
    b"COS", b"COUNT", b"CUME_DIST", b"CURRENT_DATABASE", b"CURRENT_SCHEMA", b"CURRENT_SCHEMAS",
    b"CURRENT_SETTING", b"CURRVAL", b"DATE", b"DATE_PART", b"DATE_TRUNC", b"DECODE", b"DEGREES", b"DENSE_RANK",
    b"DIV", b"ENCODE", b"EVERY", b"EXP", b"EXTRACT", b"FIRST_VALUE", b"FLOOR", b"FORMAT", b"FORMAT_TYPE",
    b"GENERATE_SERIES", b"GEN_RANDOM_UUID", b"GREATEST", b"GROUPING", b"HAS_SCHEMA_PRIVILEGE",
    b"HAS_TABLE_PRIVILEGE", b"INITCAP", b"JSONB_AGG", b"JSONB_ARRAY_ELEMENTS", b"JSONB_ARRAY_ELEMENTS_TEXT",
    b"JSONB_ARRAY_LENGTH", b"JSONB_BUILD_ARRAY", b"JSONB_BUILD_OBJECT", b"JSONB_EACH", b"JSONB_EACH_TEXT",
    b"JSONB_EXTRACT_PATH", b"JSONB_EXTRACT_PATH_TEXT", b"JSONB_OBJECT_AGG", b"JSONB_OBJECT_KEYS",
    b"JSONB_PATH_QUERY", b"JSONB_SET", b"JSONB_TYPEOF", b"JSON_AGG", b"JSON_ARRAY_ELEMENTS",
    b"JSON_ARRAY_ELEMENTS_TEXT", b"JSON_ARRAY_LENGTH", b"JSON_BUILD_ARRAY", b"JSON_BUILD_OBJECT", b"JSON_EACH",
    b"JSON_EACH_TEXT", b"JSON_EXTRACT_PATH", b"JSON_EXTRACT_PATH_TEXT", b"JSON_OBJECT_AGG", b"JSON_OBJECT_KEYS",
    b"JSON_TYPEOF", b"LAG", b"LASTVAL", b"LAST_VALUE", b"LEAD", b"LEAST", b"LEFT", b"LENGTH", b"LN",
    b"LOCALTIMESTAMP", b"LOG", b"LOWER", b"LPAD", b"LTRIM", b"MAKE_DATE", b"MAKE_INTERVAL", b"MAKE_TIMESTAMP",
    b"MAX", b"MD5", b"MIN", b"MOD", b"MODE", b"NEXTVAL", b"NOW", b"NTH_VALUE", b"NTILE", b"NULLIF",
    b"OBJ_DESCRIPTION", b"OCTET_LENGTH", b"OVERLAY", b"PERCENTILE_CONT", b"PERCENTILE_DISC", b"PERCENT_RANK",
    b"PG_BACKEND_PID", b"PG_GET_CONSTRAINTDEF", b"PG_GET_EXPR", b"PG_GET_INDEXDEF", b"PG_GET_SERIAL_SEQUENCE",
    b"PG_GET_VIEWDEF", b"PG_TABLE_IS_VISIBLE", b"PG_TYPEOF", b"PHRASETO_TSQUERY", b"PLAINTO_TSQUERY",
    b"POSITION", b"POW", b"POWER", b"QUOTE_IDENT", b"QUOTE_LITERAL", b"RADIANS", b"RANDOM", b"RANK",
    b"REGEXP_MATCH", b"REGEXP_MATCHES", b"REGEXP_REPLACE", b"REGEXP_SPLIT_TO_ARRAY", b"REGEXP_SPLIT_TO_TABLE",
    b"REPEAT", b"REPLACE", b"REVERSE", b"RIGHT", b"ROUND", b"ROW_NUMBER", b"ROW_TO_JSON", b"RPAD", b"RTRIM",
    b"SETVAL", b"SHA256", b"SIGN", b"SIN", b"SPLIT_PART", b"SQRT", b"STARTS_WITH", b"STDDEV", b"STRING_AGG",
    b"STRING_TO_ARRAY", b"STRPOS", b"SUBSTR", b"SUBSTRING", b"SUM", b"TAN", b"TIMEZONE", b"TO_CHAR", b"TO_DATE",
    b"TO_HEX", b"TO_JSON", b"TO_JSONB", b"TO_NUMBER", b"TO_REGCLASS", b"TO_TIMESTAMP", b"TO_TSQUERY",
    b"TO_TSVECTOR", b"TRANSLATE", b"TRIM", b"TRUNC", b"TS_HEADLINE", b"TS_RANK", b"TS_RANK_CD", b"UNNEST",
    b"UPPER", b"VARIANCE", b"VERSION", b"WEBSEARCH_TO_TSQUERY",
];

/// Words with which a statement may do more than read.
#[rustfmt::skip]
const STOPPING_WORDS: &[&[u8]] = &[
    b"AUTOCOMMIT", b"GLOBAL", b"INTO", b"NEXT", b"PASSWORD", b"PERSIST", b"PERSIST_ONLY", b"PREVIOUS",
    b"PROCEDURE", b"ROLE", b"STATEMENT",
];

/// The classes of a byte, a bit each: a part of a word, the begin of a stopping word in either case, and a sign that may
/// stop a statement outside of words.
const OF_WORD: u8 = 1;
const BEGINS_STOPPING_WORD: u8 = 2;
const MAY_STOP: u8 = 4;

static CLASSES: [u8; 256] = classes();

/// The lengths of stopping words, a bit each.
const STOPPING_LENGTHS: u32 = stopping_lengths();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    loop {
        let is_of_word = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
        let may_stop = matches!(byte, b';' | b'#' | b'-' | b'/' | b'(');
        classes[byte as usize] = (is_of_word as u8 * OF_WORD) | (may_stop as u8 * MAY_STOP);
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    let mut nth = 0;
    while nth < STOPPING_WORDS.len() {
        let first = STOPPING_WORDS[nth][0];
        classes[first as usize] |= BEGINS_STOPPING_WORD;
        classes[first.to_ascii_lowercase() as usize] |= BEGINS_STOPPING_WORD;
        nth += 1;
    }
    classes
}

const fn stopping_lengths() -> u32 {
    let (mut lengths, mut nth) = (0, 0);
    while nth < STOPPING_WORDS.len() {
        lengths |= 1 << STOPPING_WORDS[nth].len();
        nth += 1;
    }
    lengths
}

/// Whether the statement certainly changes no data, and ends no transaction.
pub(crate) fn is_plain_read(text: &[u8], is_in_transaction: bool) -> bool {
    let text = without_leading_comments(text);
    let passes = |text| passes(text, &[WORDS], FUNCTIONS);
    match first_word(text).to_ascii_uppercase().as_slice() {
        b"SELECT" | b"SHOW" => passes(text),
        b"SET" => passes(text) && !text.contains(&b'('),
        b"BEGIN" => !is_in_transaction && is_begin(text),
        b"START" => !is_in_transaction && passes(text),
        _ => false,
    }
}

/// Whether the statement begins a transaction and does nothing else: `BEGIN NOT ATOMIC` begins a block. MediaWiki writes a
/// comment behind it.
pub(crate) fn is_begin(text: &[u8]) -> bool {
    let text = without_leading_comments(text);
    let (word, rest) = text.split_at(b"BEGIN".len().min(text.len()));
    if !word.eq_ignore_ascii_case(b"BEGIN") {
        return false;
    }
    let rest = without_leading_comments(rest);
    let rest = match first_word(rest).eq_ignore_ascii_case(b"WORK") {
        true => without_leading_comments(&rest[4..]),
        false => rest,
    };
    matches!(rest.trim_ascii_end(), b"" | b";")
}

/// The same for a statement of PostgreSQL. Nothing of it begins a transaction within another one, or ends one. The numbers
/// of sequences are written by it, but no page that reads a sequence is learned.
pub(crate) fn is_plain_read_of_postgres(text: &[u8]) -> bool {
    let trimmed = text.trim_ascii_start();
    if trimmed.starts_with(b"/*") && trimmed[2..].windows(2).any(|two| two == b"/*") {
        // Comments within comments.
        return false;
    }
    let text = without_leading_comments(text);
    let passes = |text| passes(text, &[WORDS, POSTGRES_WORDS], POSTGRES_FUNCTIONS);
    match first_word(text).to_ascii_uppercase().as_slice() {
        b"SELECT" | b"SHOW" | b"DEALLOCATE" => passes(text),
        b"BEGIN" | b"START" | b"SET" => passes(text) && !text.contains(&b'('),
        _ => false,
    }
}

/// The first word of a statement, in its own case.
pub(crate) fn first_word(text: &[u8]) -> &[u8] {
    let text = without_leading_comments(text);
    let end = text.iter().position(|byte| !is_of_word(*byte));
    &text[..end.unwrap_or(text.len())]
}

fn without_leading_comments(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        if let Some(inner) = text.strip_prefix(b"(") {
            text = inner;
        } else if let Some(inner) = text.strip_prefix(b"/*") {
            let end = inner.windows(2).position(|two| two == b"*/");
            match (inner.first(), end) {
                (Some(b'!' | b'M'), _) | (_, None) => return text,
                (_, Some(end)) => text = &inner[end + 2..],
            }
        } else {
            return text;
        }
    }
}

fn is_of_word(byte: u8) -> bool {
    CLASSES[usize::from(byte)] & OF_WORD != 0
}

fn is_stopping_word(word: &[u8]) -> bool {
    let first = word.first().map_or(0, |first| CLASSES[usize::from(*first)]);
    first & BEGINS_STOPPING_WORD != 0
        && word.len() < 32
        && STOPPING_LENGTHS & (1 << word.len()) != 0
        && is_one_of(word, STOPPING_WORDS)
}

/// No call of an unknown function, no second statement, no comment that could hide or run something, and
/// none of the stopping words.
fn passes(text: &[u8], words: &[&[&[u8]]], functions: &[&[u8]]) -> bool {
    let text = text.trim_ascii_end();
    let text = text.strip_suffix(b";").unwrap_or(text);
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let class = CLASSES[usize::from(*byte)];
        if class & OF_WORD != 0 {
            let rest = &text[at..];
            let length = rest.iter().position(|byte| !is_of_word(*byte));
            let word = &rest[..length.unwrap_or(rest.len())];
            if is_stopping_word(word) {
                return false;
            }
            at += word.len();
            continue;
        }
        if class & MAY_STOP == 0 {
            at += 1;
            continue;
        }
        let next = text.get(at + 1);
        let may_pass = match byte {
            b';' | b'#' => false,
            b'-' => next != Some(&b'-'),
            b'/' if next == Some(&b'*') => !matches!(text.get(at + 2), Some(b'!' | b'M')),
            b'(' => may_stand_before_parenthesis(&text[..at], words, functions),
            _ => true,
        };
        if !may_pass {
            return false;
        }
        at += 1;
    }
    true
}

/// Returns whether an operator, a reserved word or a known function stands before a parenthesis.
fn may_stand_before_parenthesis(before: &[u8], words: &[&[&[u8]]], functions: &[&[u8]]) -> bool {
    let trimmed = before.trim_ascii_end();
    match trimmed {
        [] => true,
        [.., b'*', b'/'] => false,
        [
            ..,
            b'(' | b',' | b'=' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%' | b'!' | b'~'
            | b'&' | b'|',
        ] => true,
        [.., last] if is_of_word(*last) => {
            let begin = trimmed.iter().rposition(|byte| !is_of_word(*byte));
            let (head, word) = trimmed.split_at(begin.map_or(0, |at| at + 1));
            let is_qualified = matches!(head.trim_ascii_end().last(), Some(b'.' | b'@'));
            let has_blanks = trimmed.len() < before.len();
            let is_reserved = words.iter().any(|words| is_one_of(word, words));
            !is_qualified && (is_reserved || !has_blanks && is_one_of(word, functions))
        }
        _ => false,
    }
}

fn is_one_of(word: &[u8], list: &[&[u8]]) -> bool {
    list.iter().any(|it| it.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_reads_pass() {
        for text in [
            "SELECT TIMESTAMPDIFF(SECOND, FROM_UNIXTIME(5), written) FROM t",
            "SELECT option_value FROM wp_options WHERE option_name = 'home' LIMIT 1",
            "SELECT SQL_CALC_FOUND_ROWS  wp_posts.ID FROM wp_posts WHERE 1=1 AND ((wp_posts.post_type = 'post' AND (wp_posts.post_status = 'publish'))) LIMIT 0, 10",
            "SELECT FOUND_ROWS()",
            " ( select count(*) from t where a in (1, 2) )",
            "/* page */ SELECT /* MediaWiki\\Title::load */ page_id FROM page",
            "SELECT a FROM t WHERE b IN('x') ORDER BY FIELD(c, 1,2);",
            "SHOW FULL COLUMNS FROM wp_posts",
            "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_520_ci'",
            "SET SESSION sql_mode='NO_ENGINE_SUBSTITUTION'",
            "START TRANSACTION READ ONLY",
            "begin",
        ] {
            assert!(is_plain_read(text.as_bytes(), false), "{text}");
        }
    }

    #[test]
    fn plain_reads_of_postgres_pass_and_everything_else_is_announced() {
        for (text, expected) in [
            ("SELECT \"a\"::numeric(10, 2) FROM t WHERE b ILIKE $1", true),
            ("SELECT nextval('posts_id_seq')", true),
            ("BEGIN; ", true),
            ("BEGIN ISOLATION LEVEL READ COMMITTED", true),
            ("DEALLOCATE pdo_stmt_00000001", true),
            ("SELECT \"count\"(1)", false),
            ("SELECT if(1)", false),
            ("SELECT pg_advisory_lock(1)", false),
            ("SELECT set_config('a', 'b', false)", false),
            ("BEGIN; DELETE FROM t", false),
            ("COMMIT", false),
            ("/* /* */ SELECT 1 */ DELETE FROM t", false),
            ("SELECT a INTO b FROM t", false),
            (
                "WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a",
                false,
            ),
            (
                "(WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a)",
                false,
            ),
            ("COPY t TO STDOUT", false),
            ("DO $$ BEGIN END $$", false),
        ] {
            assert_eq!(
                is_plain_read_of_postgres(text.as_bytes()),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn each_stopping_word_stops_wherever_it_stands() {
        for word in STOPPING_WORDS {
            let upper = String::from_utf8(word.to_vec()).unwrap();
            for word in [upper.to_lowercase(), upper] {
                for (text, passes) in [
                    (format!("SELECT {word}"), false),
                    (format!("SELECT a,{word} b"), false),
                    (format!("SELECT `{word}`"), false),
                    (format!("SELECT {word}x"), true),
                    (format!("SELECT x{word}"), true),
                    (format!("SELECT \u{e4}{word}"), true),
                ] {
                    assert_eq!(is_plain_read(text.as_bytes(), false), passes, "{text}");
                }
            }
        }
    }

    #[test]
    fn begin_of_a_transaction_has_comments_and_no_other_statement() {
        for (text, expected) in [
            ("BEGIN", true),
            ("begin work ; ", true),
            (
                "/* a */ BEGIN /* Database::beginIfImplied (WikiPage::pageData)  */",
                true,
            ),
            ("BEGIN/* a *//* b */WORK/* c */;", true),
            ("BEGIN /*! NOT ATOMIC DELETE FROM t; END */", false),
            ("BEGIN /* a */ NOT ATOMIC DELETE FROM t; END", false),
            ("BEGIN /* a */; DELETE FROM t", false),
            ("BEGIN WORKS", false),
            ("BEGINS", false),
            ("BEGIN # a", false),
            ("BEGI", false),
            ("", false),
        ] {
            assert_eq!(is_begin(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn everything_else_is_announced() {
        #[rustfmt::skip]
        let cases = [
            "", "UPDATE t SET a = 1", "SELECT f()", "SELECT count (*) FROM t", "SELECT db.count(1)",
            "SELECT db . count(1)", "SELECT `count`(1)", "SELECT f/* in */(1)", "SELECT f -- in\n(1)",
            "SELECT f # in\n(1)", "SELECT /*! f() */ 1", "SELECT /*M! f() */ 1", "/*!UPDATE t SET a = 1*/",
            "SELECT '/*', f(), '*/'", "SELECT '\\', f(), '", "SELECT 1; UPDATE t SET a = 1",
            "SELECT 1 INTO OUTFILE '/tmp/x'", "SELECT 1 INTO @a", "SELECT NEXT VALUE FOR s", "SELECT nextval(s)",
            "SELECT get_lock('a', 1)", "SELECT sleep(1)", "SELECT last_insert_id(5)", "SELECT \u{e4}in(1)",
            "SET autocommit = 1", "SET GLOBAL a = 1", "SET @a = (SELECT f())", "SET PASSWORD = 'x'",
            "SET STATEMENT max_statement_time=1 FOR UPDATE t SET a = 1", "EXPLAIN SELECT f()",
            "BEGIN NOT ATOMIC UPDATE t SET a = 1; END", "COMMIT", "CALL p()",
            "WITH x AS (SELECT 1) SELECT * FROM x", "DO f()",
        ];
        for text in cases {
            assert!(!is_plain_read(text.as_bytes(), false), "{text}");
        }
        for text in ["BEGIN", "BEGIN /* Database::begin */", "START TRANSACTION"] {
            assert!(!is_plain_read(text.as_bytes(), true), "{text} commits");
        }
    }
}
