//! The data that a SELECT reads: for each table the conditions that its rows must meet, and the columns
//! that are mentioned.
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

use crate::arguments::Arguments;
use crate::condition::{Condition, condition};
use crate::functions;
use crate::not_learned::NotLearned;
use crate::row::{Effect, Row, RowChange};
use crate::schema::{ColumnKind, ColumnUse, Relation, Schema, TableNumber};
use crate::session::Session;

/// A table of a statement, with all that its rows must meet to matter.
#[derive(Debug, Clone)]
pub(crate) struct TableUse {
    pub(crate) table: TableNumber,
    pub(crate) conditions: Vec<Condition>,
    /// By position, whether a change of the column can be seen. `None`: all, by `*` or NATURAL JOIN.
    seen_columns: Option<Box<[bool]>>,
    /// Some column that changes by itself can be seen.
    sees_changes_by_themselves: bool,
}

impl TableUse {
    /// Whether a row can pass all conditions.
    pub(crate) fn may_have(&self, row: &Row, arguments: &Arguments) -> bool {
        self.conditions
            .iter()
            .all(|condition| condition.evaluate(row, arguments).may_be_true())
    }

    /// Whether a change of these columns can be seen at all.
    pub(crate) fn sees(&self, changed: &[u16]) -> bool {
        let Some(seen) = &self.seen_columns else {
            return true;
        };
        self.sees_changes_by_themselves
            || changed
                .iter()
                .any(|position| seen.get(usize::from(*position)).is_none_or(|it| *it))
    }

    /// Whether a changed row can alter what is read.
    pub(crate) fn is_altered_by(&self, change: &RowChange, arguments: &Arguments) -> bool {
        match change {
            RowChange::Inserted(row) | RowChange::Deleted(row) => self.may_have(row, arguments),
            RowChange::Updated { old, new, columns } => {
                self.sees(columns)
                    && (self.may_have(old, arguments) || self.may_have(new, arguments))
            }
        }
    }
}

/// The tables that a shape of statements reads, with their conditions.
#[derive(Debug, Clone)]
pub(crate) struct ReadShape {
    /// The text of the shape: `SELECT a FROM t WHERE b = ?0`.
    pub(crate) text: String,
    pub(crate) uses: Vec<TableUse>,
}

impl ReadShape {
    /// Any rows of these tables.
    pub(crate) fn of_tables(text: String, tables: &[TableNumber]) -> Self {
        let uses = tables.iter().map(|table| TableUse {
            table: *table,
            conditions: Vec::new(),
            seen_columns: None,
            sees_changes_by_themselves: true,
        });
        Self {
            text,
            uses: uses.collect(),
        }
    }
}

/// The reading of one statement: its shape and its values.
#[derive(Debug, Clone)]
pub struct QueryReading {
    pub(crate) shape: std::sync::Arc<ReadShape>,
    pub(crate) arguments: Arguments,
}

impl QueryReading {
    pub fn tables(&self) -> impl Iterator<Item = TableNumber> {
        self.shape.uses.iter().map(|it| it.table)
    }
}

/// Whether what was written can alter what was read. "No" is a proof.
pub fn may_alter(read: &QueryReading, effect: &Effect) -> bool {
    may_alter_shape(&read.shape, &read.arguments, effect)
}

pub(crate) fn may_alter_shape(shape: &ReadShape, arguments: &Arguments, effect: &Effect) -> bool {
    let changes = match effect {
        Effect::Nothing => return false,
        Effect::Everything => return true,
        Effect::Tables(changes) => changes,
    };
    shape.uses.iter().any(|table_use| {
        changes
            .iter()
            .filter(|change| change.table == table_use.table)
            .any(|change| match &change.rows {
                None => true,
                Some(rows) => rows
                    .iter()
                    .any(|row| table_use.is_altered_by(row, arguments)),
            })
    })
}

/// Reads a query with all that is nested in it.
pub(crate) fn read_shape(
    query: &Query,
    session: &Session,
    schema: &Schema,
) -> Result<ReadShape, NotLearned> {
    let mut reader = Reader {
        database: session.database.as_deref(),
        compares_bytes: session.compares_bytes(),
        schema,
        own_names: own_names(query),
        tables: Vec::new(),
        columns: Some(HashSet::new()),
        relations: 0,
        looked_at: 0,
        depth: 0,
    };
    if let ControlFlow::Break(reason) = query.visit(&mut reader) {
        return Err(reason);
    }
    // A table that stands where this reader does not look would be missing.
    if reader.relations != reader.looked_at {
        return Err(NotLearned::Syntax);
    }
    let Reader {
        tables, columns, ..
    } = reader;
    let uses = tables
        .into_iter()
        .map(|(table, conditions)| table_use(table, conditions, columns.as_ref(), schema));
    Ok(ReadShape {
        text: String::new(),
        uses: uses.collect(),
    })
}

