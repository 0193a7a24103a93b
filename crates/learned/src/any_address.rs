//! A statement that looks something up by the visitor's address, for all visitors at once: if no row would be found by any
//! address, the statement returns the same to each visitor.
//!
//! ```text
//! SELECT 1 FROM votes WHERE poll = 3 AND ip = '203.0.113.9'
//!     ─► SELECT 1 FROM votes WHERE LENGTH(ip) > 0 LIMIT 1
//! ```
//!
//! Conditions are only removed, so that the second statement finds each row that the first one finds, for every visitor.
//! All that have a value are removed, since a part of the address may not be recognised (`range LIKE 'CB00%'`). Equality with
//! the whole address becomes a condition of length: no visitor has an empty address. Comparison with an empty text would also
//! leave out the number 0, which equals some addresses.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, Query, Select, SetExpr, Statement, Value as SqlValue, Visit, Visitor,
};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

use crate::arguments::Argument;
use crate::session::Session;
use crate::tokens::{is_too_deep, shape, tokens};
use crate::value::Value;

/// Returns statements that find a row if this one may return something else to another visitor. `None`: it is not known.
/// `is_address` recognises the address of the visitor, in each form.
pub fn lookups_by_any_address(
    text: &[u8],
    parameters: &[Value],
    session: &Session,
    is_address: &dyn Fn(&Value) -> bool,
) -> Option<Vec<String>> {
    if session.is_unreadable() || session.is_of_postgres() {
        return None;
    }
    let text = str::from_utf8(text).ok()?;
    let tokens = tokens(text, parameters, session.has_ansi_quotes()).ok()?;
    if is_too_deep(&tokens) {
        return None;
    }
    let (text, arguments) = shape(&tokens);
    let mut statements = Parser::parse_sql(&MySqlDialect {}, &text).ok()?;
    let (Some(Statement::Query(query)), true) = (statements.pop(), statements.is_empty()) else {
        return None;
    };
    let addresses = Addresses(
        arguments
            .iter()
            .map(|argument| AddressKind::of(argument, is_address))
            .collect(),
    );
    let mut lookups = Vec::new();
    let found = addresses.read(&query, &mut lookups)?;
    // One that stands anywhere else may be part of what is returned.
    (found > 0 && found == addresses.count()).then_some(lookups)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AddressKind {
    None,
    /// A text that has letters or digits.
    Text,
    Other,
}

impl AddressKind {
    fn of(argument: &Argument, is_address: &dyn Fn(&Value) -> bool) -> AddressKind {
        match argument {
            Argument::One(value) if is_address(value) => match value {
                Value::Text(text) if text.iter().all(u8::is_ascii_graphic) => AddressKind::Text,
                _ => AddressKind::Other,
            },
            Argument::List(values) if values.iter().any(is_address) => AddressKind::Other,
            Argument::One(_) | Argument::List(_) => AddressKind::None,
        }
    }
}

/// Which of the values of a statement are addresses.
struct Addresses(Vec<AddressKind>);

impl Addresses {
    fn count(&self) -> usize {
        let kinds = self.0.iter();
        kinds.filter(|kind| **kind != AddressKind::None).count()
    }

    fn kind(&self, expression: &Expr) -> AddressKind {
        let Expr::Value(value) = expression else {
            return AddressKind::None;
        };
        let SqlValue::Placeholder(name) = &value.value else {
            return AddressKind::None;
        };
        let number = name.strip_prefix('?').and_then(|it| it.parse().ok());
        let kind = number.and_then(|number: usize| self.0.get(number));
        kind.copied().unwrap_or(AddressKind::Other)
    }

    /// Adds the lookups of a query, and returns how many addresses they stand for.
    fn read(&self, query: &Query, lookups: &mut Vec<String>) -> Option<usize> {
        match query.with {
            None => self.read_part(&query.body, lookups),
            Some(_) => None,
        }
    }

    fn read_part(&self, part: &SetExpr, lookups: &mut Vec<String>) -> Option<usize> {
        match part {
            SetExpr::Select(select) => self.read_select(select, lookups),
            SetExpr::Query(query) => self.read(query, lookups),
            SetExpr::SetOperation { left, right, .. } => {
                let left = self.read_part(left, lookups)?;
                Some(left + self.read_part(right, lookups)?)
            }
            _ => None,
        }
    }

    fn read_select(&self, select: &Select, lookups: &mut Vec<String>) -> Option<usize> {
        let Some(condition) = &select.selection else {
            return Some(0);
        };
        let mut counter = Counter {
            addresses: self,
            count: 0,
        };
        let _ = condition.visit(&mut counter);
        if counter.count == 0 {
            return Some(0);
        }
        let tables = select.from.iter().map(ToString::to_string);
        let tables = tables.collect::<Vec<_>>().join(", ");
        // A value there may be a part of the address.
        if select.having.is_some() || tables.is_empty() || tables.contains('?') {
            return None;
        }
        let condition = self.widened(condition);
        let condition = condition.map_or_else(String::new, |it| format!(" WHERE {it}"));
        lookups.push(format!("SELECT 1 FROM {tables}{condition} LIMIT 1"));
        Some(counter.count)
    }

    /// A condition that is true wherever this one is, for each address. `None`: all rows.
    fn widened(&self, condition: &Expr) -> Option<String> {
        match condition {
            Expr::Nested(inner) => self.widened(inner),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And,
                right,
            } => match (self.widened(left), self.widened(right)) {
                (Some(left), Some(right)) => Some(format!("({left}) AND ({right})")),
                (left, right) => left.or(right),
            },
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Or,
                right,
            } => {
                let (left, right) = (self.widened(left)?, self.widened(right)?);
                Some(format!("({left}) OR ({right})"))
            }
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Eq,
                right,
            } => {
                let column = match (self.kind(left), self.kind(right)) {
                    (AddressKind::None, AddressKind::Text) => left,
                    (AddressKind::Text, AddressKind::None) => right,
                    _ => return None,
                };
                is_column(column).then(|| format!("LENGTH({column}) > 0"))
            }
            Expr::IsNull(column) | Expr::IsNotNull(column) if is_column(column) => {
                Some(condition.to_string())
            }
            _ => None,
        }
    }
}

