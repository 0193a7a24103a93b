//! What a killed server leaves, the next one sweeps, and nothing else.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testkit::fake_http::{FakeHttp, Script};
use testkit::running::Running;
use tokio::sync::Semaphore;

use crate::{has_php_fpm, is_root, program, until};

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn bodies_of_a_killed_server_go_with_the_next_start() {
    let gate = Arc::new(Semaphore::new(0));
    let never = gate.clone();
    let upstream = FakeHttp::start(move |_| Script::new().wait_for(&never)).await;
    let folder = tempfile::tempdir().unwrap();
    let bodies = folder.path().join("bodies");
    let http = format!(
        "client_body_temp_path {}; client_body_in_file_only clean; proxy_read_timeout 60s;\n\
         server {{ listen unix:%%/http; location / {{ proxy_pass http://{}; }} }}",
        bodies.display(),
        upstream.address()
    );
    let mut server = Running::start(program(), "", &http).await;
    let mut client = server.connect().await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody")
        .await;
    until("a file", || {
        !names(&bodies).is_empty() && upstream.requests() == 1
    })
    .await;
    let left = names(&bodies);
    // A server that comes up beside it leaves its files alone.
    let beside = Running::start(program(), "", &http).await;
    assert_eq!(names(&bodies), left);
    drop(beside);
    server.signal("KILL");
    server.ended().await;
    std::fs::write(
        bodies.join("0000000007-12"),
        "kept by client_body_in_file_only on",
    )
    .unwrap();
    std::fs::write(bodies.join("notes.passing"), "somebody's").unwrap();
    let next = Running::start(program(), "", &http).await;
    until("the leftover is gone", || {
        !left.iter().any(|name| bodies.join(name).exists())
    })
    .await;
    assert_eq!(names(&bodies), ["0000000007-12", "notes.passing"]);
    drop(next);
}

/// The run folders of pools called `name`.
fn run_folders(name: &str) -> Vec<PathBuf> {
    let parent = if is_root() {
        PathBuf::from("/run")
    } else {
        std::env::temp_dir()
    };
    let names = names(&parent);
    let ours = names
        .iter()
        .filter(|it| it.contains(&format!("mayfly-php-{name}-")));
    ours.map(|it| parent.join(it)).collect()
}

#[tokio::test]
async fn run_folders_of_a_killed_server_go_with_the_next_start() {
    if has_php_fpm() {
        let name = format!("left{}", std::process::id());
        let main = format!("php_pool {name} {{ workers 1; user www-data; }}");
        let http = "server { listen unix:%%/http; return 204; }";
        let mut server = Running::start(program(), &main, http).await;
        let left = run_folders(&name);
        assert_eq!(left.len(), 1, "{left:?}");
        // One beside it keeps its folder, and so does the first.
        let beside = Running::start(program(), &main, http).await;
        assert_eq!(run_folders(&name).len(), 2);
        server.signal("KILL");
        server.ended().await;
        assert!(left[0].exists());
        let theirs = left[0].with_file_name(format!("mayfly-php-{name}-999999999-0"));
        std::fs::create_dir(&theirs).unwrap();
        std::fs::write(theirs.join("notes"), "somebody's").unwrap();
        let next = Running::start(program(), &main, http).await;
        assert!(!left[0].exists());
        assert!(theirs.join("notes").exists());
        assert_eq!(
            run_folders(&name).len(),
            3,
            "of two servers, and the foreign one"
        );
        for mut server in [beside, next] {
            server.signal("TERM");
            server.ended().await;
        }
        assert_eq!(run_folders(&name), std::slice::from_ref(&theirs));
        std::fs::remove_dir_all(theirs).unwrap();
    }
}

#[tokio::test]
async fn a_stopping_server_leaves_the_pid_file_of_its_successor() {
    let mut server = Running::start(program(), "", "server { listen unix:%%/http; }").await;
    std::fs::write(server.path("pid"), "1\n").unwrap();
    server.signal("QUIT");
    server.ended().await;
    assert_eq!(std::fs::read_to_string(server.path("pid")).unwrap(), "1\n");
}

#[tokio::test]
async fn a_stop_with_an_idle_pool_speaks_of_no_slow_requests() {
    if !has_php_fpm() {
        return;
    }
    for signal in ["TERM", "QUIT"] {
        let main = "php_pool idle { workers 2; user www-data; }";
        let mut server = Running::start(program(), main, "server { listen unix:%%/http; }").await;
        server.signal(signal);
        server.ended().await;
        let log = server.error_log();
        assert!(!log.contains("took too long"), "{signal}: {log}");
        assert!(log.contains("\"idle\": stopped"), "{signal}: {log}");
    }
}
