//! PHP that cannot keep up is a line in the log, requests that never end do not take its
//! workers for good, and a reload takes a PHP that was upgraded.

use std::path::PathBuf;
use std::time::Duration;

use testkit::client::Target;
use testkit::process::{Signal, is_alive, is_root};
use testkit::running::RunningServer;
use testkit::wait::{TIMEOUT, until};

use crate::{file_names, has_php_fpm, program};

/// A site with one script that takes its time, and two workers.
async fn start(folder: &std::path::Path) -> Option<RunningServer> {
    if !has_php_fpm() {
        return None;
    }
    std::fs::write(
        folder.join("slow.php"),
        "<?php sleep((int) $_GET['s']); echo 'done';",
    )
    .unwrap();
    let user = if is_root() { "user www-data;" } else { "" };
    let main = format!("php_pool site {{ workers 2; {user} }}");
    let http = format!(
        "server {{ listen unix:%%/http; location / {{ fastcgi_pass php:site; fastcgi_read_timeout 400s;\n\
         fastcgi_param SCRIPT_FILENAME {}/slow.php; fastcgi_param QUERY_STRING $query_string;\n\
         fastcgi_param REQUEST_METHOD $request_method; }} }}",
        folder.display()
    );
    Some(RunningServer::start(program(), &main, &http).await)
}

async fn ask(target: Target, path: &str) -> u16 {
    tokio::time::timeout(TIMEOUT, target.get(path))
        .await
        .map_or(0, |reply| reply.status)
}

/// After `apt upgrade` the words of the configuration are the same, and their php-fpm is not.
#[tokio::test]
async fn reload_starts_workers_of_a_php_that_was_upgraded() {
    let folder = testkit::serving::FolderServer::folder();
    let Ok(php) = php_pool::find_php_fpm(None) else {
        return;
    };
    let binary = folder.path().join("php-fpm");
    testkit::process::copy_program(&php, &binary);
    let script = folder.path().join("parent.php");
    std::fs::write(
        &script,
        "<?php echo explode(' ', file_get_contents('/proc/self/stat'))[3];",
    )
    .unwrap();
    let user = if is_root() { "user www-data;" } else { "" };
    let main = format!(
        "php_pool site {{ workers 1; binary {}; {user} }}",
        binary.display()
    );
    let http = format!(
        "server {{ listen unix:%%/http; location / {{ fastcgi_pass php:site; \
         fastcgi_param SCRIPT_FILENAME {}; fastcgi_param REQUEST_METHOD $request_method; }} }}",
        script.display()
    );
    let server = RunningServer::start(program(), &main, &http).await;
    let master = async || server.target().get("/").await.text();
    let before = master().await;
    server.signal(Signal::HUP);
    until("a reload", || server.error_log().contains(" reloaded")).await;
    assert_eq!(master().await, before, "the same PHP stays");
    let upgraded = folder.path().join("php-fpm.dpkg-new");
    testkit::process::copy_program(&php, &upgraded);
    std::fs::rename(&upgraded, &binary).unwrap();
    server.signal(Signal::HUP);
    until("the end of the former", || {
        server.error_log().contains("the old master has left")
    })
    .await;
    assert_ne!(master().await, before, "its successor makes pages");
}

#[tokio::test]
async fn busy_workers_are_one_line_that_says_what_to_do() {
    let folder = testkit::serving::FolderServer::folder();
    let Some(server) = start(folder.path()).await else {
        return;
    };
    let target = || Target(server.path("http"));
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..8 {
        asked.spawn(ask(target(), "/?s=2"));
    }
    until("a line", || server.error_log().contains("PHP workers of")).await;
    while let Some(status) = asked.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
    let log = server.error_log();
    let lines: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("PHP workers of"))
        .collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("[warn]"), "{lines:?}");
    assert!(lines[0].contains("all 2 PHP workers of"), "{lines:?}");
    assert!(
        lines[0].contains("requests wait") && lines[0].contains("\"workers\""),
        "{lines:?}"
    );
    // Requests that are served in time are nothing to speak of.
    tokio::time::timeout(Duration::from_secs(5), ask(target(), "/?s=0"))
        .await
        .unwrap();
}

#[tokio::test]
async fn own_pools_end_requests_that_take_much_longer_than_anybody_waits() {
    let folder = testkit::serving::FolderServer::folder();
    let Some(server) = start(folder.path()).await else {
        return;
    };
    let parents = ["/run", "/tmp"];
    let conf = parents
        .iter()
        .flat_map(|parent| std::fs::read_dir(parent).into_iter().flatten().flatten())
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            // The parent's number is in it.
            name.starts_with("mayfly-php-site-") && name.contains(&format!("-{}-", server.pid()))
        })
        .map(|entry| std::fs::read_to_string(entry.path().join("php-fpm.conf")).unwrap())
        .collect::<String>();
    // A minute more than the longest read timeout.
    assert!(conf.contains("request_terminate_timeout = 460"), "{conf}");
}

/// The run folders of pools called `name`.
fn run_folders(name: &str) -> Vec<PathBuf> {
    let parent = if is_root() {
        PathBuf::from("/run")
    } else {
        std::env::temp_dir()
    };
    let names = file_names(&parent);
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
        let mut server = RunningServer::start(program(), &main, http).await;
        let left = run_folders(&name);
        assert_eq!(left.len(), 1, "{left:?}");
        // One beside it keeps its folder, and so does the first.
        let beside = RunningServer::start(program(), &main, http).await;
        assert_eq!(run_folders(&name).len(), 2);
        server.signal(Signal::KILL);
        // Its own parent, the test, has not asked how it ended.
        until("the end", || !is_alive(server.pid())).await;
        assert!(left[0].exists());
        let theirs = left[0].with_file_name(format!("mayfly-php-{name}-999999999-0"));
        std::fs::create_dir(&theirs).unwrap();
        std::fs::write(theirs.join("notes"), "somebody's").unwrap();
        let next = RunningServer::start(program(), &main, http).await;
        assert!(!left[0].exists());
        server.ended().await;
        assert!(theirs.join("notes").exists());
        assert_eq!(
            run_folders(&name).len(),
            3,
            "of two servers, and the foreign one"
        );
        for mut server in [beside, next] {
            server.end().await;
        }
        assert_eq!(run_folders(&name), std::slice::from_ref(&theirs));
        std::fs::remove_dir_all(theirs).unwrap();
    }
}

#[tokio::test]
async fn a_stop_with_an_idle_pool_speaks_of_no_slow_requests() {
    if !has_php_fpm() {
        return;
    }
    for signal in [Signal::TERM, Signal::QUIT] {
        let main = "php_pool idle { workers 2; user www-data; }";
        let mut server =
            RunningServer::start(program(), main, "server { listen unix:%%/http; }").await;
        server.signal(signal);
        server.ended().await;
        let log = server.error_log();
        assert!(!log.contains("took too long"), "{signal:?}: {log}");
        assert!(log.contains("\"idle\": stopped"), "{signal:?}: {log}");
    }
}
