//! `serve --learn`, and a WordPress without it: the account by which the database is asked comes from the application's settings.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
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
    let server = FolderServer::start(program(), folder, &["--workers", "2"]).await;
    let said = server.read("stdout");
    let account = format!("(blog at unix:{})", site.database.socket().display());
    assert!(
        said.contains("--learn=off") && said.contains("wp-config.php") && said.contains(&account),
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
        .args(["serve", folder, "--print-config"])
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
    // Below /tmp nothing is learned.
    let site = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let everybody_reads = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(site.path(), everybody_reads).unwrap();
    write_files(site.path(), &files);
    let folder = site.path().to_str().expect("a plain path");
    let server = FolderServer::start(program(), folder, &["--learn=watch"]).await;
    until("its words", || server.read("stdout").contains("Ctrl-C")).await;
    let said = server.read("stdout");
    for part in [
        "wp-config.php: DB_USER",
        "of files and of SQLite are learned",
        "--learn-account FILE",
        "unix:/run/mysqld/mysqld.sock USER",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(server.target().get("/").await.text(), "page");
}

#[test]
fn a_wordpress_is_learned_by_default_where_its_settings_name_the_account() {
    let plain = "<?php define('DB_HOST', '127.0.0.1'); define('DB_USER', 'blog'); define('DB_PASSWORD', 'a');";
    let computed = "<?php define('DB_HOST', '127.0.0.1'); define('DB_USER', getenv('U')); define('DB_PASSWORD', 'a');";
    for (settings, options, learned) in [
        (plain, &[][..], Some("cache_learn on;")),
        (plain, &["--learn=watch"], Some("cache_learn watch;")),
        (plain, &["--learn=off"], None),
        // Its plug-in reports changes.
        (plain, &["--wordpress-plugin"], None),
        (plain, &["--ttl", "0"], None),
        (computed, &[], None),
        (computed, &["--learn"], Some("cache_learn on;")),
    ] {
        let site = FolderServer::folder();
        write_files(
            site.path(),
            &[
                ("index.php", "<?php echo 'page';"),
                ("wp-load.php", "<?php"),
                ("wp-includes/version.php", "<?php"),
                ("wp-content/index.php", "<?php"),
                ("wp-config.php", settings),
            ],
        );
        let printed = Command::new(program())
            .arg("serve")
            .arg(site.path())
            .arg("--print-config")
            .args(options)
            .output()
            .expect("the program");
        let text = String::from_utf8(printed.stdout).expect("a text");
        let told = String::from_utf8_lossy(&printed.stderr);
        assert!(text.contains("fastcgi_pass"), "{options:?}: {told}");
        let lines = text.lines().map(str::trim);
        let found = lines.clone().find(|line| line.starts_with("cache_learn "));
        assert_eq!(found, learned, "{options:?}");
        assert_eq!(
            lines.clone().any(|line| line.starts_with("cache_repeat ")),
            learned == Some("cache_learn on;"),
            "{options:?}"
        );
    }
}

/// The configuration that `serve --learn` prints for these files, with what it says beside it.
fn printed(folder: &Path, options: &[&str]) -> (bool, String) {
    printed_with(folder, &[&["--learn"], options].concat())
}

fn printed_with(folder: &Path, options: &[&str]) -> (bool, String) {
    let printed = Command::new(program())
        .arg("serve")
        .arg(folder)
        .arg("--print-config")
        .args(options)
        .output()
        .expect("the program");
    let all = [printed.stdout, printed.stderr].concat();
    (
        printed.status.success(),
        String::from_utf8(all).expect("a text"),
    )
}

#[test]
fn the_account_of_any_application_comes_from_its_settings_or_from_a_file() {
    const ENV: &str = "DB_CONNECTION=mysql\nDB_HOST=127.0.0.1\nDB_USERNAME=shop\nDB_PASSWORD=w0rdw0rd\n\
         REDIS_HOST=127.0.0.1\nREDIS_PASSWORD=w0rdw0rd\n";
    let site = FolderServer::folder();
    let page = ("public/index.php", "<?php echo 'page';");
    write_files(site.path(), &[page, ("artisan", ""), (".env", ENV)]);
    let (_, text) = printed(site.path(), &[]);
    assert!(
        text.contains("cache_learn_database 127.0.0.1:3306 shop PASSWORD;"),
        "{text}"
    );
    assert!(
        text.contains("cache_learn_object_cache 127.0.0.1:6379 default PASSWORD;"),
        "{text}"
    );
    assert!(
        text.contains(".env") && !text.contains("w0rdw0rd"),
        "{text}"
    );
    let account = site.path().join("account");
    let option = account.to_str().expect("a plain path");
    let long = format!("unix:/srv/sql.sock ada w0rdw0rd\n{}", "#".repeat(4096));
    #[rustfmt::skip]
    let cases = [
        (0o644, "unix:/srv/sql.sock ada w0rdw0rd", false, "account: every account of the machine may read"),
        (0o600, &*long, false, "account: the file has more than 4096 bytes"),
        (0o640, "unix:/srv/sql.sock ada w0rdw0rd", true, "cache_learn_database unix:/srv/sql.sock ada PASSWORD;"),
        (0o600, "localhost ada w0rdw0rd", false, "account:1: expected one line"),
    ];
    for (mode, line, is_read, part) in cases {
        std::fs::write(&account, line).unwrap();
        std::fs::set_permissions(&account, Permissions::from_mode(mode)).unwrap();
        let (is_served, text) = printed(site.path(), &["--learn-account", option]);
        assert_eq!(is_served, is_read, "{text}");
        assert!(text.contains(part) && !text.contains("w0rdw0rd"), "{text}");
    }
    let (is_served, text) = printed_with(site.path(), &["--learn=off", "--learn-account", option]);
    assert!(!is_served && text.contains("--learn=off"), "{text}");
}

#[tokio::test]
async fn a_site_among_temporary_files_is_named_at_the_start() {
    if !crate::has_php_fpm() {
        return;
    }
    let files = [("index.php", "<?php echo 'page';")];
    let server = FolderServer::start_site(program(), &files, &["--learn"]).await;
    until("its words", || server.read("stdout").contains("Ctrl-C")).await;
    let said = server.read("stdout");
    let is_named = said.contains("no page is learned: /tmp/");
    assert!(is_named && !said.contains("are learned"), "{said}");
}

#[test]
fn any_other_php_site_is_learned_once_comparisons_agree_unless_it_lies_among_temporary_files() {
    let lasting = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let temporary = FolderServer::folder();
    for (folder, options, learned) in [
        (lasting.path(), &[][..], Some("cache_learn auto;")),
        (lasting.path(), &["--learn"], Some("cache_learn on;")),
        (lasting.path(), &["--learn=off"], None),
        (lasting.path(), &["--ttl", "0"], None),
        (temporary.path(), &[], None),
        (
            temporary.path(),
            &["--learn=auto"],
            Some("cache_learn auto;"),
        ),
    ] {
        write_files(folder, &[("index.php", "<?php echo 'page';")]);
        let (is_printed, text) = printed_with(folder, options);
        assert!(is_printed, "{text}");
        let lines = text.lines().map(str::trim);
        let found = lines.clone().find(|line| line.starts_with("cache_learn "));
        assert_eq!(found, learned, "{options:?}");
    }
}
