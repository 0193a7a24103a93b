//! All numbers at one moment.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::definition::NumberKind;
use crate::table::Number;

/// Label values, by the label's name.
pub type Labels = BTreeMap<Cow<'static, str>, String>;

/// All numbers at one moment, as the control socket and the dashboard give them:
///
/// ```json
/// {"version":"0.1.0","at":1763900000000,"numbers":{
///   "requests":[{"labels":{"cache":"HIT"},"value":12}, ...],
///   "hit_duration_seconds":[{"count":3,"sum":0.00021,"buckets":[0,0,2,1,0,...]}], ...}}
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The program's version.
    pub version: String,
    /// When, in unix milliseconds.
    pub at: u64,
    /// The series of each number, by its name in the table. A name that a reader does not know is
    /// one of a later release.
    pub numbers: BTreeMap<Cow<'static, str>, Vec<Series>>,
}

/// One value of a number, and the labels that it is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: Labels,
    #[serde(flatten)]
    pub value: Value,
}

/// The value of a number at the time of the snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// The value of a counter or gauge.
    Single { value: f64 },
    /// The value of a histogram.
    Distribution(Distribution),
}

/// How many values fell into each bucket of the definition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    pub count: u64,
    /// The sum of all values.
    pub sum: f64,
    /// One for each bound, and one for values above the last.
    pub buckets: Vec<u64>,
}

impl Distribution {
    /// The distribution with these counts and this sum.
    #[must_use]
    pub fn new(buckets: Vec<u64>, sum: f64) -> Distribution {
        Distribution {
            count: buckets.iter().sum(),
            sum,
            buckets,
        }
    }

    /// Returns the value below which this share of all lies, interpolated between the bounds of its
    /// bucket; `None` if there are no values. A result above the last bound is given as that bound.
    #[must_use]
    pub fn quantile(&self, share: f64, bounds: &[f64]) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let wanted = share.clamp(0.0, 1.0) * self.count as f64;
        let mut below = 0.0;
        for (at, &inside) in self.buckets.iter().enumerate() {
            let inside = inside as f64;
            if inside > 0.0 && below + inside >= wanted {
                let from = at
                    .checked_sub(1)
                    .map_or(0.0, |before| bounds[before.min(bounds.len() - 1)]);
                let Some(to) = bounds.get(at) else {
                    return bounds.last().copied();
                };
                return Some(from + (to - from) * ((wanted - below) / inside).clamp(0.0, 1.0));
            }
            below += inside;
        }
        bounds.last().copied()
    }

    /// Returns the values added since `before`, an earlier snapshot of the same histogram.
    #[must_use]
    pub fn since(&self, before: &Distribution) -> Distribution {
        let earlier = before.buckets.iter().copied().chain(std::iter::repeat(0));
        let buckets = self.buckets.iter().zip(earlier);
        let buckets = buckets
            .map(|(now, then)| now.saturating_sub(then))
            .collect();
        Distribution::new(buckets, (self.sum - before.sum).max(0.0))
    }
}

impl Snapshot {
    /// Sets a counter or gauge for these values of its labels. Adds to a value that is there
    /// already: two groups of one name are one series.
    pub fn put(&mut self, number: Number, values: &[&str], value: f64) {
        match self.series(number, values, || Value::Single { value: 0.0 }) {
            Value::Single { value: sum } => *sum += value,
            Value::Distribution(_) => debug_assert!(false, "{number:?} is a histogram"),
        }
    }

    /// Sets a counter or gauge for each value of its only label, which has none yet.
    pub fn put_each(
        &mut self,
        number: Number,
        values: &[&str],
        counts: impl IntoIterator<Item = u64>,
    ) {
        let definition = number.definition();
        debug_assert_eq!(definition.labels.len(), 1, "{number:?}");
        let label = definition.labels[0].name;
        let all = self.numbers.entry(Cow::Borrowed(definition.name));
        let all = all.or_default();
        debug_assert!(all.is_empty(), "{number:?}");
        let counts = values.iter().zip(counts);
        all.extend(counts.map(|(&value, count)| {
            let mut labels = Labels::new();
            labels.insert(Cow::Borrowed(label), value.to_owned());
            let value = Value::Single {
                value: count as f64,
            };
            Series { labels, value }
        }));
    }

    /// Like [`Snapshot::put`], for a histogram.
    pub fn put_distribution(&mut self, number: Number, values: &[&str], more: &Distribution) {
        let NumberKind::Histogram(bounds) = number.definition().kind else {
            debug_assert!(false, "{number:?} is no histogram");
            return;
        };
        let empty = || Value::Distribution(Distribution::new(vec![0; bounds.len() + 1], 0.0));
        if let Value::Distribution(sum) = self.series(number, values, empty) {
            for (sum, more) in sum.buckets.iter_mut().zip(&more.buckets) {
                *sum += more;
            }
            sum.count += more.count;
            sum.sum += more.sum;
        }
    }

