//! Requests that run twice: a script that ends its worker before it answers has been run. A
//! request that may have begun is repeated only if its method and `*_next_upstream` allow
//! it, and once.

use testkit::fake_http::{self, FakeHttp};
use testkit::fake_php::{FakePhp, Script};
use testkit::running::RunningServer;
use testkit::serving::FolderServer;

/// Answers `/good`, and dies of everything else once it has read it.
async fn mortal_php() -> FakePhp {
    FakePhp::tcp(|request| match request.param("REQUEST_URI") {
        "/good" => Script::page("Content-Type: text/plain\r\n", "good"),
        _ => Script::new().close(),
    })
    .await
}

async fn mortal_http() -> FakeHttp {
    FakeHttp::start(|request| match request.target.as_str() {
        "/good" => fake_http::Script::page("", "good"),
        _ => fake_http::Script::new().cut(),
    })
    .await
}

async fn fastcgi(php: &FakePhp, directives: &str) -> RunningServer {
    let http = format!(
        "upstream site {{ server {}; keepalive 8; }}\n\
         server {{ listen unix:%%/http; location / {{ fastcgi_pass site; fastcgi_keep_conn on;\n\
         fastcgi_param REQUEST_METHOD $request_method; fastcgi_param REQUEST_URI $request_uri;\n\
         {directives} }} }}",
        php.address()
    );
    RunningServer::start(crate::program(), "worker_processes 1;", &http).await
}

async fn proxy(upstream: &FakeHttp, directives: &str) -> RunningServer {
    let http = format!(
        "upstream site {{ server {}; keepalive 8; }}\n\
         server {{ listen unix:%%/http; location / {{ proxy_pass http://site;\n\
         proxy_http_version 1.1; proxy_set_header Connection ''; {directives} }} }}",
        upstream.address()
    );
    RunningServer::start(crate::program(), "worker_processes 1;", &http).await
}

/// How often a request may run that breaks a kept connection.
const CASES: [(&str, &str, usize); 6] = [
    ("POST", "", 1),
    ("PATCH", "", 1),
    ("GET", "", 2),
    ("GET", "*_next_upstream off;", 1),
    ("GET", "*_next_upstream timeout;", 1),
    ("POST", "*_next_upstream error non_idempotent;", 2),
];

#[tokio::test]
async fn a_worker_that_dies_on_a_kept_connection_runs_a_request_as_often_as_is_allowed() {
    for (method, directives, wanted) in CASES {
        let php = mortal_php().await;
        let server = fastcgi(&php, &directives.replace('*', "fastcgi")).await;
        // Several kept connections would be tried one after the other.
        assert_eq!(server.target().get("/good").await.text(), "good");
        let before = php.requests();
        let reply = server.target().ask(method, "/bad", "", "").await;
        assert_eq!(reply.status, 502, "{method} {directives}");
        assert_eq!(
            php.requests() - before,
            wanted,
            "FastCGI {method} {directives}"
        );

        let upstream = mortal_http().await;
        let server = proxy(&upstream, &directives.replace('*', "proxy")).await;
        assert_eq!(server.target().get("/good").await.text(), "good");
        let before = upstream.requests();
        let reply = server.target().ask(method, "/bad", "", "").await;
        assert_eq!(reply.status, 502, "{method} {directives}");
        assert_eq!(
            upstream.requests() - before,
            wanted,
            "HTTP {method} {directives}"
        );
    }
}

/// A worker that ends after its last request (`pm.max_requests`) costs no visitor a request.
#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_no_loss() {
    let php = FakePhp::tcp(|request| {
        let page = Script::page(
            "Content-Type: text/plain\r\n",
            request.param("REQUEST_METHOD"),
        );
        page.close_stdout().end(0, 0).close()
    })
    .await;
    let server = fastcgi(&php, "fastcgi_next_upstream off;").await;
    for method in ["GET", "POST", "POST", "GET", "POST"] {
        let reply = server.target().ask(method, "/", "", "").await;
        assert_eq!((reply.status, reply.text().as_str()), (200, method));
    }
    assert_eq!(php.requests(), 5);
}

/// The whole of it: a pool of Mayfly's own, whose script writes down that it ran and then
/// kills its worker.
#[tokio::test]
async fn a_script_that_kills_its_worker_runs_as_often_as_is_allowed() {
    if ![
        "/usr/sbin/php-fpm8.2",
        "/usr/sbin/php-fpm8.4",
        "/usr/sbin/php-fpm",
    ]
    .iter()
    .any(|path| std::path::Path::new(path).exists())
    {
        return println!("php-fpm is missing; this test needs it");
    }
    let site = FolderServer::folder();
    let ran = site.path().join("ran");
    std::fs::write(&ran, "").expect("a file");
    std::fs::set_permissions(&ran, std::os::unix::fs::PermissionsExt::from_mode(0o666))
        .expect("a mode");
    std::fs::write(site.path().join("good.php"), "<?php echo 'good';").expect("a script");
    let bad = "<?php file_put_contents(__DIR__ . '/ran', 'x', FILE_APPEND); \
               posix_kill(getmypid(), 9); sleep(5);";
    std::fs::write(site.path().join("bad.php"), bad).expect("a script");
    let folder = site.path().to_str().expect("a plain path");
    let server = FolderServer::start(crate::program(), folder, &["--ttl", "0"]).await;
    for (method, wanted) in [("POST", 1), ("POST", 1), ("GET", 2)] {
        // So that there is a kept connection to a worker.
        assert_eq!(server.target().get("/good.php").await.text(), "good");
        std::fs::write(&ran, "").expect("a file");
        let reply = server.target().ask(method, "/bad.php", "", "").await;
        assert_eq!(reply.status, 502, "{method}");
        let times = std::fs::read_to_string(&ran).expect("a file").len();
        assert_eq!(times, wanted, "{method}");
    }
}
