//! `mayfly purge` and the control socket.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use testkit::fake_http::{FakeHttp, Script};
use testkit::process::{KilledOnDrop, Signal, free_port, is_root};
use testkit::wait::until;

use super::*;
use crate::commands::{output, text as said};
use crate::serve::http_upstream::get_tcp;

/// Runs `mayfly purge` for the server of a folder.
async fn purge(arguments: &[&str]) -> Output {
    let mut command = Command::new(crate::program());
    command.arg("purge").args(arguments);
    // Nothing of this machine is meant.
    command
        .env("XDG_RUNTIME_DIR", "/nonexistent")
        .env("RUNTIME_DIRECTORY", "/nonexistent");
    output(command).await
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[tokio::test]
async fn the_command_finds_the_server_by_its_configuration() {
    let php = tagged_pages().await;
    let http = "cache_purge_log %%/purge.log json;";
    let server = start(&configuration(&php, http, "", "")).await;
    let conf = shown(&server.path("test.conf"));
    let target = server.target();
    let pages = ["/news/5", "/news/6", "/about"];
    #[rustfmt::skip]
    let cases = [
        (&["https://site.test/about"][..], &["/about"][..], "Purged 1 stored response in"),
        (&["--tag", "news/5", "--tag", "news/6"], &["/news/5", "/news/6"], "Purged 2 stored responses"),
        (&["--prefix", "https://site.test/news/"], &["/news/5", "/news/6"], "Purged 2"),
        (&["--pattern", "https://site.test/*/5"], &["/news/5"], "Purged 1"),
        (&["--pattern", "~/6$"], &["/news/6"], "Purged 1"),
        (&["--host", "site.test", "/about"], &["/about"], "Purged 1"),
        (&["--host", "site.test"], &pages[..], "Purged 3"),
        (&["--all"], &pages[..], "Purged 3"),
        (&["--all", "--dry-run"], &[], "Would purge 3"),
        (&["--tag", "all", "--json"], &pages[..], "\"kind\":\"tag\",\"text\":\"all\",\"responses\":3"),
    ];
    for (arguments, expected, words) in cases {
        store(&target, &pages).await;
        let output = purge(&[&["-c", &conf], arguments].concat()).await;
        assert_eq!(
            output.status.code(),
            Some(0),
            "{arguments:?}: {}",
            said(&output)
        );
        assert!(
            said(&output).contains(words),
            "{arguments:?}: {}",
            said(&output)
        );
        assert_eq!(gone(&target, &pages).await, expected, "{arguments:?}");
    }
    let log = server.read("purge.log");
    assert_eq!(log.lines().count(), 10, "{log}");
    let me = rustix::process::geteuid().as_raw();
    assert!(
        log.contains(&format!("\"door\":\"socket\",\"who\":\"uid={me} pid=")),
        "{log}"
    );
}

#[tokio::test]
async fn what_is_refused_and_who_is_not_there_is_told_by_the_exit_code() {
    let php = tagged_pages().await;
    let mut server = site(&php, "", "").await;
    let conf = shown(&server.path("test.conf"));
    let socket = server.path("pid.control");
    for (arguments, code, words) in [
        (
            &["-c", &conf, "/news/5"][..],
            1,
            "urls[0]: expected an absolute URL",
        ),
        (&["-c", &conf, "--pattern", "~("], 1, "patterns[0]"),
        (&["-c", "/nonexistent.conf", "--all"], 1, "nonexistent"),
        (
            &["--socket", "/nonexistent", "--all"],
            2,
            "no server listens on /nonexistent",
        ),
        (&["--socket", &conf, "--all"], 2, "no server listens"),
        (&[], 2, "Usage"),
        (&["--soft"], 2, "Usage"),
    ] {
        let output = purge(arguments).await;
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {}",
            said(&output)
        );
        assert!(
            said(&output).contains(words),
            "{arguments:?}: {}",
            said(&output)
        );
    }
    let mode = std::fs::metadata(&socket)
        .expect("a socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    server.signal(Signal::QUIT);
    server.ended().await;
    assert!(!socket.exists());
    // Pages on disk are purged by the next start; pages in memory are not known.
    for (arguments, code) in [
        (&["-c", &conf, "--all"][..], 0),
        (&["-c", &conf, "--all", "--dry-run"], 2),
    ] {
        let output = purge(arguments).await;
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    }
}

#[tokio::test]
async fn the_socket_goes_with_the_configuration_over_reloads() {
    let php = tagged_pages().await;
    let http = configuration(&php, "", "", "");
    let server = start(&http).await;
    let target = server.target();
    let purges = async |socket: &str| {
        store(&target, &["/news/5"]).await;
        let output = purge(&["--socket", &shown(&server.path(socket)), "--all"]).await;
        let is_gone = gone(&target, &["/news/5"]).await.len() == 1;
        assert_eq!(output.status.success(), is_gone, "{}", said(&output));
        is_gone
    };
    let reloads = std::cell::Cell::new(0);
    let reload = async |main: &str| {
        server.rewrite(main, &http);
        server.signal(Signal::HUP);
        reloads.set(reloads.get() + 1);
        until("the reload", || {
            server.error_log().matches("reloaded").count() == reloads.get()
        })
        .await;
    };
    assert!(purges("pid.control").await);
    reload("").await;
    assert!(purges("pid.control").await);
    reload("control_socket %%/other;").await;
    assert!(purges("other").await);
    assert!(!server.path("pid.control").exists());
    reload("control_socket off;").await;
    assert!(!server.path("other").exists());
    reload("").await;
    assert!(purges("pid.control").await);
}

#[tokio::test]
async fn a_socket_of_another_server_is_not_taken_and_one_of_a_dead_server_is() {
    let php = tagged_pages().await;
    let mut first = site(&php, "", "").await;
    let socket = shown(&first.path("pid.control"));
    let main = format!("control_socket {socket};");
    let tested = tempfile::tempdir().expect("a folder");
    let conf = shown(&tested.path().join("test.conf"));
    let text = format!(
        "daemon off; pid {0}/pid; error_log {0}/log; {main} events {{}} http {{ server {{ listen unix:{0}/http; }} }}",
        tested.path().display()
    );
    std::fs::write(&conf, text).expect("a file");
    let second = Command::new(crate::program())
        .args(["-c", &conf, "-e", "stderr"])
        .output()
        .expect("the program");
    assert!(!second.status.success());
    assert!(
        said(&second).contains("another server listens on the control socket"),
        "{}",
        said(&second)
    );
    let output = purge(&["--socket", &socket, "--all"]).await;
    assert!(output.status.success(), "{}", said(&output));
    // Killed, it leaves its file, and the next server takes the name.
    first.signal(Signal::KILL);
    first.ended().await;
    assert!(Path::new(&socket).exists());
    let third =
        RunningServer::start(crate::program(), &main, &configuration(&php, "", "", "")).await;
    let output = purge(&["--socket", &socket, "--all"]).await;
    assert!(output.status.success(), "{}", said(&output));
    drop(third);
}

#[tokio::test]
async fn a_server_that_serves_as_another_account_answers_on_the_socket_of_root() {
    if !is_root() {
        eprintln!("skipped: only root can give up root's rights");
        return;
    }
    let php = tagged_pages().await;
    let http = configuration(&php, "", "", "");
    let server = RunningServer::start_divided(crate::program(), "", &http).await;
    let (target, conf) = (server.target(), server.path("test.conf"));
    for reloads in 1..=2 {
        store(&target, &["/news/5"]).await;
        let output = purge(&["-c", &shown(&conf), "--tag", "news/5"]).await;
        assert!(said(&output).contains("Purged 1"), "{}", said(&output));
        assert_eq!(gone(&target, &["/news/5"]).await, ["/news/5"]);
        server.signal(Signal::HUP);
        until("the reload", || {
            server.error_log().matches("reloaded").count() == reloads
        })
        .await;
    }
}

#[tokio::test]
async fn a_server_without_a_configuration_is_found_as_well() {
    if !crate::has_php_fpm() {
        return;
    }
    let run = tempfile::tempdir().expect("a folder");
    let site = testkit::serving::FolderServer::folder();
    std::fs::write(site.path().join("index.php"), "<?php echo 'page';").expect("a file");
    let mut command = Command::new(crate::program());
    let socket = run.path().join("http");
    command
        .env("RUNTIME_DIRECTORY", run.path())
        .env("CACHE_DIRECTORY", run.path().join("cache"))
        .arg("serve")
        .arg(site.path())
        .args(["--listen", &format!("unix:{}", shown(&socket))])
        .stdout(std::process::Stdio::null());
    if is_root() {
        std::fs::set_permissions(run.path(), PermissionsExt::from_mode(0o755)).expect("a mode");
    }
    let child = testkit::process::KilledOnDrop(command.spawn().expect("the program"));
    until("the control socket", || {
        crate::file_names(run.path())
            .iter()
            .any(|name| name.ends_with(".control"))
    })
    .await;
    let purge = |arguments: &[&str]| {
        let mut command = Command::new(crate::program());
        command
            .env("RUNTIME_DIRECTORY", run.path())
            .env("CACHE_DIRECTORY", run.path().join("no-pages"))
            .arg("purge")
            .args(arguments);
        output(command)
    };
    let output = purge(&["--all"]).await;
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("Purged 0 stored responses"),
        "{}",
        said(&output)
    );
    drop(child);
    // Its worker ends when it notices.
    until("the end of the worker", || {
        let names = crate::file_names(run.path());
        let mut controls = names.iter().filter(|name| name.ends_with(".control"));
        controls.all(|name| UnixStream::connect(run.path().join(name)).is_err())
    })
    .await;
    let output = purge(&["--all"]).await;
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("no server was found"),
        "{}",
        said(&output)
    );
}

