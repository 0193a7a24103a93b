//! Processes and threads are found by their names.

use testkit::process::{descendants, is_root};
use testkit::running::RunningServer;
use testkit::serving::FolderServer;
use testkit::wait::until;

use crate::{has_php_fpm, program};

/// By which names the processes and their threads are found; `None` if a thread is too young to
/// have one.
fn names(pid: u32) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for pid in descendants(pid) {
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
    let server = RunningServer::start(program(), "worker_processes 2;", http).await;
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
    let site = FolderServer::folder();
    std::fs::write(site.path().join("index.php"), "<?php echo 1;").unwrap();
    let what = site.path().to_str().unwrap();
    let server = FolderServer::start(program(), what, &["--workers", "1"]).await;
    until("all threads have a name", || names(server.pid()).is_some()).await;
    let names = names(server.pid()).unwrap();
    let wanted = "mayfly: mayfly: serving process";
    assert!(names.iter().any(|name| name == wanted), "{names:?}");
}
