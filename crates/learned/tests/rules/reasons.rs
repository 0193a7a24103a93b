//! Statements that are learned, and those that say why not.

use learned::{Effect, NotLearned, Reading, Value, may_alter};

use crate::tables::{session, shapes};

#[test]
fn statements_are_learned_or_say_why_not() {
    let mut shapes = shapes();
    for (statement, reason) in [
        (
            "SELECT title FROM posts WHERE id = 1 ORDER BY id LIMIT 1, 2",
            None,
        ),
        (
            "SELECT SQL_CALC_FOUND_ROWS p.* FROM posts AS p WHERE 1=1 GROUP BY p.id",
            None,
        ),
        (
            "SELECT DISTINCT t.title, COUNT(*) AS n FROM posts t GROUP BY t.title HAVING n > 1",
            None,
        ),
        (
            "SELECT IF(author = 1, 'x', 'y'), CAST(title AS SIGNED) FROM posts",
            None,
        ),
        (
            "(SELECT id FROM posts) UNION ALL (SELECT post FROM meta) ORDER BY 1",
            None,
        ),
        (
            "SELECT TIMESTAMPDIFF(SECOND, FROM_UNIXTIME(5), written) FROM posts",
            None,
        ),
        ("SELECT LAST_INSERT_ID()", Some(NotLearned::Connection)),
        ("SELECT ROW_COUNT()", Some(NotLearned::Connection)),
        (
            "SELECT FOUND_ROWS(), id FROM posts",
            Some(NotLearned::Connection),
        ),
        (
            "SELECT title FROM posts WHERE written < NOW()",
            Some(NotLearned::Clock),
        ),
        (
            "SELECT title FROM posts WHERE written < CURRENT_TIMESTAMP",
            Some(NotLearned::Clock),
        ),
        (
            "SELECT title FROM posts ORDER BY RAND()",
            Some(NotLearned::Chance),
        ),
        ("SELECT GET_LOCK('a', 1)", Some(NotLearned::Lock)),
        (
            "SELECT title FROM posts WHERE id = 1 LOCK IN SHARE MODE",
            Some(NotLearned::Lock),
        ),
        ("SELECT title FROM posts FOR UPDATE", Some(NotLearned::Lock)),
        (
            "SELECT shop_total(id) FROM posts",
            Some(NotLearned::UnknownFunction),
        ),
        (
            "SELECT blog.count(id) FROM posts",
            Some(NotLearned::UnknownFunction),
        ),
        ("SELECT title FROM a_view", Some(NotLearned::UnknownTable)),
        ("SELECT @a := 1", Some(NotLearned::UserVariable)),
        ("SELECT @@global.sql_mode", Some(NotLearned::SystemVariable)),
        ("SELECT /* a */ /*! STRAIGHT_JOIN */ id FROM posts", None),
        (
            "SELECT id FROM posts /*! STRAIGHT_JOIN */ terms",
            Some(NotLearned::ExecutableComment),
        ),
        (
            "SELECT /*!1 1, */ @@sql_mode",
            Some(NotLearned::ExecutableComment),
        ),
        (
            "SELECT @@GLOBAL.read_only AS Value, a FROM t",
            Some(NotLearned::SystemVariable),
        ),
        ("SHOW VARIABLES", Some(NotLearned::SystemVariable)),
        (
            "SELECT /*! title */ FROM posts",
            Some(NotLearned::ExecutableComment),
        ),
        ("SELECT 1; SELECT 2", Some(NotLearned::SeveralStatements)),
        ("EXECUTE a", Some(NotLearned::Syntax)),
        ("WITH a AS (SELECT id FROM posts) SELECT * FROM a", None),
        (
            "SELECT x FROM JSON_TABLE(RAND(), '$[*]' COLUMNS (x INT PATH '$')) j",
            Some(NotLearned::Chance),
        ),
        (
            "WITH posts AS (SELECT 1) SELECT * FROM posts",
            Some(NotLearned::Syntax),
        ),
        ("SELECT id FROM recent", None),
        ("TABLE posts ORDER BY id LIMIT 3", None),
        ("TABLE posts UNION TABLE meta", Some(NotLearned::Syntax)),
        (
            "CREATE TEMPORARY TABLE t (id INT)",
            Some(NotLearned::TemporaryTable),
        ),
        ("SELECT id FROM unclear", Some(NotLearned::UnknownTable)),
        (
            "SELECT * FROM information_schema.tables",
            Some(NotLearned::UnknownTable),
        ),
        ("SHOW INDEX FROM posts", Some(NotLearned::SystemVariable)),
        ("DO GET_LOCK('a', 1)", Some(NotLearned::Syntax)),
        ("CALL anything()", Some(NotLearned::Syntax)),
        ("SELECT SLEEP(1)", Some(NotLearned::Connection)),
        ("SELECT UUID()", Some(NotLearned::Chance)),
        (
            "SELECT UNIX_TIMESTAMP(), id FROM posts",
            Some(NotLearned::Clock),
        ),
        (
            "SELECT title FROM posts WHERE @a = 1",
            Some(NotLearned::UserVariable),
        ),
        // What the server reads otherwise than the parser does.
        (
            "SELECT id FROM posts WHERE author = 1 || views = 2 AND id = 3",
            Some(NotLearned::Syntax),
        ),
        (
            "SELECT id FROM posts WHERE author = 1 && views = 2",
            Some(NotLearned::Syntax),
        ),
        (
            "SELECT id FROM posts WHERE author = 1 XOR views = 2 AND id = 3",
            Some(NotLearned::Syntax),
        ),
        (
            "SELECT a.id FROM posts a LEFT JOIN meta b JOIN meta c ON a.author = 5",
            Some(NotLearned::Syntax),
        ),
        (
            "SELECT COUNT (id) FROM posts",
            Some(NotLearned::UnknownFunction),
        ),
        (
            "SELECT COUNT/**/(id) FROM posts",
            Some(NotLearned::UnknownFunction),
        ),
        (
            "SELECT `count`(id) FROM posts",
            Some(NotLearned::UnknownFunction),
        ),
        (
            "SELECT id FROM posts WHERE title = /*!'a' OR */ 'b'",
            Some(NotLearned::ExecutableComment),
        ),
        (
            "SELECT id FROM posts WHERE title = /*M!'a' OR */ 'b'",
            Some(NotLearned::ExecutableComment),
        ),
        (
            "SELECT id FROM posts WHERE title = _binary'A'",
            Some(NotLearned::Syntax),
        ),
        (
            "SELECT id FROM posts WHERE title = _binary 'A'",
            Some(NotLearned::Syntax),
        ),
        (
            "SELECT id FROM posts WHERE title = N'A'",
            Some(NotLearned::Syntax),
        ),
        (
            "SELECT id FROM posts WHERE title = x'41'",
            Some(NotLearned::Syntax),
        ),
        (
            "SELECT id FROM posts WHERE title = 0x41",
            Some(NotLearned::Syntax),
        ),
        (
            "SELECT id FROM posts WHERE title = 'a' 'b'",
            Some(NotLearned::Syntax),
        ),
    ] {
        let understood = shapes.understand(statement.as_bytes(), &[], &session());
        let found = match understood.reading {
            Reading::Tables(_) => None,
            Reading::NotLearned(reason) => Some(reason),
            other => panic!("{statement}: {other:?}"),
        };
        assert_eq!(found, reason, "{statement}");
    }
    for statement in [
        "SET NAMES utf8mb4",
        "SELECT @@SESSION.sql_mode",
        "SELECT /* DatabaseMysqlBase::serverIsReadOnly */ @@GLOBAL.read_only AS Value",
        "SHOW FULL COLUMNS FROM `posts`",
        "BEGIN",
    ] {
        let understood = shapes.understand(statement.as_bytes(), &[], &session());
        assert!(
            matches!(understood.reading, Reading::Nothing),
            "{statement}"
        );
        assert_eq!(understood.effect, Effect::Nothing, "{statement}");
    }
}

