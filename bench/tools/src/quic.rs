//! A client of HTTP/3 on quinn, with no more of the protocol than a request and its answer need.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, Endpoint, TransportConfig};

use crate::tls;

/// Whatever goes wrong between this client and the server.
pub type Failure = Box<dyn Error + Send + Sync>;

/// The stream of control with an empty SETTINGS frame (RFC 9114 §6.2.1, §7.2.4).
const CONTROL_STREAM: [u8; 3] = [0, 4, 0];
const HEADERS_FRAME: u8 = 1;
const DATA_FRAME: u64 = 0;
/// `:status 200`, `:method GET` and `:scheme https` of QPACK's static table, and its names
/// `:authority` and `:path` with a literal value behind (RFC 9204 §4.5, appendix A).
const STATUS_200: u8 = 0xd9;
const GET_HTTPS: [u8; 2] = [0xd1, 0xd7];
const AUTHORITY: u8 = 0x50;
const PATH: u8 = 0x51;
/// At most this many pieces of a received stream are taken at once.
const PIECES: usize = 32;

/// An end of connections on a port of its own.
///
/// # Errors
/// There is no socket, or no TLS 1.3.
pub fn endpoint(transport: TransportConfig) -> Result<Endpoint, Failure> {
    let crypto = QuicClientConfig::try_from(tls::client(b"h3")?)?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    let mut endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

/// A connection on which the client has begun to speak HTTP/3.
///
/// # Errors
/// There was no handshake.
pub async fn connect(
    endpoint: &Endpoint,
    at: SocketAddr,
    name: &str,
) -> Result<Connection, Failure> {
    let connection = endpoint.connect(at, name)?.await?;
    let mut control = connection.open_uni().await?;
    control.write_all(&CONTROL_STREAM).await?;
    // Dropped, it would be finished, which the other side must not tolerate: it lives as long as
    // the connection.
    let kept = connection.clone();
    tokio::spawn(async move {
        kept.closed().await;
        drop(control);
    });
    Ok(connection)
}

/// A GET request: a HEADERS frame.
///
/// # Panics
/// `name` and `path` are longer than 60 bytes together.
pub fn request(name: &str, path: &str) -> Vec<u8> {
    let mut block = vec![0, 0];
    block.extend_from_slice(&GET_HTTPS);
    for (field, value) in [(AUTHORITY, name), (PATH, path)] {
        block.push(field);
        block.push(value.len() as u8);
        block.extend_from_slice(value.as_bytes());
    }
    assert!(block.len() < 64, "lengths of one byte are all there is");
    [&[HEADERS_FRAME, block.len() as u8], block.as_slice()].concat()
}

/// An answer with status 200.
pub struct PageAnswer {
    /// The bytes of body and framing.
    pub bytes: usize,
    /// The piece that it begins with: the fields, as a rule.
    pub beginning: bytes::Bytes,
    /// All of it.
    whole: Vec<bytes::Bytes>,
}

impl PageAnswer {
    /// Returns the content of its DATA frames (RFC 9114 §7.2.1). It is empty where a frame is not whole.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        let (mut body, whole) = (Vec::new(), self.whole.concat());
        let mut rest = &whole[..];
        while let Some((kind, after)) = variable_length(rest)
            && let Some((length, after)) = variable_length(after)
            && let Some((payload, after)) = after.split_at_checked(length as usize)
        {
            if kind == DATA_FRAME {
                body.extend_from_slice(payload);
            }
            rest = after;
        }
        match rest.is_empty() {
            true => body,
            false => Vec::new(),
        }
    }

    /// Is this field among those that it begins with? As Mayfly encodes it, without a table of its own.
    #[must_use]
    pub fn has_field(&self, name: &str, value: &str) -> bool {
        let mut field = http3::FieldBlock::default();
        let frame = match field.put(name, value) {
            Ok(()) => field.to_frame(),
            Err(_) => return false,
        };
        // Behind the head of the frame, and two bytes that say that no table is needed.
        let encoded = frame.get(4..).unwrap_or_default();
        !encoded.is_empty()
            && self
                .beginning
                .windows(encoded.len())
                .any(|it| it == encoded)
    }
}

