//! What a SELECT reads: for each table the conditions that its rows must meet, and the columns that
//! are mentioned.
//!
//! A row that meets no set of conditions cannot alter the result. Conditions count where leaving the
//! row out is all that they do:
//!
//! - WHERE and ON of inner joins, for each table of the same FROM;
//! - for the outer side of LEFT JOIN its own ON, and the former only if one of them rejects nulls:
//!   otherwise the row decides whether a row of nulls stands in its place;
//! - nothing with RIGHT JOIN, FULL JOIN and joins in parentheses.

use std::collections::HashSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query, Select,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins, Visit,
    Visitor,
};

use crate::condition::{Condition, condition};
use crate::functions;
use crate::schema::{Column, Schema};
use crate::statement::{Effect, NotLearned};
use crate::tokens::Argument;
use crate::write::{Row, RowChange};

/// A table of a statement, with all that its rows must meet to matter.
#[derive(Debug, Clone)]
struct TableUse {
    table: (String, String),
    conditions: Vec<Condition>,
}

/// What a shape of statements reads.
#[derive(Debug, Clone)]
pub(crate) struct ReadShape {
    uses: Vec<TableUse>,
    /// `None`: all columns, by `*` or NATURAL JOIN. Names are compared without their tables.
    columns: Option<HashSet<String>>,
}

/// What one statement reads: its shape and its values.
#[derive(Debug, Clone)]
pub struct QueryReading {
    pub(crate) shape: std::sync::Arc<ReadShape>,
    pub(crate) arguments: Vec<Argument>,
}

impl QueryReading {
    /// Database and name of each table.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.shape
            .uses
            .iter()
            .map(|it| (it.table.0.as_str(), it.table.1.as_str()))
    }
}

/// Whether what was written can alter what was read. "No" is a proof.
pub fn may_alter(read: &QueryReading, effect: &Effect, schema: &Schema) -> bool {
    let changes = match effect {
        Effect::Nothing => return false,
        Effect::Everything => return true,
        Effect::Tables(changes) => changes,
    };
    read.shape.uses.iter().any(|table_use| {
        changes
            .iter()
            .filter(|change| change.table == table_use.table)
            .any(|change| {
                let Some(rows) = &change.rows else {
                    return true;
                };
                let matters = |row: &Row| {
                    let arguments = &read.arguments;
                    table_use
                        .conditions
                        .iter()
                        .all(|condition| condition.evaluate(row, arguments).may_be_true())
                };
                rows.iter().any(|row| match row {
                    RowChange::Inserted(row) | RowChange::Deleted(row) => matters(row),
                    RowChange::Updated { old, new, columns } => {
                        mentions(read, &table_use.table, columns, schema)
                            && (matters(old) || matters(new))
                    }
                })
            })
    })
}

/// Whether a change of these columns can be seen at all.
fn mentions(
    read: &QueryReading,
    table: &(String, String),
    changed: &[String],
    schema: &Schema,
) -> bool {
    let (Some(mentioned), Some(table)) = (&read.shape.columns, schema.table(table)) else {
        return true;
    };
    let is_seen = |column: &Column| column.is_indexed || mentioned.contains(&column.name);
    changed
        .iter()
        .any(|name| table.column(name).is_none_or(is_seen))
        || table
            .columns
            .iter()
            .any(|column| column.changes_by_itself && is_seen(column))
}

/// Reads a query with all that is nested in it.
pub(crate) fn read_shape(
    query: &Query,
    database: Option<&str>,
    schema: &Schema,
) -> Result<ReadShape, NotLearned> {
    let mut reader = Reader {
        database,
        schema,
        shape: ReadShape {
            uses: Vec::new(),
            columns: Some(HashSet::new()),
        },
        relations: 0,
        depth: 0,
    };
    if let ControlFlow::Break(reason) = query.visit(&mut reader) {
        return Err(reason);
    }
    // A table that stands where this reader does not look would be missing.
    if reader.relations != reader.shape.uses.len() {
        return Err(NotLearned::Syntax);
    }
    Ok(reader.shape)
}

struct Reader<'a> {
    database: Option<&'a str>,
    schema: &'a Schema,
    shape: ReadShape,
    /// Tables that the parser sees anywhere.
    relations: usize,
    depth: usize,
}

