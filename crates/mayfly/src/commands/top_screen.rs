//! The screen of `mayfly top`: two looks at a server's numbers become lines of text. Nothing here
//! asks, draws or waits.

use command_line::printable;
use numbers::{Distribution, Number, NumberKind, Pages, Snapshot, TopEntry};

/// The lists on the screen, and their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Choice {
    pub pages: PageList,
    pub order: Order,
}

/// The list of pages that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageList {
    #[default]
    Costly,
    Wanted,
    NotStored,
    Clients,
    Uses,
}

/// How zones and upstreams are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The most used first.
    #[default]
    Use,
    Name,
}

/// A line, and whether it is a heading.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub text: String,
    pub is_heading: bool,
}

/// Two looks at a server, and the pages that stand out.
#[derive(Debug, Clone, Default)]
pub struct SnapshotPair {
    pub before: Snapshot,
    pub now: Snapshot,
    pub pages: Pages,
}

/// Rows of zones, and of upstreams, that are shown at most on a screen of 24 lines.
const ROWS_EACH: usize = 4;
const HITS: [&str; 3] = ["HIT", "STALE", "UPDATING"];
const SHOWN_FIRST: [&str; 8] = [
    "HIT",
    "STALE",
    "UPDATING",
    "REVALIDATED",
    "EXPIRED",
    "MISS",
    "BYPASS",
    "none",
];
const ERRORS: [&str; 4] = ["emerg", "alert", "crit", "error"];

/// The screen: no line is longer than `width`, and there are no more than `height`.
pub fn lines(looks: &SnapshotPair, choice: Choice, width: usize, height: usize) -> Vec<Line> {
    let mut lines = summary(looks);
    lines.extend(nodes(&looks.now));
    lines.extend(learned(looks));
    // A terminal of more lines shows more rows.
    let rows = ROWS_EACH + height.saturating_sub(24) / 4;
    lines.extend(zones(looks, choice.order, rows));
    lines.extend(upstreams(looks, choice.order, rows));
    lines.extend(pages(&looks.pages, choice.pages, width));
    lines.truncate(height);
    for line in &mut lines {
        line.text = line.text.chars().map(printable).take(width).collect();
    }
    lines
}

fn plain(text: String) -> Line {
    Line {
        text,
        is_heading: false,
    }
}

fn heading(text: String) -> Line {
    Line {
        text,
        is_heading: true,
    }
}

impl SnapshotPair {
    fn seconds(&self) -> f64 {
        let milliseconds = self.now.at.saturating_sub(self.before.at);
        (milliseconds as f64 / 1000.0).max(0.001)
    }

    /// By how much a counter has grown per second.
    fn rate(&self, number: Number, wanted: &[(&str, &str)]) -> f64 {
        // A server that began anew counts from zero.
        let grown = self.now.sum(number, wanted) - self.before.sum(number, wanted);
        grown.max(0.0) / self.seconds()
    }

    fn rates(&self, number: Number, label: &str, values: &[&str]) -> f64 {
        let rates = values
            .iter()
            .map(|value| self.rate(number, &[(label, value)]));
        rates.sum()
    }

    /// Returns the values that came between the two looks, or all since the start if there were
    /// none.
    fn recent(&self, number: Number) -> Distribution {
        let all = self.now.distribution(number);
        let since = all.since(&self.before.distribution(number));
        if since.count > 0 { since } else { all }
    }

    fn quantiles(&self, number: Number) -> String {
        let NumberKind::Histogram(bounds) = number.definition().kind else {
            return String::new();
        };
        let recent = self.recent(number);
        let shares = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];
        let shown = shares.map(|(name, share)| {
            let value = recent.quantile(share, bounds);
            format!("{name} {:<9}", value.map_or("-".to_owned(), seconds))
        });
        shown.join(" ")
    }

    /// The values of a label, in the order that was chosen.
    fn names(&self, by: Number, label: &str, order: Order) -> Vec<String> {
        let all = self.now.all(by).iter();
        let mut names: Vec<String> = all.filter_map(|it| it.labels.get(label).cloned()).collect();
        names.sort();
        names.dedup();
        if order == Order::Use {
            let used = |name: &String| self.now.sum(by, &[(label, name)]);
            names.sort_by(|one, other| used(other).total_cmp(&used(one)));
        }
        names
    }
}

