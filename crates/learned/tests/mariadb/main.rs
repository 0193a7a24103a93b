//! The rules beside MariaDB itself: statements and changes at random, where a result that changes must
//! have been matched.
//!
//! A block has some statements and some changes on the same rows; each change is made in a transaction,
//! all statements run, and it is rolled back. `LEARNED_PAIRS` and `LEARNED_SEED` ask for more pairs and
//! for others. `LEARNED_RECORD` writes what the database said into a file, and `LEARNED_REPLAY` judges
//! such a file without a database, for `scripts/mutations/learned.py`.

mod generator;

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use generator::{Chance, TABLES};
use learned::{Effect, Reading, Schema, SchemaBuilder, SchemaQuery, Session, Shapes, may_alter};
use testkit::mariadb::MariaDb;

/// A block for each aim.
const PAIRS: usize = 22_500;
const READS: usize = 25;
const CHANGES: usize = 25;
/// Each with a database of its own.
const CONNECTIONS: usize = 2;
/// Misses that are shown.
const MAX_SHOWN: usize = 8;

/// Statements and changes with what the database said.
struct Block {
    reads: Vec<String>,
    /// Each with whether the result of each statement changed.
    changes: Vec<(String, Vec<bool>)>,
}

#[derive(Debug, Default)]
struct Findings {
    pairs: usize,
    learned: usize,
    changed: usize,
    let_go: usize,
    missed: Vec<String>,
}

struct Judge {
    schema: Arc<Schema>,
    shapes: Shapes,
    session: Session,
    findings: Findings,
}

impl Judge {
    fn new(rows: &[(SchemaQuery, Vec<String>)], database: &str) -> Self {
        let mut builder = SchemaBuilder::default();
        for (query, fields) in rows {
            let fields: Vec<_> = fields.iter().map(|field| &field[..]).collect();
            assert!(builder.row(*query, &fields), "{fields:?}");
        }
        let schema = Arc::new(builder.finish().unwrap());
        assert!(schema.count() >= 6);
        Self {
            shapes: Shapes::new(Arc::clone(&schema)),
            schema,
            session: Session::new(Some(database.to_owned()), 45),
            findings: Findings::default(),
        }
    }

    fn judge(&mut self, block: &Block) {
        // Shapes are random here: a site has few.
        if self.shapes.count() > 1_000 {
            self.shapes = Shapes::new(Arc::clone(&self.schema));
        }
        let readings: Vec<_> = block
            .reads
            .iter()
            .map(|read| {
                match self
                    .shapes
                    .understand(read.as_bytes(), &[], &self.session)
                    .reading
                {
                    Reading::Tables(reading) => Some(reading),
                    _ => None,
                }
            })
            .collect();
        let findings = &mut self.findings;
        for (change, changed) in &block.changes {
            let effect = self
                .shapes
                .understand(change.as_bytes(), &[], &self.session)
                .effect;
            assert_ne!(effect, Effect::Nothing, "{change}");
            for ((read, reading), has_changed) in block.reads.iter().zip(&readings).zip(changed) {
                findings.pairs += 1;
                let Some(reading) = reading else {
                    continue;
                };
                findings.learned += 1;
                let is_matched = may_alter(reading, &effect);
                findings.let_go += usize::from(!is_matched);
                findings.changed += usize::from(*has_changed);
                if *has_changed && !is_matched {
                    findings.missed.push(format!("{read}; {change}"));
                }
            }
        }
    }
}

/// Runs a block on a database.
fn observe(database: &MariaDb, name: &str, chance: &mut Chance) -> Block {
    chance.next_aim();
    let reads: Vec<_> = (0..READS).map(|_| chance.read()).collect();
    let changes: Vec<_> = (0..CHANGES).map(|_| chance.change()).collect();
    let mut script = format!(
        "USE {name};{}SET sql_mode = '{}';\n",
        chance.rows(),
        chance.mode()
    );
    let mut all_reads = String::new();
    for read in &reads {
        writeln!(all_reads, "SELECT '#read';\n{read};").unwrap();
    }
    script.push_str(&all_reads);
    for change in &changes {
        writeln!(script, "BEGIN;\n{change};\n{all_reads}ROLLBACK;").unwrap();
    }
    let output = database.run_past_errors(&script);
    let results = results(&output);
    assert_eq!(results.len(), READS * (CHANGES + 1));
    let (before, after) = results.split_at(READS);
    let changes = changes.into_iter().zip(after.chunks(READS));
    Block {
        reads,
        changes: changes
            .map(|(change, after)| {
                let changed = before
                    .iter()
                    .zip(after)
                    .map(|(before, after)| before != after);
                (change, changed.collect())
            })
            .collect(),
    }
}

/// The results with their rows sorted: their order is the server's choice.
fn results(output: &str) -> Vec<Vec<&str>> {
    let mut results: Vec<Vec<&str>> = Vec::new();
    for line in output.lines() {
        match (line, results.last_mut()) {
            ("#read", _) => results.push(Vec::new()),
            (line, Some(last)) => last.push(line),
            (_, None) => {}
        }
    }
    results.iter_mut().for_each(|rows| rows.sort_unstable());
    results
}

