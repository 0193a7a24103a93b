//! `--dashboard`: its address, who finds it, and who gets the token.

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use testkit::client::{Client, Reply};
use testkit::process::{Signal, free_port, is_alive, send_signal, state_and_parent};
use testkit::serving::{FolderServer, write_files};
use testkit::started::StartedProcess;
use testkit::wait::until;

use crate::command_line::{code, stderr, words};
use crate::program;

/// Serves a site of files with `--dashboard`. Its run folder is `run` in its folder.
async fn serve(port: u16, stderr_mode: u32) -> StartedProcess {
    let folder = FolderServer::folder();
    write_files(
        folder.path(),
        &[("site/index.html", "hello"), ("run/.keep", "")],
    );
    let output = |name: &str| {
        let mut options = std::fs::File::options();
        let options = options.create_new(true).append(true).mode(stderr_mode);
        options.open(folder.path().join(name)).expect("a file")
    };
    let child = Command::new(program())
        .arg("serve")
        .arg(folder.path().join("site"))
        .arg("--listen")
        .arg(format!("unix:{}", folder.path().join("http").display()))
        .arg(format!("--dashboard=127.0.0.1:{port}"))
        .env("RUNTIME_DIRECTORY", folder.path().join("run"))
        .env("CACHE_DIRECTORY", folder.path().join("cache"))
        .stdin(Stdio::null())
        .stdout(output("stdout"))
        .stderr(output("stderr"))
        .spawn()
        .expect("the program starts");
    let mut started = StartedProcess::new(child, folder, &["stderr"]);
    let announced = |folder: &Path| {
        std::fs::read_to_string(folder.join("stderr")).is_ok_and(|it| it.contains("Dashboard: "))
    };
    started.wait_for_start(announced).await;
    started
}

async fn get(port: u16, path: &str, host: &str) -> Reply {
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await;
    let mut client = Client::over(stream.expect("a connection"));
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    client.send(request).await;
    client.receive(false).await.expect("a reply")
}

fn tokens(port: u16) -> String {
    format!("run/dashboard-127.0.0.1-{port}.tokens")
}

#[tokio::test]
async fn the_dashboard_is_for_this_machine_and_its_token_for_who_started_it() {
    let port = free_port();
    let mut server = serve(port, 0o600).await;
    let own = format!("localhost:{port}");
    let page = get(port, "/", &own).await;
    assert_eq!(page.status, 200);
    assert!(page.field("content-type").starts_with("text/html"));
    let metrics = get(port, "/metrics", &own).await;
    assert!(
        metrics.text().contains("# TYPE mayfly_"),
        "{}",
        metrics.text()
    );
    assert_eq!(get(port, "/index.html", &own).await.status, 404);
    // A page of another site, whose name leads here.
    let numbers = get(port, "/?numbers", "evil.example").await;
    assert_eq!(numbers.status, 401, "{}", numbers.text());
    assert_eq!(get(port, "/?numbers", &own).await.status, 200);

    let said = server.read("stderr");
    let lead = format!("Dashboard: http://127.0.0.1:{port}/#token=");
    let line = said.lines().find_map(|line| line.strip_prefix(&lead));
    let token = line.unwrap_or_else(|| panic!("{said}"));
    // 32 bytes in base64url.
    assert_eq!(token.len(), 43, "{said}");
    assert!(!server.read("stdout").contains(token));
    let file = server.path(&tokens(port));
    let known = std::fs::read_to_string(&file).expect("the tokens");
    assert!(
        known.starts_with("dashboard:") && !known.contains(token),
        "{known}"
    );
    // The account that serves, which is another one if root starts it, finds the file.
    for (token, holder) in [(token, "\"dashboard\""), ("x", "token")] {
        let fields = format!("{own}\r\nAuthorization: Bearer {token}");
        let about = get(port, "/?about", &fields).await;
        assert!(about.text().contains(holder), "{}", about.text());
        assert_eq!(about.status, if token == "x" { 401 } else { 200 });
    }
    let folder = file.parent().expect("a folder").to_owned();
    server.end().await;
    assert!(!folder.join(tokens(port)).exists() && !file.exists());
}

