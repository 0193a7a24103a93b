//! Statements and changes, and whether the one can alter the result of the other.

use std::sync::Arc;

use learned::{
    Column, ColumnDescription, Effect, NotLearned, Reading, Schema, Session, Shapes, Table, Value,
    may_alter,
};

fn column(name: &str, data_type: &str, extra: &str) -> Column {
    let collation = if data_type == "varchar" {
        "utf8mb4_unicode_ci"
    } else {
        ""
    };
    let description = ColumnDescription {
        name,
        data_type,
        column_type: data_type,
        most_characters: 100,
        collation,
        is_nullable: true,
        extra,
    };
    Column::described(&description, name == "id")
}

fn schema() -> Schema {
    let mut schema = Schema::default();
    let posts = vec![
        column("id", "int", "auto_increment"),
        column("title", "varchar", ""),
        column("status", "varchar", ""),
        column("author", "int", ""),
        column("views", "int", ""),
        column("written", "datetime", ""),
        column("touched", "timestamp", "on update current_timestamp()"),
    ];
    schema.insert(
        "blog",
        "posts",
        Table {
            columns: posts,
            has_effects_elsewhere: false,
        },
    );
    let meta = vec![
        column("post", "int", ""),
        column("name", "varchar", ""),
        column("value", "varchar", ""),
    ];
    schema.insert(
        "blog",
        "meta",
        Table {
            columns: meta.clone(),
            has_effects_elsewhere: false,
        },
    );
    schema.insert(
        "blog",
        "watched",
        Table {
            columns: meta,
            has_effects_elsewhere: true,
        },
    );
    schema
}

fn session() -> Session {
    Session::new(Some("blog".to_owned()), 45)
}

fn shapes() -> Shapes {
    Shapes::new(Arc::new(schema()))
}

