//! Started by root: root binds and opens, an account without rights serves.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use testkit::client::Target;
use testkit::process::{KilledOnDrop, Signal, has_pid_file, is_alive, is_root, send_signal, uid};
use testkit::wait::until;

use crate::command_line::{SMALL, folder};
use crate::program;

/// Started by root.
pub fn privileged(folder: &TempDir) -> Option<KilledOnDrop> {
    if !is_root() {
        eprintln!("skipped: only root can give up root's rights");
        return None;
    }
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("a mode");
    let mut command = Command::new(program());
    command
        .arg("-p")
        .arg(folder.path())
        .args(["-c", "test.conf", "-e", "error.log"]);
    let child = command
        .stdin(Stdio::null())
        .spawn()
        .expect("the program starts");
    Some(KilledOnDrop(child))
}

/// Returns the process that serves; the page is `$pid`.
async fn serving_process(target: &Target) -> u32 {
    target.get("/").await.text().parse().expect("a number")
}

/// The pages on disk belong to the account that serves, which is a number where none is made for it.
#[tokio::test]
async fn a_program_that_takes_the_place_of_another_serves_as_the_same_account() {
    let text = SMALL.replace("return 200 one", "return 200 $pid");
    let folder = folder(&[("test.conf", &text)]);
    let Some(started) = privileged(&folder) else {
        return;
    };
    until("the pid file", || has_pid_file(folder.path())).await;
    let target = Target(folder.path().join("http"));
    let account = uid(serving_process(&target).await);
    assert!(account.is_some_and(|number| number != 0), "{account:?}");
    let upgraded = Command::new(program())
        .args(["upgrade", "--socket"])
        .arg(folder.path().join("pid.control"))
        .output()
        .expect("the program");
    assert!(upgraded.status.success(), "{upgraded:?}");
    let old = started.0.id();
    drop(started);
    let new = std::fs::read_to_string(folder.path().join("pid")).expect("a pid file");
    let new = new.trim().parse().expect("a number");
    assert_ne!(new, old);
    let serves_as = uid(serving_process(&target).await);
    send_signal(new, Signal::QUIT);
    until("the end", || !is_alive(new)).await;
    assert_eq!(serves_as, account);
}

#[tokio::test]
async fn root_binds_and_somebody_else_serves() {
    let text = format!(
        "user nobody;\n{}",
        SMALL.replace("return 200 one", "return 200 $pid")
    );
    let folder = folder(&[("test.conf", &text)]);
    let Some(mut started) = privileged(&folder) else {
        return;
    };
    until("the pid file", || has_pid_file(folder.path())).await;
    let parent = started.0.id();
    let target = Target(folder.path().join("http"));
    let worker = serving_process(&target).await;
    assert_ne!(worker, parent);
    assert_eq!(uid(parent), Some(0));
    let nobody = Command::new("id").args(["-u", "nobody"]).output();
    let nobody = String::from_utf8(nobody.expect("a program").stdout).expect("a number");
    assert_eq!(uid(worker), nobody.trim().parse().ok());
    // The log was opened by root; the account `nobody` could not have.
    let log = || std::fs::read_to_string(folder.path().join("error.log")).unwrap_or_default();

    let changed = text.replace("return 200 $pid", "return 200 again");
    let place = folder.path().to_str().expect("a plain path");
    std::fs::write(
        folder.path().join("test.conf"),
        changed.replace("%%", place),
    )
    .expect("a file");
    send_signal(parent, Signal::HUP);
    until("the reload", || log().contains("reloaded")).await;
    assert_eq!(target.get("/").await.text(), "again");

    send_signal(worker, Signal::KILL);
    until("another worker", || log().contains("starting another")).await;
    assert_eq!(
        target.get("/").await.text(),
        "again",
        "connections wait in the socket"
    );

    send_signal(parent, Signal::QUIT);
    let mut status = None;
    until("the end", || {
        status = started.0.try_wait().expect("a child");
        status.is_some()
    })
    .await;
    assert!(status.is_some_and(|status| status.success()));
    assert!(!folder.path().join("http").exists());
}

#[tokio::test]
async fn worker_ends_with_its_parent() {
    let text = format!(
        "user nobody;\n{}",
        SMALL.replace("return 200 one", "return 200 $pid")
    );
    let folder = folder(&[("test.conf", &text)]);
    let Some(started) = privileged(&folder) else {
        return;
    };
    until("the pid file", || has_pid_file(folder.path())).await;
    let worker = serving_process(&Target(folder.path().join("http"))).await;
    assert!(is_alive(worker));
    drop(started);
    until("the worker's end", || !is_alive(worker)).await;
}
