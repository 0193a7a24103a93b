//! Statements and changes aimed at each rule: both speak of the same few columns and of values that
//! the rule must tell apart, or must not.

use std::fmt::Write as _;

pub const TABLES: &str = "
CREATE TABLE t1 (
  id INT AUTO_INCREMENT PRIMARY KEY, n INT, u TINYINT UNSIGNED NOT NULL DEFAULT 0,
  s VARCHAR(5) COLLATE utf8mb4_unicode_ci, g VARCHAR(10) COLLATE utf8mb4_general_ci NOT NULL DEFAULT '',
  l VARCHAR(5) COLLATE utf8mb4_lithuanian_ci, i VARCHAR(5) COLLATE utf8mb4_turkish_ci,
  w VARCHAR(5) CHARACTER SET latin1 COLLATE latin1_swedish_ci, k VARCHAR(5) COLLATE utf8mb4_bin,
  c CHAR(4) COLLATE utf8mb4_nopad_bin, v VARBINARY(5), b BINARY(3), e ENUM('a', 'b', '1'), d DATETIME, y DATE,
  j JSON, f DOUBLE, x DECIMAL(5, 2), p TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP, q INT AS (n + 1), KEY (n, s)
) COLLATE utf8mb4_turkish_ci;
CREATE TABLE t2 (id INT PRIMARY KEY, t INT, s VARCHAR(5), m VARCHAR(5), KEY (t)) COLLATE utf8mb4_unicode_ci;
CREATE TABLE t3 (
  id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(5) COLLATE utf8mb4_unicode_ci, n INT, m VARCHAR(5),
  UNIQUE KEY (s), UNIQUE KEY (n)
);
CREATE TABLE t4 (
  id INT PRIMARY KEY, t INT, m VARCHAR(5),
  FOREIGN KEY (t) REFERENCES t2 (id) ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE TABLE t5 (id INT AUTO_INCREMENT PRIMARY KEY, n INT, m VARCHAR(5) COLLATE utf8mb4_unicode_ci);
CREATE TABLE t6 (id INT AUTO_INCREMENT PRIMARY KEY, n INT, m VARCHAR(5));
CREATE TRIGGER r1 BEFORE INSERT ON t5 FOR EACH ROW SET NEW.n = NEW.n + 1;
CREATE TRIGGER r2 AFTER UPDATE ON t5 FOR EACH ROW INSERT INTO t6 (n, m) VALUES (NEW.n, NEW.m);
CREATE TRIGGER r3 AFTER DELETE ON t5 FOR EACH ROW DELETE FROM t2 WHERE id = OLD.n;
CREATE VIEW w1 AS SELECT a.id, a.n, a.s, b.m FROM t1 a JOIN t2 b ON a.n = b.t;
CREATE VIEW w2 AS SELECT id, s, n FROM t3 WHERE n < 3;
";

const MODES: &[&str] = &[
    "",
    "STRICT_TRANS_TABLES",
    "STRICT_ALL_TABLES,NO_ZERO_DATE",
    "PAD_CHAR_TO_FULL_LENGTH",
    "PIPES_AS_CONCAT,NO_AUTO_VALUE_ON_ZERO",
];

/// What a block of pairs is about.
struct Aim {
    columns: &'static [&'static str],
    values: &'static [&'static str],
    reads: &'static [Form],
    changes: &'static [Change],
    modes: &'static [&'static str],
    /// Behind LIKE.
    patterns: &'static [&'static str],
}

