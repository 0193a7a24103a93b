//! Statements as long as they are read at all, each of one chain: the parser's tree is as deep as it is long.

use learned::{Effect, NotLearned, Reading};

use crate::tables::{session, shapes};

/// Of a statement in the client's protocol (`mysql-wire`).
const MAX_BYTES: usize = 64 * 1024;

/// How a statement begins, what follows again and again, and how it ends.
const CHAINS: &[(&str, &str, &str)] = &[
    ("SELECT title FROM posts WHERE id = 1", "+1", ""),
    ("SELECT title FROM posts WHERE id", " IS NULL", ""),
    ("SELECT title FROM posts WHERE id = 1", " OR id=1", ""),
    ("SELECT title FROM posts WHERE id = 1", " AND 1", ""),
    ("SELECT title FROM posts WHERE title", " COLLATE a", ""),
    ("SELECT id FROM posts", " UNION SELECT id,id FROM posts", ""),
    ("SELECT p.title FROM posts p", " JOIN posts", ""),
    ("SELECT p.title FROM posts p", " JOIN posts ON 1", ""),
    ("SELECT 1 FROM ", "(", "posts"),
    ("SELECT title FROM posts WHERE ", "(", "id=1"),
    ("SELECT title FROM posts WHERE ", "NOT ", "id=1"),
    ("SELECT title FROM posts WHERE id=", "- ", "1"),
    ("SELECT title FROM posts WHERE id=1", "+IF(1,1", ""),
    ("UPDATE posts SET title='a' WHERE id = 1", " OR 1", ""),
    ("DELETE FROM posts WHERE id = 1", " AND id=1", ""),
    ("INSERT INTO posts (id) VALUES (1", "+1", ")"),
];

fn chain(begin: &str, link: &str, end: &str, links: usize) -> String {
    format!("{begin}{}{end}", link.repeat(links))
}

#[test]
fn statements_of_any_length_leave_half_of_the_stack() {
    let understand = || {
        for (begin, link, end) in CHAINS {
            let most = (MAX_BYTES - begin.len() - end.len()) / link.len();
            for links in [most, most / 2, 1_000, 990, 495, 330, 240, 130] {
                let text = chain(begin, link, end, links.min(most));
                shapes().understand(text.as_bytes(), &[], &session());
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(learned::STACK_BYTES / 2);
    thread.spawn(understand).unwrap().join().unwrap();
}

#[test]
fn too_deep_statement_is_not_learned_and_a_write_counts_as_one_of_everything() {
    let mut shapes = shapes();
    for (text, is_too_deep) in [
        (
            chain(
                "SELECT title FROM posts WHERE id = 1",
                " OR id = 1",
                "",
                300,
            ),
            false,
        ),
        (
            chain(
                "SELECT title FROM posts WHERE id = 1",
                " OR id = 1",
                "",
                400,
            ),
            true,
        ),
        (
            chain("SELECT id FROM posts WHERE id IN (1", ", 1", ")", 9_000),
            false,
        ),
        (chain("SELECT id", ", id AS a", " FROM posts", 3_000), false),
        (
            chain(
                "SELECT id FROM posts a0",
                " JOIN posts a ON a.id = a0.id",
                "",
                60,
            ),
            false,
        ),
    ] {
        let meaning = shapes.understand(text.as_bytes(), &[], &session());
        let reason = match meaning.reading {
            Reading::NotLearned(reason) => Some(reason),
            _ => None,
        };
        assert_eq!(
            reason,
            is_too_deep.then_some(NotLearned::TooLong),
            "{}",
            text.len()
        );
        assert_eq!(
            meaning.effect,
            Effect::Nothing,
            "it writes nothing for sure"
        );
    }
    for (begin, link, end, is_too_deep) in [
        (
            "INSERT INTO posts (id, title) VALUES (1, NULL)",
            ", (-1, NULL)",
            "",
            false,
        ),
        ("DELETE FROM posts WHERE id = 1", " OR id = 2", "", true),
    ] {
        let text = chain(begin, link, end, 400);
        let effect = shapes.understand(text.as_bytes(), &[], &session()).effect;
        assert_eq!(effect == Effect::Everything, is_too_deep, "{begin}{link}");
    }
}
