//! One statement of PostgreSQL, walked through: its tables, and all that its result depends on besides.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;

use sqlparser::ast::{
    CopySource, Expr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, Select,
    SelectItem, SetExpr, Statement, TableFactor, Value, Visit, Visitor,
};

use crate::not_learned::NotLearned;
use crate::schema::{Relation, Schema, TableNumber};

use super::functions;
use super::schema::{OwnFunction, PostgresFacts};

/// Queries within queries.
const MAX_QUERIES: usize = 64;

/// What is described by definitions alone, whose changes count as changes of everything.
const CATALOGS: [&str; 13] = [
    "pg_attrdef",
    "pg_attribute",
    "pg_class",
    "pg_constraint",
    "pg_enum",
    "pg_index",
    "pg_indexes",
    "pg_inherits",
    "pg_namespace",
    "pg_proc",
    "pg_tables",
    "pg_type",
    "pg_views",
];
const INFORMATION: [&str; 8] = [
    "columns",
    "constraint_column_usage",
    "key_column_usage",
    "referential_constraints",
    "schemata",
    "table_constraints",
    "tables",
    "views",
];

/// Columns of catalogs that the server changes by itself.
const COUNTED: [&str; 8] = [
    "relallvisible",
    "relfilenode",
    "relfrozenxid",
    "relhasindex",
    "relminmxid",
    "relpages",
    "reltuples",
    "xmin",
];

pub(super) struct Reader<'a> {
    schema: &'a Schema,
    facts: &'a PostgresFacts,
    /// The names that WITH gives to queries.
    own_names: HashSet<String>,
    /// Those that are read or written, with their partitions.
    pub(super) tables: BTreeSet<TableNumber>,
    /// Why the result cannot be followed, though nothing is written.
    pub(super) reason: Option<NotLearned>,
    /// The next relation is the name of a function.
    is_function: bool,
    reads_catalogs: bool,
    shows_all: bool,
    names_counted: bool,
    queries: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(schema: &'a Schema, facts: &'a PostgresFacts) -> Self {
        Self {
            schema,
            facts,
            own_names: HashSet::new(),
            tables: BTreeSet::new(),
            reason: None,
            is_function: false,
            reads_catalogs: false,
            shows_all: false,
            names_counted: false,
            queries: 0,
        }
    }

    /// `Err`: it may write anything.
    pub(super) fn read(&mut self, statement: &Statement) -> Result<(), NotLearned> {
        if self.facts.has_strange_operators {
            return Err(NotLearned::UnknownFunction);
        }
        let mut names = NameVisitor::default();
        let _ = statement.visit(&mut names);
        self.own_names = names.0;
        if let ControlFlow::Break(reason) = statement.visit(self) {
            return Err(reason);
        }
        if let Statement::Copy {
            source: CopySource::Table { table_name, .. },
            ..
        } = statement
        {
            self.relation(table_name)?;
        }
        if self.reads_catalogs && (self.shows_all || self.names_counted) {
            self.note(NotLearned::SystemVariable);
        }
        Ok(())
    }

    fn note(&mut self, reason: NotLearned) {
        self.reason.get_or_insert(reason);
    }

    /// Notes that a value depends on more than tables. `Break`: it may do anything.
    fn judged(&mut self, judged: Result<(), NotLearned>) -> ControlFlow<NotLearned> {
        match judged {
            Ok(()) => ControlFlow::Continue(()),
            Err(reason @ (NotLearned::UnknownFunction | NotLearned::Syntax)) => {
                ControlFlow::Break(reason)
            }
            Err(reason) => {
                self.note(reason);
                ControlFlow::Continue(())
            }
        }
    }

    fn function(&self, name: &ObjectName, arguments: usize) -> Result<(), NotLearned> {
        let name = match &name.0[..] {
            [ObjectNamePart::Identifier(name)] => folded(name),
            [
                ObjectNamePart::Identifier(schema),
                ObjectNamePart::Identifier(name),
            ] if folded(schema) == "pg_catalog" => folded(name),
            _ => return Err(NotLearned::UnknownFunction),
        };
        let listed = functions::judge(&name, arguments);
        match (self.facts.functions.get(&name), listed) {
            (None, listed) => listed,
            (Some(OwnFunction::Anything), _) => Err(NotLearned::UnknownFunction),
            // Beside one of the server's own of the same name.
            (Some(OwnFunction::Pure), Err(NotLearned::UnknownFunction)) => Ok(()),
            (Some(OwnFunction::Pure), listed) => listed,
            // It may depend on the clock, or on tables that it does not name here.
            (Some(OwnFunction::Reads), _) => Err(NotLearned::SystemVariable),
        }
    }

    fn relation(&mut self, name: &ObjectName) -> Result<(), NotLearned> {
        let part = |part: &ObjectNamePart| match part {
            ObjectNamePart::Identifier(name) => Ok(folded(name)),
            ObjectNamePart::Function(_) => Err(NotLearned::Syntax),
        };
        let found = match &name.0[..] {
            [name] => {
                let name = part(name)?;
                if name.starts_with("pg_") {
                    return self.catalog(&name, &CATALOGS);
                }
                match (self.facts.schema_of(&name), self.own_names.contains(&name)) {
                    (Some(schema), _) => (schema.to_owned(), name),
                    (None, true) => return Ok(()),
                    (None, false) => return Err(NotLearned::UnknownTable),
                }
            }
            [schema, name] => {
                let (schema, name) = (part(schema)?, part(name)?);
                match &*schema {
                    "pg_catalog" => return self.catalog(&name, &CATALOGS),
                    "information_schema" => return self.catalog(&name, &INFORMATION),
                    _ => (schema, name),
                }
            }
            _ => return Err(NotLearned::UnknownTable),
        };
        match self.schema.relation(&found) {
            Some(Relation::Base(table)) => self.tables.extend(self.facts.with_partitions(*table)),
            Some(Relation::View(tables)) => self.tables.extend(tables),
            Some(Relation::Unclear) | None => return Err(NotLearned::UnknownTable),
        }
        Ok(())
    }

    fn catalog(&mut self, name: &str, described: &[&str]) -> Result<(), NotLearned> {
        self.reads_catalogs = true;
        if !described.contains(&name) {
            self.note(NotLearned::SystemVariable);
        }
        Ok(())
    }
}

