//! The definition of one number: an entry of the table.

use crate::table::Number;

/// One number of the server.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    pub number: Number,
    /// In the words of Prometheus: small letters, and a unit behind them. Prometheus sees it with
    /// `mayfly_` in front, and a counter with `_total` behind.
    pub name: &'static str,
    /// The title of a plot, and of a line of a table.
    pub title: &'static str,
    pub kind: NumberKind,
    pub unit: Unit,
    pub labels: &'static [Label],
    /// The counted event and its time, in one or two sentences.
    pub help: &'static str,
}

/// How a number changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NumberKind {
    /// It only grows, and begins at 0 with the process.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How values are distributed: the upper bounds of buckets, to which one without a bound is
    /// added.
    Histogram(&'static [f64]),
}

impl NumberKind {
    /// The word of OpenMetrics.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            NumberKind::Counter => "counter",
            NumberKind::Gauge => "gauge",
            NumberKind::Histogram(_) => "histogram",
        }
    }
}

/// The unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things: requests, connections, lines.
    Count,
    Bytes,
    Seconds,
}

impl Unit {
    /// How a name ends that has this unit.
    #[must_use]
    pub fn suffix(self) -> Option<&'static str> {
        match self {
            Unit::Count => None,
            Unit::Bytes => Some("bytes"),
            Unit::Seconds => Some("seconds"),
        }
    }
}

/// A label, by whose values the series of one number differ.
#[derive(Debug, Clone, Copy)]
pub struct Label {
    pub name: &'static str,
    pub values: Values,
}

/// The values that a label may have. There is no third kind: text of clients is never one.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// These.
    Fixed(&'static [&'static str]),
    /// The names of some part of the configuration; the text names the part.
    Configured(&'static str),
}
