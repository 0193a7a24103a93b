//! QUIT, TERM, INT and USR1: how the server ends, and where its logs are.

use std::sync::Arc;

use testkit::client::Client;
use testkit::fake_php::{FakePhp, Script};
use testkit::process::Signal;
use testkit::running::RunningServer;
use testkit::wait::until;
use tokio::sync::Semaphore;

use crate::{program, start};

/// A PHP that answers when the gate opens.
pub async fn gated(gate: &Arc<Semaphore>) -> FakePhp {
    let gate = gate.clone();
    FakePhp::tcp(move |_| {
        Script::new()
            .wait_for(&gate)
            .stdout("Content-Type: text/plain\r\n\r\nlate")
            .end(0, 0)
    })
    .await
}

#[tokio::test]
async fn request_under_way_is_finished_by_a_server_that_quits() {
    let gate = Arc::new(Semaphore::new(0));
    let php = gated(&gate).await;
    let http = format!(
        "server {{ listen unix:%%/http; location / {{ fastcgi_pass {}; }} }}",
        php.address()
    );
    let mut server = start(&http).await;
    let mut idle = server.connect().await;
    let target = server.target();
    let request = tokio::spawn(async move { target.get("/").await });
    until("PHP has the request", || php.requests() == 1).await;
    server.signal(Signal::QUIT);
    until("nothing listens", || !server.path("http").exists()).await;
    assert!(
        idle.receive(false).await.is_none(),
        "idle connections are closed at once"
    );
    gate.add_permits(1);
    assert_eq!(request.await.expect("a response").text(), "late");
    assert!(server.ended().await.success());
    assert!(!server.path("pid").exists(), "the pid file is removed");
}

#[tokio::test]
async fn keepalive_min_timeout_keeps_an_idle_connection_through_a_stop() {
    for (time, is_kept) in [("1h", true), ("200ms", false)] {
        let http = format!(
            "server {{ listen unix:%%/http; keepalive_min_timeout {time}; return 200 page; }}"
        );
        let mut server = start(&http).await;
        let mut client = server.connect().await;
        let request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        client.send(request).await;
        let response = client.receive(false).await.expect("a response");
        assert_eq!(response.field("connection"), "keep-alive", "{time}");
        server.signal(Signal::QUIT);
        until("nothing listens", || !server.path("http").exists()).await;
        if is_kept {
            client.send(request).await;
            let response = client.receive(false).await.expect("a response");
            assert_eq!(response.text(), "page", "{time}");
            assert_eq!(response.field("connection"), "close", "{time}");
        }
        assert!(
            client.receive(false).await.is_none(),
            "{time}: it is closed"
        );
        assert!(server.ended().await.success(), "{time}");
    }
}

#[tokio::test]
async fn graceful_stop_ends_when_its_time_is_over() {
    let gate = Arc::new(Semaphore::new(0));
    let php = gated(&gate).await;
    let http = format!(
        "server {{ listen unix:%%/http; location / {{ fastcgi_pass {}; }} }}",
        php.address()
    );
    let mut server = RunningServer::start(program(), "worker_shutdown_timeout 50ms;", &http).await;
    let target = server.path("http");
    let mut client = Client::connect(&target).await;
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    until("PHP has the request", || php.requests() == 1).await;
    server.signal(Signal::QUIT);
    assert!(server.ended().await.success());
}

#[tokio::test]
async fn term_and_int_stop_at_once_and_leave_nothing_behind() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = start("server { listen unix:%%/http; return 200 one; }").await;
        server.signal(signal);
        assert!(server.ended().await.success(), "{signal:?}");
        for file in ["pid", "http"] {
            assert!(!server.path(file).exists(), "{file} after {signal:?}");
        }
        assert!(
            !server.error_log().contains("[alert]"),
            "{}",
            server.error_log()
        );
    }
}

#[tokio::test]
async fn logs_are_reopened_after_usr1() {
    let server = start("server { listen unix:%%/http; return 200 one; }").await;
    std::fs::rename(server.path("error.log"), server.path("old.log")).expect("renamed");
    server.signal(Signal::USR1);
    until("a new log", || server.path("error.log").exists()).await;
    server.signal(Signal::HUP);
    until("a line in it", || server.error_log().contains("reloaded")).await;
    let old = std::fs::read_to_string(server.path("old.log")).expect("the old log");
    assert!(!old.contains("HUP"), "{old}");
}

#[tokio::test]
async fn a_stopping_server_leaves_the_pid_file_of_its_successor() {
    let mut server = start("server { listen unix:%%/http; }").await;
    server.write("pid", "1\n");
    server.signal(Signal::QUIT);
    server.ended().await;
    assert_eq!(std::fs::read_to_string(server.path("pid")).unwrap(), "1\n");
}