fn table_use(
    table: TableNumber,
    conditions: Vec<Condition>,
    mentioned: Option<&HashSet<String>>,
    schema: &Schema,
) -> TableUse {
    let columns = schema.table(table).map_or(&[][..], |table| &table.columns);
    // Names are compared without their tables.
    let seen_columns: Option<Box<[bool]>> = mentioned.map(|mentioned| {
        columns
            .iter()
            .map(|column| column.is_indexed || mentioned.contains(&column.name))
            .collect()
    });
    let sees_changes_by_themselves = seen_columns.as_ref().is_none_or(|seen| {
        columns
            .iter()
            .zip(seen)
            .any(|(column, is_seen)| column.changes_by_itself && *is_seen)
    });
    TableUse {
        table,
        conditions,
        seen_columns,
        sees_changes_by_themselves,
    }
}

/// The names that WITH gives to queries, anywhere.
fn own_names(query: &Query) -> HashSet<String> {
    struct WithVisitor(HashSet<String>);
    impl Visitor for WithVisitor {
        type Break = ();
        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            let tables = query.with.iter().flat_map(|with| &with.cte_tables);
            self.0
                .extend(tables.map(|table| table.alias.name.value.to_lowercase()));
            ControlFlow::Continue(())
        }
    }
    let mut visitor = WithVisitor(HashSet::new());
    let _ = query.visit(&mut visitor);
    visitor.0
}

struct Reader<'a> {
    database: Option<&'a str>,
    compares_bytes: bool,
    schema: &'a Schema,
    own_names: HashSet<String>,
    tables: Vec<(TableNumber, Vec<Condition>)>,
    /// `None`: all.
    columns: Option<HashSet<String>>,
    /// Names of tables that the parser sees anywhere, and those that were looked at here.
    relations: usize,
    looked_at: usize,
    depth: usize,
}

/// Queries within queries. The parser has a bound of its own; this one keeps shapes small.
const MAX_QUERIES: usize = 64;

impl Visitor for Reader<'_> {
    type Break = NotLearned;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<NotLearned> {
        self.depth += 1;
        match self.query(query) {
            Ok(()) if self.depth <= MAX_QUERIES => ControlFlow::Continue(()),
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
        if let (Some(columns), Some(name)) = (&mut self.columns, name) {
            columns.insert(name.value.to_lowercase());
        }
        ControlFlow::Continue(())
    }
}

/// Whether a query writes nothing for sure, though its result is not understood: all that it calls
/// and reads is the server's own, such as the clock or a lock.
pub(crate) fn is_harmless(query: &Query, database: Option<&str>, schema: &Schema) -> bool {
    query
        .visit(&mut HarmVisitor {
            database,
            schema,
            own_names: own_names(query),
        })
        .is_continue()
}

struct HarmVisitor<'a> {
    database: Option<&'a str>,
    schema: &'a Schema,
    own_names: HashSet<String>,
}

impl Visitor for HarmVisitor<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        // `TABLE a` names a relation that is not visited.
        if has_target(&query.body) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        // A view that is not understood may call functions.
        let is_known = table_name(name, self.database).is_ok_and(|table| {
            matches!(
                self.schema.relation(&table),
                Some(Relation::Base(_) | Relation::View(_))
            )
        });
        if is_known || is_own_name(name, &self.own_names) || is_of_server(name) {
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

/// The server's own descriptions, and the table that is none.
fn is_of_server(name: &ObjectName) -> bool {
    let is = |part: &ObjectNamePart, names: &[&str]| match part {
        ObjectNamePart::Identifier(name) => {
            names.iter().any(|it| name.value.eq_ignore_ascii_case(it))
        }
        ObjectNamePart::Function(_) => false,
    };
    match &name.0[..] {
        [name] => is_dual(name),
        [database, _] => is(database, &["information_schema", "performance_schema"]),
        _ => false,
    }
}

fn is_dual(name: &ObjectNamePart) -> bool {
    matches!(name, ObjectNamePart::Identifier(Ident { value, quote_style: None, .. })
        if value.eq_ignore_ascii_case("dual"))
}

fn is_own_name(name: &ObjectName, own_names: &HashSet<String>) -> bool {
    matches!(&name.0[..], [ObjectNamePart::Identifier(name)] if own_names.contains(&name.value.to_lowercase()))
}

/// Whether evaluating it writes nothing: its value may be that of clock or chance.
pub(crate) fn writes_nothing(expression: &Expr) -> bool {
    use NotLearned as N;
    matches!(
        judge(expression),
        Ok(()) | Err(N::Clock | N::Chance | N::Connection | N::Lock)
    )
}

/// INTO a file or a variable, or what is no SELECT.
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

/// Returns database and name of a table, as the statement or the session names them.
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
        let is_plain = query.fetch.is_none()
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
                    self.columns = None;
                }
                SelectItem::QualifiedWildcard(..) | SelectItem::ExprWithAliases { .. } => {
                    return Err(NotLearned::Syntax);
                }
                SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. } => {}
            }
        }
        let mut scope = Scope {
            compares_bytes: self.compares_bytes,
            ..Scope::default()
        };
        for from in &select.from {
            scope.add(from, self)?;
        }
        if scope.mentions_all {
            self.columns = None;
        }
        if let Some(filter) = &select.selection {
            scope.filters.push(filter.clone());
        }
        self.looked_at += scope.looked_at;
        self.tables.extend(scope.finish(self.schema));
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
    /// Texts of the statement are compared by their bytes, whatever the collation of the column.
    compares_bytes: bool,
    /// Base tables of views.
    behind_views: Vec<TableNumber>,
    looked_at: usize,
}