fn summary(looks: &SnapshotPair) -> Vec<Line> {
    let now = &looks.now;
    let single = |number| now.sum(number, &[]);
    let up = now.at as f64 / 1000.0 - single(Number::StartTime);
    let asked: Vec<&str> = SHOWN_FIRST[..SHOWN_FIRST.len() - 1].to_vec();
    let (hits, all) = (
        looks.rates(Number::Requests, "cache", &HITS),
        looks.rates(Number::Requests, "cache", &asked),
    );
    let ratio = match all > 0.0 {
        true => format!("{:.1} %", 100.0 * hits / all),
        false => "-".to_owned(),
    };
    // All eight do not fit in 80 columns; hardly a site has more than five.
    let statuses = SHOWN_FIRST.iter().filter(|&&status| {
        let has_come = now.sum(Number::Requests, &[("cache", status)]) > 0.0;
        has_come || ["HIT", "MISS"].contains(&status)
    });
    let statuses = statuses.map(|status| {
        let rate = looks.rate(Number::Requests, &[("cache", status)]);
        format!("{status} {}", short(rate))
    });
    let statuses: Vec<String> = statuses.collect();
    let worked = single(Number::SparedSeconds);
    vec![
        heading(format!(
            "mayfly {}   up {}   memory {}   {} workers   {} connections",
            now.version,
            seconds(up.max(0.0)),
            bytes(single(Number::ResidentBytes)),
            short(single(Number::Workers)),
            short(single(Number::OpenConnections)),
        )),
        plain(format!(
            "requests {} /s   hit ratio {ratio}   {} since the start",
            short(looks.rate(Number::Requests, &[])),
            short(single(Number::Requests)),
        )),
        plain(format!("per s    {}", statuses.join("  "))),
        plain(format!("hits     {}", looks.quantiles(Number::HitDuration))),
        plain(format!(
            "misses   {}",
            looks.quantiles(Number::MissDuration)
        )),
        plain(format!(
            "in line  {}",
            looks.quantiles(Number::UpstreamQueueDuration)
        )),
        plain(format!(
            "spared   {} of PHP per second   {} since the start",
            seconds(looks.rate(Number::SparedSeconds, &[])),
            seconds(worked),
        )),
        plain(format!(
            "errors   {} 5xx   {} upstream failures   {} refused by limits   {} log lines   per s",
            short(looks.rate(Number::Responses, &[("class", "5xx")])),
            short(looks.rate(Number::UpstreamRequests, &[("outcome", "failure")])),
            short(looks.rate(Number::RefusedRequests, &[])),
            short(looks.rates(Number::LogLines, "level", &ERRORS)),
        )),
    ]
}

/// How this server stands with others that share purges; nothing if it shares none.
fn nodes(now: &Snapshot) -> Option<Line> {
    if now.all(Number::NodesLeaseIsHeld).is_empty() {
        return None;
    }
    let single = |number| now.sum(number, &[]);
    let is = |number| single(number) > 0.0;
    let lease = match (is(Number::NodesLeaseIsHeld), is(Number::NodesIsConnected)) {
        (true, true) => "lease held",
        (true, false) => "lease held, no connection",
        (false, true) => "no lease",
        (false, false) => "no lease, no connection",
    };
    Some(plain(format!(
        "nodes    {lease}   {} members   {} behind   {} purges waiting",
        short(single(Number::NodesMembers)),
        short(single(Number::NodesBehind)),
        short(single(Number::NodesWaiting)),
    )))
}

/// Returns the line about pages of own pools that are learned (`cache_learn`), all pools together.
fn learned(looks: &SnapshotPair) -> Option<Line> {
    let now = &looks.now;
    if now.all(Number::LearnedPages).is_empty() {
        return None;
    }
    let all = |number| short(now.sum(number, &[]));
    let missed = now.sum(Number::LearnedComparisons, &[("result", "fresh_changed")]);
    Some(plain(format!(
        "learned  {} pages   {} kept   {} removed   {} suspect   {} not learned   {} writes/s   {} compared   {} would be old",
        all(Number::LearnedPages),
        all(Number::LearnedKept),
        all(Number::LearnedRemovals),
        all(Number::LearnedSuspects),
        all(Number::NotLearnedRenders),
        short(looks.rate(Number::LearnedWrites, &[])),
        all(Number::LearnedComparisons),
        short(missed),
    )))
}