fn schema_rows(database: &MariaDb) -> Vec<(SchemaQuery, Vec<String>)> {
    let mut rows = Vec::new();
    for query in SchemaQuery::ALL {
        for line in database.run(&format!("{};", query.sql())).lines() {
            // The client writes what is no field's text with a backslash.
            let fields = line.split('\t').map(|field| field.replace("\\\\", "\\"));
            rows.push((query, fields.collect()));
        }
    }
    rows
}

fn asked(name: &str) -> Option<usize> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

/// A line for each row of the schema, each statement and each change with its marks.
fn recorded(rows: &[(SchemaQuery, Vec<String>)], blocks: &[Block]) -> String {
    let mut text = String::new();
    for (query, fields) in rows {
        let place = SchemaQuery::ALL.iter().position(|it| it == query).unwrap();
        writeln!(text, "schema\t{place}\t{}", fields.join("\t")).unwrap();
    }
    for block in blocks {
        text.push_str("block\n");
        for read in &block.reads {
            writeln!(text, "read\t{read}").unwrap();
        }
        for (change, changed) in &block.changes {
            let marks: String = changed
                .iter()
                .map(|it| if *it { '1' } else { '0' })
                .collect();
            writeln!(text, "change\t{marks}\t{change}").unwrap();
        }
    }
    text
}

fn replayed(text: &str) -> (Vec<(SchemaQuery, Vec<String>)>, Vec<Block>) {
    let (mut rows, mut blocks) = (Vec::new(), Vec::<Block>::new());
    for line in text.lines() {
        let fields: Vec<_> = line.split('\t').collect();
        match (fields[0], blocks.last_mut()) {
            ("schema", _) => {
                let query = SchemaQuery::ALL[fields[1].parse::<usize>().unwrap()];
                rows.push((
                    query,
                    fields[2..].iter().map(|it| (*it).to_owned()).collect(),
                ));
            }
            ("block", _) => blocks.push(Block {
                reads: Vec::new(),
                changes: Vec::new(),
            }),
            ("read", Some(block)) => block.reads.push(fields[1].to_owned()),
            (_, Some(block)) => {
                let marks = fields[1].chars().map(|it| it == '1').collect();
                block.changes.push((fields[2].to_owned(), marks));
            }
            _ => panic!("{line}"),
        }
    }
    (rows, blocks)
}

fn database_name(number: usize) -> String {
    format!("site{number}")
}

/// Blocks of several connections side by side, and what is found about them.
fn with_database(pairs: usize, seed: usize) -> Findings {
    let database = MariaDb::start();
    for number in 0..CONNECTIONS {
        let name = database_name(number);
        database.run(&format!(
            "CREATE DATABASE {name} CHARACTER SET utf8mb4; USE {name};{TABLES}"
        ));
    }
    let rows = schema_rows(&database);
    let record = std::env::var("LEARNED_RECORD").ok();
    let done = AtomicUsize::new(0);
    let work = |number: usize| {
        let name = database_name(number);
        let mut judge = Judge::new(&rows, &name);
        let mut chance = Chance::new(seed, number, CONNECTIONS);
        let mut blocks = Vec::new();
        while done.fetch_add(READS * CHANGES, Ordering::Relaxed) < pairs {
            let block = observe(&database, &name, &mut chance);
            judge.judge(&block);
            if record.is_some() {
                blocks.push(block);
            }
        }
        (judge.findings, blocks)
    };
    let work = &work;
    let found: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS)
            .map(|number| scope.spawn(move || work(number)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    if let Some(path) = record {
        let blocks: String = found
            .iter()
            .map(|(_, blocks)| recorded(&[], blocks))
            .collect();
        std::fs::write(path, recorded(&rows, &[]) + &blocks).unwrap();
    }
    let mut all = Findings::default();
    for (findings, _) in found {
        all.pairs += findings.pairs;
        all.learned += findings.learned;
        all.changed += findings.changed;
        all.let_go += findings.let_go;
        all.missed.extend(findings.missed);
    }
    all
}

fn from_file(path: &str) -> Findings {
    let text = std::fs::read_to_string(path).unwrap();
    let (rows, blocks) = replayed(&text);
    // The tables of all databases are the same.
    let mut judge = Judge::new(&rows, &database_name(0));
    for block in &blocks {
        judge.judge(block);
    }
    judge.findings
}

#[test]
fn changed_results_of_random_pairs_were_matched() {
    let seed = asked("LEARNED_SEED").unwrap_or(1);
    let findings = match std::env::var("LEARNED_REPLAY") {
        Ok(path) => from_file(&path),
        Err(_) => with_database(asked("LEARNED_PAIRS").unwrap_or(PAIRS), seed),
    };
    let Findings {
        pairs,
        learned,
        changed,
        let_go,
        missed,
    } = &findings;
    println!(
        "{pairs} pairs, {learned} learned, {changed} changed, {let_go} let go, {} missed",
        missed.len()
    );
    assert!(
        missed.is_empty(),
        "{} of {pairs} with seed {seed}: {:#?}",
        missed.len(),
        &missed[..missed.len().min(MAX_SHOWN)]
    );
    assert!(
        learned * 2 > *pairs,
        "only {learned} of {pairs} statements are learned"
    );
    assert!(
        changed * 20 > *pairs,
        "only {changed} of {pairs} changes did anything"
    );
    assert!(
        let_go * 12 > *pairs,
        "only {let_go} of {pairs} changes were let go"
    );
}
