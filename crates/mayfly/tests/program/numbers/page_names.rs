//! The form of a page's address in lists of pages.

use std::path::Path;
use std::time::Duration;

use control::client;
use testkit::fake_php::{FakePhp, Script};
use testkit::wait::TIMEOUT;

use crate::start;

/// The pages that were not stored, once there is this number of requests for them.
async fn not_stored(socket: &Path, requests: u64) -> Vec<(String, u64)> {
    let counted = async {
        loop {
            let pages = client::pages(socket).await.expect("pages").not_stored;
            let mut named: Vec<_> = pages.into_iter().map(|it| (it.name, it.count)).collect();
            if named.iter().map(|(_, count)| count).sum::<u64>() == requests {
                named.sort();
                return named;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let counted = tokio::time::timeout(TIMEOUT, counted).await;
    counted.expect("all requests are counted")
}

#[tokio::test]
async fn tokens_in_paths_are_masked_and_count_as_one_page() {
    let php = FakePhp::tcp(|_| Script::page("Cache-Control: private\r\n", "for you")).await;
    let server = start(&php.cached_site("")).await;
    // The end of a path that is cut may be a part of a token.
    let long = format!("/{}8c9f1b2d3e", "a/".repeat(146));
    for path in [
        "/reset/8c9f1b2d3e4f5a6b7c8d",
        "/reset/0123456789abcdef0123",
        "/reset/y6x5YWe1ODKLr5jdmVTAjx",
        "/reset/8c9f1b2d3e4f5a6b7c8d?mail=a",
        "/log-out?d41d8cd98f00b204e9800998ecf8427e=1",
        "/how-to-install-php-8-on-debian-12",
        &long,
    ] {
        server.target().get(path).await;
    }
    let named = not_stored(&server.path("pid.control"), 7).await;
    let page = |name: &str, count| (format!("site.test{name} (private)"), count);
    let cut = format!("/{}*", "a/".repeat(146));
    let shown: Vec<_> = named
        .iter()
        .filter(|(name, _)| name.len() < 100)
        .cloned()
        .collect();
    assert_eq!(
        shown,
        [
            page("/how-to-install-php-8-on-debian-12", 1),
            page("/log-out?*=*", 1),
            page("/reset/*", 3),
            page("/reset/*?mail=*", 1),
        ]
    );
    let (long, _) = named
        .iter()
        .find(|(name, _)| name.len() >= 100)
        .expect("the long one");
    assert!(
        !long.contains("8c9f") && format!("site.test{cut}").starts_with(&long[..100]),
        "{long}"
    );
}
