//! The page: one answer, made of the files beside this one, that loads nothing else.

use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::with_fields;
use crate::exchange::handled::StageEnd;
use crate::exchange::reply::Reply;

const FRAME: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
/// The parts of the script, each on those before it.
const SCRIPT: &[&str] = &[
    include_str!("page.js"),
    include_str!("live.js"),
    include_str!("inside.js"),
    include_str!("start.js"),
];

struct Page {
    text: Bytes,
    /// The Content-Security-Policy: the page may run its own script, and ask the site
    /// that it came from.
    policy: Bytes,
}

/// The page as it is sent.
pub fn reply() -> StageEnd {
    static PAGE: OnceLock<Page> = OnceLock::new();
    let page = PAGE.get_or_init(Page::make);
    let reply = Reply::new(200, b"text/html; charset=utf-8", page.text.clone());
    let mut reply = with_fields(reply);
    let fields = &mut reply.head.fields;
    fields.append("Content-Security-Policy", page.policy.clone());
    fields.append("X-Frame-Options", Bytes::from_static(b"DENY"));
    fields.append("Referrer-Policy", Bytes::from_static(b"no-referrer"));
    StageEnd::Reply(Box::new(reply))
}

impl Page {
    fn make() -> Page {
        let script = SCRIPT.concat();
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            hash(&script),
            hash(STYLE)
        );
        let style = format!("<style>{STYLE}</style>");
        let script = format!("<script>{script}</script>");
        let text =
            FRAME
                .replacen("<style></style>", &style, 1)
                .replacen("<script></script>", &script, 1);
        Page {
            text: Bytes::from(text),
            policy: Bytes::from(policy),
        }
    }
}

fn hash(text: &str) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    STANDARD.encode(digest.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> String {
        String::from_utf8(Page::make().text.to_vec()).unwrap()
    }

    #[test]
    fn the_page_has_one_script_and_one_style_and_loads_nothing() {
        let page = page();
        for name in ["script", "style"] {
            assert_eq!(page.matches(&format!("<{name}")).count(), 1, "{name}");
            assert_eq!(page.matches(&format!("</{name}")).count(), 1, "{name}");
            assert!(!page.contains(&format!("<{name}></")), "{name}");
        }
        for loading in ["src=", "href=", "url(", "@import", "style=", "import("] {
            assert!(!page.contains(loading), "{loading}");
        }
        // The name of SVG's namespace is no address to ask.
        let names = page.matches("http://www.w3.org/2000/svg").count();
        assert_eq!(page.matches("://").count(), names);
    }

    #[test]
    fn nothing_that_is_shown_becomes_markup() {
        let page = page();
        for markup in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "createContextualFragment",
            "setHTML",
            "eval(",
            "new Function",
            "onclick",
        ] {
            assert!(!page.contains(markup), "{markup}");
        }
    }

    #[test]
    fn a_token_is_kept_for_the_session_alone() {
        let page = page();
        assert!(page.contains("sessionStorage"));
        assert!(!page.contains("localStorage") && !page.contains("document.cookie"));
    }

    #[test]
    fn the_page_asks_for_numbers_of_the_table_alone() {
        let script = SCRIPT.concat();
        let names: Vec<&str> = script.split("N.").skip(1).collect();
        assert!(names.len() > 15);
        for rest in names {
            let end = rest.find(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
            let name = &rest[..end.unwrap_or(rest.len())];
            assert!(numbers::Number::named(name).is_some(), "{name}");
        }
    }
}
