//! The changes that a statement makes, as far as its text contains them.
//!
//! The written row is taken from the statement: `WHERE column = value` is known of the row before,
//! `SET column = value` and `VALUES` of the row after, and all else is unknown. The row that REPLACE
//! removes, or that ON DUPLICATE KEY UPDATE changes, has the inserted values in the columns of a unique
//! key.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Assignment, AssignmentTarget, BinaryOperator, Delete, Expr, FromTable, InTarget, Insert,
    ObjectName, OnInsert, Query, SetExpr, Statement, TableFactor, TableObject, TableWithJoins,
    Update, Visit, Visitor,
};

use crate::arguments::Arguments;
use crate::condition::{Operand, have_one_kind};
use crate::read::{table_name, writes_nothing};
use crate::row::{Effect, Row, RowChange, TableChange};
use crate::schema::{Column, Relation, Schema, Table, TableNumber, WrittenAlong};
use crate::value::{KnownContent, ValueRef, known_to_equal, known_when_stored};

/// The most rows of one INSERT. With more the whole table counts as written.
pub const MAX_ROWS: usize = 64;

/// Values behind IN that are followed one by one.
const MAX_ALTERNATIVES: usize = 64;

/// The session, schema and arguments by which the names and values of a write are read.
pub(crate) struct WriteContext<'a> {
    pub(crate) database: Option<&'a str>,
    /// Texts are compared by their bytes, whatever the collation of the column.
    pub(crate) compares_bytes: bool,
    pub(crate) schema: &'a Schema,
    pub(crate) arguments: &'a Arguments,
}

