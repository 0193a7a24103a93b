//! A server without visitors sleeps, and is found by its name.

use std::time::Duration;

use testkit::running::Running;
use testkit::serving::Serving;

use crate::{family, has_php_fpm, is_root, program, until};

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
    let server = Running::start(program(), "worker_processes 2;", http).await;
    assert_eq!(server.target().get("/").await.status, 204);
    // The pauses grow to a minute: after half of that there are a few wake-ups left.
    let rest = Duration::from_secs(30);
    let measured = Duration::from_secs(20);
    tokio::time::sleep(rest).await;
    let processes = family(server.pid());
    let count = || processes.iter().map(|pid| sleeps(*pid)).sum::<u64>();
    let before = count();
    tokio::time::sleep(measured).await;
    let woke = count() - before;
    assert!(
        woke <= 10,
        "{woke} wake-ups in {measured:?}, of {processes:?}"
    );
    // And it is awake at once when somebody comes.
    assert_eq!(server.target().get("/").await.status, 204);
}

/// By which names the processes and their threads are found; `None` where a thread is too young
/// to have one.
fn names(pid: u32) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for pid in family(pid) {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}"));
        let comm = read("comm").ok()?.trim().to_owned();
        if comm.starts_with("php-fpm") {
            continue;
        }
        let shown = read("cmdline").ok()?;
        names.push(format!("{comm}: {}", shown.split('\0').next()?));
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        for task in tasks.flatten() {
            let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
            if task.file_name().to_string_lossy() == pid.to_string() {
                continue;
            }
            if name.trim() == comm {
                return None;
            }
            names.push(name.trim().to_owned());
        }
    }
    Some(names)
}

#[tokio::test]
async fn threads_are_found_by_their_names() {
    let http = "server { listen unix:%%/http; }";
    let server = Running::start(program(), "worker_processes 2;", http).await;
    until("all threads have a name", || names(server.pid()).is_some()).await;
    let names = names(server.pid()).unwrap();
    for wanted in ["worker-0", "worker-1", "workers-end"] {
        assert!(names.iter().any(|name| name == wanted), "{names:?}");
    }
}

#[tokio::test]
async fn the_serving_process_is_found_by_its_name() {
    if !is_root() || !has_php_fpm() {
        eprintln!("skipped: only root has a process of its own for serving");
        return;
    }
    let site = Serving::folder();
    std::fs::write(site.path().join("index.php"), "<?php echo 1;").unwrap();
    let what = site.path().to_str().unwrap();
    let server = Serving::start(program(), what, &["--workers", "1"]).await;
    until("all threads have a name", || names(server.pid()).is_some()).await;
    let names = names(server.pid()).unwrap();
    let wanted = "mayfly: mayfly: serving process";
    assert!(names.iter().any(|name| name == wanted), "{names:?}");
}
