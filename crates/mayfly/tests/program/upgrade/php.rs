//! PHP-FPM's masters go on as they are, with the program that takes over.

use testkit::process::{Signal, is_alive, is_root, send_signal};
use testkit::wait::until;

use super::{BusyClients, ReplacedServer};
use crate::has_php_fpm;

/// The process of the pool's master, as PHP sees it.
async fn master(replaced: &ReplacedServer) -> u32 {
    let reply = replaced.server.target().get("/").await;
    reply.text().parse().expect("a number")
}

fn pool(workers: u32) -> String {
    let user = if is_root() { "user www-data;" } else { "" };
    format!("php_pool site {{ workers {workers}; {user} }}")
}

/// A site with one script, which answers with the number of its parent.
struct PhpSite {
    http: String,
    _folder: tempfile::TempDir,
}

impl PhpSite {
    fn new() -> PhpSite {
        let folder = testkit::serving::FolderServer::folder();
        let script = folder.path().join("page.php");
        let text = "<?php echo explode(' ', file_get_contents('/proc/self/stat'))[3];";
        std::fs::write(&script, text).expect("a script");
        let http = format!(
            "server {{ listen unix:%%/http; location / {{ fastcgi_pass php:site; \
             fastcgi_param SCRIPT_FILENAME {}; fastcgi_param REQUEST_METHOD $request_method; }} }}",
            script.display()
        );
        PhpSite {
            http,
            _folder: folder,
        }
    }

    async fn start(&self) -> ReplacedServer {
        ReplacedServer::start(&pool(2), &self.http).await
    }
}

#[tokio::test]
async fn a_master_keeps_its_process_over_upgrades_and_ends_with_the_last_program() {
    if !has_php_fpm() {
        return;
    }
    let site = PhpSite::new();
    let mut replaced = site.start().await;
    let before = master(&replaced).await;
    let clients = BusyClients::http1(&replaced.server, 4);
    for _ in 0..3 {
        let old = replaced.pid();
        let output = replaced.upgrade().await;
        assert!(output.status.success(), "{output:?}");
        clients.answered(20).await;
        replaced.gone(old).await;
        assert_eq!(master(&replaced).await, before);
    }
    assert_eq!(clients.end().await, [""; 0]);

    // The last one watches it, though it is not its child.
    send_signal(before, Signal::KILL);
    replaced.logs(2..=2, "ready with 2 workers").await;
    let after = master(&replaced).await;
    assert_ne!(after, before);
    // Killed, it leaves nothing.
    send_signal(replaced.pid(), Signal::KILL);
    until("the end of PHP", || !is_alive(after)).await;
}

#[tokio::test]
async fn a_master_that_came_with_an_upgrade_ends_with_the_program_that_has_it() {
    if !has_php_fpm() {
        return;
    }
    let site = PhpSite::new();
    let mut replaced = site.start().await;
    let before = master(&replaced).await;
    assert!(replaced.upgrade().await.status.success());
    let last = replaced.pid();
    send_signal(last, Signal::QUIT);
    replaced.gone(last).await;
    until("the end of PHP", || !is_alive(before)).await;
}

#[tokio::test]
async fn a_pool_that_the_configuration_changes_is_new_and_the_old_one_stays_until_it_is_not_needed()
{
    if !has_php_fpm() {
        return;
    }
    let site = PhpSite::new();
    let mut replaced = site.start().await;
    let before = master(&replaced).await;
    replaced.server.rewrite(&pool(3), &site.http);
    let (old, new) = replaced.usr2().await;
    assert!(is_alive(before), "the old program needs it");
    send_signal(old, Signal::QUIT);
    replaced.gone(old).await;
    until("the end of the old pool", || !is_alive(before)).await;
    assert_ne!(master(&replaced).await, before);
    assert!(is_alive(new));
}

#[tokio::test]
async fn going_back_gives_the_masters_back() {
    if !has_php_fpm() {
        return;
    }
    let site = PhpSite::new();
    let mut replaced = site.start().await;
    let before = master(&replaced).await;
    let (_, new) = replaced.usr2().await;
    send_signal(new, Signal::QUIT);
    replaced.gone(new).await;
    assert_eq!(master(&replaced).await, before);
    send_signal(before, Signal::KILL);
    replaced.logs(2..=2, "ready with 2 workers").await;
    assert_ne!(master(&replaced).await, before);
}
