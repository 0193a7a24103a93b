//! Progress while pages are asked for: a bar on a terminal, with the pages that were not stored above it;
//! a line for each page elsewhere; JSON if that is asked for.

use std::io::{self, IsTerminal, Write};

use control::{WarmReport, WarmResult};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Sum, is_failed};
use command_line::printable;
use command_line::terminal;

/// The place and form of the progress.
pub enum ProgressView {
    Bar(ProgressBar),
    Lines,
    Json,
}

impl ProgressView {
    /// For this number of pages.
    pub fn new(json: bool, pages: usize) -> ProgressView {
        if json {
            return ProgressView::Json;
        }
        if !terminal::moves_cursor(&io::stderr()) || !io::stdout().is_terminal() {
            return ProgressView::Lines;
        }
        let bar =
            ProgressBar::with_draw_target(u64::try_from(pages).ok(), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len}  {msg}  {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.tick();
        ProgressView::Bar(bar)
    }

    /// A page is done; `sum` has it in it.
    pub fn page(&self, report: &WarmReport, sum: &Sum) {
        match self {
            ProgressView::Json => say_json(report),
            ProgressView::Lines => say(&line(report)),
            ProgressView::Bar(bar) => {
                let is_kept = matches!(report.result, WarmResult::Fresh | WarmResult::Stored);
                if is_failed(report) || !is_kept {
                    bar.suspend(|| say(&line(report)));
                }
                bar.set_message(counts(sum));
                bar.set_position(u64::try_from(sum.done()).unwrap_or(u64::MAX));
            }
        }
    }

    /// Visitors come first.
    pub fn wait(&self) {
        if let ProgressView::Bar(bar) = self {
            bar.set_message("waiting for visitors");
        }
    }

    /// Ends the progress: no more pages are asked for.
    pub fn end(&self, sum: &Sum) {
        if let ProgressView::Bar(bar) = self {
            bar.finish_and_clear();
        }
        match self {
            ProgressView::Json => say_json(sum),
            ProgressView::Bar(_) | ProgressView::Lines => say(&summary(sum)),
        }
    }
}

/// A pipe that was closed wants no more.
fn say(line: &str) {
    let _ = io::stdout().write_all(format!("{line}\n").as_bytes());
}

fn say_json(value: &impl serde::Serialize) {
    // Texts, and numbers of which none is infinite, are always JSON.
    say(&serde_json::to_string(value).unwrap_or_default());
}

fn line(report: &WarmReport) -> String {
    let url: String = report.url.chars().map(printable).collect();
    let mut line = format!(
        "{:<10}  {:>7.0} ms  {url}",
        report.result.words(),
        report.milliseconds
    );
    let status = report.status.filter(|&status| status != 200);
    let status = status.map(|status| status.to_string());
    let reason = report.reason.as_ref().map(|reason| {
        let reason: String = reason.chars().map(printable).collect();
        reason
    });
    let why: Vec<String> = status.into_iter().chain(reason).collect();
    if !why.is_empty() {
        line.push_str(&format!("  ({})", why.join(", ")));
    }
    line
}

fn counts(sum: &Sum) -> String {
    let Sum {
        stored,
        fresh,
        not_stored,
        failed,
        ..
    } = sum;
    format!("{stored} stored, {fresh} fresh, {not_stored} not stored, {failed} failed")
}

fn summary(sum: &Sum) -> String {
    let pages = if sum.pages == 1 { "page" } else { "pages" };
    let all = match sum.stopped {
        true => format!("Stopped after {} of {} {pages}", sum.done(), sum.pages),
        false => format!("{} {pages}", sum.pages),
    };
    format!("{all} in {:.1} s: {}", sum.seconds, counts(sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_became_of_a_page_and_why() {
        let mut report = WarmReport {
            url: "https://example.org/\u{1b}[2J".to_owned(),
            result: WarmResult::NotStored,
            status: Some(403),
            reason: Some("no-cache".to_owned()),
            milliseconds: 12.3,
        };
        assert_eq!(
            line(&report),
            "not stored       12 ms  https://example.org/?[2J  (403, no-cache)"
        );
        report.result = WarmResult::Stored;
        report.status = Some(200);
        report.reason = None;
        assert_eq!(
            line(&report),
            "stored           12 ms  https://example.org/?[2J"
        );
    }

    #[test]
    fn the_last_line_is_the_sum() {
        let mut sum = Sum {
            pages: 3,
            stored: 1,
            fresh: 1,
            not_stored: 1,
            seconds: 0.52,
            ..Sum::default()
        };
        let counts = "1 stored, 1 fresh, 1 not stored, 0 failed";
        assert_eq!(summary(&sum), format!("3 pages in 0.5 s: {counts}"));
        sum.pages = 9;
        sum.stopped = true;
        assert_eq!(
            summary(&sum),
            format!("Stopped after 3 of 9 pages in 0.5 s: {counts}")
        );
    }
}
