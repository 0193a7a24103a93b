//! The PROXY protocol, versions 1 and 2, at the start of a connection
//! (<https://www.haproxy.org/download/1.8/doc/proxy-protocol.txt>).

use std::future::poll_fn;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use transport_settings::ProxyExtra;

use crate::facts::ProxyAddresses;
use crate::stream::ClientStream;

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Longest version 1 line, by the specification.
const MAX_LINE_BYTES: usize = 107;
/// Shortest one: `PROXY UNKNOWN` and its line end.
const MIN_LINE_BYTES: usize = 15;
/// Version 2 headers beyond this carry more TLVs than any proxy sends.
const MAX_BINARY_BYTES: usize = 4096;

/// The reason why no header was read.
#[derive(Debug, thiserror::Error)]
pub enum ProxyHeaderError {
    #[error("broken header: \"{0}\"")]
    Broken(String),
    #[error("unknown PROXY protocol version {0}")]
    UnknownVersion(u8),
    #[error("too short PROXY protocol header")]
    TooShort,
    #[error("too long PROXY protocol header")]
    TooLong,
    #[error("client closed connection")]
    Closed,
    #[error("client timed out")]
    Timeout,
    #[error(transparent)]
    Socket(#[from] io::Error),
}

/// The state of a header in the first bytes.
#[derive(Debug, PartialEq, Eq)]
enum HeaderProgress {
    Partial,
    Done {
        consumed: usize,
        addresses: Option<ProxyAddresses>,
    },
}

/// Reads the header; bytes behind it are left in `buffer`, or in the socket where `nothing_more` may be read, as
/// ahead of a TLS handshake. `None`: the proxy speaks for itself (LOCAL, UNKNOWN).
///
/// # Errors
/// The client sends no valid header, or does not complete it in time.
pub async fn read(
    stream: &ClientStream,
    buffer: &mut BytesMut,
    timeout: Duration,
    nothing_more: bool,
) -> Result<Option<ProxyAddresses>, ProxyHeaderError> {
    let reading = async {
        loop {
            match parse(buffer)? {
                HeaderProgress::Done {
                    consumed,
                    addresses,
                } => {
                    let _ = buffer.split_to(consumed);
                    return Ok(addresses);
                }
                HeaderProgress::Partial => {
                    let read = match nothing_more {
                        true => read_some(stream, buffer).await,
                        false => {
                            buffer.reserve(MAX_BINARY_BYTES);
                            poll_fn(|cx| stream.poll_read(cx, buffer)).await
                        }
                    };
                    if read? == 0 {
                        return Err(ProxyHeaderError::Closed);
                    }
                }
            }
        }
    };
    tokio::time::timeout(timeout, reading)
        .await
        .unwrap_or(Err(ProxyHeaderError::Timeout))
}

/// Reads no more than the header certainly has.
async fn read_some(stream: &ClientStream, buffer: &mut BytesMut) -> io::Result<usize> {
    let mut piece = [0; MAX_BINARY_BYTES];
    let wanted = missing(buffer).clamp(1, piece.len());
    let piece = &mut piece[..wanted];
    let read = poll_fn(|cx| stream.poll_socket(cx, |socket| socket.read(piece))).await?;
    buffer.extend_from_slice(piece.get(..read).unwrap_or_default());
    Ok(read)
}

/// Returns how many bytes at least are missing of a header that begins so.
fn missing(bytes: &[u8]) -> usize {
    let is_binary = bytes.starts_with(&SIGNATURE);
    match bytes.get(14..16) {
        Some(length) if is_binary => {
            let length = length
                .iter()
                .fold(0, |sum, &byte| sum << 8 | usize::from(byte));
            (16 + length).saturating_sub(bytes.len())
        }
        _ if is_binary => 16usize.saturating_sub(bytes.len()),
        _ => MIN_LINE_BYTES.saturating_sub(bytes.len()),
    }
}

fn parse(bytes: &[u8]) -> Result<HeaderProgress, ProxyHeaderError> {
    let common = bytes.len().min(SIGNATURE.len());
    if !bytes.is_empty() && bytes[..common] == SIGNATURE[..common] {
        return parse_binary(bytes);
    }
    parse_line(bytes)
}

fn parse_line(bytes: &[u8]) -> Result<HeaderProgress, ProxyHeaderError> {
    let broken = || {
        let line = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_LINE_BYTES)]);
        ProxyHeaderError::Broken(line.escape_default().to_string())
    };
    let start = b"PROXY ";
    let common = bytes.len().min(start.len());
    if bytes[..common] != start[..common] {
        return Err(broken());
    }
    let Some(end) = bytes
        .iter()
        .take(MAX_LINE_BYTES)
        .position(|&byte| byte == b'\n')
    else {
        return if bytes.len() < MAX_LINE_BYTES {
            Ok(HeaderProgress::Partial)
        } else {
            Err(broken())
        };
    };
    let consumed = end + 1;
    let line = bytes[..end].strip_suffix(b"\r").ok_or_else(broken)?;
    let text = std::str::from_utf8(line).map_err(|_| broken())?;
    let words: Vec<&str> = text.split(' ').collect();
    let addresses = match words.as_slice() {
        ["PROXY", "UNKNOWN", ..] => None,
        [
            "PROXY",
            family @ ("TCP4" | "TCP6"),
            client,
            server,
            client_port,
            server_port,
        ] => {
            let address = |ip: &str, port: &str| -> Option<SocketAddr> {
                let ip: IpAddr = ip.parse().ok()?;
                (ip.is_ipv4() == (*family == "TCP4")).then_some(())?;
                Some(SocketAddr::new(ip, port.parse().ok()?))
            };
            let client = address(client, client_port).ok_or_else(broken)?;
            let server = address(server, server_port).ok_or_else(broken)?;
            Some(ProxyAddresses {
                client,
                server,
                extras: Bytes::new(),
            })
        }
        _ => return Err(broken()),
    };
    Ok(HeaderProgress::Done {
        consumed,
        addresses,
    })
}

