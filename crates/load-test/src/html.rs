//! A report as a page that needs nothing else: text, a table, and plots drawn as SVG.

use std::fmt::Write;

use crate::report::{Comparison, Report};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
/// Room for numbers at the left and below.
const LEFT: f64 = 70.0;
const BELOW: f64 = 30.0;
const ABOVE: f64 = 10.0;
const COLOURS: [&str; 3] = ["#1f6f8b", "#c8553d", "#7a7a7a"];

/// One line of a plot.
struct Line<'a> {
    name: &'a str,
    points: Vec<(f64, f64)>,
}

impl Report {
    /// The page.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut body = String::new();
        self.put_html(&mut body);
        page(&body)
    }

    fn put_html(&self, out: &mut String) {
        let urls: Vec<String> = self.urls.iter().map(|it| escaped(&it.url)).collect();
        let _ = write!(
            out,
            "<h2>{}</h2>\n<pre>{}</pre>\n",
            urls.join("<br>"),
            escaped(&self.to_text())
        );
        let line = |name, value: fn(&crate::report::Moment) -> f64| Line {
            name,
            points: self.course.iter().map(|it| (it.at, value(it))).collect(),
        };
        out.push_str(&plot(
            "Answers and errors per second",
            "s",
            &[
                line("answers", |it| it.answers),
                line("errors", |it| it.errors),
            ],
        ));
        out.push_str(&plot(
            "What visitors waited, ms",
            "s",
            &[line("p50", |it| it.p50_ms), line("p99", |it| it.p99_ms)],
        ));
        if self.hit_ratio.is_some() {
            let hits = [line("spared", |it| it.hit_ratio * 100.0)];
            out.push_str(&plot("Answers without the application, %", "s", &hits));
        }
        out.push_str(&curve(&[("waited", self)]));
    }
}

impl Comparison {
    /// The page.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut body = format!("<pre>{}</pre>\n", escaped(&self.to_text()));
        body.push_str(&curve(&[("first", &self.first), ("second", &self.second)]));
        self.first.put_html(&mut body);
        self.second.put_html(&mut body);
        page(&body)
    }
}

/// A page around a body. Nothing is loaded, and no script runs.
#[must_use]
pub fn page(body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>mayfly bench</title>\n<style>body{{font:16px/1.5 sans-serif;max-width:760px;margin:2em auto;\
         padding:0 1em;color:#222;background:#fff}}pre{{overflow-x:auto;background:#f4f4f4;padding:1em;\
         font-size:13px}}svg{{width:100%;height:auto}}svg text{{font:12px sans-serif;fill:#444}}\
         h2{{font-size:1em;overflow-wrap:anywhere}}</style></head><body>\n<h1>mayfly bench</h1>\n{body}</body></html>\n"
    )
}

/// The share of requests that waited longer: each step to the right is a tenth of them.
fn curve(reports: &[(&str, &Report)]) -> String {
    let lines: Vec<Line> = reports
        .iter()
        .map(|(name, report)| {
            let curve = report.latency.curve.iter();
            let behind = |share: f64| -(1.0 - share).max(0.00001).log10();
            Line {
                name,
                points: curve.map(|(share, ms)| (behind(*share), *ms)).collect(),
            }
        })
        .collect();
    plot(
        "What visitors waited, ms, by the share of them that waited longer",
        "%",
        &lines,
    )
}

fn plot(title: &str, unit: &str, lines: &[Line]) -> String {
    let all = || lines.iter().flat_map(|line| &line.points);
    let most_x = all().map(|it| it.0).fold(0.0, f64::max).max(0.001);
    let most_y = ceiling(all().map(|it| it.1).fold(0.0, f64::max));
    let x = |value: f64| LEFT + value / most_x * (WIDTH - LEFT - 10.0);
    let y = |value: f64| HEIGHT - BELOW - value / most_y * (HEIGHT - BELOW - ABOVE);
    let mut out = format!(
        "<h3>{title}</h3>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n"
    );
    for part in 0..=4 {
        let value = most_y * f64::from(part) / 4.0;
        let at = y(value);
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - 10.0,
            LEFT - 6.0,
            at + 4.0,
            number(value)
        );
    }
    for part in 0..=5 {
        let value = most_x * f64::from(part) / 5.0;
        let shown = match unit {
            "%" => format!("{} %", number(100.0 * 10_f64.powf(-value))),
            _ => format!("{} {unit}", number(value)),
        };
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{shown}</text>",
            x(value).min(WIDTH - 25.0),
            HEIGHT - 10.0
        );
    }
    for (line, colour) in lines.iter().zip(COLOURS) {
        let points: Vec<String> = line
            .points
            .iter()
            .map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value)))
            .collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.join(" ")
        );
    }
    for (number, (line, colour)) in lines.iter().zip(COLOURS).enumerate() {
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" style=\"fill:{colour}\">{}</text>",
            LEFT + 10.0 + 110.0 * number as f64,
            ABOVE + 14.0,
            line.name
        );
    }
    out + "</svg>\n"
}

/// The next of 1, 2, 5, 10, 20, ...: where an axis ends.
fn ceiling(value: f64) -> f64 {
    let power = 10_f64.powf(value.max(0.001).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let step = steps.iter().find(|step| **step * power >= value);
    step.unwrap_or(&10.0) * power
}

fn number(value: f64) -> String {
    match value {
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 1.0 || value == 0.0 => format!("{:.1}", value).replace(".0", ""),
        _ => format!("{value:.3}").trim_end_matches('0').to_owned(),
    }
}

/// A text as it is written in HTML.
#[must_use]
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, end) in [
            (0.0, 0.001),
            (0.7, 1.0),
            (1.0, 1.0),
            (12.0, 20.0),
            (4999.0, 5000.0),
        ] {
            assert!(
                (ceiling(value) - end).abs() < 1e-9,
                "{value}: {}",
                ceiling(value)
            );
        }
    }

    #[test]
    fn texts_of_others_are_text() {
        assert_eq!(
            escaped("<a href=\"x\">&"),
            "&lt;a href=&quot;x&quot;&gt;&amp;"
        );
    }
}
