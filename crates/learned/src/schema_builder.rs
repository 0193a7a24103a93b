//! The rows of `information_schema` become a [`Schema`]: views are resolved to the tables that they
//! read, triggers and foreign keys to the tables that are written along with another.
//!
//! A definition that is not understood errs on the safe side: a view may read and do anything, a trigger may write
//! anything. A trigger counts as writing every table whose name stands anywhere in its body.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, ObjectName, Query, Statement, Value as SqlValue, Visit, Visitor};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

use crate::functions;
use crate::not_learned::NotLearned;
use crate::read::{judge, table_name};
use crate::schema::{
    Column, ColumnDescription, MAX_TABLES, Relation, Schema, Table, TableNumber, WrittenAlong,
};
use crate::schema_queries::SchemaQuery;
use crate::value::matches_pattern;

type Name = (String, String);

/// Views that read views that read views. MySQL knows no bound; such views are not understood.
const MAX_VIEW_LEVELS: usize = 16;

#[derive(Debug, Default)]
struct TableRows {
    /// It is kept by an engine of which the rules here hold.
    is_plain: bool,
    columns: Vec<Column>,
    /// Name, whether unique, whether of whole columns, names of columns.
    keys: Vec<KeyRows>,
}

#[derive(Debug)]
struct KeyRows {
    name: String,
    is_unique: bool,
    is_whole: bool,
    columns: Vec<String>,
}

#[derive(Debug, Default)]
pub struct SchemaBuilder {
    tables: HashMap<Name, TableRows>,
    views: HashMap<Name, String>,
    /// Patterns of the databases and tables whose triggers are shown to this account.
    rights: Vec<Name>,
    triggers: Vec<(Name, String)>,
    /// From the table that is referenced to the one that refers to it.
    cascades: Vec<(Name, Name)>,
    is_over_bound: bool,
}

impl SchemaBuilder {
    /// Takes one row of the answer to `query`. Rows with other numbers of fields are refused.
    pub fn row(&mut self, query: SchemaQuery, fields: &[&str]) -> bool {
        self.is_over_bound |= self.tables.len() + self.views.len() > MAX_TABLES;
        let name = |database: &str, table: &str| (database.to_owned(), table.to_owned());
        match (query, fields) {
            (SchemaQuery::Tables, [database, table, kind, engine]) => {
                let is_plain = *kind == "BASE TABLE"
                    && ["InnoDB", "MyISAM", "Aria", "MEMORY"].contains(engine);
                self.tables
                    .entry(name(database, table))
                    .or_default()
                    .is_plain = is_plain;
            }
            (
                SchemaQuery::Columns,
                [
                    database,
                    table,
                    column,
                    data_type,
                    column_type,
                    most,
                    collation,
                    nullable,
                    extra,
                ],
            ) => {
                let description = ColumnDescription {
                    name: column,
                    data_type,
                    column_type,
                    most_characters: most.parse().unwrap_or(0),
                    collation,
                    is_nullable: *nullable == "YES",
                    extra,
                };
                let table = self.tables.entry(name(database, table)).or_default();
                table.columns.push(Column::described(&description, false));
            }
            (SchemaQuery::Keys, [database, table, key, column, non_unique, part]) => {
                let table = self.tables.entry(name(database, table)).or_default();
                // Keys over expressions have no name of a column.
                let is_whole = *part == "0" && !column.is_empty();
                match table.keys.last_mut().filter(|last| last.name == *key) {
                    Some(last) => {
                        last.is_whole &= is_whole;
                        last.columns.push(column.to_lowercase());
                    }
                    None => table.keys.push(KeyRows {
                        name: (*key).to_owned(),
                        is_unique: *non_unique == "0",
                        is_whole,
                        columns: vec![column.to_lowercase()],
                    }),
                }
            }
            (SchemaQuery::Views, [database, view, definition]) => {
                self.views
                    .insert(name(database, view), (*definition).to_owned());
            }
            (SchemaQuery::Rights, [database, table]) => self.rights.push(name(database, table)),
            (SchemaQuery::Triggers, [database, table, body]) => {
                self.triggers
                    .push((name(database, table), (*body).to_owned()));
            }
            (
                SchemaQuery::ForeignKeys,
                [
                    parent_database,
                    parent,
                    database,
                    table,
                    on_update,
                    on_delete,
                ],
            ) => {
                let passes_on = |rule: &str| !matches!(rule, "RESTRICT" | "NO ACTION");
                if passes_on(on_update) || passes_on(on_delete) {
                    self.cascades
                        .push((name(parent_database, parent), name(database, table)));
                }
            }
            _ => return false,
        }
        true
    }