fn zones(looks: &SnapshotPair, order: Order, rows: usize) -> Vec<Line> {
    let names = looks.names(Number::ZoneUsedBytes, "zone", order);
    let mut lines = vec![heading(format!(
        "{:<12} {:>9} {:>9} {:>8} {:>7} {:>9} {:>9} {:>9}",
        "ZONE", "USED", "BUDGET", "STORED", "ON DISK", "EVICTED/s", "PURGED/s", "REFRESH/s"
    ))];
    for name in names.iter().take(rows) {
        let of = &[("zone", name.as_str())];
        lines.push(plain(format!(
            "{:<12} {:>9} {:>9} {:>8} {:>7} {:>9} {:>9} {:>9}",
            cut(name, 12),
            bytes(looks.now.sum(Number::ZoneUsedBytes, of)),
            bytes(looks.now.sum(Number::ZoneBudgetBytes, of)),
            short(looks.now.sum(Number::ZoneStoredResponses, of)),
            on_disk(&looks.now, name),
            short(looks.rate(Number::ZoneEvictions, of)),
            short(looks.rate(Number::ZonePurged, of)),
            short(looks.rate(Number::ZoneRefreshes, of)),
        )));
    }
    lines
}

/// How much a zone keeps on disk, or that its disk does not serve.
fn on_disk(snapshot: &Snapshot, zone: &str) -> String {
    let of_zone = &[("zone", zone)];
    let mut known = snapshot.all(Number::ZoneDiskIsServing).iter();
    let is_kept = known.any(|series| series.labels.get("zone").is_some_and(|it| it == zone));
    let serves = snapshot.sum(Number::ZoneDiskIsServing, of_zone) > 0.0;
    match (is_kept, serves) {
        (false, _) => "-".to_owned(),
        (true, false) => "off".to_owned(),
        (true, true) => short(snapshot.sum(Number::ZoneDiskResponses, of_zone)),
    }
}

fn upstreams(looks: &SnapshotPair, order: Order, rows: usize) -> Vec<Line> {
    let names = looks.names(Number::UpstreamBusy, "upstream", order);
    let mut lines = vec![heading(format!(
        "{:<30} {:>6} {:>6} {:>6} {:>6} {:>8} {:>8} {:>4}",
        "UPSTREAM", "BUSY", "LIMIT", "IDLE", "LINE", "ASKED/s", "FAILED/s", "OUT"
    ))];
    for name in names.iter().take(rows) {
        let of = &[("upstream", name.as_str())];
        let failed = &[("upstream", name.as_str()), ("outcome", "failure")];
        let standings = ["failed", "checking", "unhealthy", "down"].map(|standing| {
            let of = &[("upstream", name.as_str()), ("standing", standing)];
            looks.now.sum(Number::UpstreamServers, of)
        });
        lines.push(plain(format!(
            "{:<30} {:>6} {:>6} {:>6} {:>6} {:>8} {:>8} {:>4}",
            cut(name, 30),
            short(looks.now.sum(Number::UpstreamBusy, of)),
            limit(&looks.now, name),
            short(looks.now.sum(Number::UpstreamIdle, of)),
            short(looks.now.sum(Number::UpstreamQueued, of)),
            short(looks.rate(Number::UpstreamRequests, of)),
            short(looks.rate(Number::UpstreamRequests, failed)),
            short(standings.iter().sum()),
        )));
    }
    lines
}

/// The limit in force for an upstream; nothing if it has none.
fn limit(now: &Snapshot, name: &str) -> String {
    match now.sum(Number::UpstreamLimit, &[("upstream", name)]) {
        0.0 => "-".to_owned(),
        limit => short(limit),
    }
}

