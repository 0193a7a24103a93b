//! The numbers of the last hour, for plots: a look at them every ten seconds, in a ring.
//!
//! A look is a row of columns. There is a column for each number, or for each value of its label where
//! the table lists them; names of the configuration (zones, upstreams) are summed up, and so is every
//! second label. A histogram is a column for each bucket. So a row always has the same columns, and
//! all of the ring takes about half a megabyte.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::definition::{Definition, NumberKind, Values};
use crate::snapshot::{Series, Snapshot, Value};
use crate::table::TABLE;

/// Between two looks, in milliseconds.
pub const EVERY_MS: u64 = 10_000;
/// Looks that are kept: an hour and a little more, so that its first is there as well.
pub const KEPT_POINTS: usize = 366;

/// The last hour.
#[derive(Debug, Default)]
pub struct History(VecDeque<Point>);

#[derive(Debug)]
struct Point {
    at: u64,
    values: Box<[f64]>,
}

/// The last hour as it is handed out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryReport {
    pub every_ms: u64,
    /// `requests{HIT}`, `sent_bytes`, `hit_duration_seconds{0.001}`, `hit_duration_seconds{+Inf}`.
    pub columns: Vec<String>,
    /// The time in unix milliseconds, then a value for each column; the oldest first.
    pub points: Vec<Vec<f64>>,
}

impl History {
    /// Whether it is time for another look.
    #[must_use]
    pub fn is_due(&self, now: u64) -> bool {
        // A clock that was set back begins anew.
        let since = |last: &Point| now.checked_sub(last.at);
        self.0
            .back()
            .is_none_or(|last| since(last).is_none_or(|since| since >= EVERY_MS))
    }

    /// Keeps a look, and forgets the oldest.
    pub fn note(&mut self, snapshot: &Snapshot) {
        if self.0.len() >= KEPT_POINTS {
            self.0.pop_front();
        }
        self.0.push_back(Point {
            at: snapshot.at,
            values: row(snapshot),
        });
    }

    /// The looks after `since` (unix milliseconds).
    #[must_use]
    pub fn report(&self, since: u64) -> HistoryReport {
        let points = self.0.iter().filter(|point| point.at > since);
        HistoryReport {
            every_ms: EVERY_MS,
            columns: columns(),
            points: points
                .map(|point| {
                    std::iter::once(point.at as f64)
                        .chain(point.values.iter().copied())
                        .collect()
                })
                .collect(),
        }
    }
}

/// The first label, if the table lists its values.
fn listed(definition: &Definition) -> Option<(&'static str, &'static [&'static str])> {
    let mut listed = definition
        .labels
        .iter()
        .filter_map(|label| match label.values {
            Values::Fixed(values) => Some((label.name, values)),
            Values::Configured(_) => None,
        });
    listed.next()
}

/// The names of the columns.
fn columns() -> Vec<String> {
    let mut columns = Vec::new();
    for definition in TABLE {
        let name = definition.name;
        match (definition.kind, listed(definition)) {
            (NumberKind::Histogram(bounds), _) => {
                columns.extend(bounds.iter().map(|bound| format!("{name}{{{bound}}}")));
                columns.push(format!("{name}{{+Inf}}"));
            }
            (_, Some((_, values))) => {
                columns.extend(values.iter().map(|value| format!("{name}{{{value}}}")));
            }
            (_, None) => columns.push(name.to_owned()),
        }
    }
    columns
}

/// A value for each column.
fn row(snapshot: &Snapshot) -> Box<[f64]> {
    let mut row = Vec::new();
    for definition in TABLE {
        let all = snapshot.all(definition.number);
        match (definition.kind, listed(definition)) {
            (NumberKind::Histogram(bounds), _) => {
                let sum = snapshot.distribution(definition.number);
                let counts = sum.buckets.iter().map(|&count| count as f64);
                row.extend(counts.chain(std::iter::repeat(0.0)).take(bounds.len() + 1));
            }
            (_, Some((label, values))) => row.extend(values.iter().map(|wanted| {
                let of_value = all
                    .iter()
                    .filter(|it| it.labels.get(label).is_some_and(|it| it == wanted));
                total(of_value)
            })),
            (_, None) => row.push(total(all.iter())),
        }
    }
    row.into()
}

/// The sum of no numbers is 0, and not -0 as of the standard library.
fn total<'s>(all: impl Iterator<Item = &'s Series>) -> f64 {
    all.fold(0.0, |sum, series| sum + single(&series.value))
}

fn single(value: &Value) -> f64 {
    match value {
        Value::Single { value } => *value,
        Value::Distribution(all) => all.count as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Number;

    fn snapshot(at: u64, hits: f64) -> Snapshot {
        let mut snapshot = Snapshot {
            at,
            ..Snapshot::default()
        };
        snapshot.put(Number::Requests, &["HIT"], hits);
        snapshot.put(Number::ZoneUsedBytes, &["pages"], 5.0);
        snapshot.put(Number::ZoneUsedBytes, &["other"], 2.0);
        snapshot
    }

    #[test]
    fn a_row_has_a_value_for_each_column() {
        let mut history = History::default();
        history.note(&snapshot(10, 3.0));
        let report = history.report(0);
        let of = |column: &str| {
            let at = report.columns.iter().position(|it| it == column).unwrap();
            report.points[0][at + 1]
        };
        assert_eq!(report.points[0].len(), report.columns.len() + 1);
        assert_eq!(report.points[0][0], 10.0);
        assert_eq!(of("requests{HIT}"), 3.0);
        assert_eq!(of("requests{MISS}"), 0.0);
        assert_eq!(of("zone_used_bytes"), 7.0);
        assert_eq!(of("hit_duration_seconds{+Inf}"), 0.0);
        assert_eq!(of("upstream_requests{failure}"), 0.0);
    }

    #[test]
    fn the_ring_keeps_an_hour_and_no_more() {
        let mut history = History::default();
        assert!(history.is_due(0));
        for look in 0..KEPT_POINTS as u64 + 20 {
            history.note(&snapshot(look * EVERY_MS, look as f64));
        }
        let last = (KEPT_POINTS as u64 + 19) * EVERY_MS;
        assert!(!history.is_due(last + EVERY_MS - 1));
        assert!(history.is_due(last + EVERY_MS));
        assert!(history.is_due(last - 1), "the clock was set back");
        let report = history.report(0);
        assert_eq!(report.points.len(), KEPT_POINTS);
        let covered = report.points[KEPT_POINTS - 1][0] - report.points[0][0];
        assert!(covered >= 3_600_000.0, "{covered}");
        assert_eq!(history.report(last - EVERY_MS).points.len(), 1);
        let bytes = KEPT_POINTS * (report.columns.len() * 8 + 32);
        assert!(bytes < 640 << 10, "{bytes}");
    }
}
