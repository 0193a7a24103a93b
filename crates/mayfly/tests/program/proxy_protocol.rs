//! `listen ... proxy_protocol` and `real_ip_header proxy_protocol`.

use crate::start;

/// A PROXY header about 192.0.2.1:123, with extras behind it.
fn proxy_header(extras: &[u8]) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11".to_vec();
    header.extend(
        u16::try_from(12 + extras.len())
            .expect("short")
            .to_be_bytes(),
    );
    header.extend([192, 0, 2, 1, 192, 0, 2, 2, 0, 123, 0, 80]);
    header.extend_from_slice(extras);
    header
}

#[tokio::test]
async fn what_a_proxy_says_is_told_and_trusted_location_by_location() {
    let http = "server { listen unix:%%/http proxy_protocol; set_real_ip_from unix:;\n\
         location / { return 200 \"$remote_addr $proxy_protocol_addr!$proxy_protocol_port $proxy_protocol_tlv_alpn-$proxy_protocol_tlv_0x2\"; }\n\
         location /real { real_ip_header proxy_protocol; try_files /real =404; location /real/denied { deny 192.0.2.1; } } }";
    let server = start(http).await;
    server.write("real", "real");
    let ask = async |header: &[u8], path: &str| {
        let mut client = server.connect().await;
        client.send(header).await;
        client.send(format!("GET {path} HTTP/1.0\r\n\r\n")).await;
        client.receive(false).await.expect("a response")
    };
    let extras = b"\x01\x00\x02h2\x02\x00\x06a.test";
    assert_eq!(
        ask(&proxy_header(extras), "/").await.text(),
        "unix: 192.0.2.1!123 h2-a.test"
    );
    assert_eq!(ask(b"PROXY UNKNOWN\r\n", "/").await.text(), "unix: ! -");
    assert_eq!(ask(&proxy_header(b""), "/real").await.text(), "real");
    assert_eq!(ask(&proxy_header(b""), "/real/denied").await.status, 403);
}
