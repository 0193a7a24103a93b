//! Pages that include this server itself, over the network.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use testkit::fake_http::{FakeHttp, Script as HttpScript};
use testkit::fake_php::{FakePhp, Script};
use testkit::process::free_port;

use super::ASKS;
use crate::start;

const INCLUDES: usize = 4;
/// The number of runs after which PHP makes pages without fragments: a loop without a bound ends
/// there.
const MANY: usize = 200;

/// A site whose pages have fragments at `path`. `/loop` leads to its own pages over the network, and
/// `/hop` to `/loop` by a location that writes the request anew.
async fn site(path: &'static str, other: &str) -> (FakePhp, testkit::running::RunningServer) {
    let runs = Arc::new(AtomicUsize::new(0));
    let php = FakePhp::tcp(move |request| {
        if request.param("REQUEST_URI").starts_with("/other") {
            return Script::page("Cache-Control: private\r\n", "other");
        }
        let run = runs.fetch_add(1, SeqCst);
        let include = |number| format!("<esi:include src='{path}?{run}-{number}'/>");
        let page: String = (0..INCLUDES).filter(|_| run < MANY).map(include).collect();
        Script::page(
            &format!("{ASKS}Cache-Control: private\r\n"),
            format!("({page})"),
        )
    })
    .await;
    let port = free_port();
    let own = php.cached_site(&format!(
        "esi on; }}\n\
         location /loop {{ esi on; proxy_pass http://127.0.0.1:{port}/page; }}\n\
         location /bare {{ proxy_pass http://127.0.0.1:{port}/page; proxy_pass_request_headers off; }}\n\
         location /hop {{ proxy_pass http://127.0.0.1:{port}/loop; proxy_cache zone;\n\
         cache_shared on; proxy_cache_valid 200 1s; }}\n\
         location /around {{ proxy_pass http://127.0.0.1:{port}/hop; }}\n\
         location /bare-hop {{ proxy_pass http://127.0.0.1:{port}/bare; }}\n\
         location /away {{ {other}"
    ));
    let own = own.replace(
        "listen unix:%%/http;",
        &format!("listen unix:%%/http; listen 127.0.0.1:{port};"),
    );
    (php, start(&own).await)
}

#[tokio::test]
async fn a_page_that_includes_a_proxy_of_its_own_server_has_one_budget() {
    for path in ["/loop", "/hop", "/around", "/bare", "/bare-hop"] {
        let (php, server) = site(path, "return 404;").await;
        let page = server.target().get("/").await;
        assert_eq!(
            page.text(),
            format!("({})", "()".repeat(INCLUDES)),
            "{path}"
        );
        // A location that writes requests anew asks twice for a page that turns out private.
        let rounds = php.requests() - 1;
        assert!(rounds <= 2 * INCLUDES, "{path}: {rounds}");
        let log = server.error_log();
        let said = log.matches("for a fragment (CDN-Loop)").count();
        assert_eq!(said, rounds, "once for each page: {log}");
    }
}

#[tokio::test]
async fn a_forged_name_concerns_the_page_of_its_client_alone() {
    let named = Arc::new(Mutex::new(String::new()));
    let seen = named.clone();
    let other = FakeHttp::start(move |request| {
        *seen.lock().expect("no panic") = request.field("cdn-loop").to_owned();
        HttpScript::page("Content-Type: text/html\r\n", "away")
    })
    .await;
    let pass = format!("proxy_pass {};", other.url());
    let (_php, server) = site("/away", &pass).await;
    let whole = format!("({})", "away".repeat(INCLUDES));
    let target = server.target();
    assert_eq!(target.get("/").await.text(), whole);
    let name = named.lock().expect("no panic").clone();
    assert!(name.starts_with("mayfly-"), "{name}");
    let invented = "CDN-Loop: mayfly-1, other.test;a=b\r\n";
    assert_eq!(target.get_with("/", invented).await.text(), whole);
    let forged = format!("CDN-Loop: other.test, {name}\r\n");
    assert_eq!(target.get_with("/", &forged).await.text(), "()");
    assert_eq!(target.get("/").await.text(), whole);
    // A request that no fragment has led to is not named.
    assert_eq!(target.get("/away").await.text(), "away");
    assert_eq!(named.lock().expect("no panic").as_str(), "");
}
