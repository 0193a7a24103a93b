//! A reload (HUP): the whole new configuration or none of it, and nothing stored is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use testkit::client::Target;
use testkit::fake_php::{FakePhp, Script};
use testkit::process::{Signal, children, is_alive, send_signal};
use testkit::running::RunningServer;
use testkit::tls::Authority;
use testkit::wait::{until, until_or};
use tokio::sync::Semaphore;

use crate::command_line::{SMALL, code, folder, run, stderr};
use crate::signals::gated;
use crate::{has_php_fpm, start};

#[tokio::test]
async fn bad_reload_leaves_the_running_server_untouched() {
    let http = "server { listen unix:%%/http; return 200 one; }";
    let server = start(http).await;
    server.rewrite(
        "",
        "server { listen unix:%%/http; return 200 two; retrun 200; }",
    );
    server.signal(Signal::HUP);
    until("the complaint", || {
        server.error_log().contains("unknown directive \"retrun\"")
    })
    .await;
    assert_eq!(server.target().get("/").await.text(), "one");
    // A configuration whose address cannot be bound is no better.
    server.rewrite("", "server { listen unix:%%/none/http; return 200 three; }");
    server.signal(Signal::HUP);
    until("the complaint", || {
        server.error_log().contains("bind() to unix:")
    })
    .await;
    assert_eq!(server.target().get("/").await.text(), "one");
    // A key that is not the certificate's is refused as well.
    let authority = Authority::new("ca");
    let (certificate, key) = (authority.identity("a.test"), authority.identity("a.test"));
    for (name, pem) in [
        ("c.pem", certificate.certificate_pem()),
        ("c.key", key.key_pem()),
    ] {
        std::fs::write(server.path(name), pem).expect("a file");
    }
    server.rewrite(
        "",
        "server { listen unix:%%/http; ssl_certificate %%/c.pem; ssl_certificate_key %%/c.key; return 200 four; }",
    );
    server.signal(Signal::HUP);
    until("the complaint", || {
        server.error_log().contains("key values mismatch")
    })
    .await;
    assert_eq!(server.target().get("/").await.text(), "one");
}

#[tokio::test]
async fn reload_takes_new_sockets_and_lets_old_ones_go() {
    let server = start("server { listen unix:%%/http; listen unix:%%/old; return 200 one; }").await;
    server.rewrite(
        "",
        "server { listen unix:%%/http; listen unix:%%/new; return 200 two; }",
    );
    server.signal(Signal::HUP);
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
    let server = start(&http("one")).await;
    assert_eq!(server.target().get("/page").await.text(), "run 1");
    server.rewrite("", &http("two"));
    server.signal(Signal::HUP);
    until("the reload", || server.error_log().contains("reloaded")).await;
    assert_eq!(server.target().get("/text").await.text(), "two");
    assert_eq!(server.target().get("/page").await.text(), "run 1");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
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
    let server = start(&http("one")).await;
    let target = server.target();
    let request = tokio::spawn(async move { target.get("/").await });
    until("PHP has the request", || php.requests() == 1).await;
    server.rewrite("", &http("two"));
    server.signal(Signal::HUP);
    until("the reload", || server.error_log().contains("reloaded")).await;
    assert_eq!(server.target().get("/now").await.field("x-which"), "two");
    gate.add_permits(1);
    assert_eq!(request.await.expect("a response").field("x-which"), "one");
}

/// Returns the open files of the server (files below its folder, sockets) and the processes that
/// it started.
fn acquired(server: &RunningServer) -> (Vec<String>, Vec<u32>) {
    let folder = server.path("").display().to_string();
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("it runs");
    let targets = descriptors.filter_map(|it| std::fs::read_link(it.ok()?.path()).ok());
    let names = targets.map(|it| it.display().to_string());
    let mut open: Vec<String> = names
        .filter(|name| name.starts_with(&folder) || name.starts_with("socket:"))
        .collect();
    open.sort();
    // Each worker takes a descriptor of the same socket when its thread is there.
    open.dedup_by(|one, other| one.starts_with("socket:") && one == other);
    (open, children(server.pid()))
}

