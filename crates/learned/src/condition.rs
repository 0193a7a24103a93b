//! Conditions of a statement, and which truth values they can have for a row.

use sqlparser::ast::{BinaryOperator, Expr, InTarget, UnaryOperator, Value as SqlValue};

use crate::arguments::{Arguments, Values};
use crate::row::Row;
use crate::schema::ColumnUse;
use crate::value::{Comparison, KnownContent, ValueRef, compare, like};

/// The truth values that are possible: some of true, false and null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Possible(u8);

impl Possible {
    pub const TRUE: Self = Self(1);
    pub const FALSE: Self = Self(2);
    pub const NULL: Self = Self(4);
    pub const TRUE_OR_FALSE: Self = Self(3);
    pub const ANY: Self = Self(7);
    const NONE: Self = Self(0);

    pub const fn certain(truth: bool) -> Self {
        if truth { Self::TRUE } else { Self::FALSE }
    }

    pub const fn may_be_true(self) -> bool {
        self.has(Self::TRUE)
    }

    const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    const fn or_else(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn when(self, condition: bool) -> Self {
        if condition { self } else { Self::NONE }
    }

    pub const fn not(self) -> Self {
        Self(self.0 & 4 | (self.0 & 1) << 1 | (self.0 & 2) >> 1)
    }

    /// AND of SQL over each pair of what is possible.
    pub const fn and(self, other: Self) -> Self {
        let is_true = Self::TRUE.when(self.has(Self::TRUE) && other.has(Self::TRUE));
        let is_false = Self::FALSE.when(self.has(Self::FALSE) || other.has(Self::FALSE));
        let null = self.has(Self::NULL) && other.has(Self(5))
            || other.has(Self::NULL) && self.has(Self(5));
        is_true.or_else(is_false).or_else(Self::NULL.when(null))
    }

    pub const fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }
}

/// A value of the statement, by its number, or one that the text has itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operand {
    Argument { number: usize, is_negated: bool },
    Null,
}

impl Operand {
    pub(crate) fn of(expression: &Expr) -> Option<Self> {
        match expression {
            Expr::Nested(inner) => Self::of(inner),
            Expr::Value(value) => match &value.value {
                SqlValue::Null => Some(Self::Null),
                SqlValue::Placeholder(name) => Some(Self::Argument {
                    number: name.strip_prefix('?')?.parse().ok()?,
                    is_negated: false,
                }),
                _ => None,
            },
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => match Self::of(expr)? {
                Self::Argument {
                    number,
                    is_negated: false,
                } => Some(Self::Argument {
                    number,
                    is_negated: true,
                }),
                _ => None,
            },
            _ => None,
        }
    }

    /// The values; several only for a list behind IN.
    pub(crate) fn values<'a>(
        &self,
        arguments: &'a Arguments,
    ) -> impl Iterator<Item = ValueRef<'a>> + Clone + use<'a> {
        let (values, is_negated) = match self {
            Self::Null => (Values::NULL, false),
            Self::Argument { number, is_negated } => match arguments.get(*number) {
                Some(found) if !(found.is_list && *is_negated) => (found.values, *is_negated),
                _ => (Values::OTHER, false),
            },
        };
        values.map(move |value| if is_negated { value.negated() } else { value })
    }
}

/// Whether each value of a list is compared for itself: with values of several kinds, the comparison
/// of each depends on the others.
pub(crate) fn have_one_kind<'a>(values: impl Iterator<Item = ValueRef<'a>>) -> bool {
    let (mut has_numbers, mut has_texts) = (false, false);
    for value in values {
        match value {
            ValueRef::Null => {}
            ValueRef::Integer(_) => has_numbers = true,
            ValueRef::Text(_) => has_texts = true,
            ValueRef::Other => return false,
        }
    }
    !(has_numbers && has_texts)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
    Compare {
        column: ColumnUse,
        comparison: Comparison,
        operand: Operand,
    },
    /// Equal to one of them.
    In {
        column: ColumnUse,
        operands: Vec<Operand>,
    },
    Like {
        column: ColumnUse,
        pattern: Operand,
    },
    IsNull(ColumnUse),
    Unknown,
}

/// Reads the condition for one table. `column` finds the columns of that table; all that speaks of
/// others is unknown.
pub(crate) fn condition(
    expression: &Expr,
    column: &impl Fn(&Expr) -> Option<ColumnUse>,
) -> Condition {
    let inner = |expression: &Expr| condition(expression, column);
    let negated_if = |is_negated: bool, condition: Condition| match is_negated {
        true => Condition::Not(Box::new(condition)),
        false => condition,
    };
    let known = match expression {
        Expr::Nested(nested) => Some(inner(nested)),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => Some(Condition::And(vec![inner(left), inner(right)])),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Or,
            right,
        } => Some(Condition::Or(vec![inner(left), inner(right)])),
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr,
        } => Some(negated_if(true, inner(expr))),
        Expr::BinaryOp { left, op, right } => comparison(left, op, right, column),
        Expr::In {
            expr,
            target: InTarget::List(items),
            negated,
            ..
        } => (|| {
            let operands = items.iter().map(Operand::of).collect::<Option<_>>()?;
            Some(negated_if(
                *negated,
                Condition::In {
                    column: column(expr)?,
                    operands,
                },
            ))
        })(),
        Expr::Between {
            expr,
            negated,
            low,
            high,
        } => (|| {
            let bound = |comparison, operand: &Expr| {
                Some(Condition::Compare {
                    column: column(expr)?,
                    comparison,
                    operand: Operand::of(operand)?,
                })
            };
            let bounds = vec![
                bound(Comparison::GreaterOrEqual, low)?,
                bound(Comparison::LessOrEqual, high)?,
            ];
            Some(negated_if(*negated, Condition::And(bounds)))
        })(),
        Expr::Like {
            negated,
            any: false,
            expr,
            pattern,
            escape_char: None,
        } => (|| {
            Some(negated_if(
                *negated,
                Condition::Like {
                    column: column(expr)?,
                    pattern: Operand::of(pattern)?,
                },
            ))
        })(),
        Expr::IsNull(expr) => column(expr).map(Condition::IsNull),
        Expr::IsNotNull(expr) => {
            column(expr).map(|column| negated_if(true, Condition::IsNull(column)))
        }
        _ => None,
    };
    known.unwrap_or(Condition::Unknown)
}

