//! The tables and the session that the statements speak of.

use std::sync::Arc;

use learned::{Schema, SchemaBuilder, SchemaQuery, Session, Shapes};

/// Database, table, name, type, collation, more.
const COLUMNS: &[[&str; 6]] = &[
    ["blog", "posts", "id", "int", "", "auto_increment"],
    [
        "blog",
        "posts",
        "title",
        "varchar",
        "utf8mb4_unicode_ci",
        "",
    ],
    [
        "blog",
        "posts",
        "status",
        "varchar",
        "utf8mb4_unicode_ci",
        "",
    ],
    ["blog", "posts", "author", "int", "", ""],
    ["blog", "posts", "views", "int", "", ""],
    ["blog", "posts", "written", "datetime", "", ""],
    [
        "blog",
        "posts",
        "touched",
        "timestamp",
        "",
        "on update current_timestamp()",
    ],
    [
        "blog",
        "posts",
        "turkish",
        "varchar",
        "utf8mb4_turkish_ci",
        "",
    ],
    ["blog", "posts", "kind", "enum", "utf8mb4_unicode_ci", ""],
    ["blog", "posts", "picture", "varbinary", "", ""],
    ["blog", "meta", "post", "int", "", ""],
    ["blog", "meta", "name", "varchar", "utf8mb4_unicode_ci", ""],
    ["blog", "meta", "value", "varchar", "utf8mb4_unicode_ci", ""],
    ["blog", "options", "id", "int", "", "auto_increment"],
    [
        "blog",
        "options",
        "name",
        "varchar",
        "utf8mb4_unicode_ci",
        "",
    ],
    [
        "blog",
        "options",
        "value",
        "varchar",
        "utf8mb4_unicode_ci",
        "",
    ],
    ["blog", "watched", "post", "int", "", ""],
    [
        "blog",
        "watched",
        "name",
        "varchar",
        "utf8mb4_unicode_ci",
        "",
    ],
    ["blog", "logged", "post", "int", "", ""],
    [
        "blog",
        "logged",
        "name",
        "varchar",
        "utf8mb4_unicode_ci",
        "",
    ],
    ["shop", "posts", "id", "int", "", ""],
    [
        "shop",
        "posts",
        "title",
        "varchar",
        "utf8mb4_unicode_ci",
        "",
    ],
];

fn schema() -> Schema {
    let mut builder = SchemaBuilder::default();
    for [database, table, column, data_type, collation, extra] in COLUMNS {
        builder.row(
            SchemaQuery::Tables,
            &[database, table, "BASE TABLE", "InnoDB"],
        );
        let fields = [
            database, table, column, data_type, data_type, "100", collation, "YES", extra,
        ];
        assert!(builder.row(SchemaQuery::Columns, &fields));
    }
    for (query, rows) in [
        (
            SchemaQuery::Keys,
            &[
                &["blog", "posts", "PRIMARY", "id", "0", "0"][..],
                &["blog", "options", "PRIMARY", "id", "0", "0"],
                &["blog", "options", "name", "name", "0", "0"],
            ][..],
        ),
        (SchemaQuery::Rights, &[&["%", "%"]]),
        (
            SchemaQuery::Triggers,
            &[
                &["blog", "watched", "CALL anything()"],
                &[
                    "blog",
                    "logged",
                    "INSERT INTO meta (post) VALUES (NEW.post)",
                ],
            ],
        ),
        (
            SchemaQuery::Views,
            &[
                &[
                    "blog",
                    "recent",
                    "select `blog`.`posts`.`id` AS `id` from `blog`.`posts`",
                ],
                &["blog", "unclear", "select `blog`.`total`(1) AS `id`"],
            ],
        ),
    ] {
        for row in rows {
            assert!(builder.row(query, row), "{row:?}");
        }
    }
    builder.finish().unwrap()
}

pub fn session() -> Session {
    Session::new(Some("blog".to_owned()), 45)
}

pub fn shapes() -> Shapes {
    Shapes::new(Arc::new(schema()))
}