/// Queries within queries. The parser has a bound of its own; this one keeps shapes small.
const MOST_QUERIES: usize = 64;

impl Visitor for Reader<'_> {
    type Break = NotLearned;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<NotLearned> {
        self.depth += 1;
        match self.query(query) {
            Ok(()) if self.depth <= MOST_QUERIES => ControlFlow::Continue(()),
            Ok(()) => ControlFlow::Break(NotLearned::TooLong),
            Err(reason) => ControlFlow::Break(reason),
        }
    }

    fn pre_visit_relation(&mut self, _name: &ObjectName) -> ControlFlow<NotLearned> {
        self.relations += 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<NotLearned> {
        if let Err(reason) = judge(expression) {
            return ControlFlow::Break(reason);
        }
        let name = match expression {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(parts) => parts.last(),
            _ => None,
        };
        if let (Some(columns), Some(name)) = (&mut self.shape.columns, name) {
            columns.insert(name.value.to_lowercase());
        }
        ControlFlow::Continue(())
    }
}

/// Whether a query writes nothing for sure, though its result is not understood: all that it calls
/// and reads is the server's own, such as the clock or a lock.
pub(crate) fn is_harmless(query: &Query, database: Option<&str>, schema: &Schema) -> bool {
    !has_target(&query.body)
        && query
            .visit(&mut HarmVisitor { database, schema })
            .is_continue()
}

struct HarmVisitor<'a> {
    database: Option<&'a str>,
    schema: &'a Schema,
}

impl Visitor for HarmVisitor<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        // A view may call functions.
        let table = table_name(name, self.database);
        let is_known = table.is_ok_and(|table| self.schema.table(&table).is_some());
        if is_known {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if writes_nothing(expression) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

/// Whether evaluating it writes nothing: its value may be that of clock or chance.
pub(crate) fn writes_nothing(expression: &Expr) -> bool {
    use NotLearned as N;
    matches!(
        judge(expression),
        Ok(()) | Err(N::Clock | N::Chance | N::Connection | N::Lock)
    )
}

/// INTO a file or a variable.
fn has_target(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => select.into.is_some(),
        SetExpr::SetOperation { left, right, .. } => has_target(left) || has_target(right),
        SetExpr::Query(query) => has_target(&query.body),
        _ => true,
    }
}

/// Whether an expression is one whose value depends on its operands alone.
pub(crate) fn judge(expression: &Expr) -> Result<(), NotLearned> {
    use sqlparser::ast::{FunctionArguments, Value};
    match expression {
        Expr::Function(function) => {
            let [ObjectNamePart::Identifier(name)] = &function.name.0[..] else {
                return Err(NotLearned::UnknownFunction);
            };
            let arguments = match &function.args {
                FunctionArguments::List(list) => list.args.len(),
                FunctionArguments::None => 0,
                FunctionArguments::Subquery(_) => return Err(NotLearned::Syntax),
            };
            if name.quote_style.is_some() {
                return Err(NotLearned::UnknownFunction);
            }
            functions::judge(&name.value.to_lowercase(), arguments)
        }
        Expr::Value(value) => match &value.value {
            Value::Null | Value::Boolean(_) | Value::Placeholder(_) => Ok(()),
            _ => Err(NotLearned::Syntax),
        },
        // A name without parentheses that is a function.
        Expr::Identifier(Ident {
            value,
            quote_style: None,
            ..
        }) => match &value.to_lowercase()[..] {
            "current_date" | "current_time" | "current_timestamp" | "localtime"
            | "localtimestamp" | "utc_date" | "utc_time" | "utc_timestamp" => {
                Err(NotLearned::Clock)
            }
            "current_user" | "current_role" => Err(NotLearned::Connection),
            _ => Ok(()),
        },
        Expr::CompoundIdentifier(parts) if parts.len() > 3 => Err(NotLearned::Syntax),
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::In { .. }
        | Expr::Between { .. }
        | Expr::BinaryOp { .. }
        | Expr::Like { .. }
        | Expr::RLike { .. }
        | Expr::UnaryOp { .. }
        | Expr::Convert { .. }
        | Expr::Cast { .. }
        | Expr::Extract { .. }
        | Expr::Ceil { .. }
        | Expr::Floor { .. }
        | Expr::Position { .. }
        | Expr::Substring { .. }
        | Expr::Trim { .. }
        | Expr::Collate { .. }
        | Expr::Nested(_)
        | Expr::Case { .. }
        | Expr::Exists { .. }
        | Expr::Subquery(_)
        | Expr::Tuple(_)
        | Expr::Interval(_) => Ok(()),
        _ => Err(NotLearned::Syntax),
    }
}