    /// `None` if there are more than [`MAX_TABLES`].
    pub fn finish(self) -> Option<Schema> {
        if self.is_over_bound {
            return None;
        }
        let mut schema = Schema::default();
        let mut names: Vec<_> = self.tables.keys().cloned().collect();
        names.sort();
        for name in names {
            let rows = &self.tables[&name];
            if self.views.contains_key(&name) {
                continue;
            }
            if !rows.is_plain || rows.columns.is_empty() {
                schema.relations.insert(name, Relation::Unclear);
                continue;
            }
            let number = TableNumber(u32::try_from(schema.tables.len()).unwrap_or(u32::MAX));
            schema
                .relations
                .insert(name.clone(), Relation::Base(number));
            schema.tables.push(table(name, rows));
        }
        for name in self.views.keys() {
            let relation = match self.tables_of_view(name, &schema, MAX_VIEW_LEVELS) {
                Some(tables) => Relation::View(tables.into_iter().collect()),
                None => Relation::Unclear,
            };
            schema.relations.insert(name.clone(), relation);
        }
        self.close(&mut schema);
        Some(schema)
    }

    fn tables_of_view(
        &self,
        name: &Name,
        schema: &Schema,
        levels: usize,
    ) -> Option<HashSet<TableNumber>> {
        let levels = levels.checked_sub(1)?;
        let mut tables = HashSet::new();
        for (relation, is_own) in relations_of_view(self.views.get(name)?, &name.0)? {
            match schema.table_number(&relation) {
                // It may be hidden by the name that WITH gives, or not.
                Some(number) => {
                    tables.insert(number);
                }
                None if is_own && !self.views.contains_key(&relation) => {}
                None => tables.extend(self.tables_of_view(&relation, schema, levels)?),
            }
        }
        Some(tables)
    }

    /// Follows triggers and foreign keys until nothing is added.
    fn close(&self, schema: &mut Schema) {
        let mut direct: HashMap<TableNumber, Option<HashSet<TableNumber>>> = HashMap::new();
        let mut add = |number: TableNumber, written: Option<HashSet<TableNumber>>| {
            let all = direct.entry(number).or_insert_with(|| Some(HashSet::new()));
            match (all.as_mut(), written) {
                (Some(all), Some(written)) => all.extend(written),
                _ => *all = None,
            }
        };
        let words = NamesByWord::of(schema);
        for (name, body) in &self.triggers {
            if let Some(number) = schema.table_number(name) {
                add(number, words.written_by(body));
                schema.tables[number.0 as usize].has_triggers = true;
            }
        }
        for (parent, child) in &self.cascades {
            if let Some(parent) = schema.table_number(parent) {
                // A child of which nothing is known is not read by a page that is learned.
                let child = schema.table_number(child);
                add(parent, Some(child.into_iter().collect()));
            }
        }
        for index in 0..schema.tables.len() {
            let number = TableNumber(u32::try_from(index).unwrap_or(u32::MAX));
            if !self.sees_triggers_of(&schema.tables[index].name) {
                add(number, None);
                schema.tables[index].has_triggers = true;
            }
        }
        let closures: Vec<_> = (0..schema.tables.len())
            .map(|index| {
                let number = TableNumber(u32::try_from(index).unwrap_or(u32::MAX));
                closure(number, &direct)
            })
            .collect();
        for (table, written_along) in schema.tables.iter_mut().zip(closures) {
            table.written_along = written_along;
        }
    }

    fn sees_triggers_of(&self, (database, table): &Name) -> bool {
        let matches = |name: &str, pattern: &str| {
            // A backslash takes the meaning of a wildcard away; with one, only the plain name counts.
            if pattern.contains('\\') {
                pattern.replace('\\', "") == name
            } else {
                matches_pattern(name.as_bytes(), pattern.as_bytes())
            }
        };
        self.rights.iter().any(|(databases, tables)| {
            matches(database, databases) && (tables == "%" || tables == table)
        })
    }
}

