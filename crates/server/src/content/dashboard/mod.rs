//! `dashboard`: a page that draws the server's numbers. The page is one file (`page.html`), which asks
//! its own address for the numbers:
//!
//! ```text
//! ?numbers         Snapshot of crates/numbers      ?pages    Pages
//! ?history=MS      HistoryReport since then        ?table    what the numbers are called
//! ```
//!
//! Nothing that is asked for here changes anything.

use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use numbers::Kind;
use numbers::table::TABLE;
use serde::Serialize;

use crate::content::metrics::FIELDS;
use crate::content::own_machine;
use crate::exchange::handled::Handled;
use crate::exchange::numbers as current;
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;

const PAGE: &str = include_str!("page.html");

/// The page, or what it asks for.
pub fn handle(request: &mut Request) -> Handled {
    if !request.method.is_read() {
        return Handled::Status(405);
    }
    if !own_machine::may_see(request) {
        return Handled::Status(403);
    }
    let configuration = &request.configuration;
    let args = std::str::from_utf8(&request.args).unwrap_or("?");
    let json = match args.split_once('=').unwrap_or((args, "")) {
        ("", "") => return page(),
        ("numbers", "") => serde_json::to_vec(&current::snapshot(configuration)),
        ("pages", "") => serde_json::to_vec(&current::pages(configuration)),
        ("table", "") => serde_json::to_vec(&titles()),
        ("history", since) => match since.parse() {
            Ok(since) => serde_json::to_vec(&current::history(configuration, since)),
            Err(_) => return Handled::Status(400),
        },
        _ => return Handled::Status(404),
    };
    match json {
        Ok(json) => {
            let reply = with_fields(Reply::new(200, b"application/json", json));
            Handled::Reply(Box::new(reply))
        }
        Err(_) => Handled::Status(500),
    }
}

fn with_fields(mut reply: Reply) -> Reply {
    for (name, value) in FIELDS {
        reply.head.fields.append(*name, Bytes::from_static(value));
    }
    reply
}

fn page() -> Handled {
    let mut reply = with_fields(Reply::new(200, b"text/html; charset=utf-8", PAGE));
    let fields = &mut reply.head.fields;
    fields.append("Content-Security-Policy", policy().clone());
    fields.append("X-Frame-Options", Bytes::from_static(b"DENY"));
    fields.append("Referrer-Policy", Bytes::from_static(b"no-referrer"));
    Handled::Reply(Box::new(reply))
}

/// What the page may do: run its own script, and ask the site that it came from.
fn policy() -> &'static Bytes {
    static POLICY: OnceLock<Bytes> = OnceLock::new();
    POLICY.get_or_init(|| {
        let (script, style) = (hash(inside("script")), hash(inside("style")));
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        Bytes::from(policy)
    })
}

/// What stands in the page's only element of this name.
fn inside(name: &str) -> &'static str {
    let begins = PAGE.split_once(&format!("<{name}>"));
    let rest = begins.map_or("", |(_, rest)| rest);
    let ends = rest.split_once(&format!("</{name}>"));
    ends.map_or("", |(inside, _)| inside)
}

fn hash(text: &str) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    STANDARD.encode(digest.as_ref())
}

/// What the table of numbers says that the page shows.
#[derive(Serialize)]
struct Title {
    name: &'static str,
    title: &'static str,
    help: &'static str,
    /// Of a histogram.
    bounds: &'static [f64],
}

fn titles() -> Vec<Title> {
    let titles = TABLE.iter().map(|definition| Title {
        name: definition.name,
        title: definition.title,
        help: definition.help,
        bounds: match definition.kind {
            Kind::Histogram(bounds) => bounds,
            Kind::Counter | Kind::Gauge => &[],
        },
    });
    titles.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_one_script_and_one_style_and_loads_nothing() {
        for name in ["script", "style"] {
            assert_eq!(PAGE.matches(&format!("<{name}")).count(), 1, "{name}");
            assert!(!inside(name).is_empty(), "{name}");
        }
        let loading = [
            "src=",
            "href=",
            "url(",
            "@import",
            "style=",
            "onclick",
            "innerHTML",
            "import(",
        ];
        for loading in loading {
            assert!(!PAGE.contains(loading), "{loading}");
        }
        // The name of SVG's namespace is no address to ask.
        let names = PAGE.matches("http://www.w3.org/2000/svg").count();
        assert_eq!(PAGE.matches("://").count(), names);
    }

    #[test]
    fn the_page_asks_for_numbers_of_the_table_alone() {
        let names: Vec<&str> = inside("script").split("N.").skip(1).collect();
        assert!(names.len() > 15);
        for rest in names {
            let end = rest.find(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
            let name = &rest[..end.unwrap_or(rest.len())];
            assert!(numbers::Number::named(name).is_some(), "{name}");
        }
    }
}
