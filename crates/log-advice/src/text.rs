//! Advice for people: sentences, tables, a plot, and lines to paste.

use std::fmt::Write;

use crate::advice::{Advice, Name, Pattern};

const PLOT_WIDTH: usize = 40;
const NAME_WIDTH: usize = 28;

/// `500ms`, `1s`, `10m`, `6h`, `1d`: as configurations write it.
#[must_use]
pub fn lifetime(millis: u32) -> String {
    let units = [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1_000, "s"),
    ];
    match units
        .iter()
        .find(|(unit, _)| millis >= *unit && millis.is_multiple_of(*unit))
    {
        Some((unit, name)) => format!("{}{name}", millis / unit),
        None => format!("{millis}ms"),
    }
}

impl Advice {
    /// All of it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        self.put_requests(&mut out);
        if self.requests.pages > 0 {
            self.put_lifetimes(&mut out);
            self.put_plot(&mut out);
            self.put_patterns(&mut out);
            self.put_names(&mut out);
            self.put_directives(&mut out);
        }
        out
    }

    fn put_requests(&self, out: &mut String) {
        let requests = &self.requests;
        let hours = (self.to - self.from) / 3600.0;
        let _ = writeln!(
            out,
            "{} requests in {:.1} hours: {} of pages that may be stored, {} personal, {} that write, \
             {} with an answer that is not stored, {} without PHP.",
            requests.all,
            hours,
            requests.pages,
            requests.personal,
            requests.writes,
            requests.not_stored,
            requests.without_php
        );
        let of_php = requests.crawlers_php_share.map(percent);
        let _ = writeln!(
            out,
            "Crawlers: {} of the requests that need PHP or a stored page{}.",
            percent(requests.crawlers_share),
            of_php.map_or_else(String::new, |share| format!(
                ", and {share} of the time of PHP"
            ))
        );
        if let Some(ratio) = self.logged_hit_ratio {
            let _ = writeln!(
                out,
                "Answers from memory as the log says: {}.",
                percent(ratio)
            );
        }
        for bad in &self.bad_lines {
            let first: String = bad.first.chars().map(printable).collect();
            let _ = writeln!(
                out,
                "Left out: {} lines {}, the first is {first}.",
                bad.lines, bad.what
            );
        }
        if !self.cookies_are_logged {
            out.push_str(
                "Cookies are not in this log: visitors who are logged in count as all others, unless \
                 their cache status is BYPASS.\n",
            );
        }
        if requests.pages == 0 {
            out.push_str("There is nothing to store.\n");
        }
    }

    fn put_lifetimes(&self, out: &mut String) {
        out.push_str("\nlifetime  hit ratio  PHP runs/s  busiest min/s  busy workers     memory\n");
        for row in &self.lifetimes {
            let workers = row
                .busy_workers
                .map_or("-".to_owned(), |it| format!("{it:.2}"));
            let ratio = percent(row.hit_ratio) + if row.is_lower_bound { "+" } else { "" };
            let _ = writeln!(
                out,
                "{:>8}  {ratio:>9}  {:>10.2}  {:>13.2}  {workers:>12}  {:>9}",
                lifetime(row.lifetime_ms),
                row.runs_per_second,
                row.busiest_minute_runs_per_second,
                bytes(row.memory_bytes)
            );
        }
        if self.lifetimes.iter().any(|it| it.is_lower_bound) {
            out.push_str("+ so many pages that the simulation forgot some: it is at least this.\n");
        }
        if self.whole_seconds {
            out.push_str(
                "Times in this log are whole seconds. Requests of one second are taken as spread over it, \
                 as those of\nindependent visitors are: where visits come in bursts, lifetimes under 1s \
                 spare more than shown.\n",
            );
        }
        out.push_str(
            "Sizes are those of the bodies that were sent, so of compressed ones if they were.\n",
        );
    }

    fn put_plot(&self, out: &mut String) {
        out.push_str("\nPHP runs of 100 requests for pages\n");
        for row in &self.lifetimes {
            let runs = 1.0 - row.hit_ratio;
            let width = (runs * PLOT_WIDTH as f64).round() as usize;
            let bar = "#".repeat(width.min(PLOT_WIDTH));
            let is_suggested = Some(row.lifetime_ms) == self.suggested_lifetime_ms;
            let note = if is_suggested { "  <- suggested" } else { "" };
            let _ = writeln!(
                out,
                "{:>8} |{bar:<PLOT_WIDTH$}| {:>5.1}{note}",
                lifetime(row.lifetime_ms),
                runs * 100.0
            );
        }
    }

    fn put_patterns(&self, out: &mut String) {
        let suggested = self.suggested_lifetime_ms;
        let index = self
            .lifetimes
            .iter()
            .position(|row| Some(row.lifetime_ms) == suggested);
        let at = suggested.map_or(String::new(), lifetime);
        let _ = writeln!(
            out,
            "\n{:<NAME_WIDTH$}  requests   share    pages  PHP ms  hits at {at:<5}  useful from",
            "pattern"
        );
        for pattern in &self.patterns {
            put_pattern(pattern, index, out);
        }
        out.push_str(
            "A lifetime is of use from where each stored page is asked for at least once more: below one visit \
             per\nlifetime, PHP makes a page for every visit.\n",
        );
    }

    fn put_names(&self, out: &mut String) {
        let is_any = self.arguments.iter().any(|it| it.splits_for_nothing);
        if is_any {
            out.push_str("\nArguments that split the cache for nothing\n");
            put_names_if(&self.arguments, |it| it.splits_for_nothing, out);
            for split in &self.split {
                let _ = writeln!(
                    out,
                    "  with a lifetime of {:>3}: hit ratio {} with those of cache_ignore_args ignored, {} with them in \
                     the key",
                    lifetime(split.lifetime_ms),
                    percent(split.hit_ratio),
                    percent(split.hit_ratio_with_arguments)
                );
            }
        }
        if self.cookies.iter().any(|it| it.splits_for_nothing) {
            out.push_str("\nCookies that no page depends on\n");
            put_names_if(&self.cookies, |it| it.splits_for_nothing, out);
        }
        let is_open = |it: &Name| it.mostly_unique && !it.splits_for_nothing;
        if self.arguments.iter().any(is_open) {
            out.push_str(
                "\nArguments with another value in nearly each request: no page with them is used twice. If no page \
                 depends\non one, cache_ignore_args helps\n",
            );
            put_names_if(&self.arguments, is_open, out);
        }
    }

    fn put_directives(&self, out: &mut String) {
        let Some(suggested) = self.suggested_lifetime_ms else {
            out.push_str(
                "\nNo lifetime up to a minute spares anything: pages are visited too seldom.\n",
            );
            return;
        };
        let _ = writeln!(
            out,
            "\nSuggested: {}, the shortest lifetime that spares nine tenths of what a minute spares. \
             With purges\n(docs/purging.md), pages may live longer. To paste (cache_path belongs into http):\n",
            lifetime(suggested)
        );
        for line in &self.directives {
            let _ = writeln!(out, "    {line}");
        }
    }
}

