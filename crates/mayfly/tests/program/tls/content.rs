//! Requests and responses over TLS.

use std::io::ErrorKind;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use testkit::client::Client;
use testkit::fake_http::{FakeHttp, Script};
use testkit::fake_php::{FakePhp, Script as Php};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Certificates, ask, connect, get};

const LARGE: usize = 5 << 20;

/// Bytes of which no two pieces are the same.
fn large() -> Vec<u8> {
    (0..LARGE as u32 / 4).flat_map(u32::to_be_bytes).collect()
}

fn assert_same(found: &[u8], expected: &[u8]) {
    assert_eq!(found.len(), expected.len());
    let different = found.iter().zip(expected).position(|(a, b)| a != b);
    assert_eq!(different, None);
}

#[tokio::test]
async fn files_are_sent_whole_and_in_order_with_and_without_sendfile() {
    let certificates = Certificates::new();
    for directives in [
        "sendfile on;",
        "sendfile on; tcp_nopush on; sendfile_max_chunk 64k;",
        "sendfile off;",
        "sendfile on; ssl_buffer_size 4k;",
        "output_buffers 1 7000; directio 1;",
    ] {
        let server = certificates.site(directives).await;
        server.write("small", "small");
        server.write("large", large());
        let mut client = connect(&certificates.client(), &server, "a.test")
            .await
            .client;
        for _ in 0..2 {
            let reply = ask(&mut client, "a.test", "/large").await;
            assert!(reply.is_complete, "{directives}");
            assert_same(&reply.body, &large());
            assert_eq!(ask(&mut client, "a.test", "/small").await.text(), "small");
        }
        let range = "GET /large HTTP/1.1\r\nHost: a.test\r\nRange: bytes=1000-200999\r\n\r\n";
        client.send(range).await;
        let reply = client.receive(false).await.expect("a response");
        assert_eq!(reply.status, 206);
        assert_same(&reply.body, &large()[1000..201_000]);
    }
}

#[tokio::test]
async fn a_large_upload_reaches_php_whole_and_the_next_request_may_be_in_the_same_record() {
    let certificates = Certificates::new();
    let php = FakePhp::tcp(|request| {
        let is_same = request.body == large();
        let path = request.param("REQUEST_URI").to_owned();
        let told = format!("{path} {} {is_same}", request.body.len());
        Php::page("Content-Type: text/plain\r\n", told)
    })
    .await;
    for buffering in ["on", "off"] {
        let server = certificates
            .site(&format!(
                "client_max_body_size 10m; fastcgi_request_buffering {buffering};\n\
                 location / {{ fastcgi_pass {}; fastcgi_param REQUEST_URI $request_uri; }}",
                php.address()
            ))
            .await;
        let mut client = connect(&certificates.client(), &server, "a.test")
            .await
            .client;
        let mut request =
            format!("POST /up HTTP/1.1\r\nHost: a.test\r\nContent-Length: {LARGE}\r\n\r\n")
                .into_bytes();
        request.extend(large());
        request.extend_from_slice(b"GET /next HTTP/1.1\r\nHost: a.test\r\n\r\n");
        client.send(request).await;
        for expected in [format!("/up {LARGE} true"), "/next 0 false".to_owned()] {
            let reply = client.receive(false).await.expect("a response");
            assert_eq!(reply.text(), expected, "buffering {buffering}");
        }
    }
}