impl WriteContext<'_> {
    pub(crate) fn effect(&self, statement: &Statement) -> Effect {
        let mut visitor = WriteVisitor {
            context: self,
            tables: Vec::new(),
        };
        if statement.visit(&mut visitor).is_break() {
            return Effect::Everything;
        }
        let mut tables = visitor.tables;
        let effect = match statement {
            Statement::Insert(insert) => {
                let TableObject::TableName(name) = &insert.table else {
                    return Effect::Everything;
                };
                match self.relation(name) {
                    Some(found) => tables.extend(found),
                    None => return Effect::Everything,
                }
                self.insert(insert, name)
            }
            Statement::Update(update) => self.update(update),
            Statement::Delete(delete) => self.delete(delete),
            Statement::Truncate(truncate) => match &truncate.table_names[..] {
                [table] => self.change(&table.name, |_| None),
                _ => None,
            },
            _ => return Effect::Everything,
        };
        effect.unwrap_or_else(|| self.any_rows_of(tables))
    }

    /// The base tables behind a name.
    fn relation(&self, name: &ObjectName) -> Option<&[TableNumber]> {
        let name = table_name(name, self.database).ok()?;
        match self.schema.relation(&name)? {
            Relation::Base(number) => Some(std::slice::from_ref(number)),
            Relation::View(tables) => Some(tables),
            Relation::Unclear => None,
        }
    }

    fn any_rows_of(&self, mut tables: Vec<TableNumber>) -> Effect {
        tables.sort();
        tables.dedup();
        let changes = tables
            .iter()
            .map(|table| self.with_written_along(*table, None))
            .collect::<Option<Vec<_>>>();
        match changes {
            Some(changes) if !changes.is_empty() => Effect::Tables(changes.concat()),
            _ => Effect::Everything,
        }
    }

    /// `None`: the statement is not one on a single table that is known.
    fn change(
        &self,
        name: &ObjectName,
        rows: impl FnOnce(&Table) -> Option<Vec<RowChange>>,
    ) -> Option<Effect> {
        let name = table_name(name, self.database).ok()?;
        let number = self.schema.table_number(&name)?;
        let table = self.schema.table(number)?;
        // A trigger may change the row that is written.
        let rows = rows(table).filter(|_| !table.has_triggers);
        Some(match self.with_written_along(number, rows) {
            Some(changes) => Effect::Tables(changes),
            None => Effect::Everything,
        })
    }

    /// The change with those that triggers and foreign keys make of it. `None`: they may be any.
    fn with_written_along(
        &self,
        table: TableNumber,
        rows: Option<Vec<RowChange>>,
    ) -> Option<Vec<TableChange>> {
        let described = self.schema.table(table)?;
        let along = match &described.written_along {
            WrittenAlong::Tables(tables) => tables,
            WrittenAlong::Everything => return None,
        };
        // Foreign keys pass on what becomes of rows that were there.
        let inserts_alone = rows
            .as_ref()
            .is_some_and(|rows| rows.iter().all(|row| matches!(row, RowChange::Inserted(_))));
        let mut changes = vec![TableChange { table, rows }];
        if described.has_triggers || !inserts_alone {
            let others = along.iter();
            changes.extend(others.map(|table| TableChange {
                table: *table,
                rows: None,
            }));
        }
        Some(changes)
    }

    fn insert(&self, insert: &Insert, name: &ObjectName) -> Option<Effect> {
        self.change(name, |table| {
            let rows = self.inserted_rows(insert, table)?;
            let updated = match &insert.on {
                None if !insert.replace_into => {
                    let rows = rows.into_iter();
                    return Some(rows.map(|row| RowChange::Inserted(row.row)).collect());
                }
                None => None,
                Some(OnInsert::DuplicateKeyUpdate(assignments)) => Some(assignments),
                Some(_) => return None,
            };
            let mut changes = Vec::new();
            for row in rows {
                for old in row.replaced_rows(table)? {
                    changes.push(match updated {
                        None => RowChange::Deleted(old),
                        Some(assignments) => self.updated(table, old, assignments)?,
                    });
                }
                changes.push(RowChange::Inserted(row.row));
            }
            Some(changes)
        })
    }

    /// Returns the known contents of each row of VALUES or SET.
    fn inserted_rows(&self, insert: &Insert, table: &Table) -> Option<Vec<InsertedRow>> {
        if !insert.assignments.is_empty() {
            let values = insert
                .assignments
                .iter()
                .map(|it| Some((target(it)?, &it.value)));
            let values = values.collect::<Option<Vec<_>>>()?;
            return Some(vec![self.inserted_row(table, values)]);
        }
        let SetExpr::Values(values) = &*insert.source.as_ref()?.body else {
            return None;
        };
        if values.rows.len() > MAX_ROWS {
            return None;
        }
        let names: Vec<_> = if insert.columns.is_empty() {
            let columns = table.columns.iter();
            columns.map(|column| column.name.clone()).collect()
        } else {
            let columns = insert.columns.iter();
            columns.map(last_name).collect::<Option<_>>()?
        };
        let rows = values.rows.iter().map(|row| {
            // Without names, columns that are invisible are left out.
            let is_complete = row.content.len() == names.len();
            let row = names.iter().cloned().zip(&row.content).collect();
            is_complete.then(|| self.inserted_row(table, row))
        });
        rows.collect()
    }

    fn inserted_row(&self, table: &Table, values: Vec<(String, &Expr)>) -> InsertedRow {
        let is_number_given = values.iter().any(|(name, value)| {
            let column = table.column(name);
            column.is_some_and(|(_, column)| column.counts_up)
                && self.value(value) != ValueRef::Null
        });
        InsertedRow {
            row: self.stored(table, values),
            is_number_given,
        }
    }

    fn value(&self, expression: &Expr) -> ValueRef<'_> {
        let Some(operand) = Operand::of(expression) else {
            return ValueRef::Other;
        };
        let mut values = operand.values(self.arguments);
        match (values.next(), values.next()) {
            (Some(value), None) => value,
            _ => ValueRef::Other,
        }
    }

    fn known_when_stored(&self, column: &Column, value: &Expr) -> Option<KnownContent> {
        if self.compares_bytes && column.compares_by_collation() {
            return None;
        }
        known_when_stored(column, self.value(value))
    }

    fn stored(&self, table: &Table, values: Vec<(String, &Expr)>) -> Row {
        let mut row = Row::default();
        for (name, expression) in values {
            if let Some((position, column)) = table.column(&name) {
                let known = self.known_when_stored(column, expression);
                // The last of two values for one column counts.
                row.set(position, known.map(|known| vec![known]));
            }
        }
        row
    }

    fn updated(&self, table: &Table, old: Row, assignments: &[Assignment]) -> Option<RowChange> {
        let names = assignments.iter().map(target).collect::<Option<Vec<_>>>()?;
        let columns = names
            .iter()
            .map(|name| Some(table.column(name)?.0))
            .collect::<Option<Vec<_>>>()?;
        let mut new = old.clone();
        new.forget(|position| {
            let column = table.column_at(position);
            columns.contains(&position) || column.is_none_or(|column| column.changes_by_itself)
        });
        for (position, assignment) in columns.iter().zip(assignments) {
            let column = table.column_at(*position)?;
            let known = self.known_when_stored(column, &assignment.value);
            new.set(*position, known.map(|known| vec![known]));
        }
        Some(RowChange::Updated { old, new, columns })
    }

    fn update(&self, update: &Update) -> Option<Effect> {
        let is_odd = update.from.is_some() || update.or.is_some() || update.output.is_some();
        let (name, alias) = single_table(&update.table).filter(|_| !is_odd)?;
        self.change(name, |table| {
            let old = self.selected(table, alias, update.selection.as_ref());
            Some(vec![self.updated(table, old, &update.assignments)?])
        })
    }

    fn delete(&self, delete: &Delete) -> Option<Effect> {
        let FromTable::WithFromKeyword(from) = &delete.from else {
            return None;
        };
        let is_odd = !delete.tables.is_empty() || delete.using.is_some() || delete.output.is_some();
        let [from] = &from[..] else {
            return None;
        };
        let (name, alias) = single_table(from).filter(|_| !is_odd)?;
        self.change(name, |table| {
            let old = self.selected(table, alias, delete.selection.as_ref());
            Some(vec![RowChange::Deleted(old)])
        })
    }

    /// Returns the known contents of the rows that a condition selects.
    fn selected(&self, table: &Table, alias: &str, condition: Option<&Expr>) -> Row {
        let mut row = Row::default();
        if let Some(condition) = condition {
            self.add_known(condition, table, alias, &mut row);
        }
        row
    }

    fn add_known(&self, condition: &Expr, table: &Table, alias: &str, row: &mut Row) {
        let (position, column, operands) = match condition {
            Expr::Nested(inner) => return self.add_known(inner, table, alias, row),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And,
                right,
            } => {
                self.add_known(left, table, alias, row);
                return self.add_known(right, table, alias, row);
            }
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Eq,
                right,
            } => {
                let (found, value) = match column_of(left, table, alias) {
                    Some(found) => (Some(found), right),
                    None => (column_of(right, table, alias), left),
                };
                match (found, Operand::of(value)) {
                    (Some((position, column)), Some(operand)) => (position, column, vec![operand]),
                    _ => return,
                }
            }
            Expr::In {
                expr,
                target: InTarget::List(items),
                negated: false,
                ..
            } => {
                let operands = items.iter().map(Operand::of).collect::<Option<Vec<_>>>();
                match (column_of(expr, table, alias), operands) {
                    (Some((position, column)), Some(operands)) => (position, column, operands),
                    _ => return,
                }
            }
            _ => return,
        };
        let values = || operands.iter().flat_map(|it| it.values(self.arguments));
        if (self.compares_bytes && column.compares_by_collation())
            || !have_one_kind(values())
            || values().count() > MAX_ALTERNATIVES
        {
            return;
        }
        let known: Option<Vec<_>> = values()
            .filter(|value| *value != ValueRef::Null)
            .map(|value| known_to_equal(column, value))
            .collect();
        if let Some(known) = known
            && !known.is_empty()
        {
            row.set(position, Some(known));
        }
    }
}

