//! The report of an audit: a block of lines for each page, or a line of JSON.

use serde::Serialize;

use super::judge::{Sign, SignKind, shortened};
use command_line::printable;

/// A fault that an altered request has shown twice or more, with the last requests that
/// show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub kind: SignKind,
    pub variation: String,
    pub sentence: String,
    /// The altered request as it was sent.
    pub request: String,
    /// The request of another visitor after it.
    pub then: String,
}

impl Finding {
    pub fn new(variation: &str, sign: &Sign, request: &str, then: &str) -> Finding {
        Finding {
            kind: sign.kind(),
            variation: variation.to_owned(),
            sentence: sign.sentence(),
            request: request.to_owned(),
            then: then.to_owned(),
        }
    }
}

/// A page, and the findings about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PageReport {
    pub url: String,
    /// The reason why not all variations were tried, if so.
    pub incomplete: Option<String>,
    /// A usual visitor was answered from memory.
    pub is_stored: bool,
    /// A random argument makes the address one that is not stored.
    pub is_cold: bool,
    pub variations: usize,
    pub requests: u32,
    pub findings: Vec<Finding>,
}

impl PageReport {
    pub fn new(url: String) -> PageReport {
        PageReport {
            url,
            incomplete: None,
            is_stored: false,
            is_cold: true,
            variations: 0,
            requests: 0,
            findings: Vec::new(),
        }
    }

    /// The block of lines.
    pub fn text(&self) -> String {
        let findings = match self.findings.len() {
            0 => "nothing found".to_owned(),
            1 => "1 finding".to_owned(),
            count => format!("{count} findings"),
        };
        let (variations, requests) = (self.variations, self.requests);
        let mut lines = vec![format!(
            "{}: {findings} ({variations} variations, {requests} requests)",
            self.url
        )];
        if let Some(reason) = &self.incomplete {
            lines.push(format!("  not audited to the end: {reason}"));
        }
        if self.incomplete.is_none() && !self.is_stored {
            lines.push("  usual visitors were not answered from memory".to_owned());
        }
        if self.incomplete.is_none() && !self.is_cold {
            lines.push("  tried at its plain address, where the usual page is stored".to_owned());
        }
        for finding in &self.findings {
            let (kind, variation) = (finding.kind.words(), &finding.variation);
            lines.push(format!("  {kind:<10}  {variation}"));
            lines.push(format!("              {}", finding.sentence));
            let request = finding.request.trim_end().split("\r\n");
            lines.extend(
                request.map(|line| format!("                {}", shortened(line, MAX_LINE))),
            );
            let then = finding.then.split("\r\n").next().unwrap_or_default();
            lines.push(format!("              then, from another visitor: {then}"));
        }
        let mut text = String::new();
        for line in lines {
            text.extend(line.chars().map(printable));
            text.push('\n');
        }
        text
    }
}

/// The sum of all pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sum {
    pub pages: usize,
    /// Pages that were not audited to the end.
    pub incomplete: usize,
    /// Pages beyond `--pages`.
    pub left_out: usize,
    pub findings: usize,
    pub requests: u32,
}

impl Sum {
    pub fn count(&mut self, page: &PageReport) {
        self.pages += 1;
        self.incomplete += usize::from(page.incomplete.is_some());
        self.findings += page.findings.len();
        self.requests += page.requests;
    }

    pub fn text(&self) -> String {
        let Sum {
            pages,
            incomplete,
            left_out,
            findings,
            requests,
        } = self;
        let count = |count: usize, word: &str| match count {
            1 => format!("1 {word}"),
            count => format!("{count} {word}s"),
        };
        let (pages, findings) = (count(*pages, "page"), count(*findings, "finding"));
        let mut text = format!("{pages}, {findings}, {requests} requests");
        if *incomplete > 0 {
            text.push_str(&format!("; {incomplete} not audited to the end"));
        }
        if *left_out > 0 {
            text.push_str(&format!("; {left_out} more pages left out (--pages)"));
        }
        text + "\n"
    }
}

/// Characters of a line of a request that are shown. JSON has the whole.
const MAX_LINE: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> PageReport {
        let sign = Sign::Evidence {
            value: "mfwx".to_owned(),
            shown: "<a href=//mfwx.test>\u{1b}[2J".to_owned(),
        };
        let mut report = PageReport::new("http://site.test/".to_owned());
        report.is_stored = true;
        report.variations = 90;
        report.requests = 300;
        let request = "GET /?mayfly_audit=b HTTP/1.1\r\nX-Host: mfwx.test\r\n\r\n";
        let then = "GET /?mayfly_audit=b HTTP/1.1\r\n\r\n";
        report
            .findings
            .push(Finding::new("X-Host", &sign, request, then));
        report
    }

    #[test]
    fn a_page_is_a_block_with_the_request_that_shows_it() {
        assert_eq!(
            report().text(),
            "http://site.test/: 1 finding (90 variations, 300 requests)\n\
             \u{20} poisoning   X-Host\n\
             \u{20}             the next visitor gets its value: <a href=//mfwx.test>?[2J\n\
             \u{20}               GET /?mayfly_audit=b HTTP/1.1\n\
             \u{20}               X-Host: mfwx.test\n\
             \u{20}             then, from another visitor: GET /?mayfly_audit=b HTTP/1.1\n"
        );
    }

    #[test]
    fn the_sum_counts_pages_that_were_not_audited() {
        let mut sum = Sum::default();
        sum.count(&report());
        let mut other = PageReport::new("http://site.test/b".to_owned());
        other.incomplete = Some("no response".to_owned());
        assert!(
            other
                .text()
                .contains("  not audited to the end: no response\n")
        );
        sum.count(&other);
        sum.left_out = 3;
        assert_eq!(
            sum.text(),
            "2 pages, 1 finding, 300 requests; 1 not audited to the end; 3 more pages left out (--pages)\n"
        );
    }
}