#[tokio::test]
async fn pipelined_requests_in_one_record_are_answered_in_order() {
    let certificates = Certificates::new();
    let server = certificates
        .site("location / { return 200 $request_uri; } location /file { }")
        .await;
    server.write("file", "file");
    let mut client = connect(&certificates.client(), &server, "a.test")
        .await
        .client;
    let paths: Vec<String> = (0..200)
        .map(|number| match number % 7 {
            0 => "/file".to_owned(),
            _ => format!("/{number}"),
        })
        .collect();
    let requests = paths
        .iter()
        .map(|path| format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
    client.send(requests.collect::<String>()).await;
    for path in paths {
        let reply = client.receive(false).await.expect("a response");
        assert_eq!(reply.text(), path.replace("/file", "file"));
    }
}

#[tokio::test]
async fn the_end_of_a_connection_is_said_by_close_notify() {
    let certificates = Certificates::new();
    let server = certificates
        .site("location / { return 200 page; } location /drop { return 444; }")
        .await;
    for request in [
        "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "nonsense\r\n\r\n",
        "GET /drop HTTP/1.1\r\nHost: a.test\r\n\r\n",
    ] {
        let mut client = connect(&certificates.client(), &server, "a.test")
            .await
            .client;
        client.send(request).await;
        client.receive_all().await;
        assert_eq!(client.error(), None, "{request:?}");
    }
}

#[tokio::test]
async fn an_idle_connection_ends_with_close_notify_after_keepalive_timeout() {
    let certificates = Certificates::new();
    let server = certificates
        .site("keepalive_timeout 100ms; location / { return 200 page; }")
        .await;
    let mut client = connect(&certificates.client(), &server, "a.test")
        .await
        .client;
    assert_eq!(ask(&mut client, "a.test", "/").await.text(), "page");
    assert_eq!(client.receive_all().await, b"");
    assert_eq!(client.error(), None);
}

#[tokio::test]
async fn a_client_that_has_closed_is_told_the_end_only_behind_a_response_it_waits_for() {
    let certificates = Certificates::new();
    let server = certificates.site("location / { return 200 page; }").await;
    let left = Some(ErrorKind::UnexpectedEof);
    for (option, waits, error) in [("close", true, None), ("keep-alive", false, left)] {
        let stream = UnixStream::connect(server.path("http")).expect("a connection");
        let other = stream.try_clone().expect("a second descriptor");
        stream.set_nonblocking(true).expect("a socket");
        let stream = tokio::net::UnixStream::from_std(stream).expect("a socket");
        let connected = certificates.client().connect_over(stream, "a.test").await;
        let mut client = connected.expect("a handshake").client;
        let request = format!("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: {option}\r\n\r\n");
        client.send(request).await;
        if !waits {
            assert_eq!(
                client.receive(false).await.expect("a response").text(),
                "page"
            );
        }
        // The end of the connection, without the end of TLS.
        other.shutdown(Shutdown::Write).expect("a socket");
        let received = client.receive_all().await;
        assert_eq!(received.ends_with(b"page"), waits);
        assert_eq!(client.error(), error);
    }
}

/// Reads little at first, so that the server's socket is full when it has written its last.
async fn read_slowly(client: &mut Client) -> usize {
    let mut read = 0;
    for _ in 0..20 {
        read += client.receive_some().await.len();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    read + client.receive_all().await.len()
}

#[tokio::test]
async fn a_slow_reader_gets_all_and_close_notify_when_the_server_closes_behind_the_response() {
    let certificates = Certificates::new();
    let server = certificates.site("location / { }").await;
    let lengths = [LARGE, 1 << 20, 300_000, 250_000, 220_000, 200_000, 150_000];
    for length in lengths {
        server.write("file", &large()[..length]);
        let connection = connect(&certificates.client(), &server, "a.test").await;
        let mut client = connection.client;
        client.send("GET /file HTTP/1.0\r\n\r\n").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let read = read_slowly(&mut client).await;
        assert!(read > length, "{read} of {length}");
        assert_eq!(client.error(), None, "{length}");
    }
}

#[tokio::test]
async fn a_body_without_a_length_ends_with_close_notify_for_a_slow_reader() {
    let certificates = Certificates::new();
    let upstream = FakeHttp::start(|_| {
        Script::new()
            .raw("HTTP/1.0 200 OK\r\n\r\n")
            .raw(large())
            .close()
    })
    .await;
    let server = certificates
        .site(&format!(
            "location / {{ proxy_pass http://{}; }}",
            upstream.address()
        ))
        .await;
    let mut client = connect(&certificates.client(), &server, "a.test")
        .await
        .client;
    client.send("GET / HTTP/1.0\r\n\r\n").await;
    let read = read_slowly(&mut client).await;
    assert!(read > LARGE, "{read}");
    assert_eq!(client.error(), None);
}

#[tokio::test]
async fn a_websocket_goes_through_in_both_directions() {
    let certificates = Certificates::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            assert!(stream.read_buf(&mut head).await.unwrap() > 0);
        }
        stream
            .write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello")
            .await
            .unwrap();
        let mut received = vec![0; LARGE];
        stream.read_exact(&mut received).await.unwrap();
        stream.write_all(&received).await.unwrap();
        received
    });
    let server = certificates
        .site(&format!(
            "location / {{ proxy_pass http://{address}; proxy_http_version 1.1;\n\
             proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }}"
        ))
        .await;
    let mut client = connect(&certificates.client(), &server, "a.test")
        .await
        .client;
    client
        .send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        .await;
    let head = client.receive_until("hello").await;
    assert!(head.starts_with(b"HTTP/1.1 101 "));
    client.send(large()).await;
    assert_same(&client.receive_all().await, &large());
    assert_same(&upstream.await.unwrap(), &large());
    assert_eq!(client.error(), None);
}

#[tokio::test]
async fn a_page_of_php_is_served_from_the_cache() {
    let certificates = Certificates::new();
    let php = FakePhp::tcp(|_| Php::page("Content-Type: text/html\r\n", "x".repeat(100_000))).await;
    let http = format!(
        "fastcgi_cache_path %%/cache keys_zone=zone:1m memory=8m;\n{}",
        super::site(&format!(
            "location / {{ fastcgi_pass {}; fastcgi_cache zone; fastcgi_cache_key $request_uri;\n\
             fastcgi_cache_valid 200 1h; add_header X-Cache $upstream_cache_status; }}",
            php.address()
        ))
    );
    let server = certificates.start(&http).await;
    for expected in ["MISS", "HIT", "HIT"] {
        let reply = get(&certificates.client(), &server, "a.test", "/").await;
        assert_eq!((reply.x_cache(), reply.body.len()), (expected, 100_000));
    }
}