fn parse_binary(bytes: &[u8]) -> Result<HeaderProgress, ProxyHeaderError> {
    let Some(head) = bytes.get(..16) else {
        return Ok(HeaderProgress::Partial);
    };
    let length = usize::from(u16::from_be_bytes([head[14], head[15]]));
    if head[12] >> 4 != 2 {
        return Err(ProxyHeaderError::UnknownVersion(head[12] >> 4));
    }
    if length > MAX_BINARY_BYTES {
        return Err(ProxyHeaderError::TooLong);
    }
    let consumed = 16 + length;
    let Some(rest) = bytes.get(16..consumed) else {
        return Ok(HeaderProgress::Partial);
    };
    let port = |at: usize| {
        rest.get(at..at + 2)
            .map(|p| u16::from_be_bytes([p[0], p[1]]))
    };
    let extras = |from: usize| Bytes::copy_from_slice(rest.get(from..).unwrap_or_default());
    // LOCAL, or a transport other than TCP over IP.
    if head[12] & 15 == 0 {
        return Ok(HeaderProgress::Done {
            consumed,
            addresses: None,
        });
    }
    // Two addresses, two ports, and what else is known.
    let ip = |at: usize, size: usize| -> Option<IpAddr> {
        let bytes = rest.get(at..at + size)?;
        match size {
            4 => Some(<[u8; 4]>::try_from(bytes).ok()?.into()),
            _ => Some(<[u8; 16]>::try_from(bytes).ok()?.into()),
        }
    };
    let addresses = match head[13] >> 4 {
        family @ (1 | 2) => {
            let size = if family == 1 { 4 } else { 16 };
            let ports = 2 * size;
            let client = ip(0, size)
                .zip(port(ports))
                .ok_or(ProxyHeaderError::TooShort)?;
            let server = ip(size, size)
                .zip(port(ports + 2))
                .ok_or(ProxyHeaderError::TooShort)?;
            Some(ProxyAddresses {
                client: client.into(),
                server: server.into(),
                extras: extras(ports + 4),
            })
        }
        _ => None,
    };
    Ok(HeaderProgress::Done {
        consumed,
        addresses,
    })
}

/// Type of the extra that speaks of the proxy's TLS, and the length of the part before the extras inside it: a byte
/// of flags and the outcome of verification.
const TLS_EXTRA: u8 = 0x20;
const TLS_HEAD_BYTES: usize = 5;

/// Appends the extra that `$proxy_protocol_tlv_*` asks for; false if the
/// proxy sent none.
pub fn write_extra(extras: &[u8], wanted: ProxyExtra, out: &mut Vec<u8>) -> bool {
    let tls = || extra(extras, TLS_EXTRA);
    let value = match wanted {
        ProxyExtra::Of(kind) => extra(extras, kind),
        ProxyExtra::OfTls(kind) => tls().and_then(|tls| extra(tls.get(TLS_HEAD_BYTES..)?, kind)),
        ProxyExtra::TlsVerify => {
            let number =
                tls().and_then(|tls| <[u8; 4]>::try_from(tls.get(1..TLS_HEAD_BYTES)?).ok());
            let Some(number) = number.map(u32::from_be_bytes) else {
                return false;
            };
            decimal::put(number.into(), out);
            return true;
        }
    };
    out.extend_from_slice(value.unwrap_or_default());
    value.is_some()
}

