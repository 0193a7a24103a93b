//! Bodies of requests: those that never come, those of methods that have none, and those
//! that are larger than the location allows which they are led to in the end.

use testkit::fake_http::{FakeHttp, Script};
use testkit::fake_php::{self, FakePhp};
use testkit::running::RunningServer;
use testkit::serving::FolderServer;

use super::start_before;
use crate::start;

/// A GET that announces a body, which does not follow.
async fn begin_and_never_end(server: &FolderServer, framing: &str) -> testkit::client::Client {
    let mut client = server.connect().await;
    let request = format!("GET /page HTTP/1.1\r\nHost: site.test\r\n{framing}\r\n\r\n");
    client.send(request).await;
    client
}

/// One silent client would hold up all others who want the page.
#[tokio::test]
async fn nobody_waits_for_the_body_of_another_client() {
    let upstream = FakeHttp::start(|_| Script::page("Content-Type: text/html\r\n", "page")).await;
    let server = start_before(&upstream).await;
    let mut silent = Vec::new();
    for framing in ["Content-Length: 100", "Transfer-Encoding: chunked"] {
        silent.push(begin_and_never_end(&server, framing).await);
        // The first request is under way once another client is answered.
        assert_eq!(server.target().get("/other").await.status, 200);
    }
    let replies = async {
        for _ in 0..3 {
            let reply = server.target().get("/page").await;
            assert_eq!((reply.status, reply.text().as_str()), (200, "page"));
        }
    };
    // Well before a follower gives up waiting for the leader (5 s).
    tokio::time::timeout(std::time::Duration::from_secs(3), replies)
        .await
        .expect("visitors do not wait for a silent client");
}

/// The page that an application makes of a body is no other visitor's page.
#[tokio::test]
async fn what_comes_of_a_body_of_get_is_not_stored() {
    let upstream = FakeHttp::start(|request| {
        let text = format!("page {}", String::from_utf8_lossy(&request.body));
        Script::page("Content-Type: text/html\r\n", text)
    })
    .await;
    let server = start_before(&upstream).await;
    let target = server.target();
    for method in ["GET", "HEAD"] {
        let reply = target.ask(method, "/page", "", "poison").await;
        assert_eq!(reply.x_cache(), "BYPASS", "{method}");
    }
    let reply = target.get("/page").await;
    assert_eq!((reply.x_cache(), reply.text().as_str()), ("MISS", "page "));
    // The request does not get the stored page either.
    let reply = target.ask("GET", "/page", "", "own").await;
    assert_eq!(
        (reply.x_cache(), reply.text().as_str()),
        ("BYPASS", "page own")
    );
}

#[tokio::test]
async fn a_body_that_is_not_passed_on_changes_nothing() {
    let php = FakePhp::tcp(|request| {
        fake_php::Script::page("Content-Type: text/plain\r\n", &request.body)
    })
    .await;
    let directives = "fastcgi_cache_valid 1h; fastcgi_pass_request_body off;";
    let server = start(&php.cached_site(directives)).await;
    let target = server.target();
    for wanted in ["MISS", "HIT"] {
        let reply = target.ask("GET", "/page", "", "body").await;
        assert_eq!((reply.x_cache(), reply.text().as_str()), (wanted, ""));
    }
}

/// The site of the limits: 1000 bytes where requests come in, 10 where they are led.
async fn limited(php: &FakePhp) -> RunningServer {
    let http = format!(
        "fastcgi_param REQUEST_METHOD $request_method; fastcgi_param REQUEST_URI $uri;\n\
         server {{ listen unix:%%/http; client_max_body_size 1000;\n\
         location /small {{ client_max_body_size 10; fastcgi_pass {php}; }}\n\
         location /large {{ fastcgi_pass {php}; }}\n\
         location @small {{ client_max_body_size 10; fastcgi_pass {php}; }}\n\
         location @no-word {{ fastcgi_pass {php}; }}\n\
         location /try/ {{ try_files /none /small; }}\n\
         location /try-named/ {{ try_files /none @small; }}\n\
         location /error/ {{ error_page 404 = /small; return 404; }}\n\
         location /error-named/ {{ error_page 404 = @small; return 404; }}\n\
         location /rewrite/ {{ rewrite ^ /small last; }}\n\
         location /accel/ {{ fastcgi_pass {php}; }}\n\
         location /intercept/ {{ fastcgi_intercept_errors on; error_page 404 = /small;\n\
           fastcgi_pass {php}; }}\n\
         location /unlimited/ {{ client_max_body_size 0; try_files /none /small; }}\n\
         location /wide/ {{ client_max_body_size 2000; try_files /none @no-word; }}\n\
         location /page-413-asks/ {{ client_max_body_size 10; error_page 413 = /large; return 200; }}\n\
         location /page-413/ {{ client_max_body_size 10; error_page 413 /told; fastcgi_pass {php}; }}\n\
         location = /told {{ client_max_body_size 5; return 200 told; }}\n\
         }}",
        php = php.address()
    );
    start(&http).await
}

