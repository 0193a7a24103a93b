//! Two answers of a server, compared.

use super::*;

const POST: &str = "blog.post";

fn state(updated: Option<&str>) -> TableState {
    TableState {
        engine: "InnoDB".to_owned(),
        updated: updated.map(|time| time.as_bytes().to_vec()),
        created: Some(b"2026-01-01 00:00:00".to_vec()),
        size: Some(b"2 16384 0".to_vec()),
        is_recent: false,
    }
}

fn answer(gate: u64, table: TableState) -> PollAnswer {
    PollAnswer {
        gate: Some(gate),
        uptime: 1000 + gate,
        alterations: 7,
        holds_counts_back: false,
        identity: "one".to_owned(),
        is_read_only: false,
        definitions: BTreeMap::from([("blog".to_owned(), 1)]),
        tables: BTreeMap::from([(POST.into(), table)]),
    }
}

fn asked() -> Vec<Arc<str>> {
    vec![POST.into()]
}

/// Compares the second answer with the first.
fn compared(first: PollAnswer, second: PollAnswer) -> PollResult {
    let began = Instant::now();
    let mut tables = PolledTables::default();
    let _ = tables.want(&asked(), began);
    let at_first = tables.compare(first, &asked(), began);
    assert!(
        matches!(at_first, PollResult::Everything(_)),
        "{at_first:?}"
    );
    tables.compare(second, &asked(), began + Duration::from_secs(1))
}

fn written() -> PollResult {
    PollResult::Tables(asked())
}

fn nothing() -> PollResult {
    PollResult::Tables(Vec::new())
}

const OLD: Option<&str> = Some("2026-11-26 10:00:00");

#[test]
fn a_table_is_written_by_rule_2_of_the_design() {
    let recent = || TableState {
        is_recent: true,
        ..state(OLD)
    };
    let empty = || TableState {
        size: Some(b"0 16384 0".to_vec()),
        ..state(OLD)
    };
    let myisam = |table: TableState| TableState {
        engine: "MyISAM".to_owned(),
        ..table
    };
    let aria = |table: TableState| TableState {
        engine: "Aria".to_owned(),
        ..table
    };
    let memory = |table: TableState| TableState {
        engine: "MEMORY".to_owned(),
        ..table
    };
    for (name, before, now, expected) in [
        (
            "the same",
            answer(5, state(OLD)),
            answer(6, state(OLD)),
            nothing(),
        ),
        (
            "another time",
            answer(5, state(OLD)),
            answer(6, state(Some("2026-11-26 10:00:01"))),
            written(),
        ),
        (
            "an earlier time",
            answer(5, state(OLD)),
            answer(6, state(Some("2026-11-26 09:00:00"))),
            written(),
        ),
        (
            "another time, though no transaction began",
            answer(5, state(OLD)),
            answer(5, state(None)),
            written(),
        ),
        (
            "no time since the restart",
            answer(5, state(None)),
            answer(6, state(None)),
            written(),
        ),
        (
            "no time, and no transaction",
            answer(5, state(None)),
            answer(5, state(None)),
            nothing(),
        ),
        (
            "within a minute",
            answer(5, recent()),
            answer(6, recent()),
            written(),
        ),
        (
            "within a minute, and no transaction",
            answer(5, recent()),
            answer(5, recent()),
            nothing(),
        ),
        (
            "emptied by TRUNCATE",
            answer(5, state(OLD)),
            answer(6, empty()),
            written(),
        ),
        (
            "MyISAM has no transactions",
            answer(5, myisam(recent())),
            answer(5, myisam(recent())),
            written(),
        ),
        (
            "MyISAM, long ago",
            answer(5, myisam(state(OLD))),
            answer(5, myisam(state(OLD))),
            nothing(),
        ),
        (
            "rows in memory alone",
            answer(5, memory(state(None))),
            answer(5, memory(state(None))),
            written(),
        ),
        (
            "an engine that does not tell",
            answer(5, aria(state(OLD))),
            answer(5, aria(state(OLD))),
            written(),
        ),
    ] {
        assert_eq!(compared(before, now), expected, "{name}");
    }
    let silent = |gate| PollAnswer {
        gate: None,
        ..answer(gate, recent())
    };
    assert_eq!(
        compared(silent(5), silent(6)),
        written(),
        "a server without the number"
    );
}

