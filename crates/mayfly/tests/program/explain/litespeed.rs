//! With `cache_litespeed on`, the application decides by LiteSpeed's fields, and the advice names them.

use control::{ExplainRequest, Explanation};
use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;

use super::{explain, get_with};
use crate::start;

const COOKIE: &str = "Cookie: session=0123456789abcdef\r\n";
const CLIENT: &str = "192.0.2.1";

/// Returns the fields of a visitor whose address the proxy on the unix socket gives.
fn fields(more: &str) -> String {
    format!("X-Forwarded-For: {CLIENT}\r\n{more}")
}

async fn site() -> (FakePhp, RunningServer) {
    let php = FakePhp::tcp(|request| {
        let control = match request.param("REQUEST_URI") {
            "/excluded" => "X-LiteSpeed-Cache-Control: no-cache",
            "/own" => "X-LiteSpeed-Cache-Control: private,max-age=1800",
            "/vary" => {
                "X-LiteSpeed-Cache-Control: public,max-age=60\r\nX-LiteSpeed-Vary: value=guest"
            }
            "/cookie" => "X-LiteSpeed-Cache-Control: public,max-age=60\r\nSet-Cookie: a=b",
            "/silent" => "Cache-Control: max-age=60",
            _ => "X-LiteSpeed-Cache-Control: public,max-age=60",
        };
        Script::page(&format!("Content-Type: text/html\r\n{control}\r\n"), "page")
    })
    .await;
    let directives = "cache_litespeed on; set_real_ip_from unix:; real_ip_header X-Forwarded-For;";
    let server = start(&php.cached_site(directives)).await;
    (php, server)
}

async fn told(server: &RunningServer, path: &str, more: &str) -> Explanation {
    let request = ExplainRequest {
        from: CLIENT.parse().ok(),
        ..get_with(path, more)
    };
    explain(server, &request).await
}

#[tokio::test]
async fn what_litespeeds_fields_refuse_is_told_with_what_would_help() {
    let (_php, server) = site().await;
    for (path, more, reason, words) in [
        ("/excluded", "", "no-cache", "what its settings exclude"),
        (
            "/own",
            "",
            "private",
            "With public, those without cookies share it",
        ),
        ("/vary", "", "vary-star", "value=ismobile"),
        ("/cookie", "", "set-cookie", "LSC-Cookie"),
        // The page is not known yet for visitors with cookies.
        ("/new", COOKIE, "cookie", "from the second request on"),
        ("/silent", COOKIE, "cookie", "from the second request on"),
    ] {
        if path != "/new" {
            server.target().get_with(path, &fields(more)).await;
        }
        let told = told(&server, path, more).await;
        assert_eq!(told.reason.expect(path).word, reason, "{path}");
        let advice = told.advice.join("\n");
        assert!(
            advice.contains(words) && advice.contains("cache_litespeed: "),
            "{path}: {advice}"
        );
    }
    // A shared page needs no advice.
    server.target().visit_until_hit("/", &fields("")).await;
    let told = told(&server, "/", "").await;
    assert!(told.is_stored && told.advice.is_empty(), "{told:?}");
}

#[tokio::test]
async fn a_visitors_own_copy_is_told_as_such() {
    let (_php, server) = site().await;
    for _ in 0..3 {
        server.target().get_with("/own", &fields(COOKIE)).await;
    }
    assert_eq!(
        server
            .target()
            .get_with("/own", &fields(COOKIE))
            .await
            .x_cache(),
        "HIT"
    );
    let told = told(&server, "/own", COOKIE).await;
    assert!(
        told.entry.is_some_and(|entry| entry.is_private),
        "{:?}",
        told.reason
    );
    assert!(
        told.advice[0].contains("one visitor's own copy"),
        "{:?}",
        told.advice
    );
}