/// A number of variable length (RFC 9000 §16), and what follows.
fn variable_length(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let first = *bytes.first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let begin = u64::from(first & 0x3f);
    let value = number[1..]
        .iter()
        .fold(begin, |value, byte| value << 8 | u64::from(*byte));
    Some((value, rest))
}

/// Asks, and reads the answer to its end: how many bytes of body and framing it had.
///
/// # Errors
/// The answer is cut off, or its status is not 200.
pub async fn get(connection: &Connection, request: &[u8]) -> Result<usize, Failure> {
    Ok(answer(connection, request).await?.bytes)
}

/// Asks, and reads the answer to its end.
///
/// # Errors
/// The answer is cut off, or its status is not 200.
pub async fn answer(connection: &Connection, request: &[u8]) -> Result<PageAnswer, Failure> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(request).await?;
    send.finish()?;
    let mut pieces: [bytes::Bytes; PIECES] = std::array::from_fn(|_| bytes::Bytes::new());
    let (mut received, mut is_ok) = (0, false);
    let (mut beginning, mut whole) = (bytes::Bytes::new(), Vec::new());
    while let Some(count) = receive.read_chunks(&mut pieces).await? {
        if received == 0 {
            is_ok = begins_with_200(&pieces[0]);
            beginning = pieces[0].clone();
        }
        whole.extend_from_slice(&pieces[..count]);
        received += pieces[..count].iter().map(bytes::Bytes::len).sum::<usize>();
    }
    if is_ok {
        Ok(PageAnswer {
            bytes: received,
            beginning,
            whole,
        })
    } else {
        Err("the answer is no 200".into())
    }
}

/// Is the first frame a HEADERS frame whose first field is a status of 200?
fn begins_with_200(answer: &[u8]) -> bool {
    // The length of the frame has one byte or two.
    let length_bytes = match answer.get(1) {
        Some(first) if first & 0xc0 == 0x40 => 2,
        _ => 1,
    };
    let first_field = answer.get(1 + length_bytes + 2);
    answer.first() == Some(&HEADERS_FRAME) && first_field == Some(&STATUS_200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_frame_of_the_length_it_says() {
        let request = request("a.test", "/page");
        assert_eq!(request[0], HEADERS_FRAME);
        assert_eq!(usize::from(request[1]), request.len() - 2);
        assert!(request.ends_with(b"\x51\x05/page"));
    }

    #[test]
    fn a_body_is_what_the_frames_of_data_carry() {
        let mut answer = PageAnswer {
            bytes: 0,
            beginning: bytes::Bytes::new(),
            whole: vec![
                vec![1, 2, 9, 9, 0, 2, b'a'].into(),
                vec![b'b', 0, 0x40, 1, b'c'].into(),
            ],
        };
        assert_eq!(answer.body(), b"abc");
        answer.whole[1].truncate(4);
        assert_eq!(answer.body(), b"");
    }

    #[test]
    fn a_field_is_found_as_it_is_encoded() {
        let mut block = http3::FieldBlock::default();
        block.put_status(200);
        block.put("x-cache", "UPDATING").unwrap();
        let answer = PageAnswer {
            bytes: 0,
            beginning: block.to_frame().into(),
            whole: Vec::new(),
        };
        assert!(answer.has_field("X-Cache", "UPDATING"));
        assert!(!answer.has_field("X-Cache", "HIT"));
    }

    #[test]
    fn the_status_is_read_from_either_form_of_length() {
        assert!(begins_with_200(&[1, 3, 0, 0, 0xd9]));
        assert!(begins_with_200(&[1, 0x40, 3, 0, 0, 0xd9]));
        assert!(!begins_with_200(&[1, 3, 0, 0, 0xdb]));
        assert!(!begins_with_200(&[0, 3, 0, 0, 0xd9]));
        assert!(!begins_with_200(&[]));
    }
}