fn pages(pages: &Pages, list: PageList, width: usize) -> Vec<Line> {
    let name_width = width.saturating_sub(22).max(10);
    let (title, heads, listed): (_, _, &[TopEntry]) = match list {
        PageList::Costly => (
            "PAGES THAT COST MOST (w n)",
            ["WAITED", "REQUESTS"],
            &pages.costly,
        ),
        PageList::Wanted => ("MOST WANTED PAGES (c n)", ["HITS", "SEEN"], &pages.wanted),
        PageList::NotStored => (
            "MOST OFTEN NOT STORED (c w)",
            ["REQUESTS", ""],
            &pages.not_stored,
        ),
        PageList::Clients => ("WHO USES PHP (u c)", ["LAST MIN", "LAST H"], &pages.clients),
        PageList::Uses => (
            "WHAT PHP IS USED FOR (p c)",
            ["LAST MIN", "LAST H"],
            &pages.uses,
        ),
    };
    let [first, second] = heads;
    let mut lines = vec![heading(format!(
        "{title:<name_width$} {first:>10} {second:>10}"
    ))];
    lines.extend(listed.iter().map(|page| {
        let (first, second) = match list {
            PageList::Costly => (
                seconds(page.weight as f64 / 1000.0),
                short(page.count as f64),
            ),
            PageList::Wanted => (short(page.weight as f64), short(page.count as f64)),
            PageList::NotStored => (short(page.weight as f64), String::new()),
            PageList::Clients | PageList::Uses => (
                seconds(page.weight as f64 / 1000.0),
                seconds(page.count as f64 / 1000.0),
            ),
        };
        let name = cut(&page.name, name_width);
        plain(format!("{name:<name_width$} {first:>10} {second:>10}"))
    }));
    lines
}

fn cut(name: &str, width: usize) -> String {
    name.chars().take(width).collect()
}

fn short(value: f64) -> String {
    match value {
        _ if value >= 1e9 => format!("{:.1} G", value / 1e9),
        _ if value >= 1e6 => format!("{:.1} M", value / 1e6),
        _ if value >= 1e4 => format!("{:.1} k", value / 1e3),
        _ if value >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.1}"),
    }
}

fn seconds(value: f64) -> String {
    match value {
        0.0 => "0 s".to_owned(),
        _ if value < 0.001 => format!("{:.0} us", value * 1e6),
        _ if value < 1.0 => format!("{:.1} ms", value * 1e3),
        _ if value < 120.0 => format!("{value:.1} s"),
        _ if value < 7200.0 => format!("{:.0} min", value / 60.0),
        _ if value < 172_800.0 => format!("{:.1} h", value / 3600.0),
        _ => format!("{:.1} d", value / 86_400.0),
    }
}