fn put_pattern(pattern: &Pattern, index: Option<usize>, out: &mut String) {
    let name: String = pattern.pattern.chars().map(printable).collect();
    let php = pattern
        .mean_php_ms
        .map_or("-".to_owned(), |it| format!("{it:.0}"));
    let hits = index.and_then(|it| pattern.hit_ratios.get(it).copied());
    let hits = hits.map_or("-".to_owned(), percent);
    let useful = match pattern.useful_from_ms {
        Some(millis) => lifetime(millis),
        None => "no use".to_owned(),
    };
    let _ = writeln!(
        out,
        "{name:<NAME_WIDTH$}  {:>8}  {:>6}  {:>7}  {php:>6}  {hits:>13}  {useful:>11}",
        pattern.requests,
        percent(pattern.share),
        pattern.pages
    );
}

fn put_names_if(names: &[Name], is_shown: impl Fn(&Name) -> bool, out: &mut String) {
    for name in names.iter().filter(|it| is_shown(it)) {
        let shown: String = name.name.chars().map(printable).collect();
        let or_more = if name.more_values { " or more" } else { "" };
        let (requests, values) = (name.requests, name.values);
        let _ = writeln!(
            out,
            "  {shown:<20}  {requests:>8} requests, {values}{or_more} values"
        );
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{} KB", bytes.div_ceil(1024)),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    }
}

/// Replaces characters that would move a terminal's cursor.
fn printable(letter: char) -> char {
    if letter.is_control() { '?' } else { letter }
}
