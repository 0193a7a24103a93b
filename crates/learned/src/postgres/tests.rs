//! Statements as applications send them, over a schema of a few tables.

use super::*;
use crate::schema::Relation;

fn schema() -> Schema {
    use PostgresQuery as Q;
    let mut builder = PostgresSchemaBuilder::default();
    for (query, fields) in [
        (Q::Relations, &["1", "public", "post", "r", "f"][..]),
        (Q::Relations, &["2", "public", "comment", "r", "f"]),
        (Q::Relations, &["3", "public", "log", "p", "f"]),
        (Q::Relations, &["4", "public", "log_2026", "r", "f"]),
        (Q::Relations, &["5", "public", "secret", "r", "t"]),
        (Q::Relations, &["6", "public", "counted", "r", "f"]),
        (Q::Relations, &["7", "one", "twin", "r", "f"]),
        (Q::Relations, &["8", "two", "twin", "r", "f"]),
        (Q::Relations, &["9", "public", "Post", "r", "f"]),
        (Q::Relations, &["10", "public", "latest", "v", "f"]),
        (Q::Relations, &["11", "public", "latest_of", "v", "f"]),
        (Q::Relations, &["12", "public", "timely", "v", "f"]),
        (Q::Relations, &["13", "public", "post_id_seq", "S", "f"]),
        (Q::Relations, &["15", "public", "hooked", "v", "f"]),
        (Q::Calls, &["15"]),
        (Q::Views, &["15", " SELECT post.id FROM public.post;"]),
        (Q::Relations, &["14", "pg_temp_3", "post", "r", "f"]),
        (Q::Inheritance, &["3", "4"]),
        (Q::Cascades, &["1", "2"]),
        (Q::Calls, &["6"]),
        (
            Q::Views,
            &[
                "10",
                " SELECT post.id\n   FROM public.post\n  WHERE (post.id > 3);",
            ],
        ),
        (
            Q::Views,
            &[
                "11",
                " SELECT l.id FROM public.latest l LEFT JOIN public.comment ON true;",
            ],
        ),
        (Q::Views, &["12", " SELECT now() AS now;"]),
        (Q::Functions, &["unaccent", "reads"]),
        (Q::Functions, &["distance", "pure"]),
        (Q::Functions, &["hook", "anything"]),
        (Q::Functions, &["lower", "anything"]),
    ] {
        assert!(builder.row(query, fields), "{fields:?}");
    }
    builder.finish().unwrap()
}

/// What a statement reads, or why nothing is learned of it, and what it writes.
fn meaning(text: &str) -> (String, String) {
    let schema = schema();
    let meaning = PostgresShapes::default().understand(text, &[], &schema);
    let names = |numbers: Vec<TableNumber>| {
        let mut names: Vec<_> = numbers
            .iter()
            .map(|it| schema.table(*it).unwrap().name.1.clone())
            .collect();
        names.sort_unstable();
        names.join(" ")
    };
    let reads = match &meaning.reading {
        Reading::Nothing => String::new(),
        Reading::Tables(reading) => names(reading.tables().collect()),
        Reading::OfStatementBefore => "before".to_owned(),
        Reading::OfWrite => "own write".to_owned(),
        Reading::NotLearned(reason) => reason.word().to_owned(),
    };
    let writes = match meaning.effect {
        Effect::Nothing => String::new(),
        Effect::Everything => "everything".to_owned(),
        Effect::Tables(changes) => names(changes.iter().map(|it| it.table).collect()),
    };
    (reads, writes)
}

