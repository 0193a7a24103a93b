//! h2spec, a foreign test suite for HTTP/2. `scripts/setup.sh test` installs it into
//! `target/tools/h2spec`.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use testkit::process::{free_port, is_root};
use tokio::task::JoinSet;

use crate::has_php_fpm;
use crate::tls::Certificates;

/// Runs of the suite for each page and each port: an answer that races an error shows in some.
const RUNS: usize = 3;
const CASES: usize = 145;
/// How long a case may wait for a frame, in seconds: the suite's own 2 s are too few beside other load.
const CASE_SECONDS: &str = "30";
/// Other clients that ask for pages meanwhile.
const OTHERS: usize = 4;
/// On a port that also speaks HTTP/1.1, a connection that does not begin with the preface is a request
/// of HTTP/1.1: it gets the status 400, and the connection is closed behind that. The suite takes the
/// response for a broken frame.
const NOT_ON_A_PLAIN_PORT: &str = "× 2: Sends invalid connection preface";

/// Runs the suite: the cases that failed.
fn failures(arguments: &[&str], port: u16, path: &str) -> Vec<String> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/h2spec/h2spec");
    let port = port.to_string();
    let output = Command::new(program)
        .args(["-p", &port, "--path", path, "-o", CASE_SECONDS])
        .args(arguments)
        .output()
        .expect("scripts/setup.sh test installs h2spec, and needs Go");
    let text = String::from_utf8_lossy(&output.stdout);
    let (_, failures) = text.split_once("Failures:").unwrap_or_default();
    let failed = failures.lines().map(str::trim);
    let failed: Vec<String> = failed
        .filter(|line| line.starts_with('×'))
        .map(str::to_owned)
        .collect();
    let passed = CASES - failed.len();
    assert!(
        text.contains(&format!("{CASES} tests, {passed} passed, 0 skipped")),
        "{text}"
    );
    failed
}

/// Runs the suite again and again: the same cases fail each time.
fn check_runs(arguments: &[&str], port: u16, path: &str, expected: &[&str]) {
    for nth in 1..=RUNS {
        let failed = failures(arguments, port, path);
        assert_eq!(failed, expected, "{path}, {arguments:?}, run {nth}");
    }
}

#[tokio::test]
async fn h2spec_passes_on_a_file_a_stored_page_and_php_each_time_beside_other_clients() {
    if !has_php_fpm() {
        return;
    }
    let certificates = Certificates::new();
    let (tls, plain) = (free_port(), free_port());
    let user = if is_root() { "user www-data;" } else { "" };
    let folder = testkit::serving::FolderServer::folder();
    let script = "<?php file_get_contents('php://input'); echo str_repeat('page', 1000);";
    std::fs::write(folder.path().join("page.php"), script).expect("a script");
    let php = format!(
        "fastcgi_pass php:site; fastcgi_param SCRIPT_FILENAME {}/page.php;\n\
         fastcgi_param REQUEST_METHOD $request_method; fastcgi_param CONTENT_LENGTH $content_length;",
        folder.path().display()
    );
    let server = certificates
        .start_with(
            &format!("php_pool site {{ workers 2; {user} }}"),
            &format!(
                "fastcgi_cache_path %%/cache keys_zone=pages:1m;\n\
                 server {{ listen 127.0.0.1:{tls} ssl; listen 127.0.0.1:{plain}; listen unix:%%/http;\n\
                 ssl_certificate FILES/a.pem; ssl_certificate_key FILES/a.key; http2 on;\n\
                 keepalive_requests 1000000000;\n\
                 location = /file {{ }} location = /php {{ {php} }}\n\
                 location = /stored {{ {php} fastcgi_cache pages; fastcgi_cache_key $uri; fastcgi_cache_valid 1h; }} }}"
            ),
        )
        .await;
    server.write("file", vec![b'x'; 4000]);
    let is_over = Arc::new(AtomicBool::new(false));
    let mut others = JoinSet::new();
    for _ in 0..OTHERS {
        let mut client = super::client(&server).await;
        assert_eq!(client.get("/stored").await.status, 200);
        let is_over = is_over.clone();
        others.spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(client.get("/stored").await.body.len(), 4000);
            }
        });
    }
    let mut suites = JoinSet::new();
    for path in ["/file", "/stored", "/php"] {
        for (arguments, port, expected) in [
            (&["-t", "-k"][..], tls, &[][..]),
            (&[][..], plain, &[NOT_ON_A_PLAIN_PORT][..]),
        ] {
            suites.spawn_blocking(move || check_runs(arguments, port, path, expected));
        }
    }
    while let Some(done) = suites.join_next().await {
        done.expect("it passes");
    }
    is_over.store(true, Ordering::Relaxed);
    while let Some(done) = others.join_next().await {
        done.expect("each is answered");
    }
}
