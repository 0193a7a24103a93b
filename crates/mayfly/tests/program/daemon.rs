//! `daemon on`, `-s`, and a start without a terminal.

use std::fs::read_link;
use std::path::Path;
use std::process::{Command, Stdio};

use testkit::client::Target;
use testkit::process::{KilledOnDrop, descendants, has_pid_file, is_alive};
use testkit::wait::{TIMEOUT, until};

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
    until("the pid file", || has_pid_file(folder.path())).await;
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

/// `mayfly -c x.conf 2>&1 | cat`, `ssh HOST mayfly` and scripts of packages wait for the end of the
/// streams that they gave it. Started by root, the server has a process with another account.
#[tokio::test]
async fn a_background_start_keeps_no_stream_of_its_caller() {
    let folder = folder(&[("test.conf", &SMALL.replace("daemon off;", ""))]);
    let place = folder.path().to_owned();
    let started = Command::new(program())
        .args(["-p", place.to_str().expect("a path"), "-c", "test.conf"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    let read = tokio::task::spawn_blocking(move || started.wait_with_output());
    let ended = tokio::time::timeout(TIMEOUT, read).await;
    let server = pid_of(&place).await;
    let processes = [vec![server], descendants(server)].concat();
    let streams = |pid: &u32| [0, 1, 2].map(|fd| read_link(format!("/proc/{pid}/fd/{fd}")));
    let shown: Vec<_> = processes.iter().map(streams).collect();
    run(&place, &["-c", "test.conf", "-s", "stop"]);
    let output = ended
        .expect("the streams end")
        .expect("a thread")
        .expect("what it said");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    for links in shown {
        for link in links {
            assert_eq!(link.expect("a stream"), Path::new("/dev/null"));
        }
    }
    until("the end", || !is_alive(server)).await;
}

/// A shell may have files open that only root may read.
#[tokio::test]
async fn descriptors_of_the_caller_reach_no_process_of_the_server() {
    let php = "php_pool site { workers 1; }\nhttp {";
    let conf = SMALL.replacen("http {", php, 1);
    let conf = conf.replacen(
        "location /",
        "location /php { fastcgi_pass php:site; } location /",
        1,
    );
    for daemon in ["", "daemon off;"] {
        let text = conf.replacen("daemon off;", daemon, 1);
        let folder = folder(&[("test.conf", &text), ("secret", "secret")]);
        let place = folder.path().to_owned();
        let shown = place.display();
        let command = format!(
            "exec 9<{shown}/secret 200<{shown}/secret 7>&2; exec {} -p {shown} -c test.conf",
            program()
        );
        let mut shell = Command::new("bash");
        shell
            .args(["-c", &command])
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        let _started = KilledOnDrop(shell.spawn().expect("a shell"));
        let server = pid_of(&place).await;
        let processes = [vec![server], descendants(server)].concat();
        let held: Vec<_> = processes
            .iter()
            .filter(|pid| holds(**pid, &place.join("secret")))
            .collect();
        let of_caller: Vec<_> = processes
            .iter()
            .filter(|pid| read_link(format!("/proc/{pid}/fd/200")).is_ok())
            .collect();
        run(&place, &["-c", "test.conf", "-s", "stop"]);
        until("the end", || !is_alive(server)).await;
        assert!(processes.len() > 2, "PHP is among them: {processes:?}");
        assert!(held.is_empty(), "{daemon} {held:?} of {processes:?}");
        assert!(
            of_caller.is_empty(),
            "{daemon} {of_caller:?} of {processes:?}"
        );
    }
}

/// The server that has written its pid file.
async fn pid_of(folder: &Path) -> u32 {
    let mut pid = None;
    until("the pid file", || {
        let text = std::fs::read_to_string(folder.join("pid"));
        pid = text.ok().and_then(|text| text.trim().parse().ok());
        pid.is_some()
    })
    .await;
    pid.expect("a number")
}

fn holds(pid: u32, file: &Path) -> bool {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"));
    let mut open = open.into_iter().flatten().flatten();
    open.any(|fd| read_link(fd.path()).is_ok_and(|link| link == file))
}
