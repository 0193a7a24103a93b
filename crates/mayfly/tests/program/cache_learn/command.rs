//! `mayfly run`: a write of a command ends kept pages before the command learns that it is written.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use socket2::{Domain, SockAddr, Socket, Type};
use testkit::process::{Signal, descendants, is_root, send_signal};
use testkit::running::RunningServer;
use testkit::wait::until;
use tokio::sync::{Mutex, MutexGuard};

use super::database_site::{DatabaseSite, until_kept};
use super::upgrade::{begin, configuration};
use super::{explained, learned};
use crate::commands::ended;
use crate::program;
use control::explain::LearnedState;

/// One that is not heard concerns all servers of the machine, and so the other tests here.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// `mayfly run -- COMMAND`
fn run(command: &[&str]) -> Command {
    let mut run = Command::new(program());
    run.args(["run", "--"]).args(command);
    run.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    run
}

async fn output(mut command: Command) -> Output {
    ended(command.spawn().expect("a program")).await
}

fn is_one_of_php(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("php"))
}

/// A server beside which no other test here runs.
async fn begin_alone() -> Option<(DatabaseSite, MutexGuard<'static, ()>, RunningServer)> {
    let site = DatabaseSite::make()?;
    let alone = ONE_AT_A_TIME.lock().await;
    let (main, http) = configuration(&site, "1ms");
    // A transaction that is open alters nothing that a replay reads.
    let http = http.replace("cache_learn on;", "cache_learn on; cache_learn_replay off;");
    let server = RunningServer::start(program(), &main, &http).await;
    Some((site, alone, server))
}

async fn is_shown(server: &RunningServer, site: &DatabaseSite) {
    let reply = server.target().get("/index.php").await;
    assert_eq!(reply.text(), site.version(), "{}", server.error_log());
}

#[tokio::test]
async fn the_next_request_shows_what_a_command_has_written() {
    let Some((site, _alone, server)) = begin_alone().await else {
        return;
    };
    let control = server.path("pid.control");
    let script = site.path().join("write.php").display().to_string();
    let by_a_shell = format!("php {script} && php {script}");
    for command in [&["php", &script][..], &["sh", "-c", &by_a_shell]] {
        until_kept(&server.target(), &control, "/index.php").await;
        let written = output(run(command)).await;
        let said = String::from_utf8_lossy(&written.stderr);
        assert!(written.status.success(), "{said}");
        assert!(written.stdout.ends_with(b"written"), "{written:?}");
        is_shown(&server, &site).await;
    }
    // The server sees of other programs only that tables were written, and later.
    until_kept(&server.target(), &control, "/index.php").await;
    assert!(output(run(&["php", &script])).await.status.success());
    let part = explained(&server, "/index.php").await.learned;
    let part = part.expect("a part");
    assert_eq!(part.state, LearnedState::Suspect);
    assert!(part.detail.contains("UPDATE post SET"), "{part:?}");
}

/// Shows that the test above can fail.
#[tokio::test]
async fn of_a_command_without_run_only_its_table_is_found_out_later() {
    let Some((site, _alone, server)) = begin_alone().await else {
        return;
    };
    until_kept(&server.target(), &server.path("pid.control"), "/index.php").await;
    let script = site.path().join("write.php");
    let mut command = Command::new("php");
    command.arg(script).stdout(Stdio::piped());
    assert!(output(command).await.status.success());
    let part = learned(&server, "/index.php", LearnedState::Suspect).await;
    assert!(part.detail.contains("a write to blog.post"), "{part:?}");
    is_shown(&server, &site).await;
}

#[tokio::test]
async fn a_transaction_whose_command_was_killed_is_in_no_page() {
    let Some((site, _alone, server)) = begin_alone().await else {
        return;
    };
    let (target, control) = (server.target(), server.path("pid.control"));
    until_kept(&target, &control, "/index.php").await;
    let before = site.version();
    let code = format!(
        "$_GET['way'] = 'transaction'; require '{}/write.php';",
        site.path().display()
    );
    let mut command = run(&["php", "-r", &code]).spawn().expect("a program");
    until("a transaction", || site.is_raised("held")).await;
    // It was announced, and is not written yet.
    let part = explained(&server, "/index.php").await.learned;
    let part = part.expect("a part");
    assert!(part.detail.contains("UPDATE post SET"), "{part:?}");
    let mut processes = descendants(command.id()).into_iter();
    let php = processes.find(|it| is_one_of_php(*it)).expect("PHP");
    send_signal(php, Signal::KILL);
    let status = command.wait().expect("an end");
    assert_eq!(status.code(), Some(137));
    until_kept(&target, &control, "/index.php").await;
    is_shown(&server, &site).await;
    assert_eq!(site.version(), before, "the database takes it back");
}

#[tokio::test]
async fn a_write_whose_command_was_killed_stays_in_doubt_until_the_database_has_ended_it() {
    let Some((site, _alone, server)) = begin_alone().await else {
        return;
    };
    let (target, control) = (server.target(), server.path("pid.control"));
    let script = site.path().join("write.php").display().to_string();
    until_kept(&target, &control, "/index.php").await;
    begin(&target, "/lock.php");
    until("a lock", || site.is_raised("held")).await;
    let mut command = run(&["php", &script]).spawn().expect("a program");
    let listed = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'UPDATE%'";
    until("an UPDATE", || site.database.run(listed).trim() == "1").await;
    let php = descendants(command.id())
        .into_iter()
        .find(|it| is_one_of_php(*it));
    send_signal(command.id(), Signal::KILL);
    send_signal(php.expect("PHP"), Signal::KILL);
    command.wait().expect("an end");
    let before = site.version();
    site.raise("go");
    until("a write", || site.version() != before).await;
    is_shown(&server, &site).await;
    until_kept(&target, &control, "/index.php").await;
    is_shown(&server, &site).await;
}

