//! What is known of tables: the columns with what their values can be, as `information_schema` has it.

use std::collections::HashMap;

/// Of all databases of a site.
pub const MOST_TABLES: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    Integer {
        least: i128,
        most: i128,
    },
    /// Text under a collation of which the rules in `value.rs` are known to hold.
    Text {
        most_characters: u64,
    },
    /// VARBINARY and BLOB: bytes, compared as such.
    Bytes {
        most_bytes: u64,
    },
    /// DATETIME.
    DateTime,
    Date,
    /// Nothing is known of its comparisons.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub kind: ColumnKind,
    pub is_nullable: bool,
    /// Rows come in the order of an index where a statement names no order, so that a change of such
    /// a column can alter any result.
    pub is_indexed: bool,
    /// A generated column, or one with ON UPDATE.
    pub changes_by_itself: bool,
    pub counts_up: bool,
}

/// What `information_schema.columns` says of a column.
#[derive(Debug, Clone, Copy, Default)]
pub struct ColumnDescription<'a> {
    pub name: &'a str,
    pub data_type: &'a str,
    pub column_type: &'a str,
    /// `character_maximum_length`.
    pub most_characters: u64,
    pub collation: &'a str,
    pub is_nullable: bool,
    pub extra: &'a str,
}

impl Column {
    pub fn described(description: &ColumnDescription<'_>, is_indexed: bool) -> Self {
        let extra = description.extra.to_ascii_lowercase();
        Self {
            name: description.name.to_lowercase(),
            kind: kind(description),
            is_nullable: description.is_nullable,
            is_indexed,
            changes_by_itself: extra.contains("generated") || extra.contains("on update"),
            counts_up: extra.contains("auto_increment"),
        }
    }
}

fn kind(description: &ColumnDescription<'_>) -> ColumnKind {
    let bits = match description.data_type {
        "tinyint" => 8,
        "smallint" => 16,
        "mediumint" => 24,
        "int" => 32,
        "bigint" => 64,
        // CHAR is left out: PAD_CHAR_TO_FULL_LENGTH, which a server may have for all sessions, pads what
        // is read of it.
        "varchar" | "text" | "tinytext" | "mediumtext" | "longtext"
            if has_known_rules(description.collation) =>
        {
            return ColumnKind::Text {
                most_characters: description.most_characters,
            };
        }
        "varbinary" | "blob" | "tinyblob" | "mediumblob" | "longblob" => {
            return ColumnKind::Bytes {
                most_bytes: description.most_characters,
            };
        }
        "datetime" => return ColumnKind::DateTime,
        "date" => return ColumnKind::Date,
        _ => return ColumnKind::Other,
    };
    if description.column_type.contains("zerofill") {
        return ColumnKind::Other;
    }
    if description.column_type.contains("unsigned") {
        ColumnKind::Integer {
            least: 0,
            most: (1 << bits) - 1,
        }
    } else {
        ColumnKind::Integer {
            least: -(1 << (bits - 1)),
            most: (1 << (bits - 1)) - 1,
        }
    }
}

/// Collations under which printable ASCII texts are different unless they fold to the same. It is
/// not so in all: in `lithuanian_ci` the letters i and y are equal.
fn has_known_rules(collation: &str) -> bool {
    let Some((characters, rules)) = collation.split_once('_') else {
        return false;
    };
    let rules = rules.strip_prefix("nopad_").unwrap_or(rules);
    let known = matches!(
        characters,
        "utf8" | "utf8mb3" | "utf8mb4" | "latin1" | "ascii"
    ) && matches!(
        rules,
        "bin"
            | "general_ci"
            | "unicode_ci"
            | "unicode_520_ci"
            | "0900_ai_ci"
            | "uca1400_ai_ci"
            | "uca1400_as_ci"
    );
    known || collation == "latin1_swedish_ci"
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    pub columns: Vec<Column>,
    /// A trigger runs when it is written, or a foreign key passes its changes on.
    pub has_effects_elsewhere: bool,
}

impl Table {
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// Base tables alone. A name that is not here may be a view or a temporary table.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    tables: HashMap<(String, String), Table>,
}

impl Schema {
    /// Whether there was room.
    pub fn insert(&mut self, database: &str, name: &str, table: Table) -> bool {
        let has_room = self.tables.len() < MOST_TABLES;
        if has_room {
            self.tables
                .insert((database.to_owned(), name.to_owned()), table);
        }
        has_room
    }

    pub fn table(&self, name: &(String, String)) -> Option<&Table> {
        self.tables.get(name)
    }
}