#[test]
fn queries_read_the_tables_that_they_name() {
    for (text, reads) in [
        ("SELECT * FROM post WHERE id = $1", "post"),
        ("select p.title::text from public.POST as p", "post"),
        ("SELECT a FROM \"Post\"", "Post"),
        (
            "SELECT 1 FROM post p JOIN comment c ON c.post = p.id AND p.a ILIKE '%x%'",
            "comment post",
        ),
        (
            "SELECT (SELECT count(*) FROM comment) FROM post ORDER BY a DESC NULLS LAST LIMIT 5 OFFSET 2",
            "comment post",
        ),
        (
            "SELECT 1 FROM post WHERE id IN (SELECT id FROM comment UNION ALL SELECT 2)",
            "comment post",
        ),
        (
            "WITH c AS (SELECT * FROM comment) SELECT * FROM c, post",
            "comment post",
        ),
        ("WITH post AS (SELECT 1) SELECT * FROM post", "post"),
        ("SELECT * FROM log", "log log_2026"),
        ("SELECT * FROM latest", "post"),
        ("SELECT * FROM latest_of", "comment post"),
        ("SELECT * FROM one.twin", "twin"),
        (
            "SELECT DISTINCT ON (a) a, b ->> 'c', d @> '[1]' FROM post WHERE e ~* 'f'",
            "post",
        ),
        (
            "SELECT array_agg(a ORDER BY b) FILTER (WHERE c) OVER (PARTITION BY d) FROM post",
            "post",
        ),
        (
            "SELECT 1 FROM post CROSS JOIN LATERAL unnest(tags) AS t",
            "post",
        ),
        ("SELECT i FROM generate_series(1, 3) i, post", "post"),
        ("SELECT distance(a, b) FROM post", "post"),
        ("SELECT E'a\\'b' FROM post -- x, comment", "post"),
        ("SELECT E'a\\'b' /* a /* b */ c */ FROM post", "post"),
        ("SELECT 'a\\' FROM post", "post"),
        ("COPY post TO STDOUT", "post"),
        ("COPY (SELECT * FROM comment) TO STDOUT", "comment"),
        ("SELECT 1", ""),
        ("SELECT c.relname FROM pg_class c WHERE c.relname = 'a'", ""),
        ("SELECT column_name FROM information_schema.columns", ""),
        ("BEGIN", ""),
        ("SET search_path TO blog", ""),
        ("SHOW server_version", ""),
        ("", ""),
    ] {
        assert_eq!(meaning(text), (reads.to_owned(), String::new()), "{text}");
    }
}

#[test]
fn queries_that_depend_on_more_are_not_learned_and_write_nothing() {
    for (text, reason) in [
        ("SELECT * FROM post WHERE a < now()", "clock"),
        ("SELECT * FROM post WHERE a < CURRENT_DATE", "clock"),
        ("SELECT * FROM post WHERE a < 'yesterday'", "clock"),
        ("SELECT * FROM post WHERE a < 'now'::timestamptz", "clock"),
        ("SELECT age(a) FROM post", "clock"),
        ("SELECT * FROM post ORDER BY random()", "chance"),
        ("SELECT nextval('post_id_seq')", "connection"),
        ("SELECT pg_try_advisory_lock(1)", "lock"),
        ("SELECT * FROM post FOR UPDATE", "lock"),
        ("SELECT unaccent(a) FROM post", "system-variable"),
        ("SELECT current_setting('a.b')", "system-variable"),
        ("SELECT reltuples FROM pg_class", "system-variable"),
        ("SELECT * FROM pg_class", "system-variable"),
        ("SELECT * FROM pg_stat_activity", "system-variable"),
        ("SHOW timezone", "system-variable"),
    ] {
        assert_eq!(meaning(text), (reason.to_owned(), String::new()), "{text}");
    }
}

#[test]
fn what_is_not_understood_may_write_everything() {
    for text in [
        "SELECT hook(1)",
        "SELECT lower(a) FROM post",
        "SELECT p.hook FROM post p",
        "SELECT * FROM hook(1)",
        "SELECT * FROM twin",
        "SELECT * FROM secret",
        "SELECT * FROM timely",
        "SELECT * FROM unknown",
        "SELECT last_value FROM post_id_seq",
        "SELECT * FROM post TABLESAMPLE SYSTEM (10)",
        "SELECT 1 INTO copy FROM post",
        "SELECT set_config('a', 'b', false)",
        "SELECT $$a$$ FROM post",
        "SELECT U&'\\0061' FROM post",
        "TABLE post",
        "SELECT 1 FROM \"a\"\" b\"",
        "WITH gone AS (DELETE FROM post RETURNING *) SELECT * FROM gone",
        "DO 'BEGIN END'",
        "CALL hook()",
        "EXECUTE a",
        "ALTER TABLE post ADD a INT",
        "CREATE TEMP TABLE a (b INT)",
        "TRUNCATE post CASCADE",
        "COPY post FROM '/tmp/file'",
        "COPY post TO PROGRAM 'sh'",
        "COMMIT PREPARED 'a'",
        "MERGE INTO post USING comment ON true WHEN MATCHED THEN DELETE",
        "INSERT INTO post VALUES (hook(1))",
        "INSERT INTO secret VALUES (1)",
        "INSERT INTO hooked VALUES (1)",
        "INSERT INTO counted VALUES (1)",
        "nonsense",
    ] {
        assert_eq!(meaning(text).1, "everything", "{text}");
    }
}

