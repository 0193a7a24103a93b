//! The fuzz entries on generated input: pieces of real messages shuffled,
//! which get further into the parsers than random bytes do.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

#[rustfmt::skip]
const REQUEST_PIECES: &[&str] = &[
    "GET ", "POST ", "OPTIONS * ", "CONNECT a:1 ", "/", "/a/../b?c#d", "http://Ho.st:80/x", "%2e%2e/", "%", "//",
    "/./", "..", " HTTP/1.1\r\n", " HTTP/1.0\n", "\r\n", "\n", "\r", " ", "\t", "\0", "Host: x\r\n",
    "Host: [::1]:80\r\n", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "a_b: c\n", ":", "x",
    "Cookie: a=b; c=d\r\n", "\u{e9}", "Connection: close\r\n", "HTTP/2.0",
];
const RESPONSE_PIECES: &[&str] = &[
    "HTTP/1.1 ",
    "HTTP/1.0 200 OK\r\n",
    "200",
    "304 Not Modified\r\n",
    " ",
    "OK",
    "\r\n",
    "\n",
    "\r",
    "\0",
    "A: b\r\n",
    "Content-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    ":",
    "Set-Cookie: a=b\n",
];
#[rustfmt::skip]
const CHUNKED_PIECES: &[&str] = &[
    "0", "1", "5\r\nhello\r\n", "a", "F", ";x=y", " ", "\r\n", "\r", "\n", "0\r\n", "0\r\n\r\n", "A: b\r\n", "10",
    "ffffffff", "\0", "hello",
];

/// Some of `openings` or none, then pieces in any order; sometimes any bytes.
fn shuffled(
    openings: &'static [&'static str],
    pieces: &'static [&'static str],
) -> impl Strategy<Value = Vec<u8>> {
    let pieces = (select(openings), vec(select(pieces), 0..24))
        .prop_map(|(opening, pieces)| (opening.to_owned() + &pieces.concat()).into_bytes());
    let bytes = vec(any::<u8>(), 0..200);
    prop_oneof![8 => pieces, 1 => bytes]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn request_heads_read_the_same_in_pieces(data in shuffled(&["", "GET / HTTP/1.1\r\n", "GET /"], REQUEST_PIECES)) {
        http1::fuzz_request_head(&data);
    }

    #[test]
    fn response_heads_read_the_same_in_pieces(data in shuffled(&["", "HTTP/1.1 200 OK\r\n"], RESPONSE_PIECES)) {
        http1::fuzz_response_head(&data);
    }

    #[test]
    fn chunked_bodies_read_the_same_in_pieces(data in shuffled(&["", "5\r\nhello\r\n", "0\r\n"], CHUNKED_PIECES)) {
        http1::fuzz_chunked(&data);
    }
}
