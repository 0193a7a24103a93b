//! The report on several loads of one address, and of another one beside it.

use std::fmt::Write;

use serde_json::{Value, json};
use url::Url;

use crate::har::to_har;
use crate::media::Viewport;
use crate::page::PageLoad;
use crate::totals::{self, FIGURES, Figure, Unit, typical};

/// Failures that are shown in words, for each address; the others are in the
/// waterfall.
const MAX_FAILURES: usize = 10;

/// One address.
#[derive(Clone, Debug, Default)]
pub struct MeasuredPage {
    pub url: String,
    /// With nothing in the browser's cache.
    pub cold: Vec<PageLoad>,
    /// Each after a cold load by the same browser.
    pub warm: Vec<PageLoad>,
}

impl MeasuredPage {
    /// One that has not been loaded yet.
    #[must_use]
    pub fn of(url: &Url) -> MeasuredPage {
        MeasuredPage {
            url: url.to_string(),
            ..MeasuredPage::default()
        }
    }
}

/// The loads, and their addresses.
#[derive(Clone, Debug)]
pub struct Report {
    pub viewport: Viewport,
    /// One, or the second one beside it.
    pub pages: Vec<MeasuredPage>,
}

/// Loads of one kind of one address.
pub(crate) struct Column<'a> {
    pub title: String,
    pub loads: &'a [PageLoad],
}

impl Report {
    /// `cold` of each address, then `warm`.
    pub(crate) fn columns(&self) -> Vec<Column<'_>> {
        let title = |word: &str, number: usize| match self.pages.len() {
            1 => word.to_owned(),
            _ => format!("{word} [{}]", number + 1),
        };
        let pages = || self.pages.iter().enumerate();
        let cold = pages().map(|(number, page)| Column {
            title: title("cold", number),
            loads: &page.cold,
        });
        let warm = pages().map(|(number, page)| Column {
            title: title("warm", number),
            loads: &page.warm,
        });
        cold.chain(warm).collect()
    }

    /// The waterfalls of cold loads, the figures of all, and the resources left
    /// out.
    #[must_use]
    pub fn to_text(&self, width: usize) -> String {
        let mut out = String::new();
        for (number, page) in self.pages.iter().enumerate() {
            let Some(load) = typical(&page.cold) else {
                continue;
            };
            let name = match self.pages.len() {
                1 => page.url.clone(),
                _ => format!("[{}] {}", number + 1, page.url),
            };
            let _ = writeln!(
                out,
                "{name}\ncold, the one of {} whose time is the median:\n\n{}",
                page.cold.len(),
                load.to_waterfall(width)
            );
        }
        out.push_str(&self.figures());
        out.push('\n');
        for note in self.notes() {
            let _ = writeln!(out, "{note}");
        }
        out
    }

    fn figures(&self) -> String {
        let columns = self.columns();
        let mut rows = vec![(String::new(), Vec::new())];
        for column in &columns {
            rows[0].1.push(column.title.clone());
        }
        for figure in &FIGURES {
            let cells = columns.iter().map(|it| cell(figure, it.loads));
            rows.push((figure.text.to_owned(), cells.collect()));
        }
        let width = |index: usize| {
            let cells = rows.iter().filter_map(|it| it.1.get(index));
            cells.map(|it| it.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns.len()).map(width).collect();
        let mut out = String::new();
        for (name, cells) in &rows {
            let mut line = format!("{name:<26}");
            for (cell, width) in cells.iter().zip(&widths) {
                let _ = write!(line, "  {cell:<width$}");
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out
    }

    /// Sentences that belong to the figures.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let runs = self.pages.first().map_or(0, |it| it.cold.len());
        if runs > 1 {
            notes.push(format!(
                "Medians of {runs} loads; of times also the least and the greatest."
            ));
        }
        notes.push(format!(
            "Cold: the browser's cache is empty. Warm: it has what the cold load may keep. Window {}x{}.",
            self.viewport.width, self.viewport.height
        ));
        for page in &self.pages {
            let Some(load) = typical(&page.cold) else {
                continue;
            };
            for (origin, count) in load.other_origins() {
                notes.push(format!(
                    "{count} of the resources of {} are of {origin}, not of its own address.",
                    page.url
                ));
            }
            let left_out = &load.left_out;
            for (host, count) in &left_out.third_party {
                notes.push(format!(
                    "Left out: {count} of {host}, which is another server (--third-party)."
                ));
            }
            if left_out.lazy > 0 {
                notes.push(format!(
                    "Left out: {} with loading=lazy, which load when they come into view.",
                    left_out.lazy
                ));
            }
            for bound in &left_out.bounds {
                notes.push(format!("A bound was reached: {bound}."));
            }
            if load.scripts > 0 {
                notes.push(format!(
                    "{} {} in {}: no script was run, so what scripts load is not counted.",
                    load.scripts,
                    if load.scripts == 1 {
                        "script"
                    } else {
                        "scripts"
                    },
                    page.url
                ));
            }
            notes.extend(wrong(load));
        }
        notes.dedup();
        notes
    }

    /// Figures of each address, and the load of each that is drawn.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let pages = self.pages.iter().map(|page| {
            json!({
                "url": page.url,
                "runs": page.cold.len(),
                "cold": totals::to_json(&page.cold),
                "warm": totals::to_json(&page.warm),
                "cold_load": typical(&page.cold),
                "warm_load": typical(&page.warm),
            })
        });
        json!({
            "viewport": {"width": self.viewport.width, "height": self.viewport.height},
            "pages": pages.collect::<Vec<_>>(),
        })
    }

    /// All loads.
    #[must_use]
    pub fn to_har(&self, version: &str) -> Value {
        let mut loads = Vec::new();
        for (number, page) in self.pages.iter().enumerate() {
            let runs = page.cold.iter().zip(&page.warm).enumerate();
            for (run, (cold, warm)) in runs {
                let id = |word: &str| match self.pages.len() {
                    1 => format!("{word}-{}", run + 1),
                    _ => format!("{word}-{}-address-{}", run + 1, number + 1),
                };
                loads.push((id("cold"), cold));
                loads.push((id("warm"), warm));
            }
        }
        to_har(&loads, version)
    }
}

