//! Cookies, arguments and paths in disguise: the cache takes them for something else than
//! PHP does.

use tempfile::TempDir;
use testkit::client::{Reply, Target};
use testkit::serving::Serving;

/// A real PHP with a page that shows what it was given.
async fn php(files: &[(&str, &str)]) -> (TempDir, Serving) {
    let site = Serving::folder();
    for (name, text) in files {
        let path = site.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let folder = site.path().to_str().expect("a plain path");
    let arguments = ["--ttl", "1h", "--workers", "2"];
    let server = Serving::start(&crate::program(), folder, &arguments).await;
    (site, server)
}

const MIRROR: &str = "<?php header('Content-Type: text/html');
    echo json_encode(['get' => $_GET, 'cookie' => $_COOKIE,
    'uri' => $_SERVER['REQUEST_URI'], 'query' => $_SERVER['QUERY_STRING'],
    'user' => [$_SERVER['REMOTE_USER'] ?? '', $_SERVER['PHP_AUTH_USER'] ?? '']]);";

/// What makes `serve` take a folder for WordPress.
const WORDPRESS: &[(&str, &str)] = &[
    ("index.php", MIRROR),
    ("wp-login.php", MIRROR),
    ("wp-load.php", "<?php"),
    ("wp-settings.php", "<?php"),
    ("wp-config.php", "<?php"),
    ("wp-includes/version.php", "<?php $wp_version = '6.1';"),
    ("wp-admin/index.php", MIRROR),
];

fn status(reply: &Reply) -> &str {
    reply.field("x-cache")
}

/// Stores the page as a stranger sees it.
async fn store(target: &Target, path: &str) {
    target.get(path).await;
    assert_eq!(status(&target.get(path).await), "HIT", "{path}");
}

#[tokio::test]
async fn a_session_is_known_however_its_cookie_is_spelt() {
    let (_site, server) = php(WORDPRESS).await;
    let target = server.target();
    store(&target, "/").await;
    for cookie in [
        "wordpress_logged_in_x=1",
        "wordpress.logged.in_x=1",
        "wordpress logged_in_x=1",
        "wordpress_logged_in_x[a]=1",
        "a=b;wordpress_logged_in_x=1",
        "a=b;\twordpress_logged_in_x=1",
        "a=b;   wordpress_logged_in_x=1",
        "wordpress_logged_in_x",
        "wordpress_logged_in_x=0",
        "wordpress_logged_in_x=",
        "_ga=1; wordpress.logged_in_x=1",
    ] {
        let reply = target.get_with("/", &format!("Cookie: {cookie}\r\n")).await;
        assert_eq!(status(&reply), "BYPASS", "{cookie:?}");
        assert!(
            reply.text().contains("wordpress_logged_in_x"),
            "{cookie:?}: {}",
            reply.text()
        );
    }
}

#[tokio::test]
async fn a_cookie_that_does_not_matter_reaches_no_shared_page() {
    let (_site, server) = php(WORDPRESS).await;
    let target = server.target();
    let reply = target
        .get_with("/", "Cookie: _ga=evil; theme=evil; wp-settings-1=evil\r\n")
        .await;
    assert_eq!(
        (status(&reply), reply.text().contains("evil")),
        ("MISS", false)
    );
    assert_eq!(status(&target.get("/").await), "HIT");
    // A language is in the key, and sent.
    let german = target
        .get_with("/", "Cookie: pll_language=de; _ga=1\r\n")
        .await;
    assert_eq!(status(&german), "MISS");
    assert!(
        german.text().contains(r#""pll_language":"de""#),
        "{}",
        german.text()
    );
    let again = target
        .get_with("/", "Cookie: _ga=2; pll_language=de\r\n")
        .await;
    assert_eq!((status(&again), again.text()), ("HIT", german.text()));
    assert!(!target.get("/").await.text().contains("pll_language"));
}

#[tokio::test]
async fn arguments_for_statistics_reach_no_shared_page() {
    let (_site, server) = php(WORDPRESS).await;
    let target = server.target();
    for query in [
        "utm_source=evil",
        "utm%5Fsource=evil",
        "utm_source[]=evil",
        "utm.source=evil",
        "%75tm_source=evil",
        "+utm_source=evil",
        "gclid=evil",
    ] {
        let reply = target.get(&format!("/?{query}")).await;
        assert!(!reply.text().contains("evil"), "{query}: {}", reply.text());
    }
    assert_eq!(status(&target.get("/").await), "HIT");
}

/// PHP takes the first 1,000 (`max_input_vars`).
#[tokio::test]
async fn a_thousand_ignored_arguments_do_not_hide_the_one_that_counts() {
    let (_site, server) = php(WORDPRESS).await;
    let target = server.target();
    let ignored = "utm_a&".repeat(600);
    let more = "gclid&".repeat(450);
    let reply = target.get(&format!("/?{ignored}{more}page=2")).await;
    assert!(reply.text().contains(r#""page":"2""#), "{}", reply.text());
    let reply = target.get("/?page=2").await;
    assert!(reply.text().contains(r#""page":"2""#), "{}", reply.text());
}

#[tokio::test]
async fn personal_arguments_are_known_however_they_are_spelt() {
    let (_site, server) = php(WORDPRESS).await;
    let target = server.target();
    for query in [
        "preview=true",
        "%70review=true",
        "preview[]=true",
        "+preview=true",
        "preview",
        "preview=0",
        "a=b&preview=true",
        "add-to-cart=1",
        "add%2Dto%2Dcart=1",
    ] {
        let reply = target.get(&format!("/?{query}")).await;
        assert_eq!(status(&reply), "BYPASS", "{query}");
    }
}

#[tokio::test]
async fn personal_paths_are_known_however_they_are_spelt() {
    let (_site, server) = php(WORDPRESS).await;
    let target = server.target();
    for path in [
        "/wp-login.php",
        "/wp-%6cogin.php",
        "/%77p-login.php",
        "/a/../wp-login.php",
        "/a/%2e%2e/wp-login.php",
        "//wp-login.php",
        "/wp-admin/index.php",
        "/wp-%61dmin/index.php",
        "/wp-admin%2Findex.php",
        "/index.php/wp-%61dmin/",
        "/index.php/cart",
    ] {
        let reply = target.get(path).await;
        assert_eq!((reply.status, status(&reply)), (200, "BYPASS"), "{path}");
    }
}

#[tokio::test]
async fn credentials_that_nobody_checked_are_no_user() {
    let (_site, server) = php(WORDPRESS).await;
    // alice:secret
    let fields = "Authorization: Basic YWxpY2U6c2VjcmV0\r\n";
    let reply = server.target().get_with("/", fields).await;
    assert_eq!(status(&reply), "BYPASS");
    // REMOTE_USER never; PHP itself reads the field that was forwarded to it.
    assert!(
        reply.text().contains(r#""user":["","alice"]"#),
        "{}",
        reply.text()
    );
    let other = server.target().get("/").await;
    assert!(!other.text().contains("alice"));
}
