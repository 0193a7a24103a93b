//! `$request_completion`: the access log distinguishes a truncated response from a whole one.

use testkit::fake_http::{FakeHttp, Script};
use testkit::wait::{TIMEOUT, until};

use crate::start;

/// With a variable in its format, the access log distinguishes a truncated response from a
/// whole one.
#[tokio::test]
async fn the_access_log_tells_a_truncated_response_from_a_whole_one() {
    let upstream = FakeHttp::start(|request| match request.target.as_str() {
        "/cut" => Script::new()
            .raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            .close(),
        _ => Script::page("", "whole"),
    })
    .await;
    let http = format!(
        "log_format told '$uri $status [$request_completion]';\n\
         server {{ listen unix:%%/http; access_log %%/access.log told;\n\
         location / {{ proxy_pass http://{}; }} }}",
        upstream.address()
    );
    let server = start(&http).await;
    assert!(server.target().get("/whole").await.is_complete);
    let mut client = server.connect().await;
    client.send("GET /cut HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let _ = tokio::time::timeout(TIMEOUT, client.receive_all()).await;
    until("both lines", || {
        server.read("access.log").lines().count() == 2
    })
    .await;
    assert_eq!(server.read("access.log"), "/whole 200 [OK]\n/cut 200 []\n");
}
