//! The rules beside MariaDB itself: random statements and changes, where a result that changes must
//! have been matched.
//!
//! Each pair runs in a transaction that is rolled back: the statement, the change, the statement
//! again. `LEARNED_PAIRS` and `LEARNED_SEED` ask for more pairs and for others.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use learned::{Column, ColumnDescription, Reading, Schema, Session, Shapes, Table, may_alter};

const PAIRS: usize = 2_000;
const PAIRS_IN_A_SCRIPT: usize = 200;

const TABLES: &str = "
CREATE TABLE t1 (
  id INT AUTO_INCREMENT PRIMARY KEY, n INT, u TINYINT UNSIGNED NOT NULL DEFAULT 0,
  s VARCHAR(5) COLLATE utf8mb4_unicode_ci, g VARCHAR(10) COLLATE utf8mb4_general_ci NOT NULL DEFAULT '',
  l VARCHAR(5) COLLATE utf8mb4_lithuanian_ci, w VARCHAR(5) CHARACTER SET latin1 COLLATE latin1_swedish_ci,
  k VARCHAR(5) COLLATE utf8mb4_bin, c CHAR(4) COLLATE utf8mb4_nopad_bin, v VARBINARY(5), b BINARY(3),
  e ENUM('a', 'b', '1'), d DATETIME, y DATE, j JSON, f DOUBLE, x DECIMAL(5, 2),
  p TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP, q INT AS (n + 1), KEY (n, s)
) COLLATE utf8mb4_turkish_ci;
CREATE TABLE t2 (id INT PRIMARY KEY, t INT, s VARCHAR(5), m VARCHAR(5), KEY (t)) COLLATE utf8mb4_unicode_ci;
";
const COLUMNS: &[&str] = &[
    "id", "n", "u", "s", "g", "l", "w", "k", "c", "v", "b", "e", "d", "y", "j", "f", "x", "p", "q",
];
const COLUMNS_OF_T2: &[&str] = &["id", "t", "s", "m"];
const MODES: &[&str] = &[
    "",
    "STRICT_TRANS_TABLES",
    "STRICT_ALL_TABLES,NO_ZERO_DATE",
    "PAD_CHAR_TO_FULL_LENGTH",
];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "-1",
    "300",
    "1.5",
    "1e0",
    "9007199254740993",
    "20240101",
    "240101",
];
const TEXTS: &[&str] = &[
    "'a'",
    "'A'",
    "'a '",
    "'b'",
    "'ss'",
    "'ß'",
    "'é'",
    "'e'",
    "'i'",
    "'I'",
    "'y'",
    "'ch'",
    "'c'",
    "''",
    "' '",
    "'1'",
    "'5'",
    "'05'",
    "'5a'",
    "'1.0'",
    "'abcdefg'",
    "'a\\0b'",
    "'ab'",
    "x'61'",
    "'%'",
    "'[1]'",
    "'-1'",
];
const DATES: &[&str] = &[
    "'2024-01-01 00:00:00'",
    "'2024-01-01'",
    "'2024-01-02 10:00:00'",
    "'2024-02-30'",
    "'0000-00-00'",
    "'24-1-1'",
];
const PATTERNS: &[&str] = &[
    "'a%'", "'%'", "'_'", "'A_'", "'%b'", "'a\\_'", "''", "'%ß%'", "'s%s'", "'__'",
];

