//! `--wordpress-plugin`: the files put into WordPress, and the pages kept by its word.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use testkit::client::Reply;
use testkit::process::{as_nobody, is_root};
use testkit::serving::{FolderServer, write_files};
use testkit::wait::TIMEOUT;

use crate::{has_php_fpm, program};

/// Works like the plug-in if it is installed: names the parts of a page, and vouches for it.
const SITE: &[(&str, &str)] = &[
    (
        "index.php",
        "<?php header('Content-Type: text/html');
        if ($_SERVER['REQUEST_METHOD'] == 'POST') { header('X-Cache-Purge-Tags: post:1'); exit; }
        if (is_file(__DIR__ . '/wp-content/mu-plugins/mayfly.php')) {
            header('Surrogate-Key: post:1 ' . str_repeat('t', 800) . ' ' . $_SERVER['MAYFLY_HEAD_BYTES']);
            if ($_SERVER['REQUEST_URI'] == '/') {
                header('X-Accel-Expires: ' . $_SERVER['MAYFLY_KEEP_SECONDS']);
            }
        }
        echo uniqid();",
    ),
    (
        "own.php",
        "<?php header('Cache-Control: max-age=3600'); echo uniqid();",
    ),
    ("wp-load.php", "<?php"),
    ("wp-includes/version.php", "<?php"),
    ("wp-content/index.php", "<?php"),
];
const FILES: [&str; 4] = [
    "mayfly.php",
    "mayfly/classes.php",
    "mayfly/mayfly.php",
    "mayfly/uninstall.php",
];

fn site() -> tempfile::TempDir {
    let site = FolderServer::folder();
    write_files(site.path(), SITE);
    site
}

async fn serve(site: &Path, arguments: &[&str]) -> FolderServer {
    let arguments = [&["--workers", "2"], arguments].concat();
    FolderServer::start(program(), site.to_str().expect("a path"), &arguments).await
}

fn said(server: &FolderServer) -> String {
    std::fs::read_to_string(server.path("stdout")).expect("what it said")
}

fn must_use(site: &Path) -> std::path::PathBuf {
    site.join("wp-content/mu-plugins")
}

fn seen(reply: &Reply) -> (u16, &str) {
    (reply.status, reply.x_cache())
}

/// Asks until the page does not come from memory any more.
async fn ends(server: &FolderServer, path: &str) {
    let ended = async {
        while server.target().get(path).await.x_cache() == "HIT" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, ended).await.expect(path);
}

#[tokio::test]
async fn what_the_plugin_vouches_for_is_kept_until_it_changes_and_all_else_for_a_second() {
    if !has_php_fpm() {
        return;
    }
    let site = site();
    let server = serve(site.path(), &["--wordpress-plugin"]).await;
    for file in FILES {
        assert!(must_use(site.path()).join(file).is_file(), "{file}");
    }
    let said = said(&server);
    assert!(
        said.contains("pages are kept for 8 hours, and a change is seen at once. WordPress's cron"),
        "{said}"
    );
    let target = server.target();
    for path in ["/", "/not-vouched", "/own.php"] {
        assert_eq!(seen(&target.get(path).await), (200, "MISS"), "{path}");
        assert_eq!(seen(&target.get(path).await), (200, "HIT"), "{path}");
    }
    // For pages without the plug-in's word, --ttl is a promise.
    ends(&server, "/own.php").await;
    ends(&server, "/not-vouched").await;
    let kept = target.get("/").await;
    assert_eq!(seen(&kept), (200, "HIT"));
    assert_eq!(kept.field("cache-control"), "no-cache");
    assert_eq!(target.ask("POST", "/edit", "", "a=b").await.status, 200);
    assert_eq!(seen(&target.get("/").await), (200, "MISS"));
}

#[tokio::test]
async fn nothing_is_installed_uninvited_and_the_option_is_named() {
    if !has_php_fpm() {
        return;
    }
    let site = site();
    let server = serve(site.path(), &[]).await;
    let text = said(&server);
    assert!(
        text.contains("Note: with --wordpress-plugin, pages are kept for hours"),
        "{text}"
    );
    assert!(!must_use(site.path()).exists());
    let target = server.target();
    target.get("/").await;
    ends(&server, "/").await;
}

#[tokio::test]
async fn a_plugin_that_is_there_counts_at_the_next_start() {
    if !has_php_fpm() {
        return;
    }
    let site = site();
    drop(serve(site.path(), &["--wordpress-plugin"]).await);
    let server = serve(site.path(), &[]).await;
    let text = said(&server);
    assert!(text.contains("pages are kept for 8 hours"), "{text}");
    drop(server);
    let classes = must_use(site.path()).join("mayfly/classes.php");
    std::fs::write(&classes, "<?php // of another version").unwrap();
    let server = serve(site.path(), &[]).await;
    let text = said(&server);
    assert!(
        text.contains("it is of another version than this server"),
        "{text}"
    );
    drop(server);
    drop(serve(site.path(), &["--wordpress-plugin", "--ttl", "5s"]).await);
    let written = std::fs::read_to_string(&classes).unwrap();
    assert!(written.contains("namespace Mayfly\\WordPress;"));
}

