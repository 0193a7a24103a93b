//! The invariants that hold for any bytes at all; a fuzz target checks them.

use std::sync::Arc;

use crate::index::Index;
use crate::page::{PageRecord, SeenStatement};
use crate::row::Effect;
use crate::schema_builder::SchemaBuilder;
use crate::schema_queries::SchemaQuery;
use crate::session::Session;
use crate::value::Value;

/// Each line is a statement of one connection; a byte that is no text begins one with parameters.
///
/// # Panics
/// When a promise of the crate is broken.
pub fn fuzz_statements(bytes: &[u8]) {
    let mut builder = SchemaBuilder::default();
    for table in ["t", "u"] {
        builder.row(SchemaQuery::Tables, &["d", table, "BASE TABLE", "InnoDB"]);
        for (name, data_type, collation) in [
            ("a", "int", ""),
            ("b", "varchar", "utf8mb4_unicode_ci"),
            ("c", "datetime", ""),
            ("d", "varbinary", ""),
        ] {
            let fields = [
                "d", table, name, data_type, data_type, "9", collation, "YES", "",
            ];
            assert!(builder.row(SchemaQuery::Columns, &fields), "{name}");
        }
    }
    let rights = builder.row(SchemaQuery::Rights, &["%", "%"]);
    let schema = builder.finish().filter(|_| rights).expect("few tables");
    let mut index = Index::new(Arc::new(schema));
    let mut session = Session::new(Some("d".to_owned()), 45);
    let mut page = PageRecord::new(1_795_602_030);
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let (parameters, text) = match line {
            [0x80..=0xFF, rest @ ..] => (&[Value::Integer(5), Value::Null, Value::Other][..], rest),
            text => (&[][..], text),
        };
        let meaning = index.shapes().lock().understand(text, parameters, &session);
        let again = index.shapes().lock().understand(text, parameters, &session);
        assert_eq!(
            meaning.effect, again.effect,
            "a shape that is known means the same"
        );
        assert!(
            meaning.effect != Effect::Nothing || !begins_as_write(text),
            "a write is one"
        );
        let seen = SeenStatement {
            connection: 1,
            text,
            parameters,
            session: &session,
            result: number as u64,
            again_in: None,
        };
        if page.add(&mut index.shapes().lock(), &seen).is_err() {
            page = PageRecord::new(1_795_602_030);
        }
        session.follow(text);
        let number = u32::try_from(number).unwrap_or_default();
        let is_known = index.insert(number, index.writes(), &page).is_ok();
        index.written(meaning.effect);
        index.written(Effect::Everything);
        let is_suspect = index.suspects().iter().any(|(page, _)| *page == number);
        assert!(
            !is_known || page.count() == 0 || is_suspect,
            "all is suspect"
        );
    }
}

fn begins_as_write(text: &[u8]) -> bool {
    [
        "INSERT INTO t ",
        "UPDATE t SET ",
        "DELETE FROM t ",
        "REPLACE INTO t ",
        "TRUNCATE t",
        "DROP TABLE t",
        "CALL a",
    ]
    .iter()
    .any(|begin| text.starts_with(begin.as_bytes()))
}
