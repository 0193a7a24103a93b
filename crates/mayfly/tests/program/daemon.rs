//! `daemon on`, `-s`, and a start without a terminal.

use std::process::{Command, Stdio};

use testkit::client::Target;
use testkit::process::KilledOnDrop;
use testkit::wait::until;

use crate::command_line::{SMALL, code, folder, run, stderr};
use crate::program;

/// Starts with a closed stderr, as a part of nginx's public suite does.
#[tokio::test]
async fn closed_stderr_does_not_matter() {
    let folder = folder(&[("test.conf", &format!("user root;\n{SMALL}"))]);
    let command = format!(
        "exec {} -p {} -c test.conf -e error.log 2>&-",
        program(),
        folder.path().display()
    );
    let child = Command::new("sh")
        .args(["-c", &command])
        .stdin(Stdio::null())
        .spawn()
        .expect("a shell");
    let _started = KilledOnDrop(child);
    until("the pid file", || folder.path().join("pid").exists()).await;
    assert_eq!(
        Target(folder.path().join("http")).get("/").await.text(),
        "one"
    );
}

#[tokio::test]
async fn daemon_leaves_when_it_listens_and_is_stopped_by_s() {
    let text = format!("user root;\n{}", SMALL.replace("daemon off;", ""));
    let folder = folder(&[("test.conf", &text)]);
    // Files, not pipes: a daemon that kept them open would be waited for.
    let output = run(folder.path(), &["-c", "test.conf"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let target = Target(folder.path().join("http"));
    assert_eq!(target.get("/").await.text(), "one");
    for (signal, word) in [("reload", "reloaded"), ("reopen", "reopening logs")] {
        assert_eq!(
            code(&run(folder.path(), &["-c", "test.conf", "-s", signal])),
            0,
            "{signal}"
        );
        let log = folder.path().join("error.log");
        until(signal, || {
            std::fs::read_to_string(&log).is_ok_and(|log| log.contains(word))
        })
        .await;
    }
    assert_eq!(
        code(&run(folder.path(), &["-c", "test.conf", "-s", "quit"])),
        0
    );
    until("the end", || !folder.path().join("pid").exists()).await;
}

#[test]
fn daemon_that_cannot_start_says_so_and_fails() {
    let text = SMALL
        .replace("daemon off;", "")
        .replace("%%/http", "%%/none/http");
    let folder = folder(&[("test.conf", &text)]);
    let output = run(folder.path(), &["-c", "test.conf"]);
    assert_eq!(code(&output), 1);
    assert!(
        stderr(&output).contains("bind() to unix:"),
        "{}",
        stderr(&output)
    );
}