/// Database and name, as the statement or the session says them.
pub(crate) fn table_name(
    name: &ObjectName,
    database: Option<&str>,
) -> Result<(String, String), NotLearned> {
    let part = |part: &ObjectNamePart| match part {
        ObjectNamePart::Identifier(name) => Ok(name.value.clone()),
        ObjectNamePart::Function(_) => Err(NotLearned::Syntax),
    };
    match &name.0[..] {
        [table] => Ok((
            database.ok_or(NotLearned::UnknownTable)?.to_owned(),
            part(table)?,
        )),
        [database, table] => Ok((part(database)?, part(table)?)),
        _ => Err(NotLearned::Syntax),
    }
}

impl Reader<'_> {
    fn query(&mut self, query: &Query) -> Result<(), NotLearned> {
        if !query.locks.is_empty() {
            return Err(NotLearned::Lock);
        }
        let is_plain = query.with.is_none()
            && query.fetch.is_none()
            && query.for_clause.is_none()
            && query.settings.is_none()
            && query.format_clause.is_none()
            && query.pipe_operators.is_empty();
        if !is_plain {
            return Err(NotLearned::Syntax);
        }
        self.set(&query.body)
    }

    fn set(&mut self, body: &SetExpr) -> Result<(), NotLearned> {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::SetOperation { left, right, .. } => {
                self.set(left)?;
                self.set(right)
            }
            // The visitor comes to it by itself.
            SetExpr::Query(_) | SetExpr::Values(_) => Ok(()),
            _ => Err(NotLearned::Syntax),
        }
    }

    fn select(&mut self, select: &Select) -> Result<(), NotLearned> {
        if select.into.is_some() {
            return Err(NotLearned::Syntax);
        }
        for item in &select.projection {
            match item {
                SelectItem::Wildcard(_)
                | SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(_),
                    _,
                ) => {
                    self.shape.columns = None;
                }
                SelectItem::QualifiedWildcard(..) | SelectItem::ExprWithAliases { .. } => {
                    return Err(NotLearned::Syntax);
                }
                SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. } => {}
            }
        }
        let mut scope = Scope::default();
        for from in &select.from {
            scope.add(from, self.database, self.schema)?;
        }
        if scope.mentions_all {
            self.shape.columns = None;
        }
        if let Some(filter) = &select.selection {
            scope.filters.push(filter.clone());
        }
        self.shape.uses.extend(scope.finish(self.schema));
        Ok(())
    }
}

/// The tables of one FROM.
#[derive(Default)]
struct Scope {
    tables: Vec<ScopeTable>,
    /// Conditions that a row of the whole join must meet.
    filters: Vec<Expr>,
    /// A subquery or function stands among the tables: a name without a table may be one of its columns.
    has_others: bool,
    mentions_all: bool,
    /// Nothing is known of what the joins leave out.
    is_opaque: bool,
}

struct ScopeTable {
    table: (String, String),
    alias: String,
    /// The table is the outer side of a LEFT JOIN with this ON, or without one that is understood.
    outer: Option<Option<Expr>>,
}