#[test]
fn a_restart_a_gap_and_other_tables_concern_everything() {
    let before = || answer(5, state(OLD));
    let restarted = PollAnswer {
        uptime: 3,
        ..before()
    };
    let why = PollResult::Everything("the database was started again");
    assert_eq!(compared(before(), restarted), why);
    let other = PollAnswer {
        identity: "other".to_owned(),
        ..before()
    };
    let why = PollResult::Everything("another database server answers");
    assert_eq!(compared(before(), other), why);
    let read_only = PollAnswer {
        is_read_only: true,
        ..before()
    };
    let why = PollResult::Everything("read_only was set");
    assert_eq!(compared(before(), read_only), why);
    let altered = TableState {
        created: Some(b"2026-11-26 10:00:00".to_vec()),
        ..state(OLD)
    };
    assert_eq!(
        compared(before(), answer(6, altered)),
        PollResult::Definitions
    );
    let defined = |database: &str| PollAnswer {
        definitions: BTreeMap::from([(database.to_owned(), 2)]),
        ..before()
    };
    assert_eq!(compared(before(), defined("blog")), PollResult::Definitions);
    assert_eq!(compared(defined("shop"), before()), PollResult::Definitions);
    let mut tables = PolledTables::default();
    tables.compare(before(), &[], Instant::now());
    let first_asked = tables.compare(before(), &asked(), Instant::now());
    assert_eq!(first_asked, PollResult::Definitions);
    let elsewhere = PollAnswer {
        definitions: BTreeMap::from([("blog".to_owned(), 1), ("shop".to_owned(), 2)]),
        ..before()
    };
    assert_eq!(compared(before(), elsewhere), nothing(), "no page reads it");
    let dropped = PollAnswer {
        tables: BTreeMap::new(),
        ..before()
    };
    assert_eq!(compared(before(), dropped), PollResult::Definitions);

    let began = Instant::now();
    let mut tables = PolledTables::default();
    tables.compare(before(), &asked(), began);
    let later = began + Duration::from_secs(61);
    assert_eq!(tables.window(later), Duration::from_secs(121));
    let after_gap = tables.compare(before(), &asked(), later);
    assert_eq!(
        after_gap,
        PollResult::Everything("it was not asked for a minute")
    );
}

/// EXCHANGE PARTITION and RENAME TABLE put another table in the place of one, which may have the same times and size.
#[test]
fn each_table_counts_as_written_for_a_minute_after_a_table_was_altered() {
    let began = Instant::now();
    let altered = |alterations| PollAnswer {
        alterations,
        ..answer(5, state(OLD))
    };
    let mut tables = PolledTables::default();
    let mut look = |seconds, alterations| {
        let at = began + Duration::from_secs(seconds);
        tables.compare(altered(alterations), &asked(), at)
    };
    look(0, 7);
    assert_eq!(look(1, 7), nothing());
    // It may wait for others before it does its work.
    for second in [2, 3, 30, 62] {
        assert_eq!(look(second, 8), written(), "{second}");
    }
    assert_eq!(look(63, 8), nothing());
    // The count begins anew with the server, and in no other way.
    assert_eq!(look(64, 1), written());
}

/// A PostgreSQL says at once that something was committed, and later which tables were written.
#[test]
fn each_table_counts_as_written_if_counts_may_be_held_back_while_something_was_committed() {
    for (holds_counts_back, gate, expected) in [
        (true, 6, written()),
        (true, 5, nothing()),
        (false, 6, nothing()),
    ] {
        let first = answer(5, state_of_postgres("1 0 0"));
        let second = PollAnswer {
            holds_counts_back,
            ..answer(gate, state_of_postgres("1 0 0"))
        };
        assert_eq!(
            compared(first, second),
            expected,
            "{holds_counts_back} {gate}"
        );
    }
    let (first, second) = (state_of_postgres("1 0 0"), state_of_postgres("1 1 0"));
    assert_eq!(compared(answer(5, first), answer(5, second)), written());
}

fn state_of_postgres(counts: &str) -> TableState {
    TableState {
        engine: postgres::ENGINE.to_owned(),
        ..state(Some(counts))
    }
}

