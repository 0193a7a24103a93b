//! `mayfly warm`: has the running server store pages before visitors ask for them.
//!
//! ```text
//! sources ─► URLs, each once ─► a few at a time over the control socket ─► what became of each ─► sum
//!    └ sitemap                        └ busy: later again
//! ```
//!
//! The server asks itself, as a visitor without cookies would, and lets visitors go first. Nothing is
//! asked over the network, and no page but the server's own can be named.

mod shown;
mod sitemap;
pub mod sources;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Instant;

use control::{ClientError, WarmReport, WarmRequest, WarmResult};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use crate::cli::WarmArgs;
use crate::commands::running_server::{self, explained, find};
use command_line::{Exit, complain};

use shown::ProgressView;

/// How often a page is tried again that visitors leave no room for. The server itself waits some ten
/// seconds each time.
const MAX_BUSY: u32 = 60;

pub fn run(args: &WarmArgs) -> Exit {
    running_server::run(async {
        let path = find(&args.server, &sources::urls(args)).await?;
        let pages = sources::pages(args, &path).await?;
        Ok(warm(args, &path, pages).await)
    })
}

/// A page that is still to be asked for.
struct Page {
    url: String,
    /// How often the server had no room for it.
    busy: u32,
}

/// The sum of the results of all pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
struct Sum {
    pages: usize,
    stored: usize,
    fresh: usize,
    not_stored: usize,
    failed: usize,
    /// It was stopped, or the server ended, before all pages were asked for.
    stopped: bool,
    seconds: f64,
}

impl Sum {
    fn count(&mut self, report: &WarmReport) {
        let counter = match report.result {
            _ if is_failed(report) => &mut self.failed,
            WarmResult::Fresh => &mut self.fresh,
            WarmResult::Stored => &mut self.stored,
            WarmResult::NotStored | WarmResult::Busy | WarmResult::Refused => &mut self.not_stored,
        };
        *counter += 1;
    }

    fn done(&self) -> usize {
        self.stored + self.fresh + self.not_stored + self.failed
    }

    /// Pages that the application lets no cache keep are no failure, unless there are no others.
    fn exit(&self) -> Exit {
        match self.failed > 0 || self.stopped || self.stored + self.fresh == 0 {
            true => Exit::Refused,
            false => Exit::Done,
        }
    }
}

/// Whether it is a page that visitors do not get, or that no request could name.
fn is_failed(report: &WarmReport) -> bool {
    let is_error = report.status.is_some_and(|status| status >= 400);
    is_error || matches!(report.result, WarmResult::Busy | WarmResult::Refused)
}

async fn warm(args: &WarmArgs, socket: &Path, pages: Vec<String>) -> Exit {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return complain(Exit::Refused, "cannot wait for signals");
    };
    let began = Instant::now();
    let mut sum = Sum {
        pages: pages.len(),
        ..Sum::default()
    };
    let shown = ProgressView::new(args.json, pages.len());
    let pages = pages.into_iter().map(|url| Page { url, busy: 0 });
    let mut waiting: VecDeque<Page> = pages.collect();
    let mut asked: JoinSet<(Page, Result<WarmReport, ClientError>)> = JoinSet::new();
    let mut gone = None;
    loop {
        while asked.len() < usize::from(args.jobs)
            && let Some(page) = waiting.pop_front()
        {
            asked.spawn(ask(socket.to_owned(), page));
        }
        let answered = tokio::select! {
            answered = asked.join_next() => answered,
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
        };
        let (mut page, answer) = match answered {
            None => break,
            Some(Ok(answered)) => answered,
            Some(Err(_)) => continue,
        };
        let report = match answer {
            Ok(report) if report.result == WarmResult::Busy && page.busy < MAX_BUSY => {
                page.busy += 1;
                shown.wait();
                waiting.push_back(page);
                continue;
            }
            Ok(report) => report,
            Err(error @ ClientError::NoServer(_)) => {
                gone = Some(error);
                break;
            }
            Err(error) => refused(page.url, &error),
        };
        sum.count(&report);
        shown.page(&report, &sum);
    }
    sum.stopped = sum.done() < sum.pages;
    sum.seconds = (began.elapsed().as_secs_f64() * 1e3).round() / 1e3;
    shown.end(&sum);
    match gone {
        Some(error) => {
            let (exit, message) = explained(socket, &error);
            complain(exit, &message)
        }
        None => sum.exit(),
    }
}

async fn ask(socket: PathBuf, page: Page) -> (Page, Result<WarmReport, ClientError>) {
    let request = WarmRequest {
        url: page.url.clone(),
    };
    let answer = control::client::warm(&socket, &request).await;
    (page, answer)
}

fn refused(url: String, error: &ClientError) -> WarmReport {
    WarmReport {
        url,
        result: WarmResult::Refused,
        status: None,
        reason: Some(error.to_string()),
        milliseconds: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(result: WarmResult, status: Option<u16>) -> WarmReport {
        WarmReport {
            url: "https://example.org/".to_owned(),
            result,
            status,
            reason: None,
            milliseconds: 1.0,
        }
    }

    #[test]
    fn errors_fail_and_pages_that_nobody_may_keep_do_not() {
        let sum_of = |reports: &[(WarmResult, Option<u16>)]| {
            let mut sum = Sum::default();
            for &(result, status) in reports {
                sum.count(&report(result, status));
            }
            (sum.failed, sum.exit())
        };
        let stored = (WarmResult::Stored, Some(200));
        let personal = (WarmResult::NotStored, Some(200));
        assert_eq!(sum_of(&[stored, personal]), (0, Exit::Done));
        assert_eq!(sum_of(&[(WarmResult::Fresh, Some(200))]), (0, Exit::Done));
        assert_eq!(sum_of(&[personal]), (0, Exit::Refused));
        for failed in [
            (WarmResult::Stored, Some(404)),
            (WarmResult::NotStored, Some(502)),
            (WarmResult::Busy, None),
            (WarmResult::Refused, None),
        ] {
            assert_eq!(sum_of(&[stored, failed]), (1, Exit::Refused), "{failed:?}");
        }
        let stopped = Sum {
            stored: 1,
            stopped: true,
            ..Sum::default()
        };
        assert_eq!(stopped.exit(), Exit::Refused);
    }
}
