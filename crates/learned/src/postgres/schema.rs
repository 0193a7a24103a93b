//! The rows of `pg_catalog` become a [`Schema`]: views are resolved to the tables that they read, foreign keys and partitions
//! to the tables that are written along with another.

use std::collections::{BTreeSet, HashMap};

use sqlparser::ast::Statement;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

use crate::schema::{MAX_TABLES, Relation, Schema, Table, TableNumber, WrittenAlong};

use super::reader::Reader;

/// Views that read views that read views.
const MAX_VIEW_LEVELS: usize = 16;

/// Objects with smaller numbers are the server's own.
macro_rules! own {
    () => {
        "16384"
    };
}

/// The queries that ask a server for its tables, on one connection with an empty `search_path`: the rows of the answers go to
/// [`PostgresSchemaBuilder::row`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostgresQuery {
    Relations,
    Inheritance,
    Cascades,
    /// Tables whose writes call functions of the site.
    Calls,
    Views,
    Functions,
    Operators,
}

impl PostgresQuery {
    pub const ALL: [Self; 7] = [
        Self::Relations,
        Self::Inheritance,
        Self::Cascades,
        Self::Calls,
        Self::Views,
        Self::Functions,
        Self::Operators,
    ];

    /// Its text. What it returns is text in UTF-8, without NULL.
    pub const fn sql(self) -> &'static str {
        match self {
            Self::Relations => {
                "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relrowsecurity FROM pg_class c
                 JOIN pg_namespace n ON n.oid = c.relnamespace
                 WHERE c.relkind IN ('r', 'p', 'm', 'v', 'f', 'S') AND c.relpersistence <> 't'
                   AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')"
            }
            Self::Inheritance => "SELECT inhparent, inhrelid FROM pg_inherits",
            Self::Cascades => {
                "SELECT DISTINCT confrelid, conrelid FROM pg_constraint WHERE contype = 'f'
                   AND (confdeltype IN ('c', 'n', 'd') OR confupdtype IN ('c', 'n', 'd'))"
            }
            Self::Calls => concat!(
                "SELECT tgrelid FROM pg_trigger WHERE NOT tgisinternal
                 UNION SELECT ev_class FROM pg_rewrite WHERE ev_type <> '1' AND ev_class >= ",
                own!(),
                " UNION SELECT adrelid FROM pg_attrdef JOIN pg_depend ON classid = 'pg_attrdef'::regclass
                   AND objid = pg_attrdef.oid AND refclassid = 'pg_proc'::regclass
                 UNION SELECT conrelid FROM pg_constraint c JOIN pg_depend ON classid = 'pg_constraint'::regclass
                   AND objid = c.oid AND refclassid = 'pg_proc'::regclass
                 UNION SELECT indrelid FROM pg_index JOIN pg_depend ON classid = 'pg_class'::regclass
                   AND objid = indexrelid AND refclassid = 'pg_proc'::regclass"
            ),
            Self::Views => concat!(
                "SELECT oid, pg_get_viewdef(oid) FROM pg_class WHERE relkind = 'v' AND oid >= ",
                own!()
            ),
            Self::Functions => concat!(
                "SELECT proname, CASE
                   WHEN bool_and(prokind = 'f' AND provolatile = 'i' AND lanname IN ('c', 'internal')) THEN 'pure'
                   WHEN bool_and(prokind = 'f' AND provolatile <> 'v') THEN 'reads' ELSE 'anything' END
                 FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang WHERE p.oid >= ",
                own!(),
                " GROUP BY proname"
            ),
            Self::Operators => concat!(
                "SELECT 'operator' FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
                 WHERE (p.provolatile = 'v' OR l.lanname NOT IN ('c', 'internal'))
                   AND (EXISTS (SELECT 1 FROM pg_operator o WHERE o.oprcode = p.oid AND o.oid >= ",
                own!(),
                ") OR EXISTS (SELECT 1 FROM pg_cast c WHERE c.castfunc = p.oid AND c.oid >= ",
                own!(),
                ")) LIMIT 1"
            ),
        }
    }
}

/// A function of the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnFunction {
    /// Its value depends on its arguments alone: immutable, and no SQL.
    Pure,
    /// It writes nothing.
    Reads,
    Anything,
}