fn comparison(
    left: &Expr,
    operator: &BinaryOperator,
    right: &Expr,
    column: &impl Fn(&Expr) -> Option<ColumnUse>,
) -> Option<Condition> {
    let (comparison, turned) = match operator {
        BinaryOperator::Eq => (Comparison::Equal, Comparison::Equal),
        BinaryOperator::NotEq => (Comparison::NotEqual, Comparison::NotEqual),
        BinaryOperator::Lt => (Comparison::Less, Comparison::Greater),
        BinaryOperator::LtEq => (Comparison::LessOrEqual, Comparison::GreaterOrEqual),
        BinaryOperator::Gt => (Comparison::Greater, Comparison::Less),
        BinaryOperator::GtEq => (Comparison::GreaterOrEqual, Comparison::LessOrEqual),
        _ => return None,
    };
    if let (Some(column), Some(operand)) = (column(left), Operand::of(right)) {
        return Some(Condition::Compare {
            column,
            comparison,
            operand,
        });
    }
    let (column, operand) = (column(right)?, Operand::of(left)?);
    Some(Condition::Compare {
        column,
        comparison: turned,
        operand,
    })
}

impl Condition {
    /// Returns the truth values that the condition can have for a row with the known contents `row`.
    pub(crate) fn evaluate(&self, row: &Row, arguments: &Arguments) -> Possible {
        match self {
            Self::And(parts) => parts.iter().fold(Possible::TRUE, |all, part| {
                all.and(part.evaluate(row, arguments))
            }),
            Self::Or(parts) => parts.iter().fold(Possible::FALSE, |any, part| {
                any.or(part.evaluate(row, arguments))
            }),
            Self::Not(inner) => inner.evaluate(row, arguments).not(),
            Self::Compare {
                column,
                comparison,
                operand,
            } => over(row, *column, |known| {
                operand
                    .values(arguments)
                    .fold(Possible::FALSE, |any, value| {
                        any.or(compare(column.kind, known, *comparison, value))
                    })
            }),
            Self::In { column, operands } => over(row, *column, |known| {
                let values = || {
                    operands
                        .iter()
                        .flat_map(|operand| operand.values(arguments))
                };
                if !have_one_kind(values()) {
                    return Possible::ANY;
                }
                values().fold(Possible::FALSE, |any, value| {
                    any.or(compare(column.kind, known, Comparison::Equal, value))
                })
            }),
            Self::Like { column, pattern } => over(row, *column, |known| {
                pattern
                    .values(arguments)
                    .fold(Possible::NONE, |all, value| {
                        all.or_else(like(column.kind, known, value))
                    })
            }),
            Self::IsNull(column) => over(row, *column, |known| {
                Possible::certain(*known == KnownContent::Null)
            }),
            Self::Unknown => Possible::ANY,
        }
    }

    /// Whether no row whose columns are all NULL passes, whatever the values are.
    pub(crate) fn rejects_nulls(&self) -> bool {
        !self
            .evaluate(&Row::nulls(), &Arguments::default())
            .may_be_true()
    }
}

/// Over each of the contents that the column may have.
fn over(row: &Row, column: ColumnUse, evaluate: impl Fn(&KnownContent) -> Possible) -> Possible {
    match row.contents(column.position) {
        None => Possible::ANY,
        Some(alternatives) => alternatives
            .iter()
            .fold(Possible::NONE, |all, known| all.or_else(evaluate(known))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn and_or_and_not_are_those_of_sql_over_each_pair() {
        let (t, f, n) = (Possible::TRUE, Possible::FALSE, Possible::NULL);
        for (left, right, and, or) in [
            (t, t, t, t),
            (t, f, f, t),
            (t, n, n, t),
            (f, f, f, f),
            (f, n, f, n),
            (n, n, n, n),
        ] {
            assert_eq!((left.and(right), right.and(left)), (and, and));
            assert_eq!((left.or(right), right.or(left)), (or, or));
        }
        assert_eq!((t.not(), f.not(), n.not()), (f, t, n));
        // Sets are the union over their members.
        let members = |set: Possible| [t, f, n].into_iter().filter(move |one| set.has(*one));
        for (left, right) in
            (1..8).flat_map(|left| (1..8).map(move |right| (Possible(left), Possible(right))))
        {
            let mut expected = Possible::NONE;
            for (one, other) in
                members(left).flat_map(|one| members(right).map(move |other| (one, other)))
            {
                expected = expected.or_else(one.and(other));
            }
            assert_eq!(left.and(right), expected, "{left:?} and {right:?}");
        }
    }
}
