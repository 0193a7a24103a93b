//! nginx's sequence: USR2, WINCH, QUIT; HUP to go back. And all of it in one command.

use testkit::process::{Signal, is_alive, send_signal};
use testkit::wait::until;

use super::{BusyClients, ReplacedServer};

const SITE: &str = "server { listen unix:%%/http; location / { return 200 page; } }";

#[tokio::test]
async fn usr2_winch_quit_replaces_the_program_and_fails_no_request() {
    let mut replaced = ReplacedServer::start("", SITE).await;
    let clients = BusyClients::http1(&replaced.server, 8);
    for _ in 0..3 {
        let (old, new) = replaced.usr2().await;
        assert_eq!(replaced.old_pid(), Some(old));
        clients.answered(20).await;
        assert!(is_alive(old) && is_alive(new), "both serve");
        send_signal(old, Signal::WINCH);
        replaced.logs(1.., "the last connection has ended").await;
        clients.answered(20).await;
        assert!(is_alive(old), "it waits for QUIT or HUP");
        send_signal(old, Signal::QUIT);
        replaced.gone(old).await;
        until("one pid file", || replaced.old_pid().is_none()).await;
        assert_eq!(replaced.pid(), new);
        clients.answered(20).await;
        std::fs::write(replaced.server.path("error.log"), "").expect("a log");
    }
    assert_eq!(clients.end().await, [""; 0]);
    assert!(replaced.server.path("http").exists());
}

#[tokio::test]
async fn hup_to_the_old_and_quit_to_the_new_goes_back() {
    let mut replaced = ReplacedServer::start("", SITE).await;
    let clients = BusyClients::http1(&replaced.server, 4);
    let (old, new) = replaced.usr2().await;
    send_signal(old, Signal::WINCH);
    replaced.logs(1.., "the last connection has ended").await;
    send_signal(old, Signal::HUP);
    replaced.logs(1.., "taking connections again").await;
    send_signal(new, Signal::QUIT);
    replaced.gone(new).await;
    // The old program writes its pid file again once it has seen the end of the new one.
    until("the old pid file", || {
        replaced.server.read("pid").trim() == old.to_string()
    })
    .await;
    assert_eq!(replaced.old_pid(), None);
    clients.answered(20).await;
    // It can be replaced again, and takes commands.
    let output = replaced.upgrade().await;
    assert!(output.status.success(), "{output:?}");
    clients.answered(20).await;
    assert_eq!(clients.end().await, [""; 0]);
}

#[tokio::test]
async fn the_old_program_serves_again_when_the_new_one_is_killed() {
    let mut replaced = ReplacedServer::start("", SITE).await;
    let (old, new) = replaced.usr2().await;
    send_signal(old, Signal::WINCH);
    replaced.logs(1.., "the last connection has ended").await;
    send_signal(new, Signal::KILL);
    until("the pid file", || replaced.pid() == old).await;
    assert_eq!(replaced.server.target().get("/").await.text(), "page");
}

#[tokio::test]
async fn upgrade_does_all_of_it_and_says_who_serves() {
    let mut replaced = ReplacedServer::start("", SITE).await;
    let clients = BusyClients::http1(&replaced.server, 8);
    for _ in 0..5 {
        let old = replaced.pid();
        let output = replaced.upgrade().await;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{output:?} {}",
            replaced.server.error_log()
        );
        let new = replaced.pid();
        assert!(said.contains(&format!("Process {new} serves")), "{said}");
        clients.answered(20).await;
        replaced.gone(old).await;
    }
    assert_eq!(clients.end().await, [""; 0]);
    assert!(replaced.server.path("http").exists() && replaced.server.path("pid").exists());
}

#[tokio::test]
async fn one_upgrade_at_a_time() {
    let mut replaced = ReplacedServer::start("", SITE).await;
    let (old, _) = replaced.usr2().await;
    send_signal(old, Signal::USR2);
    replaced
        .logs(1.., "takes the place of this one already")
        .await;
    let new = replaced.pid();
    let waiting = replaced.begin_upgrade();
    replaced
        .logs(1.., &format!("waiting for the end of process {old}"))
        .await;
    // One waits, further ones are refused.
    let refused = replaced.upgrade().await;
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("has not ended yet"), "{said}");
    send_signal(old, Signal::QUIT);
    let output = waiting.await.expect("a thread");
    assert!(output.status.success(), "{output:?}");
    replaced.gone(new).await;
    let newest = replaced.pid();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains(&format!("Process {newest} serves")), "{said}");
}
