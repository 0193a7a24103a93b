//! What a process may spoil: its own pool, and those of its account.

use std::process::Command;

use learn_record::{Doubt, DoubtReason, Hello, Message};
use learning::{PageReport, Reason};

use crate::peers::{Pool, wait, why, write, write_to, written};

/// `nobody`
const ANOTHER: u32 = 65_534;

fn is_fresh(report: &PageReport) -> bool {
    matches!(report, PageReport::Learned { suspect: None, .. })
}

/// Two pools of the account that runs this test, and one of another; `None` where that cannot be.
fn begin() -> Option<[Pool; 3]> {
    let own = rustix::process::geteuid();
    if !own.is_root() {
        eprintln!("skipped: only root can give a socket to another account");
        return None;
    }
    let accounts = [own.as_raw(), own.as_raw(), ANOTHER];
    Some(Pool::begin_all(["own", "same", "other"], accounts))
}

#[test]
fn a_write_counts_for_the_pools_of_its_account_and_another_address_may_be_the_same_server() {
    let Some([own, same, other]) = begin() else {
        return;
    };
    let worker = own.worker();
    let counted = || [&own, &same, &other].map(|it| it.pool.counts().writes);
    for message in [write(1), written(1)] {
        worker.say(&message);
        assert_eq!(worker.answer(), Some(1));
    }
    assert_eq!(counted(), [1, 1, 0]);
    assert!(is_fresh(&same.make(&same.worker(), |_| {})));
    worker.say(&write_to(2, b"127.0.0.1:3306"));
    assert_eq!(worker.answer(), Some(2));
    for (pool, is_reached) in [(&own, true), (&same, true), (&other, false)] {
        let report = pool.make(&pool.worker(), |_| {});
        match is_reached {
            true => assert_eq!(why(report), Reason::SeveralServers),
            false => assert!(is_fresh(&report)),
        }
    }
}

#[test]
fn a_hostile_worker_spoils_the_pools_of_its_account_alone() {
    let Some([own, same, other]) = begin() else {
        return;
    };
    for pool in [&own, &same, &other] {
        assert!(is_fresh(&pool.make(&pool.worker(), |_| {})));
    }
    let worker = own.worker();
    worker.0.send(b"nonsense").unwrap();
    assert_eq!(worker.answer(), None);
    wait(|| (same.pool.counts().suspect == 1).then_some(()));
    assert_eq!(other.pool.counts().suspect, 0);
    // It is alive, and what it writes is not heard.
    assert_eq!(why(same.make(&same.worker(), |_| {})), Reason::Incomplete);
    assert!(is_fresh(&other.make(&other.worker(), |_| {})));
}

#[test]
fn a_process_of_another_account_is_not_heard_and_ends_no_page() {
    let Some([own, ..]) = begin() else {
        return;
    };
    assert!(is_fresh(&own.make(&own.worker(), |_| {})));
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    for path in [own.folder.path(), &own.folder.path().join("learn.sock")] {
        std::fs::set_permissions(path, std::fs::Permissions::clone(&everybody)).unwrap();
    }
    let hello = Message::Hello(Hello {
        version: learn_record::VERSION,
        pid: 1,
        is_again: true,
        is_command: false,
        wants_acknowledgement: true,
        unseen_extensions: Vec::new(),
    });
    let mut packet = Vec::new();
    hello.encode(&mut packet);
    let packet: String = packet.iter().map(|byte| format!("{byte:02x}")).collect();
    let code = "import socket, sys\nit = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n\
                it.connect(sys.argv[1])\n\
                try: it.send(bytes.fromhex(sys.argv[2])); print(len(it.recv(100)))\n\
                except OSError: print(0)";
    let mut python = Command::new("python3");
    python
        .args(["-c", code])
        .arg(own.folder.path().join("learn.sock"));
    std::os::unix::process::CommandExt::uid(&mut python, ANOTHER);
    let output = python.arg(packet).output().expect("python3");
    assert_eq!(output.stdout, b"0\n", "{output:?}");
    wait(|| (own.pool.counts().refused == 1).then_some(()));
    assert_eq!(own.pool.counts().suspect, 0);
    assert!(is_fresh(&own.make(&own.worker(), |_| {})));
}

#[test]
fn a_process_that_does_not_see_all_any_more_ends_learning() {
    let pool = Pool::begin();
    let worker = pool.worker();
    assert!(is_fresh(&pool.make(&worker, |_| {})));
    worker.say(&Message::Doubt(Doubt {
        reason: DoubtReason::Missed,
        detail: b"",
    }));
    assert_eq!(worker.answer(), None);
    wait(|| (pool.pool.counts().suspect == 1).then_some(()));
    assert_eq!(why(pool.make(&pool.worker(), |_| {})), Reason::Incomplete);
}
