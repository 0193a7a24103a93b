//! A server without visitors sleeps.

use std::time::Duration;

use testkit::process::descendants;
use testkit::running::RunningServer;

use crate::program;

/// How often the threads of a process went to sleep so far.
fn sleeps(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    let of_task = tasks.flatten().map(|task| {
        let text = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let line = text
            .lines()
            .find(|line| line.starts_with("voluntary_ctxt_switches"));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
            .unwrap_or(0)
    });
    of_task.sum()
}

#[tokio::test]
async fn a_server_without_visitors_wakes_up_less_than_once_a_second() {
    let http = "fastcgi_cache_path %%/cache keys_zone=zone:1m;\n\
                server { listen unix:%%/http; access_log %%/access.log combined buffer=64k; return 204; }";
    let server = RunningServer::start(program(), "worker_processes 2;", http).await;
    assert_eq!(server.target().get("/").await.status, 204);
    // The pauses grow to a minute: after half of that there are a few wake-ups left.
    let rest = Duration::from_secs(30);
    let measured = Duration::from_secs(20);
    tokio::time::sleep(rest).await;
    let processes = descendants(server.pid());
    let count = || processes.iter().map(|pid| sleeps(*pid)).sum::<u64>();
    let before = count();
    tokio::time::sleep(measured).await;
    let woke = count() - before;
    assert!(
        woke <= 10,
        "{woke} wake-ups in {measured:?}, of {processes:?}"
    );
    // And it is awake at once when a client comes.
    assert_eq!(server.target().get("/").await.status, 204);
}
