//! Purges by request, by every way that leads to them, in front of a scripted PHP whose pages
//! carry tags.

mod api;
mod attacks;
mod browsers;
mod command;
mod crowd;
mod other_software;
mod promise;
mod repeated_requests;
mod response_fields;
mod tags;

use testkit::client::{Reply, Target};
use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;

use crate::start;

/// PHP whose pages have the number of their run. Their tags are `all`, and the path without its
/// slash: `/news/5?page=2` carries `all` and `news/5`.
async fn tagged_pages() -> FakePhp {
    FakePhp::tcp(|request| {
        let path = request.param("REQUEST_URI");
        let tag = path.split('?').next().unwrap_or_default();
        Script::page(
            &format!(
                "Content-Type: text/html\r\nX-Cache-Tags: all,{}\r\n",
                tag.trim_start_matches('/')
            ),
            format!("{path} {}", request.number),
        )
    })
    .await
}

/// A site whose pages are stored for an hour, with these lines in the server and in the location of
/// the pages.
async fn site(php: &FakePhp, server: &str, location: &str) -> RunningServer {
    start(&configuration(php, "", server, location)).await
}

fn configuration(php: &FakePhp, http: &str, server: &str, location: &str) -> String {
    let pages = php.cached_site(&format!("fastcgi_cache_valid 200 1h;\n{location}"));
    let server = format!("server_name site.test;\n{server}\n");
    format!(
        "{http}\n{}",
        pages.replacen("server_name site.test;\n", &server, 1)
    )
}

const API: &str = "location = /purge { cache_purge_api; }";

/// Gets each page stored.
async fn store(target: &Target, paths: &[&str]) {
    for path in paths {
        target.get(path).await;
        assert_eq!(target.get(path).await.x_cache(), "HIT", "{path}");
    }
}

/// The pages that are not answered from memory any more. Looking makes them be stored again.
async fn gone<'p>(target: &Target, paths: &[&'p str]) -> Vec<&'p str> {
    let mut gone = Vec::new();
    for &path in paths {
        if target.get(path).await.x_cache() != "HIT" {
            gone.push(path);
        }
    }
    gone
}

/// Asks the interface.
async fn ask(target: &Target, json: &str) -> Reply {
    let fields = "Content-Type: application/json\r\n";
    target.ask("POST", "/purge", fields, json).await
}
