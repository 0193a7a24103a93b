//! `serve --tls`: HTTPS for browsers on this machine.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use testkit::process::{KilledOnDrop, free_port};
use testkit::serving::FolderServer;
use testkit::wait::until;

use crate::program;

/// `serve SITE --tls --listen LISTEN`, with its state in this folder.
fn command(site: &Path, state: &Path, listen: &str) -> Command {
    let mut command = Command::new(program());
    command
        .arg("serve")
        .arg(site)
        .args(["--tls", "--listen", listen])
        .env("STATE_DIRECTORY", state)
        .env("CACHE_DIRECTORY", state)
        .stdin(Stdio::null());
    command
}

/// Visits as a client that trusts this authority, or none.
fn visit(port: u16, authority: Option<&Path>) -> Output {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--include", "--max-time", "10"])
        .args(["--noproxy", "*", "--resolve"])
        .arg(format!("localhost:{port}:127.0.0.1"));
    if let Some(authority) = authority {
        curl.arg("--cacert").arg(authority);
    }
    let url = format!("https://localhost:{port}/");
    curl.arg(url).output().expect("curl")
}

#[tokio::test]
async fn a_browser_that_trusts_the_authority_gets_the_site_also_after_another_start() {
    let (site, state) = (FolderServer::folder(), tempfile::tempdir().unwrap());
    std::fs::write(site.path().join("index.html"), "served").unwrap();
    let authority = state.path().join("local/authority.pem");
    let mut trusted = Vec::new();
    for _ in 0..2 {
        let port = free_port();
        let announced = state.path().join("announced");
        let output = std::fs::File::create(&announced).unwrap();
        let mut command = command(site.path(), state.path(), &format!("127.0.0.1:{port}"));
        let server = KilledOnDrop(command.stdout(output).spawn().unwrap());
        let said = || std::fs::read_to_string(&announced).unwrap();
        until("the announcement", || said().contains("Ctrl-C")).await;
        assert!(said().contains(&format!("https://localhost:{port}/")));
        assert!(said().contains(authority.to_str().unwrap()), "{}", said());
        let text = std::fs::read_to_string(&authority).unwrap();
        trusted.push(text);
        let visited = visit(port, Some(&authority));
        let page = String::from_utf8_lossy(&visited.stdout);
        assert!(
            page.starts_with("HTTP/2 200") && page.ends_with("served"),
            "{visited:?}"
        );
        let stranger = visit(port, None);
        assert!(!stranger.status.success(), "{stranger:?}");
        drop(server);
    }
    assert_eq!(trusted[0], trusted[1]);
}

#[tokio::test]
async fn acme_state_says_where_the_authority_and_its_certificate_are_kept() {
    let (site, state) = (FolderServer::folder(), tempfile::tempdir().unwrap());
    std::fs::write(site.path().join("index.html"), "served").unwrap();
    let named = state.path().join("named");
    let port = free_port();
    let mut command = command(site.path(), state.path(), &format!("127.0.0.1:{port}"));
    command
        .arg("--acme-state")
        .arg(&named)
        .stdout(Stdio::null());
    let _server = KilledOnDrop(command.spawn().unwrap());
    let authority = named.join("local/authority.pem");
    until("the site", || {
        visit(port, Some(&authority)).status.success()
    })
    .await;
    assert!(!state.path().join("local").exists());
}

#[test]
fn options_of_certificates_that_others_issue_are_refused() {
    let (site, state) = (FolderServer::folder(), tempfile::tempdir().unwrap());
    for option in [
        &["--staging"][..],
        &["--acme-email", "me@example.org"],
        &["--acme-directory", "https://localhost:14000/dir"],
        &["--listen-http", "127.0.0.1:0"],
    ] {
        let output = command(site.path(), state.path(), "127.0.0.1:0")
            .args(option)
            .arg("--print-config")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{option:?}");
        assert!(said.contains("cannot be used with"), "{option:?}: {said}");
    }
}

#[test]
fn addresses_that_the_network_reaches_are_refused() {
    let (site, state) = (FolderServer::folder(), tempfile::tempdir().unwrap());
    for listen in [
        "8443",
        "*:8443",
        "0.0.0.0:8443",
        "[::]:8443",
        "192.0.2.1:8443",
        "name:8443",
    ] {
        let refused = command(site.path(), state.path(), listen).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{listen}: {said}");
        assert!(
            said.contains("for browsers on this machine alone"),
            "{said}"
        );
    }
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0);
}