#[tokio::test]
async fn a_process_without_the_library_is_named_and_no_page_is_kept_beside_it() {
    let Some((site, _alone, server)) = begin_alone().await else {
        return;
    };
    let (target, control) = (server.target(), server.path("pid.control"));
    until_kept(&target, &control, "/index.php").await;
    let flags = site.path().join("flags").display().to_string();
    // It ends with the test as well.
    let waits = format!("while [ -d {flags} ] && [ ! -e {flags}/go ]; do sleep 0.01; done");
    let mut command = run(&["env", "-u", "LD_PRELOAD", "sh", "-c", &waits]);
    let mut command = command.spawn().expect("a program");
    let messages = BufReader::new(command.stderr.take().expect("its messages"));
    // Servers of other tests may end meanwhile, which is reported as well.
    let is_named = |line: &String| line.contains("(sh) has not loaded the library");
    let named = tokio::task::spawn_blocking(move || {
        messages
            .lines()
            .map_while(Result::ok)
            .any(|it| is_named(&it))
    });
    assert!(named.await.expect("a thread"));
    // The doubt is reported before the message.
    learned(&server, "/index.php", LearnedState::Suspect).await;
    for _ in 0..20 {
        target.get("/index.php").await;
        let part = explained(&server, "/index.php").await.learned;
        let told = part.expect("a part").sentence;
        assert!(!told.contains("it is kept for"), "{told}");
    }
    site.raise("go");
    assert!(ended(command).await.status.success());
    until_kept(&target, &control, "/index.php").await;
}

fn listen(path: &Path) -> Socket {
    let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None).expect("a socket");
    let address = SockAddr::unix(path).expect("an address");
    socket.bind(&address).expect("a path");
    socket.listen(1).expect("a socket that listens");
    socket
}

#[tokio::test]
async fn a_server_of_another_version_is_named_and_the_command_runs() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let folder = tempfile::tempdir().expect("a folder");
    // The system lists sockets by paths, and each account may choose one that is no text.
    let _odd = listen(&folder.path().join(OsStr::from_bytes(b"\xff")));
    let name = format!("mayfly-php-other-{}-0", std::process::id());
    let of_pool = folder.path().join(name);
    std::fs::create_dir(&of_pool).expect("a folder");
    let socket = listen(&of_pool.join("learn.sock"));
    let server = std::thread::spawn(move || drop(socket.accept().expect("a connection")));
    let output = output(run(&["sh", "-c", "echo $MAYFLY_RUN; exit 7"])).await;
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = format!(
        "mayfly: run: the server with process {} is another version of Mayfly",
        std::process::id()
    );
    // Servers of other tests may be about to end, which is reported as well.
    assert!(said.lines().any(|it| it.starts_with(&expected)), "{said}");
    server.join().expect("a server that was asked");
    assert_eq!(output.status.code(), Some(7));
    // Its processes do not ask it again.
    let told = String::from_utf8_lossy(&output.stdout);
    let is_told = told.contains(&*folder.path().to_string_lossy());
    assert!(!is_told, "{told}");
}

#[tokio::test]
async fn where_no_server_learns_a_line_says_so_and_the_command_runs() {
    if !is_root() {
        eprintln!("skipped: only root can start a program of an account without a pool");
        return;
    }
    const WITHOUT_POOL: u32 = 54_321;
    let mut command = Command::new("/bin/sh");
    // From a place that this account may read.
    let copy = tempfile::tempdir().expect("a folder");
    testkit::serving::open_to_all(copy.path());
    let program_copy = copy.path().join("mayfly");
    std::fs::copy(program(), &program_copy).expect("a program");
    let script = "exec \"$0\" run -- sh -c 'echo \"$LD_PRELOAD\"; exit 7'";
    command
        .args(["-c", script])
        .arg(&program_copy)
        .current_dir("/")
        .env_remove("LD_PRELOAD")
        .uid(WITHOUT_POOL)
        .gid(WITHOUT_POOL)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let output = output(command).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.starts_with("mayfly: run: no running server learns pages of a pool of this account")
            && said.lines().count() == 1,
        "{said}"
    );
    assert_eq!(
        (output.status.code(), &*output.stdout),
        (Some(7), &b"\n"[..])
    );
}

#[tokio::test]
async fn a_command_runs_as_it_does_without_mayfly() {
    let status = |command: &'static [&'static str]| async move {
        let output = output(run(command)).await;
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    assert_eq!(status(&["sh", "-c", "exit 7"]).await.0, Some(7));
    assert_eq!(status(&["sh", "-c", "kill -9 $$"]).await.0, Some(137));
    let (code, said) = status(&["/no/such program"]).await;
    assert!(
        code == Some(127) && said.contains("/no/such program"),
        "{said}"
    );
    assert_eq!(status(&["/dev/null"]).await.0, Some(126));

    let mut command = run(&[
        "sh",
        "-c",
        "trap 'exit 9' TERM; cat; while :; do sleep 0.01; done",
    ]);
    let mut command = command.spawn().expect("a program");
    let mut input = command.stdin.take().expect("its input");
    input.write_all(b"as it is").expect("a program that reads");
    drop(input);
    let mut text = [0; 8];
    let mut answers = command.stdout.take().expect("its output");
    let read = tokio::task::spawn_blocking(move || answers.read_exact(&mut text).map(|()| text));
    assert_eq!(&read.await.expect("a thread").expect("text"), b"as it is");
    send_signal(command.id(), Signal::TERM);
    let end = ended(command).await.status;
    assert_eq!((end.code(), end.signal()), (Some(9), None));
}
