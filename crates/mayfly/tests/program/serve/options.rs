//! Options of `mayfly serve`.

use testkit::serving::{FolderServer, write_files};
use testkit::wait::until;

use crate::command_line::{code, folder, run, stderr, words};
use crate::program;

#[test]
fn missing_php_is_named_with_what_to_install() {
    let folder = folder(&[("index.php", "<?php echo 1;")]);
    let dir = folder.path().to_str().expect("a plain path");
    let output = words(&["serve", dir, "--php", "/nowhere/php-fpm"]);
    assert_eq!(code(&output), 1);
    assert!(
        stderr(&output).contains("/nowhere/php-fpm is not an executable file"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn printed_configuration_passes_the_test() {
    let folder = folder(&[("index.php", "<?php echo 1;")]);
    let dir = folder.path().to_str().expect("a plain path");
    let output = words(&[
        "serve",
        dir,
        "--print-config",
        "--ttl",
        "200ms",
        "--workers",
        "2",
    ]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let path = folder.path().join("printed.conf");
    std::fs::write(&path, &output.stdout).expect("a file");
    let output = run(folder.path(), &["-t", "-c", "printed.conf"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}

/// `--service` prints `/etc/mayfly/mayfly.conf` of the package: beside it are the folders that it includes.
#[test]
fn the_configuration_for_the_service_has_its_port_logs_and_further_sites() {
    let folder = FolderServer::folder();
    let files = [
        ("site/index.php", "<?php echo 1;"),
        (
            "etc/sites/other.conf",
            "server { listen 8099; server_name other.test; }",
        ),
        ("etc/conf.d/more.conf", "client_header_timeout 7s;"),
    ];
    write_files(folder.path(), &files);
    let dir = folder.path().join("site").display().to_string();
    let output = words(&["serve", &dir, "--print-config", "--service", "--dashboard"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in [
        "listen 80",
        "error_log error.log warn;",
        "access_log access.log pages",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    // A start of `serve` makes the token of its dashboard, the service makes none.
    for word in [
        "stderr",
        "access_log off",
        "127.0.0.1:8080",
        "daemon off",
        "cache_purge_token /",
    ] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    std::fs::write(folder.path().join("etc/mayfly.conf"), &output.stdout).expect("a file");
    let etc = folder.path().join("etc");
    let tested = run(&etc, &["-T", "-c", "mayfly.conf"]);
    let shown = String::from_utf8_lossy(&tested.stdout).into_owned();
    assert_eq!(code(&tested), 0, "{}", stderr(&tested));
    assert!(
        shown.contains("other.test") && shown.contains("client_header_timeout 7s"),
        "{shown}"
    );
    let alone = words(&["serve", &dir, "--service"]);
    assert_eq!(code(&alone), 2, "{}", stderr(&alone));
}

#[tokio::test]
async fn access_log_is_written_and_announced() {
    let page = [("index.html", "a page")];
    let logs = FolderServer::folder();
    let log = logs.path().join("access.log");
    let shown = log.to_str().expect("a plain path");
    let server = FolderServer::start_site(program(), &page, &["--access-log", shown]).await;
    let said = server.read("stdout");
    assert!(said.contains(&format!("Access log: {shown}\n")), "{said}");
    server.target().get("/?seen").await;
    until("the line", || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.contains("\"GET /?seen HTTP/1.1\" 200 6 ")
    })
    .await;

    let arguments = ["--access-log", "stderr"];
    let server = FolderServer::start_site(program(), &page, &arguments).await;
    server.target().get("/?seen").await;
    until("the line", || server.error_log().contains("GET /?seen ")).await;

    let server = FolderServer::start_site(program(), &page, &[]).await;
    assert!(server.read("stdout").contains("--access-log FILE"));
}
