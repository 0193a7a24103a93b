//! Functions that append values of variables; each returns whether there is a value.

use std::net::SocketAddr;

use server_base::address::put_ip;

#[inline]
pub fn put(value: Option<&[u8]>, out: &mut Vec<u8>) -> bool {
    match value {
        Some(value) => {
            out.extend_from_slice(value);
            true
        }
        None => false,
    }
}

/// Like [`put`], with an empty text as no value.
pub fn put_unless_empty(text: &str, out: &mut Vec<u8>) -> bool {
    put(Some(text.as_bytes()).filter(|text| !text.is_empty()), out)
}

pub fn put_number(value: impl Into<u64>, out: &mut Vec<u8>) -> bool {
    decimal::put(value.into(), out);
    true
}

/// Seconds with milliseconds: `1.234`.
pub fn put_seconds(milliseconds: u64, out: &mut Vec<u8>) -> bool {
    decimal::put_seconds(milliseconds, out);
    true
}

/// An address without its port; nginx writes `unix:` for unix sockets.
pub fn put_address(address: Option<SocketAddr>, out: &mut Vec<u8>) -> bool {
    match address {
        None => out.extend_from_slice(b"unix:"),
        Some(address) => put_ip(address.ip(), out),
    }
    true
}

/// Appends the port of an address, unless it is 0: a trusted proxy may send the address
/// without a port.
pub fn put_port(address: Option<SocketAddr>, out: &mut Vec<u8>) -> bool {
    match address {
        Some(address) if address.port() > 0 => put_number(address.port(), out),
        _ => true,
    }
}