#[derive(Clone, Copy)]
enum Form {
    All,
    Some,
    Count,
    Join,
    LeftJoin,
    LeftJoinOn,
    RightJoin,
    Parentheses,
    Exists,
    In,
    Derived,
    Union,
    With,
    View,
    Ordered,
    /// From one of the small tables.
    Of(&'static str),
}

#[derive(Clone, Copy)]
enum Change {
    Update,
    UpdateKnown,
    UpdateMoved,
    UpdateTwice,
    Delete,
    DeleteKnown,
    DeleteIn,
    Insert,
    InsertSet,
    InsertRows,
    Replace,
    OnDuplicate,
    Multiple,
    FromQuery,
    /// With values for the columns of all unique keys.
    ReplaceAll,
    OnDuplicateAll,
    /// With a number that the column counts itself, or that it is given.
    InsertNumber,
    /// Of one of the small tables.
    Of(&'static str),
    Unseen,
}

const USUAL_READS: &[Form] = &[
    Form::All,
    Form::Some,
    Form::Some,
    Form::Some,
    Form::Count,
    Form::Join,
    Form::LeftJoin,
    Form::Exists,
    Form::In,
    Form::Derived,
    Form::Union,
    Form::With,
];
const USUAL_CHANGES: &[Change] = &[
    Change::Update,
    Change::UpdateKnown,
    Change::UpdateKnown,
    Change::UpdateMoved,
    Change::UpdateTwice,
    Change::Delete,
    Change::DeleteKnown,
    Change::DeleteKnown,
    Change::DeleteIn,
    Change::Insert,
    Change::Insert,
    Change::InsertSet,
    Change::InsertRows,
    Change::Replace,
    Change::OnDuplicate,
    Change::FromQuery,
];
const PLAIN_READS: &[Form] = &[Form::All, Form::Some, Form::Count];
const PLAIN_CHANGES: &[Change] = &[
    Change::UpdateKnown,
    Change::UpdateMoved,
    Change::DeleteKnown,
    Change::Insert,
    Change::InsertSet,
];
const JOINS: &[Form] = &[
    Form::Join,
    Form::LeftJoin,
    Form::LeftJoinOn,
    Form::RightJoin,
    Form::Parentheses,
    Form::Exists,
    Form::View,
    Form::With,
];
const SMALL_READS: &[Form] = &[
    Form::Of("t2"),
    Form::Of("t3"),
    Form::Of("t4"),
    Form::Of("t5"),
    Form::Of("t6"),
    Form::Of("t3"),
    Form::Of("w2"),
    Form::View,
];
const SMALL_CHANGES: &[Change] = &[
    Change::Of("t2"),
    Change::Of("t3"),
    Change::Of("t3"),
    Change::Of("t5"),
    Change::Of("t5"),
    Change::Of("w2"),
    Change::Multiple,
];

const AIMS: &[Aim] = &[
    aim(&["n", "u", "id"], &["0", "1", "2", "3", "4", "-1"]),
    aim(
        &["u", "n"],
        &["1", "'1'", "'01'", "'1a'", "'1.0'", "1.5", "1e0", "0"],
    ),
    aim(&["u", "n"], &["255", "256", "300", "-1", "0", "'300'"]),
    aim(&["s"], &["'a'", "'A'", "'a '", "'b'", "'ab'"]),
    aim(
        &["s", "g"],
        &["'ss'", "'ß'", "'é'", "'e'", "'E'", "''", "' '"],
    ),
    aim(
        &["s", "g"],
        &["'ab'", "'a\\0b'", "'a\\tb'", "'a-b'", "'AB'"],
    ),
    aim(&["l"], &["'i'", "'y'", "'I'", "'Y'", "'ch'", "'c'"]),
    aim(&["i"], &["'i'", "'I'", "'ı'", "'İ'", "'j'"]),
    aim(&["w", "k"], &["'a'", "'A'", "'a '", "'ä'", "'b'", "'ü'"]),
    aim(
        &["s", "k"],
        &[
            "'abcde'", "'abcdef'", "'abcd '", "'abcde '", "'ABCDE'", "'abcd'",
        ],
    ),
    aim(
        &["s", "w", "g"],
        &["'a'", "0", "'0'", "1", "'1'", "'1a'", "'01'"],
    ),
    aim(
        &["v", "b"],
        &["'a'", "'A'", "'a '", "'a\\0'", "'abcdefg'", "'ab'"],
    ),
    // Of what is too long, the begin is stored.
    Aim {
        reads: PLAIN_READS,
        changes: PLAIN_CHANGES,
        modes: &["", "", "STRICT_TRANS_TABLES"],
        ..aim(&["s", "k"], &["'abcde'", "'abcdef'", "'ABCDE '", "'b'"])
    },
    Aim {
        reads: PLAIN_READS,
        changes: PLAIN_CHANGES,
        modes: &["", "", "STRICT_TRANS_TABLES"],
        ..aim(
            &["v", "b"],
            &["'abcde'", "'abcdef'", "'abc'", "'abcd'", "'ab'"],
        )
    },
    // What equals a text is another one.
    Aim {
        reads: PLAIN_READS,
        changes: &[
            Change::DeleteKnown,
            Change::DeleteKnown,
            Change::UpdateKnown,
            Change::UpdateMoved,
            Change::DeleteIn,
        ],
        patterns: &["'a'", "'a_'", "'a '", "'A%'", "'A '", "'_'"],
        ..aim(&["s", "g"], &["'a'", "'A'", "'a '", "'A '"])
    },
    Aim {
        reads: PLAIN_READS,
        changes: PLAIN_CHANGES,
        modes: &["PAD_CHAR_TO_FULL_LENGTH", "PAD_CHAR_TO_FULL_LENGTH", ""],
        patterns: &["'a'", "'a___'", "'a_%'", "'% '", "'ab'", "'ab__'"],
        ..aim(&["c"], &["'a'", "'a '", "'ab'", "'abcd'"])
    },
    Aim {
        modes: &["", "", "STRICT_TRANS_TABLES"],
        ..aim(&["e"], &["'a'", "'b'", "'1'", "1", "2", "''", "'c'", "'A'"])
    },
    Aim {
        modes: &["", "", "STRICT_TRANS_TABLES"],
        ..aim(&["x"], &["1", "999", "1000", "2000", "-1", "1000000"])
    },
    Aim {
        changes: &[
            Change::InsertSet,
            Change::InsertNumber,
            Change::InsertNumber,
            Change::Replace,
        ],
        modes: &["", "", "NO_AUTO_VALUE_ON_ZERO"],
        ..aim(&["id", "n"], &["0", "1", "2", "50", "100"])
    },
    aim(&["s", "k"], &["'a_'", "'ab'", "'a%'", "'a'"]),
    Aim {
        reads: &[Form::RightJoin],
        changes: &[Change::Of("t2")],
        ..aim(&["n"], &["'a'", "'b'", "1"])
    },
    Aim {
        reads: &[Form::Parentheses],
        changes: &[Change::Of("t3"), Change::Of("t3"), Change::Of("t2")],
        ..aim(&["n"], &["1", "'a'", "2", "'b'", "3", "'c'"])
    },
    Aim {
        reads: &[Form::LeftJoin, Form::LeftJoinOn, Form::RightJoin],
        changes: &[Change::Of("t2"), Change::Of("t3"), Change::DeleteKnown],
        ..aim(&["n"], &["1", "'a'", "'b'", "2"])
    },
    Aim {
        reads: &[Form::Of("t3")],
        changes: &[
            Change::ReplaceAll,
            Change::ReplaceAll,
            Change::OnDuplicateAll,
        ],
        ..aim(&["n", "s"], &["1", "2", "3", "'a'", "'b'", "'c'"])
    },
    Aim {
        reads: &[Form::Of("t5"), Form::Of("t5"), Form::Of("t6")],
        changes: &[Change::Of("t5")],
        ..aim(&["n"], &["1", "2", "3", "4", "'a'"])
    },
    aim(
        &["d", "y"],
        &[
            "'2024-01-01 00:00:00'",
            "'2024-01-01'",
            "'2024-01-02 10:00:00'",
            "'2024-1-2 10:00:00'",
            "'24-1-1'",
            "20240101",
            "240101",
        ],
    ),
    Aim {
        reads: PLAIN_READS,
        changes: PLAIN_CHANGES,
        modes: &["", "", "STRICT_TRANS_TABLES"],
        ..aim(&["y"], &["'2024-02-28'", "'2024-02-30'", "'2024-03-01'"])
    },
    aim(
        &["y", "d"],
        &[
            "'2024-02-28'",
            "'2024-02-30'",
            "'0000-00-00'",
            "'2024-03-01'",
            "'2024-2-28'",
        ],
    ),
    aim(
        &["j", "f", "x"],
        &["'1'", "'[1]'", "1", "1.5", "1.50", "1.005", "'1.5'"],
    ),
    aim(
        &["n", "f", "x"],
        &["9007199254740993", "9007199254740992", "1", "1.0", "0.5"],
    ),
    aim(
        &["q", "p", "n"],
        &["1", "2", "3", "NULL", "'2024-01-01 00:00:00'"],
    ),
    Aim {
        reads: JOINS,
        ..aim(&["n", "s"], &["1", "2", "3", "'a'", "'b'", "NULL"])
    },
    Aim {
        reads: JOINS,
        changes: &[
            Change::Of("t2"),
            Change::UpdateKnown,
            Change::DeleteKnown,
            Change::Insert,
        ],
        ..aim(&["n", "u"], &["1", "2", "3", "NULL"])
    },
    Aim {
        reads: SMALL_READS,
        changes: SMALL_CHANGES,
        ..aim(&["n", "s"], &["1", "2", "3", "'a'", "'A'", "'b'"])
    },
    Aim {
        reads: SMALL_READS,
        changes: &[Change::Of("t3")],
        ..aim(
            &["n", "s"],
            &["0", "1", "NULL", "'a'", "'A'", "'a '", "'b'"],
        )
    },
    Aim {
        reads: &[
            Form::Ordered,
            Form::Some,
            Form::All,
            Form::Count,
            Form::Of("t2"),
        ],
        changes: &[Change::Unseen, Change::UpdateMoved],
        ..aim(&["n", "s", "g", "f", "p", "q"], &["1", "2", "'a'", "'b'"])
    },
];

const fn aim(columns: &'static [&'static str], values: &'static [&'static str]) -> Aim {
    Aim {
        columns,
        values,
        reads: USUAL_READS,
        changes: USUAL_CHANGES,
        modes: MODES,
        patterns: PATTERNS,
    }
}

