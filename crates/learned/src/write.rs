//! What a statement writes, as far as it says so itself.
//!
//! The written row is taken from the statement: `WHERE column = value` is known of the row before,
//! `SET column = value` and `VALUES` of the row after, and all else is unknown.

use std::collections::HashMap;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Assignment, AssignmentTarget, BinaryOperator, Delete, Expr, FromTable, InTarget, Insert,
    ObjectName, SetExpr, TableFactor, TableObject, TableWithJoins, Update, visit_expressions,
};

use crate::condition::Operand;
use crate::read::{table_name, writes_nothing};
use crate::schema::{Column, Schema, Table};
use crate::statement::Effect;
use crate::tokens::Argument;
use crate::value::{KnownContent, Value, known_to_equal, known_when_stored};

/// Of one INSERT. With more the whole table counts as written.
pub const MOST_ROWS: usize = 64;

/// Values behind IN that are followed one by one.
const MOST_ALTERNATIVES: usize = 64;

/// What is known of a row: for some columns the contents that are possible.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    columns: HashMap<String, Vec<KnownContent>>,
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

    /// A row as a log of changes has it. Values of columns that are not told are unknown.
    pub fn image<'a>(table: &Table, values: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let mut row = Self::default();
        for (name, value) in values {
            // What was stored is not converted any more; what could not have been stored as such is unknown.
            if let Some(column) = table.column(name)
                && let Some(known) = known_when_stored(column, &value)
            {
                row.columns.insert(column.name.clone(), vec![known]);
            }
        }
        row
    }

    /// `None`: anything is possible.
    pub(crate) fn contents(&self, column: &str) -> Option<&[KnownContent]> {
        if self.has_nulls_alone {
            return Some(&[KnownContent::Null]);
        }
        self.columns.get(column).map(Vec::as_slice)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowChange {
    Inserted(Row),
    Deleted(Row),
    /// `columns` are those that were set; others are the same as before, or change by themselves.
    Updated {
        old: Row,
        new: Row,
        columns: Vec<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableChange {
    /// Database and name.
    pub table: (String, String),
    /// `None`: any row may have changed in any way.
    pub rows: Option<Vec<RowChange>>,
}

/// What writes have in common: where names are looked up.
pub(crate) struct WriteContext<'a> {
    pub(crate) database: Option<&'a str>,
    pub(crate) schema: &'a Schema,
    pub(crate) arguments: &'a [Argument],
}

impl WriteContext<'_> {
    /// The effect on one table; of everything if the table has triggers or is not known.
    fn effect(
        &self,
        name: &ObjectName,
        rows: impl FnOnce(&Table) -> Option<Vec<RowChange>>,
    ) -> Effect {
        let Ok(name) = table_name(name, self.database) else {
            return Effect::Everything;
        };
        match self.schema.table(&name) {
            Some(table) if !table.has_effects_elsewhere => {
                let rows = rows(table);
                Effect::Tables(vec![TableChange { table: name, rows }])
            }
            _ => Effect::Everything,
        }
    }

    fn value(&self, expression: &Expr) -> Value {
        match Operand::of(expression).map(|operand| operand.values(self.arguments)) {
            Some(values) if values.len() == 1 => values[0].clone(),
            _ => Value::Other,
        }
    }

    pub(crate) fn truncate(&self, name: &ObjectName) -> Effect {
        self.effect(name, |_| None)
    }

    pub(crate) fn insert(&self, insert: &Insert) -> Effect {
        let TableObject::TableName(name) = &insert.table else {
            return Effect::Everything;
        };
        if calls_unknown_functions(insert) {
            return Effect::Everything;
        }
        self.effect(name, |table| {
            // Both remove or change a row of which the statement says nothing.
            if insert.replace_into || insert.on.is_some() {
                return None;
            }
            if !insert.assignments.is_empty() {
                let values = insert
                    .assignments
                    .iter()
                    .map(|it| Some((target(it)?, &it.value)));
                return Some(vec![RowChange::Inserted(
                    self.stored(table, values.collect::<Option<Vec<_>>>()?),
                )]);
            }
            let SetExpr::Values(values) = &*insert.source.as_ref()?.body else {
                return None;
            };
            if values.rows.len() > MOST_ROWS {
                return None;
            }
            let names: Vec<_> = if insert.columns.is_empty() {
                table
                    .columns
                    .iter()
                    .map(|column| column.name.clone())
                    .collect()
            } else {
                insert
                    .columns
                    .iter()
                    .map(last_name)
                    .collect::<Option<_>>()?
            };
            let rows = values.rows.iter().map(|row| {
                let row = row.content.iter();
                RowChange::Inserted(self.stored(table, names.iter().cloned().zip(row).collect()))
            });
            Some(rows.collect())
        })
    }

    fn stored(&self, table: &Table, values: Vec<(String, &Expr)>) -> Row {
        let mut row = Row::default();
        for (name, expression) in values {
            if let Some(column) = table.column(&name)
                && let Some(known) = known_when_stored(column, &self.value(expression))
            {
                row.columns.insert(name, vec![known]);
            }
        }
        row
    }

    pub(crate) fn update(&self, update: &Update) -> Effect {
        let is_odd = update.from.is_some() || update.or.is_some() || update.output.is_some();
        let Some((name, alias)) = single_table(&update.table).filter(|_| !is_odd) else {
            return Effect::Everything;
        };
        if calls_unknown_functions(update) {
            return Effect::Everything;
        }
        self.effect(name, |table| {
            let names: Vec<_> = update
                .assignments
                .iter()
                .map(target)
                .collect::<Option<_>>()?;
            let old = self.selected(table, alias, update.selection.as_ref());
            let mut new = old.clone();
            new.columns.retain(|name, _| {
                !names.contains(name)
                    && table
                        .column(name)
                        .is_some_and(|column| !column.changes_by_itself)
            });
            let values = names
                .iter()
                .cloned()
                .zip(update.assignments.iter().map(|it| &it.value));
            let stored = self.stored(table, values.collect());
            new.columns.extend(stored.columns);
            Some(vec![RowChange::Updated {
                old,
                new,
                columns: names,
            }])
        })
    }

    pub(crate) fn delete(&self, delete: &Delete) -> Effect {
        let FromTable::WithFromKeyword(from) = &delete.from else {
            return Effect::Everything;
        };
        let is_odd = !delete.tables.is_empty() || delete.using.is_some() || delete.output.is_some();
        let [from] = &from[..] else {
            return Effect::Everything;
        };
        let Some((name, alias)) = single_table(from).filter(|_| !is_odd) else {
            return Effect::Everything;
        };
        if calls_unknown_functions(delete) {
            return Effect::Everything;
        }
        self.effect(name, |table| {
            Some(vec![RowChange::Deleted(self.selected(
                table,
                alias,
                delete.selection.as_ref(),
            ))])
        })
    }

    /// What is known of the rows that a condition selects.
    fn selected(&self, table: &Table, alias: &str, condition: Option<&Expr>) -> Row {
        let mut row = Row::default();
        if let Some(condition) = condition {
            self.add_known(condition, table, alias, &mut row);
        }
        row
    }

    fn add_known(&self, condition: &Expr, table: &Table, alias: &str, row: &mut Row) {
        let (column, values) = match condition {
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
                let (column, value) = match column_of(left, table, alias) {
                    Some(column) => (Some(column), right),
                    None => (column_of(right, table, alias), left),
                };
                let Some(column) = column else {
                    return;
                };
                (column, vec![self.value(value)])
            }
            Expr::In {
                expr,
                target: InTarget::List(items),
                negated: false,
                ..
            } => {
                let operands = items.iter().map(Operand::of).collect::<Option<Vec<_>>>();
                match (column_of(expr, table, alias), operands) {
                    (Some(column), Some(operands)) => (
                        column,
                        operands
                            .iter()
                            .flat_map(|it| it.values(self.arguments))
                            .collect(),
                    ),
                    _ => return,
                }
            }
            _ => return,
        };
        // With values of several kinds in one list, the comparison of each depends on the others.
        let has_one_kind = values
            .windows(2)
            .all(|it| matches!(it[0], Value::Integer(_)) == matches!(it[1], Value::Integer(_)));
        let known = values
            .iter()
            .map(|value| known_to_equal(column, value))
            .collect::<Option<Vec<_>>>();
        if let Some(known) = known
            && has_one_kind
            && !known.is_empty()
            && known.len() <= MOST_ALTERNATIVES
        {
            row.columns.insert(column.name.clone(), known);
        }
    }
}

fn column_of<'a>(expression: &Expr, table: &'a Table, alias: &str) -> Option<&'a Column> {
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

/// A function that is not known may write other tables.
fn calls_unknown_functions(statement: &impl sqlparser::ast::Visit) -> bool {
    let flow = visit_expressions(statement, |expression| {
        if writes_nothing(expression) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    flow.is_break()
}