#[test]
fn changes_matter_unless_a_condition_rules_them_out() {
    let mut shapes = shapes();
    let session = session();
    for (read, change, matters) in [
        // By a value.
        (
            "SELECT title FROM posts WHERE id = 5",
            "UPDATE posts SET title = 'x' WHERE id = 5",
            true,
        ),
        (
            "SELECT title FROM posts WHERE id = 5",
            "UPDATE posts SET title = 'x' WHERE id = 6",
            false,
        ),
        (
            "SELECT title FROM posts WHERE id = '5'",
            "UPDATE posts SET title = 'x' WHERE 6 = id",
            false,
        ),
        (
            "SELECT title FROM posts WHERE id = 5",
            "UPDATE posts SET title = 'x'",
            true,
        ),
        (
            "SELECT title FROM posts WHERE id IN (1, 2)",
            "DELETE FROM posts WHERE id IN (3, 4)",
            false,
        ),
        (
            "SELECT title FROM posts WHERE id IN (1, 2)",
            "DELETE FROM posts WHERE id IN (2, 3)",
            true,
        ),
        (
            "SELECT title FROM posts WHERE NOT id = 5",
            "DELETE FROM posts WHERE id = 5",
            false,
        ),
        (
            "SELECT title FROM posts WHERE id BETWEEN 1 AND 9",
            "DELETE FROM posts WHERE id = 10",
            false,
        ),
        (
            "SELECT title FROM posts WHERE id > 9 OR author = 1",
            "DELETE FROM posts WHERE id = 10",
            true,
        ),
        (
            "SELECT title FROM posts WHERE id > 10 OR author = 1",
            "DELETE FROM posts WHERE id = 10 AND author = 2",
            false,
        ),
        // Into the result, and out of it.
        (
            "SELECT id FROM posts WHERE status = 'publish'",
            "UPDATE posts SET status = 'publish' WHERE id = 1",
            true,
        ),
        (
            "SELECT id FROM posts WHERE status = 'draft'",
            "UPDATE posts SET status = 'publish' WHERE id = 1",
            true,
        ),
        (
            "SELECT id FROM posts WHERE status = 'draft'",
            "UPDATE posts SET status = 'publish' WHERE status = 'trash'",
            false,
        ),
        (
            "SELECT id FROM posts WHERE status = 'draft'",
            "INSERT INTO posts (status) VALUES ('publish')",
            false,
        ),
        (
            "SELECT id FROM posts WHERE status = 'draft'",
            "INSERT INTO posts SET status = 'publish'",
            false,
        ),
        (
            "SELECT id FROM posts WHERE status = 'draft'",
            "INSERT INTO posts (title) VALUES ('x')",
            true,
        ),
        (
            "SELECT id FROM posts WHERE status = 'draft'",
            "REPLACE INTO posts (id, status) VALUES (1, 'publish')",
            true,
        ),
        (
            "SELECT id FROM posts WHERE status = 'draft'",
            "INSERT INTO posts (status) VALUES ('a') ON DUPLICATE KEY UPDATE status = 'b'",
            true,
        ),
        (
            "SELECT id FROM posts WHERE id = 0",
            "INSERT INTO posts (id) VALUES (0)",
            true,
        ),
        (
            "SELECT id FROM posts WHERE written < '2024-01-01 00:00:00'",
            "INSERT INTO posts (written) VALUES ('2024-02-01 00:00:00')",
            false,
        ),
        // By the columns.
        (
            "SELECT title FROM posts",
            "UPDATE posts SET views = 1",
            false,
        ),
        (
            "SELECT COUNT(*) FROM posts WHERE status = 'a'",
            "UPDATE posts SET views = 1",
            false,
        ),
        (
            "SELECT title FROM posts ORDER BY views",
            "UPDATE posts SET views = 1",
            true,
        ),
        ("SELECT * FROM posts", "UPDATE posts SET views = 1", true),
        (
            "SELECT title FROM posts",
            "UPDATE posts SET id = 9 WHERE id = 1",
            true,
        ),
        (
            "SELECT touched FROM posts",
            "UPDATE posts SET views = 1",
            true,
        ),
        // Text.
        (
            "SELECT id FROM posts WHERE title = 'a'",
            "DELETE FROM posts WHERE title = 'A '",
            true,
        ),
        (
            "SELECT id FROM posts WHERE title = 'a'",
            "DELETE FROM posts WHERE title = 'b'",
            false,
        ),
        (
            "SELECT id FROM posts WHERE title = 'a'",
            "DELETE FROM posts WHERE title = '\u{e4}'",
            true,
        ),
        (
            "SELECT id FROM posts WHERE title = 'a'",
            "DELETE FROM posts WHERE title = 0",
            true,
        ),
        (
            "SELECT id FROM posts WHERE title LIKE 'a%'",
            "INSERT INTO posts (title) VALUES ('bc')",
            false,
        ),
        (
            "SELECT id FROM posts WHERE title < 'a'",
            "INSERT INTO posts (title) VALUES ('bc')",
            true,
        ),
        (
            "SELECT id FROM posts WHERE title <> 'a'",
            "INSERT INTO posts (title) VALUES ('a')",
            false,
        ),
        (
            "SELECT id FROM posts WHERE title IS NULL",
            "INSERT INTO posts (title) VALUES ('a')",
            false,
        ),
        (
            "SELECT id FROM posts WHERE title = NULL",
            "INSERT INTO posts (title) VALUES ('a')",
            false,
        ),
        // Joins.
        (
            "SELECT p.title FROM posts p JOIN meta m ON m.post = p.id WHERE m.name = 'a'",
            "DELETE FROM meta WHERE name = 'b'",
            false,
        ),
        (
            "SELECT p.title FROM posts p, meta m WHERE m.post = p.id AND name = 'a'",
            "DELETE FROM meta WHERE name = 'b'",
            false,
        ),
        (
            "SELECT p.title FROM posts p LEFT JOIN meta m ON m.post = p.id AND m.name = 'a'",
            "DELETE FROM meta WHERE name = 'b'",
            false,
        ),
        (
            "SELECT p.title FROM posts p LEFT JOIN meta m ON m.post = p.id AND p.author = 1",
            "DELETE FROM posts WHERE author = 2",
            true,
        ),
        (
            "SELECT p.title FROM posts p LEFT JOIN meta m ON m.post = p.id WHERE m.name IS NULL",
            "INSERT INTO meta (post, name) VALUES (1, 'b')",
            true,
        ),
        (
            "SELECT p.title FROM posts p LEFT JOIN meta m ON m.post = p.id WHERE m.name = 'a'",
            "INSERT INTO meta (post, name) VALUES (1, 'b')",
            false,
        ),
        (
            "SELECT p.title FROM posts p RIGHT JOIN meta m ON m.post = p.id WHERE p.id = 1",
            "DELETE FROM posts WHERE id = 2",
            true,
        ),
        (
            "SELECT title FROM posts WHERE id IN (SELECT post FROM meta WHERE name = 'a')",
            "DELETE FROM meta WHERE name = 'b'",
            false,
        ),
        (
            "SELECT title FROM posts WHERE id IN (SELECT post FROM meta WHERE name = 'a')",
            "DELETE FROM meta WHERE name = 'a'",
            true,
        ),
        (
            "SELECT id FROM posts UNION SELECT post FROM meta WHERE name = 'a'",
            "DELETE FROM meta WHERE name = 'a'",
            true,
        ),
        (
            "SELECT t.id FROM (SELECT id FROM posts WHERE author = 1) t",
            "DELETE FROM posts WHERE author = 2",
            false,
        ),
        // Other tables, everything, nothing.
        ("SELECT title FROM posts", "DELETE FROM meta", false),
        ("SELECT title FROM posts", "TRUNCATE TABLE posts", true),
        (
            "SELECT title FROM posts WHERE id = 1",
            "INSERT INTO posts (id) SELECT post FROM meta",
            true,
        ),
        (
            "SELECT title FROM posts",
            "UPDATE meta, posts SET meta.name = 'a'",
            true,
        ),
        (
            "SELECT title FROM posts",
            "INSERT INTO watched (name) VALUES ('a')",
            true,
        ),
        (
            "SELECT title FROM posts",
            "UPDATE meta SET name = shop_total(1)",
            true,
        ),
        (
            "SELECT title FROM posts",
            "UPDATE meta SET name = NOW()",
            false,
        ),
        (
            "SELECT title FROM posts",
            "ALTER TABLE meta ADD x INT",
            true,
        ),
        ("SELECT title FROM posts", "CALL anything()", true),
        ("SELECT title FROM posts", "SELECT shop_total(1)", true),
        (
            "SELECT title FROM posts",
            "SELECT NOW(), FOUND_ROWS()",
            false,
        ),
        (
            "SELECT title FROM posts",
            "SELECT title FROM posts FOR UPDATE",
            false,
        ),
        (
            "SELECT title FROM posts",
            "SELECT title FROM posts INTO OUTFILE '/tmp/x'",
            true,
        ),
        ("SELECT title FROM posts", "SET @a = 1", false),
        ("SELECT title FROM posts", "SET @a = shop_total(1)", true),
        ("SELECT title FROM posts", "COMMIT", false),
    ] {
        let Reading::Tables(reading) = shapes.understand(read.as_bytes(), &[], &session).reading
        else {
            panic!("{read} is not learned");
        };
        let effect = shapes.understand(change.as_bytes(), &[], &session).effect;
        assert_eq!(
            may_alter(&reading, &effect, &schema()),
            matters,
            "{read}; {change}: {effect:?}"
        );
    }
}

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
        ("SELECT FOUND_ROWS()", Some(NotLearned::Connection)),
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
            "SELECT title FROM posts LOCK IN SHARE MODE",
            Some(NotLearned::Syntax),
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
        ("SHOW VARIABLES", Some(NotLearned::SystemVariable)),
        (
            "SELECT /*! title */ FROM posts",
            Some(NotLearned::ExecutableComment),
        ),
        ("SELECT 1; SELECT 2", Some(NotLearned::SeveralStatements)),
        ("EXECUTE a", Some(NotLearned::Syntax)),
        (
            "WITH a AS (SELECT 1) SELECT * FROM a",
            Some(NotLearned::Syntax),
        ),
    ] {
        let understood = shapes.understand(statement.as_bytes(), &[], &session());
        let found = match understood.reading {
            Reading::Tables(_) => None,
            Reading::NotLearned(reason) => Some(reason),
            Reading::Nothing => panic!("{statement} reads nothing"),
        };
        assert_eq!(found, reason, "{statement}");
    }
    for statement in [
        "SET NAMES utf8mb4",
        "SELECT @@SESSION.sql_mode",
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

#[test]
fn session_mode_that_changes_how_text_is_read_is_not_learned() {
    let mut shapes = shapes();
    for set in [
        "SET NAMES gbk",
        "SET sql_mode = 'ANSI_QUOTES'",
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
    ] {
        let mut session = session();
        session.follow(set);
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
            &schema(),
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
        session().follow(&text);
    }
}
