//! The known tables: their columns with the values that these can have, as `information_schema` has them.

use std::collections::HashMap;

use crate::postgres::PostgresFacts;

/// The most tables of all databases of a site.
pub const MAX_TABLES: usize = 10_000;

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

/// A column as `information_schema.columns` describes it.
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

    /// Equal texts may be other bytes.
    pub(crate) const fn compares_by_collation(&self) -> bool {
        matches!(self.kind, ColumnKind::Text { .. })
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

/// A column as conditions name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ColumnUse {
    pub(crate) position: u16,
    pub(crate) kind: ColumnKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableNumber(pub(crate) u32);

/// The tables that are written along with a table: by its triggers, and by foreign keys that pass its
/// changes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WrittenAlong {
    Tables(Vec<TableNumber>),
    Everything,
}

/// A base table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Database and name.
    pub name: (String, String),
    pub columns: Vec<Column>,
    /// The positions of the columns of each unique key. `None`: there may be others, or a key is not
    /// one of whole columns.
    pub(crate) unique_keys: Option<Vec<Vec<u16>>>,
    /// A trigger may change the row that is written.
    pub(crate) has_triggers: bool,
    pub(crate) written_along: WrittenAlong,
}

impl Table {
    /// Its position and itself.
    pub(crate) fn column(&self, name: &str) -> Option<(u16, &Column)> {
        let position = self.columns.iter().position(|column| column.name == name)?;
        Some((u16::try_from(position).ok()?, &self.columns[position]))
    }

    pub(crate) fn column_at(&self, position: u16) -> Option<&Column> {
        self.columns.get(usize::from(position))
    }
}

/// The kind of a name in FROM.
#[derive(Debug, Clone)]
pub(crate) enum Relation {
    Base(TableNumber),
    /// A view that is understood, with the base tables that it reads.
    View(Vec<TableNumber>),
    /// It may call anything.
    Unclear,
}

/// The tables of a server according to its `information_schema`. A name that is not here may be
/// anything, for example a temporary table.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    pub(crate) tables: Vec<Table>,
    pub(crate) relations: HashMap<(String, String), Relation>,
    /// Of a PostgreSQL alone; the databases of the names above are its schemas.
    pub(crate) postgres: Option<PostgresFacts>,
}

impl Schema {
    pub(crate) fn relation(&self, name: &(String, String)) -> Option<&Relation> {
        self.relations.get(name)
    }

    pub(crate) fn table_number(&self, name: &(String, String)) -> Option<TableNumber> {
        match self.relations.get(name)? {
            Relation::Base(number) => Some(*number),
            Relation::View(_) | Relation::Unclear => None,
        }
    }

    pub fn table(&self, number: TableNumber) -> Option<&Table> {
        self.tables.get(number.0 as usize)
    }

    /// Is a table or view of this database known?
    pub(crate) fn has_database(&self, name: &str) -> bool {
        self.relations.keys().any(|(database, _)| database == name)
    }

    /// The base table of this database and name.
    pub fn find(&self, database: &str, name: &str) -> Option<TableNumber> {
        self.table_number(&(database.to_owned(), name.to_owned()))
    }

    pub fn count(&self) -> usize {
        self.tables.len()
    }
}
