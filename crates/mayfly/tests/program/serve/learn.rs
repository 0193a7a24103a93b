//! `serve --learn`: the account by which the database is asked comes from the application's settings.

use std::process::Command;

use testkit::serving::{FolderServer, write_files};
use testkit::wait::until;

use crate::cache_learn::database_site::{DatabaseSite, PASSWORD, until_kept};
use crate::program;

#[tokio::test]
async fn pages_of_wordpress_are_kept_with_the_account_of_its_settings_which_nothing_shows() {
    let Some(site) = DatabaseSite::make() else {
        return;
    };
    write_files(
        site.path(),
        &[
            ("wp-load.php", "<?php"),
            ("wp-includes/version.php", "<?php"),
        ],
    );
    let folder = site.path().to_str().expect("a plain path");
    let server = FolderServer::start(program(), folder, &["--learn", "--workers", "2"]).await;
    let said = server.read("stdout");
    let account = format!("(blog at unix:{})", site.database.socket().display());
    assert!(
        said.contains("wp-config.php") && said.contains(&account),
        "{said}"
    );
    let target = server.target();
    until_kept(&target, &server.control(), "/").await;
    site.write();
    let looks = tokio::time::interval(std::time::Duration::from_millis(20));
    let mut looks = Box::pin(looks);
    let started = std::time::Instant::now();
    while target.get("/").await.text() != site.version() {
        assert!(started.elapsed() < testkit::wait::TIMEOUT);
        looks.tick().await;
    }
    let printed = Command::new(program())
        .args(["serve", folder, "--learn", "--print-config"])
        .output()
        .expect("the program");
    let printed = String::from_utf8(printed.stdout).expect("a text");
    assert!(printed.contains("blog PASSWORD;"), "{printed}");
    let all = [printed, server.read("stdout"), server.read("stderr")].concat();
    let begin = PASSWORD.split(' ').next().expect("a word");
    assert!(!all.contains(begin), "{begin} is shown: {all}");
}

#[tokio::test]
async fn the_start_says_which_setting_is_no_literal_and_what_to_write() {
    let files = [
        ("index.php", "<?php echo 'page';"),
        ("wp-load.php", "<?php"),
        ("wp-includes/version.php", "<?php"),
        (
            "wp-config.php",
            "<?php define('DB_HOST', 'localhost'); define('DB_USER', getenv('U')); define('DB_PASSWORD', 'a');",
        ),
    ];
    if !crate::has_php_fpm() {
        return;
    }
    let server = FolderServer::start_site(program(), &files, &["--learn=watch"]).await;
    until("its words", || server.read("stdout").contains("Ctrl-C")).await;
    let said = server.read("stdout");
    for part in ["wp-config.php: DB_USER", "cache_learn_database unix:"] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(server.target().get("/").await.text(), "page");
}
