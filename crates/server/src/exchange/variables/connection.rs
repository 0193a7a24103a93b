//! Facts of the connection that a request came on.

use std::os::unix::ffi::OsStrExt;

use http_semantics::Version;
use site::Builtin as B;
use transport::facts::{LocalAddress, ProxyAddresses};

use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::value::{put, put_address, put_number, put_port, put_seconds};
use crate::exchange::variable_table::Value::Received as Of;
use crate::exchange::variable_table::Variables;

pub const VARIABLES: Variables = &[
    (
        B::Connection,
        Of(|received, out| put_number(received.connection().serial, out)),
    ),
    (
        B::ConnectionRequests,
        Of(|received, out| put_number(received.nth_on_connection(), out)),
    ),
    (
        B::ConnectionTime,
        Of(|received, out| {
            let accepted_at = received.connection().accepted_at;
            put_seconds(clock::now().saturating_sub(accepted_at), out)
        }),
    ),
    (B::Http2, Of(put_http2)),
    (
        B::Http3,
        Of(|received, out| {
            let is_http3 = received.head().version() == Version::Http3;
            put(Some(if is_http3 { b"h3" } else { b"" }), out)
        }),
    ),
    (
        B::Https,
        Of(|received, out| {
            let is_tls = received.scheme() == "https";
            put(Some(if is_tls { b"on" } else { b"" }), out)
        }),
    ),
    (
        B::Pipe,
        Of(|received, out| put(Some(if received.is_pipelined() { b"p" } else { b"." }), out)),
    ),
    (
        B::ProxyProtocolAddr,
        Of(|received, out| of_proxy(received).is_some_and(|it| put_address(Some(it.client), out))),
    ),
    (
        B::ProxyProtocolPort,
        Of(|received, out| of_proxy(received).is_some_and(|it| put_port(Some(it.client), out))),
    ),
    (
        B::ProxyProtocolServerAddr,
        Of(|received, out| of_proxy(received).is_some_and(|it| put_address(Some(it.server), out))),
    ),
    (
        B::ProxyProtocolServerPort,
        Of(|received, out| of_proxy(received).is_some_and(|it| put_port(Some(it.server), out))),
    ),
    (
        B::RealipRemoteAddr,
        Of(|received, out| put_address(received.connection().peer, out)),
    ),
    (
        B::RealipRemotePort,
        Of(|received, out| put_port(received.connection().peer, out)),
    ),
    (B::ServerAddr, Of(put_server_address)),
    (B::ServerPort, Of(put_server_port)),
];

/// Nothing where the proxy spoke for itself.
fn of_proxy(received: &ReceivedRequest) -> Option<&ProxyAddresses> {
    received.connection().proxy.as_ref()
}

fn put_server_address(received: &ReceivedRequest, out: &mut Vec<u8>) -> bool {
    match &received.connection().local {
        LocalAddress::Ip(address) => put_address(Some(*address), out),
        LocalAddress::Unix(path) => {
            out.extend_from_slice(b"unix:");
            put(Some(path.as_os_str().as_bytes()), out)
        }
    }
}

fn put_server_port(received: &ReceivedRequest, out: &mut Vec<u8>) -> bool {
    match received.connection().local.port() {
        Some(port) => put_number(port, out),
        None => true,
    }
}

/// `h2` where TLS agreed on HTTP/2, `h2c` where it is spoken without, else nothing.
fn put_http2(received: &ReceivedRequest, out: &mut Vec<u8>) -> bool {
    let name: &[u8] = match (received.head().version(), &received.connection().tls) {
        (Version::Http2, Some(_)) => b"h2",
        (Version::Http2, None) => b"h2c",
        _ => b"",
    };
    out.extend_from_slice(name);
    true
}