#[tokio::test]
async fn a_reload_that_fails_leaves_no_log_socket_or_php_behind() {
    let php = match has_php_fpm() {
        true => "php_pool more { workers 1; user www-data; }",
        false => "",
    };
    let both = "server { listen unix:%%/http; listen unix:%%/new; return 200 two; }";
    let socket = "server { listen unix:%%/http; listen unix:%%/new; listen unix:%%/none/http; }";
    let certificate = "server { listen unix:%%/http; listen unix:%%/new; location / {
        proxy_ssl_verify on; proxy_ssl_trusted_certificate %%/none.pem; proxy_pass https://127.0.0.1:9; } }";
    let logs = format!("error_log %%/new.log; error_log %%/none/log; {both}");
    let server = start("server { listen unix:%%/http; return 200 one; }").await;
    // Nothing can be opened below a file.
    server.write("none", "");
    until("the end of the start", || {
        server.error_log().contains("ready")
    })
    .await;
    let before = acquired(&server);
    for (step, main, http, message) in [
        ("logs", php, &*logs, "none/log\" failed"),
        ("sockets", php, socket, "bind() to unix:"),
        (
            "pools",
            "php_pool no { binary /nowhere/php-fpm; }",
            both,
            "/nowhere/php-fpm",
        ),
        ("serving", php, certificate, "none.pem"),
    ] {
        server.rewrite(main, http);
        server.signal(Signal::HUP);
        until(step, || server.error_log().contains(message)).await;
        until_or(
            || acquired(&server) == before,
            || format!("{step}: {before:?} became {:?}", acquired(&server)),
        )
        .await;
        assert!(!server.path("new").exists(), "{step}");
        assert_eq!(server.target().get("/").await.text(), "one", "{step}");
    }
    assert!(!server.error_log().contains("reloaded"));
    server.rewrite("", both);
    server.signal(Signal::HUP);
    until("the reload", || server.error_log().contains("reloaded")).await;
    assert_eq!(Target(server.path("new")).get("/").await.text(), "two");
}

/// Until it listens no process removes the files that a start has made.
#[tokio::test]
async fn a_start_that_fails_leaves_no_socket() {
    let folder = folder(&[(
        "test.conf",
        "daemon off; pid %%/pid; error_log %%/error.log; user root; events {}
        http { access_log off; server { listen unix:%%/http; location / {
        proxy_ssl_verify on; proxy_ssl_trusted_certificate %%/none.pem; proxy_pass https://127.0.0.1:9; } } }",
    )]);
    let output = run(folder.path(), &["-c", "test.conf"]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("none.pem"), "{}", stderr(&output));
    assert!(!folder.path().join("http").exists());
    assert!(!folder.path().join("pid").exists());
}

/// A part of the configuration that cannot be served is one thing, an odd part another. Both are
/// written to the log of the configuration in force, be it in `http` alone.
#[tokio::test]
async fn a_refused_reload_logs_each_line_at_its_level_in_the_log_in_force() {
    let text = SMALL
        .replace("daemon off;", "user root;")
        .replace("error_log %%/error.log notice;\n", "")
        .replace("http {", "http { error_log %%/http.log notice;");
    let odd = "server_name http://a.test; retrun 200;";
    let folder = folder(&[
        ("test.conf", &text),
        (
            "bad.conf",
            &text.replace("location", &format!("{odd} location")),
        ),
    ]);
    let output = run(folder.path(), &["-c", "test.conf"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let log = || std::fs::read_to_string(folder.path().join("http.log")).unwrap_or_default();
    assert!(
        log().contains("[notice]") && log().contains("ready"),
        "{}",
        log()
    );
    let bad = folder.path().join("bad.conf");
    std::fs::rename(bad, folder.path().join("test.conf")).expect("a file");
    let pid = std::fs::read_to_string(folder.path().join("pid")).expect("a pid file");
    let pid = pid.trim().parse().expect("a number");
    send_signal(pid, Signal::HUP);
    until("the complaint", || log().contains("\"retrun\"")).await;
    send_signal(pid, Signal::TERM);
    until("the end", || !is_alive(pid)).await;
    let log = log();
    let level = |text| {
        log.lines().find(|line| line.contains(text)).map(|line| {
            let rest = line.split_once('[').map_or("", |(_, rest)| rest);
            rest.split(']').next().unwrap_or_default()
        })
    };
    assert_eq!(
        level("unknown directive \"retrun\""),
        Some("emerg"),
        "{log}"
    );
    assert_eq!(level("neither scheme nor path"), Some("warn"), "{log}");
    assert!(!folder.path().join("logs/error.log").exists());
}