async fn counting() -> (FakePhp, std::sync::Arc<std::sync::Mutex<Vec<String>>>) {
    let ran = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = ran.clone();
    let php = FakePhp::tcp(move |request| {
        let uri = request.param("REQUEST_URI").to_owned();
        log.lock().expect("a log").push(uri.clone());
        if uri.starts_with("/accel/") {
            return fake_php::Script::page("X-Accel-Redirect: /small\r\n", "");
        }
        if uri.starts_with("/intercept/") {
            return fake_php::Script::page("Status: 404\r\n", "");
        }
        fake_php::Script::page("Content-Type: text/plain\r\n", &request.body)
    })
    .await;
    (php, ran)
}

#[tokio::test]
async fn a_limit_holds_however_the_location_was_come_to() {
    let (php, ran) = counting().await;
    let server = limited(&php).await;
    let target = server.target();
    let large = "x".repeat(100);
    for way in [
        "try",
        "try-named",
        "error",
        "error-named",
        "rewrite",
        "unlimited",
        "accel",
        "intercept",
    ] {
        let path = format!("/{way}/page");
        for chunked in [false, true] {
            ran.lock().expect("a log").clear();
            let reply = match chunked {
                false => target.ask("POST", &path, "", &large).await,
                true => {
                    let mut client = server.connect().await;
                    client
                        .send(format!(
                            "POST {path} HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\
                             Transfer-Encoding: chunked\r\n\r\n64\r\n{large}\r\n0\r\n\r\n"
                        ))
                        .await;
                    client.receive(false).await.expect("a response")
                }
            };
            assert_eq!(
                reply.status,
                413,
                "{way} chunked {chunked}: {}",
                reply.text()
            );
            let ran = ran.lock().expect("a log").clone();
            assert!(
                !ran.iter().any(|uri| uri == "/small"
                    || uri.starts_with("/try")
                    || uri.starts_with("/error")),
                "{way} chunked {chunked}: {ran:?}"
            );
        }
        let reply = target.ask("POST", &path, "", "small").await;
        assert_eq!(reply.status, 200, "{way}");
    }
}

#[tokio::test]
async fn a_location_without_a_limit_of_its_own_takes_what_was_let_in() {
    let (php, _) = counting().await;
    let server = limited(&php).await;
    let ask = async |path| {
        let target = server.target();
        let reply = target.ask("POST", path, "", &"x".repeat(1500)).await;
        (reply.status, reply.body.len())
    };
    assert_eq!(ask("/wide/page").await, (200, 1500));
    // If no location came before, its own counts, which is its server's.
    let http = format!(
        "server {{ listen unix:%%/http; client_max_body_size 1000; error_page 404 = @php;\n\
         return 404; location @php {{ fastcgi_pass {}; }} }}",
        php.address()
    );
    let server = start(&http).await;
    let reply = server
        .target()
        .ask("POST", "/", "", &"x".repeat(1500))
        .await;
    assert_eq!(reply.status, 413);
}

#[tokio::test]
async fn the_page_that_tells_of_a_limit_is_shown_whatever_its_own() {
    let (php, _) = counting().await;
    let server = limited(&php).await;
    // An application that makes the page is not given the body.
    let reply = server
        .target()
        .ask("POST", "/page-413-asks/", "", &"x".repeat(100))
        .await;
    assert_eq!((reply.status, reply.text().as_str()), (200, ""));
    let reply = server
        .target()
        .ask("POST", "/page-413/", "", &"x".repeat(100))
        .await;
    assert_eq!((reply.status, reply.text().as_str()), (413, "told"));
}