/// A generator of numbers that is the same everywhere.
struct Chance {
    state: u64,
    /// Columns and values of one script are few, so that statement and change meet often.
    focus: u64,
}

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.state >> 33) % bound as u64).unwrap()
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        let few = choices.len().min(4);
        let start = usize::try_from(self.focus % 1_000).unwrap();
        let at = if choices.len() > 10 {
            start + self.below(few) * 5
        } else {
            self.below(choices.len())
        };
        choices[at % choices.len()]
    }

    fn in_ten(&mut self, times: usize) -> bool {
        self.below(10) < times
    }

    /// A value that fits the column in most cases.
    fn value(&mut self, column: &str) -> &'static str {
        if self.in_ten(1) {
            return "NULL";
        }
        let kind = if self.in_ten(2) {
            self.below(3)
        } else {
            usize::MAX
        };
        match (column, kind) {
            (_, 0) | ("id" | "n" | "u" | "f" | "x" | "q" | "t", _) => self.of(NUMBERS),
            (_, 1) | ("d" | "y" | "p", _) => self.of(DATES),
            _ => self.of(TEXTS),
        }
    }

    fn column(&mut self, table: &str) -> &'static str {
        self.of(if table == "t1" {
            COLUMNS
        } else {
            COLUMNS_OF_T2
        })
    }

    fn atom(&mut self, table: &str, prefix: &str) -> String {
        let name = self.column(table);
        let column = format!("{prefix}{name}");
        match self.below(10) {
            0..=3 => format!("{column} = {}", self.value(name)),
            4 => format!(
                "{column} {} {}",
                self.of(&["<>", "<", "<=", ">", ">=", "<=>", "!="]),
                self.value(name)
            ),
            5 => {
                let values: Vec<_> = (0..=self.below(3)).map(|_| self.value(name)).collect();
                format!(
                    "{column} {} ({})",
                    self.of(&["IN", "NOT IN"]),
                    values.join(", ")
                )
            }
            6 => format!(
                "{column} BETWEEN {} AND {}",
                self.value(name),
                self.value(name)
            ),
            7 => format!(
                "{column} {} {}",
                self.of(&["LIKE", "NOT LIKE"]),
                self.of(PATTERNS)
            ),
            8 => format!("{column} IS {}", self.of(&["NULL", "NOT NULL"])),
            _ => format!(
                "{} {} {column}",
                self.value(name),
                self.of(&["=", "<", ">="])
            ),
        }
    }

    fn condition(&mut self, table: &str, prefix: &str, depth: usize) -> String {
        match self.below(if depth == 0 { 1 } else { 5 }) {
            0 | 1 => self.atom(table, prefix),
            2 => format!("NOT ({})", self.condition(table, prefix, depth - 1)),
            3 => {
                let (left, right) = (
                    self.condition(table, prefix, depth - 1),
                    self.condition(table, prefix, depth - 1),
                );
                format!("({left} OR {right})")
            }
            _ => {
                let (left, right) = (
                    self.condition(table, prefix, depth - 1),
                    self.condition(table, prefix, depth - 1),
                );
                format!("({left} AND {right})")
            }
        }
    }

    fn read(&mut self) -> String {
        let column = self.column("t1");
        let own = self.condition("t1", "", 2);
        let (left, right) = (self.condition("t1", "a.", 1), self.condition("t2", "b.", 1));
        match self.below(11) {
            0 => format!("SELECT * FROM t1 WHERE {own}"),
            1 | 2 => format!("SELECT id, {column} FROM t1 WHERE {own}"),
            3 => format!("SELECT COUNT(*), MAX({column}) FROM t1 WHERE {own}"),
            4 => format!(
                "SELECT a.id, b.m FROM t1 a JOIN t2 b ON a.n = b.t WHERE {left} AND {right}"
            ),
            5 => format!(
                "SELECT a.id, b.m FROM t1 a LEFT JOIN t2 b ON a.n = b.t AND {right} WHERE {left}"
            ),
            6 => format!(
                "SELECT a.id, b.m FROM t1 a LEFT JOIN t2 b ON a.n = b.t WHERE {left} AND {right}"
            ),
            7 => format!("SELECT a.id, b.m FROM t1 a LEFT JOIN t2 b ON {left} AND {right}"),
            8 => format!(
                "SELECT a.id, b.m FROM t1 a RIGHT JOIN t2 b ON a.n = b.t WHERE {left} OR {right}"
            ),
            9 => format!(
                "SELECT id FROM t1 a WHERE {left} AND n IN (SELECT t FROM t2 b WHERE {right})"
            ),
            _ => format!(
                "SELECT id FROM t1 a WHERE NOT EXISTS (SELECT 1 FROM t2 b WHERE b.t = a.n AND {right})"
            ),
        }
    }

    fn change(&mut self) -> String {
        let table = self.of(&["t1", "t1", "t2"]);
        let column = self.column(table);
        let (set, condition) = (self.value(column), self.condition(table, "", 1));
        let known = format!("{column} = {}", self.value(column));
        match self.below(9) {
            0 => format!("UPDATE {table} SET {column} = {set} WHERE {condition}"),
            1 => format!("UPDATE {table} SET {column} = {set} WHERE {known}"),
            2 => format!(
                "UPDATE {table} SET {column} = {set} WHERE id = {}",
                self.of(NUMBERS)
            ),
            3 => format!("DELETE FROM {table} WHERE {known}"),
            4 => format!("DELETE FROM {table} WHERE {condition}"),
            5 => format!(
                "REPLACE INTO {table} (id, {column}) VALUES ({}, {set})",
                self.of(NUMBERS)
            ),
            6 => format!(
                "INSERT INTO {table} (id, {column}) VALUES (1, {set}) ON DUPLICATE KEY UPDATE {column} = {set}"
            ),
            _ => {
                let (other, id) = (self.column(table), 100 + self.below(9));
                format!(
                    "INSERT INTO {table} (id, {column}, {other}) VALUES ({id}, {set}, {})",
                    self.value(other)
                )
            }
        }
    }

    /// Twelve rows in each table.
    fn rows(&mut self) -> String {
        let mut script = "DELETE FROM t1; DELETE FROM t2; SET sql_mode = '';\n".to_owned();
        for id in 1..=12 {
            let names: Vec<_> = COLUMNS
                .iter()
                .filter(|it| !matches!(**it, "id" | "q" | "p"))
                .copied()
                .collect();
            let values: Vec<_> = names.iter().map(|name| self.value(name)).collect();
            writeln!(
                script,
                "INSERT IGNORE INTO t1 (id, {}) VALUES ({id}, {});",
                names.join(", "),
                values.join(", ")
            )
            .unwrap();
            let values = [self.value("t"), self.value("s"), self.value("m")];
            writeln!(
                script,
                "INSERT IGNORE INTO t2 VALUES ({id}, {});",
                values.join(", ")
            )
            .unwrap();
        }
        script
    }
}