struct InsertedRow {
    row: Row,
    /// For the column that counts up; otherwise its number is a new one.
    is_number_given: bool,
}

impl InsertedRow {
    /// Returns the known contents of the rows that the inserted one replaces: one for each unique key that it
    /// can share. `None`: nothing is known.
    fn replaced_rows(&self, table: &Table) -> Option<Vec<Row>> {
        let mut replaced = Vec::new();
        for key in table.unique_keys.as_ref()? {
            let mut old = Row::default();
            let mut may_be_shared = true;
            for position in key {
                let column = table.column_at(*position)?;
                match self.row.contents(*position) {
                    // NULL is equal to nothing.
                    Some([KnownContent::Null]) => may_be_shared = false,
                    Some([known]) => old.set(*position, Some(vec![known_of_equal(column, known)])),
                    _ if column.counts_up && !self.is_number_given => may_be_shared = false,
                    _ => return None,
                }
            }
            if may_be_shared {
                replaced.push(old);
            }
        }
        Some(replaced)
    }
}

/// Returns the known content of a column that a unique key finds equal to `known`.
fn known_of_equal(column: &Column, known: &KnownContent) -> KnownContent {
    match known {
        KnownContent::Text(text) if column.compares_by_collation() => {
            KnownContent::EqualTo(text.clone())
        }
        known => known.clone(),
    }
}

