//! Two requests that the application answers differently and that the cache takes for one.

use tempfile::TempDir;
use testkit::serving::Serving;

const MIRROR: &str = "<?php header('Content-Type: text/html');
    echo json_encode([$_GET, $_SERVER['QUERY_STRING'], $_SERVER['PATH_INFO'] ?? '']);";

async fn php() -> (TempDir, Serving) {
    let site = Serving::folder();
    std::fs::write(site.path().join("index.php"), MIRROR).expect("a file");
    let folder = site.path().to_str().expect("a plain path");
    let arguments = ["--ttl", "1h", "--workers", "2"];
    let server = Serving::start(&crate::program(), folder, &arguments).await;
    (site, server)
}

/// What stands behind `#` is no argument for whoever reads the target, and becomes one when
/// the arguments before it are removed together with the `#`: `/?utm_source=x#&page=2` was
/// stored as `/?page=2` and made without `page`.
#[tokio::test]
async fn nothing_behind_a_fragment_becomes_an_argument() {
    let (_site, server) = php().await;
    let target = server.target();
    let pairs = [
        ("utm_source=x#&page=", "page="),
        ("utm_source=#&a=1&page=", "a=1&page="),
        ("a=1&gclid=#&page=", "a=1&page="),
        ("gclid#&page=", "page="),
        ("utm_source=x#?&page=", "page="),
        ("utm_source=x&fbclid=#y&page=", "page="),
    ];
    for (number, (forged, honest)) in pairs.into_iter().enumerate() {
        target.get(&format!("/index.php?{forged}{number}")).await;
        let reply = target.get(&format!("/index.php?{honest}{number}")).await;
        let page = format!("\"page\":\"{number}\"");
        assert!(reply.text().contains(&page), "{forged}: {}", reply.text());
    }
}