/// Returns the failed resources, with the reason.
fn wrong(load: &PageLoad) -> Vec<String> {
    let all: Vec<_> = load.resources.iter().filter(|it| it.is_wrong()).collect();
    let shown = all.iter().take(MAX_FAILURES).map(|it| {
        let why = it.fault.clone().unwrap_or_else(|| it.status_text());
        format!("Failed: {}: {why}.", it.url)
    });
    let mut notes: Vec<String> = shown.collect();
    if let Some(more @ 1..) = all.len().checked_sub(MAX_FAILURES) {
        notes.push(format!("Failed: {more} more, which the waterfall shows."));
    }
    notes
}

/// The median; of times with their spread.
pub(crate) fn cell(figure: &Figure, loads: &[PageLoad]) -> String {
    let spread = figure.spread(loads);
    let median = figure.unit.text(spread.median);
    match figure.unit {
        Unit::Milliseconds if loads.len() > 1 => format!(
            "{median} ({} to {})",
            totals::milliseconds(spread.least),
            totals::milliseconds(spread.most)
        ),
        _ => median,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::example;

    fn report(pages: usize) -> Report {
        let page = MeasuredPage {
            url: "http://site.test/".to_owned(),
            cold: vec![example(), example()],
            warm: vec![example(), example()],
        };
        Report {
            viewport: Viewport::default(),
            pages: vec![page; pages],
        }
    }

    #[test]
    fn a_report_says_what_it_does_not_know() {
        let text = report(1).to_text(80);
        for words in [
            "2 of cdn.test",
            "3 with loading=lazy",
            "no script was run",
            "the connection ended before",
            "everything there            150 ms (150 to 150)",
            "Medians of 2 loads",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn two_addresses_stand_side_by_side() {
        let text = report(2).to_text(80);
        let line = text.lines().find(|it| it.contains("cold [1]"));
        let line = line.expect("titles");
        assert!(
            line.contains("cold [2]") && line.contains("warm [2]"),
            "{line}"
        );
        let har = report(2).to_har("1.0");
        let pages = har["log"]["pages"].as_array().expect("pages");
        assert_eq!(pages.len(), 8);
        assert_eq!(pages[7]["id"], "warm-2-address-2");
    }
}