/// Two sites on this machine, each with a server of its own.
#[tokio::test]
async fn among_several_servers_the_one_that_serves_the_url_is_found() {
    let origin = FakeHttp::start(|_| Script::page("Cache-Control: max-age=3600\r\n", "page")).await;
    let run = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(run.path(), PermissionsExt::from_mode(0o755)).expect("a mode");
    let command = |arguments: &[&str]| {
        let mut command = Command::new(crate::program());
        command.env("RUNTIME_DIRECTORY", run.path()).args(arguments);
        // In memory alone: no purge waits for a disk.
        command.env("CACHE_DIRECTORY", "/dev/shm");
        command
    };
    let ports = [free_port(), free_port()];
    let mut servers = Vec::new();
    for port in ports {
        let listen = format!("127.0.0.1:{port}");
        let mut serve = command(&["serve", &origin.url(), "--ttl", "1h", "--listen", &listen]);
        serve.stdout(Stdio::null());
        servers.push(KilledOnDrop(serve.spawn().expect("the program")));
    }
    until("the control sockets", || {
        let names = crate::file_names(run.path()).into_iter();
        names.filter(|name| name.ends_with(".control")).count() == 2
    })
    .await;
    let cached = async |port| {
        let get = move || get_tcp(port, &format!("127.0.0.1:{port}"), "");
        let reply = tokio::task::spawn_blocking(get).await.expect("a thread");
        let reply = reply.expect("an answer");
        let line = reply
            .lines()
            .find_map(|line| line.strip_prefix("X-Cache: "));
        line.map(str::to_owned).unwrap_or_default()
    };
    for port in ports {
        // The first visit is the visitor's own.
        for wanted in ["MISS", "MISS", "HIT"] {
            assert_eq!(cached(port).await, wanted);
        }
    }
    let purge = |arguments: &[&str]| output(command(&[&["purge"], arguments].concat()));
    let urls = ports.map(|port| format!("http://127.0.0.1:{port}/page"));
    let output = purge(&[&urls[1]]).await;
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(cached(ports[0]).await, "HIT");
    assert_eq!(cached(ports[1]).await, "MISS");
    // Purges of everything, or of pages of both, are not for one server.
    for arguments in [&["--all"][..], &[&urls[0], &urls[1]]] {
        let output = purge(arguments).await;
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let several = "several servers run";
        assert!(said(&output).contains(several), "{}", said(&output));
    }
}

