//! The program as administrators meet it: flags, exit codes, signals, reloads,
//! and what it leaves behind. What must happen first is waited for by looking,
//! with a bound; nothing sleeps and hopes.

mod messages;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use testkit::client::{Client, Target};
use testkit::fake_php::{FakePhp, Script};
use testkit::running::Running;
use tokio::sync::Semaphore;

use crate::{is_root, program};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Looks until it is so.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Runs the program to its end in `folder` as the prefix.
fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(program())
        .arg("-p")
        .arg(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

fn words(arguments: &[&str]) -> Output {
    Command::new(program())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("an exit code")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A folder with these files; `%%` in them stands for the folder.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::Builder::new()
        .prefix("mayfly-test")
        .tempdir()
        .expect("a folder");
    let place = folder.path().to_str().expect("a plain path");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text.replace("%%", place)).expect("a file");
    }
    folder
}

/// A child of the test's, stopped when dropped.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn signal(pid: &str, name: &str) {
    let done = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid)
        .status();
    assert!(
        done.is_ok_and(|status| status.success()),
        "kill -{name} {pid}"
    );
}

const SMALL: &str = "daemon off;\npid %%/pid;\nerror_log %%/error.log notice;\nevents {}\n\
    http { access_log off; server { listen unix:%%/http; location / { return 200 one; } } }\n";

#[test]
fn test_of_a_file_with_five_mistakes_names_all_five() {
    let folder = folder(&[(
        "test.conf",
        "worker_processess 2;\nevents {}\nhttp {\n    keepalive_timeout soon;\n    server {\n\
         \x20       listen 127.0.0.1:99999;\n        root a b;\n        fastcgi_cache nowhere;\n    }\n}\n",
    )]);
    let output = run(folder.path(), &["-t", "-c", "test.conf"]);
    let said = stderr(&output);
    assert_eq!(code(&output), 1, "{said}");
    let mistakes = [
        ("worker_processess", 1),
        ("soon", 4),
        ("99999", 6),
        ("root", 7),
        ("nowhere", 8),
    ];
    for (mistake, line) in mistakes {
        assert!(said.contains(mistake), "{mistake} in:\n{said}");
        assert!(
            said.contains(&format!("test.conf:{line}:")),
            "line {line} in:\n{said}"
        );
    }
    assert_eq!(said.matches("error: ").count(), 5, "{said}");
    assert!(said.contains("^^^^"), "underlined:\n{said}");
    assert!(
        said.contains("did you mean \"worker_processes\"?"),
        "{said}"
    );
    assert!(said.ends_with("test.conf test failed\n"), "{said}");
}

#[test]
fn test_of_a_good_file_says_so_and_q_says_nothing() {
    let folder = folder(&[("test.conf", SMALL)]);
    let output = run(folder.path(), &["-t", "-c", "test.conf"]);
    let said = stderr(&output);
    assert_eq!(code(&output), 0, "{said}");
    assert!(said.contains("/test.conf syntax is ok\n"), "{said}");
    assert!(said.ends_with("/test.conf test is successful\n"), "{said}");
    let output = run(folder.path(), &["-tqc", "test.conf"]);
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
}

#[test]
fn test_fails_when_a_log_cannot_be_opened() {
    let folder = folder(&[(
        "test.conf",
        &SMALL.replace("%%/error.log", "%%/test.conf/error.log"),
    )]);
    let output = run(folder.path(), &["-t", "-c", "test.conf"]);
    let said = stderr(&output);
    assert_eq!(code(&output), 1, "{said}");
    assert!(
        said.contains("test.conf/error.log\" failed (20: Not a directory)"),
        "{said}"
    );
    assert!(
        said.contains("syntax is ok") && said.ends_with("test failed\n"),
        "{said}"
    );
}

#[test]
fn dump_shows_each_file_once() {
    let folder = folder(&[
        (
            "test.conf",
            "events {}\npid %%/pid;\nerror_log %%/error.log;\nhttp { access_log off; include part; server { include part; } }\n",
        ),
        ("part", "root /x;\n"),
    ]);
    let output = run(folder.path(), &["-T", "-c", "test.conf"]);
    let text = stdout(&output);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(text.matches("# configuration file ").count(), 2, "{text}");
    let part = format!(
        "# configuration file {}/part:\nroot /x;\n\n",
        folder.path().display()
    );
    assert!(text.ends_with(&part), "{text}");
}