#[tokio::test]
async fn a_token_is_not_said_where_others_may_read_it() {
    let port = free_port();
    let mut server = serve(port, 0o644).await;
    let said = server.read("stderr");
    assert!(
        said.contains(&format!("Dashboard: http://127.0.0.1:{port}/\n")),
        "{said}"
    );
    assert!(
        said.contains("printed on terminals only") && !said.contains("token="),
        "{said}"
    );
    server.end().await;
}

#[tokio::test]
async fn a_second_one_at_the_same_place_is_refused_and_changes_nothing() {
    let port = free_port();
    let mut server = serve(port, 0o600).await;
    let file = server.path(&tokens(port));
    let known = std::fs::read_to_string(&file).expect("the tokens");
    let site = server.path("site").display().to_string();
    let second = Command::new(program())
        .args(["serve", &site, "--listen", "unix:/tmp/mayfly-never"])
        .arg(format!("--dashboard={port}"))
        .env("RUNTIME_DIRECTORY", server.path("run"))
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    let said = stderr(&second);
    assert_eq!(code(&second), 1, "{said}");
    let expected = format!(
        "already listens on 127.0.0.1:{port}; try --dashboard=127.0.0.1:{}",
        port + 1
    );
    assert!(said.contains(&expected), "{said}");
    assert_eq!(std::fs::read_to_string(&file).expect("the tokens"), known);
    server.end().await;
}

#[tokio::test]
async fn an_upgrade_goes_on_with_the_dashboard_and_its_tokens() {
    let port = free_port();
    let server = serve(port, 0o600).await;
    let known = server.read(&tokens(port));
    let old = server.pid();
    let controls = crate::file_names(&server.path("run"));
    let control = controls.iter().find(|name| name.ends_with(".control"));
    let control = server.path("run").join(control.expect("a control socket"));
    let upgrade = {
        let (control, run) = (control.clone(), server.path("run"));
        tokio::task::spawn_blocking(move || {
            let mut command = Command::new(program());
            command.args(["upgrade", "--socket"]).arg(control);
            command
                .env("RUNTIME_DIRECTORY", run)
                .output()
                .expect("the program")
        })
    };
    let output = upgrade.await.expect("a thread");
    assert_eq!(
        code(&output),
        0,
        "{}{}",
        stderr(&output),
        server.read("stderr")
    );
    // A child of the program that root has started answers.
    let version = control::client::version(&control).await;
    let answers = version.expect("a server").pid;
    let parent = state_and_parent(answers).map(|(_, parent)| parent);
    let mut programs = [parent, Some(answers)].into_iter().flatten();
    let new = programs.find(|&pid| shows_as(pid, "--as=successor"));
    let new = new.expect("the program that took the place");
    let _ended = SignalledOnDrop(new);
    assert_ne!(new, old);
    until("the end of the old one", || !is_alive(old)).await;
    let page = get(port, "/", &format!("localhost:{port}")).await;
    assert_eq!(page.status, 200);
    let now = server.read(&tokens(port));
    assert!(
        now.contains(known.trim()) && now.lines().count() == 2,
        "{now}"
    );
}

fn shows_as(pid: u32, word: &str) -> bool {
    let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
    line.is_ok_and(|line| line.split('\0').any(|it| it == word))
}

/// The program that took the place of the test's child.
struct SignalledOnDrop(u32);

impl Drop for SignalledOnDrop {
    fn drop(&mut self) {
        send_signal(self.0, Signal::TERM);
    }
}

#[test]
fn addresses_that_the_network_reaches_and_those_of_the_site_are_refused() {
    let folder = FolderServer::folder();
    let dir = folder.path().to_str().expect("a plain path");
    for (arguments, expected) in [
        (
            ["--dashboard", "0.0.0.0:8090"],
            "--dashboard 0.0.0.0:8090: the network reaches this address",
        ),
        (
            ["--dashboard", "192.0.2.1:80"],
            "for this machine alone; expected an address such as 127.0.0.1:8090",
        ),
        (
            ["--dashboard=127.0.0.1:8080", "--listen=8080"],
            "the site itself listens on 8080",
        ),
    ] {
        let output = words(&[&["serve", dir], &arguments[..]].concat());
        assert_eq!(code(&output), 1, "{arguments:?}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}