fn column_of<'a>(expression: &Expr, table: &'a Table, alias: &str) -> Option<(u16, &'a Column)> {
    match expression {
        Expr::Nested(inner) => column_of(inner, table, alias),
        Expr::Identifier(name) => table.column(&name.value.to_lowercase()),
        Expr::CompoundIdentifier(parts) => match &parts[..] {
            [qualifier, name] if qualifier.value == alias => {
                table.column(&name.value.to_lowercase())
            }
            _ => None,
        },
        _ => None,
    }
}

fn last_name(name: &ObjectName) -> Option<String> {
    Some(name.0.last()?.as_ident()?.value.to_lowercase())
}

fn target(assignment: &Assignment) -> Option<String> {
    match &assignment.target {
        AssignmentTarget::ColumnName(name) => last_name(name),
        AssignmentTarget::Tuple(_) => None,
    }
}

/// Its name and its alias.
fn single_table(table: &TableWithJoins) -> Option<(&ObjectName, &str)> {
    match &table.relation {
        TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } if table.joins.is_empty() => {
            let alias = match alias {
                Some(alias) => &alias.name.value,
                None => &name.0.last()?.as_ident()?.value,
            };
            Some((name, alias))
        }
        _ => None,
    }
}

/// Finds the tables of a write, and refuses what may do more than to write them: functions that are not
/// known, relations that are not understood.
struct WriteVisitor<'a> {
    context: &'a WriteContext<'a>,
    tables: Vec<TableNumber>,
}

impl Visitor for WriteVisitor<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        continue_if(is_plain_body(&query.body))
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table {
                name, args: None, ..
            } => match self.context.relation(name) {
                Some(found) => {
                    self.tables.extend(found);
                    ControlFlow::Continue(())
                }
                None => ControlFlow::Break(()),
            },
            TableFactor::Derived { .. } | TableFactor::NestedJoin { .. } => {
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(()),
        }
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        continue_if(writes_nothing(expression))
    }
}

fn continue_if(condition: bool) -> ControlFlow<()> {
    if condition {
        ControlFlow::Continue(())
    } else {
        ControlFlow::Break(())
    }
}

fn is_plain_body(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => select.into.is_none(),
        SetExpr::SetOperation { left, right, .. } => is_plain_body(left) && is_plain_body(right),
        SetExpr::Query(_) | SetExpr::Values(_) => true,
        _ => false,
    }
}
