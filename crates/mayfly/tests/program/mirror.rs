//! `mirror`: requests that are sent elsewhere as well.

use testkit::fake_php::{FakePhp, Script};
use testkit::process::Signal;

use crate::site;

#[tokio::test]
async fn mirrored_requests_go_elsewhere_and_nobody_waits_for_them() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let held = gate.clone();
    let php = FakePhp::tcp(move |request| {
        let line = format!(
            "{} {} {}",
            request.param("REQUEST_METHOD"),
            request.param("URI"),
            String::from_utf8_lossy(&request.body)
        );
        let _ = told.send(line);
        Script::new()
            .wait_for(&held)
            .stdout("X-A: b\r\n\r\nINVISIBLE")
    })
    .await;
    let params = "fastcgi_param REQUEST_METHOD $request_method; fastcgi_param URI $uri?$args;";
    let server = site(&format!(
        "location / {{ mirror /copy; mirror /other?own; return 200; }}\n\
         location /page {{ mirror /copy; mirror /other?own; try_files $uri =404; error_page 405 =200 @ok; location /page/off {{ mirror off; try_files /page =404; }} }}\n\
         location /bare {{ mirror /copy; mirror_request_body off; error_page 405 =200 @ok; try_files /page =404; }}\n\
         location @ok {{ mirror off; return 200 ok; }}\n\
         location = /copy {{ internal; fastcgi_pass {0}; {params} }}\n\
         location = /other {{ internal; fastcgi_pass {0}; {params} }}",
        php.address()
    ))
    .await;
    server.write("page", "page");
    let target = server.target();
    let mut next = async || {
        let wait = tokio::time::timeout(testkit::wait::TIMEOUT, heard.recv()).await;
        wait.expect("a mirrored request in time")
            .expect("a mirrored request")
    };
    // On one connection: the mirrored requests keep nothing waiting.
    let mut client = server.connect().await;
    client.send("GET /page?a=b HTTP/1.1\r\nHost: site.test\r\n\r\nPOST /page HTTP/1.1\r\nHost: site.test\r\nContent-Length: 4\r\n\r\nbody").await;
    for wanted in ["page", "ok"] {
        assert_eq!(
            client.receive(false).await.expect("an answer").text(),
            wanted
        );
    }
    let mut mirrored = vec![next().await, next().await, next().await, next().await];
    mirrored.sort();
    assert_eq!(
        mirrored,
        [
            "GET /copy?a=b ",
            "GET /other?own ",
            "POST /copy? body",
            "POST /other?own body"
        ]
    );
    assert_eq!(target.ask("PUT", "/bare", "", "body").await.status, 200);
    assert_eq!(next().await, "PUT /copy? ");
    // A request that is answered before the content is not mirrored, nor one
    // with `off`.
    assert_eq!(target.get("/").await.status, 200);
    assert_eq!(target.get("/page/off").await.status, 200);
    assert_eq!(target.get("/page/off").await.status, 200);
    assert_eq!(target.get("/bare").await.status, 200);
    assert_eq!(next().await, "GET /copy? ");
    gate.add_permits(100);
}

#[tokio::test]
async fn a_graceful_stop_waits_for_mirrored_requests_under_way() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let held = gate.clone();
    let php = FakePhp::tcp(move |_| Script::new().wait_for(&held).stdout("X-A: b\r\n\r\n")).await;
    let mut server = site(&format!(
        "location / {{ mirror /copy; try_files /page =404; }}\n\
         location = /copy {{ log_subrequest on; access_log %%/mirrored; fastcgi_pass {}; fastcgi_param A b; }}",
        php.address()
    ))
    .await;
    server.write("page", "page");
    assert_eq!(server.target().get("/").await.text(), "page");
    while php.requests() == 0 {
        tokio::task::yield_now().await;
    }
    server.signal(Signal::QUIT);
    gate.add_permits(1);
    assert!(server.ended().await.success());
    let log = std::fs::read_to_string(server.path("mirrored")).unwrap_or_default();
    assert!(log.contains("GET / HTTP/1.1\" 200"), "{log:?}");
}

#[tokio::test]
async fn a_post_action_is_told_of_the_response_that_was_sent() {
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let php = FakePhp::tcp(move |request| {
        let _ = told.send(request.param("SENT").to_owned());
        Script::page("", "nothing")
    })
    .await;
    let mut server = site(&format!(
        "location / {{ post_action /count; return 200 page; }}\n\
         location /off {{ post_action off; return 200 page; }}\n\
         location = /count {{ log_subrequest on; access_log %%/counted; fastcgi_pass {};\n\
         fastcgi_param SENT $status:$body_bytes_sent; }}",
        php.address()
    ))
    .await;
    for path in ["/?a", "/off"] {
        assert_eq!(server.target().get(path).await.text(), "page");
    }
    server.signal(Signal::QUIT);
    assert!(server.ended().await.success());
    assert_eq!(php.requests(), 1);
    assert_eq!(heard.recv().await.as_deref(), Some("200:4"));
}