#[test]
fn exit_codes_are_0_1_and_2() {
    let folder = folder(&[("good", SMALL), ("bad", "evnts {}\n")]);
    let at = |name: &str| {
        folder
            .path()
            .join(name)
            .to_str()
            .expect("a plain path")
            .to_owned()
    };
    let cases: &[(&[&str], i32)] = &[
        (&["-v"], 0),
        (&["-V"], 0),
        (&["-h"], 0),
        (&["help"], 0),
        (&["version"], 0),
        (&["check", &at("good")], 0),
        (&["check", "--explain", &at("good")], 0),
        (&["-t", "-c", &at("good")], 0),
        (&["check", &at("bad")], 1),
        (&["-c", &at("bad")], 1),
        (&["-c", &at("none")], 1),
        (&["-z"], 1),
        (&["nonsense"], 2),
        (&["-s", "quit", "-c", &at("good")], 1),
        (&["serve", &at("none")], 1),
        (&["serve", "http://127.0.0.1:1/path"], 1),
        (&["serve", "https://127.0.0.1:1"], 1),
        (&["serve", "http://127.0.0.1:1", "--workers", "2"], 1),
        (&["serve", "http://127.0.0.1:1", "--print-config"], 0),
        (&["serve"], 2),
        (&["serve", "--ttl", "soon", "/"], 2),
        (&["check", "--bogus"], 2),
    ];
    for (arguments, expected) in cases {
        let output = words(arguments);
        assert_eq!(
            code(&output),
            *expected,
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn unknown_directives_are_named_with_the_nearest_one() {
    let folder = folder(&[(
        "test.conf",
        "events {}\nhttp { server { loction / { } } }\n",
    )]);
    let output = run(folder.path(), &["-c", "test.conf", "-e", "early.log"]);
    let said = stderr(&output);
    assert_eq!(code(&output), 1);
    assert!(said.contains("unknown directive \"loction\""), "{said}");
    assert!(said.contains("did you mean \"location\"?"), "{said}");
    let log = std::fs::read_to_string(folder.path().join("early.log")).expect("a log");
    assert!(
        log.contains("[emerg]") && log.contains("unknown directive \"loction\" in"),
        "{log}"
    );
}

#[test]
fn build_text_is_what_the_public_suite_reads() {
    let said = stderr(&words(&["-V"]));
    assert!(
        said.starts_with("nginx version: nginx/1.31.5 (mayfly "),
        "{said}"
    );
    assert!(said.contains("--without-http_grpc_module"), "{said}");
    assert!(!said.contains("--without-http_fastcgi_module"), "{said}");
}

#[test]
fn explanation_says_what_becomes_of_each_directive() {
    let folder = folder(&[("test.conf", "events { use epoll; }\n")]);
    let path = folder.path().join("test.conf");
    let output = words(&["check", "--explain", path.to_str().expect("a plain path")]);
    let text = stdout(&output);
    assert!(
        text.lines()
            .any(|line| line.contains("use epoll") && line.contains("ignored")),
        "{text}"
    );
}

#[tokio::test]
async fn every_socket_listens_when_the_pid_file_is_there() {
    let port = free_port();
    let http = format!(
        "server {{ listen unix:%%/http; listen unix:%%/other; listen 127.0.0.1:{port}; return 200 $server_port; }}"
    );
    let server = Running::start(program(), "", &http).await;
    // No second try: the first connection must do.
    assert_eq!(server.target().get("/").await.status, 200);
    assert_eq!(Target(server.path("other")).get("/").await.status, 200);
    std::net::TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let text = std::fs::read_to_string(server.path("pid")).expect("a pid file");
    assert_eq!(text, format!("{}\n", server.pid()));
    let mode = std::fs::metadata(server.path("http"))
        .expect("a socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o666);
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

#[tokio::test]
async fn a_wildcard_and_an_address_of_its_port_share_a_socket_not_their_servers() {
    use std::io::{Read, Write};
    for (wildcard, address) in [("0.0.0.0", "127.0.0.1"), ("[::]", "[::1]")] {
        let port = free_port();
        let http = format!(
            "server {{ listen {address}:{port}; return 200 address; }}\n\
             server {{ listen {wildcard}:{port}; return 200 wildcard; }}"
        );
        let _server = Running::start(program(), "", &http).await;
        for (to, wanted) in [(address, "address"), ("127.0.0.2", "wildcard")] {
            if wanted == "wildcard" && wildcard == "[::]" {
                continue; // There is no second loopback address.
            }
            let mut stream =
                std::net::TcpStream::connect(format!("{to}:{port}")).expect("it listens");
            stream
                .write_all(b"GET / HTTP/1.0\r\n\r\n")
                .expect("it reads");
            let mut reply = String::new();
            stream.read_to_string(&mut reply).expect("it answers");
            assert!(reply.ends_with(wanted), "{to}: {reply}");
        }
    }
}

#[tokio::test]
async fn bad_reload_leaves_the_running_server_untouched() {
    let http = "server { listen unix:%%/http; return 200 one; }";
    let server = Running::start(program(), "", http).await;
    server.rewrite(
        "",
        "server { listen unix:%%/http; return 200 two; retrun 200; }",
    );
    server.signal("HUP");
    until("the complaint", || {
        server.error_log().contains("unknown directive \"retrun\"")
    })
    .await;
    assert_eq!(server.target().get("/").await.text(), "one");
    // What cannot be bound is no better.
    server.rewrite("", "server { listen unix:%%/none/http; return 200 three; }");
    server.signal("HUP");
    until("the complaint", || {
        server.error_log().contains("bind() to unix:")
    })
    .await;
    assert_eq!(server.target().get("/").await.text(), "one");
}

#[tokio::test]
async fn reload_takes_new_sockets_and_lets_old_ones_go() {
    let server = Running::start(
        program(),
        "",
        "server { listen unix:%%/http; listen unix:%%/old; return 200 one; }",
    )
    .await;
    server.rewrite(
        "",
        "server { listen unix:%%/http; listen unix:%%/new; return 200 two; }",
    );
    server.signal("HUP");
    until("the reload", || server.error_log().contains("reloaded")).await;
    assert_eq!(server.target().get("/").await.text(), "two");
    assert_eq!(Target(server.path("new")).get("/").await.text(), "two");
    assert!(!server.path("old").exists(), "its file is removed");
}

#[tokio::test]
async fn reload_keeps_what_is_stored() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let php = FakePhp::tcp(move |_| {
        let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
        Script::page("Content-Type: text/plain\r\n", format!("run {run}"))
    })
    .await;
    let http = |text: &str| {
        format!(
            "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n\
             server {{ listen unix:%%/http; location /text {{ return 200 {text}; }}\n\
             location / {{ fastcgi_pass {}; fastcgi_cache zone; fastcgi_cache_key $request_uri;\n\
             fastcgi_cache_valid 200 1h; }} }}",
            php.address()
        )
    };
    let server = Running::start(program(), "", &http("one")).await;
    assert_eq!(server.target().get("/page").await.text(), "run 1");
    server.rewrite("", &http("two"));
    server.signal("HUP");
    until("the reload", || server.error_log().contains("reloaded")).await;
    assert_eq!(server.target().get("/text").await.text(), "two");
    assert_eq!(server.target().get("/page").await.text(), "run 1");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// A PHP that answers when the gate opens.
async fn gated(gate: &Arc<Semaphore>) -> FakePhp {
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
    let mut server = Running::start(program(), "", &http).await;
    let mut idle = server.connect().await;
    let target = server.target();
    let request = tokio::spawn(async move { target.get("/").await });
    until("PHP has the request", || php.requests() == 1).await;
    server.signal("QUIT");
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
async fn request_under_way_is_finished_with_the_configuration_it_began_with() {
    let gate = Arc::new(Semaphore::new(0));
    let php = gated(&gate).await;
    let http = |text: &str| {
        format!(
            "server {{ listen unix:%%/http; add_header X-Which {text}; location /now {{ return 200; }}\n\
             location / {{ fastcgi_pass {}; }} }}",
            php.address()
        )
    };
    let server = Running::start(program(), "", &http("one")).await;
    let target = server.target();
    let request = tokio::spawn(async move { target.get("/").await });
    until("PHP has the request", || php.requests() == 1).await;
    server.rewrite("", &http("two"));
    server.signal("HUP");
    until("the reload", || server.error_log().contains("reloaded")).await;
    assert_eq!(server.target().get("/now").await.field("x-which"), "two");
    gate.add_permits(1);
    assert_eq!(request.await.expect("a response").field("x-which"), "one");
}

#[tokio::test]
async fn graceful_stop_ends_when_its_time_is_over() {
    let gate = Arc::new(Semaphore::new(0));
    let php = gated(&gate).await;
    let http = format!(
        "server {{ listen unix:%%/http; location / {{ fastcgi_pass {}; }} }}",
        php.address()
    );
    let mut server = Running::start(program(), "worker_shutdown_timeout 50ms;", &http).await;
    let target = server.path("http");
    let mut client = Client::connect(&target).await;
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    until("PHP has the request", || php.requests() == 1).await;
    server.signal("QUIT");
    assert!(server.ended().await.success());
}

#[tokio::test]
async fn term_and_int_stop_at_once_and_leave_nothing_behind() {
    for name in ["TERM", "INT"] {
        let mut server = Running::start(
            program(),
            "",
            "server { listen unix:%%/http; return 200 one; }",
        )
        .await;
        server.signal(name);
        assert!(server.ended().await.success(), "{name}");
        for file in ["pid", "http"] {
            assert!(!server.path(file).exists(), "{file} after {name}");
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
    let server = Running::start(
        program(),
        "",
        "server { listen unix:%%/http; return 200 one; }",
    )
    .await;
    std::fs::rename(server.path("error.log"), server.path("old.log")).expect("renamed");
    server.signal("USR1");
    until("a new log", || server.path("error.log").exists()).await;
    server.signal("HUP");
    until("a line in it", || server.error_log().contains("reloaded")).await;
    let old = std::fs::read_to_string(server.path("old.log")).expect("the old log");
    assert!(!old.contains("HUP"), "{old}");
}

#[tokio::test]
async fn socket_in_use_is_refused_in_nginxs_words() {
    let server = Running::start(
        program(),
        "",
        "server { listen unix:%%/http; return 200 one; }",
    )
    .await;
    let socket = server.path("http");
    let text = SMALL.replace("%%/http", socket.to_str().expect("a plain path"));
    let folder = folder(&[("test.conf", &text)]);
    let output = run(folder.path(), &["-c", "test.conf"]);
    let said = stderr(&output);
    assert_eq!(code(&output), 1, "{said}");
    assert!(said.contains("[emerg] bind() to unix:"), "{said}");
    assert!(
        said.contains("failed (98: Address already in use)"),
        "{said}"
    );
    assert!(said.contains("still could not bind()"), "{said}");
    assert!(!folder.path().join("pid").exists());
    assert_eq!(
        server.target().get("/").await.text(),
        "one",
        "the first is not disturbed"
    );
}

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
    let _started = Started(child);
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

/// Whose process it is: the effective user id.
fn uid(pid: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("Uid:"))
        .unwrap_or_default();
    line.split_whitespace()
        .nth(2)
        .unwrap_or_default()
        .to_owned()
}

/// Started by root: answers with the number of the process that serves.
fn privileged(folder: &TempDir) -> Option<Started> {
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
    Some(Started(child))
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
    until("the pid file", || folder.path().join("pid").exists()).await;
    let parent = started.0.id().to_string();
    let target = Target(folder.path().join("http"));
    let worker = target.get("/").await.text();
    assert_ne!(worker, parent);
    assert_eq!(uid(&parent), "0");
    let nobody = words_of("id", &["-u", "nobody"]);
    assert_eq!(uid(&worker), nobody);
    // The log was opened by root; nobody could not have.
    let log = || std::fs::read_to_string(folder.path().join("error.log")).unwrap_or_default();

    let changed = text.replace("return 200 $pid", "return 200 again");
    let place = folder.path().to_str().expect("a plain path");
    std::fs::write(
        folder.path().join("test.conf"),
        changed.replace("%%", place),
    )
    .expect("a file");
    signal(&parent, "HUP");
    until("the reload", || log().contains("reloaded")).await;
    assert_eq!(target.get("/").await.text(), "again");

    signal(&worker, "KILL");
    until("another worker", || log().contains("starting another")).await;
    assert_eq!(
        target.get("/").await.text(),
        "again",
        "connections wait in the socket"
    );

    signal(&parent, "QUIT");
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
    until("the pid file", || folder.path().join("pid").exists()).await;
    let worker = Target(folder.path().join("http")).get("/").await.text();
    assert_ne!(uid(&worker), "");
    drop(started);
    until("the worker's end", || uid(&worker).is_empty()).await;
}

fn words_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .expect("a program");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn missing_php_is_named_with_what_to_install() {
    let folder = folder(&[("index.php", "<?php echo 1;")]);
    let dir = folder.path().to_str().expect("a plain path");
    let output = words(&["serve", dir, "--php", "/nowhere/php-fpm"]);
    assert_eq!(code(&output), 1);
    assert!(
        stderr(&output).contains("/nowhere/php-fpm is not an executable file"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn printed_configuration_passes_the_test() {
    let folder = folder(&[("index.php", "<?php echo 1;")]);
    let dir = folder.path().to_str().expect("a plain path");
    let output = words(&[
        "serve",
        dir,
        "--print-config",
        "--ttl",
        "200ms",
        "--workers",
        "2",
    ]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let path = folder.path().join("printed.conf");
    std::fs::write(&path, &output.stdout).expect("a file");
    let output = run(folder.path(), &["-t", "-c", "printed.conf"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}
