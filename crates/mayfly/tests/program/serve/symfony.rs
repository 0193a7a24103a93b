//! Symfony's pages of fragments (`render_esi`), as its own reverse proxy would put them together.

use testkit::serving::{FolderServer, write_files};

use crate::{has_php_fpm, program};

/// Symfony with `framework.esi` on: includes if the server announces that it reads them.
const FRONT: &str = r#"<?php
$path = strtok($_SERVER['REQUEST_URI'], '?');
header('Content-Type: text/html');
if ($path === '/_fragment') {
    header('Cache-Control: ' . (isset($_GET['own']) ? 'private' : 'public, s-maxage=60'));
    exit('[' . ($_COOKIE['PHPSESSID'] ?? 'nobody') . ' ' . uniqid() . ']');
}
header($path === '/shared' ? 'Cache-Control: public, s-maxage=60' : 'Cache-Control: private');
$has_esi = str_contains($_SERVER['HTTP_SURROGATE_CAPABILITY'] ?? '', 'ESI/1.0');
if ($has_esi && $path !== '/comment') { header('Surrogate-Control: content="ESI/1.0"'); }
echo uniqid(), $has_esi ? '<esi:include src="/_fragment" /><esi:include src="/_fragment?own=1" />' : 'inline';
"#;

async fn serve(workers: &str) -> (tempfile::TempDir, FolderServer) {
    let site = FolderServer::folder();
    write_files(
        site.path(),
        &[("public/index.php", FRONT), ("src/Kernel.php", "<?php")],
    );
    let shown = site.path().to_str().expect("a path").to_owned();
    let arguments = ["--ttl", "1h", "--workers", workers];
    let server = FolderServer::start(program(), &shown, &arguments).await;
    (site, server)
}

/// The page's own part, and its fragments.
fn parts(text: &str) -> Vec<String> {
    text.split(['[', ']'])
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn a_shared_page_of_symfony_has_fragments_of_its_visitors() {
    if !has_php_fpm() {
        return;
    }
    let (_site, server) = serve("2").await;
    let target = server.target();
    let first = parts(&target.get("/shared").await.text());
    let second = parts(&target.get("/shared").await.text());
    assert_eq!(first.len(), 3, "{first:?}");
    assert_eq!(
        first[..2],
        second[..2],
        "the page and its shared fragment are kept"
    );
    assert_ne!(first[2], second[2], "the other is not");
    // Visitors with a session get pages of their own, as with every application that is not known.
    let own = target
        .get_with("/shared", "Cookie: PHPSESSID=ada\r\n")
        .await;
    let own = parts(&own.text());
    assert!(
        own[1].starts_with("ada ") && own[2].starts_with("ada "),
        "{own:?}"
    );
    let after = parts(&target.get("/shared").await.text());
    assert_eq!(first[..2], after[..2]);
    assert!(after[2].starts_with("nobody "));
}

#[tokio::test]
async fn a_page_that_does_not_ask_stays_text() {
    if !has_php_fpm() {
        return;
    }
    let (_site, server) = serve("2").await;
    let page = server.target().get("/comment").await.text();
    assert!(
        page.contains("<esi:include src=\"/_fragment\" />"),
        "{page}"
    );
}

/// A page that comes straight from PHP keeps a worker busy until it has been read, and its fragments need one, too:
/// they would wait for each other until `esi_timeout`.
#[tokio::test]
async fn a_page_and_its_fragments_need_one_worker() {
    if !has_php_fpm() {
        return;
    }
    let (_site, server) = serve("1").await;
    let page = server
        .target()
        .get_with("/own", "Cookie: PHPSESSID=ada\r\n")
        .await;
    let parts = parts(&page.text());
    assert_eq!(parts.len(), 3, "{parts:?}");
    let log = server.error_log();
    assert!(!log.contains("failed"), "{log}");
}