/// PHP has a clock of its own, which says the same.
#[test]
fn statement_that_returns_the_present_time_alone_reads_nothing() {
    let mut shapes = shapes();
    for (statement, reads_nothing) in [
        (
            "SELECT 'db_time' AS `title`, UNIX_TIMESTAMP(NOW()) AS `content`",
            true,
        ),
        ("SELECT CURDATE()", true),
        ("SELECT NOW(), RAND()", false),
        ("SELECT NOW(), (SELECT COUNT(*) FROM posts)", false),
        ("SELECT id, NOW() FROM posts", false),
        ("SELECT blog.now()", false),
        ("SELECT `now`()", false),
        ("SELECT NOW() INTO OUTFILE '/tmp/now'", false),
        ("SELECT NOW() UNION SELECT shop_total()", false),
    ] {
        let meaning = shapes.understand(statement.as_bytes(), &[], &session());
        let is_nothing = matches!(meaning.reading, Reading::Nothing);
        assert_eq!(is_nothing, reads_nothing, "{statement}");
    }
}

#[test]
fn statement_that_returns_variables_alone_or_sets_plain_modes_writes_nothing() {
    let mut shapes = shapes();
    for (statement, writes) in [
        ("SELECT /* f::g  */ @@server_id AS id", false),
        ("select @@GLOBAL.wait_timeout, @@hostname;", false),
        (
            "SET sql_mode=(SELECT REPLACE(@@sql_mode,'ONLY_FULL_GROUP_BY',''))",
            false,
        ),
        ("SET sql_mode=(SELECT shop_total())", true),
        ("SET sql_mode=(SELECTREPLACE(@@sql_mode,'',''))", true),
        ("SELECT 1 `/*`; DELETE FROM posts; SELECT @@a `*/`", true),
        ("SELECT 1 `/*`, shop_total(), @@a `*/`", true),
        ("SELECT @@server_id/**/FROM shop", true),
        ("SELECT @@server_id UNION TABLE shop", true),
        ("SELECT @@server_id INTO OUTFILE x", true),
        ("SELECT shop_total(@@server_id)", true),
        ("SELECT @@server_id FROM shop", true),
        ("SELECT NEXT VALUE FOR numbers, @@server_id", true),
        ("SELECT @@server_id; DROP TABLE posts", true),
        ("SELECT @@server_id /*! , shop_total() */", true),
        ("SELECT @@server_id -- x", true),
    ] {
        let meaning = shapes.understand(statement.as_bytes(), &[], &session());
        assert_eq!(meaning.effect == Effect::Everything, writes, "{statement}");
    }
}