const PATTERNS: &[&str] = &[
    "'a%'", "'%'", "'_'", "'a\\_'", "'A_'", "'%b'", "'a\\_'", "''", "'%ß%'", "'s%s'", "'a'",
    "'AB%'",
];
const OPERATORS: &[&str] = &["=", "=", "=", "<>", "<", "<=", ">", ">=", "<=>", "!="];

/// A generator of numbers that is the same everywhere.
pub struct Chance {
    state: u64,
    aim: usize,
}

impl Chance {
    /// One of `of` that share the aims.
    pub fn new(seed: usize, number: usize, of: usize) -> Self {
        let seed = (seed * of + number + 1) as u64;
        Self {
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            aim: AIMS.len() * number / of,
        }
    }

    pub fn mode(&mut self) -> &'static str {
        self.of(AIMS[self.aim].modes)
    }

    pub fn next_aim(&mut self) {
        self.aim = (self.aim + 1) % AIMS.len();
    }

    fn below(&mut self, bound: usize) -> usize {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.state >> 33) % bound as u64).unwrap()
    }

    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn value(&mut self) -> &'static str {
        match self.below(12) {
            0 => "NULL",
            _ => self.of(AIMS[self.aim].values),
        }
    }

    /// MariaDB 10.11 finds the 2 of an INT column for `n = 1.5` where it uses a key, and nothing where it does not: the
    /// result changes with the plan.
    fn value_for(&mut self, column: &str) -> &'static str {
        let value = self.value();
        let has_key = ["id", "n", "t"].contains(&column.rsplit('.').next().unwrap_or(column));
        let number = value.trim_matches('\'').parse::<f64>().unwrap_or_default();
        if has_key && number.fract() != 0.0 {
            "1"
        } else {
            value
        }
    }

    fn column(&mut self, table: &str) -> &'static str {
        match table {
            // Often the same, so that what is known of a row is what is asked for.
            "t1" if self.below(3) > 0 => AIMS[self.aim].columns[0],
            "t1" => self.of(AIMS[self.aim].columns),
            "t3" | "w2" => self.of(&["id", "s", "n", "s", "n"]),
            "t2" | "w1" => self.of(&["id", "t", "s", "m"]),
            "t4" => self.of(&["id", "t", "m"]),
            _ => self.of(&["id", "n", "m"]),
        }
    }

    fn atom(&mut self, table: &str, prefix: &str) -> String {
        let column = format!("{prefix}{}", self.column(table));
        let value = self.value_for(&column);
        match self.below(16) {
            0..=4 => format!("{column} {} {value}", self.of(OPERATORS)),
            5 => format!("{value} {} {column}", self.of(OPERATORS)),
            6 | 7 => {
                let values: Vec<_> = (0..=self.below(3))
                    .map(|_| self.value_for(&column))
                    .collect();
                format!(
                    "{column} {} ({})",
                    self.of(&["IN", "IN", "NOT IN"]),
                    values.join(", ")
                )
            }
            8 | 9 => format!(
                "{column} {} {value} AND {}",
                self.of(&["BETWEEN", "NOT BETWEEN"]),
                self.value_for(&column)
            ),
            10 | 11 => format!(
                "{column} {} {}",
                self.of(&["LIKE", "LIKE", "NOT LIKE"]),
                self.of(AIMS[self.aim].patterns)
            ),
            12 => format!(
                "{column} IS {}",
                self.of(&["NULL", "NOT NULL", "TRUE", "NOT FALSE"])
            ),
            13 => format!(
                "{}({column}) = {}",
                self.of(&["YEAR", "LENGTH", "LOWER", "ISNULL", "ABS"]),
                self.of(&["2024", "1", "0", "'a'"])
            ),
            // Where the binding of operators matters.
            14 => format!("NOT {column} {} {value}", self.of(&["=", "<=>", "<>"])),
            _ => self
                .of(&[
                    format!("{column} = {value} IS NOT NULL"),
                    format!("{column} LIKE {value} = 1"),
                    format!("! {column} = {value}"),
                    format!("{column} = - {value}"),
                    format!("{column} = {value} = 1"),
                    format!("{column} BETWEEN {value} AND {value} = 1"),
                    format!("({column}) = ({value})"),
                    format!("COALESCE({column}, {value}) = {value}"),
                ]
                .each_ref()
                .map(|it| &it[..]))
                .to_owned(),
        }
    }

    fn condition(&mut self, table: &str, prefix: &str, depth: usize) -> String {
        let inner = depth.saturating_sub(1);
        match self.below(if depth == 0 { 1 } else { 8 }) {
            0..=3 => self.atom(table, prefix),
            4 => format!("NOT ({})", self.condition(table, prefix, inner)),
            5 => format!(
                "({} OR {})",
                self.condition(table, prefix, inner),
                self.condition(table, prefix, inner)
            ),
            6 => format!(
                "{} OR {}",
                self.atom(table, prefix),
                self.atom(table, prefix)
            ),
            _ => format!(
                "({} AND {})",
                self.condition(table, prefix, inner),
                self.condition(table, prefix, inner)
            ),
        }
    }

    pub fn read(&mut self) -> String {
        let form = self.of(AIMS[self.aim].reads);
        let column = self.column("t1");
        let depth = self.of(&[0, 0, 1, 2]);
        let own = self.condition("t1", "", depth);
        let (left, right) = (
            self.condition("t1", "a.", depth.min(1)),
            self.condition("t2", "b.", depth.min(1)),
        );
        match form {
            Form::All => format!("SELECT * FROM t1 WHERE {own}"),
            Form::Some => format!("SELECT id, {column} FROM t1 WHERE {own}"),
            Form::Ordered => format!("SELECT {column} FROM t1 WHERE ({own}) ORDER BY {}, id LIMIT 3", self.column("t1")),
            Form::Count => format!("SELECT COUNT(*), MAX({column}) FROM t1 WHERE {own}"),
            Form::Join => self.of(&[
                format!("SELECT a.id, b.m FROM t1 a JOIN t2 b ON a.n = b.t WHERE {left} AND {right}"),
                format!("SELECT a.id, m FROM t1 a, t2 b WHERE a.n = t AND ({left}) AND m = 'a'"),
                format!("SELECT a.id, b.m FROM t1 a JOIN t2 b ON a.n = b.t AND ({left}) JOIN t3 c ON c.n = b.t WHERE {right}"),
            ].each_ref().map(|it| &it[..])).to_owned(),
            Form::LeftJoin => self.of(&[
                format!("SELECT a.id, b.m FROM t1 a LEFT JOIN t2 b ON a.n = b.t AND ({right}) WHERE {left}"),
                format!("SELECT a.id, b.m FROM t1 a LEFT JOIN t2 b ON a.n = b.t WHERE ({left}) AND ({right})"),
                format!("SELECT a.id, b.m FROM t1 a LEFT JOIN t2 b ON a.n = b.t WHERE {right}"),
                "SELECT a.id FROM t1 a LEFT JOIN t2 b ON a.n = b.t WHERE b.m IS NULL".to_owned(),
                "SELECT a.id FROM t1 a LEFT JOIN t2 b ON a.n = b.t AND b.m = 'a' WHERE b.m IS NULL".to_owned(),
                format!("SELECT a.id, c.m FROM t1 a LEFT JOIN t2 b ON a.n = b.t LEFT JOIN t3 c ON c.n = b.id WHERE {left}"),
            ].each_ref().map(|it| &it[..])).to_owned(),
            Form::LeftJoinOn => format!("SELECT a.id, b.m FROM t1 a LEFT JOIN t2 b ON ({left}) AND ({right})"),
            Form::RightJoin => self.of(&[
                format!("SELECT a.id, b.m FROM t1 a RIGHT JOIN t2 b ON a.n = b.t WHERE ({left}) OR ({right})"),
                format!("SELECT a.id, b.m FROM t1 a RIGHT JOIN t2 b ON a.n = b.t AND ({left})"),
                format!("SELECT a.id, b.m FROM t1 a RIGHT JOIN t2 b ON a.n = b.t AND ({right})"),
            ].each_ref().map(|it| &it[..])).to_owned(),
            Form::Parentheses => self.of(&[
                "SELECT a.id FROM t1 a LEFT JOIN (t2 b JOIN t3 c ON b.t = c.id) ON b.t = a.n WHERE c.s IS NULL".to_owned(),
                format!("SELECT a.id FROM t1 a LEFT JOIN (t2 b JOIN t3 c ON b.t = c.id) ON b.t = a.n WHERE NOT ({right}) OR b.m IS NULL"),
                format!("SELECT a.id, b.m FROM (t1 a JOIN t2 b ON a.n = b.t) LEFT JOIN t3 c ON c.n = a.n AND ({left})"),
            ].each_ref().map(|it| &it[..])).to_owned(),
            Form::Exists => format!("SELECT id FROM t1 a WHERE NOT EXISTS (SELECT 1 FROM t2 b WHERE b.t = a.n AND ({right})) AND ({left})"),
            Form::In => format!("SELECT id FROM t1 a WHERE {} AND n IN (SELECT t FROM t2 b WHERE {right})", self.atom("t1", "a.")),
            Form::Derived => format!("SELECT z.{column}, COUNT(*) FROM (SELECT {column} FROM t1 WHERE {own}) z GROUP BY z.{column}"),
            Form::Union => format!("SELECT id FROM t1 WHERE {own} UNION SELECT id FROM t2 WHERE {}", self.condition("t2", "", 1)),
            Form::With => format!("WITH z AS (SELECT id, n FROM t1 a WHERE {left}) SELECT z.id, b.m FROM z LEFT JOIN t2 b ON b.t = z.n AND ({right})"),
            Form::View => format!("SELECT n, m FROM w1 WHERE {}", self.of(&["n = 1", "m = 'a'", "s = 'a'", "1 = 1"])),
            Form::Of(table) => {
                let what = self.of(&["*", "id", "COUNT(*)"]);
                format!("SELECT {what} FROM {table} WHERE {}", self.condition(table, "", 1))
            }
        }
    }

    pub fn change(&mut self) -> String {
        let form = self.of(AIMS[self.aim].changes);
        let table = match form {
            Change::Of(table) => table,
            _ => "t1",
        };
        let column = self.column(table);
        let form = match form {
            Change::Of(_) => self.of(&[
                Change::Update,
                Change::UpdateKnown,
                Change::UpdateMoved,
                Change::DeleteKnown,
                Change::DeleteIn,
                Change::Insert,
                Change::InsertSet,
                Change::InsertRows,
                Change::Replace,
                Change::OnDuplicate,
            ]),
            form => form,
        };
        let (set, known) = (
            self.value(),
            format!("{column} = {}", self.value_for(column)),
        );
        match form {
            Change::Update => format!(
                "UPDATE {table} SET {column} = {set} WHERE {}",
                self.condition(table, "", 1)
            ),
            Change::UpdateKnown => format!(
                "UPDATE {table} SET {} = {set} WHERE {known}",
                self.column(table)
            ),
            Change::UpdateMoved => format!("UPDATE {table} SET {column} = {set} WHERE {known}"),
            Change::UpdateTwice => format!(
                "UPDATE {table} SET {column} = {set}, {column} = {} WHERE {known}",
                self.of(&[column, "n + 1", "1", "'b'"])
            ),
            Change::Delete => format!("DELETE FROM {table} WHERE {}", self.condition(table, "", 1)),
            Change::DeleteKnown => format!("DELETE FROM {table} WHERE {known}"),
            Change::DeleteIn => format!(
                "DELETE FROM {table} WHERE {column} IN ({}, {}) AND {}",
                self.value_for(column),
                self.value_for(column),
                self.atom(table, "")
            ),
            Change::Insert | Change::Of(_) => {
                let (other, id) = (self.column(table), 100 + self.below(9));
                let ignore = self.of(&["", "IGNORE"]);
                if other == column || other == "id" {
                    format!("INSERT {ignore} INTO {table} (id, {column}) VALUES ({id}, {set})")
                } else {
                    format!(
                        "INSERT {ignore} INTO {table} (id, {column}, {other}) VALUES ({id}, {set}, {})",
                        self.value()
                    )
                }
            }
            Change::InsertSet => format!(
                "INSERT INTO {table} SET id = {}, {column} = {set}",
                self.of(&["0", "NULL", "50"])
            ),
            Change::InsertRows => format!(
                "INSERT IGNORE INTO {table} (id, {column}) VALUES (101, {set}), (102, {})",
                self.value()
            ),
            Change::Replace => {
                let id = self.of(&["(id, ", "("]);
                let number = if id == "(" {
                    ""
                } else {
                    self.of(&["1, ", "2, ", "5, ", "NULL, ", "0, "])
                };
                format!("REPLACE INTO {table} {id}{column}) VALUES ({number}{set})")
            }
            Change::OnDuplicate => {
                let id = self.of(&["id, ", ""]);
                let number = if id.is_empty() {
                    ""
                } else {
                    self.of(&["1, ", "2, ", "5, "])
                };
                let (other, value) = (self.column(table), self.value());
                let assigned = self.of(&[value, "VALUES(id)", "1"]);
                format!(
                    "INSERT INTO {table} ({id}{column}) VALUES ({number}{set}) ON DUPLICATE KEY UPDATE {other} = {assigned}"
                )
            }
            Change::ReplaceAll => format!(
                "REPLACE INTO t3 (id, s, n, m) VALUES ({}, {set}, {}, {})",
                self.of(&["1", "2", "5", "'02'", "20"]),
                self.value(),
                self.value()
            ),
            Change::OnDuplicateAll => format!(
                "INSERT INTO t3 (id, s, n, m) VALUES ({}, {set}, {}, 'x') ON DUPLICATE KEY UPDATE {} = {}",
                self.of(&["1", "2", "5", "'02'", "20"]),
                self.value(),
                self.column("t3"),
                self.value()
            ),
            Change::InsertNumber => {
                let id = self.of(&["0", "'02'", "'05'", "3.0", "NULL", "2", "30"]);
                let replaced = self.of(&["INSERT", "REPLACE", "REPLACE"]);
                format!("{replaced} INTO t1 (id, n) VALUES ({id}, {set})")
            }
            Change::Multiple => self
                .of(&[
                    format!("UPDATE t2 a, t3 b SET b.m = {set} WHERE a.t = b.n"),
                    "DELETE a, b FROM t2 a, t3 b WHERE a.t = b.n".to_owned(),
                    format!("DELETE t3 FROM t3 JOIN t2 ON t2.t = t3.n WHERE t2.m = {set}"),
                ]
                .each_ref()
                .map(|it| &it[..]))
                .to_owned(),
            Change::FromQuery => format!(
                "INSERT INTO t1 (n, s) SELECT t, m FROM t2 WHERE {}",
                self.condition("t2", "", 1)
            ),
            Change::Unseen => {
                let unseen = self.of(&[
                    "w = 'x'",
                    "f = f + 1",
                    "v = 'x'",
                    "g = 'b'",
                    "n = n + 1",
                    "j = '1'",
                ]);
                format!("UPDATE t1 SET {unseen} WHERE {}", self.atom("t1", ""))
            }
        }
    }

    /// Some rows in each table.
    pub fn rows(&mut self) -> String {
        let mut script = "SET sql_mode = ''; BEGIN; DELETE FROM t4;".to_owned();
        script.push_str(
            "DELETE FROM t1; DELETE FROM t5; DELETE FROM t2; DELETE FROM t3; DELETE FROM t6;\n",
        );
        let columns = [
            "n", "u", "s", "g", "l", "i", "w", "k", "c", "v", "b", "e", "d", "y", "j", "f", "x",
        ];
        for id in 1..=8 {
            let values: Vec<_> = columns.iter().map(|_| self.value()).collect();
            let (names, values) = (columns.join(", "), values.join(", "));
            writeln!(
                script,
                "INSERT IGNORE INTO t1 (id, {names}) VALUES ({id}, {values});"
            )
            .unwrap();
            let (a, b, c) = (self.value(), self.value(), self.value());
            let number = self.of(&["1", "2", "3", "0"]);
            for row in [
                format!("t2 VALUES ({id}, {number}, {b}, {c})"),
                format!("t3 VALUES ({id}, {a}, {b}, {c})"),
                format!("t4 VALUES ({id}, {number}, {c})"),
                format!("t5 VALUES ({id}, {a}, {b})"),
                format!("t6 VALUES ({id}, {a}, {b})"),
            ] {
                writeln!(script, "INSERT IGNORE INTO {row};").unwrap();
            }
        }
        script.push_str("COMMIT;\n");
        script
    }
}
