//! Memory in huge pages: not for a server at rest, but for one with a large store.

use std::time::Duration;

use testkit::running::RunningServer;
use testkit::wait::TIMEOUT;

use crate::program;

/// Pages of 1 MB that are more than a small store.
const PAGES: usize = 33;

/// Reads in `/proc` whether a process may have huge pages.
fn may_have_them(process: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let word = status
        .lines()
        .find_map(|line| line.strip_prefix("THP_enabled:"));
    word.expect("Linux 5.0 or later").trim() == "1"
}

#[tokio::test]
async fn they_come_with_a_large_store() {
    let server = RunningServer::start(
        program(),
        "worker_processes 1;",
        "proxy_cache_path %%/cache keys_zone=pages:10m memory=200m;
         server { listen unix:%%/origin; location / { try_files /page =404; } }
         server {
             listen unix:%%/http;
             location / {
                 proxy_pass http://unix:%%/origin:;
                 proxy_cache pages;
                 proxy_cache_key $request_uri;
                 proxy_cache_valid 200 1h;
             }
         }",
    )
    .await;
    server.write("page", vec![b'x'; 1 << 20]);
    let process = server.pid().to_string();
    let mut client = server.connect().await;
    for page in 0..PAGES {
        assert!(
            page > 16 || !may_have_them(&process),
            "{page} MB are stored"
        );
        let request = format!("GET /{page} HTTP/1.1\r\nHost: site.test\r\n\r\n");
        client.send(&request).await;
        let reply = client.receive(false).await.unwrap();
        assert_eq!((reply.status, reply.body.len()), (200, 1 << 20));
    }
    let permitted = async {
        while may_have_them(&process) != may_have_them("self") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, permitted)
        .await
        .expect("the store is looked at once a second");
}