fn table(name: Name, rows: &TableRows) -> Table {
    let mut columns = rows.columns.clone();
    for column in &mut columns {
        column.is_indexed = rows.keys.iter().any(|key| {
            key.columns.contains(&column.name) || key.columns.iter().any(String::is_empty)
        });
    }
    let position = |name: &String| {
        let position = columns.iter().position(|column| column.name == *name)?;
        u16::try_from(position).ok()
    };
    let unique = rows.keys.iter().filter(|key| key.is_unique);
    let unique_keys = unique
        .map(|key| {
            let positions = key.columns.iter().map(position).collect::<Option<Vec<_>>>();
            positions.filter(|_| key.is_whole)
        })
        .collect();
    Table {
        name,
        columns,
        unique_keys,
        has_triggers: false,
        written_along: WrittenAlong::Tables(Vec::new()),
    }
}

fn closure(
    from: TableNumber,
    direct: &HashMap<TableNumber, Option<HashSet<TableNumber>>>,
) -> WrittenAlong {
    let mut found = HashSet::new();
    let mut next = vec![from];
    while let Some(number) = next.pop() {
        match direct.get(&number) {
            None => {}
            Some(None) => return WrittenAlong::Everything,
            Some(Some(written)) => {
                next.extend(written.iter().filter(|it| found.insert(**it)));
            }
        }
    }
    let mut tables: Vec<_> = found.into_iter().collect();
    tables.sort();
    WrittenAlong::Tables(tables)
}

/// The names in FROM of a view, as the server writes its definition: it names the database of each table. With each name,
/// whether WITH gives it somewhere to a query. `None`: the view is not understood.
fn relations_of_view(definition: &str, database: &str) -> Option<Vec<(Name, bool)>> {
    let statements = Parser::parse_sql(&MySqlDialect {}, definition).ok()?;
    let [Statement::Query(query)] = &statements[..] else {
        return None;
    };
    let mut visitor = ViewVisitor {
        database,
        own_names: HashSet::new(),
        relations: Vec::new(),
    };
    query.visit(&mut visitor).is_continue().then_some(())?;
    let ViewVisitor {
        own_names,
        relations,
        ..
    } = visitor;
    let relations = relations.into_iter();
    let with_own = relations.map(|(name, is_alone)| {
        let is_own = is_alone && own_names.contains(&name.1.to_lowercase());
        (name, is_own)
    });
    Some(with_own.collect())
}

struct ViewVisitor<'a> {
    database: &'a str,
    own_names: HashSet<String>,
    /// With each, whether it stands without a database.
    relations: Vec<(Name, bool)>,
}

