//! Streams whose clients take nothing: the memory they hold.

use testkit::http3::headers;
use testkit::process::{largest, memory_bytes, open_files};

use super::{GET, site};

#[tokio::test]
async fn streams_that_take_nothing_hold_little_memory_and_one_descriptor_for_each_file() {
    const STREAMS: u64 = 100;
    const CONNECTIONS: u64 = 4;
    let site =
        site("http3_max_concurrent_streams 128; location = /page { return 200 page; }").await;
    let file = std::fs::File::create(site.server.path("file")).expect("a file");
    file.set_len(20 << 20).expect("a length");
    assert_eq!(site.client().await.get("/page").await.text(), "page");
    let memory = || largest(site.server.pid(), |pid| memory_bytes(pid, "VmRSS"));
    let files = || largest(site.server.pid(), |pid| open_files(pid) as u64);
    let (memory_before, files_before) = (memory(), files());
    let mut path = GET;
    path[3].1 = "/file";
    let (mut held, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..CONNECTIONS {
        let mut quic = site.quic();
        quic.set_stream_window(200);
        let connection = quic
            .connect(site.address, "a.test")
            .await
            .expect("a handshake");
        for _ in 0..STREAMS {
            let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
            send.write_all(&headers(&path)).await.expect("sent");
            send.finish().expect("an open stream");
            // The head, and no more.
            let head = receive.read_chunk(1, true).await.expect("a response");
            assert!(head.is_some());
            held.push((send, receive));
        }
        clients.push(quic);
    }
    let grown = memory().saturating_sub(memory_before);
    assert!(
        grown / CONNECTIONS < 3 << 20,
        "{} KB for each connection",
        (grown / CONNECTIONS) >> 10
    );
    let opened = files().saturating_sub(files_before);
    assert!(opened < 10, "{opened} files");
}