/// The part of a schema that MySQL has nothing like.
#[derive(Debug, Clone, Default)]
pub(crate) struct PostgresFacts {
    /// The schema of each relation, if one alone has that name.
    schemas: HashMap<String, Option<String>>,
    partitions: HashMap<TableNumber, Vec<TableNumber>>,
    pub(super) functions: HashMap<String, OwnFunction>,
    /// An operator or a cast of the site may do anything.
    pub(super) has_strange_operators: bool,
}

impl PostgresFacts {
    pub(super) fn schema_of(&self, name: &str) -> Option<&str> {
        self.schemas.get(name)?.as_deref()
    }

    /// A table with all that inherit from it.
    pub(super) fn with_partitions(&self, table: TableNumber) -> BTreeSet<TableNumber> {
        let mut all = BTreeSet::new();
        let mut next = vec![table];
        while let Some(table) = next.pop() {
            if all.insert(table) {
                next.extend(self.partitions.get(&table).into_iter().flatten());
            }
        }
        all
    }

    /// Tables with all that are written along with them; `None`: any.
    pub(super) fn written_with<'s>(
        &self,
        tables: &[TableNumber],
        along: impl Fn(TableNumber) -> Option<&'s Vec<TableNumber>>,
    ) -> Option<BTreeSet<TableNumber>> {
        let mut all = BTreeSet::new();
        let mut next = tables.to_vec();
        while let Some(table) = next.pop() {
            if all.insert(table) {
                next.extend(along(table)?);
                next.extend(self.partitions.get(&table).into_iter().flatten());
            }
        }
        Some(all)
    }
}

/// A relation as `pg_class` has it.
#[derive(Debug)]
struct RelationRow {
    schema: String,
    name: String,
    kind: String,
    has_row_security: bool,
}

/// By the numbers of relations, as texts.
#[derive(Debug, Default)]
pub struct PostgresSchemaBuilder {
    relations: Vec<(String, RelationRow)>,
    inheritance: Vec<(String, String)>,
    cascades: Vec<(String, String)>,
    calls: Vec<String>,
    views: HashMap<String, String>,
    functions: HashMap<String, OwnFunction>,
    has_strange_operators: bool,
}

impl PostgresSchemaBuilder {
    /// Takes one row of the answer to `query`. Rows with other numbers of fields are refused.
    pub fn row(&mut self, query: PostgresQuery, fields: &[&str]) -> bool {
        let owned = |text: &&str| (*text).to_owned();
        match (query, fields) {
            (PostgresQuery::Relations, [number, schema, name, kind, row_security]) => {
                if schema.starts_with("pg_temp") {
                    return true;
                }
                let relation = RelationRow {
                    schema: owned(schema),
                    name: owned(name),
                    kind: owned(kind),
                    has_row_security: *row_security != "f",
                };
                self.relations.push((owned(number), relation));
            }
            (PostgresQuery::Inheritance, [parent, child]) => {
                self.inheritance.push((owned(parent), owned(child)));
            }
            (PostgresQuery::Cascades, [table, along]) => {
                self.cascades.push((owned(table), owned(along)));
            }
            (PostgresQuery::Calls, [table]) => self.calls.push(owned(table)),
            (PostgresQuery::Views, [view, definition]) => {
                self.views.insert(owned(view), owned(definition));
            }
            (PostgresQuery::Functions, [name, kind]) => {
                let kind = match *kind {
                    "pure" => OwnFunction::Pure,
                    "reads" => OwnFunction::Reads,
                    _ => OwnFunction::Anything,
                };
                self.functions.insert(owned(name), kind);
            }
            (PostgresQuery::Operators, [_]) => self.has_strange_operators = true,
            _ => return false,
        }
        true
    }

