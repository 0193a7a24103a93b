//! The answer that a page does not exist: its lifetime is that of a page, also where the application forbids to keep it.

use std::path::Path;
use std::time::Instant;

use testkit::client::{Reply, Target};
use testkit::serving::{FolderServer, write_files};
use testkit::wait::TIMEOUT;

use crate::cache_learn::database_site::{DatabaseSite, until_kept};
use crate::program;

const CRAWLER: &str = "User-Agent: Mozilla/5.0 (compatible; Googlebot/2.1)\r\n";

/// Pages are the files of a folder; WordPress answers others with 404, which may not be kept.
const INDEX: &str = "<?php
$page = __DIR__ . '/pages' . strtok($_SERVER['REQUEST_URI'], '?');
clearstatcache();
if (!is_file($page)) {
    http_response_code(404);
    header('Expires: Wed, 11 Jan 1984 05:00:00 GMT');
    header('Cache-Control: no-cache, must-revalidate, max-age=0, no-store, private');
    $page = __DIR__ . '/pages/404';
}
readfile($page);
";

async fn serve(folder: &Path, arguments: &[&str]) -> FolderServer {
    write_files(
        folder,
        &[
            ("wp-load.php", "<?php"),
            ("wp-settings.php", "<?php"),
            ("wp-includes/version.php", "<?php"),
        ],
    );
    let shown = folder.to_str().expect("a plain path");
    FolderServer::start(program(), shown, arguments).await
}

/// Asks until a reply is as it should be.
async fn until_shown(target: &Target, path: &str, is_it: impl Fn(&Reply) -> bool) {
    let started = Instant::now();
    loop {
        let reply = target.get(path).await;
        if is_it(&reply) {
            return;
        }
        assert!(started.elapsed() < TIMEOUT, "{path}: {reply:?}");
    }
}

/// `wp post create`, a change of permalinks on the command line, and a theme that is switched by a GET of wp-admin: no
/// request shows the write. The answer 404 was kept for five minutes.
#[tokio::test]
async fn page_that_a_command_makes_is_shown_once_the_lifetime_of_the_404_is_over() {
    let folder = FolderServer::folder();
    write_files(
        folder.path(),
        &[("index.php", INDEX), ("pages/404", "not here")],
    );
    let server = serve(folder.path(), &["--ttl", "100ms", "--workers", "2"]).await;
    let target = server.target();
    for path in ["/new", "/missing"] {
        assert_eq!(target.get(path).await.status, 404, "{path}");
        // The first one of a crawler is its own.
        for _ in 0..2 {
            assert_eq!(target.get_with(path, CRAWLER).await.status, 404, "{path}");
        }
    }
    write_files(
        folder.path(),
        &[("pages/new", "a page"), ("pages/404", "another theme")],
    );
    let has = |text: &'static str| move |reply: &Reply| reply.text() == text;
    until_shown(&target, "/new", has("a page")).await;
    until_shown(&target, "/missing", has("another theme")).await;
    // Crawlers may get an answer as old as one of their pages.
    let reply = target.get_with("/new", CRAWLER).await;
    assert_eq!((reply.status, reply.x_cache()), (404, "HIT"));
}

/// Answers with the version of an existing post, and with 404 for others.
const POSTS: &str = "<?php
require __DIR__ . '/connect.php';
$id = (int) trim(strtok($_SERVER['REQUEST_URI'], '?'), '/');
$row = $database->query(\"SELECT version FROM post WHERE id = $id\")->fetch_row();
if (!$row) {
    http_response_code(404);
    header('Cache-Control: no-cache, must-revalidate, max-age=0, no-store, private');
}
echo $row ? \"version $row[0]\" : 'not here';
";

#[tokio::test]
async fn learned_404_is_kept_beyond_its_lifetime_until_its_data_changes() {
    let Some(site) = DatabaseSite::make() else {
        return;
    };
    site.add("index.php", POSTS);
    let server = serve(site.path(), &["--ttl", "1ms", "--workers", "2"]).await;
    let target = server.target();
    until_kept(&target, &server.control(), "/7").await;
    let kept = target.get("/7").await;
    assert_eq!((kept.status, kept.x_cache()), (404, "HIT"));
    site.database.run("INSERT INTO blog.post VALUES (7, 1)");
    until_shown(&target, "/7", |reply| reply.text() == "version 1").await;
    assert_eq!(target.get("/7").await.status, 200);
}