impl Scope {
    fn add(
        &mut self,
        from: &TableWithJoins,
        database: Option<&str>,
        schema: &Schema,
    ) -> Result<(), NotLearned> {
        self.factor(&from.relation, None, database, schema)?;
        for Join {
            relation,
            join_operator,
            global,
        } in &from.joins
        {
            if *global {
                return Err(NotLearned::Syntax);
            }
            use JoinOperator as J;
            let outer = match join_operator {
                J::Join(constraint)
                | J::Inner(constraint)
                | J::CrossJoin(constraint)
                | J::StraightJoin(constraint) => {
                    let on = self.on(constraint)?;
                    self.filters.extend(on);
                    None
                }
                J::Left(constraint) | J::LeftOuter(constraint) => Some(self.on(constraint)?),
                J::Right(constraint) | J::RightOuter(constraint) => {
                    self.on(constraint)?;
                    self.is_opaque = true;
                    None
                }
                _ => return Err(NotLearned::Syntax),
            };
            self.factor(relation, outer, database, schema)?;
        }
        Ok(())
    }

    fn on(&mut self, constraint: &JoinConstraint) -> Result<Option<Expr>, NotLearned> {
        match constraint {
            JoinConstraint::On(expression) => Ok(Some(expression.clone())),
            JoinConstraint::None => Ok(None),
            JoinConstraint::Using(_) | JoinConstraint::Natural => {
                self.mentions_all = true;
                Ok(None)
            }
            JoinConstraint::UsingAlias(..) => Err(NotLearned::Syntax),
        }
    }

    fn factor(
        &mut self,
        factor: &TableFactor,
        outer: Option<Option<Expr>>,
        database: Option<&str>,
        schema: &Schema,
    ) -> Result<(), NotLearned> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                version: None,
                sample: None,
                json_path: None,
                ..
            } => {
                let table = table_name(name, database)?;
                if schema.table(&table).is_none() {
                    return Err(NotLearned::UnknownTable);
                }
                let alias = alias
                    .as_ref()
                    .map_or_else(|| table.1.clone(), |alias| alias.name.value.clone());
                self.tables.push(ScopeTable {
                    table,
                    alias,
                    outer,
                });
            }
            // Its tables are found where the visitor comes to the query.
            TableFactor::Derived {
                lateral: false,
                sample: None,
                ..
            } => self.has_others = true,
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => {
                self.is_opaque = true;
                self.add(table_with_joins, database, schema)?;
            }
            _ => return Err(NotLearned::Syntax),
        }
        Ok(())
    }

    fn finish(self, schema: &Schema) -> Vec<TableUse> {
        let uses = self.tables.iter().map(|table| {
            let conditions = if self.is_opaque {
                Vec::new()
            } else {
                self.conditions_of(table, schema)
            };
            TableUse {
                table: table.table.clone(),
                conditions,
            }
        });
        uses.collect()
    }

    fn conditions_of(&self, table: &ScopeTable, schema: &Schema) -> Vec<Condition> {
        let column = |expression: &Expr| self.column_of(table, expression, schema);
        let filters: Vec<_> = self
            .filters
            .iter()
            .map(|filter| condition(filter, &column))
            .collect();
        match &table.outer {
            None => filters,
            Some(on) => {
                let mut own: Vec<_> = on.iter().map(|on| condition(on, &column)).collect();
                if filters.iter().any(Condition::rejects_nulls) {
                    own.extend(filters);
                }
                own
            }
        }
    }

    /// The column of `table` that an expression is, if it surely is one.
    fn column_of(&self, table: &ScopeTable, expression: &Expr, schema: &Schema) -> Option<Column> {
        match expression {
            Expr::Nested(inner) => self.column_of(table, inner, schema),
            Expr::Identifier(name) => {
                let name = name.value.to_lowercase();
                let has = |other: &&ScopeTable| {
                    schema
                        .table(&other.table)
                        .is_some_and(|table| table.column(&name).is_some())
                };
                if self.has_others || self.tables.iter().filter(has).count() != 1 {
                    return None;
                }
                schema.table(&table.table)?.column(&name).cloned()
            }
            Expr::CompoundIdentifier(parts) => {
                let [alias, name] = &parts[..] else {
                    return None;
                };
                // The same name twice, or one that differs in case alone, is not told apart here.
                let has_name = |it: &&ScopeTable| it.alias.eq_ignore_ascii_case(&alias.value);
                if self.tables.iter().filter(has_name).count() != 1 || table.alias != alias.value {
                    return None;
                }
                schema
                    .table(&table.table)?
                    .column(&name.value.to_lowercase())
                    .cloned()
            }
            _ => None,
        }
    }
}