/// `serve FOLDER ARGUMENTS`, which ends at once.
fn run(site: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.arg("serve").arg(site).args(arguments);
    command.env("CACHE_DIRECTORY", site.join("cache"));
    command.output().expect("it ran")
}

fn refusal(site: &Path) -> String {
    let output = run(
        site,
        &["--wordpress-plugin", "--listen", "unix:/nowhere/http"],
    );
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_printed_configuration_installs_nothing() {
    let site = site();
    let output = run(site.path(), &["--wordpress-plugin", "--print-config"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("fastcgi_param MAYFLY_KEEP_SECONDS 28800;"),
        "{text}"
    );
    assert!(!must_use(site.path()).exists());
}

#[test]
fn what_is_there_is_not_written_over() {
    if !has_php_fpm() {
        return;
    }
    let site = site();
    write_files(&must_use(site.path()), &[("mayfly.php", "<?php // mine")]);
    let said = refusal(site.path());
    assert!(
        said.contains("mu-plugins/mayfly.php is there already, and is not Mayfly's plug-in"),
        "{said}"
    );
    let kept = std::fs::read_to_string(must_use(site.path()).join("mayfly.php")).unwrap();
    assert_eq!(kept, "<?php // mine");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    if !has_php_fpm() {
        return;
    }
    let site = site();
    write_files(
        site.path(),
        &[("wp-content/mu-plugins", "a file in its place")],
    );
    let said = refusal(site.path());
    assert!(
        said.contains("wp-content/mu-plugins cannot be written ("),
        "{said}"
    );
    assert!(
        said.contains("the account that starts this needs the right to"),
        "{said}"
    );
}

#[test]
fn whoever_may_not_write_there_is_told_so() {
    if !has_php_fpm() {
        return;
    }
    let around = FolderServer::folder();
    let site = around.path().join("site");
    write_files(&site, SITE);
    let content = site.join("wp-content");
    std::fs::set_permissions(&content, PermissionsExt::from_mode(0o555)).unwrap();
    let output = as_nobody(program().as_ref(), around.path())
        .arg("serve")
        .arg(&site)
        .arg("--wordpress-plugin")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains("mu-plugins cannot be written (13: Permission denied)"),
        "{said}"
    );
    assert_eq!(std::fs::read_dir(&content).unwrap().count(), 1);
}

#[test]
fn it_is_for_wordpress_whose_folder_is_known() {
    let other = FolderServer::folder();
    write_files(other.path(), &[("index.php", "<?php echo 1;")]);
    let said = refusal(other.path());
    assert!(
        said.contains("is not WordPress but a PHP front controller"),
        "{said}"
    );
    let moved = site();
    let settings = "<?php define('WPMU_PLUGIN_DIR', '/elsewhere');";
    write_files(moved.path(), &[("wp-config.php", settings)]);
    let said = refusal(moved.path());
    assert!(
        said.contains("where this WordPress has its must-use plug-ins cannot be told"),
        "{said}"
    );
    assert!(!must_use(moved.path()).exists());
}

/// The folder is the account's that runs PHP: its links there must not lead root elsewhere, and it must be able to
/// read the files that root puts there.
#[tokio::test]
async fn root_follows_no_link_of_a_script_and_scripts_read_what_root_writes() {
    if !has_php_fpm() || !is_root() {
        return;
    }
    let own = |path: &Path| {
        let status = Command::new("chown")
            .args(["-hR", "www-data:"])
            .arg(path)
            .status();
        assert!(status.expect("chown").success());
    };
    let site = site();
    let content = site.path().join("wp-content");
    own(&content);
    let server = serve(site.path(), &["--wordpress-plugin"]).await;
    assert_eq!(seen(&server.target().get("/").await), (200, "MISS"));
    drop(server);
    let loader = std::fs::metadata(must_use(site.path()).join("mayfly.php")).unwrap();
    assert_eq!(
        std::os::unix::fs::MetadataExt::uid(&loader),
        0,
        "no script changes it"
    );

    let elsewhere = FolderServer::folder();
    std::fs::remove_dir_all(must_use(site.path())).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), must_use(site.path())).unwrap();
    own(&content);
    let said = refusal(site.path());
    assert!(said.contains("another account"), "{said}");
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}