    /// `None`: there are too many tables.
    pub fn finish(self) -> Option<Schema> {
        if self.relations.len() > MAX_TABLES {
            return None;
        }
        let mut facts = PostgresFacts {
            functions: self.functions,
            has_strange_operators: self.has_strange_operators,
            ..PostgresFacts::default()
        };
        let mut schema = Schema::default();
        let (mut numbers, mut views) = (HashMap::new(), Vec::new());
        for (number, relation) in self.relations {
            let known = facts.schemas.entry(relation.name.clone());
            let is_new = matches!(&known, std::collections::hash_map::Entry::Vacant(_));
            let of_one = is_new.then(|| relation.schema.clone());
            *known.or_default() = of_one;
            let name = (relation.schema, relation.name);
            match &*relation.kind {
                "r" | "p" | "m" if !relation.has_row_security => {
                    let table = TableNumber(u32::try_from(schema.tables.len()).ok()?);
                    numbers.insert(number, table);
                    schema.relations.insert(name.clone(), Relation::Base(table));
                    schema.tables.push(Table {
                        name,
                        columns: Vec::new(),
                        unique_keys: None,
                        has_triggers: false,
                        written_along: WrittenAlong::Tables(Vec::new()),
                    });
                }
                // A trigger in the place of its writes may do anything.
                "v" if !self.calls.contains(&number) => {
                    views.push((name, self.views.get(&number).cloned().unwrap_or_default()))
                }
                _ => {
                    schema.relations.insert(name, Relation::Unclear);
                }
            }
        }
        for (parent, child) in &self.inheritance {
            // Indexes inherit as well. A part whose rows are not all shown makes all of it unclear.
            match (numbers.get(parent), numbers.get(child)) {
                (Some(parent), Some(child)) => {
                    facts.partitions.entry(*parent).or_default().push(*child);
                }
                (Some(parent), None) => {
                    let name = schema.table(*parent)?.name.clone();
                    schema.relations.insert(name, Relation::Unclear);
                }
                (None, _) => {}
            }
        }
        for (table, along) in &self.cascades {
            let Some(table) = numbers.get(table) else {
                continue;
            };
            let written = &mut schema.tables.get_mut(table.0 as usize)?.written_along;
            match (written, numbers.get(along)) {
                (WrittenAlong::Tables(all), Some(along)) => all.push(*along),
                (written, _) => *written = WrittenAlong::Everything,
            }
        }
        for table in self.calls.iter().filter_map(|table| numbers.get(table)) {
            schema.tables.get_mut(table.0 as usize)?.written_along = WrittenAlong::Everything;
        }
        resolve(views, &mut schema, &facts);
        schema.postgres = Some(facts);
        Some(schema)
    }
}

/// Finds the tables of views. One that is not understood is unclear.
fn resolve(views: Vec<((String, String), String)>, schema: &mut Schema, facts: &PostgresFacts) {
    let mut open: Vec<_> = views
        .into_iter()
        .map(|(name, definition)| {
            let parsed = Parser::parse_sql(&PostgreSqlDialect {}, &definition);
            (name, parsed.ok())
        })
        .collect();
    for _ in 0..MAX_VIEW_LEVELS {
        let before = open.len();
        open.retain(|(name, parsed)| {
            let Some([Statement::Query(query)]) = parsed.as_deref() else {
                return true;
            };
            let mut reader = Reader::new(schema, facts);
            let is_read = reader.read(&Statement::Query(query.clone())).is_ok();
            if !is_read || reader.reason.is_some() {
                return true;
            }
            let tables = reader.tables.into_iter().collect();
            schema
                .relations
                .insert(name.clone(), Relation::View(tables));
            false
        });
        if open.len() == before {
            break;
        }
    }
    for (name, _) in open {
        schema.relations.insert(name, Relation::Unclear);
    }
}
