//! Statements that are found by the values of written rows.

use super::Place;
use crate::arguments::Arguments;
use crate::condition::{Condition, Operand};
use crate::postings::{Fingerprint, Postings};
use crate::read::TableUse;
use crate::row::{Row, RowChange};
use crate::schema::{ColumnKind, ColumnUse};
use crate::value::Comparison;

/// Collects the columns that must equal a value, or one of several, in every row that matters.
pub(super) fn add_compared(condition: &Condition, compared: &mut Vec<(ColumnUse, Vec<Operand>)>) {
    let (column, operands) = match condition {
        Condition::And(parts) => {
            return parts.iter().for_each(|part| add_compared(part, compared));
        }
        Condition::Compare {
            column,
            comparison: Comparison::Equal,
            operand,
        } => (column, vec![operand.clone()]),
        Condition::In { column, operands } => (column, operands.clone()),
        _ => return,
    };
    if column.kind != ColumnKind::Other {
        compared.push((*column, operands));
    }
}

/// Finds the statements of a shape that a change may concern by the values of its rows. `false`: they
/// cannot be found by a value.
pub(super) fn find(
    postings: &Postings,
    table_use: &TableUse,
    places: &[Place],
    change: &RowChange,
    see: &mut impl FnMut(u32, &Row),
) -> bool {
    let rows = match change {
        RowChange::Inserted(row) | RowChange::Deleted(row) => [Some(row), None],
        RowChange::Updated { old, new, columns } if table_use.sees(columns) => {
            [Some(old), Some(new).filter(|new| *new != old)]
        }
        RowChange::Updated { .. } => return true,
    };
    rows.into_iter().flatten().all(|row| {
        // Whatever the values of a statement are: no row with NULL there.
        if !table_use.may_have(row, &Arguments::default()) {
            return true;
        }
        let fingerprints = places
            .iter()
            .filter_map(|place| fingerprints_of(postings, place, row));
        let best = fingerprints.min_by_key(|(count, _)| *count);
        let Some((_, fingerprints)) = best else {
            return false;
        };
        for fingerprint in fingerprints {
            for statement in postings.find(fingerprint).into_iter().flatten() {
                see(statement, row);
            }
        }
        true
    })
}

/// Returns the fingerprints of the statements that a row can concern, with their number. `None`: the row's
/// value is not known, or they are too many.
fn fingerprints_of(
    postings: &Postings,
    place: &Place,
    row: &Row,
) -> Option<(usize, Vec<Fingerprint>)> {
    let contents = row.contents(place.column.position)?;
    let contents = contents.iter().map(|known| Some(known.as_comparable()));
    let mut count = 0;
    let mut fingerprints = Vec::new();
    // And those whose own value is unclear.
    for content in contents.chain([None]) {
        let fingerprint = postings.fingerprint(place.number, content);
        count += postings.find(fingerprint)?.count();
        fingerprints.push(fingerprint);
    }
    Some((count, fingerprints))
}