/// A server that was started with `-c FILE`, or whose control socket has a name of its own, is found without either.
#[tokio::test]
async fn a_server_is_found_wherever_its_control_socket_is() {
    let php = tagged_pages().await;
    for (number, main) in ["", "control_socket %%/commands;"].into_iter().enumerate() {
        // Other tests run servers as well: this one is found by its name.
        let name = format!("found{number}-{}.test", std::process::id());
        let http = configuration(&php, "", "", "").replace("site.test", &name);
        let server = RunningServer::start(crate::program(), main, &http).await;
        let url = format!("https://{name}/about");
        let ask = async || {
            let fields =
                format!("GET /about HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
            let mut client = testkit::client::Client::connect(&server.path("http")).await;
            client.send(fields).await;
            client.receive(false).await.expect("a reply")
        };
        ask().await;
        assert_eq!(ask().await.x_cache(), "HIT");
        let mut command = Command::new(crate::program());
        command
            .args(["purge", &url])
            .env_remove("RUNTIME_DIRECTORY")
            .env("XDG_RUNTIME_DIR", "/nonexistent");
        let output = output(command).await;
        let said = said(&output);
        assert!(
            output.status.success() && said.contains("Purged 1"),
            "{main}: {said}"
        );
        assert_eq!(ask().await.x_cache(), "MISS", "{main}");
    }
}
