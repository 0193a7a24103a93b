//! What the client sent, and what has become of it on the way: method, target, host,
//! body.

use std::net::IpAddr;

use shared_request::arguments;
use site::Builtin as B;

use crate::base::random;
use crate::exchange::request::Request;
use crate::exchange::request_fields::put_field;
use crate::exchange::value::{put, put_address, put_number, put_port};
use crate::exchange::variable_table::Value::{Request as Of, Text};
use crate::exchange::variable_table::{NO_VALUE, Variables};
use crate::transport::body::RequestBody;

pub const VARIABLES: Variables = &[
    (B::Args, Text(args, put_counted_args)),
    (B::BinaryRemoteAddr, Of(put_binary_address)),
    (
        B::ClientIsLocal,
        Of(|request, out| put(request.is_made_here().then_some(b"1".as_slice()), out)),
    ),
    (B::ContentLength, Of(put_content_length)),
    (
        B::ContentType,
        Of(|request, out| put_field(request, b"content_type", out)),
    ),
    (
        B::DocumentUri,
        Text(|request| Some(&request.path), NO_VALUE),
    ),
    (B::Host, Text(host, NO_VALUE)),
    (B::IsArgs, Of(put_is_args)),
    (B::IsRequestPort, Of(put_is_request_port)),
    (B::QueryString, Text(args, put_counted_args)),
    (
        B::RemoteAddr,
        Of(|request, out| put_address(request.client, out)),
    ),
    (
        B::RemotePort,
        Of(|request, out| put_port(request.client, out)),
    ),
    (
        B::Request,
        Text(|request| Some(request.head.request_line()), NO_VALUE),
    ),
    (
        B::RequestBody,
        Of(|request, out| put(request.body.in_memory(), out)),
    ),
    (
        B::RequestBodyFile,
        Of(|request, out| put(request.body.file_name(), out)),
    ),
    (B::RequestId, Of(put_request_id)),
    (
        B::RequestLength,
        Of(|request, out| put_number(request.received_bytes, out)),
    ),
    (B::RequestMethod, Text(method, NO_VALUE)),
    (B::RequestPort, Of(put_request_port)),
    (B::RequestUri, Text(request_uri, put_counted_uri)),
    (
        B::Scheme,
        Text(|request| Some(request.scheme.as_bytes()), NO_VALUE),
    ),
    (
        B::ServerName,
        Text(|request| Some(request.server().name.as_bytes()), NO_VALUE),
    ),
    (B::ServerProtocol, Of(put_protocol)),
    (B::Uri, Text(|request| Some(&request.path), NO_VALUE)),
];

/// The query string, where all of it counts.
fn args(request: &Request) -> Option<&[u8]> {
    let is_whole = request.view.counts_all_arguments() && !request.args.is_empty();
    is_whole.then_some(&request.args)
}

/// The query string without what does not count for the cache.
fn put_counted_args(request: &mut Request, out: &mut Vec<u8>) -> bool {
    arguments::put_counted(&request.args, request.view.ignored_arguments(), out);
    !request.args.is_empty()
}

fn put_is_args(request: &mut Request, out: &mut Vec<u8>) -> bool {
    let mut args = Vec::new();
    put_counted_args(request, &mut args);
    if !args.is_empty() {
        out.push(b'?');
    }
    true
}

/// The target as it was received, where all of it counts.
fn request_uri(request: &Request) -> Option<&[u8]> {
    let is_whole = request.view.counts_all_arguments() && request.has_line();
    is_whole.then(|| request.received_target())
}

/// The target without what does not count for the cache.
fn put_counted_uri(request: &mut Request, out: &mut Vec<u8>) -> bool {
    if !request.has_line() {
        return false;
    }
    let target = request.received_target();
    arguments::put_target(target, request.view.ignored_arguments(), out);
    true
}

fn method(request: &Request) -> Option<&[u8]> {
    let method = request.method_name();
    (!method.is_empty()).then_some(method)
}

/// A request of HTTP/0.9 names no protocol.
fn put_protocol(request: &mut Request, out: &mut Vec<u8>) -> bool {
    let version = request.head.version();
    let is_named = request.has_line() && version != http1::Version::Http09;
    put(is_named.then(|| version.as_str().as_bytes()), out)
}

/// The server's name where the client named no host.
fn host(request: &Request) -> Option<&[u8]> {
    match request.host.is_empty() {
        true => Some(request.server().name.as_bytes()),
        false => Some(&request.host),
    }
}

fn put_is_request_port(request: &mut Request, out: &mut Vec<u8>) -> bool {
    if request.host.port().is_some() {
        out.push(b':');
    }
    true
}

fn put_request_port(request: &mut Request, out: &mut Vec<u8>) -> bool {
    match request.host.port() {
        Some(port) => put_number(port, out),
        None => true,
    }
}

/// A chunked body has a length once it was read.
fn put_content_length(request: &mut Request, out: &mut Vec<u8>) -> bool {
    put_field(request, b"content_length", out)
        || match (&request.body, request.body.length()) {
            (RequestBody::None, _) | (_, None) => false,
            (_, Some(length)) => put_number(length, out),
        }
}

fn put_binary_address(request: &mut Request, out: &mut Vec<u8>) -> bool {
    match request.client_ip() {
        Some(IpAddr::V4(address)) => out.extend_from_slice(&address.octets()),
        Some(IpAddr::V6(address)) => out.extend_from_slice(&address.octets()),
        None => out.extend_from_slice(b"unix:"),
    }
    true
}

fn put_request_id(request: &mut Request, out: &mut Vec<u8>) -> bool {
    let id = *request
        .extras
        .request_id
        .get_or_insert_with(random::bytes16);
    for byte in id {
        for nibble in [byte >> 4, byte & 15] {
            out.push(b"0123456789abcdef"[usize::from(nibble)]);
        }
    }
    true
}