/// A name as the server reads it.
fn folded(name: &Ident) -> String {
    match name.quote_style {
        None => name.value.to_ascii_lowercase(),
        Some(_) => name.value.clone(),
    }
}

#[derive(Default)]
struct NameVisitor(HashSet<String>);

impl Visitor for NameVisitor {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        self.0.extend(tables.map(|table| folded(&table.alias.name)));
        ControlFlow::Continue(())
    }
}

impl Visitor for Reader<'_> {
    type Break = NotLearned;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<NotLearned> {
        self.queries += 1;
        if self.queries > MAX_QUERIES {
            return ControlFlow::Break(NotLearned::TooLong);
        }
        let is_plain = query.for_clause.is_none()
            && query.settings.is_none()
            && query.format_clause.is_none()
            && query.pipe_operators.is_empty();
        // A query that writes, INTO, `TABLE t`.
        if !is_plain || !is_read(&query.body) {
            return ControlFlow::Break(NotLearned::Syntax);
        }
        if !query.locks.is_empty() {
            self.note(NotLearned::Lock);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<NotLearned> {
        self.shows_all |= select.projection.iter().any(|item| {
            matches!(
                item,
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
            )
        });
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<NotLearned> {
        match factor {
            TableFactor::Table {
                name,
                args,
                version: None,
                sample: None,
                json_path: None,
                ..
            } => match args {
                None => ControlFlow::Continue(()),
                Some(args) => {
                    self.is_function = true;
                    self.judged(self.function(name, args.args.len()))
                }
            },
            TableFactor::Function { name, args, .. } => {
                self.judged(self.function(name, args.len()))
            }
            TableFactor::Derived { sample: None, .. }
            | TableFactor::UNNEST { .. }
            | TableFactor::NestedJoin { .. } => ControlFlow::Continue(()),
            _ => ControlFlow::Break(NotLearned::Syntax),
        }
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<NotLearned> {
        if std::mem::take(&mut self.is_function) {
            return ControlFlow::Continue(());
        }
        match self.relation(name) {
            Ok(()) => ControlFlow::Continue(()),
            Err(reason) => ControlFlow::Break(reason),
        }
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<NotLearned> {
        let judged = match expression {
            Expr::Function(function) => {
                let arguments = match &function.args {
                    FunctionArguments::List(list) => list.args.len(),
                    FunctionArguments::None | FunctionArguments::Subquery(_) => 0,
                };
                self.function(&function.name, arguments)
            }
            // Some functions have no parentheses.
            Expr::Identifier(name) if name.quote_style.is_none() => {
                let name = folded(name);
                self.names_counted |= COUNTED.contains(&&*name);
                match &*name {
                    "current_date" | "current_time" | "current_timestamp" | "localtime"
                    | "localtimestamp" => Err(NotLearned::Clock),
                    "current_user" | "session_user" | "user" | "current_role" => {
                        Err(NotLearned::Connection)
                    }
                    _ => Ok(()),
                }
            }
            // `t.f` may call the function f.
            Expr::CompoundIdentifier(parts) => {
                let name = parts.last().map(folded).unwrap_or_default();
                self.names_counted |= COUNTED.contains(&&*name);
                match self.facts.functions.get(&name) {
                    Some(_) => Err(NotLearned::UnknownFunction),
                    None => Ok(()),
                }
            }
            Expr::Value(value) => match &value.value {
                Value::Number(..)
                | Value::SingleQuotedString(_)
                | Value::EscapedStringLiteral(_)
                | Value::NationalStringLiteral(_)
                | Value::HexStringLiteral(_)
                | Value::Boolean(_)
                | Value::Null
                | Value::Placeholder(_) => Ok(()),
                _ => Err(NotLearned::Syntax),
            },
            Expr::Identifier(_)
            | Expr::CompoundFieldAccess { .. }
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::IsTrue(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotUnknown(_)
            | Expr::IsDistinctFrom(..)
            | Expr::IsNotDistinctFrom(..)
            | Expr::In { .. }
            | Expr::Between { .. }
            | Expr::BinaryOp { .. }
            | Expr::Like { .. }
            | Expr::ILike { .. }
            | Expr::SimilarTo { .. }
            | Expr::AnyOp { .. }
            | Expr::AllOp { .. }
            | Expr::UnaryOp { .. }
            | Expr::Cast { .. }
            | Expr::AtTimeZone { .. }
            | Expr::Extract { .. }
            | Expr::Ceil { .. }
            | Expr::Floor { .. }
            | Expr::Position { .. }
            | Expr::Substring { .. }
            | Expr::Trim { .. }
            | Expr::Overlay { .. }
            | Expr::Collate { .. }
            | Expr::Nested(_)
            | Expr::TypedString(_)
            | Expr::Case { .. }
            | Expr::Exists { .. }
            | Expr::Subquery(_)
            | Expr::GroupingSets(_)
            | Expr::Cube(_)
            | Expr::Rollup(_)
            | Expr::Tuple(_)
            | Expr::Array(_)
            | Expr::Interval(_) => Ok(()),
            _ => Err(NotLearned::Syntax),
        };
        self.judged(judged)
    }
}

/// Whether all parts are rows of values or a SELECT without INTO.
fn is_read(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => select.into.is_none(),
        SetExpr::Values(_) => true,
        SetExpr::Query(query) => is_read(&query.body),
        SetExpr::SetOperation { left, right, .. } => is_read(left) && is_read(right),
        _ => false,
    }
}