#[test]
fn a_page_is_kept_only_while_all_of_its_tables_are_seen() {
    let now = Instant::now();
    let mut tables = PolledTables::default();
    assert!(tables.want(&asked(), now).is_err(), "never asked");
    assert_eq!(tables.wanted(), asked());
    tables.compare(answer(5, state(OLD)), &asked(), now);
    assert_eq!(tables.want(&asked(), now), Ok(()));
    let other: Vec<Arc<str>> = vec!["blog.other".into()];
    let why = tables.want(&other, now).unwrap_err();
    assert_eq!(why.detail, "blog.other: it is asked for from now on");
    let both = tables.wanted();
    tables.compare(answer(5, state(OLD)), &both, now);
    let why = tables.want(&other, now).unwrap_err();
    assert_eq!(why.detail, "blog.other: it is not shown to the account");
    let aria = TableState {
        engine: "Aria".to_owned(),
        ..state(OLD)
    };
    tables.compare(answer(5, aria), &both, now);
    assert_eq!(
        tables.want(&asked(), now).unwrap_err().detail,
        "blog.post: Aria"
    );
    tables.compare(answer(5, state(OLD)), &both, now);
    tables.fail("Connection refused".to_owned());
    assert_eq!(tables.want(&asked(), now), Ok(()));
    let why = tables.want(&asked(), now + HOLDS).unwrap_err();
    assert_eq!(why.detail, "Connection refused");
    let odd: Vec<Arc<str>> = vec!["blog.o'dd".into()];
    assert_eq!(
        tables.want(&odd, now).unwrap_err().detail,
        "blog.o'dd: its name"
    );
    assert!(!tables.wanted().contains(&odd[0]), "it is in no question");
}

#[test]
fn tables_that_are_polled_are_bounded() {
    let now = Instant::now();
    let mut tables = PolledTables::default();
    for number in 0..=MAX_TABLES {
        let _ = tables.want(&[format!("blog.t{number}").into()], now);
    }
    assert_eq!(tables.wanted().len(), MAX_TABLES);
}

#[test]
fn answers_that_make_no_sense_are_none() {
    let text = |text: &str| Some(text.as_bytes().to_vec());
    let status = vec![
        vec![text("Innodb_max_trx_id"), text("77")],
        vec![text("Uptime"), text("5")],
        vec![text("Com_rename_table"), text("3")],
        vec![text("Com_alter_table"), text("9")],
    ];
    let row = vec![
        text("blog"),
        text("post"),
        text("InnoDB"),
        None,
        None,
        text("0 16384 0"),
        text("1"),
    ];
    let whole = |status: &Vec<TextRow>, row: TextRow, cluster: Vec<TextRow>| {
        vec![
            Vec::new(),
            status.clone(),
            cluster,
            Vec::new(),
            Vec::new(),
            Vec::new(),
            vec![row],
        ]
    };
    let polled = read(&whole(&status, row.clone(), Vec::new()))
        .unwrap()
        .unwrap();
    assert_eq!((polled.gate, polled.uptime), (Some(77), 5));
    assert_eq!(polled.alterations, 12);
    assert!(polled.tables[POST].is_recent);
    assert_eq!(polled.tables[POST].size.as_deref(), Some(&b"0 16384 0"[..]));
    let named = ["port 3306", "hostname db1", "server_uid QQ=="].map(|it| {
        let (name, value) = it.split_once(' ').unwrap();
        vec![text(name), text(value)]
    });
    let polled = read(&whole(&status, row.clone(), named.into()))
        .unwrap()
        .unwrap();
    assert_eq!(polled.identity, "QQ==  db1 3306 ");
    let cluster = vec![vec![text("wsrep_on"), text("ON")]];
    assert!(
        read(&whole(&status, row.clone(), cluster))
            .unwrap()
            .is_err()
    );
    assert!(
        read(&whole(&Vec::new(), row.clone(), Vec::new())).is_none(),
        "no uptime"
    );
    assert!(read(&whole(&status, row[..6].to_vec(), Vec::new())).is_none());
    assert!(read(&[Vec::new(), Vec::new()]).is_none());
}
