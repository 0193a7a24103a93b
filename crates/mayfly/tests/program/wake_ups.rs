//! A server without visitors sleeps.

use std::time::Duration;

use testkit::process::{descendants, is_root};
use testkit::running::RunningServer;

use crate::program;

/// How often the threads of a process went to sleep so far, those whose names begin so.
fn sleeps(pid: u32, names: &str) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    let of_task = tasks.flatten().map(|task| {
        let text = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
        if !text.starts_with(&format!("Name:\t{names}")) {
            return 0;
        }
        let line = text
            .lines()
            .find(|line| line.starts_with("voluntary_ctxt_switches"));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
            .unwrap_or(0)
    });
    of_task.sum()
}

/// Waits until a server that had its last visitor just now rests, and counts how often it wakes up.
async fn wake_ups(server: u32) -> u64 {
    wake_ups_of(&descendants(server), "").await
}

/// Counts wake-ups of these processes, and of threads whose names begin so.
async fn wake_ups_of(processes: &[u32], names: &str) -> u64 {
    // The pauses grow for half a minute.
    let rest = Duration::from_secs(40);
    // Longer than until the next look would come, were the pauses to grow on.
    let measured = Duration::from_secs(35);
    tokio::time::sleep(rest).await;
    let count = || processes.iter().map(|pid| sleeps(*pid, names)).sum::<u64>();
    let before = count();
    tokio::time::sleep(measured).await;
    count() - before
}

const HTTP: &str = "fastcgi_cache_path %%/cache keys_zone=zone:1m;\n\
    server { listen unix:%%/http; access_log %%/access.log combined buffer=64k; return 204; }";

#[tokio::test]
async fn a_server_without_visitors_does_not_wake_up() {
    let server = RunningServer::start(program(), "worker_processes 2;", HTTP).await;
    assert_eq!(server.target().get("/").await.status, 204);
    // One is for work that a busy machine may delay.
    assert!(wake_ups(server.pid()).await <= 1);
    // And it is awake at once when a client comes.
    assert_eq!(server.target().get("/").await.status, 204);
}

/// Measures a pool that keeps no page. (PHP is looked after all the same.)
#[tokio::test]
async fn nor_does_the_thread_that_learns() {
    let folder = testkit::serving::FolderServer::folder();
    if !crate::has_php_fpm() {
        return;
    }
    let user = if is_root() { "user www-data;" } else { "" };
    let script = folder.path().join("page.php");
    std::fs::write(&script, "<?php echo 'page';").expect("a script");
    let http = format!(
        "fastcgi_cache_path %%/cache keys_zone=pages:1m; server {{ listen unix:%%/http; location / {{\n\
         fastcgi_pass php:learned; fastcgi_cache pages; fastcgi_cache_valid 1s; cache_learn on;\n\
         fastcgi_param SCRIPT_FILENAME {}; fastcgi_param REQUEST_METHOD $request_method; }} }}",
        script.display()
    );
    let main = format!("worker_processes 2; php_pool learned {{ workers 1; {user} }}");
    let server = RunningServer::start(program(), &main, &http).await;
    assert_eq!(server.target().get("/").await.status, 200);
    assert!(sleeps(server.pid(), "learn-") > 0, "it is there");
    // Another test may run a command, which reports its writes to all servers of the machine (`mayfly
    // run`).
    let mut wake_ups = wake_ups_of(&[server.pid()], "learn-").await;
    if wake_ups > 1 {
        wake_ups = wake_ups_of(&[server.pid()], "learn-").await;
    }
    assert!(wake_ups <= 1, "{wake_ups}");
    assert_eq!(server.target().get("/").await.status, 200);
}

/// The parent has no part in the worker's requests.
#[tokio::test]
async fn nor_do_a_parent_and_its_worker() {
    if !is_root() {
        eprintln!("skipped: only root can give up root's rights");
        return;
    }
    let server = RunningServer::start_divided(program(), "", HTTP).await;
    assert_eq!(server.target().get("/").await.status, 204);
    assert!(wake_ups(server.pid()).await <= 1);
    assert_eq!(server.target().get("/").await.status, 204);
}
