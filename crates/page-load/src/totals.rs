//! The totals of a load, as a table of figures, and the median of several loads.

use std::collections::BTreeMap;

use command_line::CacheWord;
use serde_json::{Map, Value, json};
use url::Url;

use crate::page::{LoadedResource, PageLoad, Source};
use crate::resource::ResourceKind;

/// One number of a load.
pub struct Figure {
    /// In JSON.
    pub key: &'static str,
    pub text: &'static str,
    pub unit: Unit,
    of: fn(&PageLoad) -> f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Milliseconds,
    Bytes,
    Count,
}

/// In the order in which they are shown.
pub const FIGURES: [Figure; 14] = [
    figure(
        "first_byte_ms",
        "first byte of the page",
        Unit::Milliseconds,
        PageLoad::first_byte_ms,
    ),
    figure(
        "render_blocking_ms",
        "render-blocking there",
        Unit::Milliseconds,
        PageLoad::render_blocking_ms,
    ),
    figure(
        "everything_ms",
        "everything there",
        Unit::Milliseconds,
        PageLoad::everything_ms,
    ),
    figure("requests", "requests", Unit::Count, |it| {
        count(it, is_asked)
    }),
    figure("failed", "  failed, or 4xx and 5xx", Unit::Count, |it| {
        count(it, LoadedResource::is_wrong)
    }),
    figure("unchanged", "  unchanged (304)", Unit::Count, |it| {
        count(it, |it| it.source == Source::Revalidated)
    }),
    figure(
        "browser_cache",
        "from the browser's cache",
        Unit::Count,
        |it| count(it, |it| it.source == Source::BrowserCache),
    ),
    figure("received_bytes", "received", Unit::Bytes, |it| {
        it.traffic.received as f64
    }),
    figure("decoded_bytes", "  decoded bodies", Unit::Bytes, |it| {
        let asked = it.resources.iter().filter(|it| is_asked(it));
        asked.map(|it| it.sizes.decoded as f64).sum()
    }),
    figure("sent_bytes", "sent", Unit::Bytes, |it| {
        it.traffic.sent as f64
    }),
    figure("connections", "connections", Unit::Count, |it| {
        it.connections as f64
    }),
    figure(
        "server_memory",
        "server: from its cache",
        Unit::Count,
        |it| count(it, |it| server_word(it).is_some_and(CacheWord::is_spared)),
    ),
    figure(
        "server_made",
        "server: not from its cache",
        Unit::Count,
        |it| count(it, |it| server_word(it).is_some_and(|it| !it.is_spared())),
    ),
    figure("server_silent", "server: does not say", Unit::Count, |it| {
        count(it, |it| {
            is_asked(it) && it.answer.is_some() && server_word(it).is_none()
        })
    }),
];

const fn figure(
    key: &'static str,
    text: &'static str,
    unit: Unit,
    of: fn(&PageLoad) -> f64,
) -> Figure {
    Figure {
        key,
        text,
        unit,
        of,
    }
}

fn count(load: &PageLoad, which: impl Fn(&LoadedResource) -> bool) -> f64 {
    load.resources.iter().filter(|it| which(it)).count() as f64
}

/// A request was sent, or tried.
fn is_asked(resource: &LoadedResource) -> bool {
    resource.source != Source::BrowserCache
}

/// Returns the server's verdict about its cache in this load, not in a load before. A field `Age` shows
/// that some cache had it.
fn server_word(resource: &LoadedResource) -> Option<CacheWord> {
    let answer = resource.answer.as_ref().filter(|_| is_asked(resource))?;
    let by_age = answer
        .age
        .is_some_and(|it| it > 0)
        .then_some(CacheWord::Hit);
    answer.server_cache.or(by_age)
}

impl PageLoad {
    /// The page itself, after its redirections.
    fn page(&self) -> Option<&LoadedResource> {
        let mut all = self.resources.iter().rev();
        all.find(|it| it.kind == ResourceKind::Document)
    }

    /// How many resources were asked for at other origins than the page's: other ports as well as hosts.
    #[must_use]
    pub fn other_origins(&self) -> BTreeMap<String, usize> {
        let origin = |url: &str| Url::parse(url).map(|it| it.origin().ascii_serialization());
        let own = self.page().and_then(|it| origin(&it.url).ok());
        let mut others = BTreeMap::new();
        for resource in self
            .resources
            .iter()
            .filter(|it| it.kind != ResourceKind::Document)
        {
            if let Ok(origin) = origin(&resource.url)
                && Some(&origin) != own.as_ref()
            {
                *others.entry(origin).or_default() += 1;
            }
        }
        others
    }

    /// Until the first byte of the page's head, redirections included.
    #[must_use]
    pub fn first_byte_ms(&self) -> f64 {
        self.page()
            .map_or(0.0, |it| it.times.first_byte.unwrap_or(it.times.end))
    }

