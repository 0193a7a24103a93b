//! The results of a run, as values: `--json` prints them, [`Report::to_text`] and the page show them.

use std::collections::BTreeMap;
use std::fmt::Write;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::plan::{Load, Plan};
use crate::record::{Counts, Recorder};

/// The client is late itself if one in a hundred requests is taken up later than this, in milliseconds.
const LATE_MS: f64 = 2.0;
/// Points of the curve of percentiles.
const CURVE: [f64; 12] = [
    0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 1.0,
];

/// One run.
// Large: numbers that are shown one by one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// `open`, `closed` or `replay`.
    pub model: &'static str,
    pub urls: Vec<UrlReport>,
    pub seconds: f64,
    /// Requests in a second that were asked for; in the open model.
    pub asked_rate: Option<f64>,
    pub connections: usize,
    /// Answers in a second.
    pub rate: f64,
    pub requests: u64,
    pub answers: u64,
    pub bytes: u64,
    pub statuses: BTreeMap<u16, u64>,
    pub errors: BTreeMap<&'static str, u64>,
    pub cache: BTreeMap<&'static str, u64>,
    pub hit_ratio: Option<f64>,
    /// From when a request was due; in the closed model from when it was sent.
    pub latency: Latency,
    /// Counted from the sending of a request, as a client that waits for the server would measure it.
    pub service: Latency,
    /// How late the client itself was, in the open model.
    pub lateness_p99_ms: Option<f64>,
    /// Lines of a log that were not asked again.
    pub left_out: u64,
    pub course: Vec<Moment>,
}

/// The results of one URL.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UrlReport {
    pub url: String,
    pub answers: u64,
    pub errors: u64,
    pub hit_ratio: Option<f64>,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// Milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Latency {
    pub mean: f64,
    pub p50: f64,
    pub p75: f64,
    pub p90: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
    /// Share of requests, and the time that they did not exceed.
    pub curve: Vec<(f64, f64)>,
}

/// A part of the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moment {
    /// Seconds since the beginning.
    pub at: f64,
    /// In a second.
    pub answers: f64,
    pub errors: f64,
    pub hit_ratio: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// Two runs in turns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub first: Report,
    pub second: Report,
    pub turns: u32,
}

fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

impl Latency {
    fn of(histogram: &Histogram<u64>) -> Latency {
        let at = |quantile| match histogram.is_empty() {
            true => 0.0,
            false => milliseconds(histogram.value_at_quantile(quantile).min(histogram.max())),
        };
        Latency {
            mean: rounded(histogram.mean() / 1000.0),
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            max: at(1.0),
            curve: CURVE
                .iter()
                .map(|quantile| (*quantile, at(*quantile)))
                .collect(),
        }
    }
}

impl Report {
    /// Makes the report from the counts of the recorder for this plan.
    #[must_use]
    pub fn new(plan: &Plan, recorder: &Recorder) -> Report {
        let Counts {
            latency,
            service,
            answers,
            bytes,
            statuses,
            failures,
            cache,
        } = &recorder.all;
        let settings = &plan.settings;
        let seconds = recorder.elapsed.as_secs_f64();
        let (model, asked_rate, left_out) = match &settings.load {
            Load::Closed => ("closed", None, 0),
            Load::Open { rate } => ("open", Some(*rate), 0),
            Load::Replay(replay) => ("replay", None, replay.left_out),
        };
        let is_open = !matches!(settings.load, Load::Closed);
        Report {
            model,
            urls: urls(plan, recorder),
            seconds: rounded(seconds),
            asked_rate,
            connections: settings.connections,
            rate: rounded(*answers as f64 / seconds.max(0.001)),
            requests: answers + recorder.all.failures(),
            answers: *answers,
            bytes: *bytes,
            statuses: statuses.clone(),
            errors: failures
                .iter()
                .map(|(it, count)| (it.words(), *count))
                .collect(),
            cache: cache
                .iter()
                .map(|(it, count)| (it.text(), *count))
                .collect(),
            hit_ratio: recorder.all.hit_ratio(),
            latency: Latency::of(latency),
            service: Latency::of(service),
            lateness_p99_ms: is_open
                .then(|| milliseconds(recorder.lateness.value_at_quantile(0.99))),
            left_out,
            course: course(recorder),
        }
    }