#[test]
fn writes_concern_their_tables_and_those_that_are_written_along() {
    for (text, writes) in [
        (
            "INSERT INTO comment (a) VALUES (1), (now()) RETURNING id",
            "comment",
        ),
        (
            "INSERT INTO comment VALUES (nextval('x')) ON CONFLICT (a) DO UPDATE SET b = EXCLUDED.b",
            "comment",
        ),
        ("UPDATE post SET a = a + 1 WHERE id = 1", "comment post"),
        ("DELETE FROM ONLY post", "comment post"),
        (
            "COPY comment FROM STDIN; DELETE FROM log",
            "comment log log_2026",
        ),
        ("DELETE FROM post WHERE id = 1", "comment post"),
        ("UPDATE log SET a = 1", "log log_2026"),
        ("INSERT INTO latest VALUES (1)", "comment post"),
        ("TRUNCATE TABLE comment RESTART IDENTITY", "comment"),
        ("COPY comment (a) FROM STDIN WITH (FORMAT csv)", "comment"),
        (
            "BEGIN; UPDATE log SET a = 1; DELETE FROM comment; COMMIT",
            "comment log log_2026",
        ),
    ] {
        assert_eq!(meaning(text).1, writes, "{text}");
        assert_eq!(meaning(text).0, "own write", "{text}");
    }
}

#[test]
fn texts_that_differ_in_their_values_are_understood_once() {
    let schema = schema();
    let mut shapes = PostgresShapes::default();
    for number in 0..100 {
        let text = format!("SELECT a FROM post WHERE id = {number} AND b = '{number}'");
        shapes.understand(&text, &[], &schema);
    }
    assert_eq!(shapes.meanings.len(), 1);
    let (parameter, text) = (
        [Value::Text(b" Now ".to_vec())],
        "SELECT a FROM post WHERE b < $1",
    );
    assert!(matches!(
        shapes.understand(text, &[], &schema).reading,
        Reading::Tables(_)
    ));
    let reading = shapes.understand(text, &parameter, &schema).reading;
    assert!(matches!(reading, Reading::NotLearned(NotLearned::Clock)));
}

#[test]
fn chains_and_nestings_end_within_bounds() {
    for text in [
        format!("SELECT 1{}", " + 1".repeat(100_000)),
        format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("SELECT 1 FROM post{}", " JOIN post ON true".repeat(1_000)),
        format!("SELECT 1{}", " UNION SELECT 1".repeat(10_000)),
    ] {
        assert_eq!(meaning(&text).1, "everything");
    }
}

#[test]
fn sessions_are_doubted_after_temporary_tables_and_what_may_set_anything() {
    for (text, doubt) in [
        ("SET search_path = a", None),
        ("SELECT nextval('a')", None),
        ("SELECT currval(pg_get_serial_sequence('a', 'b'))", None),
        ("DECLARE c CURSOR FOR SELECT 1", None),
        ("CREATE TABLE a (b INT)", None),
        (
            "CREATE TEMP TABLE a (b INT)",
            Some(NotLearned::TemporaryTable),
        ),
        (
            "SELECT * INTO TEMPORARY a FROM b",
            Some(NotLearned::TemporaryTable),
        ),
        (
            "SELECT * INTO pg_temp.a FROM b",
            Some(NotLearned::TemporaryTable),
        ),
        ("SELECT hook()", Some(NotLearned::SessionMode)),
        ("DO $$ BEGIN END $$", Some(NotLearned::SessionMode)),
        ("CALL p()", Some(NotLearned::SessionMode)),
        (
            "SET a = 1; CREATE TEMP TABLE a ()",
            Some(NotLearned::SessionMode),
        ),
        ("/* SET */ DO 'x'", Some(NotLearned::SessionMode)),
    ] {
        assert_eq!(change_of_session(text), doubt, "{text}");
    }
}

#[test]
fn names_of_two_schemas_are_known_with_their_schema_alone() {
    let schema = schema();
    let facts = schema.postgres.as_ref().unwrap();
    assert_eq!(facts.schema_of("post"), Some("public"));
    assert_eq!(facts.schema_of("twin"), None);
    let found = schema.relation(&("two".to_owned(), "twin".to_owned()));
    assert!(matches!(found, Some(Relation::Base(_))));
}
