//! The functions that are known to return the same for the same arguments, and those that are known
//! not to.
//!
//! Any other name may be a stored function, which may write. A stored function cannot take the name
//! of a function that the server has built in, so that only those are here that both MariaDB and MySQL
//! have (ANY_VALUE is MySQL's alone).

use crate::not_learned::NotLearned;

/// Sorted, for the search.
const DETERMINISTIC: &[&str] = &[
    "abs",
    "adddate",
    "ascii",
    "avg",
    "bin",
    "bit_and",
    "bit_length",
    "bit_or",
    "ceil",
    "ceiling",
    "char_length",
    "character_length",
    "coalesce",
    "concat",
    "concat_ws",
    "conv",
    "count",
    "crc32",
    "database",
    "date",
    "date_add",
    "date_format",
    "date_sub",
    "datediff",
    "day",
    "dayname",
    "dayofmonth",
    "dayofweek",
    "dayofyear",
    "default",
    "elt",
    "field",
    "find_in_set",
    "floor",
    "format",
    "greatest",
    "group_concat",
    "hex",
    "hour",
    "if",
    "ifnull",
    "inet_aton",
    "inet_ntoa",
    "instr",
    "isnull",
    "json_array",
    "json_contains",
    "json_extract",
    "json_length",
    "json_object",
    "json_unquote",
    "json_value",
    "last_day",
    "lcase",
    "least",
    "left",
    "length",
    "locate",
    "lower",
    "lpad",
    "ltrim",
    "max",
    "md5",
    "mid",
    "min",
    "minute",
    "mod",
    "month",
    "monthname",
    "nullif",
    "octet_length",
    "ord",
    "pow",
    "power",
    "quarter",
    "repeat",
    "replace",
    "reverse",
    "right",
    "round",
    "row_number",
    "rpad",
    "rtrim",
    "schema",
    "second",
    "sha",
    "sha1",
    "sha2",
    "sign",
    "space",
    "sqrt",
    "str_to_date",
    "strcmp",
    "substr",
    "substring",
    "substring_index",
    "sum",
    "time",
    "to_days",
    "trim",
    "truncate",
    "ucase",
    "unhex",
    "upper",
    "values",
    "version",
    "week",
    "weekday",
    "year",
    "yearweek",
];

const CLOCK: &[&str] = &[
    "curdate",
    "current_date",
    "current_time",
    "current_timestamp",
    "curtime",
    "localtime",
    "localtimestamp",
    "now",
    "sysdate",
    "unix_timestamp",
    "utc_date",
    "utc_time",
    "utc_timestamp",
];

const CHANCE: &[&str] = &["rand", "uuid", "uuid_short"];

/// Functions of the connection or the server: not of the data, and not the same on another connection.
const CONNECTION: &[&str] = &[
    "connection_id",
    "current_user",
    "found_rows",
    "last_insert_id",
    "row_count",
    "session_user",
    "sleep",
    "system_user",
    "user",
];

const LOCKS: &[&str] = &[
    "get_lock",
    "is_free_lock",
    "is_used_lock",
    "release_all_locks",
    "release_lock",
];

/// Names that are the server's functions only directly before the parenthesis; after a blank they are
/// stored functions.
const DIRECT: &[&str] = &[
    "adddate",
    "bit_and",
    "bit_or",
    "bit_xor",
    "cast",
    "count",
    "curdate",
    "curtime",
    "date_add",
    "date_sub",
    "extract",
    "group_concat",
    "max",
    "mid",
    "min",
    "now",
    "position",
    "session_user",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "subdate",
    "substr",
    "substring",
    "sum",
    "sysdate",
    "system_user",
    "trim",
    "var_pop",
    "var_samp",
    "variance",
];

pub(crate) fn needs_parenthesis_at_once(word: &str) -> bool {
    DIRECT.iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Words of the language, functions of the language's own syntax, and types.
const BEFORE_PARENTHESIS: &[&str] = &[
    "against",
    "all",
    "and",
    "any",
    "as",
    "between",
    "bigint",
    "binary",
    "by",
    "case",
    "cast",
    "char",
    "convert",
    "date",
    "datetime",
    "decimal",
    "distinct",
    "div",
    "double",
    "else",
    "elseif",
    "enum",
    "except",
    "exists",
    "extract",
    "float",
    "from",
    "having",
    "if",
    "in",
    "int",
    "integer",
    "intersect",
    "is",
    "join",
    "key",
    "like",
    "limit",
    "match",
    "mod",
    "not",
    "on",
    "or",
    "over",
    "partition",
    "position",
    "regexp",
    "rlike",
    "select",
    "set",
    "smallint",
    "some",
    "std",
    "stddev",
    "then",
    "time",
    "timestamp",
    "tinyint",
    "union",
    "until",
    "using",
    "value",
    "values",
    "varbinary",
    "varchar",
    "variance",
    "when",
    "where",
    "while",
    "xor",
];

/// Whether a parenthesis after the word is no call of a stored function.
pub(crate) fn may_stand_before_parenthesis(word: &str) -> bool {
    BEFORE_PARENTHESIS
        .iter()
        .any(|it| word.eq_ignore_ascii_case(it))
}

/// Returns `Ok` for a deterministic function. `arguments`, their number, distinguishes `UNIX_TIMESTAMP()` from the form
/// with a date.
pub(crate) fn judge(name: &str, arguments: usize) -> Result<(), NotLearned> {
    let has = |names: &[&str]| names.contains(&name);
    if DETERMINISTIC.binary_search(&name).is_ok() || (name == "unix_timestamp" && arguments > 0) {
        return Ok(());
    }
    Err(match () {
        () if has(CLOCK) => NotLearned::Clock,
        () if has(CHANCE) => NotLearned::Chance,
        () if has(CONNECTION) => NotLearned::Connection,
        () if has(LOCKS) => NotLearned::Lock,
        () => NotLearned::UnknownFunction,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_sorted_and_judged_by_their_names() {
        assert!(DETERMINISTIC.is_sorted());
        for (name, arguments, expected) in [
            ("concat", 2, Ok(())),
            ("unix_timestamp", 1, Ok(())),
            ("unix_timestamp", 0, Err(NotLearned::Clock)),
            ("rand", 0, Err(NotLearned::Chance)),
            ("get_lock", 2, Err(NotLearned::Lock)),
            ("found_rows", 0, Err(NotLearned::Connection)),
            ("shop_total", 1, Err(NotLearned::UnknownFunction)),
        ] {
            assert_eq!(judge(name, arguments), expected, "{name}");
        }
    }
}