#[test]
fn session_mode_that_changes_how_text_is_read_is_not_learned() {
    let mut shapes = shapes();
    for set in [
        "SET NAMES gbk",
        "SET NAMES sjis",
        "SET sql_mode = 'HIGH_NOT_PRECEDENCE'",
        "/*!40101 SET NAMES gbk */",
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
    ] {
        let mut session = session();
        session.follow(set.as_bytes());
        let understood = shapes.understand(b"SELECT title FROM posts", &[], &session);
        assert!(
            matches!(
                understood.reading,
                Reading::NotLearned(NotLearned::SessionMode)
            ),
            "{set}"
        );
        assert_eq!(understood.effect, Effect::Everything, "{set}");
    }
}

#[test]
fn statements_are_read_in_the_quoting_of_their_session() {
    let mut shapes = shapes();
    let mut ansi = session();
    ansi.follow(b"SET sql_mode = 'ANSI,TRADITIONAL'");
    let read = r#"SELECT "title" FROM "posts" WHERE "author" = 1"#;
    let read = shapes.understand(read.as_bytes(), &[], &ansi).reading;
    let Reading::Tables(read) = read else {
        panic!("{read:?}");
    };
    for (change, matters) in [
        (r#"DELETE FROM "posts" WHERE "author" = 1"#, true),
        // As a text it would be 0, whatever the row has.
        (r#"DELETE FROM "posts" WHERE "author" = 2"#, false),
        (r#"DELETE FROM "meta""#, false),
        (r#"DELETE FROM "my""posts""#, true),
    ] {
        let change_effect = shapes.understand(change.as_bytes(), &[], &ansi).effect;
        assert_eq!(may_alter(&read, &change_effect), matters, "{change}");
    }
}

#[test]
fn texts_are_bytes_in_sessions_without_characters() {
    let mut shapes = shapes();
    let mut bytes = session();
    bytes.follow(b"SET NAMES binary");
    for (read, change, matters) in [
        // By a collation the row may be another than by its bytes.
        (
            "SELECT id FROM posts WHERE title <> 'a'",
            "DELETE FROM posts WHERE title = 'a'",
            true,
        ),
        (
            "SELECT id FROM posts WHERE title = 'a'",
            "DELETE FROM posts WHERE title = 'b'",
            true,
        ),
        (
            "SELECT id FROM posts WHERE picture = 'a'",
            "DELETE FROM posts WHERE picture = 'b'",
            false,
        ),
        (
            "SELECT id FROM posts WHERE picture = 'a'",
            "DELETE FROM posts WHERE picture = '\u{e4}'",
            true,
        ),
        (
            "SELECT id FROM posts WHERE id = 5",
            "DELETE FROM posts WHERE id = '6'",
            false,
        ),
    ] {
        for (reader, writer) in [(&bytes, &session()), (&session(), &bytes), (&bytes, &bytes)] {
            let understood = shapes.understand(read.as_bytes(), &[], reader);
            let Reading::Tables(reading) = understood.reading else {
                panic!("{read} is not learned");
            };
            let effect = shapes.understand(change.as_bytes(), &[], writer).effect;
            assert_eq!(may_alter(&reading, &effect), matters, "{read}; {change}");
        }
    }
    let statement = b"DELETE FROM meta WHERE name = '\xff\xe9'";
    let effect = shapes.understand(statement, &[], &bytes).effect;
    assert!(
        matches!(effect, Effect::Tables(_)),
        "bytes that are no characters"
    );
}

#[test]
fn parameters_of_prepared_statements_are_values() {
    let mut shapes = shapes();
    let mut understand =
        |text: &str, value: Value| shapes.understand(text.as_bytes(), &[value], &session());
    let Reading::Tables(read) =
        understand("SELECT title FROM posts WHERE id = ?", Value::Integer(5)).reading
    else {
        panic!("it is not learned");
    };
    let mut matters = |value: Value| {
        may_alter(
            &read,
            &understand("DELETE FROM posts WHERE id = ?", value).effect,
        )
    };
    assert!(
        matters(Value::Integer(5)) && matters(Value::Other) && matters(Value::Text(b"5".to_vec()))
    );
    assert!(!matters(Value::Integer(6)));
    assert_eq!(shapes.count(), 2);
}

proptest::proptest! {
    #[test]
    fn any_text_is_understood_or_not_without_a_panic(
        text in "(SELECT|UPDATE|INSERT INTO|DELETE FROM|SET|\\(|)[ -~\u{e4}]{0,60}",
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40),
    ) {
        let mut shapes = shapes();
        shapes.understand(text.as_bytes(), &[Value::Null], &session());
        shapes.understand(&bytes, &[], &session());
        session().follow(text.as_bytes());
        learned::fuzz_statements(text.as_bytes());
        learned::fuzz_statements(&bytes);
    }
}
