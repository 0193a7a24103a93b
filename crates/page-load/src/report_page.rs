//! A report as a page that needs nothing else: a table of figures, and a drawing of each kind of load.

use std::fmt::Write;

use load_test::html::{escaped, page};

use crate::page::{LoadedResource, PageLoad, Source};
use crate::report::{Report, cell};
use crate::totals::{FIGURES, milliseconds, typical};
use crate::waterfall::cut;

/// The width of a drawing.
const WIDTH: f64 = 960.0;
/// The start of bars, and the room that the numbers have behind them.
const LEFT: f64 = 300.0;
const RIGHT: f64 = 60.0;
const ROW: f64 = 18.0;
/// Room for the scale and the legend.
const ABOVE: f64 = 46.0;
/// The longest name, in characters.
const NAME: usize = 40;

const QUEUED: &str = "#d4d4d4";
const CONNECTING: &str = "#e39a3b";
const WAITING: &str = "#7fb38a";
const RECEIVING: &str = "#1f6f8b";
const WRONG: &str = "#c8553d";

impl Report {
    /// The page.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut body = String::from("<table style=\"border-spacing:1em .2em\">\n<tr><th></th>");
        let columns = self.columns();
        for column in &columns {
            let _ = write!(body, "<th align=\"left\">{}</th>", escaped(&column.title));
        }
        body.push_str("</tr>\n");
        for figure in &FIGURES {
            let _ = write!(body, "<tr><td>{}</td>", escaped(figure.text.trim()));
            for column in &columns {
                let _ = write!(body, "<td>{}</td>", escaped(&cell(figure, column.loads)));
            }
            body.push_str("</tr>\n");
        }
        body.push_str("</table>\n");
        for note in self.notes() {
            let _ = writeln!(body, "<p>{}</p>", escaped(&note));
        }
        for measured in &self.pages {
            let _ = writeln!(body, "<h2>{}</h2>", escaped(&measured.url));
            for (word, loads) in [("cold", &measured.cold), ("warm", &measured.warm)] {
                if let Some(load) = typical(loads) {
                    let _ = write!(body, "<h3>{word}</h3>\n{}", load.to_svg());
                }
            }
        }
        page(&body)
    }
}

impl PageLoad {
    /// The drawing: a row for each resource.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let whole = self.everything_ms().max(0.001);
        let x = |at: f64| LEFT + at / whole * (WIDTH - LEFT - RIGHT);
        let height = ABOVE + ROW * self.resources.len() as f64 + 10.0;
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"When each resource was there\">\n"
        );
        legend(&mut out);
        for part in 0..=4 {
            let at = whole * f64::from(part) / 4.0;
            let _ = writeln!(
                out,
                "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#ddd\"/>\
                 <text x=\"{0:.1}\" y=\"{3}\" text-anchor=\"middle\">{4} ms</text>",
                x(at),
                ABOVE - 6.0,
                height - 6.0,
                ABOVE - 10.0,
                milliseconds(at)
            );
        }
        for (number, resource) in self.resources.iter().enumerate() {
            self.row(&mut out, resource, ABOVE + ROW * number as f64, x);
        }
        let _ = writeln!(
            out,
            "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1}\" y2=\"{2}\" stroke=\"{WRONG}\" stroke-dasharray=\"4 3\">\
             <title>render-blocking there</title></line>",
            x(self.render_blocking_ms()),
            ABOVE - 6.0,
            height - 6.0
        );
        out + "</svg>\n"
    }

    fn row(&self, out: &mut String, resource: &LoadedResource, y: f64, x: impl Fn(f64) -> f64) {
        let times = &resource.times;
        let name = self.name(resource);
        let wrong = match resource.is_wrong() {
            true => format!(" style=\"fill:{WRONG}\""),
            false => String::new(),
        };
        let title = format!(
            "{} {} {} ({} to {} ms)",
            resource.status_text(),
            resource.kind.word(),
            resource.url,
            milliseconds(times.found),
            milliseconds(times.end)
        );
        let _ = write!(
            out,
            "<g><title>{}</title><text x=\"4\" y=\"{:.1}\"{wrong}>{}</text>",
            escaped(&title),
            y + 13.0,
            escaped(&cut(&name, NAME))
        );
        let sent = times.sent.unwrap_or(times.end);
        let connecting = times.connect.map_or(sent, |it| it.begun);
        let connected = times.connect.map_or(sent, |it| it.end());
        let first_byte = times.first_byte.unwrap_or(times.end);
        let last = match resource.is_wrong() {
            true => WRONG,
            false => RECEIVING,
        };
        for (from, to, colour) in [
            (times.found, connecting, QUEUED),
            (connecting, connected, CONNECTING),
            (connected, sent, QUEUED),
            (sent, first_byte, WAITING),
            (first_byte, times.end, last),
        ] {
            if to > from {
                let _ = write!(
                    out,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"12\" fill=\"{colour}\"/>",
                    x(from),
                    y + 3.0,
                    (x(to) - x(from)).max(0.5)
                );
            }
        }
        let took = match resource.source {
            Source::BrowserCache => "cached".to_owned(),
            _ => format!("{} ms", milliseconds(times.end - times.found)),
        };
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\"{wrong}>{took}</text></g>",
            x(times.end) + 4.0,
            y + 13.0
        );
    }
}

fn legend(out: &mut String) {
    let words = [
        ("queued", QUEUED),
        ("connecting", CONNECTING),
        ("waiting", WAITING),
        ("receiving", RECEIVING),
        ("failed", WRONG),
    ];
    for (number, (word, colour)) in words.iter().enumerate() {
        let at = LEFT + 110.0 * number as f64;
        let _ = writeln!(
            out,
            "<rect x=\"{at}\" y=\"4\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"14\">{word}</text>",
            at + 16.0
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::example;

    #[test]
    fn a_drawing_is_well_formed_and_has_each_resource() {
        let svg = example().to_svg();
        for name in ["/a.css?v=1", "/f.woff2", "/s.js"] {
            assert!(svg.contains(name), "{name}");
        }
        assert!(!svg.contains("<p>") && svg.contains("&lt;p&gt;"), "{svg}");
        for tag in ["svg", "g", "text", "title"] {
            let open =
                svg.matches(&format!("<{tag}>")).count() + svg.matches(&format!("<{tag} ")).count();
            assert_eq!(open, svg.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }

    #[test]
    fn bars_stay_within_the_drawing() {
        let svg = example().to_svg();
        for part in svg.split("<rect x=\"").skip(1) {
            let number = |after: &str| {
                let text = after.split('"').next().unwrap_or_default();
                text.parse::<f64>().expect("a number")
            };
            let width = part.split("width=\"").nth(1).expect("a width");
            assert!(number(part) + number(width) <= WIDTH, "{part}");
        }
    }
}
