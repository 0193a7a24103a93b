//! The numbers as Prometheus reads them: OpenMetrics 1.0, and the older text format 0.0.4.
//!
//! `prometheus-client` writes OpenMetrics, so that escaping and the form of numbers are its business.
//! The older format is the same but for three kinds of lines: a counter's family is called
//! like its series (`..._total`), and `# UNIT` and `# EOF` do not exist.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry;

use crate::definition::{Definition, NumberKind, Unit};
use crate::snapshot::{Series, Snapshot, Value};
use crate::table::TABLE;

/// The first part of each name.
const PREFIX: &str = "mayfly";

/// The name of a number's series, as written in a query of Prometheus.
#[must_use]
pub fn full_name(definition: &Definition) -> String {
    let total = match definition.kind {
        NumberKind::Counter => "_total",
        NumberKind::Gauge | NumberKind::Histogram(_) => "",
    };
    format!("{PREFIX}_{}{total}", definition.name)
}

/// OpenMetrics 1.0.
///
/// # Errors
/// The library cannot write it, which is a mistake of the table.
pub fn open_metrics(snapshot: Snapshot) -> Result<String, fmt::Error> {
    let mut registry = registry::Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(ShownSnapshot(snapshot)));
    let mut out = String::with_capacity(32 << 10);
    text::encode(&mut out, &registry)?;
    Ok(out)
}

/// The text format 0.0.4.
///
/// # Errors
/// The errors of [`open_metrics`].
pub fn prometheus_text(snapshot: Snapshot) -> Result<String, fmt::Error> {
    let newer = open_metrics(snapshot)?;
    let counters: Vec<String> = TABLE
        .iter()
        .filter(|definition| definition.kind == NumberKind::Counter)
        .map(|definition| format!("{PREFIX}_{}", definition.name))
        .collect();
    let mut out = String::with_capacity(newer.len() + 1024);
    for line in newer.lines() {
        if line.starts_with("# UNIT ") || line.starts_with("# EOF") {
            continue;
        }
        let mut words = line.splitn(4, ' ');
        let about = (words.next(), words.next(), words.next(), words.next());
        match about {
            (Some("#"), Some(what), Some(name), Some(rest))
                if counters.iter().any(|it| it == name) =>
            {
                out.push_str(&format!("# {what} {name}_total {rest}"));
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    Ok(out)
}

#[derive(Debug)]
struct ShownSnapshot(Snapshot);

impl Collector for ShownSnapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for definition in TABLE {
            let all = self.0.all(definition.number);
            if !all.is_empty() {
                encode(&mut encoder, definition, all)?;
            }
        }
        Ok(())
    }
}

/// All series of a number.
fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    definition: &Definition,
    all: &[Series],
) -> Result<(), fmt::Error> {
    let (kind, unit) = (metric_type(definition.kind), unit(definition.unit));
    let suffix = definition.unit.suffix();
    // The library puts the unit behind the name.
    let name = suffix.and_then(|suffix| definition.name.strip_suffix(suffix)?.strip_suffix('_'));
    let name = name.unwrap_or(definition.name);
    let mut family = encoder.encode_descriptor(name, definition.help, unit.as_ref(), kind)?;
    for series in all {
        // In the order of the definition: a map's is that of the alphabet.
        let labels = definition.labels.iter().map(|label| {
            let value = series.labels.get(label.name);
            (label.name, value.map_or("", String::as_str))
        });
        let labels: Vec<(&str, &str)> = labels.collect();
        match labels.is_empty() {
            true => encode_value(&mut family, definition.kind, &series.value)?,
            false => encode_value(
                &mut family.encode_family(&labels)?,
                definition.kind,
                &series.value,
            )?,
        }
    }
    Ok(())
}

fn encode_value(
    metric: &mut MetricEncoder<'_>,
    kind: NumberKind,
    value: &Value,
) -> Result<(), fmt::Error> {
    match (value, kind) {
        (Value::Distribution(all), NumberKind::Histogram(bounds)) => {
            let bounds = bounds.iter().copied().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(all.buckets.iter().copied()).collect();
            metric.encode_histogram::<NoLabelSet>(all.sum, all.count, &buckets, None)
        }
        (Value::Single { value }, NumberKind::Counter) => {
            metric.encode_counter(value, None::<&Exemplar<NoLabelSet, f64>>)
        }
        (Value::Single { value }, NumberKind::Gauge) => metric.encode_gauge(value),
        _ => Err(fmt::Error),
    }
}

fn metric_type(kind: NumberKind) -> MetricType {
    match kind {
        NumberKind::Counter => MetricType::Counter,
        NumberKind::Gauge => MetricType::Gauge,
        NumberKind::Histogram(_) => MetricType::Histogram,
    }
}

fn unit(unit: Unit) -> Option<registry::Unit> {
    match unit {
        Unit::Count => None,
        Unit::Bytes => Some(registry::Unit::Bytes),
        Unit::Seconds => Some(registry::Unit::Seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Distribution;
    use crate::table::HIT_BOUNDS;
    use crate::table::Number;

    fn snapshot() -> Snapshot {
        let mut snapshot = Snapshot::default();
        snapshot.put(Number::Requests, &["HIT"], 12.0);
        snapshot.put(Number::SentBytes, &[], 4096.0);
        snapshot.put(Number::ZoneUsedBytes, &["a\"b\\c\nd"], 7.0);
        let mut buckets = vec![0; HIT_BOUNDS.len() + 1];
        (buckets[0], buckets[2]) = (2, 1);
        snapshot.put_distribution(
            Number::HitDuration,
            &[],
            &Distribution::new(buckets, 0.00006),
        );
        snapshot
    }

    #[test]
    fn openmetrics_has_units_and_an_end() {
        let text = open_metrics(snapshot()).unwrap();
        for line in [
            "# TYPE mayfly_requests counter",
            "mayfly_requests_total{cache=\"HIT\"} 12",
            "# UNIT mayfly_sent_bytes bytes",
            "mayfly_sent_bytes_total 4096",
            "# TYPE mayfly_hit_duration_seconds histogram",
            "mayfly_hit_duration_seconds_count 3",
        ] {
            assert!(
                text.lines()
                    .any(|it| it == line || it == format!("{line}.0")),
                "{line}\n{text}"
            );
        }
        assert!(text.ends_with("# EOF\n"));
        let inf = text
            .lines()
            .find(|line| line.contains("le=\"+Inf\""))
            .unwrap();
        assert!(inf.ends_with(" 3"), "{inf}");
    }

    #[test]
    fn the_older_format_calls_a_counter_like_its_series() {
        let text = prometheus_text(snapshot()).unwrap();
        assert!(
            text.contains("# TYPE mayfly_requests_total counter\n"),
            "{text}"
        );
        assert!(
            text.contains("# HELP mayfly_requests_total Requests of clients"),
            "{text}"
        );
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"));
        assert!(text.contains("# TYPE mayfly_hit_duration_seconds histogram\n"));
    }

    #[test]
    fn no_value_of_a_label_breaks_out_of_its_place() {
        for text in [
            open_metrics(snapshot()).unwrap(),
            prometheus_text(snapshot()).unwrap(),
        ] {
            let line = text
                .lines()
                .find(|line| line.starts_with("mayfly_zone_used_bytes{"))
                .unwrap();
            assert!(
                line.starts_with(r#"mayfly_zone_used_bytes{zone="a\"b\\c\nd"} 7"#),
                "{line}"
            );
        }
    }
}