struct ScopeTable {
    table: TableNumber,
    alias: String,
    /// The table is the outer side of a LEFT JOIN with this ON, or without one that is understood.
    outer: Option<Option<Expr>>,
}

impl Scope {
    fn add(&mut self, from: &TableWithJoins, reader: &Reader<'_>) -> Result<(), NotLearned> {
        self.factor(&from.relation, None, reader)?;
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
                // Without ON the parser has read the joins otherwise than the server does.
                J::Left(JoinConstraint::None)
                | J::LeftOuter(JoinConstraint::None)
                | J::Right(JoinConstraint::None)
                | J::RightOuter(JoinConstraint::None) => return Err(NotLearned::Syntax),
                J::Left(constraint) | J::LeftOuter(constraint) => Some(self.on(constraint)?),
                J::Right(constraint) | J::RightOuter(constraint) => {
                    self.on(constraint)?;
                    self.is_opaque = true;
                    None
                }
                _ => return Err(NotLearned::Syntax),
            };
            self.factor(relation, outer, reader)?;
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
        reader: &Reader<'_>,
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
                self.looked_at += 1;
                if let [name] = &name.0[..]
                    && is_dual(name)
                {
                    return Ok(());
                }
                let relation =
                    table_name(name, reader.database).map(|it| reader.schema.relation(&it));
                if is_own_name(name, &reader.own_names) {
                    // Which of both is meant depends on where the name stands.
                    if matches!(relation, Ok(Some(_))) {
                        return Err(NotLearned::Syntax);
                    }
                    self.has_others = true;
                    return Ok(());
                }
                match relation? {
                    Some(Relation::Base(table)) => {
                        let alias = match alias {
                            Some(alias) => alias.name.value.clone(),
                            None => last_name(name)?,
                        };
                        self.tables.push(ScopeTable {
                            table: *table,
                            alias,
                            outer,
                        });
                    }
                    Some(Relation::View(tables)) => {
                        self.behind_views.extend(tables);
                        self.has_others = true;
                        self.mentions_all = true;
                    }
                    Some(Relation::Unclear) | None => return Err(NotLearned::UnknownTable),
                }
            }
            // Its tables are found where the visitor comes to the query.
            TableFactor::Derived { sample: None, .. } => self.has_others = true,
            // The visitor comes to the expression of which it makes rows.
            TableFactor::JsonTable { .. } => self.has_others = true,
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => {
                self.is_opaque = true;
                self.add(table_with_joins, reader)?;
            }
            _ => return Err(NotLearned::Syntax),
        }
        Ok(())
    }

    fn finish(self, schema: &Schema) -> Vec<(TableNumber, Vec<Condition>)> {
        let own = self.tables.iter().map(|table| {
            let conditions = if self.is_opaque {
                Vec::new()
            } else {
                self.conditions_of(table, schema)
            };
            (table.table, conditions)
        });
        let behind_views = self.behind_views.iter().map(|table| (*table, Vec::new()));
        own.chain(behind_views).collect()
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
    fn column_of(
        &self,
        table: &ScopeTable,
        expression: &Expr,
        schema: &Schema,
    ) -> Option<ColumnUse> {
        let column = |other: &ScopeTable, name: &str| {
            let (position, column) = schema.table(other.table)?.column(name)?;
            let kind = match column.kind {
                ColumnKind::Text { .. } if self.compares_bytes => ColumnKind::Other,
                kind => kind,
            };
            Some(ColumnUse { position, kind })
        };
        match expression {
            Expr::Nested(inner) => self.column_of(table, inner, schema),
            Expr::Identifier(name) => {
                let name = name.value.to_lowercase();
                let having = self.tables.iter().filter(|it| column(it, &name).is_some());
                if self.has_others || having.count() != 1 {
                    return None;
                }
                column(table, &name)
            }
            Expr::CompoundIdentifier(parts) => {
                let [alias, name] = &parts[..] else {
                    return None;
                };
                // A name that stands twice, or that differs from another in case alone, is ambiguous here.
                let has_name = |it: &&ScopeTable| it.alias.eq_ignore_ascii_case(&alias.value);
                if self.tables.iter().filter(has_name).count() != 1 || table.alias != alias.value {
                    return None;
                }
                column(table, &name.value.to_lowercase())
            }
            _ => None,
        }
    }
}

fn last_name(name: &ObjectName) -> Result<String, NotLearned> {
    match name.0.last() {
        Some(ObjectNamePart::Identifier(name)) => Ok(name.value.clone()),
        _ => Err(NotLearned::Syntax),
    }
}
