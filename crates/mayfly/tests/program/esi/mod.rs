//! `esi`: pages put together from fragments.

mod attacks;
mod budget;
mod failures;
mod fragments;
mod language;
mod loops;
mod waiting_line;

use testkit::fake_php::{FakePhp, Request, Script};
use testkit::running::RunningServer;

use crate::start;

/// The fields of a page that asks to be put together.
const ASKS: &str = "Content-Type: text/html\r\nSurrogate-Control: content=\"ESI/1.0\"\r\n";
const PLAIN: &str = "Content-Type: text/html\r\n";
/// A page for one visitor alone.
const PRIVATE: &str = "Content-Type: text/html\r\nCache-Control: private\r\n";

/// A site with `esi on`, whose pages are stored for an hour if PHP sets no other
/// lifetime.
async fn site(php: &FakePhp, location: &str) -> RunningServer {
    start(&configuration(php, location)).await
}

fn configuration(php: &FakePhp, location: &str) -> String {
    let pages = php.cached_site(&format!("fastcgi_cache_valid 200 1h;\n{location}"));
    format!("esi on;\n{pages}")
}

/// PHP with one page, at `/`, and fragments that answer with their request.
async fn page(page: &'static str) -> FakePhp {
    FakePhp::tcp(move |request| match request.param("REQUEST_URI") {
        "/" => Script::page(ASKS, page),
        _ => shown(request),
    })
    .await
}

fn shown(request: &Request) -> Script {
    Script::page(PLAIN, format!("[{}]", request.param("REQUEST_URI")))
}

/// Returns the page as the visitor gets it.
async fn result(text: &'static str, fields: &str) -> String {
    let php = page(text).await;
    let server = site(&php, "").await;
    server.target().get_with("/", fields).await.text()
}