impl Visitor for ViewVisitor<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        self.own_names
            .extend(tables.map(|table| table.alias.name.value.to_lowercase()));
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        let is_alone = name.0.len() == 1;
        match table_name(name, Some(self.database)) {
            Ok(name) => {
                self.relations.push((name, is_alone));
                ControlFlow::Continue(())
            }
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        let is_literal = match expression {
            Expr::Value(value) => !matches!(value.value, SqlValue::Placeholder(_)),
            // Literals with the name of their characters.
            Expr::Prefixed { value, .. } => matches!(**value, Expr::Value(_)),
            _ => false,
        };
        if is_literal || judge(expression).is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

/// Tables by the last part of their names in small letters, for words in the bodies of triggers.
struct NamesByWord(HashMap<String, Option<HashSet<TableNumber>>>);

impl NamesByWord {
    fn of(schema: &Schema) -> Self {
        let mut names: HashMap<String, Option<HashSet<TableNumber>>> = HashMap::new();
        for ((_, name), relation) in &schema.relations {
            let all = names
                .entry(name.to_lowercase())
                .or_insert_with(|| Some(HashSet::new()));
            match (all.as_mut(), relation) {
                (Some(all), Relation::Base(number)) => {
                    all.insert(*number);
                }
                (Some(all), Relation::View(numbers)) => all.extend(numbers),
                _ => *all = None,
            }
        }
        Self(names)
    }

    /// The tables that the body of a trigger may write. `None`: any.
    fn written_by(&self, body: &str) -> Option<HashSet<TableNumber>> {
        let mut written = HashSet::new();
        let mut last = String::new();
        for (word, calls) in words(body)? {
            if ["call", "execute", "prepare"].contains(&&word[..]) {
                return None;
            }
            match self.0.get(&word) {
                Some(tables) => written.extend(tables.as_ref()?),
                None if calls && last != "into" && !is_built_in(&word) => {
                    return None;
                }
                None => {}
            }
            // A stored function may have the name of a table.
            if calls && self.0.contains_key(&word) && last != "into" {
                return None;
            }
            last = word;
        }
        Some(written)
    }
}

fn is_built_in(word: &str) -> bool {
    use NotLearned as N;
    functions::may_stand_before_parenthesis(word)
        || matches!(
            functions::judge(word, 1),
            Ok(()) | Err(N::Clock | N::Chance | N::Connection | N::Lock)
        )
}

/// The words outside of texts, in small letters, each with whether a parenthesis follows. `None` where
/// it is not sure what is text.
fn words(body: &str) -> Option<Vec<(String, bool)>> {
    if body.contains('\\') || body.contains("/*") || body.is_empty() {
        return None;
    }
    let mut words: Vec<(String, bool)> = Vec::new();
    let mut rest = body;
    // Only blanks stand between the last word and here.
    let mut follows_word = false;
    while let Some(first) = rest.chars().next() {
        let is_word = first.is_alphanumeric() || matches!(first, '_' | '$' | '`' | '"');
        let length = match first {
            '\'' => 2 + rest[1..].find('\'')?,
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            // Either is a name or may be one.
            '`' | '"' => {
                let end = 1 + rest[1..].find(first)?;
                words.push((rest[1..end].to_lowercase(), false));
                end + 1
            }
            _ if first.is_alphanumeric() || first == '_' || first == '$' => {
                let is_of_word = |it: char| it.is_alphanumeric() || it == '_' || it == '$';
                let length = rest.find(|it| !is_of_word(it)).unwrap_or(rest.len());
                words.push((rest[..length].to_lowercase(), false));
                length
            }
            '(' => {
                if let Some((_, calls)) = words.last_mut() {
                    *calls |= follows_word;
                }
                1
            }
            _ => first.len_utf8(),
        };
        follows_word =
            is_word || (follows_word && (first.is_whitespace() || first == '#' || first == '-'));
        rest = rest.get(length..)?;
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(rows: &[(SchemaQuery, &[&str])]) -> Schema {
        let mut builder = SchemaBuilder::default();
        for (query, fields) in rows {
            assert!(builder.row(*query, fields), "{fields:?}");
        }
        builder.finish().unwrap()
    }

    fn tables(names: &[&'static str]) -> Vec<(SchemaQuery, Vec<&'static str>)> {
        let table = |name| {
            let column = vec!["s", name, "id", "int", "int(11)", "0", "", "NO", ""];
            [
                (SchemaQuery::Tables, vec!["s", name, "BASE TABLE", "InnoDB"]),
                (SchemaQuery::Columns, column),
            ]
        };
        names.iter().flat_map(|name| table(*name)).collect()
    }

    fn build(more: &[(SchemaQuery, &[&str])]) -> Schema {
        let tables = tables(&["a", "b", "c", "d"]);
        let rows = tables.iter().map(|(query, fields)| (*query, &fields[..]));
        schema(&rows.chain(more.iter().copied()).collect::<Vec<_>>())
    }

    fn named(schema: &Schema, name: &str) -> TableNumber {
        schema
            .table_number(&("s".to_owned(), name.to_owned()))
            .unwrap()
    }

    #[test]
    fn views_are_the_tables_that_they_read() {
        let definition = "select `s`.`a`.`id` AS `id`,_utf8mb4'x' AS `x` from (`s`.`a` join `s`.`b`) \
                          where `s`.`a`.`id` = 1 and exists(select 1 from `s`.`c`)";
        // A name that WITH gives may hide a table.
        let cte = "with `x` as (select `s`.`a`.`id` AS `id` from `s`.`a`), `b` as (select 1 from `s`.`c`) \
                   select `x`.`id` AS `id` from (`x` join `b`)";
        let schema = build(&[
            (SchemaQuery::Views, &["s", "v", definition]),
            (SchemaQuery::Views, &["s", "w", "select 1 from `s`.`v`"]),
            (SchemaQuery::Views, &["s", "cte", cte]),
            (
                SchemaQuery::Views,
                &["s", "unknown", "with `d` as (select 1) select 1 from `e`"],
            ),
            (
                SchemaQuery::Views,
                &["s", "own", "with `own` as (select 1) select 1 from `own`"],
            ),
            (
                SchemaQuery::Views,
                &["s", "f", "select `s`.`total`(1) from `s`.`a`"],
            ),
            (SchemaQuery::Views, &["s", "g", "select 1 from `s`.`f`"]),
            (SchemaQuery::Views, &["s", "n", "select now() from `s`.`a`"]),
            (SchemaQuery::Views, &["s", "hidden", ""]),
            (
                SchemaQuery::Views,
                &["s", "endless", "select 1 from `s`.`endless`"],
            ),
        ]);
        for name in ["v", "w", "cte"] {
            let Some(Relation::View(found)) = schema.relation(&("s".to_owned(), name.to_owned()))
            else {
                panic!("{name} is not understood");
            };
            let mut found = found.clone();
            found.sort();
            assert_eq!(
                found,
                ["a", "b", "c"].map(|it| named(&schema, it)),
                "{name}"
            );
        }
        for name in ["f", "g", "n", "hidden", "endless", "unknown", "own"] {
            let relation = schema.relation(&("s".to_owned(), name.to_owned()));
            assert!(matches!(relation, Some(Relation::Unclear)), "{name}");
        }
    }

    #[test]
    fn triggers_and_cascades_are_followed_to_their_end() {
        use WrittenAlong::{Everything, Tables};
        let all: (SchemaQuery, &[&str]) = (SchemaQuery::Rights, &["%", "%"]);
        let trigger =
            "BEGIN IF NEW.id > 1 THEN INSERT INTO b (id) VALUES (CONCAT('total(', 1)); END IF; END";
        let schema = build(&[
            all,
            (SchemaQuery::Triggers, &["s", "a", trigger]),
            (
                SchemaQuery::ForeignKeys,
                &["s", "b", "s", "c", "RESTRICT", "CASCADE"],
            ),
            (
                SchemaQuery::ForeignKeys,
                &["s", "c", "s", "d", "RESTRICT", "NO ACTION"],
            ),
            (
                SchemaQuery::ForeignKeys,
                &["s", "d", "s", "d", "SET NULL", "RESTRICT"],
            ),
        ]);
        let along = |name| {
            schema
                .table(named(&schema, name))
                .unwrap()
                .written_along
                .clone()
        };
        assert_eq!(
            along("a"),
            Tables(vec![named(&schema, "b"), named(&schema, "c")])
        );
        assert_eq!(along("b"), Tables(vec![named(&schema, "c")]));
        assert_eq!(along("c"), Tables(Vec::new()));
        assert_eq!(along("d"), Tables(vec![named(&schema, "d")]));
        for body in [
            "CALL log_it()",
            "INSERT INTO b VALUES (total(NEW.id))",
            "SET NEW.id = b(1)",
            "INSERT INTO b VALUES ('\\'')",
            "/*!50000 CALL x() */ SET NEW.id = 1",
            "",
        ] {
            let schema = build(&[all, (SchemaQuery::Triggers, &["s", "a", body])]);
            let table = schema.table(named(&schema, "a")).unwrap();
            assert_eq!(table.written_along, Everything, "{body}");
        }
    }

    #[test]
    fn triggers_that_are_not_shown_may_be_there() {
        for (rights, is_known) in [
            (["s", "%"], true),
            (["%", "%"], true),
            (["s", "a"], true),
            (["s", "b"], false),
            (["t", "%"], false),
        ] {
            let schema = build(&[(SchemaQuery::Rights, &rights)]);
            let table = schema.table(named(&schema, "a")).unwrap();
            assert_eq!(!table.has_triggers, is_known, "{rights:?}");
            assert_eq!(
                table.written_along != WrittenAlong::Everything,
                is_known,
                "{rights:?}"
            );
        }
    }

    #[test]
    fn tables_of_other_engines_are_not_known() {
        for (kind, engine) in [
            ("BASE TABLE", "FEDERATED"),
            ("SEQUENCE", "InnoDB"),
            ("SYSTEM VERSIONED", "InnoDB"),
        ] {
            let schema = build(&[(SchemaQuery::Tables, &["s", "a", kind, engine])]);
            let name = ("s".to_owned(), "a".to_owned());
            assert!(schema.table_number(&name).is_none(), "{kind} {engine}");
        }
    }
}
