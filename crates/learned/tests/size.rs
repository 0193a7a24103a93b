//! What an index costs: bytes of memory a page, and the time to match a written row.
//!
//! `LEARNED_PAGES=100000 cargo test --release -p learned --test size -- --nocapture` measures it at the
//! size that is promised. The pages are like those of WordPress: 38 statements, of which nine are their
//! own and have 46 values to be found by.

use std::sync::Arc;
use std::time::Instant;

use learned::{
    Effect, Index, PageRecord, Schema, SchemaBuilder, SchemaQuery, SeenStatement, Session,
};

const PAGES: u32 = 300;
const MAX_BYTES_A_PAGE: usize = 2_048;
const MAX_MICROSECONDS: f64 = 20.0;
/// Few without optimisation.
const WRITES: u32 = if cfg!(debug_assertions) { 50 } else { 10_000 };
/// That all pages have, each with another shape.
const SHARED: u32 = 29;

fn schema() -> Arc<Schema> {
    let mut builder = SchemaBuilder::default();
    for (table, columns) in [
        (
            "posts",
            &[
                "id", "author", "parent", "*slug", "*status", "*kind", "*title",
            ][..],
        ),
        ("meta", &["id", "post", "*name", "*value"]),
        ("terms", &["object", "term"]),
        ("comments", &["id", "post", "approved", "*text"]),
        ("options", &["id", "*name", "*value"]),
    ] {
        builder.row(
            SchemaQuery::Tables,
            &["blog", table, "BASE TABLE", "InnoDB"],
        );
        for column in columns {
            let (data_type, collation) = match column.starts_with('*') {
                true => ("varchar", "utf8mb4_unicode_ci"),
                false => ("int", ""),
            };
            let name = column.trim_start_matches('*');
            let fields = [
                "blog", table, name, data_type, data_type, "100", collation, "NO", "",
            ];
            assert!(builder.row(SchemaQuery::Columns, &fields));
        }
    }
    builder.row(SchemaQuery::Rights, &["%", "%"]);
    Arc::new(builder.finish().unwrap())
}

fn statements(page: u32) -> Vec<String> {
    let ids: Vec<_> = (0..10)
        .map(|next| ((page + next * 7) % 1_000_000).to_string())
        .collect();
    let ids = ids.join(", ");
    let mut statements = vec![
        format!(
            "SELECT * FROM posts WHERE slug = 'a-page-with-the-number-{page}' AND kind = 'post'"
        ),
        format!("SELECT * FROM posts WHERE id = {page} LIMIT 1"),
        format!("SELECT post, name, value FROM meta WHERE post IN ({ids}) ORDER BY id ASC"),
        format!("SELECT t.object, t.term FROM terms t WHERE t.object IN ({ids})"),
        format!("SELECT id, title FROM posts WHERE id IN ({ids})"),
        format!("SELECT * FROM comments WHERE post = {page} AND approved = 1"),
        format!("SELECT COUNT(*) FROM comments WHERE post = {page}"),
        format!("SELECT id FROM posts WHERE parent = {page} AND kind = 'attachment'"),
        format!("SELECT value FROM options WHERE name = '_transient_page_{page}' LIMIT 1"),
    ];
    for shape in 0..SHARED {
        let condition = match shape % 4 {
            0 => "kind = 'post' AND status = 'publish'".to_owned(),
            1 => format!("id = {shape}"),
            2 => format!("author IN ({shape}, 1)"),
            _ => format!("slug = 'shared-{shape}'"),
        };
        statements.push(format!(
            "SELECT id AS shape_{shape} FROM posts WHERE {condition}"
        ));
    }
    statements
}

/// Of this process, in memory.
fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size()
}

/// Of this thread, on a processor: others may be at work on the machine.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds: u64 = text.split(' ').next().unwrap().parse().unwrap();
    nanoseconds as f64 / 1e9
}

fn effect(index: &mut Index, session: &Session, text: &str) -> Effect {
    index
        .shapes()
        .lock()
        .understand(text.as_bytes(), &[], session)
        .effect
}

#[test]
fn pages_are_small_and_rows_are_matched_quickly() {
    let pages =
        std::env::var("LEARNED_PAGES").map_or(PAGES, |text| text.parse().expect("a number"));
    let session = Session::new(Some("blog".to_owned()), 45);
    let mut index = Index::new(schema());
    let learn = |index: &mut Index, page: u32| {
        let mut record = PageRecord::new(1_795_602_030);
        for text in statements(page) {
            let statement = SeenStatement {
                connection: 1,
                text: text.as_bytes(),
                parameters: &[],
                session: &session,
                result: u64::from(page),
                again_in: None,
            };
            // Shared statements returned the same to all.
            let result = if text.contains("shape_") {
                7
            } else {
                statement.result
            };
            record
                .add(
                    &mut index.shapes().lock(),
                    &SeenStatement {
                        result,
                        ..statement
                    },
                )
                .unwrap();
        }
        assert_eq!(record.count(), 38);
        index.insert(page, index.writes(), &record).unwrap();
    };
    learn(&mut index, 0);
    let before = resident_bytes();
    let began = processor_seconds();
    for page in 1..=pages {
        learn(&mut index, page);
    }
    let bytes = resident_bytes().saturating_sub(before) / pages as usize;
    let learning = (processor_seconds() - began) * 1e6 / f64::from(pages);
    println!("{pages} pages: {bytes} bytes and {learning:.1} us a page");
    let mut suspects = 0;
    for template in [
        "UPDATE posts SET title = 'new' WHERE id = {}",
        "INSERT INTO meta (id, post, name, value) VALUES (5, {}, 'views', '1')",
        "INSERT INTO posts (id, slug, kind, status, author, parent) VALUES ({}, 'new-{}', 'post', 'draft', 5, 0)",
        "UPDATE options SET value = 'x' WHERE name = '_transient_page_{}'",
        "DELETE FROM comments",
    ] {
        let effects: Vec<_> = (0..WRITES)
            .map(|number| {
                let page = (number * 7919 % pages).to_string();
                effect(&mut index, &session, &template.replace("{}", &page))
            })
            .collect();
        let began = processor_seconds();
        for effect in effects {
            index.written(effect);
        }
        let microseconds = (processor_seconds() - began) * 1e6 / f64::from(WRITES);
        println!("{microseconds:.2} us a write: {template}");
        assert!(
            cfg!(debug_assertions) || microseconds <= MAX_MICROSECONDS,
            "{template} takes {microseconds} us"
        );
        let began = Instant::now();
        suspects = index.suspects().len();
        println!("{suspects} suspect pages, found in {:?}", began.elapsed());
    }
    assert_eq!(suspects, index.count());
    // What does not grow with the pages is a part of it if they are few.
    let most = MAX_BYTES_A_PAGE * if pages < 10_000 { 2 } else { 1 };
    assert!(bytes <= most, "{bytes} bytes a page");
}