/// A server with a data directory and a socket of its own.
struct Database {
    folder: PathBuf,
    process: Child,
}

impl Database {
    fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("learned-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let data = format!("--datadir={}", folder.join("data").display());
        // MariaDB does not run as root unless it is asked for so.
        let common = [
            "--no-defaults",
            &data,
            "--user=root",
            "--innodb-log-file-size=8M",
        ];
        let installed = Command::new("mariadb-install-db")
            .args(common)
            .args(["--skip-test-db", "--auth-root-authentication-method=normal"])
            .output()
            .expect("this test needs mariadb-server");
        assert!(
            installed.status.success(),
            "{}",
            String::from_utf8_lossy(&installed.stdout)
        );
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let process = Command::new("mariadbd")
            .args(common)
            .args([
                "--skip-networking",
                "--innodb-flush-log-at-trx-commit=0",
                "--innodb-buffer-pool-size=16M",
            ])
            .arg(format!("--socket={}", folder.join("sock").display()))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("this test needs mariadb-server");
        let database = Self { folder, process };
        let started = Instant::now();
        while !database.try_run("SELECT 1").1 {
            let log = std::fs::read_to_string(database.folder.join("log")).unwrap_or_default();
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "mariadbd does not answer: {log}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        database.run("CREATE DATABASE site CHARACTER SET utf8mb4");
        database
    }

    fn run(&self, script: &str) -> String {
        self.try_run(script).0
    }

    /// What the client prints; errors of single statements do not end it.
    fn try_run(&self, script: &str) -> (String, bool) {
        let mut client = Command::new("mariadb")
            .args([
                "--no-defaults",
                "--batch",
                "--skip-column-names",
                "--force",
                "--user=root",
                "--database=site",
            ])
            .args(["--default-character-set=utf8mb4", "--database="])
            .arg(format!("--socket={}", self.folder.join("sock").display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this test needs mariadb-client");
        let mut stdin = client.stdin.take().unwrap();
        let script = script.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()).is_ok());
        let output = client.wait_with_output().unwrap();
        writer.join().unwrap();
        (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            output.status.success(),
        )
    }

    fn schema(&self) -> Schema {
        let indexed = self.run("SELECT table_name, column_name FROM information_schema.statistics WHERE table_schema = 'site';");
        let columns = self.run(
            "SELECT table_name, column_name, data_type, column_type, IFNULL(character_maximum_length, 0),
               IFNULL(collation_name, ''), is_nullable, extra FROM information_schema.columns
             WHERE table_schema = 'site' ORDER BY table_name, ordinal_position;",
        );
        let mut tables = std::collections::BTreeMap::<&str, Table>::new();
        for line in columns.lines() {
            let fields: Vec<_> = line.split('\t').collect();
            let description = ColumnDescription {
                name: fields[1],
                data_type: fields[2],
                column_type: fields[3],
                most_characters: fields[4].parse().unwrap(),
                collation: fields[5],
                is_nullable: fields[6] == "YES",
                extra: fields.get(7).unwrap_or(&""),
            };
            let is_indexed = indexed
                .lines()
                .any(|it| it.split('\t').eq(fields[..2].iter().copied()));
            tables
                .entry(fields[0])
                .or_default()
                .columns
                .push(Column::described(&description, is_indexed));
        }
        assert_eq!(tables.len(), 2, "{columns}");
        let mut schema = Schema::default();
        for (name, table) in tables {
            schema.insert("site", name, table);
        }
        schema
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Both results of each pair, with their rows sorted: their order is the server's choice.
fn results(output: &str) -> Vec<[Vec<&str>; 2]> {
    let mut pairs: Vec<[Vec<&str>; 2]> = Vec::new();
    let mut part = 2;
    for line in output.lines() {
        match line {
            "#pair" => {
                pairs.push(Default::default());
                part = 0;
            }
            "#again" => part = 1,
            _ if part < 2 => pairs.last_mut().unwrap()[part].push(line),
            _ => {}
        }
    }
    pairs
        .iter_mut()
        .flatten()
        .for_each(|rows| rows.sort_unstable());
    pairs
}

#[test]
fn changed_results_of_random_pairs_were_matched() {
    let asked = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<usize>().expect("a number"))
    };
    let pairs = asked("LEARNED_PAIRS").unwrap_or(PAIRS);
    let seed = asked("LEARNED_SEED").unwrap_or(1);
    let database = Database::start();
    database.run(&format!("USE site;{TABLES}"));
    let schema = Arc::new(database.schema());
    let session = Session::new(Some("site".to_owned()), 45);
    let mut shapes = Shapes::new(Arc::clone(&schema));
    let mut chance = Chance {
        state: seed as u64,
        focus: 0,
    };
    let (mut learned, mut changed, mut let_go, mut done) = (0, 0, 0, 0);
    let mut missed = Vec::new();
    while done < pairs {
        chance.focus = chance.focus.wrapping_add(7);
        let mut script = format!("USE site;{}", chance.rows());
        let mut generated = Vec::new();
        for _ in 0..PAIRS_IN_A_SCRIPT.min(pairs - done) {
            let (read, change, mode) = (chance.read(), chance.change(), chance.of(MODES));
            writeln!(
                script,
                "SET sql_mode = '{mode}'; BEGIN; SELECT '#pair';\n{read};\n{change};\nSELECT '#again';\n{read};\nROLLBACK;"
            )
            .unwrap();
            generated.push((read, change, mode));
        }
        let output = database.run(&script);
        let results = results(&output);
        assert_eq!(results.len(), generated.len());
        done += generated.len();
        // Shapes are random here: a site has few.
        shapes = if shapes.count() > 1_000 {
            Shapes::new(Arc::clone(&schema))
        } else {
            shapes
        };
        for ((read, change, mode), [before, after]) in generated.iter().zip(results) {
            let Reading::Tables(reading) =
                shapes.understand(read.as_bytes(), &[], &session).reading
            else {
                continue;
            };
            learned += 1;
            let effect = shapes.understand(change.as_bytes(), &[], &session).effect;
            let is_matched = may_alter(&reading, &effect, &schema);
            let_go += usize::from(!is_matched);
            if before != after {
                changed += 1;
                if !is_matched {
                    missed.push(format!(
                        "[{mode}] {read}; {change}: {before:?} became {after:?}"
                    ));
                }
            }
        }
    }
    println!(
        "{done} pairs, {learned} learned, {changed} changed, {let_go} let go, {} missed",
        missed.len()
    );
    assert!(
        missed.is_empty(),
        "{} of {done} with seed {seed}: {:#?}",
        missed.len(),
        &missed[..missed.len().min(5)]
    );
    assert!(
        learned * 2 > done,
        "only {learned} of {done} statements are learned"
    );
    assert!(
        changed * 20 > done,
        "only {changed} of {done} changes did anything"
    );
    assert!(
        let_go * 5 > done,
        "only {let_go} of {done} changes were let go"
    );
}
