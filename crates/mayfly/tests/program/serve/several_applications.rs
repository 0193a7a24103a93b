//! `mayfly serve` on folders with several applications: each answers for its own paths.

use testkit::serving::{FolderServer, write_files};

use crate::{has_php_fpm, program};

const FRONT: &str = "<?php echo __DIR__ === $_SERVER['DOCUMENT_ROOT'] ? 'root' : basename(__DIR__), ' ', $_SERVER['REQUEST_URI'];";

const BLOG: [(&str, &str); 5] = [
    ("blog/index.php", FRONT),
    ("blog/wp-load.php", "<?php echo 'loaded';"),
    ("blog/wp-config.php", "<?php echo 'settings';"),
    ("blog/wp-includes/version.php", "<?php echo 'version';"),
    ("blog/wp-content/uploads/a.php", "<?php echo 'uploaded';"),
];

#[tokio::test]
async fn a_wordpress_in_a_folder_answers_for_its_own_paths() {
    if !has_php_fpm() {
        return;
    }
    let site = FolderServer::folder();
    write_files(site.path(), &BLOG);
    write_files(site.path(), &[("index.php", FRONT), ("style.css", "a {}")]);
    let server = FolderServer::start(program(), site.path().to_str().expect("a path"), &[]).await;
    let target = server.target();
    for (path, expected) in [
        (
            "/blog/2024/a-post/?page=2",
            "blog /blog/2024/a-post/?page=2",
        ),
        ("/blog/a-post", "blog /blog/a-post"),
        ("/blog/missing.png", "blog /blog/missing.png"),
        ("/blog/", "blog /blog/"),
        ("/blogger", "root /blogger"),
        ("/", "root /"),
        ("/about", "root /about"),
    ] {
        assert_eq!(target.get(path).await.text(), expected, "{path}");
    }
    // Paths that a WordPress at the root refuses are refused here.
    for path in [
        "/blog/wp-config.php",
        "/blog/wp-includes/version.php",
        "/blog/wp-content/uploads/a.php",
    ] {
        assert_eq!(target.get(path).await.status, 403, "{path}");
    }
    let said = std::fs::read_to_string(server.path("stdout")).expect("what it said");
    let place = site.path().canonicalize().expect("a folder");
    assert!(
        said.starts_with(&format!(
            "Serving a PHP front controller from {}\n  and WordPress in /blog\n",
            place.display()
        )),
        "{said}"
    );
}

#[tokio::test]
async fn a_wordpress_in_a_folder_of_static_pages_answers_there_only() {
    if !has_php_fpm() {
        return;
    }
    let site = FolderServer::folder();
    write_files(site.path(), &BLOG);
    write_files(site.path(), &[("index.html", "static")]);
    let server = FolderServer::start(program(), site.path().to_str().expect("a path"), &[]).await;
    let target = server.target();
    assert_eq!(target.get("/blog/a-post").await.text(), "blog /blog/a-post");
    assert_eq!(target.get("/").await.text(), "static");
    assert_eq!(target.get("/a-post").await.status, 404);
}

#[tokio::test]
async fn what_is_said_at_the_start_names_the_folder_that_was_chosen_and_why() {
    if !has_php_fpm() {
        return;
    }
    let site = FolderServer::folder();
    write_files(
        site.path(),
        &[
            ("public/index.php", FRONT),
            ("src/Kernel.php", "<?php echo 'source';"),
        ],
    );
    let server = FolderServer::start(program(), site.path().to_str().expect("a path"), &[]).await;
    let said = std::fs::read_to_string(server.path("stdout")).expect("what it said");
    let place = site.path().canonicalize().expect("a folder");
    assert!(
        said.starts_with(&format!(
            "Serving Symfony from {}/public (there is index.php, ../src/Kernel.php)\n",
            place.display()
        )),
        "{said}"
    );
    let target = server.target();
    assert_eq!(target.get("/a/route").await.text(), "root /a/route");
    assert_eq!(target.get("/src/Kernel.php").await.status, 403);
}
