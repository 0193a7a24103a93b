//! A load in a terminal: a line for each resource, with a bar of its time.

use std::fmt::Write;

use crate::page::{LoadedResource, PageLoad, Source};
use crate::totals::{bytes, milliseconds};

/// Narrower ones are not drawn for.
const MIN_WIDTH: usize = 60;
/// Wider ones are of no use.
const MAX_WIDTH: usize = 200;
/// The width of the columns before the name.
const NUMBERS_WIDTH: usize = 36;
const QUEUED: char = '·';
const CONNECTING: char = '░';
const WAITING: char = '▒';
const RECEIVING: char = '█';

impl PageLoad {
    /// Lines of at most `width` characters.
    #[must_use]
    pub fn to_waterfall(&self, width: usize) -> String {
        let width = width.clamp(MIN_WIDTH, MAX_WIDTH);
        let rest = width - NUMBERS_WIDTH;
        let name_width = (rest / 2).min(44);
        let bar_width = rest - name_width - 1;
        let whole = self.everything_ms().max(0.001);
        let mut out = format!(
            "{:<6} {:<8} {:>9} {:>8} {:<name_width$} {}\n",
            "status",
            "kind",
            "received",
            "ms",
            "",
            cut(&format!("0 to {} ms", milliseconds(whole)), bar_width),
        );
        for resource in &self.resources {
            let times = &resource.times;
            let size = match resource.source {
                Source::BrowserCache => "cached".to_owned(),
                _ => bytes((resource.sizes.head + resource.sizes.body) as f64),
            };
            let mark = if resource.blocks_rendering { '!' } else { ' ' };
            let line = format!(
                "{:<6} {:<8} {size:>9} {:>8} {mark}{:<name_width$} {}",
                resource.status_text(),
                resource.kind.word(),
                milliseconds(times.end - times.found),
                cut(&self.name(resource), name_width - 1),
                bar(resource, whole, bar_width),
            );
            let _ = writeln!(out, "{}", line.trim_end());
        }
        let _ = writeln!(
            out,
            "{}",
            cut(
                &format!(
                    "{QUEUED} queued  {CONNECTING} connecting  {WAITING} waiting  {RECEIVING} receiving  ! keeps the page from being drawn"
                ),
                width
            )
        );
        out
    }

    /// The path on the page's own host; with its host on others.
    pub(crate) fn name(&self, resource: &LoadedResource) -> String {
        let origin = |url: &str| url.match_indices('/').nth(2).map_or(url.len(), |it| it.0);
        let own = self.url.get(..origin(&self.url)).unwrap_or_default();
        let path = resource.url.strip_prefix(own);
        let path = path.filter(|it| it.starts_with('/'));
        path.unwrap_or(&resource.url).to_owned()
    }
}

/// Cuts the middle of a long name, since its end is the more useful part.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let head = width.saturating_sub(1) / 3;
    let tail = width.saturating_sub(1) - head;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    format!("{start}…{end}")
}

fn bar(resource: &LoadedResource, whole: f64, width: usize) -> String {
    let times = &resource.times;
    let sent = times.sent.unwrap_or(times.end);
    let connecting = times.connect.map_or(sent, |it| it.begun);
    let first_byte = times.first_byte.unwrap_or(times.end);
    let column = |at: f64| ((at / whole * width as f64) as usize).min(width);
    let mut bar = String::new();
    let mut drawn = 0;
    let (from, to) = (column(times.found).min(width - 1), column(times.end));
    for (until, character) in [
        (times.found, ' '),
        (connecting, QUEUED),
        (sent, CONNECTING),
        (first_byte, WAITING),
        (times.end, RECEIVING),
    ] {
        let until = column(until).max(if character == ' ' { from } else { 0 });
        while drawn < until.min(to.max(from)) {
            bar.push(character);
            drawn += 1;
        }
    }
    if drawn == from {
        // Shorter than a column.
        bar.push(match resource.source {
            Source::BrowserCache => '|',
            _ => RECEIVING,
        });
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::example;

    #[test]
    fn a_waterfall_fits_its_width_and_shows_each_resource() {
        for width in [0, 60, 80, 100, 137, 1000] {
            let drawn = example().to_waterfall(width);
            let most = width.clamp(MIN_WIDTH, MAX_WIDTH);
            for line in drawn.lines() {
                assert!(line.chars().count() <= most, "{width}: {line}");
            }
            assert_eq!(drawn.lines().count(), example().resources.len() + 2);
        }
    }

    #[test]
    fn bars_show_the_steps_of_a_resource_in_their_order() {
        let load = example();
        for (index, expected) in [
            (0, "▒▒▒▒▒▒██████"),
            (1, "      ▒▒▒▒▒▒██████"),
            (3, "         ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒"),
            (4, "         |"),
        ] {
            assert_eq!(bar(&load.resources[index], 150.0, 45), expected, "{index}");
        }
    }

    #[test]
    fn names_are_paths_and_keep_their_ends() {
        let load = example();
        assert_eq!(load.name(&load.resources[1]), "/a.css?v=1");
        let mut other = load.resources[1].clone();
        other.url = "http://site.test.evil/a".to_owned();
        assert_eq!(load.name(&other), other.url);
        assert_eq!(cut("/wp-content/themes/style.css", 13), "/wp-…tyle.css");
    }
}