    /// For a terminal.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        self.put_load(&mut out);
        let _ = writeln!(
            out,
            "{} answers in {:.1} s: {:.1} per second, {} MB of bodies",
            self.answers,
            self.seconds,
            self.rate,
            rounded(self.bytes as f64 / 1_048_576.0)
        );
        self.put_latency(&mut out);
        let statuses: Vec<String> = self
            .statuses
            .iter()
            .map(|(status, count)| format!("{status} {count}"))
            .collect();
        let _ = writeln!(out, "\nstatus   {}", statuses.join(", "));
        if let Some(ratio) = self.hit_ratio {
            let words: Vec<String> = self
                .cache
                .iter()
                .map(|(word, count)| format!("{word} {count}"))
                .collect();
            let words = words.join(", ");
            let _ = writeln!(
                out,
                "cache    {:.1} % without the application ({words})",
                ratio * 100.0
            );
        }
        for (error, count) in &self.errors {
            let _ = writeln!(out, "error    {error}: {count}");
        }
        if self.left_out > 0 {
            let _ = writeln!(out, "log      {} lines are not asked again", self.left_out);
        }
        if self.urls.len() > 1 {
            out.push_str("\n  p50 ms   p99 ms   answers  errors  URL\n");
            for it in &self.urls {
                let _ = writeln!(
                    out,
                    "{:>8.2} {:>8.2} {:>9} {:>7}  {}",
                    it.p50_ms, it.p99_ms, it.answers, it.errors, it.url
                );
            }
        }
        out
    }

    fn put_load(&self, out: &mut String) {
        let _ = match (self.model, self.asked_rate) {
            (_, Some(rate)) => writeln!(
                out,
                "Open model: {rate} requests in a second were due, whether or not the server kept up; at most {} \
                 connections.",
                self.connections
            ),
            ("replay", _) => writeln!(out, "Requests of a log, at its times."),
            _ => writeln!(
                out,
                "Closed model: {} connections, each asks again when it has its answer. This is what the server can \
                 do;\nwhat visitors wait, --rate says.",
                self.connections
            ),
        };
    }

    fn put_latency(&self, out: &mut String) {
        out.push_str(
            "\nms            mean      p50      p75      p90      p99    p99.9      max\n",
        );
        let mut row = |name: &str, it: &Latency| {
            let _ = writeln!(
                out,
                "{name:<9} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>8.2}",
                it.mean, it.p50, it.p75, it.p90, it.p99, it.p99_9, it.max
            );
        };
        match self.lateness_p99_ms {
            None => row("answered", &self.latency),
            Some(late) => {
                row("waited", &self.latency);
                row("answered", &self.service);
                out.push_str("waited: since the request was due; answered: since it was sent\n");
                if late > LATE_MS {
                    let _ = writeln!(
                        out,
                        "This client was late itself, by {late:.1} ms for one request in a hundred: the machine is \
                         too busy for exact figures."
                    );
                }
            }
        }
    }
}

impl Comparison {
    /// For a terminal.
    #[must_use]
    pub fn to_text(&self) -> String {
        let name = |report: &Report| {
            let first = report.urls.first().map(|it| it.url.clone());
            first.unwrap_or_default()
        };
        let mut out = format!(
            "First: {}\n\n{}\nSecond: {}\n\n{}\n",
            name(&self.first),
            self.first.to_text(),
            name(&self.second),
            self.second.to_text()
        );
        let _ = writeln!(
            out,
            "In {} turns each      first     second   second/first",
            self.turns
        );
        let rows = [
            ("answers per second", self.first.rate, self.second.rate),
            ("p50 ms", self.first.latency.p50, self.second.latency.p50),
            ("p99 ms", self.first.latency.p99, self.second.latency.p99),
            (
                "p99.9 ms",
                self.first.latency.p99_9,
                self.second.latency.p99_9,
            ),
        ];
        for (what, first, second) in rows {
            let ratio = if first > 0.0 { second / first } else { 0.0 };
            let _ = writeln!(out, "{what:<19} {first:>10.2} {second:>10.2} {ratio:>14.2}");
        }
        out
    }
}

fn urls(plan: &Plan, recorder: &Recorder) -> Vec<UrlReport> {
    let counts = |number: usize| recorder.by_url.get(number).unwrap_or(&recorder.all);
    let url = |(number, url): (usize, &String)| {
        let counts = counts(number);
        let latency = Latency::of(&counts.latency);
        UrlReport {
            url: url.clone(),
            answers: counts.answers,
            errors: counts.failures(),
            hit_ratio: counts.hit_ratio(),
            p50_ms: latency.p50,
            p99_ms: latency.p99,
        }
    };
    plan.urls.iter().enumerate().map(url).collect()
}

fn course(recorder: &Recorder) -> Vec<Moment> {
    let width = recorder.interval.as_secs_f64();
    let moment = |(number, it): (usize, &crate::record::Interval)| {
        let at = |quantile| match it.latency.is_empty() {
            true => 0.0,
            false => milliseconds(it.latency.value_at_quantile(quantile)),
        };
        Moment {
            at: rounded(number as f64 * width),
            answers: rounded(it.answers as f64 / width),
            errors: rounded(it.failures as f64 / width),
            hit_ratio: rounded(it.hits as f64 / it.answers.max(1) as f64),
            p50_ms: at(0.5),
            p99_ms: at(0.99),
        }
    };
    recorder.course.iter().enumerate().map(moment).collect()
}