/// The first extra of a type. One that is cut short ends the list.
fn extra(mut extras: &[u8], wanted: u8) -> Option<&[u8]> {
    while let [kind, high, low, rest @ ..] = extras {
        let (value, after) =
            rest.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))?;
        if *kind == wanted {
            return Some(value);
        }
        extras = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(client: &str, server: &str) -> Option<ProxyAddresses> {
        let (client, server) = (client.parse().unwrap(), server.parse().unwrap());
        Some(ProxyAddresses {
            client,
            server,
            extras: Bytes::new(),
        })
    }

    fn tlv(kind: u8, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(value.len()).unwrap().to_be_bytes();
        [&[kind], &length[..], value].concat()
    }

    #[test]
    fn extras_are_found_by_type_also_those_about_tls() {
        let tls = [
            &[1, 0, 0, 0, 255][..],
            &tlv(0x21, b"TLSv1.3"),
            &tlv(0x22, b"a.test"),
        ]
        .concat();
        let all = [
            tlv(1, b"h2"),
            tlv(0x20, &tls),
            tlv(0xae, b""),
            tlv(1, b"later"),
        ]
        .concat();
        for (wanted, value) in [
            (ProxyExtra::Of(1), Some("h2")),
            (ProxyExtra::Of(0xae), Some("")),
            (ProxyExtra::Of(2), None),
            (ProxyExtra::OfTls(0x22), Some("a.test")),
            (ProxyExtra::OfTls(1), None),
            (ProxyExtra::TlsVerify, Some("255")),
        ] {
            let mut out = Vec::new();
            let found = write_extra(&all, wanted, &mut out);
            assert_eq!(
                found.then(|| String::from_utf8(out).unwrap()).as_deref(),
                value,
                "{wanted:?}"
            );
        }
        for cut in 0..all.len() {
            // With any part missing, nothing is read beyond the end.
            write_extra(&all[..cut], ProxyExtra::TlsVerify, &mut Vec::new());
            write_extra(&all[..cut], ProxyExtra::Of(0xae), &mut Vec::new());
        }
    }

    #[test]
    fn both_versions_name_client_and_server() {
        let line = b"PROXY TCP4 192.0.2.1 192.0.2.2 1234 5678\r\nGET";
        let wanted = addresses("192.0.2.1:1234", "192.0.2.2:5678");
        assert_eq!(
            parse(line).unwrap(),
            HeaderProgress::Done {
                consumed: 42,
                addresses: wanted.clone()
            }
        );
        let mut binary = SIGNATURE.to_vec();
        binary.extend_from_slice(&[
            0x21, 0x11, 0, 12, 192, 0, 2, 1, 192, 0, 2, 2, 0x04, 0xd2, 0x16, 0x2e,
        ]);
        assert_eq!(
            parse(&binary).unwrap(),
            HeaderProgress::Done {
                consumed: 28,
                addresses: wanted
            }
        );
        for cut in 0..28 {
            assert_eq!(
                parse(&binary[..cut]).unwrap(),
                HeaderProgress::Partial,
                "{cut}"
            );
        }
        // IPv6: 36 bytes, with one that is known besides.
        let mut binary = SIGNATURE.to_vec();
        binary.extend_from_slice(&[0x21, 0x21, 0, 37]);
        let mut ips = [0; 32];
        ips[15] = 1;
        ips[31] = 2;
        binary.extend_from_slice(&ips);
        binary.extend_from_slice(&[0x04, 0xd2, 0x16, 0x2e, 7]);
        let HeaderProgress::Done {
            consumed: 53,
            addresses: Some(found),
        } = parse(&binary).unwrap()
        else {
            panic!("no addresses");
        };
        assert_eq!(found.client, "[::1]:1234".parse().unwrap());
        assert_eq!(found.server, "[::2]:5678".parse().unwrap());
        assert_eq!(found.extras, [7].as_slice());
    }

    #[test]
    fn what_is_no_proxy_header_is_refused() {
        for bytes in [
            &b"GET / HTTP/1.0\r\n"[..],
            b"PROXY TCP4 x y 1 2\r\n",
            b"PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n",
        ] {
            assert!(parse(bytes).is_err());
        }
    }
}
