//! PHP that cannot keep up is a line in the log, and requests that never end do not take its
//! workers for good.

use std::time::Duration;

use testkit::client::Target;
use testkit::running::Running;

use crate::{PATIENCE, has_php_fpm, is_root, program, until};

/// A site with one script that takes its time, and two workers.
async fn start(folder: &std::path::Path) -> Option<Running> {
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
    Some(Running::start(program(), &main, &http).await)
}

async fn ask(target: Target, path: &str) -> u16 {
    tokio::time::timeout(PATIENCE, target.get(path))
        .await
        .map_or(0, |reply| reply.status)
}

#[tokio::test]
async fn busy_workers_are_one_line_that_says_what_to_do() {
    let folder = testkit::serving::Serving::folder();
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
    // A crowd that is served in time is nothing to speak of.
    tokio::time::timeout(Duration::from_secs(5), ask(target(), "/?s=0"))
        .await
        .unwrap();
}

#[tokio::test]
async fn own_pools_end_requests_that_take_much_longer_than_anybody_waits() {
    let folder = testkit::serving::Serving::folder();
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