fn bytes(value: f64) -> String {
    match value {
        _ if value >= 1_073_741_824.0 => format!("{:.1} GB", value / 1_073_741_824.0),
        _ if value >= 1_048_576.0 => format!("{:.1} MB", value / 1_048_576.0),
        _ if value >= 1024.0 => format!("{:.1} kB", value / 1024.0),
        _ => format!("{value:.0} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks() -> SnapshotPair {
        let mut looks = SnapshotPair::default();
        for (at, snapshot, scale) in [
            (1_000_000, &mut looks.before, 1.0),
            (1_002_000, &mut looks.now, 3.0),
        ] {
            snapshot.version = "0.1.0".to_owned();
            snapshot.at = at;
            snapshot.put(Number::StartTime, &[], 400.0);
            for (status, count) in [("HIT", 900.0), ("MISS", 100.0), ("none", 50.0)] {
                snapshot.put(Number::Requests, &[status], count * scale);
            }
            for zone in 0..30 {
                let name = format!("zone{zone}");
                snapshot.put(Number::ZoneUsedBytes, &[&name], f64::from(zone) * 1e6);
                if zone > 10 {
                    let serves = f64::from(u8::from(zone != 29));
                    snapshot.put(Number::ZoneDiskIsServing, &[&name], serves);
                    snapshot.put(Number::ZoneDiskResponses, &[&name], 7.0);
                }
                let upstream = format!("upstream-with-quite-a-long-name-{zone}\u{1b}[2J");
                snapshot.put(Number::UpstreamBusy, &[&upstream], f64::from(zone));
            }
        }
        looks.pages.costly = (0..20)
            .map(|page| TopEntry {
                name: format!("site.test/{page}/{}\u{7}", "x".repeat(200)),
                count: 5,
                weight: 1234,
            })
            .collect();
        looks
    }

    #[test]
    fn each_screen_is_filled_and_none_is_left() {
        let looks = looks();
        for (width, height) in [(80, 24), (200, 60), (20, 5), (1, 1), (0, 0), (500, 200)] {
            let lists = [
                PageList::Costly,
                PageList::Wanted,
                PageList::NotStored,
                PageList::Clients,
                PageList::Uses,
            ];
            for pages in lists {
                let choice = Choice {
                    pages,
                    order: Order::Name,
                };
                let lines = lines(&looks, choice, width, height);
                assert!(lines.len() <= height, "{width}x{height}");
                for line in &lines {
                    assert!(line.text.chars().count() <= width, "{}", line.text);
                    assert!(!line.text.chars().any(char::is_control), "{}", line.text);
                }
            }
        }
        let small = lines(&looks, Choice::default(), 80, 24);
        assert_eq!(small.len(), 24);
        let large = lines(&looks, Choice::default(), 200, 60);
        assert!(large.len() > 50, "{}", large.len());
    }

    #[test]
    fn rates_are_what_came_between_the_looks() {
        let text: Vec<String> = lines(&looks(), Choice::default(), 100, 40)
            .into_iter()
            .map(|line| line.text)
            .collect();
        assert_eq!(
            text[1],
            "requests 1050 /s   hit ratio 90.0 %   3150 since the start"
        );
        assert!(
            text[2].starts_with("per s    HIT 900  MISS 100  none 50"),
            "{}",
            text[2]
        );
        assert!(text[0].contains("up 10 min"), "{}", text[0]);
        assert!(text[9].starts_with("zone29 "), "{}", text[9]);
        let on_disk = |line: &str| line.split_whitespace().rev().nth(3).map(str::to_owned);
        assert_eq!(on_disk(&text[9]).as_deref(), Some("off"));
        assert_eq!(on_disk(&text[10]).as_deref(), Some("7"));
        assert_eq!(super::on_disk(&looks().now, "zone3"), "-");
    }

    #[test]
    fn a_server_among_others_says_how_it_stands_with_them() {
        let mut now = Snapshot::default();
        assert_eq!(nodes(&now), None);
        for (number, value) in [
            (Number::NodesLeaseIsHeld, 0.0),
            (Number::NodesIsConnected, 1.0),
            (Number::NodesMembers, 3.0),
            (Number::NodesBehind, 12_345.0),
            (Number::NodesWaiting, 2.0),
        ] {
            now.put(number, &[], value);
        }
        let looks = SnapshotPair {
            now,
            ..SnapshotPair::default()
        };
        let shown = lines(&looks, Choice::default(), 80, 24);
        assert_eq!(
            shown[8].text,
            "nodes    no lease   3 members   12.3 k behind   2 purges waiting"
        );
    }

    #[test]
    fn learned_pages_are_shown_where_there_are_some() {
        let mut looks = looks();
        assert_eq!(learned(&looks), None);
        looks.now.put(Number::LearnedPages, &["site"], 79.0);
        looks.now.put(Number::LearnedSuspects, &["site"], 4.0);
        looks.now.put(Number::LearnedKept, &["site"], 60.0);
        looks.now.put(Number::LearnedRemovals, &["site"], 7.0);
        for (result, count) in [("fresh_same", 12.0), ("fresh_changed", 1.0)] {
            looks
                .now
                .put(Number::LearnedComparisons, &["site", result], count);
        }
        assert_eq!(
            learned(&looks).unwrap().text,
            "learned  79 pages   60 kept   7 removed   4 suspect   0 not learned   0 writes/s   13 compared   1 would be old"
        );
    }

    #[test]
    fn a_server_that_began_anew_has_no_negative_rates() {
        let mut looks = looks();
        std::mem::swap(&mut looks.before, &mut looks.now);
        for line in lines(&looks, Choice::default(), 100, 24) {
            let mut pairs = line.text.as_bytes().windows(2);
            let is_negative = pairs.any(|pair| pair[0] == b'-' && pair[1].is_ascii_digit());
            assert!(!is_negative, "{}", line.text);
        }
    }
}