fn is_column(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::Identifier(_) | Expr::CompoundIdentifier(_)
    )
}

struct Counter<'a> {
    addresses: &'a Addresses,
    count: usize,
}

impl Visitor for Counter<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        self.count += usize::from(self.addresses.kind(expression) != AddressKind::None);
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = "203.0.113.9";

    fn lookups(text: &str) -> Option<Vec<String>> {
        let session = Session::new(Some("blog".to_owned()), 45);
        let is_address = |value: &Value| match value {
            Value::Text(text) => {
                let forms: [&[u8]; 3] = [ADDRESS.as_bytes(), b"CB007109", &[203, 0, 113, 9]];
                forms.contains(&text.as_slice())
            }
            Value::Integer(number) => *number == 3_405_803_785,
            Value::Null | Value::Other => false,
        };
        let parameters = [Value::Text(ADDRESS.into())];
        lookups_by_any_address(text.as_bytes(), &parameters, &session, &is_address)
    }

    #[test]
    fn a_lookup_becomes_one_that_finds_the_rows_of_every_address() {
        let by_ip = "LENGTH(ip) > 0";
        for (text, expected) in [
            ("SELECT id FROM votes WHERE ip = '203.0.113.9'", by_ip),
            ("SELECT id FROM votes WHERE '203.0.113.9' = ip", by_ip),
            ("SELECT id FROM votes WHERE (((ip = ?)))", by_ip),
            (
                "SELECT COUNT(*) FROM votes WHERE poll = 3 AND ip = '203.0.113.9' ORDER BY id LIMIT 1 OFFSET 3",
                by_ip,
            ),
            (
                "SELECT /* Manager::check  */  ip  FROM votes    WHERE ip = '203.0.113.9'  LIMIT 1",
                by_ip,
            ),
            ("SELECT 1 FROM votes WHERE ip = 3405803785", ""),
            ("SELECT 1 FROM votes WHERE ip LIKE '203.0.113.9'", ""),
            ("SELECT 1 FROM votes WHERE ip <> '203.0.113.9'", ""),
            ("SELECT 1 FROM votes WHERE NOT (ip = '203.0.113.9')", ""),
            ("SELECT 1 FROM votes WHERE ip = UNHEX('CB007109')", ""),
            ("SELECT 1 FROM votes WHERE ip IN ('203.0.113.9', '')", ""),
            (
                "SELECT 1 FROM votes WHERE ip = '203.0.113.9' OR start LIKE 'CB00%'",
                "",
            ),
            (
                "SELECT 1 FROM votes WHERE ip = '203.0.113.9' OR ended IS NULL",
                "(LENGTH(ip) > 0) OR (ended IS NULL)",
            ),
            (
                "SELECT 1 FROM votes WHERE EXISTS (SELECT 1 FROM poll WHERE ip = '203.0.113.9')",
                "",
            ),
            (
                "SELECT 1 FROM votes UNION SELECT 2 FROM votes WHERE ip = '203.0.113.9'",
                by_ip,
            ),
        ] {
            let condition = match expected {
                "" => String::new(),
                expected => format!(" WHERE {expected}"),
            };
            let expected = format!("SELECT 1 FROM votes{condition} LIMIT 1");
            assert_eq!(lookups(text), Some(vec![expected]), "{text}");
        }
    }

    #[test]
    fn each_part_of_a_union_is_a_lookup() {
        let found = lookups(
            "(SELECT a.id FROM votes a JOIN `poll` p ON p.id = a.id WHERE a.ip = '203.0.113.9') \
             UNION ALL (SELECT 1 FROM post WHERE id = 4) UNION ALL (SELECT 2 FROM blocked WHERE ip = '203.0.113.9')",
        );
        let found = found.unwrap_or_default();
        let [first, second] = &found[..] else {
            panic!("{found:?}");
        };
        assert!(first.contains("`poll`") && first.contains("LENGTH(a.ip) > 0"));
        assert!(second.contains("FROM blocked WHERE LENGTH(ip) > 0"));
    }

    #[test]
    fn an_address_that_may_be_part_of_what_is_returned_is_no_lookup() {
        for text in [
            "SELECT '203.0.113.9', id FROM votes WHERE ip = '203.0.113.9'",
            "SELECT id FROM votes",
            "SELECT id FROM votes WHERE ip = '203.0.113.8'",
            "SELECT ip = '203.0.113.9' FROM votes",
            "SELECT COUNT(*) FROM votes HAVING COUNT(*) > '203.0.113.9'",
            "SELECT ip FROM votes WHERE ip = '203.0.113.9' HAVING COUNT(*) = 0",
            "SELECT 1 FROM votes v JOIN poll p ON p.start = 'CB00' WHERE v.ip = '203.0.113.9'",
            "SELECT 1 FROM votes v LEFT JOIN poll p ON p.ip = '203.0.113.9'",
            "SELECT 1 FROM (SELECT id FROM votes WHERE ip = '203.0.113.9') x",
            "SELECT (SELECT COUNT(*) FROM votes WHERE ip = '203.0.113.9')",
            "WITH x AS (SELECT 1 FROM votes WHERE ip = '203.0.113.9') SELECT * FROM x",
            "SELECT 1 FROM votes ORDER BY ip = '203.0.113.9'",
            "SELECT 1 WHERE '203.0.113.9' = ''",
            "DELETE FROM votes WHERE ip = '203.0.113.9'",
            "SELECT 1 FROM votes WHERE ip = '203.0.113.9'; SELECT 2",
            "not a statement",
        ] {
            assert_eq!(lookups(text), None, "{text}");
        }
    }
}
