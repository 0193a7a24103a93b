//! Requests that refer to fields which the client inserts (RFC 9204): they wait for them, within
//! bounds.

use quinn::{Connection, SendStream};
use testkit::fake_http::{FakeHttp, Script};
use testkit::http3::{Outcome, ask_raw, frame, headers};
use testkit::wait::TIMEOUT;

use super::ending::code_of;
use super::{GET, Site, site};

/// A path and `:authority` are inserted, which a block may refer to as the last two.
const INSERTIONS: &[u8] = b"\xc1\x05/page\xc0\x06a.test";
/// GET, https, and the two that are inserted.
const REFERRING: &[u8] = b"\x03\x00\xd1\xd7\x80\x81";

async fn connect(site: &Site) -> Connection {
    let connection = site.quic().connect(site.address, "a.test").await;
    connection.expect("a handshake")
}

/// Opens the stream of an encoder, and asks for a table of 4,096 bytes.
async fn encoder(connection: &Connection) -> SendStream {
    let mut stream = connection.open_uni().await.expect("a stream");
    stream.write_all(b"\x02\x3f\xe1\x1f").await.expect("sent");
    stream
}

/// Reads instructions of the server's decoder, until it has acknowledged this many requests.
async fn instructions(connection: &Connection, requests: usize) -> Vec<u8> {
    loop {
        let mut stream = connection.accept_uni().await.expect("a stream");
        let (mut byte, mut said) = ([0; 1], Vec::new());
        stream.read_exact(&mut byte).await.expect("a kind");
        while byte == [3] && is_acknowledgment_count_below(&said, requests) {
            let mut instruction = [0; 1];
            stream
                .read_exact(&mut instruction)
                .await
                .expect("instructions");
            said.push(instruction[0]);
        }
        if byte == [3] {
            return said;
        }
    }
}

fn is_acknowledgment_count_below(said: &[u8], requests: usize) -> bool {
    said.iter().filter(|byte| *byte & 0x80 != 0).count() < requests
}

#[tokio::test]
async fn requests_wait_for_the_fields_that_they_refer_to() {
    let site = site("location = /page { return 200 page; }").await;
    let connection = connect(&site).await;
    let mut encoder = encoder(&connection).await;
    let request = frame(1, REFERRING);
    let waiting = [
        ask_raw(&connection, &request),
        ask_raw(&connection, &request),
    ];
    let [first, second] = waiting;
    let inserted = async {
        // The server has seen the requests once it has answered one that refers to nothing.
        let plain = headers(&GET);
        assert_eq!(ask_raw(&connection, &plain).await, Outcome::Status(403));
        for byte in INSERTIONS {
            encoder.write_all(&[*byte]).await.expect("sent");
        }
    };
    let (first, second, ()) = tokio::join!(first, second, inserted);
    assert_eq!(
        (first, second),
        (Outcome::Status(200), Outcome::Status(200))
    );
    assert_eq!(ask_raw(&connection, &request).await, Outcome::Status(200));
    let read = tokio::time::timeout(TIMEOUT, instructions(&connection, 3)).await;
    let said = read.expect("instructions in time");
    // Both insertions are reported before the first request is acknowledged, at once or one by
    // one.
    let insertions = said.iter().take_while(|byte| *byte & 0xc0 == 0);
    assert_eq!(
        insertions.map(|byte| u32::from(*byte)).sum::<u32>(),
        2,
        "{said:x?}"
    );
}

#[tokio::test]
async fn trailers_wait_for_the_fields_that_they_refer_to() {
    let origin = FakeHttp::start(|_| Script::page("", "page")).await;
    let site = site(&format!("location / {{ proxy_pass {}; }}", origin.url())).await;
    let connection = connect(&site).await;
    let mut encoder = encoder(&connection).await;
    let mut fields = GET;
    fields[0].1 = "POST";
    let request = [
        headers(&fields),
        frame(0, b"body"),
        frame(1, b"\x02\x00\x80"),
    ]
    .concat();
    let inserted = async {
        let plain = headers(&GET);
        assert_eq!(ask_raw(&connection, &plain).await, Outcome::Status(200));
        encoder.write_all(b"\x41a\x011").await.expect("sent");
    };
    let (answered, ()) = tokio::join!(ask_raw(&connection, &request), inserted);
    assert_eq!(answered, Outcome::Status(200));
}

#[tokio::test]
async fn a_request_whose_fields_do_not_come_ends_in_time() {
    let site = site("client_header_timeout 200ms;").await;
    let connection = connect(&site).await;
    let mut encoder = encoder(&connection).await;
    let waiting = ask_raw(&connection, &frame(1, REFERRING)).await;
    assert_eq!(waiting, Outcome::Reset(0x10d));
    encoder.write_all(INSERTIONS).await.expect("sent");
    let again = ask_raw(&connection, &frame(1, REFERRING)).await;
    assert!(matches!(again, Outcome::Status(_)), "{again:?}");
}

#[tokio::test]
async fn more_waiting_requests_than_were_offered_end_the_connection() {
    let site = site("").await;
    let connection = connect(&site).await;
    let mut streams = Vec::new();
    for _ in 0..17 {
        let (mut send, receive) = connection.open_bi().await.expect("a stream");
        send.write_all(&frame(1, REFERRING)).await.expect("sent");
        streams.push((send, receive));
    }
    let closed = tokio::time::timeout(TIMEOUT, connection.closed()).await;
    assert_eq!(code_of(&closed.expect("an end in time")), Some(0x200));
}

#[tokio::test]
async fn a_table_beyond_what_was_offered_ends_the_connection() {
    let site = site("").await;
    let connection = connect(&site).await;
    let mut encoder = encoder(&connection).await;
    encoder.write_all(b"\x3f\xe2\x1f").await.expect("sent");
    let closed = tokio::time::timeout(TIMEOUT, connection.closed()).await;
    assert_eq!(code_of(&closed.expect("an end in time")), Some(0x201));
}