    fn series(
        &mut self,
        number: Number,
        values: &[&str],
        empty: impl FnOnce() -> Value,
    ) -> &mut Value {
        let definition = number.definition();
        debug_assert_eq!(values.len(), definition.labels.len(), "{number:?}");
        let labels = definition.labels.iter().map(|label| label.name).zip(values);
        let is_it = |series: &Series| {
            let mut labels = labels.clone();
            labels.all(|(name, &value)| series.labels.get(name).is_some_and(|its| its == value))
        };
        let name = Cow::Borrowed(definition.name);
        let all = self.numbers.entry(name).or_default();
        let at = all.iter().position(is_it);
        let at = at.unwrap_or_else(|| {
            // One after the other: to collect them would sort them.
            let mut entered = Labels::new();
            for (name, &value) in labels {
                entered.insert(Cow::Borrowed(name), value.to_owned());
            }
            all.push(Series {
                labels: entered,
                value: empty(),
            });
            all.len() - 1
        });
        &mut all[at].value
    }

    #[must_use]
    pub fn all(&self, number: Number) -> &[Series] {
        self.numbers
            .get(number.definition().name)
            .map_or(&[], Vec::as_slice)
    }

    /// The sum of a counter or gauge over all series that have these values, in the order of the
    /// definition's labels; those that are not given count whatever they are.
    #[must_use]
    pub fn sum(&self, number: Number, wanted: &[(&str, &str)]) -> f64 {
        let has = |series: &&Series| {
            let mut wanted = wanted.iter();
            wanted.all(|(name, value)| series.labels.get(*name).is_some_and(|it| it == value))
        };
        let values = self
            .all(number)
            .iter()
            .filter(has)
            .map(|series| match &series.value {
                Value::Single { value } => *value,
                Value::Distribution(all) => all.count as f64,
            });
        // The sum of no numbers is -0.0, which would be shown as such.
        values.fold(0.0, |sum, value| sum + value)
    }

    /// A histogram over all of its series.
    #[must_use]
    pub fn distribution(&self, number: Number) -> Distribution {
        let mut sum = Distribution::default();
        for series in self.all(number) {
            if let Value::Distribution(more) = &series.value {
                sum.buckets
                    .resize(sum.buckets.len().max(more.buckets.len()), 0);
                sum.buckets
                    .iter_mut()
                    .zip(&more.buckets)
                    .for_each(|(sum, more)| *sum += more);
                sum.count += more.count;
                sum.sum += more.sum;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::WAIT_BOUNDS;

    #[test]
    fn two_groups_of_one_name_are_one_series() {
        let mut snapshot = Snapshot::default();
        snapshot.put(Number::UpstreamBusy, &["php"], 2.0);
        snapshot.put(Number::UpstreamBusy, &["php"], 3.0);
        snapshot.put(Number::UpstreamBusy, &["api"], 1.0);
        assert_eq!(snapshot.all(Number::UpstreamBusy).len(), 2);
        assert_eq!(
            snapshot.sum(Number::UpstreamBusy, &[("upstream", "php")]),
            5.0
        );
        assert_eq!(snapshot.sum(Number::UpstreamBusy, &[]), 6.0);
    }

    #[test]
    fn a_snapshot_is_the_same_after_a_way_through_json() {
        let mut snapshot = Snapshot {
            version: "1".to_owned(),
            at: 5,
            ..Snapshot::default()
        };
        snapshot.put(Number::Requests, &["HIT"], 12.0);
        snapshot.put(Number::SentBytes, &[], 3.5);
        let mut buckets = vec![0; WAIT_BOUNDS.len() + 1];
        buckets[2] = 4;
        let some = Distribution::new(buckets, 0.016);
        snapshot.put_distribution(Number::MissDuration, &[], &some);
        let json = serde_json::to_string(&snapshot).unwrap();
        assert!(
            json.contains(r#""requests":[{"labels":{"cache":"HIT"},"value":12.0}]"#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<Snapshot>(&json).unwrap(), snapshot);
        assert_eq!(snapshot.distribution(Number::MissDuration), some);
    }

    #[test]
    fn quantiles_lie_between_the_bounds_of_their_bucket() {
        let bounds = &[1.0, 2.0, 4.0];
        let of = |buckets: [u64; 4]| Distribution::new(buckets.to_vec(), 0.0);
        for (buckets, share, expected) in [
            ([0, 0, 0, 0], 0.5, None),
            ([4, 0, 0, 0], 0.5, Some(0.5)),
            ([2, 2, 0, 0], 0.5, Some(1.0)),
            ([2, 2, 0, 0], 0.75, Some(1.5)),
            ([0, 0, 2, 0], 1.0, Some(4.0)),
            ([0, 0, 0, 9], 0.5, Some(4.0)),
            ([9, 0, 0, 1], 0.99, Some(4.0)),
        ] {
            assert_eq!(
                of(buckets).quantile(share, bounds),
                expected,
                "{buckets:?} {share}"
            );
        }
        assert_eq!(
            of([3, 2, 0, 1]).since(&of([1, 2, 0, 0])).buckets,
            [2, 0, 0, 1]
        );
    }
}
