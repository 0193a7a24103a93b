//! The known contents of a written row, and the changes of a table.

use crate::schema::{Schema, Table, TableNumber, WrittenAlong};
use crate::value::{KnownContent, Value, known_when_stored};

/// The known contents of a row: for some columns, by their positions, the contents that are possible.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    columns: Vec<(u16, Vec<KnownContent>)>,
    has_nulls_alone: bool,
}

impl Row {
    /// The row that stands where an outer join found none.
    pub(crate) fn nulls() -> Self {
        Self {
            has_nulls_alone: true,
            ..Self::default()
        }
    }

    /// Makes a row from a log of changes. Columns that the log does not have are unknown.
    pub fn image<'a>(table: &Table, values: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let mut row = Self::default();
        for (name, value) in values {
            // A stored value is not converted any more; a value that could not have been stored as such is unknown.
            if let Some((position, column)) = table.column(name) {
                let known = known_when_stored(column, value.as_ref());
                row.set(position, known.map(|known| vec![known]));
            }
        }
        row
    }

    /// `None`: anything is possible.
    pub(crate) fn contents(&self, position: u16) -> Option<&[KnownContent]> {
        if self.has_nulls_alone {
            return Some(&[KnownContent::Null]);
        }
        let mut columns = self.columns.iter();
        columns
            .find(|(other, _)| *other == position)
            .map(|(_, contents)| contents.as_slice())
    }

    /// Replaces the known contents of a column; `None` makes them unknown.
    pub(crate) fn set(&mut self, position: u16, contents: Option<Vec<KnownContent>>) {
        self.columns.retain(|(other, _)| *other != position);
        self.columns
            .extend(contents.map(|contents| (position, contents)));
    }

    pub(crate) fn forget(&mut self, is_forgotten: impl Fn(u16) -> bool) {
        self.columns
            .retain(|(position, _)| !is_forgotten(*position));
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowChange {
    Inserted(Row),
    Deleted(Row),
    /// `columns` are the positions of those that were set; others are the same as before, or change by
    /// themselves.
    Updated {
        old: Row,
        new: Row,
        columns: Vec<u16>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableChange {
    pub table: TableNumber,
    /// `None`: any row may have changed in any way.
    pub rows: Option<Vec<RowChange>>,
}

/// The changes that a statement makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Nothing,
    Tables(Vec<TableChange>),
    /// Any table, or the definition of one.
    Everything,
}

impl Effect {
    /// Any change of rows of a table, with those that triggers and foreign keys make of it. Nothing is read of a database of
    /// which no table is known.
    pub fn of_rows(schema: &Schema, database: &str, name: &str) -> Effect {
        let found = schema.find(database, name);
        let Some((number, table)) = found.and_then(|it| Some((it, schema.table(it)?))) else {
            return match schema.has_database(database) {
                true => Effect::Everything,
                false => Effect::Nothing,
            };
        };
        match &table.written_along {
            WrittenAlong::Everything => Effect::Everything,
            WrittenAlong::Tables(along) => {
                let tables = std::iter::once(number).chain(along.iter().copied());
                let any = |table| TableChange { table, rows: None };
                Effect::Tables(tables.map(any).collect())
            }
        }
    }
}

/// Writes of one transaction. They count once more when it is committed, since others see them only then.
#[derive(Debug, Default)]
pub struct Transaction {
    changes: Vec<TableChange>,
    is_everything: bool,
}

/// Changes of tables that a transaction keeps one by one; with more it counts as everything.
pub const MAX_CHANGES: usize = 1_000;

impl Transaction {
    pub fn add(&mut self, effect: &Effect) {
        match effect {
            Effect::Nothing => {}
            Effect::Everything => self.is_everything = true,
            Effect::Tables(changes) if self.changes.len() + changes.len() <= MAX_CHANGES => {
                self.changes.extend(changes.iter().cloned());
            }
            Effect::Tables(_) => self.is_everything = true,
        }
    }

    /// All that it wrote. It is empty afterwards.
    pub fn end(&mut self) -> Effect {
        let Self {
            changes,
            is_everything,
        } = std::mem::take(self);
        match (is_everything, changes.is_empty()) {
            (true, _) => Effect::Everything,
            (false, true) => Effect::Nothing,
            (false, false) => Effect::Tables(changes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transaction_gathers_its_writes_up_to_a_bound() {
        let change = |number| {
            let table = TableNumber(number);
            TableChange { table, rows: None }
        };
        let mut transaction = Transaction::default();
        assert_eq!(transaction.end(), Effect::Nothing);
        transaction.add(&Effect::Nothing);
        transaction.add(&Effect::Tables(vec![change(1)]));
        transaction.add(&Effect::Tables(vec![change(2)]));
        assert_eq!(
            transaction.end(),
            Effect::Tables(vec![change(1), change(2)])
        );
        assert_eq!(transaction.end(), Effect::Nothing, "it began anew");
        for _ in 0..=MAX_CHANGES {
            transaction.add(&Effect::Tables(vec![change(1)]));
        }
        assert_eq!(transaction.end(), Effect::Everything);
    }
}
