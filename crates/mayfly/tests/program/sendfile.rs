//! `sendfile`.

use crate::site;

#[tokio::test]
async fn files_are_sent_whole_with_and_without_sendfile() {
    let server = site("location / { sendfile on; } location /off { sendfile off; }").await;
    let content: Vec<u8> = (0..200_000u32).flat_map(|n| n.to_le_bytes()).collect();
    server.write("on", &content);
    server.write("off", &content);
    for path in ["/on", "/off"] {
        assert!(server.target().get(path).await.body == content, "{path}");
        let part = server
            .target()
            .get_with(path, "Range: bytes=70001-140000\r\n")
            .await;
        assert!(part.body == content[70_001..=140_000], "{path}");
    }
}