    /// Until everything was there that keeps a browser from drawing.
    #[must_use]
    pub fn render_blocking_ms(&self) -> f64 {
        let blocking = self.resources.iter();
        let blocking =
            blocking.filter(|it| it.blocks_rendering && it.kind != ResourceKind::Document);
        blocking
            .map(|it| it.times.end)
            .fold(self.first_byte_ms(), f64::max)
    }

    /// Until the last resource was there.
    #[must_use]
    pub fn everything_ms(&self) -> f64 {
        let ends = self.resources.iter().map(|it| it.times.end);
        ends.fold(0.0, f64::max)
    }
}

/// The least, the median and the greatest of several loads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub least: f64,
    pub median: f64,
    pub most: f64,
}

impl Figure {
    /// Over some loads; zero for none.
    #[must_use]
    pub fn spread(&self, loads: &[PageLoad]) -> Spread {
        let mut values: Vec<f64> = loads.iter().map(self.of).collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(0.0);
        let last = values.len().saturating_sub(1);
        Spread {
            least: at(0),
            median: (at(last / 2) + at(last.div_ceil(2))) / 2.0,
            most: at(last),
        }
    }
}

impl Unit {
    /// Returns the value as text for people.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        match self {
            Unit::Milliseconds => format!("{} ms", milliseconds(value)),
            Unit::Bytes => bytes(value),
            Unit::Count if value.fract() == 0.0 => format!("{value:.0}"),
            Unit::Count => format!("{value:.1}"),
        }
    }
}

/// Without needless digits.
#[must_use]
pub fn milliseconds(value: f64) -> String {
    match value {
        _ if value < 10.0 => format!("{value:.2}"),
        _ if value < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[must_use]
pub fn bytes(value: f64) -> String {
    match value {
        _ if value < 1000.0 => format!("{value:.0} B"),
        _ if value < 1e6 => format!("{:.1} KB", value / 1e3),
        _ => format!("{:.2} MB", value / 1e6),
    }
}

/// The load whose time until everything was there is the median: the one that is drawn.
#[must_use]
pub fn typical(loads: &[PageLoad]) -> Option<&PageLoad> {
    let mut sorted: Vec<&PageLoad> = loads.iter().collect();
    sorted.sort_by(|one, other| one.everything_ms().total_cmp(&other.everything_ms()));
    let middle = sorted.len().saturating_sub(1) / 2;
    sorted.get(middle).copied()
}

/// All figures of some loads.
#[must_use]
pub fn to_json(loads: &[PageLoad]) -> Value {
    let each = FIGURES.iter().map(|figure| {
        let spread = figure.spread(loads);
        let value = json!({"median": spread.median, "least": spread.least, "most": spread.most});
        (figure.key.to_owned(), value)
    });
    Value::Object(each.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::example;

    fn value(load: &PageLoad, key: &str) -> f64 {
        let figure = FIGURES.iter().find(|it| it.key == key).expect("a figure");
        figure.spread(std::slice::from_ref(load)).median
    }

    #[test]
    fn figures_are_of_what_was_asked_for() {
        let load = example();
        for (key, expected) in [
            ("first_byte_ms", 20.0),
            ("render_blocking_ms", 60.0),
            ("everything_ms", 150.0),
            ("requests", 4.0),
            ("failed", 1.0),
            ("unchanged", 1.0),
            ("browser_cache", 1.0),
            ("received_bytes", 5000.0),
            ("decoded_bytes", 40_500.0),
            ("connections", 2.0),
            ("server_memory", 2.0),
            ("server_made", 1.0),
            ("server_silent", 0.0),
        ] {
            assert_eq!(value(&load, key), expected, "{key}");
        }
    }

    #[test]
    fn resources_of_other_ports_are_counted_by_origin() {
        let mut load = example();
        assert!(load.other_origins().is_empty());
        load.resources[1].url = "http://site.test:8080/a.css".to_owned();
        let others = load.other_origins();
        assert_eq!(
            others.into_iter().collect::<Vec<_>>(),
            [("http://site.test:8080".to_owned(), 1)]
        );
    }

    #[test]
    fn medians_lie_between_two_loads_where_their_number_is_even() {
        let with = |connections| PageLoad {
            connections,
            ..example()
        };
        let figure = FIGURES.iter().find(|it| it.key == "connections");
        let figure = figure.expect("a figure");
        let median = |each: &[usize]| {
            let loads: Vec<PageLoad> = each.iter().map(|it| with(*it)).collect();
            figure.spread(&loads).median
        };
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3]), 3.0);
        assert_eq!(median(&[9, 1, 2]), 2.0);
        assert_eq!(median(&[9, 1, 2, 3]), 2.5);
    }
}
