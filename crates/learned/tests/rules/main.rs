//! Statements and changes, and whether the one can alter the result of the other.

mod deep;
mod reasons;
mod tables;

use learned::{Reading, may_alter};
use tables::{session, shapes};

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
            false,
        ),
        (
            "SELECT id FROM posts WHERE status = 'draft'",
            "INSERT INTO posts (id, status) VALUES (1, 'a') ON DUPLICATE KEY UPDATE status = 'b'",
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
        (
            "SELECT m.name FROM posts p, LATERAL (SELECT name FROM meta WHERE post = p.id AND name = 'a') m",
            "DELETE FROM meta WHERE name = 'a'",
            true,
        ),
        (
            "SELECT m.name FROM posts p, LATERAL (SELECT name FROM meta WHERE post = p.id AND name = 'a') m",
            "DELETE FROM meta WHERE name = 'b'",
            false,
        ),
        (
            "SELECT j.x FROM posts p, JSON_TABLE(p.title, '$[*]' COLUMNS (x INT PATH '$')) j WHERE p.id = 1",
            "UPDATE posts SET title = '[2]' WHERE id = 1",
            true,
        ),
        (
            "SELECT j.x FROM posts p, JSON_TABLE(p.title, '$[*]' COLUMNS (x INT PATH '$')) j WHERE p.id = 1",
            "UPDATE posts SET title = '[2]' WHERE id = 2",
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
        // Views, triggers, several tables.
        (
            "SELECT id FROM recent WHERE id = 1",
            "UPDATE posts SET title = 'x' WHERE id = 2",
            true,
        ),
        ("SELECT id FROM recent", "DELETE FROM meta", false),
        ("SELECT id FROM posts", "DELETE FROM recent", true),
        ("SELECT value FROM meta", "DELETE FROM recent", false),
        ("SELECT value FROM meta", "DELETE FROM unclear", true),
        (
            "SELECT value FROM meta",
            "INSERT INTO logged (post) VALUES (1)",
            true,
        ),
        (
            "SELECT id FROM posts",
            "INSERT INTO logged (post) VALUES (1)",
            false,
        ),
        (
            "SELECT post FROM logged WHERE post = 2",
            "INSERT INTO logged (post) VALUES (1)",
            true,
        ),
        (
            "SELECT value FROM options",
            "DELETE a, b FROM meta a, meta b WHERE a.post = b.post",
            false,
        ),
        (
            "SELECT value FROM meta",
            "DELETE a, b FROM meta a, meta b WHERE a.post = b.post",
            true,
        ),
        (
            "SELECT id FROM posts",
            "INSERT INTO meta (post) SELECT total()",
            true,
        ),
        (
            "SELECT id FROM posts",
            "INSERT INTO meta (post) SELECT id FROM unclear",
            true,
        ),
        (
            "SELECT id FROM posts",
            "INSERT INTO meta (post) SELECT id FROM options",
            false,
        ),
        (
            "SELECT value FROM options",
            "UPDATE meta SET value = (SELECT MAX(id) FROM posts)",
            false,
        ),
        // A unique key names the row that goes.
        (
            "SELECT value FROM options WHERE name = 'cron'",
            "INSERT INTO options (name, value) VALUES ('home', 'x') ON DUPLICATE KEY UPDATE value = VALUES(value)",
            false,
        ),
        (
            "SELECT value FROM options WHERE name = 'cron'",
            "INSERT INTO options (name, value) VALUES ('CRON', 'x') ON DUPLICATE KEY UPDATE value = VALUES(value)",
            true,
        ),
        (
            "SELECT value FROM options WHERE name = 'cron'",
            "INSERT INTO options (id, name) VALUES (5, 'home') ON DUPLICATE KEY UPDATE value = 'x'",
            true,
        ),
        (
            "SELECT value FROM options WHERE name = 'cron'",
            "REPLACE INTO options (name, value) VALUES ('home', 'x')",
            false,
        ),
        (
            "SELECT value FROM options WHERE value = 'a'",
            "REPLACE INTO options (name, value) VALUES ('home', 'x')",
            true,
        ),
        (
            "SELECT value FROM options WHERE name = 'cron'",
            "INSERT INTO options (name) VALUES ('home') ON DUPLICATE KEY UPDATE name = 'cron'",
            true,
        ),
        // A number that is given may be that of a row with another name.
        (
            "SELECT value FROM options WHERE name = 'cron'",
            "REPLACE INTO options (id, name, value) VALUES (2 + 3, 'home', 'x')",
            true,
        ),
        (
            "SELECT value FROM options WHERE name = 'cron'",
            "DELETE FROM options WHERE name = 'home' OR value = 'x'",
            true,
        ),
        // A row with fewer values than columns: some are invisible.
        (
            "SELECT value FROM meta WHERE name = 'a'",
            "INSERT INTO meta VALUES (1, 'b', 'c')",
            false,
        ),
        (
            "SELECT value FROM meta WHERE name = 'a'",
            "INSERT INTO meta VALUES (1, 'b')",
            true,
        ),
        ("SELECT title FROM posts", "SELECT 1 FROM dual", false),
        (
            "SELECT title FROM posts",
            "SELECT table_name FROM information_schema.tables",
            false,
        ),
        (
            "SELECT title FROM posts",
            "SELECT ANY_VALUE(name) FROM meta",
            true,
        ),
        (
            "SELECT title FROM posts",
            "SELECT id FROM posts WHERE id IN (TABLE unclear)",
            true,
        ),
        // Other sessions see no temporary table, and no learned page reads a sequence.
        ("SELECT title FROM posts", "TABLE posts", false),
        (
            "SELECT title FROM posts",
            "SELECT NEXT VALUE FOR numbers",
            false,
        ),
        (
            "SELECT title FROM posts",
            "CREATE TEMPORARY TABLE t (id INT(11) DEFAULT (a_function()), KEY (id))",
            false,
        ),
        (
            "SELECT title FROM posts",
            "CREATE OR REPLACE TEMPORARY TABLE t AS SELECT id FROM posts",
            false,
        ),
        ("SELECT title FROM posts", "DROP TEMPORARY TABLE t", false),
        (
            "SELECT title FROM posts",
            "CREATE TEMPORARY TABLE t AS SELECT a_function() FROM posts",
            true,
        ),
        (
            "SELECT title FROM posts",
            "CREATE TABLE temporary (id INT)",
            true,
        ),
        // Databases.
        ("SELECT title FROM posts", "DELETE FROM shop.posts", false),
        (
            "SELECT title FROM shop.posts",
            "DELETE FROM `shop`.`posts`",
            true,
        ),
        // Comparisons across types and collations, which only the database knows.
        (
            "SELECT id FROM posts WHERE turkish = 'i'",
            "DELETE FROM posts WHERE turkish = 'I'",
            true,
        ),
        (
            "SELECT id FROM posts WHERE turkish <> 'I'",
            "INSERT INTO posts (turkish) VALUES ('I')",
            true,
        ),
        (
            "SELECT id FROM posts WHERE kind = 'a'",
            "DELETE FROM posts WHERE kind = 1",
            true,
        ),
        // A text that is no member is stored as the empty one, and '2' as the second.
        (
            "SELECT id FROM posts WHERE kind = ''",
            "INSERT INTO posts (kind) VALUES ('zzz')",
            true,
        ),
        (
            "SELECT id FROM posts WHERE kind = 'b'",
            "INSERT INTO posts (kind) VALUES ('2')",
            true,
        ),
        (
            "SELECT id FROM posts WHERE author = 'abc'",
            "DELETE FROM posts WHERE author = 0",
            true,
        ),
        (
            "SELECT id FROM posts WHERE author = '5x'",
            "DELETE FROM posts WHERE author = 5",
            true,
        ),
        (
            "SELECT id FROM posts WHERE title = 0",
            "INSERT INTO posts (title) VALUES ('abc')",
            true,
        ),
        (
            "SELECT id FROM posts WHERE title = 'ab'",
            "INSERT INTO posts (title) VALUES ('a\u{1}b')",
            true,
        ),
        (
            "SELECT id FROM posts WHERE title <> 'a'",
            "DELETE FROM posts WHERE title = 'A'",
            true,
        ),
        (
            "SELECT id FROM posts WHERE title <> 'a'",
            "DELETE FROM posts WHERE title = 'a'",
            false,
        ),
        (
            "SELECT id FROM posts WHERE picture = 'a'",
            "DELETE FROM posts WHERE picture = 'A'",
            false,
        ),
        (
            "SELECT id FROM posts WHERE title IN ('a', 5)",
            "DELETE FROM posts WHERE title = 'b'",
            true,
        ),
        (
            "SELECT id FROM posts WHERE title = 'a'",
            "DELETE FROM posts WHERE title IN ('b', 5)",
            true,
        ),
        (
            "SELECT id FROM posts WHERE written = '2024-01-01'",
            "DELETE FROM posts WHERE written = '2024-02-01 00:00:00'",
            true,
        ),
        (
            "SELECT title FROM posts WHERE id = 5",
            "UPDATE posts SET id = 6, id = id - 1 WHERE id = 6",
            true,
        ),
        (
            "WITH a AS (SELECT id FROM posts WHERE author = 1) SELECT * FROM a",
            "DELETE FROM posts WHERE author = 2",
            false,
        ),
        (
            "WITH a AS (SELECT id FROM posts WHERE author = 1) SELECT * FROM a",
            "DELETE FROM posts WHERE author = 1",
            true,
        ),
        (
            "SELECT title FROM posts",
            "SELECT name, GROUP_CONCAT(value SEPARATOR '|') FROM meta GROUP BY name",
            false,
        ),
        (
            "SELECT title FROM posts",
            "SELECT name, GROUP_CONCAT(total(value) SEPARATOR '|') FROM meta GROUP BY name",
            true,
        ),
        (
            "SELECT title FROM posts",
            "SELECT GROUP_CONCAT(id SEPARATOR '|') FROM unclear",
            true,
        ),
        (
            "SELECT title FROM posts",
            "SELECT id FROM created_since",
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
            may_alter(&reading, &effect),
            matters,
            "{read}; {change}: {effect:?}"
        );
    }
}
