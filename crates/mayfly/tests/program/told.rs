//! `-s`: the server itself reports the result, over its control socket; without one, a signal is
//! sent, as with nginx.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Output;

use testkit::client::Target;
use testkit::process::{has_pid_file, is_root};
use testkit::running::RunningServer;
use testkit::wait::until;

use crate::command_line::{SMALL, code, folder, run, stderr};
use crate::privileges::privileged;
use crate::{program, start};

const ONE: &str = "server { listen unix:%%/http; return 200 one; }";

fn tell(folder: &Path, word: &str) -> Output {
    run(folder, &["-c", "test.conf", "-s", word])
}

#[tokio::test]
async fn a_reload_is_in_force_when_it_is_said_to_be_done() {
    let server = start(ONE).await;
    server.rewrite("", &ONE.replace("one", "two"));
    let output = tell(&server.path(""), "reload");
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
    assert_eq!(server.target().get("/").await.text(), "two");
    let log = server.error_log();
    assert!(log.contains("over the control socket, reloading"), "{log}");
    assert!(!log.contains("signal"), "{log}");
}

#[tokio::test]
async fn a_reload_that_fails_says_why_and_ends_with_a_status() {
    let server = start(ONE).await;
    // Valid as far as the command itself can see.
    server.rewrite(
        "",
        "server { listen unix:%%/none/http; listen unix:%%/neither/http; return 200 two; }",
    );
    let output = tell(&server.path(""), "reload");
    assert_eq!(code(&output), 1);
    let said = stderr(&output);
    assert!(
        said.starts_with("mayfly: [error] bind() to unix:"),
        "{said}"
    );
    assert!(said.contains("none/http failed"), "{said}");
    assert_eq!(server.target().get("/").await.text(), "one");

    // Mistakes that the command sees itself are reported as ever, and the server is not asked.
    server.rewrite("", "server { listen unix:%%/http; retrun 200; }");
    let output = tell(&server.path(""), "reload");
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("unknown directive \"retrun\""));
    assert!(!server.error_log().contains("retrun"));
}

#[tokio::test]
async fn logs_are_open_anew_when_that_is_said_to_be_done() {
    let server = start(ONE).await;
    std::fs::rename(server.path("error.log"), server.path("moved.log")).expect("a moved log");
    let output = tell(&server.path(""), "reopen");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(server.path("error.log").exists());
}

#[tokio::test]
async fn the_server_ends_when_it_is_told_to() {
    for word in ["quit", "stop"] {
        let mut server = start(ONE).await;
        let output = tell(&server.path(""), word);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert!(server.ended().await.success(), "{word}");
        assert!(!server.path("pid").exists(), "{word}");
        assert!(!server.error_log().contains("signal"), "{word}");
        // The server is gone, which is reported in nginx's words.
        let output = tell(&server.path(""), word);
        assert_eq!(code(&output), 1);
        assert!(stderr(&output).contains("mayfly: [error]"), "{word}");
    }
}

#[tokio::test]
async fn without_a_control_socket_a_signal_is_sent() {
    let mut server = RunningServer::start(program(), "control_socket off;", ONE).await;
    server.rewrite("control_socket off;", &ONE.replace("one", "two"));
    assert_eq!(code(&tell(&server.path(""), "reload")), 0);
    until("the reload", || server.error_log().contains("reloaded")).await;
    assert!(
        server
            .error_log()
            .contains("signal HUP received, reloading")
    );

    // The socket of the running server is another one: its configuration names another now.
    server.rewrite("control_socket %%/other;", ONE);
    assert_eq!(code(&tell(&server.path(""), "stop")), 0);
    assert!(server.ended().await.success());
    assert!(server.error_log().contains("signal TERM or INT received"));
}

#[tokio::test]
async fn a_server_of_an_earlier_release_is_sent_a_signal() {
    let mut server = RunningServer::start(program(), "control_socket off;", ONE).await;
    let earlier = UnixListener::bind(server.path("earlier")).expect("a socket");
    let answering = std::thread::spawn(move || {
        let (mut caller, _) = earlier.accept().expect("a caller");
        let mut asked = [0; 1024];
        let length = caller.read(&mut asked).expect("a request");
        let answer = r#"{"error":{"message":"there is nothing at this path"}}"#;
        let length_line = format!("Content-Length: {}", answer.len());
        let head = format!("HTTP/1.1 404 Not Found\r\n{length_line}\r\n\r\n");
        write!(caller, "{head}{answer}").expect("an answer");
        String::from_utf8_lossy(&asked[..length]).into_owned()
    });
    server.rewrite("control_socket %%/earlier;", ONE);
    assert_eq!(code(&tell(&server.path(""), "quit")), 0);
    assert!(server.ended().await.success());
    let asked = answering.join().expect("what was asked");
    assert!(asked.starts_with("POST /1/quit HTTP/1.1\r\n"), "{asked}");
}

#[tokio::test]
async fn a_control_socket_of_another_account_is_not_asked() {
    if !is_root() {
        eprintln!("skipped: only root can give a file away");
        return;
    }
    let mut server = RunningServer::start(program(), "control_socket off;", ONE).await;
    let path = server.path("theirs");
    let theirs = UnixListener::bind(&path).expect("a socket");
    theirs.set_nonblocking(true).expect("a socket");
    std::os::unix::fs::chown(&path, Some(65534), None).expect("another owner");
    server.rewrite("control_socket %%/theirs;", ONE);
    assert_eq!(code(&tell(&server.path(""), "quit")), 0);
    assert!(server.ended().await.success());
    assert!(theirs.accept().is_err(), "nobody has called");
}

#[tokio::test]
async fn a_server_in_two_processes_says_the_same() {
    let text = format!("user nobody;\n{SMALL}");
    let folder = folder(&[("test.conf", &text)]);
    let Some(mut started) = privileged(&folder) else {
        return;
    };
    let path = folder.path();
    until("the pid file", || has_pid_file(path)).await;
    let shown = path.to_str().expect("a plain path");
    let target = Target(path.join("http"));
    let rewrite = |text: &str| {
        std::fs::write(path.join("test.conf"), text.replace("%%", shown)).expect("a file");
    };

    rewrite(&text.replace("200 one", "200 two"));
    let output = tell(path, "reload");
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
    assert_eq!(target.get("/").await.text(), "two");

    rewrite(&text.replace("%%/http", "%%/none/http"));
    let output = tell(path, "reload");
    assert_eq!(code(&output), 1);
    assert!(
        stderr(&output).starts_with("mayfly: [error] bind() to unix:"),
        "{}",
        stderr(&output)
    );
    assert_eq!(target.get("/").await.text(), "two");

    rewrite(&text);
    for word in ["reload", "reopen", "quit"] {
        let output = tell(path, word);
        assert_eq!(code(&output), 0, "{word}: {}", stderr(&output));
    }
    let mut status = None;
    until("the end", || {
        status = started.0.try_wait().expect("a child");
        status.is_some()
    })
    .await;
    assert!(status.is_some_and(|status| status.success()));
    let log = std::fs::read_to_string(path.join("error.log")).expect("the log");
    assert!(log.contains("told by uid=0"), "{log}");
    assert!(!log.contains("signal"), "{log}");
}
